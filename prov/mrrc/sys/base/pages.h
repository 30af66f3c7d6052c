/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Anonymous memory in pages of the kind that is asked for, or the next
 * smaller one that there is. Stateless; any thread, no lock held.
 */
#ifndef MRRC_PAGES_H
#define MRRC_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum mrrc_pages {
	MRRC_PAGES_AUTO, /* THP where a block fills some, else 4K */
	MRRC_PAGES_4K,
	MRRC_PAGES_THP,
	MRRC_PAGES_2M, /* hugetlbfs */
	MRRC_PAGES_1G,
	MRRC_PAGES_CNT
};

struct mrrc_pages_attr {
	enum mrrc_pages kind;
	int node; /* preferred; -1: any */
	bool prefault;
	bool exact; /* no longer than len, in small pages */
};

/* len rounded up to such pages. */
size_t mrrc_pages_round(size_t len, enum mrrc_pages kind);
/* The size of one page, as far as the kernel guarantees it. */
size_t mrrc_pages_size(enum mrrc_pages kind);

/*
 * At a multiple of align, a power of two of at least 1 MiB. *kind and *mapped
 * are what it became. The rest of its last MiB is reserved: it cannot be
 * touched, and no other mapping is placed there.
 */
int mrrc_pages_map(size_t len, size_t align, const struct mrrc_pages_attr *attr,
		   void **addr, size_t *mapped, enum mrrc_pages *kind);
void mrrc_pages_unmap(void *addr, size_t mapped);
/* A private mapping, or a part of one: as munmap(2), which may fail. */
void mrrc_pages_return(void *addr, size_t len);
/* The address space that it occupies. */
size_t mrrc_pages_len(size_t mapped);

/*
 * Give the pages back and keep the addresses: an empty mapping takes the place
 * of this one. access: it can be read and written. Children of fork and core
 * dumps have no part of it. mrrc_pages_unmap() ends it. false: nothing has
 * changed.
 */
bool mrrc_pages_retire(void *addr, size_t mapped, bool access);

bool mrrc_pages_node_exists(int node);

#endif /* MRRC_PAGES_H */
