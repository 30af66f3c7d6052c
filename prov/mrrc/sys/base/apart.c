/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrays apart from malloc (apart.h). An array's length is stored in front of
 * the array.
 */
#include "config.h"
#include "sys/base/apart.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/base/vm.h"

#define FRONT 64 /* bytes in front of an array */

#ifdef __SANITIZE_ADDRESS__
/* Uses malloc under AddressSanitizer, which then detects overflows. */
void *mrrc_apart_grow(void *old, size_t size)
{
	size_t *const was = old ? (size_t *) ((char *) old - FRONT) : NULL;
	size_t *front;

	if (was && *was >= size)
		return old;
	if (size > SIZE_MAX - 2 * FRONT)
		return NULL;
	front = aligned_alloc(FRONT, (size + 2 * FRONT - 1) / FRONT * FRONT);
	if (!front)
		return NULL;
	memset(front, 0, FRONT + size);
	if (was)
		memcpy(front, was, FRONT + *was);
	*front = size;
	free(was);
	return (char *) front + FRONT;
}

void mrrc_apart_free(void *array)
{
	if (array)
		free((char *) array - FRONT);
}
#else
void *mrrc_apart_grow(void *old, size_t size)
{
	const size_t page = mrrc_vm_page();
	size_t *front = old ? (size_t *) ((char *) old - FRONT) : NULL;
	size_t len;

	if (size > SIZE_MAX - FRONT - page)
		return NULL;
	len = (size + FRONT + page - 1) & ~(page - 1);
	if (front && *front >= len)
		return old;
	front = front ? mremap(front, *front, len, MREMAP_MAYMOVE) :
			mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
	if (front == MAP_FAILED)
		return NULL;
	*front = len;
	return (char *) front + FRONT;
}

void mrrc_apart_free(void *array)
{
	size_t *front;

	if (!array)
		return;
	front = (size_t *) ((char *) array - FRONT);
	munmap(front, *front);
}
#endif
