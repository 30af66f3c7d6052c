#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# demo.sh: set up and show what ofi_mrrc does, on a bare Debian as root or
# with sudo.
#
# Flow: packages -> build and install below $BUILD -> fi_mrrc_compare over tcp
# here, then over verbs in a virtual machine with Soft-RoCE.  That program
# makes the same transfers from plain malloc'd buffers in three ways and
# checks the data of each; the tables are its own.

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
	Exit status: 0 all data was right, 1 not, 2 could not run.
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

over_tcp()
{
	heading "tcp over loopback, on this machine"
	say "   $(setup_line)"
	say "   tcp asks for no registration: it is forced here, to show the"
	say "   cache at work. What counts is below, over verbs."
	say
	FI_OFI_MRRC_REGISTER=always timeout 100 \
		"$COMPARE" "${QUICK[@]}" -c tcp || RC=1
}

over_verbs()
{
	local log=$LOGS/demo-verbs.log rc

	heading "verbs over Soft-RoCE, in a virtual machine without hardware" \
		"acceleration"
	need_guest || cannot "the virtual machine cannot be set up (see above);" \
		"--tcp-only does without"
	logged "verbs in the guest" "$log" "$GUEST" -t 900 \
		-e FI_PROVIDER_PATH="$FI_PROVIDER_PATH" -- \
		bash -c "$(declare -f setup_line libfabric_version)
			echo \"Set-up: \$(setup_line), emulated\"
			exec \"\$@\"" compare \
		"$COMPARE" "${QUICK[@]}" -c verbs
	rc=$?
	[ $rc -ne 125 ] || cannot "the virtual machine did not start"
	[ $rc -eq 0 ] || RC=1
	say "   software RDMA under software emulation: compare the ways with"
	say "   each other, not with hardware"
	say
	grep -v '^guest: ' "$log"
}

main()
{
	local tcp_only=no

	QUICK=()
	RC=0
	while [ $# -gt 0 ]; do
		case $1 in
		--tcp-only) tcp_only=yes ;;
		--quick) QUICK=(-q) ;;
		-h|--help) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
		shift
	done
	need "$BUILD_PACKAGES" || exit 2
	say "== building"
	build_installed demo || cannot "the build failed"
	use_provider demo || exit 2
	COMPARE=$BUILD/demo/prefix/bin/fi_mrrc_compare
	[ -x "$COMPARE" ] || cannot "no fi_mrrc_compare was installed"

	over_tcp
	[ $tcp_only = yes ] || over_verbs
	say
	if [ $RC -eq 0 ]; then
		say "All transfers verified. Took $(minutes $SECONDS)."
	else
		say "Some transfers went WRONG: see above."
	fi
	exit $RC
}

main "$@"
