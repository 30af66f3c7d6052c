#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# upstream.sh: run upstream's own fabtests over our stack and compare with
# what the core provider passes alone.  Nothing of upstream is copied: its
# installed runfabtests.sh, fi_ubertest and test_configs are used in place.
# The parts are in upstream/: names, side (core or stack), suite, ubertest,
# compare.
#
# Flow: the script starts itself again in a private process (and network)
# namespace, as runfabtests.sh ends with kill -9 on every fi_* process ->
# catalogue (runfabtests.sh with everything excluded) -> run -> list, one line
# a test, "PASS|FAIL|NOTRUN|EXCLUDED TEST" -> compare with the raw list in
# ../baseline -> retry what differs, raw and stacked in turn -> verdict.

set -u
umask 022
export LC_ALL=C

readonly ME=${0##*/}
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
# shellcheck source=util/sh/words.sh
. "$HERE/../../util/sh/words.sh"
readonly BASELINES=$HERE/../baseline
# shellcheck source=fabtests/scripts/upstream/names.sh
. "$HERE/upstream/names.sh"
# shellcheck source=fabtests/scripts/upstream/side.sh
. "$HERE/upstream/side.sh"
# shellcheck source=fabtests/scripts/upstream/suite.sh
. "$HERE/upstream/suite.sh"
# shellcheck source=fabtests/scripts/upstream/ubertest.sh
. "$HERE/upstream/ubertest.sh"
# shellcheck source=fabtests/scripts/upstream/compare.sh
. "$HERE/upstream/compare.sh"

readonly CORES="tcp udp net verbs tcp;ofi_rxm verbs;ofi_rxm"
readonly SETS=unit,functional,short
readonly RC_CANNOT=2

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... FABTESTS_PREFIX CORE

	Runs upstream's fabtests installed in FABTESTS_PREFIX over the provider
	"CORE;ofi_mrrc" and reports the tests that CORE passes alone and that do
	not pass over it.  CORE: ${CORES// /, }.
	Sets: $SETS; and fi_pingpong.

	  --raw           run CORE alone instead
	  --hook          run CORE with FI_HOOK=mrrc instead
	  --ubertest      fi_ubertest with CORE's own cases instead
	  --ep LIST       endpoint types that count, of msg,dgram,rdm
	                  (default: CORE's; tests of no type always count)
	  --provider P    the stack under test (default CORE;ofi_mrrc)
	  --env           name the stack in FI_PROVIDER too
	  --baseline F    compare with the list F
	  --record        with --raw: write the list as the baseline
	  --retries N     runs more of a test that differs (default 2)
	  -a ADDRESS      address (default 127.0.0.1, verbs: the device's)
	  -T SECONDS      limit for each test (default 120)
	  -k DIR          keep logs and lists in DIR
	  -h, --help      this text

	Without a baseline for this libfabric, CORE is run first.  Root is not
	needed where user namespaces are allowed.

	Exit status: 0 as good as the core, 1 not, $RC_CANNOT could not run.
	EOT
}

usage_error()
{
	printf '%s: %s\n' "$ME" "$*" >&2
	usage >&2
	exit $RC_CANNOT
}

# ---- the machine ---------------------------------------------------------

# The address of the first RDMA device's network interface.
verbs_address()
{
	local dev

	dev=$(rdma link show 2>/dev/null |
		sed -n 's/.* ACTIVE .*netdev \([^ ]*\).*/\1/p' | head -n 1)
	[ -n "$dev" ] && ip -4 -o addr show dev "$dev" |
		sed -n 's/.* inet \([0-9.]*\).*/\1/p' | head -n 1
}

# Starts this script again in namespaces, where it can end no other process, and
# cleans up after it.
isolate()
{
	local inner flags=(--mount --pid --fork --mount-proc --kill-child)

	[[ $CORE == verbs* ]] || flags+=(--net)
	[ "$(id -u)" -eq 0 ] || flags+=(--user --map-root-user)
	# in a chroot the root is no mount, so that its propagation cannot be
	# changed
	unshare "${flags[@]}" true 2>/dev/null ||
		flags+=(--propagation unchanged)
	unshare "${flags[@]}" true 2>/dev/null ||
		die "cannot make a private namespace (root?)"
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/ofi_mrrc-upstream.XXXXXX") ||
		die "cannot make a temporary folder"
	trap 'rm -rf "$WORK"' EXIT
	MRRC_UPSTREAM_WORK=$WORK unshare "${flags[@]}" \
		"$BASH" "$HERE/$ME" "$@" &
	inner=$!
	# unshare ignores SIGINT and SIGTERM; the namespace ends with it
	trap 'kill -9 $inner 2>/dev/null; exit 130' INT
	trap 'kill -9 $inner 2>/dev/null; exit 143' HUP TERM
	wait $inner
	exit
}

# ---- main ----------------------------------------------------------------

parse_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--raw) RAWRUN=yes ;;
		--hook) HOOK=yes ;;
		--ubertest) MODE=ubertest ;;
		--env) FILTER=yes ;;
		--record) RECORD=yes ;;
		-h|--help) usage; exit ;;
		--ep|--provider|--baseline|--retries|-a|-T|-k)
			[ $# -ge 2 ] || usage_error "$1 wants a value"
			case $1 in
			--ep) EPS=$2 ;;
			--provider) STACK=$2 ;;
			--baseline) BASELINE=$2 ;;
			--retries) RETRIES=$2 ;;
			-a) ADDR=$2 ;;
			-T) LIMIT=$2 ;;
			-k) KEEP=$2 ;;
			esac
			shift
			;;
		-*) usage_error "unknown option $1" ;;
		*) break ;;
		esac
		shift
	done
	[ $# -eq 2 ] || usage_error "wants FABTESTS_PREFIX and CORE"
	PREFIX=$1
	CORE=$2
}

