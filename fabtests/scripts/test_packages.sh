#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_packages.sh: the Debian packages, in folders that have nothing but Debian:
# made, installed, upgraded, used by their own tests (packaging/debian/tests), and
# purged, after which nothing is left.  The same for packaging/rpm, as far as that
# goes on Debian.  Each test needs those before it.  Ends with "N passed, N failed".

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

# Debian's rpm has no macros of systemd; Debian has the needed libraries, but rpm
# does not know them. rpmlint may say what is so in this build alone: what
# Fedora's rpm does after %install, the project's address, a signature.
test_rpm_build()
{
	local macro macros=(-D "_topdir $DIR/share/rpm"
		-D "_unitdir /usr/lib/systemd/system" -D "debug_package %nil")
	local known='no-(url-tag|signature|packager-tag|buildroot-tag)
		|invalid-(url|license)|unstripped-binary|manpage-not-compressed
		|no-manual-page-for-binary|outside-libdir-files .*/licenses/
		|spelling-error|incorrect-fsf-address
		|requires-on-release|one-line-command-in-%|files-duplicate .*/man3/'

	for macro in post preun postun_with_restart; do
		macros+=(-D "systemd_$macro() :")
	done
	cp "$RELEASE" "$DIR/share" || return 1
	# shellcheck disable=SC2046 # a list
	get build $("$TOP/packaging/deb.sh" --needs) rpm rpmlint &&
		in_folder build rpmbuild -tb --nodeps --without check \
			"${macros[@]}" "${RELEASE##*/}" || return 1
	in_folder build sh -c "rpmlint rpm/RPMS/*/*.rpm >rpmlint; cat rpmlint" &&
		grep -q '^ 4 packages' "$DIR/share/rpmlint" &&
		! grep -E ': [EW]: ' "$DIR/share/rpmlint" |
			grep -Ev "${known//[$'\n\t']}"
}

# The folders that Fedora's own packages have are there before.  In a chroot
# a plugin of rpm 4.20 fails, which keeps scriptlets apart.
test_rpm()
{
	local needs deb

	# with the libraries that Debian's packages need
	needs=$(for deb in "$DIR"/share/*.deb; do dpkg-deb -f "$deb" Depends; done |
		tr ',' '\n' | sed 's/ *(.*//' | grep -v mrrc | sort -u)
	# shellcheck disable=SC2086 # a list
	get user rpm libfabric-bin $needs || return 1
	mkdir -p "$DIR"/user/etc/sysconfig "$DIR"/user/usr/{include/rdma,lib64/pkgconfig} \
		"$DIR"/user/usr/{lib/systemd/system,share/licenses,share/man/man{1,3,7}}
	state >"$DIR/rpm_before"
	in_folder user sh -c "rpm -i --noplugins --dbpath $DIR/share/db --nodeps rpm/RPMS/*/*.rpm" &&
		in_folder user env FI_PROVIDER_PATH=/usr/lib64/libfabric \
			fi_info -p "tcp;ofi_mrrc" &&
		in_folder user fi_mrrc_stat --version &&
		in_folder user rpm -e --noplugins --dbpath "$DIR/share/db" \
			libfabric-mrrc libfabric-mrrc-devel \
			mrrc-tools mrrc-serve &&
		state | diff "$DIR/rpm_before" - &&
		in_folder user apt-get autoremove --purge -y -q rpm
}

[ $# -eq 2 ] || [ $# -eq 3 ] || set --
RELEASE=$(realpath -e -- "${1-}" 2>/dev/null) || { usage >&2; exit 2; }
SUITE=$2 DEBS=${3-}
test_options "tcp;ofi_mrrc"
run_tests debian build install not_started upgrade purge rpm_build rpm install \
	"own provider" "own serve" "own mpi"
