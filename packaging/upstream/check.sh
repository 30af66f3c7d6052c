#!/bin/bash
# shellcheck disable=SC2317 # run_tests calls each test by its name
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check.sh: what the patches of this folder do to libfabric's own registration
# cache, before and after. Ends with "N passed, N failed".
#
# Flow: fetch the source -> two trees, one with the patches -> build both ->
# cache_bench.c on this machine -> the patches' own fabtest over both, on
# Soft-RoCE in the virtual machine -> tests of what these printed.

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../fabtests/scripts/testlib.sh"
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
readonly GUEST=$HERE/../../fabtests/scripts/guest.sh
readonly PACKAGES="autoconf automake dpkg-dev gcc libc6-dev libibverbs-dev
	librdmacm-dev libtool make patch xz-utils"
readonly KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
readonly LINES_MAX=500
# For the linker: fabtests and the static libfabric define the same tables.
readonly TWICE=-Wl,-z,muldefs
# seconds after which a run of cache_bench is said to hang; it takes one or two
readonly HANGS=60
readonly WRITES=1000

usage()
{
	cat <<-EOT
	Usage: $ME [-s SOURCE] DIR
	       $ME --packages

	Works in the folder DIR, which keeps sources and builds. SOURCE is a
	source tree of libfabric; by default Debian 13's is fetched by apt.
	--packages prints the Debian packages that it takes, besides those of
	guest.sh.
	EOT
}

cannot()
{
	echo "$ME: $*" >&2
	exit 2
}

# logged NAME COMMAND...: its output in DIR/NAME.log
logged()
{
	local name=$1

	shift
	"$@" >"$DIR/$name.log" 2>&1 </dev/null ||
		{ tail -n 20 "$DIR/$name.log"; cannot "$name failed"; }
}

# ---- sources -------------------------------------------------------------

# Debian 13's, by an apt that knows nothing else. The upstream archive suffices:
# the packaging changes nothing that is built here.
fetch()
{
	local apt=$DIR/apt mirror

	# shellcheck disable=SC2016 # apt's variables
	mirror=$(apt-get indextargets "Created-By: Packages" \
		--format '$(ORIGIN) $(REPO_URI)' | sed -n '/^Debian /{s///p;q}')
	[ -n "$mirror" ] || cannot "apt knows no mirror of Debian"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb-src [signed-by=$KEYS] $mirror trixie main" >"$apt/sources.list"
	cd "$apt" || exit 2
	set -- -o "Dir::Etc::sourcelist=$apt/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$apt/lists" \
		-o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
	logged apt-update apt-get "$@" update
	logged apt-source apt-get "$@" source --tar-only --download-only libfabric
	mkdir "$DIR/old"
	tar -xf "$apt"/libfabric_*.orig.tar.* -C "$DIR/old" --strip-components=1
}

# patched FILE...: applies them, without any fuzz
patched()
{
	local file

	for file in "$@"; do
		patch -d "$DIR/part" -p1 -F0 -s <"$file" ||
			cannot "${file##*/} does not apply"
	done
}

trees()
{
	[ ! -d "$DIR/new" ] || return 0
	rm -rf "$DIR/old"
	if [ -n "$SOURCE" ]; then
		cp -r "$SOURCE" "$DIR/old"
	else
		fetch
	fi
	cd "$DIR/old" || exit 2
	logged autogen ./autogen.sh
	rm -rf "$DIR/part"
	cp -r "$DIR/old" "$DIR/part"
	# what upstream has done since 2.1 to the same lines
	grep -q ofi_rbmap_insert_at "$DIR/part/include/ofi_tree.h" ||
		patched "$HERE"/backports/*.patch
	patched "$HERE"/patches/000[1-9]-*.patch
	cd "$DIR/part/fabtests" || exit 2
	logged autogen-fabtests ./autogen.sh
	mv "$DIR/part" "$DIR/new"
}

# ---- builds --------------------------------------------------------------

# libs TREE: what its static library needs, and it
libs()
{
	echo "$DIR/$1/src/.libs/libfabric.a $(sed -n \
		"s/^dependency_libs='\(.*\)'/\1/p" \
		"$DIR/$1/src/libfabric.la") -pthread"
}

build()
{
	local tree=$1

	cd "$DIR/$tree" || exit 2
	[ -f config.h ] || logged "configure-$tree" ./configure --enable-only \
		--enable-verbs --enable-tcp --enable-rxm --disable-shared \
		--enable-static CFLAGS="-O2 -g -Wall"
	logged "make-$tree" make -j "$(nproc)" src/libfabric.la
	# shellcheck disable=SC2046 # libraries
	logged "bench-$tree" gcc -O2 -Wall -D_GNU_SOURCE -I. -Iinclude \
		-o cache_bench "$HERE/cache_bench.c" $(libs "$tree")
}

# The patches' own test, over both libraries.
build_fabtest()
{
	local tree

	# without the headers that both have
	mkdir -p "$DIR/include"
	ln -sfn "$DIR/new/include/rdma" "$DIR/include/rdma"
	cd "$DIR/new/fabtests" || exit 2
	[ -f config.h ] || logged configure-fabtests ./configure \
		CPPFLAGS="-I$DIR/include" CFLAGS="-O2 -g -Wall" \
		LDFLAGS="-L$DIR/new/src/.libs $TWICE" LIBS="$(libs new)"
	logged make-fabtests make functional/fi_mr_cache_stale
	for tree in old new; do
		# shellcheck disable=SC2046 # libraries
		logged "fabtest-$tree" gcc $TWICE -o "$DIR/$tree/fi_mr_cache_stale" \
			functional/mr_cache_stale.o .libs/libfabtests.a \
			$(libs "$tree") -ldl -lm
	done
}

# ---- runs ----------------------------------------------------------------

# bench TREE NAME [VARIABLE=VALUE]... -- [ARGUMENT]: its output in TREE-NAME
bench()
{
	local tree=$1 out=$DIR/$1-$2 set=()

	shift 2
	while [ "$1" != -- ]; do
		set+=("$1")
		shift
	done
	shift
	env "FI_MR_CACHE_MONITOR=userfaultfd" "${set[@]}" timeout -k 5 \
		$HANGS "$DIR/$tree/cache_bench" "$@" >"$out" 2>&1
}

runs()
{
	local tree

	for tree in old new; do
		bench $tree uffd --
		bench $tree writes -- writes
		bench $tree reads -- reads
	done
	bench new uffd-off FI_MR_CACHE_UFFD_SYNC=0 --
	bench new writes-off FI_MR_CACHE_UFFD_SYNC=0 -- writes
	bench new reads-off FI_MR_CACHE_UFFD_SYNC=0 -- reads
	cat >"$DIR/guest.sh" <<-EOT
	for run in old-memhooks old-userfaultfd new-userfaultfd; do
		FI_MR_CACHE_MONITOR=\${run#*-} timeout -s KILL 120 \\
			$DIR/\${run%-*}/fi_mr_cache_stale -p 'verbs;ofi_rxm' \\
			-s 10.0.0.1 -I $WRITES >$DIR/fabtest-\$run.out 2>&1
	done
	EOT
	"$GUEST" -t 600 -w "$DIR" -- bash "$DIR/guest.sh"
}

show()
{
	local file

	for file in "$DIR"/{old,new}-uffd "$DIR"/new-uffd-off "$DIR"/fabtest-*.out; do
		sed "s/^/   ${file##*/}: /" "$file"
	done
}

