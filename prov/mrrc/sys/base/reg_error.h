/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Classifies the error of a registration. Any thread. */
#ifndef MRRC_REG_ERROR_H
#define MRRC_REG_ERROR_H

#include <errno.h>
#include <stdbool.h>

/* The memory does not allow this access. */
static inline bool mrrc_reg_denied(int ret)
{
	return ret == -EFAULT || ret == -EACCES || ret == -EPERM;
}

/* Was a limit reached, so that deregistering other memory may help? */
static inline bool mrrc_reg_limited(int ret)
{
	switch (-ret) {
	case ENOMEM:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOSPC:
	case ENOBUFS:
	case EBUSY:
		return true;
	default:
		return false;
	}
}

#endif /* MRRC_REG_ERROR_H */
