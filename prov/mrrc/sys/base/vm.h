/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of the machine and the process: page size, memory, rlimits; and the
 * kind of memory in a range. Stateless; any thread, no lock held.
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
 * Bytes of address space that the provider may keep unused: one in 128 of all
 * addresses (1 TiB on x86-64), but at most an eighth of a limit (RLIMIT_AS,
 * RLIMIT_DATA).
 */
size_t mrrc_vm_spare(void);

struct mrrc_vm_limits {
	size_t max_bytes;
	size_t max_regions;
};

/*
 * Reads at most @count numbers from a small /proc file: the numbers after @key,
 * or the file's first numbers if @key is NULL.
 */
size_t mrrc_vm_proc(const char *path, const char *key, size_t *value,
		    size_t count);

/*
 * The default limits of a cache.
 *
 * Bytes: the smallest of memory / (2 * processors), as usually no more than one
 * process runs per processor; memory / 4; and three quarters of the memlock
 * limit, the rest of which the core provider needs for its queues. Regions: an
 * eighth of the mappings that a process may have, since watching one region can
 * split a mapping in three, but at most 64 Ki. Both limits are finite and not
 * zero.
 */
void mrrc_vm_default_limits(struct mrrc_vm_limits *limits);

/* The rule of mrrc_vm_default_limits(), for tests. */
void mrrc_vm_derive_limits(size_t memory, size_t processors, size_t memlock,
			   size_t map_max, struct mrrc_vm_limits *limits);

/*
 * Is every page of the page-aligned range private anonymous memory? Shared
 * memory must not be cached: userfaultfd can watch shared memory, but makes no
 * event when hole punching or truncation drops pages. Private mappings of files
 * must not be cached either, as truncation empties them; Linux tells such
 * mappings from anonymous memory since 6.11, and before only if a page of the
 * range was never written to. Faults absent pages in for reading. Returns false
 * in doubt: without /proc, or if a page is unmapped or is the kernel's zero
 * page.
 */
bool mrrc_vm_private(uintptr_t start, size_t len);

#endif /* MRRC_VM_H */
