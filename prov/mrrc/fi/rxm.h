/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ofi_rxm does with messages. Any thread.
 */
#ifndef MRRC_RXM_H
#define MRRC_RXM_H

#include <stddef.h>

/*
 * The longest message that ofi_rxm copies when it is sent, over a core that
 * requires FI_MR_LOCAL: it reads no descriptor for those. 0: not known.
 *
 * A receive has no such length: its sender decides how a message is sent, by
 * its own parameters.
 */
size_t mrrc_rxm_copied(void);

#endif /* MRRC_RXM_H */
