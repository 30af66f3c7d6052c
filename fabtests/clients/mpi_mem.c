/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: tests memory that comes and goes between transfers. A registration
 * that outlives its memory transfers wrong data in these tests: the tests use
 * addresses again, with other pages behind the addresses. Wrong data can be
 * seen over a core that needs registrations (verbs), not over a core without
 * registrations (tcp).
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 12

static size_t large(size_t want)
{
	return want < mc.max_size ? want : mc.max_size;
}

static void *map_at(void *addr, size_t len, int flags)
{
	void *p = mmap(addr, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED) {
		mc_fail("mmap: out of memory");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return p;
}

/*
 * Fills the buffer out with new data and sends the data to the next rank;
 * receives from the rank before into in, and checks the received data.
 */
static void exchange(void *out, void *in, size_t len, uint64_t number,
		     const char *what)
{
	mc_fill(out, len, mc_seed(mc.rank, number));
	memset(in, MC_POISON, len);
	mc_ring(out, len, mc_seed(mc.rank, number), in, len,
		mc_seed(mc.prev, number), what);
}

/* malloc and free give pages back to the system in each round. */
static void test_malloc(void)
{
	uint64_t state = 1;
	size_t len;
	uint8_t *in, *out;
	int i;

	mallopt(M_MMAP_THRESHOLD, 65536);
	for (i = 0; i < 3 * ROUNDS; i++) {
		/* all ranks use the same sizes */
		len = 1 + mc_random(&state, large(MC_MIB(2)));
		out = malloc(len);
		in = malloc(len);
		if (!out || !in)
			MPI_Abort(MPI_COMM_WORLD, 2);
		exchange(out, in, len, (uint64_t) i, "memory from malloc");
		free(out);
		free(in);
	}
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}

/*
 * Sends from an address that gets new pages each time: the old pages are
 * unmapped before, or replaced.
 */
static void test_remap(void)
{
	size_t len = large(MC_MIB(1)), all = 2 * len;
	uint8_t *p = map_at(NULL, all, 0);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		exchange(p, p + len, len, (uint64_t) i, "memory mapped again");
		if (i & 1)
			munmap(p, all);
		map_at(p, all, MAP_FIXED);
	}
	munmap(p, all);
}

/*
 * Only some pages in the middle of a buffer that was sent before are replaced.
 */
static void test_hole(void)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t len = large(64 * page) / page * page, half = len / 2;
	uint8_t *p = map_at(NULL, 2 * len, 0), *in = p + len;
	int i;

	if (half < page)
		return;
	half = half / page * page;
	for (i = 0; i < ROUNDS; i++) {
		exchange(p, in, len, (uint64_t) i, "memory with new pages");
		map_at(p + half, page, MAP_FIXED);
		munmap(in + half, page);
		map_at(in + half, page, MAP_FIXED);
	}
	munmap(p, 2 * len);
}

/* Pages are discarded, and are read as zeros afterwards. */
static void test_discard(void)
{
	size_t len = large(MC_MIB(1));
	uint8_t *p = map_at(NULL, 2 * len, 0);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		exchange(p, p + len, len, (uint64_t) i, "discarded memory");
		madvise(p, 2 * len, MADV_DONTNEED);
	}
	munmap(p, 2 * len);
}

/* Pages are moved to another address, and other pages take their place. */
static void test_move(void)
{
	size_t len = large(MC_MIB(1)), all = 2 * len;
	uint8_t *p = map_at(NULL, all, 0), *q = map_at(NULL, all, 0);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		exchange(p, p + len, len, (uint64_t) i, "memory at home");
		/* the pages of p are at q now; both addresses are used next */
		if (mremap(p, all, all, MREMAP_MAYMOVE | MREMAP_FIXED, q) !=
		    q) {
			mc_fail("mremap failed");
			break;
		}
		exchange(q, q + len, len, (uint64_t) i + 100, "moved memory");
		map_at(p, all, MAP_FIXED);
	}
	munmap(p, all);
	munmap(q, all);
}

