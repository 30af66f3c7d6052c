#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Fails when a line that a mutation takes away is no longer in the sources: the
# protection is somewhere else then, and its test is not known to see it.

exec "${srcdir:-.}/fabtests/scripts/mutate.sh" -c
