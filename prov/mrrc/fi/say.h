/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the user has to know at once: a setting without effect, a cache that
 * keeps nothing. libfabric prints no warning unless FI_LOG_LEVEL is set; then
 * such a line goes to standard error. Any thread.
 */
#ifndef MRRC_SAY_H
#define MRRC_SAY_H

#include <stdatomic.h>

#include <rdma/providers/fi_log.h>

/*
 * One line, without its end. @said: said no more than once, NULL: each time.
 */
void mrrc_say(atomic_bool *said, enum fi_log_subsys subsys, const char *fmt,
	      ...) __attribute__((format(printf, 3, 4)));

#endif /* MRRC_SAY_H */
