#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_install.sh: what "make install" puts where, what the tools say of
# themselves, and that nothing is left by "make uninstall".  BUILDDIR is
# configured without --enable-installed-tests.

set -u
export LC_ALL=C
TOOLS="fi_mrrc_get fi_mrrc_prof fi_mrrc_serve fi_mrrc_sim fi_mrrc_stat"
readonly TOOLS="$TOOLS fi_mrrc_trace"
passed=0 failed=0

# verdict NAME STATUS
verdict()
{
	if [ "$2" -eq 0 ]; then
		echo "PASS $1"
		passed=$((passed + 1))
	else
		echo "FAIL $1"
		failed=$((failed + 1))
	fi
}

# same WHAT GOT WANTED
same()
{
	[ "$2" = "$3" ] || echo "  $1: $2, not $3"
	[ "$2" = "$3" ]
}

# names DIR: the files there, on one line
names()
{
	find "$1" -maxdepth 1 ! -type d -printf '%f\n' 2>/dev/null | sort |
		paste -sd ' '
}

# of the files under DIR: those that match a pattern
none()
{
	local found

	found=$(find "$1" -name "$2")
	[ -z "$found" ] || echo "  $found"
	[ -z "$found" ]
}

# under DESTDIR: where the build installs
place()
{
	find "$dest" -type d -path "*/$1" | head -n 1
}

# one line, and the hint
wrong_option()
{
	local tool lines

	for tool in $TOOLS; do
		"$bin/$tool" --no-such-option >"$dir/out" 2>"$dir/err"
		same "$tool: status" $? 2 && same "$tool: output" \
			"$(cat "$dir/out")" "" || return 1
		lines=$(wc -l <"$dir/err")
		same "$tool: lines" "$lines" 2 &&
			grep -q "^Try .*--help" "$dir/err" || return 1
	done
}

versions()
{
	local tool want

	want=$(sed -n "s/^PACKAGE_STRING='\\(.*\\)'/\\1/p" "$build/config.log")
	[ -n "$want" ] || return 1
	for tool in $TOOLS; do
		same "$tool" "$("$bin/$tool" --version)" "$want" || return 1
	done
}

# A page for each, found by its name.
pages()
{
	local page

	for page in 1/fi_mrrc_{get,prof,serve,sim,stat,trace} \
		3/fi_cwrite 3/fi_cwtag 7/fi_mrrc \
		7/ofi_mrrc; do
		[ -s "$dest/man/man${page%/*}/${page#*/}.${page%/*}" ] ||
			{ echo "  no ${page#*/}(${page%/*})"; return 1; }
	done
}

# bash and zsh find completions of each tool, which name all of them.
completions()
{
	local bash zsh tool

	bash=$(place bash-completion/completions)
	zsh=$(place zsh/site-functions)
	for tool in $TOOLS; do
		grep -qs "\\b$tool\\b" "$bash/$tool" &&
			grep -qs "^#compdef.* $tool\\b" "$zsh/_fi_mrrc" &&
			continue
		echo "  none of $tool"
		return 1
	done
}

# The manual pages' whole programs, which compile as they are
examples()
{
	local at want file

	at=$(place ofi_mrrc/examples)
	want=$(grep -l '^int main(' "$source"/man/*.md |
		sed 's/.*\/\(.*\)\.[1-9]\.md/\1.c/' | sort | paste -sd ' ')
	same examples "$(names "$at")" "$want" && [ -n "$want" ] || return 1
	for file in "$at"/*.c; do
		"${CC:-cc}" -Wall -Werror -I"$(place include)" -o "$dir/program" \
			"$file" -lfabric || return 1
	done
}

# Not built: where they would be installed.
with_tests()
{
	mkdir "$dir/with" && (cd "$dir/with" &&
		"$source/configure" -q --enable-installed-tests) >/dev/null &&
		make -n -C "$dir/with" install-testsPROGRAMS >"$dir/log" 2>&1 &&
		grep -q "/libexec/ofi_mrrc'" "$dir/log" &&
		grep -q "fi_mrrc_msg" "$dir/log"
}

# The first line says what hinders, be the sources or the build in such a path.
blanks()
{
	local place

	mkdir "$dir/a b" "$dir/c"
	ln -s "$source" "$dir/the source"
	for place in "a b:$source" "c:../the source"; do
		(cd "$dir/${place%%:*}" && "${place#*:}/configure") \
			>"$dir/log" 2>&1 && return 1
		head -n 1 "$dir/log" | grep -q 'path has a blank' ||
			{ head -n 3 "$dir/log"; return 1; }
	done
}

if [ $# -ne 1 ] || [ ! -f "$1/config.status" ]; then
	echo "Usage: ${0##*/} BUILDDIR" >&2
	exit 2
fi
build=$(cd -- "$1" && pwd)
source=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
dest=$dir/dest

# install WHERE: below $dest, as a package is made
install()
{
	make -C "$build" "$1" DESTDIR="$dest" mandir=/man >"$dir/log" 2>&1 ||
		{ cat "$dir/log"; return 1; }
}

install install
verdict "make install" $?
bin=$(place bin)
same bin "$(names "$bin")" "$TOOLS"
verdict "tools alone" $?
none "$dest" '*.la'
verdict "no .la" $?
none "$dest" libexec
verdict "no tests" $?
same provider "$(names "$(place libfabric)")" \
	"libhook_mrrc-fi.so libmrrc-fi.so libmrrc_mpi.so"
verdict "provider and hooking provider" $?
wrong_option
verdict "a wrong option is one line and a hint" $?
versions
verdict "--version" $?
completions
verdict "completions" $?
examples
verdict "examples" $?
[ ! -d "$dest/man" ] || pages
verdict "manual pages" $?
install uninstall && same left "$(find "$dest" ! -type d)" ""
verdict "make uninstall" $?
with_tests
verdict "--enable-installed-tests" $?
blanks
verdict "paths with blanks" $?
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
