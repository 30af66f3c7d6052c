# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The two sides that are compared: the core provider alone, and our stack
# over it.  take_side chooses; the runners read SIDE_NAME and SIDE_ENV.
# Sourced.

# take_side core|stack: sets the provider's name and the words for env(1).
take_side()
{
	SIDE_ENV=(-u FI_PROVIDER -u FI_HOOK)
	SIDE_NAME=$CORE
	if [ "$1" = stack ] && [ "$RAWRUN" = no ]; then
		SIDE_NAME=$STACK
		[ "$HOOK" = no ] || SIDE_ENV+=(FI_HOOK=mrrc)
	fi
	if [ "$FILTER" = yes ]; then
		SIDE_ENV+=(FI_PROVIDER="$SIDE_NAME")
	elif [[ $SIDE_NAME != *";"* ]]; then
		# asked for tcp, libfabric offers tcp;ofi_rxm as well
		SIDE_ENV+=("FI_PROVIDER=^ofi_rxm,ofi_rxd")
	fi
}

# Prints the side's name in the reports.
side_label()
{
	case " ${SIDE_ENV[*]}" in
	*" FI_HOOK="*) printf '%s with FI_HOOK=mrrc\n' "$SIDE_NAME" ;;
	*) printf '%s\n' "$SIDE_NAME" ;;
	esac
}
