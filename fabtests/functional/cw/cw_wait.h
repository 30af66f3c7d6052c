/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations that the parts of fi_mrrc_cw_wait share, for waiting for
 * conditional writes and for leaving progress to the provider.
 */
#ifndef CW_WAIT_H
#define CW_WAIT_H

#include "ft_mrrc.h"

#define LEN 8192 /* more than a message takes */

extern struct ft_pair pair;
extern char *out, *in; /* buffers of LEN bytes each */

/* cw_auto.c */
void automatic(void);
void automatic_error(void);
void automatic_posts(void);

#endif /* CW_WAIT_H */
