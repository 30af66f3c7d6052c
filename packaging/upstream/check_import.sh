#!/bin/bash
# shellcheck disable=SC2317 # run_tests calls each test by its name
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_import.sh: the provider in libfabric's own tree (import.sh), as modules
# and as a part of the library. Ends with "N passed, N failed".
#
# Flow: two copies of the source -> import.sh -> build both -> upstream's tests
# and some functional tests of this tree, which are built here, over them.

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../fabtests/scripts/testlib.sh"
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly TOP
readonly FUNCTIONAL=info,msg,rma,mr,cwrite,alloc HOOKED=hook,msg,mr

usage()
{
	cat <<-EOT
	Usage: $ME SOURCE DIR

	SOURCE is a source tree of libfabric, 1.17 or newer. Builds in the folder
	DIR, which is new.
	EOT
}

# logged NAME COMMAND...: its output in DIR/NAME.log
logged()
{
	local name=$1

	shift
	"$@" >"$DIR/$name.log" 2>&1 </dev/null ||
		{ tail -n 20 "$DIR/$name.log"; echo "$ME: $name failed"; exit 2; }
}

# tree FORM: dl or yes, as --enable-mrrc has it
tree()
{
	cp -r "$SOURCE" "$DIR/$1"
	cd "$DIR/$1" || exit
	[ ! -e Makefile ] || logged "distclean-$1" make distclean
	"$TOP/packaging/upstream/import.sh" . || exit
	logged "autogen-$1" ./autogen.sh
	logged "configure-$1" ./configure --prefix="$DIR/$1/prefix" --enable-only \
		--enable-tcp --enable-rxm --enable-mrrc="$1" --disable-static
	logged "make-$1" make -j "$(nproc)" install
}

# A tree in which a line has no place stays as it is.
test_unknown()
{
	local tree=$DIR/unknown

	cp -r "$SOURCE" "$tree" && : >"$tree/include/ofi_prov.h" || return 1
	"$TOP/packaging/upstream/import.sh" "$tree" 2>/dev/null &&
		{ fail "not refused"; return 1; }
	cmp "$SOURCE/configure.ac" "$tree/configure.ac" && [ ! -e "$tree/prov/mrrc" ]
}

test_modules()
{
	[ -e "$DIR/dl/prefix/lib/libfabric/libmrrc-fi.so" ] &&
		[ ! -e "$DIR/yes/prefix/lib/libfabric/libmrrc-fi.so" ]
}

test_upstream()
{
	make -s -C "$DIR/yes" check >"$DIR/check.log" 2>&1 </dev/null ||
		{ tail -n 20 "$DIR/check.log"; return 1; }
}

# functional FORM ARGUMENT...: of runfabtests.sh; the library finds its modules
test_functional()
{
	LD_LIBRARY_PATH=$DIR/$1/prefix/lib "$TOP/fabtests/scripts/runfabtests.sh" \
		-b "$DIR/ours/fabtests" "${@:2}"
}

case ${1--} in
-h|--help) usage; exit ;;
-*) usage >&2; exit 2 ;;
esac
SOURCE=$(realpath -- "$1")
mkdir -- "$2" || exit 2
DIR=$(realpath -- "$2")
unset FI_PROVIDER FI_PROVIDER_PATH FI_HOOK
tree dl
tree yes
mkdir "$DIR/ours" && cd "$DIR/ours" || exit 2
logged configure-ours "$TOP/configure" --disable-tools \
	--with-libfabric="$DIR/yes/prefix"
IFS=, read -ra names <<<"$FUNCTIONAL,$HOOKED"
logged make-ours make -j "$(nproc)" "${names[@]/#/fabtests/fi_mrrc_}"
run_tests unknown modules upstream "functional dl -t $FUNCTIONAL tcp;ofi_mrrc" \
	"functional yes -t $FUNCTIONAL tcp;ofi_mrrc" \
	"functional dl -H -t $HOOKED tcp" "functional yes -H -t $HOOKED tcp"
