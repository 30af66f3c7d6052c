/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Maps anonymous memory in pages of the requested kind, or of the next smaller
 * kind available. Stateless; any thread, no lock held.
 */
#ifndef MRRC_PAGES_H
#define MRRC_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum mrrc_pages {
	/* transparent huge pages if a block fills some, else pages of 4 KiB */
	MRRC_PAGES_AUTO,
	MRRC_PAGES_4K,
	MRRC_PAGES_THP,
	MRRC_PAGES_2M, /* hugetlbfs */
	MRRC_PAGES_1G,
	MRRC_PAGES_CNT
};

struct mrrc_pages_attr {
	enum mrrc_pages kind;
	int node; /* preferred NUMA node; -1: any */
	bool prefault;
	bool exact; /* no longer than len, if the pages are small */
};

/* Rounds len up to whole pages of this kind. */
size_t mrrc_pages_round(size_t len, enum mrrc_pages kind);
/* The size of one page, as far as the kernel guarantees it. */
size_t mrrc_pages_size(enum mrrc_pages kind);

/*
 * Maps memory at a multiple of align, a power of two of at least 1 MiB. Sets
 * *kind and *mapped to the kind of pages and the length mapped. The rest of the
 * last MiB is reserved: it cannot be accessed, and stays free of other
 * mappings.
 */
int mrrc_pages_map(size_t len, size_t align, const struct mrrc_pages_attr *attr,
		   void **addr, size_t *mapped, enum mrrc_pages *kind);
void mrrc_pages_unmap(void *addr, size_t mapped);
/*
 * Unmaps all or a part of a private mapping; if munmap(2) fails, only drops the
 * pages.
 */
void mrrc_pages_return(void *addr, size_t len);
/* The address space that a mapping occupies. */
size_t mrrc_pages_len(size_t mapped);

/*
 * Gives the pages back and keeps the addresses: an empty mapping replaces the
 * old mapping. access: the new mapping can be read and written. Children of
 * fork and core dumps do not get the new mapping. mrrc_pages_unmap() removes
 * the new mapping. Returns false if nothing has changed.
 */
bool mrrc_pages_retire(void *addr, size_t mapped, bool access);

bool mrrc_pages_node_exists(int node);

#endif /* MRRC_PAGES_H */
