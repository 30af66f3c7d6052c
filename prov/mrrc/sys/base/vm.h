/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of the machine and the process: page size, memory, rlimits, and what
 * kind of memory a range is. Stateless; any thread, no lock held.
 */
#ifndef MRRC_VM_H
#define MRRC_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_VM_UNLIMITED SIZE_MAX

size_t mrrc_vm_page(void);
size_t mrrc_vm_huge_page(void);	  /* default hugetlb size; 0 if none */
size_t mrrc_vm_transparent(void); /* transparent huge page; 0 if none */
size_t mrrc_vm_memory(void);	  /* physical memory, bytes */
size_t mrrc_vm_map_max(void);	  /* mappings a process may have */

/* RLIMIT_MEMLOCK; MRRC_VM_UNLIMITED also where CAP_IPC_LOCK lifts the limit. */
size_t mrrc_vm_memlock(void);

/*
 * Does writable memory count against the system's limit before the memory is
 * used (vm.overcommit_memory is 2)?
 */
bool mrrc_vm_strict(void);

/*
 * Bytes of address space that may stay unused: one in 128 of all addresses (1
 * TiB on x86-64), and an eighth of a limit (RLIMIT_AS, RLIMIT_DATA).
 */
size_t mrrc_vm_spare(void);

struct mrrc_vm_limits {
	size_t max_bytes;
	size_t max_regions;
};

/*
 * Reads at most @count numbers, after @key in a small /proc file, or the first
 * numbers of the file if @key is NULL.
 */
size_t mrrc_vm_proc(const char *path, const char *key, size_t *value,
		    size_t count);

/*
 * The default limits of a cache.
 *
 * Bytes: the smallest of memory / (2 * processors), as one process per
 * processor is the densest usual layout; memory / 4; and three quarters of the
 * memlock limit, the rest of which the core provider needs for its own queues.
 * Regions: an eighth of the mappings a process may have, since watching one
 * scattered region can split a mapping in three, at most 64 Ki. Never
 * unlimited, never zero.
 */
void mrrc_vm_default_limits(struct mrrc_vm_limits *limits);

/* The rule of mrrc_vm_default_limits(), for tests. */
void mrrc_vm_derive_limits(size_t memory, size_t processors, size_t memlock,
			   size_t map_max, struct mrrc_vm_limits *limits);

/*
 * Is every page of the page-aligned range private anonymous memory? Shared
 * memory can be watched by userfaultfd, yet loses pages by hole punching and
 * truncation without an event: it must not be cached. Private mappings of files
 * must not be cached either, as truncation empties them; the kernel tells them
 * from anonymous memory since Linux 6.11, and older kernels only as long as one
 * page has not been written to. Faults absent pages in for reading. Any doubt
 * (no /proc, an unmapped page, a page shared by all, as the zero page) answers
 * false.
 */
bool mrrc_vm_private(uintptr_t start, size_t len);

#endif /* MRRC_VM_H */
