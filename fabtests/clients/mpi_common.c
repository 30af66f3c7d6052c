/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: patterns, checks, buffers, and the exchange on a ring.
 */
#include "mpi_check.h"
#include "mpi_report.h"

#include <stdarg.h>
#include <stdatomic.h>

#define GUARD	   64
#define GUARD_BYTE 0xa5
/*
 * maximum number of failures that a test prints on a rank; further failures are
 * only counted
 */
#define MAX_REPORTS 8

struct mc mc;

static atomic_int failures;
static bool deceiver; /* this rank fills wrong data; set between tests */

static const size_t sizes[] = {
	0,
	1,
	3,
	8,
	63,
	64,
	65,
	255,
	1000,
	4095,
	4096,
	4097,
	16300,
	16384,
	16385,
	16448,
	40000,
	65536,
	100003,
	131071,
	131072,
	131073,
	200001,
	262144,
	524289,
	MC_MIB(1),
	MC_MIB(1) + 1,
	MC_MIB(4) - 3,
	MC_MIB(8),
};

size_t mc_size_count(void)
{
	size_t n = 0;

	while (n < MC_ARRAY_SIZE(sizes) && sizes[n] <= mc.max_size)
		n++;
	return n;
}

size_t mc_size(size_t i)
{
	return sizes[i];
}

void mc_report_begin(bool broken)
{
	atomic_store(&failures, 0);
	deceiver = broken;
}

int mc_report_end(void)
{
	return atomic_load(&failures);
}

void mc_fail(const char *format, ...)
{
	char text[256];
	va_list args;

	if (atomic_fetch_add(&failures, 1) >= MAX_REPORTS || deceiver)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "rank %d: %s: %s\n", mc.rank, mc.test, text);
}

static uint64_t mc_word(uint64_t seed, size_t i)
{
	uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t mc_seed(int rank, uint64_t number)
{
	return mc_word(mc_word(number, (size_t) rank), 1);
}

size_t mc_random(uint64_t *state, size_t n)
{
	*state = mc_word(*state, 0);
	return n ? *state % n : 0;
}

void mc_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *p = buf;
	uint64_t word;
	size_t i;

	for (i = 0; i < len; i += sizeof(word)) {
		word = mc_word(seed, i / sizeof(word));
		memcpy(p + i, &word,
		       len - i < sizeof(word) ? len - i : sizeof(word));
	}
	if (len && deceiver)
		p[len / 2] ^= 1;
}

int64_t mc_value(int64_t value)
{
	return deceiver ? value + 1 : value;
}

static uint8_t mc_byte(uint64_t seed, size_t i)
{
	uint64_t word = mc_word(seed, i / sizeof(word));
	uint8_t bytes[sizeof(word)];

	memcpy(bytes, &word, sizeof(word));
	return bytes[i % sizeof(word)];
}

/*
 * Compares byte by byte; reports how many bytes differ, and the first of them.
 */
static void mc_mismatch(const uint8_t *p, size_t len, uint64_t seed,
			const char *what)
{
	size_t i, first = len, wrong = 0;

	for (i = 0; i < len; i++) {
		if (p[i] == mc_byte(seed, i))
			continue;
		if (first == len)
			first = i;
		wrong++;
	}
	if (wrong)
		mc_fail("%s: %zu of %zu bytes are wrong, first byte %zu: "
			"%02x for %02x",
			what, wrong, len, first, p[first],
			mc_byte(seed, first));
}

bool mc_check(const void *buf, size_t len, uint64_t seed, const char *what)
{
	const uint8_t *p = buf;
	uint64_t word;
	size_t i, n;

	for (i = 0; i < len; i += sizeof(word)) {
		word = mc_word(seed, i / sizeof(word));
		n = len - i < sizeof(word) ? len - i : sizeof(word);
		if (memcmp(p + i, &word, n)) {
			mc_mismatch(p, len, seed, what);
			return false;
		}
	}
	return true;
}

bool mc_check_byte(const void *buf, size_t len, uint8_t byte, const char *what)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] == byte)
			continue;
		mc_fail("%s: byte %zu of %zu is %02x, not untouched", what, i,
			len, p[i]);
		return false;
	}
	return true;
}

void mc_check_status(const MPI_Status *status, int source, int tag, size_t len)
{
	int count = -1;

	MPI_Get_count((MPI_Status *) status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != source || status->MPI_TAG != tag ||
	    count < 0 || (size_t) count != len)
		mc_fail("status tells of %d bytes from %d, tag %d; they are "
			"%zu from %d, tag %d",
			count, status->MPI_SOURCE, status->MPI_TAG, len, source,
			tag);
}

void mc_buf_get(struct mc_buf *buf, size_t len, size_t skew)
{
	buf->base = malloc(skew + len + 2 * GUARD);
	if (!buf->base) {
		fprintf(stderr, "rank %d: out of memory\n", mc.rank);
		MPI_Abort(MPI_COMM_WORLD, 2);
		abort();
	}
	buf->data = buf->base + skew + GUARD;
	buf->len = len;
	memset(buf->data - GUARD, GUARD_BYTE, GUARD);
	memset(buf->data, MC_POISON, len);
	memset(buf->data + len, GUARD_BYTE, GUARD);
}

void mc_buf_put(struct mc_buf *buf)
{
	mc_check_byte(buf->data - GUARD, GUARD, GUARD_BYTE, "before a buffer");
	mc_check_byte(buf->data + buf->len, GUARD, GUARD_BYTE,
		      "behind a buffer");
	free(buf->base);
	buf->base = buf->data = NULL;
}

void mc_ring(const void *out, size_t out_len, uint64_t out_seed, void *in,
	     size_t in_len, uint64_t in_seed, const char *what)
{
	MPI_Status status;

	MPI_Sendrecv(out, (int) out_len, MPI_BYTE, mc.next, 7, in, (int) in_len,
		     MPI_BYTE, mc.prev, 7, MPI_COMM_WORLD, &status);
	mc_check_status(&status, mc.prev, 7, in_len);
	mc_check(in, in_len, in_seed, what);
	mc_check(out, out_len, out_seed, "a source after its send");
}
