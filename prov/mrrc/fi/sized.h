/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Structures of rdma/fi_ext_mrrc.h that the provider fills in. Each structure
 * begins with its size, which the caller sets to the size in the caller's
 * header. That header may be older or newer than the provider's.
 *
 * Threading: any.
 */
#ifndef MRRC_SIZED_H
#define MRRC_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A caller that passes a larger size did not set it. */
#define MRRC_SIZED_MAX 4096

/*
 * Copies as many of the @len bytes of *@full to *@out as fit, in whole words,
 * and sets the size in *@out to the number of copied bytes. Fields that the
 * provider does not have become 0.
 */
static inline int mrrc_sized_out(void *out, const void *full, size_t len)
{
	size_t size;

	if (!out)
		return -EINVAL;
	memcpy(&size, out, sizeof(size));
	if (size < sizeof(size) + sizeof(uint64_t) || size > MRRC_SIZED_MAX)
		return -EINVAL;
	if (size > len)
		memset((char *) out + len, 0, size - len);
	else
		len = size / sizeof(uint64_t) * sizeof(uint64_t);
	memcpy(out, full, len);
	memcpy(out, &len, sizeof(len));
	return 0;
}

#endif /* MRRC_SIZED_H */
