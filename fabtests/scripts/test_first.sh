#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_first.sh: a new user's first hour, in a folder that has nothing but
# Debian: the commands of README.md and docs/install.md as they are printed, the
# manual pages' programs, and uninstalling, after which no file is left; as root
# in /usr, and as a user without sudo in a folder of their own.  Each test needs
# those before it.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly DEBIAN=$TOP/fabtests/scripts/trixie.sh

usage()
{
	cat <<-EOT
	Usage: $ME SUITE

	SUITE: bookworm or trixie. Needs root or sudo, and 3 GB in TMPDIR.
	EOT
}

# commands PAGE HEADING: prints the first block of commands below HEADING in PAGE
commands()
{
	awk -v heading="## $2" '
		/^## / { on = $0 == heading }
		on && /^```/ && inside++ { exit }
		inside && !/^```/' "$TOP/$1"
}

# as USER COMMANDS: runs COMMANDS as USER, in USER's home directory of the bare
# Debian
as()
{
	local start=$SECONDS

	"$DEBIAN" --root "$DIR/folder" -C / -- su -l "$1" -c \
		"set -e; export MAKEFLAGS=-j$(nproc); $2" >"$DIR/log" 2>&1 ||
		{ tail -n 40 "$DIR/log"; return 1; }
	echo "  $1: $((SECONDS - start)) s"
}

# The names of all files there, but for those of apt, and of homes.
files()
{
	(cd "$DIR/folder" && find . -xdev \( -path ./var/cache -o -path ./var/lib \
		-o -path ./var/log -o -path ./home -o -path ./root \) -prune \
		-o ! -type d -print) | sort
}

test_debian()
{
	local home

	"$DEBIAN" --bare "$SUITE" "$DIR/folder" >"$DIR/log" 2>&1 || return 1
	# a user answers yes
	echo 'APT::Get::Assume-Yes "true";' \
		>"$DIR/folder/etc/apt/apt.conf.d/90yes"
	as root "useradd -m user" || return 1
	for home in root home/user; do
		mkdir "$DIR/folder/$home/tree"
		tar -C "$TOP" --exclude=./build --exclude=./.git --exclude=./configure \
			-c . | tar -C "$DIR/folder/$home/tree" --no-same-owner -x ||
			return 1
	done
	as root "chown -R user: /home/user"
}

test_packages()
{
	as root "$(commands README.md Install | sed '/[^\\]$/q')" &&
		files >"$DIR/before"
}

test_install()
{
	as root "cd tree; $(commands README.md Install | sed '1,/[^\\]$/d')"
}

# found USER COMMANDS: the provider is found after them
found()
{
	as "$1" "$2
		fi_info -p 'tcp;ofi_mrrc' && fi_mrrc_stat --check" &&
		grep -q '^provider: tcp;ofi_mrrc' "$DIR/log" &&
		grep -q '^ok *provider: ' "$DIR/log"
}

test_found()
{
	found root ""
}

# examples USER COMMANDS FOLDER: each is compiled as its own first lines say.
examples()
{
	# shellcheck disable=SC2016 # expanded there
	as "$1" "$2
		cd \"\$(mktemp -d)\"; cp $3/share/doc/ofi_mrrc/examples/*.c ."'
		for file in *.c; do
			sh -exc "$(sed -n "s/.*: \(cc .*\) \*\/$/\1/p" "$file")"
			[ "$file" = fi_frrwp.c ] || "./${file%.c}"
		done' &&
		[ "$(grep -c '^+ cc ' "$DIR/log")" -ge 5 ]
}

test_examples()
{
	examples root "" /usr
}

test_uninstall()
{
	as root "cd tree/build/release && make uninstall" &&
		files | diff "$DIR/before" -
}

# the heading in docs/install.md for users who cannot write to /usr
readonly FOLDER="Another folder"

test_user_install()
{
	as user "cd tree; autoreconf -fi; mkdir -p build/release; cd build/release
		$(commands docs/install.md "$FOLDER")" &&
		grep -q '^provider: tcp;ofi_mrrc' "$DIR/log"
}

test_user_found()
{
	found user "$(commands docs/install.md "$FOLDER" | grep ^export)"
}

# shellcheck disable=SC2016 # expanded there
test_user_examples()
{
	examples user "$(commands docs/install.md "$FOLDER" | grep ^export)" \
		'$HOME/mrrc'
}

test_user_uninstall()
{
	as user "cd tree/build/release && make uninstall &&
		[ -z \"\$(find ~/mrrc ! -type d -print -exec false {} +)\" ]"
}

[ $# -eq 1 ] || { usage >&2; exit 2; }
SUITE=$1
test_options "tcp;ofi_mrrc"
run_tests debian packages install found examples uninstall user_install \
	user_found user_examples user_uninstall
