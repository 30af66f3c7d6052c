#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# demo.sh: set up and show what ofi_mrrc does, on a bare Debian as root or
# with sudo.
#
# Flow: what is there, and packages -> build below $BUILD -> the programs over
# verbs, on a device of this machine or on Soft-RoCE in a virtual machine; or
# over tcp.  They print lines, which are shown as they come, and summed up at the
# end, also after Ctrl-C.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"
# shellcheck source=util/sh/demo/setup.sh
. "$TOP/util/sh/demo/setup.sh"
# shellcheck source=util/sh/demo/show.sh
. "$TOP/util/sh/demo/show.sh"

readonly PROGRAMS="demo_race demo_save frrwp_bench"
readonly GUEST_LIMIT=7200	# seconds; the programs have limits of progress
readonly RC_NO_GUEST=125

usage()
{
	cat <<-EOT
	Usage: $ME [-y] [--quick] [--tcp-only | --guest]

	Builds ofi_mrrc and answers three questions with measurements: is it
	right, what does it save, what does it cost where it cannot help? Each
	beside the core provider, without a cache and with libfabric's own.
	Runs over verbs on a device of this machine where there is one, else in
	a virtual machine with Soft-RoCE.

	  --quick      fewer writes
	  --guest      in the virtual machine, even if there is a device
	  --tcp-only   over tcp, with neither: the first question needs one
	  -y           do not ask before packages are installed
	  -h, --help   this text

	Builds, logs, results and the picture go to \${OFI_MRRC_BUILD:-build}.
	Ctrl-C ends it with what was measured until then.
	Exit status: 0 all data was right, 1 a program failed or ofi_mrrc sent
	stale data, 2 could not run, or without a cache, 130 Ctrl-C.
	EOT
}

cannot()
{
	warn "$*"
	exit 2
}

heading()
{
	say
	say "== $*"
}

# With what was measured so far.
# shellcheck disable=SC2317 # the traps call it
interrupted()
{
	trap '' INT TERM HUP
	end_child
	[ -z "$SHOWN" ] || wait "$SHOWN"
	[ ! -s "$DATA" ] || summary "interrupted: what was measured until then"
}

# One of the measurements, of which "race" needs two processors and "count" is
# "save" with a clock that counts instructions; also runs in the guest.
# shellcheck disable=SC2317 # called by name
measure()
{
	local what=$1 dir=$2 core=$3 quick=$4 addr=$5 rc=0 turns=9
	local race=(-n 200) save=(-c "$core") to=()

	[ "$quick" = no ] || race=(-n 60) turns=5
	[ -z "$addr" ] || to=(-s "$addr")
	[ "$what" != count ] || save+=(-e)
	save+=(-i "${OFI_MRRC_DEMO_TURNS:-$turns}")
	echo "setup $(setup_line)"
	# else nothing is registered over tcp
	export FI_OFI_MRRC_REGISTER=always
	if [ "$what" = race ]; then
		[ "$core" != verbs ] ||
			"$dir/demo_race" "${race[@]}" "${to[@]}" || rc=1
		"$dir/frrwp_bench" -q -p "$core;ofi_mrrc" "${to[@]}" || rc=1
	else
		"$dir/demo_save" "${save[@]}" "${to[@]}" || rc=1
		"$dir/demo_save" -g "${save[@]}" "${to[@]}" || rc=1
	fi
	return "$rc"
}

# run WHAT TITLE ADDRESS [COMMAND...]: a measurement, run by COMMAND.
run()
{
	local what=$1 title=$2 addr=$3 rc

	shift 3
	# shellcheck disable=SC2016 # for the guest's shell
	stream "$what" "$title" "$@" bash -c \
		"$(declare -f measure setup_line libfabric_version)"'
		measure "$@"' measure "$what" "$BUILD/demo/fabtests/benchmarks" \
		"$CORE" "$QUICK" "$addr"
	rc=$?
	[ $rc -ne $RC_NO_GUEST ] ||
		cannot "the virtual machine did not start (see above)"
	[ $rc -eq 0 ] || RC=1
}

build_demo()
{
	heading "building"
	# shellcheck disable=SC2034,SC2086 # make_build's; a list
	TARGETS="libmrrc-fi.la $(printf 'fabtests/benchmarks/%s ' $PROGRAMS)"
	build demo --disable-tools || cannot "the build failed (see above)"
	export FI_PROVIDER_PATH=$BUILD/demo/.libs
	unset FI_PROVIDER FI_HOOK
}

main()
{
	local addr=

	WHERE=device QUICK=no ASK=yes CORE=verbs RC=0
	while [ $# -gt 0 ]; do
		case $1 in
		--tcp-only) WHERE=tcp CORE=tcp ;;
		--guest) WHERE=guest ;;
		--quick) QUICK=yes ;;
		-y) ASK=no ;;
		-h|--help) usage; exit 0 ;;
		*) warn "no option $1; $ME --help lists them"; exit 2 ;;
		esac
		shift
	done
	[ $WHERE != device ] || has_device || WHERE=guest
	DATA=$BUILD/demo.txt PICTURE=$BUILD/demo.svg
	check_all
	: >"$DATA"
	end_on_signals interrupted
	build_demo
	case $WHERE in
	tcp)
		heading "tcp over loopback, on this machine"
		run race "transfers over tcp" ""
		run save "transfers over tcp" ""
		;;
	device)
		addr=$(device_address)
		[ -n "$addr" ] || cannot "libfabric reaches no device here by" \
			"an IPv4 address (fi_info -p verbs); --guest takes the" \
			"virtual machine"
		heading "verbs over this machine's device, $addr"
		run race "transfers over verbs" "$addr"
		run save "transfers over verbs" "$addr"
		;;
	guest)
		heading "verbs over Soft-RoCE, in a virtual machine"
		run race "transfers over verbs" "" "$GUEST" -t $GUEST_LIMIT --
		say
		say "   Again, with a clock that counts instructions, so that what"
		say "   else runs here changes no time: 1 us is 1,000 instructions."
		say
		run count "transfers over verbs" "" "$GUEST" -i -t $GUEST_LIMIT --
		say
		say "   A software device in an emulated machine: compare the"
		say "   columns with each other, not with hardware."
		;;
	esac
	summary
	[ "$(monitor_used)" != none ] || RC=2
	if [ $RC -eq 0 ]; then
		say "   Took $(minutes $SECONDS)."
	elif [ $RC -eq 1 ]; then
		say "   FAILED: see above."
	fi
	exit $RC
}

main "$@"
