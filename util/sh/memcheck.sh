#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# memcheck.sh PROGRAM [ARG...]: runs a test program under valgrind, a script
# as it is.  For make check LOG_COMPILER=, and as a prefix of the functional
# tests.

set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

if [ "$(head -c 2 -- "$1")" = '#!' ]; then
	exec "$@"
fi
# memory that a library keeps until the process ends is not an error
exec valgrind -q --error-exitcode=99 --leak-check=full \
	--show-leak-kinds=definite --errors-for-leak-kinds=definite \
	--num-callers=25 --fair-sched=yes \
	--suppressions="$here/../../fabtests/suppressions/valgrind.supp" "$@"
