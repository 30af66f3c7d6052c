# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What scripts print.  Sourced, with ME set to the script's name; RC_CANNOT is
# the status of die().

say()
{
	printf '%s\n' "$*"
}

warn()
{
	printf '%s: %s\n' "${ME:-ofi_mrrc}" "$*" >&2
}

die()
{
	warn "$*"
	exit "${RC_CANNOT:-2}"
}
