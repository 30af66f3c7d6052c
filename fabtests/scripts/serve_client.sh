# shellcheck shell=bash disable=SC2154 # what is set in test_serve.sh is used
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a client does not do, whatever it is sent, and what it keeps: sourced by
# test_serve.sh.

# A file that is larger than the limit of the process is an error of this file.
test_file_limit()
{
	file large 3000000
	file small 1000
	serve || return 1
	(ulimit -f 2000 && got 1 "") || return 1
	get_says 'large: File too large' && get_says 'ulimit -f' &&
		get_says 'are kept' && [ ! -e "$DIR/dst/large" ] &&
		cmp "$DIR/src/small" "$DIR/dst/small" || return 1
	got "" && same
}
