/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of libfabric whose symbol version depends on the size of structures. */
#ifndef MRRC_ABI_H
#define MRRC_ABI_H

#include <stdbool.h>

/* Binds the calls. false: the libfabric that loaded us lacks one */
bool mrrc_abi_bind(void);

#endif /* MRRC_ABI_H */
