/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * late_bench: measures the ways of late_ways.h in turn, where data is ready at
 * the sender, and the receiver shows its buffers later.
 *
 * Sender and receiver are two threads of one process; the way RTR has another
 * process, since ofi_rxm reads its environment variables once. Buffers are
 * registered before the measurement. The receiver polls its queues, except from
 * the time when the data is ready until the receiver shows its buffers. The
 * sender either polls its queues all the time, or computes, also before its
 * data is ready, and looks at its queues every SLICE_US.
 *
 * Prints a line for each way: the median time (us) where the sender polls, the
 * median time where the sender computes, and the processor time that the
 * computing sender has for itself, in % of the time from its post to its last
 * completion. The time begins when the data is ready and the receiver begins to
 * show its buffers, and ends when the receiver has all data.
 *
 * With -q several buffers at once have less than 1 MiB each, and RTR is left
 * out, since ofi_rxm (1.17) now and then ends RTR with an error over Soft-RoCE.
 */
#include "late_ways.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#define ROUNDS	   9
#define ROUNDS_MAX 64
#define SLICE_US   1000
/* us that the sides poll or compute before the data is ready */
#define LEAD_US 2000

struct result {
	double latency, computed;
};

static sem_t go;
static _Atomic double ready_at, shown_at, seen_at;
static atomic_bool prepared, finished, received_all;

struct progress {
	unsigned tx, rx;
};

static void make_progress(int side, struct progress *p)
{
	const struct late_way *way = &late_ways[late_job.way];
	struct ft_ep *ep = late_ep(side);
	struct ft_comp comp;

	ft_poll(ep);
	while (ft_take(ep, FT_TX, &comp)) {
		FT_CHECK(!comp.err, "%s: error %d", way->name, comp.err);
		p->tx++;
	}
	while (ft_take(ep, FT_RX, &comp)) {
		FT_CHECK(!comp.err, "%s: error %d", way->name, comp.err);
		if (side == LATE_SENDER && way->asked)
			way->asked(&comp);
		if (side == LATE_RECEIVER && way->heard)
			way->heard(p->rx, &comp);
		p->rx++;
	}
	if (side == LATE_SENDER && way->look)
		way->look();
}

/* Posts receives before the other side may send. */
static void ahead(int side)
{
	unsigned i;

	/*
	 * FT_POST() reads the machine's load now and then: let ft_limit_us()
	 * read the load here, outside the measured time
	 */
	ft_limit_us();
	for (i = 0; late_ways[late_job.way].ahead && i < late_job.depth; i++)
		late_ways[late_job.way].ahead(side, i);
}

static void spin_until(double us)
{
	while (ft_time_us() < us)
		;
}

static void *receiver_main(void *arg)
{
	struct progress p;
	unsigned i;

	for (;;) {
		while (sem_wait(&go))
			;
		p = (struct progress){ 0 };
		ahead(LATE_RECEIVER);
		atomic_store(&prepared, true);
		while (!atomic_load(&ready_at) ||
		       ft_time_us() < atomic_load(&ready_at)) {
			make_progress(LATE_RECEIVER, &p);
			sched_yield();
		}
		spin_until(atomic_load(&ready_at) + late_job.late_us);
		atomic_store(&shown_at, ft_time_us());
		for (i = 0; i < late_job.depth; i++)
			late_ways[late_job.way].show(i);
		while (p.rx < late_job.depth) {
			make_progress(LATE_RECEIVER, &p);
			sched_yield();
		}
		atomic_store(&seen_at, ft_time_us());
		atomic_store(&received_all, true);
		while (!atomic_load(&finished)) {
			make_progress(LATE_RECEIVER, &p);
			sched_yield();
		}
		atomic_store(&prepared, false);
	}
	return arg;
}

/* Computes for @us; returns the processor time that this thread got. */
static uint64_t compute(uint64_t us)
{
	uint64_t begin = ft_thread_us();

	spin_until(ft_time_us() + us);
	return ft_thread_us() - begin;
}

/* Tells the receiver when the data is ready. Returns that time. */
static double begin(struct progress *p)
{
	double at;

	ahead(LATE_SENDER);
	atomic_store(&ready_at, 0);
	atomic_store(&finished, false);
	atomic_store(&received_all, false);
	sem_post(&go);
	while (!atomic_load(&prepared)) {
		make_progress(LATE_SENDER, p);
		sched_yield();
	}
	at = ft_time_us() + LEAD_US;
	atomic_store(&ready_at, at);
	while (ft_time_us() < at && !late_job.computes) {
		make_progress(LATE_SENDER, p);
		sched_yield();
	}
	spin_until(at);
	return ft_time_us();
}

static void end(struct progress *p)
{
	while (!atomic_load(&received_all)) {
		make_progress(LATE_SENDER, p);
		sched_yield();
	}
	late_check();
	atomic_store(&finished, true);
	while (atomic_load(&prepared))
		sched_yield();
}

static struct result transaction(const struct late_job *j)
{
	struct progress p = { 0 };
	static uint64_t turn;
	double ready, shown, took;
	uint64_t computed = 0;
	unsigned i;

