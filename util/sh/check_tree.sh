#!/bin/bash
# shellcheck disable=SC2317 # main() calls each check by its name
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_tree.sh: what the sources alone show, in seconds: lists of files,
# mutations whose lines have moved, folders, man pages, layout, scripts.  Part
# of make check, and what test.sh runs before it builds anything.  Ends with
# "N passed, N failed, N skipped".

set -u
export LC_ALL=C
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$TOP" || exit 2
export srcdir=.
readonly SKIP=77

# Sources of these names, without builds.
sources()
{
	local names=()

	while [ $# -gt 0 ]; do
		names+=(-name "$1" ${2+-o})
		shift
	done
	find . \( -name 'build*' -o -name _build -o -name .git -o -name config -o -name m4 -o \
		-name 'ofi_mrrc-*' -o -name config.h \) -prune -o \
		\( "${names[@]}" \) -print
}

# The words of all Makefile fragments.
listed()
{
	sources Makefile.am Makefile.include | xargs cat | tr -s '[:blank:]\134' '\n' |
		sort -u
}

# Each file is listed, or its folder is, so that a release has it.
check_listed()
{
	[ -e .git ] || return "$SKIP"
	git ls-files | awk '
		NR == FNR { listed[$0]; next }
		/^\.git|(^|\/)Makefile\.(am|include)$|^configure\.ac$|\.in$/ { next }
		{
			for (path = $0; path != ""; sub(/\/?[^\/]*$/, "", path))
				if (path in listed)
					next
			print $0 ": not in any Makefile.include"
			bad = 1
		}
		END { exit bad }' <(listed) -
}

# Each source that is listed exists; examples are made from manual pages.
check_exist()
{
	local file missing=0

	while read -r file; do
		[ -e "$file" ] || {
			echo "$file is listed, and missing"
			missing=1
		}
	done < <(listed | grep -v '^man/examples/' |
		grep -E '^(fabtests|include|man|prov|util)/.*\.(c|h|cc|hpp|sh|md)$')
	return "$missing"
}

check_mutations()
{
	fabtests/scripts/mutate.sh -c
}

# Without objects it looks at includes only.
check_folders()
{
	prov/mrrc/folders.sh "$NOTHING"
}

check_headers()
{
	prov/mrrc/headers.sh
}

check_parameters()
{
	man/check_params.sh
}

# glibc 2.38 gave these new versions: a provider that uses them does not load where
# glibc is older, and says nothing (prov/mrrc/sys, vm.c).
check_libc()
{
	! grep -rnE '\<(v?[fs]?scanf|strto[uil]|ato[il])[a-z]*\(' prov/mrrc/{core,sys,fi} \
		--include='*.[ch]' | grep -vE '(\*|//) .*(scanf|strto|ato)'
}

# The version is configure.ac's wherever it is stated; the public header has its first
# two numbers.
check_versions()
{
	local version header file text bad=0

	version=$(sed -n 's/^AC_INIT(\[ofi_mrrc\], \[\(.*\)\])$/\1/p' configure.ac)
	header=${version%.*}
	while IFS=: read -r file text; do
		grep -qF -- "$text" "$file" || {
			echo "$file: no $text"
			bad=1
		}
	done <<-EOT
	NEWS.md:## $version
	docs/install.md:ofi_mrrc-$version.tar.xz
	include/rdma/fi_ext_mrrc.h:FI_MRRC_VERSION FI_VERSION(${header/./, })
	packaging/conda/recipe.yaml:version: "$version"
	packaging/debian/changelog:ofi-mrrc ($version-
	packaging/rpm/libfabric-mrrc.spec:Version:        $version
	packaging/spack/package.py:version("$version"
	packaging/spack/package.py:/ofi_mrrc-$version.tar.xz
	EOT
	return "$bad"
}

# Those of each room are counted: growth is decided in the commit that makes it.
check_lines()
{
	[ -e .git ] && git ls-files >/dev/null 2>&1 || return "$SKIP"
	util/sh/lines.sh
}

# Other versions of clang-format would lay out some lines differently.
check_layout()
{
	local version

	version=$(sed -n '1s/^# //p' .clang-format)
	version=${version##* }
	clang-format --version 2>/dev/null | grep -q "version $version\." ||
		return "$SKIP"
	sources '*.c' '*.h' '*.cc' '*.hpp' | xargs -P 2 -n 100 \
		clang-format --dry-run -Werror --style=file
}

check_scripts()
{
	command -v shellcheck >/dev/null || return "$SKIP"
	{ sources '*.sh'; ls .ci/run; } | xargs -P 2 -n 20 shellcheck -x -P .
}

main()
{
	local name passed=0 failed=0 skipped=0

	NOTHING=$(mktemp -d) || exit 2
	trap 'rm -rf "$NOTHING"' EXIT
	for name in listed exist mutations folders headers libc parameters versions \
		lines layout scripts; do
		check_$name >"$NOTHING/log" 2>&1
		case $? in
		0) passed=$((passed + 1)) ;;
		"$SKIP") skipped=$((skipped + 1)) ;;
		*)
			failed=$((failed + 1))
			echo "FAIL: $name"
			sed 's/^/  | /' "$NOTHING/log"
			;;
		esac
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ]
}

main "$@"; exit
