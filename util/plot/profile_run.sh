#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# profile_run.sh BINDIR [PROVIDER]: the measurements of ./bench.sh profile and
# docs/figures.md, in the virtual machine. Over another provider than verbs it is a
# short run, for tests, which changes nothing of the machine.
# Prints them in parts that begin with "== NAME".

set -eu
PROF=${1:?where fi_mrrc_prof is}/fi_mrrc_prof
PROVIDER=${2:-verbs}
# pages of 2 MiB: 64 MiB twice, and some
readonly HUGE=80
DIR=$(mktemp -d "${TMPDIR:-/tmp}/profile_run.XXXXXX")
trap 'rm -rf "$DIR"' EXIT

SPLIT=(-s 4K-16M --rounds=40 -t 75) PAGES=(-s 2M-64M -t 60)
if [ "$PROVIDER" = verbs ]; then
	# fails where there is no room for them: they are then left out
	echo $HUGE >/proc/sys/vm/nr_hugepages || true
else
	SPLIT=(-s 4K-64K --rounds=3 -t 30) PAGES=(-s 2M-4M --rounds=3 -t 30)
fi
echo "== setup"
echo "Linux $(uname -r), $(nproc) processors"
"$PROF" -q -P "$PROVIDER" -k 4k "${SPLIT[@]}" --csv -o "$DIR/split" \
	--save="$DIR/model"
echo "== split"
cat "$DIR/split"
echo "== model"
cat "$DIR/model"
"$PROF" -q -P "$PROVIDER" -k 4k,thp,2m "${PAGES[@]}" \
	--skip=trace,bandwidth --csv -o "$DIR/pages"
echo "== pages"
cat "$DIR/pages"
