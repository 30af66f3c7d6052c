/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked in place of the other files of this folder if configure was called
 * with --disable-hooks: no code is examined.
 */
#include "config.h"
#include "sys/proof/code_kept.h"
#include "sys/proof/prove.h"

void mrrc_code_kept_at(const char *path)
{
}

void mrrc_prove_ready(const struct mrrc_prove_ops *ops, bool now)
{
}

void mrrc_prove_rent(unsigned probes)
{
}

void mrrc_prove_stop(void)
{
}

void mrrc_prove_forked(void)
{
}

void mrrc_prove_why(char why[MRRC_TRUST_WHY])
{
	*why = '\0';
}

void mrrc_prove_tell(void (*tell)(const char *why))
{
}