/* Buffers grow by realloc, which moves their pages. */
static void test_realloc(void)
{
	size_t len, limit = large(MC_MIB(4));
	uint8_t *out = NULL, *in = NULL;
	uint64_t number = 0;

	for (len = 3000; len <= limit; len += len / 2) {
		out = realloc(out, len);
		in = realloc(in, len);
		if (!out || !in)
			MPI_Abort(MPI_COMM_WORLD, 2);
		exchange(out, in, len, number++, "memory from realloc");
	}
	free(out);
	free(in);
}

/* Memory that cannot be written to can be sent. */
static void test_readonly(void)
{
	size_t i, len, count = mc_size_count();
	struct mc_buf in;
	uint8_t *p;

	for (i = 1; i < count; i++) {
		len = mc_size(i);
		p = map_at(NULL, len, 0);
		mc_buf_get(&in, len, 0);
		mc_fill(p, len, mc_seed(mc.rank, i));
		mprotect(p, len, PROT_READ);
		mc_ring(p, len, mc_seed(mc.rank, i), in.data, len,
			mc_seed(mc.prev, i), "read-only memory");
		munmap(p, len);
		mc_buf_put(&in);
	}
}

static void *map_file(size_t len)
{
	char path[] = "/tmp/mpi_check.XXXXXX";
	int fd = mkstemp(path);
	void *p = MAP_FAILED;

	if (fd >= 0) {
		unlink(path);
		if (!ftruncate(fd, (off_t) len))
			p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);
		close(fd);
	}
	return p;
}

/* Transfers memory of other kinds: shared, of a file, on the stack, static. */
static void test_kinds(void)
{
	static uint8_t fixed[2][50000];
	uint8_t stack[2][50000];
	size_t len = large(MC_MIB(1)), little = large(50000);
	uint8_t *shared, *file;
	int i;

	shared = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	file = map_file(2 * len);
	for (i = 0; i < 4; i++) {
		exchange(stack[0], stack[1], little, (uint64_t) i, "stack");
		exchange(fixed[0], fixed[1], little, (uint64_t) i, "static");
		if (shared != MAP_FAILED)
			exchange(shared, shared + len, len, (uint64_t) i,
				 "shared memory");
		if (file != MAP_FAILED)
			exchange(file, file + len, len, (uint64_t) i,
				 "memory of a file");
	}
	if (shared != MAP_FAILED)
		munmap(shared, 2 * len);
	if (file != MAP_FAILED)
		munmap(file, 2 * len);
}

/*
 * Sends pieces of one buffer: in front of, behind, across and inside the part
 * that was sent before.
 */
static void test_overlap(void)
{
	size_t all = large(MC_MIB(2)), len, at;
	uint64_t state = 42;
	struct mc_buf in, out;
	int i;

	mc_buf_get(&out, all, 1);
	mc_buf_get(&in, all, 1);
	for (i = 0; i < 4 * ROUNDS; i++) {
		at = mc_random(&state, all);
		len = mc_random(&state, all - at + 1);
		memset(in.data, MC_POISON, all);
		exchange(out.data + at, in.data + at, len, (uint64_t) i,
			 "part of a buffer");
		mc_check_byte(in.data, at, MC_POISON, "before a part");
		mc_check_byte(in.data + at + len, all - at - len, MC_POISON,
			      "behind a part");
	}
	mc_buf_put(&out);
	mc_buf_put(&in);
}

const struct mc_test mc_mem_tests[] = {
	{ .name = "malloc", .run = test_malloc },
	{ .name = "remap", .run = test_remap },
	{ .name = "hole", .run = test_hole },
	{ .name = "discard", .run = test_discard },
	{ .name = "move", .run = test_move },
	{ .name = "realloc", .run = test_realloc },
	{ .name = "readonly", .run = test_readonly },
	{ .name = "kinds", .run = test_kinds },
	{ .name = "overlap", .run = test_overlap },
	{ .name = NULL },
};
