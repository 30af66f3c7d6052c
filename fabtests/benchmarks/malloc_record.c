/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * malloc_record: a preloaded library that writes a program's allocations and
 * frees to $MALLOC_RECORD, for frag_bench: for each call a line with the size
 * of the allocation, or "-N" for freeing what was allocated N allocations ago.
 * A realloc is a new allocation and a free. make does not build malloc_record:
 *
 *	gcc -O2 -shared -fPIC -o malloc_record.so malloc_record.c
 *	MALLOC_RECORD=/tmp/trace LD_PRELOAD=./malloc_record.so PROGRAM...
 *
 * The library can record programs that use glibc, do not fork, and run to their
 * end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t len);
extern void *__libc_realloc(void *ptr, size_t len);
extern void *__libc_memalign(size_t align, size_t len);
extern void __libc_free(void *ptr);

#define SLOTS (1u << 24) /* open addressing: address and number */

static struct slot {
	uintptr_t addr;
	uint64_t number;
} * slots;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char out[1 << 16];
static size_t used;
static uint64_t count;
static int fd = -2; /* -1: nothing is recorded */

static struct slot *slot_of(uintptr_t addr)
{
	uint32_t i = (addr >> 4) * 2654435761u % SLOTS;

	while (slots[i].addr && slots[i].addr != addr)
		i = (i + 1) % SLOTS;
	return &slots[i];
}

static void flush(void)
{
	if (fd >= 0 && used && write(fd, out, used) < 0)
		fd = -1;
	used = 0;
}

static int ready(void)
{
	const char *name;

	if (fd == -2) {
		name = getenv("MALLOC_RECORD");
		slots = mmap(NULL, SLOTS * sizeof(*slots),
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
		fd = name && slots != MAP_FAILED ?
			     open(name,
				  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				  0644) :
			     -1;
	}
	return fd >= 0;
}

static void line(const char *sign, uint64_t number)
{
	char text[24];
	size_t n = 0;

	if (used + 32 > sizeof(out))
		flush();
	do
		text[n++] = '0' + number % 10;
	while (number /= 10);
	if (*sign)
		out[used++] = *sign;
	while (n)
		out[used++] = text[--n];
	out[used++] = '\n';
}

static void *got(void *ptr, size_t len)
{
	struct slot *slot;

	if (!ptr)
		return ptr;
	pthread_mutex_lock(&lock);
	if (ready()) {
		slot = slot_of((uintptr_t) ptr);
		slot->addr = (uintptr_t) ptr;
		slot->number = ++count;
		line("", len ? len : 1);
	}
	pthread_mutex_unlock(&lock);
	return ptr;
}

/* Records a free before it happens. Slots stay, with number 0. */
static void gone(void *ptr)
{
	struct slot *slot;

	if (!ptr)
		return;
	pthread_mutex_lock(&lock);
	if (ready()) {
		slot = slot_of((uintptr_t) ptr);
		if (slot->number)
			line("-", count - slot->number + 1);
		slot->number = 0;
	}
	pthread_mutex_unlock(&lock);
}

void *malloc(size_t len)
{
	return got(__libc_malloc(len), len);
}

void *calloc(size_t n, size_t size)
{
	size_t len;
	void *ptr;

	if (__builtin_mul_overflow(n, size, &len)) {
		errno = ENOMEM;
		return NULL;
	}
	ptr = __libc_malloc(len);
	return ptr ? got(memset(ptr, 0, len), len) : NULL;
}

void free(void *ptr)
{
	gone(ptr);
	__libc_free(ptr);
}

void *realloc(void *ptr, size_t len)
{
	gone(ptr);
	return got(__libc_realloc(ptr, len), len);
}

void *memalign(size_t align, size_t len)
{
	return got(__libc_memalign(align, len), len);
}

void *aligned_alloc(size_t align, size_t len)
{
	return memalign(align, len);
}

int posix_memalign(void **ptr, size_t align, size_t len)
{
	*ptr = memalign(align, len);
	return *ptr ? 0 : ENOMEM;
}

static __attribute__((destructor)) void end(void)
{
	pthread_mutex_lock(&lock);
	flush();
	fd = -1;
	pthread_mutex_unlock(&lock);
}