	late_job = *j;
	late_job.turn = ++turn;
	late_fill();
	ready = begin(&p);
	for (i = 0; i < late_job.depth; i++)
		late_ways[late_job.way].post(i);
	if (late_job.computes)
		computed = compute(1 + ft_rand() % SLICE_US);
	for (;;) {
		make_progress(LATE_SENDER, &p);
		if (p.tx == late_job.depth)
			break;
		if (late_job.computes)
			computed += compute(SLICE_US);
		else
			sched_yield();
	}
	took = ft_time_us() - ready;
	end(&p);
	shown = atomic_load(&shown_at);
	return (struct result){
		.latency =
			atomic_load(&seen_at) - (ready > shown ? ready : shown),
		.computed = 100 * computed / took,
	};
}

/* ---- the process that makes the rendezvous with RTR ---------------------- */

static int to_rtr[2], from_rtr[2]; /* pipes */

static struct result run(const struct late_job *j)
{
	struct result result;

	if (j->way != LATE_RTR)
		return transaction(j);
	FT_CHECK(write(to_rtr[1], j, sizeof(*j)) == sizeof(*j) &&
			 read(from_rtr[0], &result, sizeof(result)) ==
				 sizeof(result),
		 "the other process has ended");
	return result;
}

static void rtr_main(void)
{
	struct result result;
	struct late_job j;

	while (read(to_rtr[0], &j, sizeof(j)) == sizeof(j)) {
		result = transaction(&j);
		FT_CHECK(write(from_rtr[1], &result, sizeof(result)) ==
				 sizeof(result),
			 "write");
	}
	exit(0);
}

/* ---- cells --------------------------------------------------------------- */

static bool quick;

static bool left_out(unsigned way)
{
	return quick && way == LATE_RTR;
}

static void measure(unsigned late_us, size_t len, unsigned depth)
{
	/* index 0: the sender polls, index 1: the sender computes */
	static double latency[2][LATE_WAYS][ROUNDS_MAX];
	static double computed[LATE_WAYS][ROUNDS_MAX];
	const unsigned rounds = ft_iters(ROUNDS);
	struct late_job j = { .depth = depth, .late_us = late_us, .len = len };
	struct result result;
	unsigned i, k;

	FT_CHECK(rounds <= ROUNDS_MAX, "at most %u rounds", ROUNDS_MAX);
	ft_stage("%u us late, %zu bytes, depth %u", late_us, len, depth);
	for (i = 0; i < rounds; i++) {
		j.whole = !i;
		for (k = 0; k < 2 * LATE_WAYS; k++) {
			j.way = (i + k) % LATE_WAYS;
			j.computes = k >= LATE_WAYS;
			if (left_out(j.way))
				continue;
			result = run(&j);
			latency[j.computes][j.way][i] = result.latency;
			/*
			 * the last result of a round is from a sender that
			 * computes
			 */
			computed[j.way][i] = result.computed;
		}
	}
	for (k = 0; k < LATE_WAYS; k++) {
		if (left_out(k))
			continue;
		printf("%5u %7zu %2u %-6s %9.1f %9.1f %5.1f\n", late_us, len,
		       depth, late_ways[k].name,
		       ft_median(latency[0][k], rounds),
		       ft_median(latency[1][k], rounds),
		       ft_median(computed[k], rounds));
	}
	fflush(stdout);
}

/* Returns true in the new process. */
static bool start_rtr(void)
{
	pid_t pid;

	FT_CHECK(!pipe(to_rtr) && !pipe(from_rtr), "pipe");
	pid = fork();
	FT_CHECK(pid >= 0, "fork");
	if (!pid) {
		close(to_rtr[1]);
		setenv("FI_OFI_RXM_USE_RNDV_WRITE", "1", 1);
		alarm(ft_opts.timeout);
	} else {
		close(to_rtr[0]);
		close(from_rtr[1]);
	}
	return !pid;
}

int main(int argc, char **argv)
{
	static const unsigned late_us[] = { 0, 10, 100, 1000, 10000 };
	static const size_t lens[] = { 64, 4096, 65536, LATE_LEN_MAX };
	static const unsigned depths[] = { 1, LATE_DEPTH_MAX };
	pthread_t receiver;
	bool is_rtr;
	unsigned i, k, d;
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "q")) != -1) {
		if (op == 'q')
			quick = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	ft_start(argv[0]);
	/* longer messages use a rendezvous */
	setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 1);
	setenv("FI_OFI_RXM_SAR_LIMIT", "0", 1);
	is_rtr = start_rtr();
	late_open(is_rtr);
	sem_init(&go, 0, 0);
	FT_CHECK(!pthread_create(&receiver, NULL, receiver_main, NULL),
		 "pthread_create");
	if (is_rtr)
		rtr_main();
	printf("%5s %7s %2s %-6s %9s %9s %5s\n", "late", "bytes", "n", "way",
	       "polls", "computes", "free%");
	for (i = 0; i < sizeof(late_us) / sizeof(*late_us); i++)
		for (k = 0; k < sizeof(lens) / sizeof(*lens); k++)
			for (d = 0; d < 2; d++)
				if (!quick || !d || lens[k] < LATE_LEN_MAX)
					measure(late_us[i], lens[k], depths[d]);
	return 0;
}
