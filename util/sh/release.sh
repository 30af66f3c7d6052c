#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# release.sh: makes the release whose version configure.ac has, and prints the
# commands that are left to a maintainer. Writes to DIR alone.
#
# Flow: all is committed, and final -> the archive, built and tested out of it.

set -eu
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

refuse()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

case ${1--} in
-h|--help) echo "Usage: ${0##*/} DIR, a new folder for the build and the release"; exit ;;
-*) echo "Usage: ${0##*/} DIR" >&2; exit 2 ;;
esac
DIR=$(realpath -m -- "$1")
[ ! -e "$DIR" ] || refuse "$DIR exists"
cd "$TOP"
version=$(sed -n 's/^AC_INIT(\[ofi_mrrc\], \[\(.*\)\])$/\1/p' configure.ac)
release=ofi_mrrc-$version.tar.xz
[ -z "$(git status --porcelain)" ] || refuse "not all is committed"
[ -z "$(git tag -l "v$version")" ] || refuse "the tag v$version exists: raise configure.ac's version"
heading=$(grep -m 1 '^## ' NEWS.md)
[[ $heading =~ ^"## $version, "20[0-9]{2}-[0-9]{2}-[0-9]{2}$ ]] ||
	refuse "NEWS.md begins with \"$heading\", not with \"## $version, YYYY-MM-DD\""
[[ $(head -n 1 packaging/debian/changelog) == "ofi-mrrc ($version-1) unstable;"* ]] ||
	refuse "packaging/debian/changelog does not begin with $version-1 for unstable"
# It also compares the version that other files state with configure.ac.
util/sh/check_tree.sh

mkdir -p "$DIR"
git archive --prefix=tree/ HEAD | tar -x -C "$DIR"
cd "$DIR/tree"
autoreconf -fi
mkdir build
cd build
../configure
make -j "$(nproc)" distcheck
mv "$release" "$DIR"
cd "$DIR"
sha256sum "$release" | tee "$release.sha256"
cat <<EOT
If ./test.sh --all has passed on $(git -C "$TOP" rev-parse --short HEAD):
  git tag -s -m "ofi_mrrc $version" v$version
  git push origin v$version
Publish $release and its .sha256. Then raise the
version in configure.ac; check_tree.sh names the other files that have it.
EOT
