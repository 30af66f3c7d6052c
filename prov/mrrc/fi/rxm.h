/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages that ofi_rxm copies. Any thread.
 */
#ifndef MRRC_RXM_H
#define MRRC_RXM_H

#include <stddef.h>

/*
 * Returns the length of the longest message that ofi_rxm copies when it sends
 * the message, over a core that requires FI_MR_LOCAL: ofi_rxm reads no
 * descriptor for such messages. 0: not known.
 *
 * Receives have no such limit: the sender's parameters decide how a message is
 * sent.
 */
size_t mrrc_rxm_copied(void);

#endif /* MRRC_RXM_H */
