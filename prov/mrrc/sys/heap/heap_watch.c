/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tools and debug builds (heap_watch.h).
 */
#include "config.h"
#include "sys/heap/heap_watch.h"

#include <errno.h>
#include <string.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/memcheck.h>
#endif

#include "sys/heap/heap_priv.h"
#include "sys/heap/heap_block.h"

/* AddressSanitizer's functions; weak: absent if the program does not use it */
extern void __asan_poison_memory_region(const volatile void *addr, size_t len)
	__attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *addr, size_t len)
	__attribute__((weak));

bool mrrc_heap_watched;

static bool watch_asan(void)
{
	return __asan_poison_memory_region && __asan_unpoison_memory_region;
}

static bool watch_valgrind(void)
{
#ifdef HAVE_VALGRIND_MEMCHECK_H
	return RUNNING_ON_VALGRIND;
#else
	return false;
#endif
}

void mrrc_heap_watch_init(void)
{
	mrrc_heap_watched = watch_asan() || watch_valgrind();
}

void mrrc_heap_watch_map(uintptr_t addr, size_t len)
{
	if (watch_asan())
		__asan_poison_memory_region((void *) addr, len);
#ifdef HAVE_VALGRIND_MEMCHECK_H
	VALGRIND_MAKE_MEM_NOACCESS(addr, len);
#endif
}

/* valgrind sees the unmapping; AddressSanitizer does not */
void mrrc_heap_watch_unmap(uintptr_t addr, size_t len)
{
	if (watch_asan())
		__asan_unpoison_memory_region((void *) addr, len);
}

void mrrc_heap_watch_alloc(uintptr_t addr, size_t asked, bool zeroed)
{
	if (watch_asan())
		__asan_unpoison_memory_region((void *) addr, asked);
#ifdef HAVE_VALGRIND_MEMCHECK_H
	VALGRIND_MALLOCLIKE_BLOCK(addr, asked, 0, zeroed);
#endif
}

void mrrc_heap_watch_free(uintptr_t addr, size_t size)
{
	if (watch_asan())
		__asan_poison_memory_region((void *) addr, size);
#ifdef HAVE_VALGRIND_MEMCHECK_H
	VALGRIND_FREELIKE_BLOCK(addr, 0);
#endif
}

#ifdef MRRC_DEBUG

#define CANARY	   0xca
#define CANARY_MAX 256u /* bytes examined behind an object */
#define POISON	   0xdf
#define POISON_MAX 4096u /* bytes examined of a freed object */

#define DEBUG_FREED (UINT32_C(1) << 31) /* a flag in asked[] */

static uint32_t *debug_asked(const struct mrrc_heap_block *block,
			     uintptr_t addr)
{
	return &block->asked[(addr - block->base) / MRRC_HEAP_GRAIN];
}

size_t mrrc_heap_debug_asked(const struct mrrc_heap_block *block,
			     uintptr_t addr, size_t size)
{
	if (block->own)
		return block->own_len;
	return *debug_asked(block, addr) & ~DEBUG_FREED;
}

void mrrc_heap_debug_given(struct mrrc_heap_block *block, uintptr_t addr)
{
	*debug_asked(block, addr) = 0;
}

/* The first byte of [from, to) that differs from value, or to. */
static size_t debug_differs(uintptr_t addr, size_t from, size_t to,
			    unsigned char value)
{
	const unsigned char *byte = (const unsigned char *) addr;

	while (from < to && byte[from] == value)
		from++;
	return from;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void debug_say(struct mrrc_heaps *heaps, enum mrrc_heap_event event,
		      uintptr_t addr, size_t size, size_t offset)
{
	const struct mrrc_heap_note note = {
		.event = event,
		.addr = addr,
		.size = size,
		.offset = offset,
	};

	atomic_fetch_add(&heaps->mistakes, 1);
	mrrc_heap_say(heaps, &note);
}

void mrrc_heap_debug_alloc(struct mrrc_heaps *heaps,
			   struct mrrc_heap_block *block, uintptr_t addr,
			   size_t asked, size_t size)
{
	const size_t end = least(size, POISON_MAX);
	uint32_t *was = block->own ? NULL : debug_asked(block, addr);
	size_t at;

	/* a block of one object is not filled when it is freed */
	if (!mrrc_heap_watched && was && (*was & DEBUG_FREED)) {
		at = debug_differs(addr, 0, end, POISON);
		if (at < end)
			debug_say(heaps, MRRC_HEAP_USED_FREED, addr, size, at);
	}
	if (!mrrc_heap_watched)
		memset((void *) (addr + asked), CANARY,
		       least(size - asked, CANARY_MAX));
	if (was)
		*was = asked;
}

/* The first byte behind an allocation that has changed, or end. */
static size_t debug_changed(const struct mrrc_heap_block *block, uintptr_t addr,
			    size_t size, size_t *end)
{
	const size_t asked = mrrc_heap_debug_asked(block, addr, size);

	*end = least(size, asked + CANARY_MAX);
	return mrrc_heap_watched ? *end :
				   debug_differs(addr, asked, *end, CANARY);
}

bool mrrc_heap_debug_intact(const struct mrrc_heap_block *block, uintptr_t addr,
			    size_t size)
{
	size_t end;

	return debug_changed(block, addr, size, &end) == end;
}

void mrrc_heap_debug_freed(struct mrrc_heap_block *block, uintptr_t addr,
			   size_t size)
{
	if (mrrc_heap_watched || block->own)
		return;
	memset((void *) addr, POISON, least(size, POISON_MAX));
	*debug_asked(block, addr) = DEBUG_FREED;
}

int mrrc_heap_debug_free(struct mrrc_heaps *heaps,
			 struct mrrc_heap_block *block, uintptr_t addr,
			 size_t size)
{
	const size_t asked = mrrc_heap_debug_asked(block, addr, size);
	size_t end, at = debug_changed(block, addr, size, &end);

	mrrc_heap_debug_freed(block, addr, size);
	if (at == end)
		return 0;
	debug_say(heaps, MRRC_HEAP_OVERFLOW, addr, asked, at);
	return -EOVERFLOW;
}

#endif /* MRRC_DEBUG */
