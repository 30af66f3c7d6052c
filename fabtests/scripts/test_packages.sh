#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_packages.sh: the Debian packages, in folders that have nothing but Debian:
# made, installed, upgraded, used by their own tests (packaging/debian/tests), and
# purged, after which nothing is left.  Each test needs those before it.  Ends with
# "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly DEBIAN=$TOP/fabtests/scripts/trixie.sh
readonly OWN=$TOP/packaging/debian/tests

usage()
{
	cat <<-EOT
	Usage: $ME RELEASE.tar.xz SUITE [DEBS]

	RELEASE: what "make dist" made. SUITE: bookworm or trixie. DEBS: folder
	of the packages, if they are made already. Needs root or sudo, and 3 GB
	in TMPDIR.
	EOT
}

# in_folder NAME COMMAND...: as root, in a folder of Debian
in_folder()
{
	local folder=$DIR/$1

	shift
	"$DEBIAN" --root "$folder" -w "$DIR/share" -C "$DIR/share" -- "$@" \
		>"$DIR/log" 2>&1 || { tail -n 40 "$DIR/log"; return 1; }
}

get()
{
	in_folder "$1" apt-get install -y -q --no-install-recommends "${@:2}"
}

# Names, kinds and permissions of what a package may change: not what apt and dpkg
# remember.
state()
{
	(cd "$DIR/user" && find . -xdev \( -path ./var/cache -o -path ./var/lib/apt \
		-o -path ./var/lib/dpkg -o -path ./var/log -o -path ".$DIR" \) \
		-prune -o -printf '%p %M %l\n') | sort
}

test_debian()
{
	mkdir "$DIR/share" &&
		"$DEBIAN" --bare "$SUITE" "$DIR/build" >"$DIR/log" 2>&1 &&
		cp -a "$DIR/build" "$DIR/user" &&
		# whose packages add groups, and leave them
		get user libfabric1 && state >"$DIR/before"
}

test_build()
{
	if [ -n "$DEBS" ]; then
		cp "$DEBS"/*.deb "$DIR/share"
		return
	fi
	cp "$RELEASE" "$DIR/share" || return 1
	# shellcheck disable=SC2046 # a list
	get build $("$TOP/packaging/deb.sh" --needs) &&
		in_folder build env DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
			"$TOP/packaging/deb.sh" "${RELEASE##*/}" .
}

test_install()
{
	get user "$DIR"/share/*.deb
}

# Installing the file server starts nothing: no directory is named yet.
test_not_started()
{
	! grep -rqs mrrc "$DIR"/user/etc/systemd/system "$DIR"/user/etc/rc?.d
}

# A changed setting is kept.
test_upgrade()
{
	local setting=$DIR/user/etc/default/mrrc-serve

	sed -i 's,^DIR=.*,DIR=/mnt,' "$setting" &&
		get user --reinstall "$DIR"/share/*.deb &&
		grep -q '^DIR=/mnt' "$setting"
}

# own NAME: the packages' own test, with the other packages that it needs
test_own()
{
	local needs

	needs=$(awk -v RS= "/^Tests: $1\n/" "$OWN/control" |
		sed -n 's/^Depends: //p' | tr ',' '\n' | grep -v mrrc | tr '\n' ' ')
	# shellcheck disable=SC2086 # a list
	[ -z "$needs" ] || get user $needs || return 1
	in_folder user env -C "$TOP" "$OWN/$1"
}

test_purge()
{
	in_folder user apt-get purge -y -q libfabric-mrrc libfabric-mrrc-dev \
		mrrc-tools mrrc-serve &&
		in_folder user apt-get autoremove --purge -y -q &&
		state | diff "$DIR/before" -
}

[ $# -eq 2 ] || [ $# -eq 3 ] || set --
RELEASE=$(realpath -e -- "${1-}" 2>/dev/null) || { usage >&2; exit 2; }
SUITE=$2 DEBS=${3-}
test_options "tcp;ofi_mrrc"
run_tests debian build install not_started upgrade purge install \
	"own provider" "own serve" "own mpi"
