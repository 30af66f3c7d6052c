#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# profile_run.sh: the measurements of ./bench.sh profile and docs/profile.md,
# in the virtual machine. Prints them in parts that begin with "== NAME".

set -eu
PROF=${1:?where fi_mrrc_prof is}/fi_mrrc_prof
# pages of 2 MiB: 64 MiB twice, and some
readonly HUGE=80
DIR=$(mktemp -d "${TMPDIR:-/tmp}/profile_run.XXXXXX")
trap 'rm -rf "$DIR"' EXIT

# fails where the machine has no room for them: they are then left out
echo $HUGE >/proc/sys/vm/nr_hugepages || true
echo "== setup"
echo "Linux $(uname -r), $(nproc) processors"
"$PROF" -q -p verbs -k 4k -l 4K-16M -n 40 -t 75 --csv -o "$DIR/split" \
	--save="$DIR/model"
echo "== split"
cat "$DIR/split"
echo "== model"
cat "$DIR/model"
"$PROF" -q -p verbs -k 4k,thp,2m -l 2M-64M -t 60 --skip=trace,bandwidth \
	--csv -o "$DIR/pages"
echo "== pages"
cat "$DIR/pages"
