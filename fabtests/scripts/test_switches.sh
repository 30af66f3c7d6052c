#!/bin/bash
# shellcheck disable=SC2317 # tests are called by their names
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_switches.sh: the provider without a part, for each part that configure can
# leave out, and without all of them: it builds without a warning, its functional
# tests pass, and what the part would answer says that it was left out.  Ends
# with a table of lines and bytes, and "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly PARTS="alloc cw files helper hooks node record"
# functional tests that pass without any part; "info" needs the part "record"
readonly NEED_NONE=parts,msg,rma,completions,selective,unmap

usage()
{
	cat <<-EOT
	Usage: $ME -b BINDIR [-t TEST] FOLDER

	Builds in FOLDER, and writes the table of all that was built there to
	FOLDER/switches.txt, which docs/results has. BINDIR: where the functional
	tests are. TEST: a part, or none, or all.
	EOT
}

# make_without PART...: the modules alone; tests and tools are the same
make_without()
{
	mkdir -p "$BUILD" && cd "$BUILD" || return 1
	"$TOP/configure" --enable-werror --disable-tools \
		"${@/#/--disable-}" "${CCACHE[@]}" &&
		make -s config.h &&
		make -s -j"$(nproc)" libmrrc-fi.la libhook_mrrc-fi.la
}

# row NAME: lines of the sources that were compiled, bytes of code and data
row()
{
	local lines text data

	lines=$(cd "$BUILD" && find prov -path '*/.libs/*.o' |
		sed "s|^\(.*\)/.libs/\(.*-\)\?\(.*\)\.o|$TOP/\1/\3.c|" |
		xargs cat | wc -l)
	read -r text data < <(size "$BUILD/.libs/libmrrc-fi.so" |
		awk 'NR == 2 { print $1, $2 }')
	printf '%-10s%9d%9d%9d\n' "$1" "$lines" "$text" "$data" >"$BUILD/row"
}

# without NAME PART...
without()
{
	local BUILD=$FOLDER/$1 name=$1 tests=$NEED_NONE

	shift
	(make_without "$@") >"$DIR/log" 2>&1 ||
		{ tail -n 30 "$DIR/log"; fail "does not build"; return 1; }
	row "$name"
	[[ " $* " == *" record "* ]] || tests+=,info
	# copies of files are allocated
	[ "$name" != alloc ] || set -- alloc files
	FT_WITHOUT=$* FI_PROVIDER_PATH=$BUILD/.libs \
		"$TOP/fabtests/scripts/runfabtests.sh" \
		-b "${BIN%/}" -t "$tests" 'tcp;ofi_mrrc' >"$DIR/log" 2>&1 ||
		{ cat "$DIR/log"; return 1; }
}

for part in $PARTS; do
	eval "test_$part() { without $part $part; }"
done

test_none()
{
	without none
}

test_all()
{
	# shellcheck disable=SC2086 # a list
	without all $PARTS
}

test_options "$@"
FOLDER=$(realpath -m "$PROVIDER") CCACHE=()
[ -n "$BIN" ] || { usage >&2; exit 2; }
if command -v ccache >/dev/null; then
	CCACHE=(CC='ccache gcc' CXX='ccache g++')
	export CCACHE_NOHASHDIR=1
fi
# shellcheck disable=SC2086 # a list
run_tests none $PARTS all >"$DIR/verdict"
rc=$?
{
	printf '%s\n\n' "Lines of the sources, and bytes of code and data of \
libmrrc-fi.so, without each part."
	printf '%-10s%9s%9s%9s\n' without lines code data
	for part in none $PARTS all; do
		cat "$FOLDER/$part/row" 2>/dev/null
	done
} | tee "$FOLDER/switches.txt"
cat "$DIR/verdict"
exit $rc
