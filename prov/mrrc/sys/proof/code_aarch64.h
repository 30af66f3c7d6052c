/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System calls in code for 64-bit ARM. */
#ifndef MRRC_CODE_AARCH64_H
#define MRRC_CODE_AARCH64_H

#include "sys/proof/code_priv.h"

/* Finds the system-call instructions of the mapping, and decides about each. */
int mrrc_code_look_aarch64(struct mrrc_code *code);

/* mrrc_code_glibc() of the svc at @site. */
bool mrrc_code_glibc_aarch64(const uint8_t *site, size_t before);

#endif /* MRRC_CODE_AARCH64_H */
