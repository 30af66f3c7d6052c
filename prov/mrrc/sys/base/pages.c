/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory by kinds of pages (pages.h).
 */
#include "config.h"
#include "sys/base/pages.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/mempolicy.h>

#include "sys/base/vm.h"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGES_2M   ((size_t) 2 << 20)
#define PAGES_1G   ((size_t) 1 << 30)
#define NODES_MAX  1024
#define PAGES_UNIT ((size_t) 1 << 20) /* bytes of address space */

size_t mrrc_pages_size(enum mrrc_pages kind)
{
	switch (kind) {
	case MRRC_PAGES_THP:
	case MRRC_PAGES_2M:
		return PAGES_2M;
	case MRRC_PAGES_1G:
		return PAGES_1G;
	default:
		return mrrc_vm_page();
	}
}

size_t mrrc_pages_round(size_t len, enum mrrc_pages kind)
{
	const size_t size = mrrc_pages_size(kind);

	return (len + size - 1) / size * size;
}

/*
 * Maps reserved huge pages, which the kernel places at a multiple of their
 * size.
 */
static void *map_hugetlb(size_t len, enum mrrc_pages kind)
{
	const int bits = kind == MRRC_PAGES_1G ? 30 : 21;

	return mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			    bits << MAP_HUGE_SHIFT,
		    -1, 0);
}

static size_t whole_units(size_t len)
{
	return (len + PAGES_UNIT - 1) & ~(PAGES_UNIT - 1);
}

/* Maps more than needed, and gives the ends back. */
static void *map_aligned(size_t want, size_t align)
{
	const size_t len = whole_units(want);
	const size_t all = len + align;
	char *addr, *from, *end;

	addr = mmap(NULL, all, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (addr == MAP_FAILED)
		return MAP_FAILED;
	end = addr + all;
	from = (char *) (((uintptr_t) addr + align - 1) & ~(align - 1));
	if (from > addr && munmap(addr, from - addr))
		goto err;
	addr = from;
	if (end > from + len && munmap(from + len, end - (from + len)))
		goto err;
	end = from + len;
	if (len > want && mprotect(from + want, len - want, PROT_NONE))
		goto err;
	return from;

	/*
	 * The process can have no more mappings. Other threads may already use
	 * addresses that were unmapped above, so only [addr, end) is unmapped.
	 */
err:
	munmap(addr, end - addr);
	errno = ENOMEM;
	return MAP_FAILED;
}

static int pages_bind(void *addr, size_t len, int node)
{
	unsigned long mask[NODES_MAX / (8 * sizeof(long))] = { 0 };

	if (node < 0)
		return 0;
	if (node >= NODES_MAX)
		return -EINVAL;
	mask[node / (8 * sizeof(long))] = 1UL << node % (8 * sizeof(long));
	if (!syscall(SYS_mbind, addr, len, MPOL_PREFERRED, mask, NODES_MAX,
		     0) ||
	    errno == ENOSYS || errno == EPERM)
		return 0;
	return -errno;
}

static int pages_prefault(char *addr, size_t len, size_t size)
{
	size_t at;

	if (!madvise(addr, len, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* Linux before 5.14 lacks MADV_POPULATE_WRITE */
	for (at = 0; at < len; at += size)
		((volatile char *) addr)[at] = 0;
	return 0;
}

static void *pages_try(size_t len, size_t align, enum mrrc_pages kind)
{
	void *addr;

	if (kind >= MRRC_PAGES_2M)
		return align > mrrc_pages_size(kind) ? MAP_FAILED :
						       map_hugetlb(len, kind);
	if (kind == MRRC_PAGES_THP && align < PAGES_2M)
		align = PAGES_2M;
	addr = map_aligned(len, align);
	if (addr == MAP_FAILED)
		return addr;
	if (kind == MRRC_PAGES_THP)
		madvise(addr, len, MADV_HUGEPAGE);
	return addr;
}

int mrrc_pages_map(size_t len, size_t align, const struct mrrc_pages_attr *attr,
		   void **addr_out, size_t *mapped, enum mrrc_pages *got)
{
	enum mrrc_pages kind = attr->kind;
	size_t want;
	void *addr;
	int ret;

	if (kind == MRRC_PAGES_AUTO)
		kind = len >= PAGES_2M && !attr->exact ? MRRC_PAGES_THP :
							 MRRC_PAGES_4K;
	if (attr->exact && kind == MRRC_PAGES_THP)
		kind = MRRC_PAGES_4K;
	for (;; kind--) {
		want = mrrc_pages_round(len, kind);
		addr = want < len ? MAP_FAILED : pages_try(want, align, kind);
		if (addr != MAP_FAILED || kind == MRRC_PAGES_4K)
			break;
	}
	if (addr == MAP_FAILED)
		return -ENOMEM;
	/* the kernel's setting of transparent huge pages may be "always" */
	if (attr->kind == MRRC_PAGES_4K)
		madvise(addr, want, MADV_NOHUGEPAGE);
	ret = pages_bind(addr, want, attr->node);
	if (!ret && attr->prefault)
		ret = pages_prefault(addr, want, mrrc_vm_page());
	if (ret) {
		mrrc_pages_unmap(addr, want);
		return ret;
	}
	*addr_out = addr;
	*mapped = want;
	*got = kind;
	return 0;
}

/*
 * At vm.max_map_count the kernel cannot split a mapping that it has merged with
 * its neighbour: then the addresses stay mapped, and only the memory is given
 * back.
 */
void mrrc_pages_return(void *addr, size_t len)
{
	if (munmap(addr, len))
		madvise(addr, len, MADV_DONTNEED);
}

void mrrc_pages_unmap(void *addr, size_t mapped)
{
	mrrc_pages_return(addr, whole_units(mapped));
}

size_t mrrc_pages_len(size_t mapped)
{
	return whole_units(mapped);
}

/*
 * Replaces the mapping in one step, as another thread may be writing to it. If
 * the kernel refuses, because of too many mappings or too much locked memory,
 * the old mapping stays.
 */
bool mrrc_pages_retire(void *addr, size_t mapped, bool access)
{
	const int prot = access ? PROT_READ | PROT_WRITE : PROT_NONE;
	const size_t len = whole_units(mapped);

	if (mmap(addr, len, prot,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return false;
	/* after mlockall(), the pages are present and locked */
	munlock(addr, len);
	madvise(addr, len, MADV_DONTNEED);
	madvise(addr, len, MADV_NOHUGEPAGE);
	madvise(addr, len, MADV_DONTFORK);
	madvise(addr, len, MADV_DONTDUMP);
	return true;
}

bool mrrc_pages_node_exists(int node)
{
	char path[64];

	if (node < 0 || node >= NODES_MAX)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
	/* a kernel without NUMA has one node */
	return !access(path, F_OK) ||
	       (!node && access("/sys/devices/system/node", F_OK));
}
