/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mrrc_code_look() of x86-64 code. */
#ifndef MRRC_CODE_X86_64_H
#define MRRC_CODE_X86_64_H

#include "sys/proof/code_priv.h"

int mrrc_code_look_x86_64(struct mrrc_code *code);

#endif /* MRRC_CODE_X86_64_H */
