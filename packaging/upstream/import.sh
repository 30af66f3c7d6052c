#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# import.sh: puts the provider into a source tree of libfabric, as prov/mrrc,
# in the way of its other providers.
#
# Flow: sources -> configure.m4 and Makefile.include, whose lists are those of
# prov/mrrc/Makefile.include -> one line each in what libfabric lists by hand.

set -eu
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
ME=${0##*/}

usage()
{
	cat <<-EOT
	Usage: $ME DIR

	DIR is a source tree of libfabric, 1.17 or newer. Afterwards run its
	autogen.sh, and configure with --enable-mrrc=dl for modules, or with
	--enable-mrrc. Besides what libfabric takes it needs libbsd's headers.
	EOT
}

# All sources of the provider, in libfabric's tree, but for fi/abi.c: a module needs
# it to find the versions of libfabric's calls.
files()
{
	grep -oE 'prov/mrrc/(core|sys|fi)/[^ ]*\.[ch]' \
		"$TOP/prov/mrrc/Makefile.include" |
		grep -vE '/(without|abi)\.c$' | sort -u | sed 's,^,\t,; $!s,$, \\,'
}

# has PATTERN LINE FILE: a line of the file matches
has()
{
	grep -q "$1" "$3" || { echo "$ME: $3 has no $1" >&2; exit 1; }
}

# after PATTERN LINE FILE: adds the line after the first that matches
after()
{
	sed -i "0,/$1/s//&\n$2/" "$3"
}

# each_line COMMAND: runs COMMAND PATTERN LINE FILE for each LINE that is to be added
# to a FILE of libfabric, behind the line that matches PATTERN
each_line()
{
	"$1" '^FI_PROVIDER_SETUP(\[rxm\])' 'FI_PROVIDER_SETUP([mrrc])' "$DIR/configure.ac"
	"$1" '^include prov\/rxm\/Makefile.include' 'include prov\/mrrc\/Makefile.include' \
		"$DIR/Makefile.am"
	"$1" '^	ofi_register_provider(RXM_INIT, NULL);' \
		'	ofi_register_provider(MRRC_INIT, NULL);\
	ofi_register_provider(HOOK_MRRC_INIT, NULL);' "$DIR/src/fabric.c"
	"$1" '^#include <rdma\/providers\/fi_prov.h>' '\
#if (HAVE_MRRC) \&\& !(HAVE_MRRC_DL)\
struct fi_provider *fi_mrrc_ini(void);\
struct fi_provider *mrrc_hook_ini(void);\
#  define MRRC_INIT fi_mrrc_ini()\
#  define HOOK_MRRC_INIT mrrc_hook_ini()\
#else\
#  define MRRC_INIT NULL\
#  define HOOK_MRRC_INIT NULL\
#endif' "$DIR/include/ofi_prov.h"
}

case ${1--} in
-h|--help) usage; exit ;;
-*) usage >&2; exit 2 ;;
esac
DIR=$(realpath -- "$1")
prov=$DIR/prov/mrrc
[ -f "$DIR/include/ofi_prov.h" ] || { echo "$ME: no libfabric in $DIR" >&2; exit 1; }
[ ! -e "$prov" ] || { echo "$ME: $prov exists" >&2; exit 1; }
each_line has

mkdir -p "$prov"
cp -r "$TOP"/prov/mrrc/{core,sys,fi,hook,README.md} "$prov"
rm -f "$prov"/*/*.sh
cp "$TOP/include/rdma/fi_ext_mrrc.h" "$DIR/include/rdma"
cp "$TOP"/man/fi_mrrc*.7.md "$DIR/man"

cat >"$prov/configure.m4" <<'EOT'
dnl Configury specific to the libfabric mrrc provider

dnl Called to configure this provider
dnl
dnl Arguments:
dnl
dnl $1: action if configured successfully
dnl $2: action if not configured successfully
dnl
AC_DEFUN([FI_MRRC_CONFIGURE],[
	mrrc_happy=0
	mrrc_CPPFLAGS=
	mrrc_LIBS=
	AS_IF([test x"$enable_mrrc" != x"no"],
	      [mrrc_happy=1
	       AC_CHECK_HEADERS([bsd/sys/tree.h linux/userfaultfd.h], [],
				[mrrc_happy=0])
	       AC_CHECK_HEADER([Zydis/Zydis.h],
		[AC_CHECK_LIB([Zydis], [ZydisDecoderDecodeFull],
			[mrrc_CPPFLAGS=-DHAVE_ZYDIS=1
			 mrrc_LIBS=-lZydis])])])
	AC_SUBST([mrrc_CPPFLAGS])
	AC_SUBST([mrrc_LIBS])
	AS_IF([test $mrrc_happy -eq 1], [$1], [$2])
])
EOT

cat >"$prov/built_in.c" <<'EOT'
/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* In place of fi/abi.c: the linker finds libfabric's calls. */
#include "config.h"
#include "fi/abi.h"

bool mrrc_abi_bind(void)
{
	return true;
}
EOT

cat >"$prov/Makefile.include" <<EOT
if HAVE_MRRC
_mrrc_files = \\
$(files)

_mrrc_cppflags = \$(AM_CPPFLAGS) -I\$(top_srcdir)/prov/mrrc -D_GNU_SOURCE \\
	-DMRRC_LEFT_OUT='" "' \$(mrrc_CPPFLAGS)
_mrrc_cflags = \$(AM_CFLAGS) -std=gnu11 -fvisibility=hidden

rdmainclude_HEADERS += include/rdma/fi_ext_mrrc.h

if HAVE_MRRC_DL
pkglib_LTLIBRARIES += libmrrc-fi.la libhook_mrrc-fi.la
libmrrc_fi_la_SOURCES = \$(_mrrc_files) prov/mrrc/fi/abi.c
libmrrc_fi_la_CPPFLAGS = \$(_mrrc_cppflags)
libmrrc_fi_la_CFLAGS = \$(_mrrc_cflags)
libmrrc_fi_la_LIBADD = \$(linkback) \$(mrrc_LIBS)
# the handler thread and fork handlers outlive a dlclose()
libmrrc_fi_la_LDFLAGS = -module -avoid-version -shared -export-dynamic \\
	-Wl,-z,nodelete
libmrrc_fi_la_DEPENDENCIES = \$(linkback)

# as in the provider's own Makefile.include
libhook_mrrc_fi_la_SOURCES = prov/mrrc/hook/hook_ini.c
libhook_mrrc_fi_la_CPPFLAGS = \$(_mrrc_cppflags)
libhook_mrrc_fi_la_DEPENDENCIES = libmrrc-fi.la
libhook_mrrc_fi_la_LDFLAGS = -module -avoid-version -shared -export-dynamic \\
	-Wl,-z,nodelete -Wl,-rpath,'\$\$ORIGIN' \\
	-Wl,--no-as-needed,.libs/libmrrc-fi.so
else
noinst_LTLIBRARIES += libmrrc.la
libmrrc_la_SOURCES = \$(_mrrc_files) prov/mrrc/built_in.c
libmrrc_la_CPPFLAGS = \$(_mrrc_cppflags) -Dfi_prov_ini=fi_mrrc_ini
libmrrc_la_CFLAGS = \$(_mrrc_cflags)
src_libfabric_la_LIBADD += libmrrc.la \$(mrrc_LIBS)
src_libfabric_la_DEPENDENCIES += libmrrc.la
endif

prov_dist_man_pages += man/fi_mrrc.7.md

endif HAVE_MRRC
EOT

each_line after
