/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that the user has to see at once: a setting without effect, a cache
 * that keeps nothing. libfabric prints no warning unless FI_LOG_LEVEL is set;
 * so without FI_LOG_LEVEL the provider prints such a message to standard error.
 * Any thread.
 */
#ifndef MRRC_SAY_H
#define MRRC_SAY_H

#include <stdatomic.h>

#include <rdma/providers/fi_log.h>

/*
 * Prints one line; the text does not end in a newline. @said: prints the line
 * only once; NULL: prints it each time.
 */
void mrrc_say(atomic_bool *said, enum fi_log_subsys subsys, const char *fmt,
	      ...) __attribute__((format(printf, 3, 4)));

#endif /* MRRC_SAY_H */