# ---- tests ---------------------------------------------------------------

test_size()
{
	local lines

	lines=$(cat "$HERE"/patches/000[1-9]-*.patch |
		grep -cE '^(\+($|[^+])|-($|[^-]))')
	echo "  $lines lines"
	[ "$lines" -le $LINES_MAX ] || fail "more than $LINES_MAX lines"
}

# Upstream's rules for commits.
test_signed()
{
	local file

	for file in "$HERE"/patches/000[1-9]-*.patch; do
		if ! grep -q '^Signed-off-by: ' "$file" ||
			! grep -qE '^Subject: \[PATCH .*\] (prov/util|fabtests): ' \
				"$file"; then
			fail "${file##*/}"
			return 1
		fi
	done
}

test_no_warnings()
{
	! grep -E '(uffd_mem_monitor|util_mr_cache|util_mem_monitor|mr_cache_stale)\.c:.*warning' \
		"$DIR"/make-new.log "$DIR"/make-fabtests.log
}

# stale FILE WAY: prints how many lookups or writes were stale in the output FILE
stale()
{
	awk -v way="$2" '$1 == "stale" && $2 == way { print $3 }
		$1 == way ":" && $NF == "stale" { print $2 }' "$DIR/$1"
}

# The unpatched cache has stale hits; else the next test would prove nothing.
test_stale_before()
{
	# those of moved pages are seen in most runs
	[ "$(stale old-uffd unmapped)" -gt 0 ]
}

test_stale()
{
	[ "$(stale new-uffd unmapped)" = 0 ] && [ "$(stale new-uffd moved)" = 0 ]
}

test_hits()
{
	[ "$(grep -c '^hit .* [0-9]' "$DIR/new-uffd")" -eq 3 ]
}

test_hangs_before()
{
	! grep -q ^faults "$DIR/old-writes" "$DIR/old-reads"
}

test_hangs()
{
	local run

	for run in writes reads writes-off reads-off; do
		grep -q ^faults "$DIR/new-$run" || { fail "$run"; return 1; }
	done
}

test_fabtest_memhooks_before()
{
	[ "$(stale fabtest-old-memhooks.out mremap)" -gt 0 ]
}

test_fabtest_uffd_before()
{
	local out=fabtest-old-userfaultfd.out

	# a race: the machine's load decides which of the two is stale
	[ $(($(stale $out munmap) + $(stale $out mmap))) -gt 0 ]
}

test_fabtest()
{
	local way

	for way in mremap munmap mmap; do
		[ "$(stale fabtest-new-userfaultfd.out $way)" = 0 ] ||
			{ fail "$way"; return 1; }
	done
}

SOURCE=
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help) usage; exit ;;
	--packages) echo "${PACKAGES//[$'\n\t']/ }"; exit ;;
	-s) SOURCE=$(realpath -- "${2:?}"); shift ;;
	-*) usage >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
[ $# -eq 1 ] || { usage >&2; exit 2; }
mkdir -p "$1" || exit 2
DIR=$(realpath -- "$1")
unset FI_PROVIDER FI_HOOK "${!FI_MR_@}"
trees
build old
build new
build_fabtest
rm -f "$DIR"/{old,new}-* "$DIR"/fabtest-*.out
runs
show
run_tests size signed no_warnings stale_before stale hits hangs_before hangs \
	fabtest_memhooks_before fabtest_uffd_before fabtest
