/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: declarations that the tests of an MPI library over ofi_mrrc share.
 * mpi_check needs MPI only, so each library's own compiler wrapper can build
 * it.
 *
 * Every transferred byte follows from a seed that sender and receiver know, and
 * every buffer lies between guard bytes. A test runs on all ranks, reports
 * errors by mc_fail() and returns.
 *
 * Any thread may call mc_fill, mc_check, mc_fail and the functions of buffers.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MC_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MC_KIB(n)	 ((size_t) (n) << 10)
#define MC_MIB(n)	 ((size_t) (n) << 20)

struct mc {
	int rank;
	int ranks;
	int next; /* neighbours of this rank on the ring of ranks */
	int prev;
	int thread_level; /* thread level that the MPI library provides */
	size_t max_size;  /* maximum size of a message */
	const char *test; /* name of the running test */
};

extern struct mc mc;

struct mc_test {
	const char *name;
	void (*run)(void);
	bool threads; /* the test needs MPI_THREAD_MULTIPLE */
	bool rma;
	bool local; /* each rank runs the test by itself */
};

/*
 * Message sizes around the limits of ofi_rxm and tcp, none above mc.max_size.
 */
size_t mc_size_count(void);
size_t mc_size(size_t i);

/* Returns a seed for one message from its sender and its number. */
uint64_t mc_seed(int rank, uint64_t number);

/* Returns a random number below n. */
size_t mc_random(uint64_t *state, size_t n);

/*
 * mc_fill() fills a buffer as its sender does, mc_check() checks the buffer as
 * its receiver does. With -b rank 0 gets one bit wrong, and the other ranks
 * have to notice the wrong bit.
 */
void mc_fill(void *buf, size_t len, uint64_t seed);
bool mc_check(const void *buf, size_t len, uint64_t seed, const char *what);
/* Checks that all bytes of a buffer have the value @byte. */
bool mc_check_byte(const void *buf, size_t len, uint8_t byte, const char *what);
/* Value to send, for a test that fills no buffer; wrong on rank 0 with -b. */
int64_t mc_value(int64_t value);

void mc_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Checks that a status has this source, tag and length. */
void mc_check_status(const MPI_Status *status, int source, int tag, size_t len);

/* Memory from malloc between guards, at an odd address if skew is set. */
#define MC_POISON 0x5a
struct mc_buf {
	uint8_t *base;
	uint8_t *data;
	size_t len;
};

void mc_buf_get(struct mc_buf *buf, size_t len, size_t skew);
void mc_buf_put(struct mc_buf *buf);

/*
 * Sends to the next rank of the ring, and checks the previous rank's message.
 */
void mc_ring(const void *out, size_t out_len, uint64_t out_seed, void *in,
	     size_t in_len, uint64_t in_seed, const char *what);

/* Tables of tests, each ended by an entry without a name. */
extern const struct mc_test mc_pt2pt_tests[];
extern const struct mc_test mc_match_tests[];
extern const struct mc_test mc_mem_tests[];
extern const struct mc_test mc_rma_tests[];
extern const struct mc_test mc_thread_tests[];

#endif /* MPI_CHECK_H */
