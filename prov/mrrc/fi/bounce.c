/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sources that can be read but not registered: their data goes out from a
 * copy that the operation holds.
 *
 * verbs' own cache registers with all rights, whatever is asked for, so with
 * it memory mapped read-only cannot be registered at all (verbs_mr.c, 1.17).
 * The copy is made by the kernel, which says so where memory is not mapped.
 */
#include "config.h"
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include "op.h"

struct mrrc_bounce {
	struct mrrc_bounce *next;
	char data[];
};

void mrrc_bounce_free(struct mrrc_op *op)
{
	struct mrrc_bounce *bounce;

	while ((bounce = op->bounces)) {
		op->bounces = bounce->next;
		free(bounce);
	}
}

int mrrc_bounce_out(struct mrrc_op *op, struct iovec *iov)
{
	struct mrrc_bounce *bounce;
	struct iovec copy = { .iov_len = iov->iov_len };

	if (iov->iov_len > SSIZE_MAX - sizeof(*bounce))
		return -FI_EFAULT;
	bounce = malloc(sizeof(*bounce) + iov->iov_len);
	if (!bounce)
		return -FI_ENOMEM;
	copy.iov_base = bounce->data;
	if (process_vm_readv(getpid(), &copy, 1, iov, 1, 0) !=
	    (ssize_t) iov->iov_len) {
		free(bounce);
		return -FI_EFAULT;
	}
	bounce->next = op->bounces;
	op->bounces = bounce;
	atomic_fetch_add_explicit(&op->domain->bounces, 1,
				  memory_order_relaxed);
	*iov = copy;
	return 0;
}
