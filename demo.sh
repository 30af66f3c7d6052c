#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# demo.sh: set up and show what ofi_mrrc does, on a bare Debian as root or
# with sudo.
#
# Flow: packages -> build and install below $BUILD -> fi_mrrc_compare over tcp
# here, then over verbs in a virtual machine with Soft-RoCE.  That program
# makes the same transfers from plain buffers in three ways, and checks the
# data; the tables are its own.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [--tcp-only] [--quick]

	Builds ofi_mrrc and compares RMA and message transfers from plain
	buffers: registered by the application each time, by the core
	provider's own cache, and by ofi_mrrc. First over tcp, then over verbs
	in a virtual machine with Soft-RoCE.

	  --tcp-only   without the virtual machine: less than two minutes
	               once packages are installed
	  --quick      fewer transfers

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 all data was right, 1 a transfer failed, 2 could not run.
	EOT
}

cannot()
{
	warn "$*"
	exit 2
}

# heading TEXT...: the set-up that the next table is of.
heading()
{
	say
	say "== $*"
}

explain()
{
	cat <<-EOT
	   The same transfers from 16 plain buffers, used again and again, over
	     register-each  the core provider; the application registers each
	                    buffer for each transfer
	     core-cache     the same, and the core's own cache keeps the
	                    registrations (tcp has none)
	     ofi_mrrc       ofi_mrrc on the core provider; the application
	                    registers nothing
	   Medians of rounds that alternate. "vs each" and "vs cache" say how
	   many times better ofi_mrrc is: above 1 is better.
	EOT
}

# The two tables of one core provider; also runs in the guest.
# shellcheck disable=SC2317 # called by name
compare()
{
	local core=$1 op rc=0

	shift
	echo "   $(setup_line)"
	echo
	for op in write send; do
		fi_mrrc_compare -c "$core" -o "$op" "$@" || rc=1
		echo
	done
	return "$rc"
}

over_tcp()
{
	local log=$LOGS/demo-tcp.log

	heading "tcp over loopback, on this machine"
	logged "transfers over tcp" "$log" compare tcp "${OPTIONS[@]}" || {
		RC=1
		return
	}
	say
	cat "$log"
	say "   tcp needs no registration: it was forced, to show the cache at"
	say "   work where there is no device. Registering costs nothing over tcp:"
	say "   what is below 1 is what ofi_mrrc costs."
}

over_verbs()
{
	local log=$LOGS/demo-verbs.log rc

	heading "verbs over Soft-RoCE, in a virtual machine"
	need_guest || cannot "the virtual machine cannot be set up (see above);" \
		"--tcp-only does without"
	# shellcheck disable=SC2016 # for the guest's shell
	logged "transfers over verbs" "$log" "$GUEST" -t 1200 -- bash -c "
		$(declare -f libfabric_version setup_line compare)"'
		compare verbs "$@"' compare "${OPTIONS[@]}"
	rc=$?
	[ $rc -ne 125 ] || cannot "the virtual machine did not start"
	[ $rc -eq 0 ] || {
		RC=1
		return
	}
	say
	grep -v '^guest: ' "$log"
	say "   This is a software device in an emulated machine: compare the"
	say "   columns with each other, not with hardware."
}

main()
{
	local tcp_only=no

	OPTIONS=()
	RC=0
	while [ $# -gt 0 ]; do
		case $1 in
		--tcp-only) tcp_only=yes ;;
		--quick) OPTIONS=(-i 3 -l '64,64K,1M') ;;
		-h|--help) usage; exit 0 ;;
		*) warn "no option $1"; usage >&2; exit 2 ;;
		esac
		shift
	done
	need "$BUILD_PACKAGES" || exit 2
	say "== building"
	build_installed demo || cannot "the build failed"
	use_provider demo || exit 2
	command -v fi_mrrc_compare >/dev/null ||
		cannot "no fi_mrrc_compare was installed"
	heading "what is compared"
	explain

	over_tcp
	[ $tcp_only = yes ] || over_verbs
	say
	if [ $RC -eq 0 ]; then
		say "All data was right. Took $(minutes $SECONDS)."
	else
		say "FAILED: see above."
	fi
	exit $RC
}

main "$@"
