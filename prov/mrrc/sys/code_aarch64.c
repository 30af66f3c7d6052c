/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls in code for 64-bit ARM (code.h).
 */
#include "config.h"
#include "sys/code_priv.h"

#include <errno.h>

int mrrc_code_look_aarch64(struct mrrc_code *code)
{
	(void)code;
	return -EOPNOTSUPP;
}
