#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# deb.sh: makes the Debian packages of this tree, on Debian 12 or newer.

set -eu
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

usage()
{
	cat <<-EOT
	Usage: ${0##*/} [--needs | RELEASE.tar.xz OUT]

	Unpacks the release (from "make dist"), and makes the packages that
	packaging/debian describes in the folder OUT, with their sources. Tests
	run unless DEB_BUILD_OPTIONS has nocheck. --needs prints the Debian
	packages that this takes.
	EOT
}

case $#${1-} in
1--needs)
	sed -n '/^Build-Depends:/,/^[A-Z]/p' "$TOP/packaging/debian/control" |
		grep -v '^Standards' | sed 's/Build-Depends://; s/([^)]*)//
			s/\[[^]]*\]//; s/<[^>]*>//; s/debhelper-compat/debhelper/' |
		tr ',\n' '  '
	echo build-essential lintian
	exit
	;;
2*) ;;
*) usage >&2; exit 2 ;;
esac

release=$(realpath -- "$1") out=$(realpath -- "$2")
version=${release##*/ofi_mrrc-} version=${version%.tar.xz}
dir=$out/ofi-mrrc-$version
rm -rf "$dir"
mkdir "$dir"
cp "$release" "$out/ofi-mrrc_$version.orig.tar.xz"
tar -xf "$release" -C "$dir" --strip-components=1
cp -r "$TOP/packaging/debian" "$dir/debian"
cd "$dir"
dpkg-buildpackage -us -uc
cd "$out"
# no address and no report of the project is public yet
lintian --allow-root --suppress-tags bogus-mail-host,initial-upload-closes-no-bugs \
	--suppress-tags bogus-mail-host-in-debian-changelog ./*.changes
ls -- "$out"/*.deb
