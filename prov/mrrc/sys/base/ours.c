/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page that the kernel clears in children (ours.h).
 */
#include "config.h"
#include "sys/base/ours.h"

#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define OURS 256 /* bytes in use at once, at most */

static mrrc_ours *ours_page;	       /* the kernel clears it in a child */
static unsigned char ours_plain[OURS]; /* used if the kernel does not clear */
static bool ours_used[OURS];	       /* a child's copies count, too */
static mrrc_ours ours_last = 1;	       /* shared by all objects beyond OURS */

static void ours_map(void)
{
	void *page;

	ours_page = ours_plain;
	page = mmap(NULL, OURS, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	if (madvise(page, OURS, MADV_WIPEONFORK))
		munmap(page, OURS);
	else
		ours_page = page;
}

mrrc_ours *mrrc_ours_get(void)
{
	size_t i;

	if (!ours_page)
		ours_map();
	for (i = 0; i < OURS; i++) {
		if (!ours_used[i]) {
			ours_used[i] = true;
			ours_page[i] = 1;
			return &ours_page[i];
		}
	}
	return &ours_last;
}

void mrrc_ours_put(mrrc_ours *ours)
{
	if (ours != &ours_last)
		ours_used[ours - ours_page] = false;
}
