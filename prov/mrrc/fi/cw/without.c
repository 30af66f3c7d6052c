/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked by configure --disable-cw in place of the other files of this folder:
 * no endpoint has fi_cwrite(3).
 */
#include "config.h"
#include "fi/cw/cw.h"
#include "fi/cw/link.h"

void mrrc_cw_calls_init(void)
{
}

ssize_t mrrc_cw_post_write(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			   uint64_t flags, const struct mrrc_source *source)
{
	return -FI_ENOSYS;
}