check_options()
{
	local file tool

	[[ ,${EPS:-rdm}, =~ ^,((msg|dgram|rdm),)+$ ]] ||
		usage_error "wrong --ep $EPS"
	[[ $RETRIES$LIMIT =~ ^[0-9]+$ ]] || usage_error "wrong number"
	[ $RECORD = no ] || [ $RAWRUN = yes ] ||
		usage_error "--record wants --raw"
	[ $HOOK = no ] || [ $RAWRUN = no ] ||
		usage_error "--hook and --raw exclude each other"
	[[ " $CORES " == *" $CORE "* ]] || usage_error "unknown core $CORE"
	PREFIX=$(cd -- "$PREFIX" 2>/dev/null && pwd) ||
		die "no such folder: $PREFIX"
	name_files
	for file in "$RUN" "$UBER" "$CORE_EXCLUDES" "$UBER_CONFIG"; do
		[ -r "$file" ] || die "no fabtests there: $file is missing"
	done
	for tool in comm fi_info fi_pingpong ip ps python3 sha256sum stdbuf \
		timeout unshare; do
		command -v $tool >/dev/null || die "$tool is missing"
	done
	if [ -n "$STACK" ]; then
		[ $HOOK = no ] ||
			usage_error "--hook and --provider exclude each other"
	elif [ $HOOK = yes ]; then
		STACK=$CORE
	else
		STACK="$CORE;ofi_mrrc"
	fi
}

# Checks that ofi_mrrc takes part. libfabric ignores a hook that it does not
# find, and where a core needs no registration nothing is registered.
check_cache()
{
	local out

	out=$(env "${SIDE_ENV[@]}" FI_LOG_LEVEL=info timeout "$LIMIT" \
		"$PREFIX/bin/fi_dom_test" -n 1 -p "$SIDE_NAME" 2>&1 </dev/null)
	case $out in
	*"No hook found for: mrrc"*)
		die "libfabric finds no hook mrrc (FI_PROVIDER_PATH?)"
		;;
	*"memory monitor "*) ;;
	*) say "# note: nothing is cached (FI_OFI_MRRC_REGISTER=always?)" ;;
	esac
}

# Checks that the providers are there.
check_providers()
{
	VERSION=$(libfabric_version)
	[ -n "$VERSION" ] || die "cannot tell libfabric's version"
	[ -n "$EPS" ] || EPS=$(core_eps)
	[ -n "$EPS" ] || die "libfabric $VERSION has no provider $CORE"
	take_side stack
	env "${SIDE_ENV[@]}" fi_info -p "$SIDE_NAME" >/dev/null 2>&1 ||
		die "libfabric $VERSION has no provider $SIDE_NAME" \
			"(FI_PROVIDER_PATH?)"
}

# The part of the script that runs in the namespace.
inside()
{
	local rc

	# as process 1 of the namespace, signals without a handler do nothing
	trap 'exit 130' INT
	trap 'exit 143' TERM
	ip link set lo up 2>/dev/null
	[ -n "$ADDR" ] || case $CORE in
	verbs*) ADDR=$(verbs_address) ;;
	*) ADDR=127.0.0.1 ;;
	esac
	[ -n "$ADDR" ] || die "no RDMA device with an IPv4 address"
	check_providers
	[ -n "$BASELINE" ] || BASELINE=$BASELINES/$(baseline_name)
	say "# libfabric $VERSION, provider $(side_label), address $ADDR"
	[ $RAWRUN = yes ] || check_cache
	[ $MODE = ubertest ] || catalogue
	if [ $RECORD = yes ]; then
		record
	else
		compare
	fi
	rc=$?
	[ -z "$KEEP" ] || { mkdir -p "$KEEP" && cp -r "$WORK/." "$KEEP/"; }
	return $rc
}

main()
{
	parse_options "$@"
	check_options
	WORK=${MRRC_UPSTREAM_WORK-}
	[ -n "$WORK" ] || isolate "$@"
	unset MRRC_UPSTREAM_WORK
	inside
}

MODE=suite EPS='' STACK='' FILTER=no BASELINE='' RAWRUN=no RECORD=no HOOK=no
RETRIES=2 ADDR='' LIMIT=120 KEEP='' RAW=''
main "$@"; exit
