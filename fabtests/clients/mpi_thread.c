/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: tests threads that all communicate, while another thread makes
 * memory come and go (MPI_THREAD_MULTIPLE).
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define THREADS 3
#define ROUNDS	30

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	int index;
};

static atomic_bool churning;

/* Sends round the ring, on a communicator or with tags of this thread alone. */
static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	uint64_t state = (uint64_t) worker->index + 1, number;
	size_t len,
		limit = mc.max_size < MC_KIB(300) ? mc.max_size : MC_KIB(300);
	struct mc_buf in, out;
	MPI_Request req;
	MPI_Status status;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		len = mc_random(&state, i & 1 ? limit : 200);
		number = (uint64_t) (worker->index * ROUNDS + i);
		mc_buf_get(&out, len, 0);
		mc_buf_get(&in, len, 1);
		mc_fill(out.data, len, mc_seed(mc.rank, number));
		MPI_Irecv(in.data, (int) len, MPI_BYTE, mc.prev, worker->index,
			  worker->comm, &req);
		MPI_Send(out.data, (int) len, MPI_BYTE, mc.next, worker->index,
			 worker->comm);
		MPI_Wait(&req, &status);
		mc_check_status(&status, mc.prev, worker->index, len);
		mc_check(in.data, len, mc_seed(mc.prev, number), "message");
		mc_buf_put(&out);
		mc_buf_put(&in);
	}
	return NULL;
}

/* Frees address ranges, which other threads' allocations get again. */
static void *churn_run(void *arg)
{
	uint64_t state = 99;
	size_t len;
	void *p;

	while (atomic_load(&churning)) {
		len = MC_KIB(64) + mc_random(&state, MC_KIB(300));
		p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			continue;
		memset(p, 0xee, len);
		munmap(p, len);
	}
	return NULL;
}

static void run_threads(bool own_comm, bool churn)
{
	struct worker workers[THREADS];
	pthread_t churner;
	int i;

	atomic_store(&churning, true);
	if (churn)
		churn = !pthread_create(&churner, NULL, churn_run, NULL);
	for (i = 0; i < THREADS; i++) {
		workers[i].index = i;
		workers[i].comm = MPI_COMM_WORLD;
		if (own_comm)
			MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
	}
	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&workers[i].thread, NULL, worker_run,
				   &workers[i]))
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&churning, false);
	if (churn)
		pthread_join(churner, NULL);
	for (i = 0; own_comm && i < THREADS; i++)
		MPI_Comm_free(&workers[i].comm);
}

static void test_threads(void)
{
	run_threads(false, false);
}

static void test_thread_comms(void)
{
	run_threads(true, false);
}

static void test_thread_churn(void)
{
	run_threads(true, true);
}

const struct mc_test mc_thread_tests[] = {
	{ .name = "threads", .run = test_threads, .threads = true },
	{ .name = "thread_comms", .run = test_thread_comms, .threads = true },
	{ .name = "thread_churn", .run = test_thread_churn, .threads = true },
	{ .name = NULL },
};
