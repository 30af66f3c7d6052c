/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preregistered memory for code that knows no domain: a preloaded library
 * (util/mpi) gets the calls below from the provider, which chooses the domain.
 *
 * Any thread.
 */
#ifndef MRRC_ALLOC_PROCESS_H
#define MRRC_ALLOC_PROCESS_H

#include <stddef.h>

struct mrrc_process_alloc {
	size_t size;
	/*
	 * Allocates from the domain that was opened first and has room.
	 * -FI_ENOSYS: this process has opened no domain, though its parent may
	 * have.
	 */
	int (*alloc)(size_t len, void **buf);
	/*
	 * Frees as fi_mr_free(). Has no effect if the domain is closed.
	 * -FI_ENOENT: buf is not in a block of fi_mr_alloc().
	 */
	int (*release)(void *buf);
};

/*
 * A preloaded library may define this function. When libfabric loads the
 * provider, the provider calls the function once, and then stays loaded.
 */
__attribute__((weak, visibility("default"))) void
mrrc_process_alloc_ready(const struct mrrc_process_alloc *calls);

#endif /* MRRC_ALLOC_PROCESS_H */
