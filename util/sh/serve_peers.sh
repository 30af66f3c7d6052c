# shellcheck shell=bash disable=SC2034 # what is set is used elsewhere
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What serve_turns.sh and serve_guest.sh have in common: sets of files, and who
# fetches them. Sourced; a script has usage, end and turn NUMBER of its own.

set -u
export LC_ALL=C
umask 022
readonly ME=${0##*/} RC_USAGE=2 FOLDER=/dev/shm
TURNS=1 SETS='' PEERS=''

die()
{
	echo "$ME: $*" >&2
	exit 1
}

# sets_and_peers SET... -- PEER...
sets_and_peers()
{
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		SETS+=" $1"
		shift
	done
	PEERS=${*:2}
	[ -n "$PEERS" ] || { usage >&2; exit $RC_USAGE; }
}

# make_set NAME FILES KIB: a file, or a folder of them with numbers
make_set()
{
	local at=$WORK/src/$1

	if [ "$2" = 1 ]; then
		head -c "$3K" /dev/urandom >"$at"
	else
		mkdir "$at" && head -c "$(($2 * $3))K" /dev/urandom |
			split -a 5 --numeric-suffixes=1 -b "$3K" - "$at/"
	fi
}

# same NAME: was it fetched?
same()
{
	diff -r "$WORK/src/$1" "$WORK/dst/$1" >&2
}

# Makes the files, in $WORK, which goes when the script ends.
begin_sets()
{
	local set

	WORK=$(mktemp -d "$FOLDER/serve.XXXXXX") || exit 1
	trap 'end; rm -rf "$WORK"' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# servers may change their user
	chmod 755 "$WORK"
	mkdir "$WORK/src" "$WORK/dst"
	PORT=$((20000 + RANDOM % 10000))
	for set in first:1:4 $SETS; do
		IFS=: read -ra set <<<"$set"
		make_set "${set[@]}" || die "no room for files in $FOLDER"
	done
}

all_turns()
{
	local turn

	for ((turn = 0; turn < TURNS; turn++)); do
		turn "$turn"
	done
}
