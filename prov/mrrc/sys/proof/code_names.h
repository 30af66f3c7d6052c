/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The addresses in code that a file names. */
#ifndef MRRC_CODE_NAMES_H
#define MRRC_CODE_NAMES_H

#include "sys/proof/code_priv.h"

/* Fills in code->name and code->hidden, the first time. */
void mrrc_code_names(struct mrrc_code *code);

#endif /* MRRC_CODE_NAMES_H */
