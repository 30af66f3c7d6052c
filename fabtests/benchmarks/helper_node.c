/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * helper_node: measures costs and savings of helper threads for the processes
 * of a node, as li2011 does (section 5, tables 1 to 4, figure 8). bench.sh runs
 * helper_node.
 *
 *	helper_node -p CORE [-I TURNS] [STEPS]
 *
 * Two, four and eight processes run at once, each with both ends of a
 * connection. Each process sends three buffers of 256 KiB in turn; after each
 * message the process computes for some 10 ms (busy), or waits for 20 ms
 * (idle). With STEPS a process computes that number of steps, and there is no
 * idle load. Runs without a helper, and with a helper by each value of
 * FI_OFI_MRRC_HELPER_NODE, alternate in rounds.
 *
 * Prints "node LOAD PROCESSES HELPERS MS MEAN LATE ELAPSED". MS: processor time
 * of all threads for all messages and the computing; MEAN: registered bytes of
 * all processes in percent of their buffers; LATE: uses that found their buffer
 * deregistered; ELAPSED: ms from the first message of any process to the last.
 * For four processes, lines "bytes ROUND LOAD HELPERS MS PERCENT" come before
 * the line "node", with the registered bytes over time.
 */
#include "ft_bench.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MOST	 8 /* processes */
#define BUFFERS	 3
#define LEN	 ((size_t) 256 << 10)
#define TURNS	 8
#define WORK	 24000000 /* steps of computing, some 10 ms */
#define PAUSE_US 20000
#define CHUNKS	 4 /* parts of WORK and PAUSE_US */
#define LOOK_US	 10000
#define ROUNDS	 3

static const struct helpers {
	const char *name, *helper, *node;
} helpers[] = {
	{ "none", "never", NULL },
	{ "conservative", "predict", "conservative" },
	{ "aggressive", "predict", "aggressive" },
	{ "auto", "predict", "auto" },
};
#define HELPERS (sizeof(helpers) / sizeof(helpers[0]))

static struct shared {
	atomic_uint ready, over;
	atomic_bool go, quit;
	atomic_ulong late, cpu_us, bytes[MOST];
	double begin[MOST], end[MOST]; /* us */
	pid_t pid[MOST];
} * shared;

static unsigned turns, work = WORK;

/* ---- a process ----------------------------------------------------------- */

static void compute(void)
{
	volatile unsigned i;

	for (i = 0; i < work / CHUNKS; i++)
		;
}

static void message(struct ft_pair *pair, char *from, char *to, void *to_desc)
{
	struct ft_comp comp;

	FT_POST(&pair->s, fi_recv(pair->s.ep, to, LEN, to_desc, FT_ANY, to));
	FT_POST(&pair->c,
		fi_send(pair->c.ep, from, LEN, NULL, pair->c.to, from));
	ft_wait(&pair->c, FT_TX, &comp);
	ft_wait(&pair->s, FT_RX, &comp);
}

static void wait_for(const atomic_bool *flag)
{
	while (!atomic_load(flag))
		usleep(1000);
}

static void process(unsigned number, const struct helpers *with, bool busy)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	struct fid_mr *mr;
	char *buf[BUFFERS], *to;
	uint64_t cpu;
	unsigned i, j;

	setenv("FI_OFI_MRRC_HELPER", with->helper, 1);
	if (with->node)
		setenv("FI_OFI_MRRC_HELPER_NODE", with->node, 1);
	ft_start("helper_node");
	ft_pair_open(&pair, &attr);
	to = ft_map(NULL, LEN);
	mr = ft_reg(&pair.dom[0], to, LEN, FI_SEND | FI_RECV);
	for (i = 0; i < BUFFERS; i++) {
		buf[i] = ft_map(NULL, LEN);
		memset(buf[i], 1, LEN);
	}
	atomic_fetch_add(&shared->ready, 1);
	wait_for(&shared->go);
	shared->begin[number] = ft_time_us();
	cpu = ft_cpu_us();
	for (i = 0; i < turns * BUFFERS; i++) {
		ft_stage("message %u", i);
		message(&pair, buf[i % BUFFERS], to, fi_mr_desc(mr));
		for (j = 0; j < CHUNKS; j++) {
			ft_stats(&pair.dom[1], &st);
			atomic_store(&shared->bytes[number], st.bytes);
			if (busy)
				compute();
			else
				usleep(PAUSE_US / CHUNKS);
		}
	}
	atomic_fetch_add(&shared->cpu_us, ft_cpu_us() - cpu);
	shared->end[number] = ft_time_us();
	atomic_fetch_add(&shared->late, ft_counter(&pair.dom[1], "late_uses"));
	atomic_fetch_add(&shared->over, 1);
	wait_for(&shared->quit);
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
}

/* ---- the node ------------------------------------------------------------ */

static double all_bytes(unsigned count)
{
	double bytes = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		bytes += (double) atomic_load(&shared->bytes[i]);
	return bytes;
}

/* Returns ms from the first message of any process to the last one. */
static double elapsed_ms(unsigned count)
{
	double begin = shared->begin[0], end = shared->end[0];
	unsigned i;

	for (i = 1; i < count; i++) {
		if (shared->begin[i] < begin)
			begin = shared->begin[i];
		if (shared->end[i] > end)
			end = shared->end[i];
	}
	return (end - begin) / 1e3;
}

static void spawn(unsigned count, const struct helpers *with, bool busy)
{
	unsigned i;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	for (i = 0; i < count; i++) {
		pid = fork();
		FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			/* the kernel kills the child when its parent ends */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			process(i, with, busy);
			exit(0);
		}
		shared->pid[i] = pid;
	}
}

static void ended(pid_t pid)
{
	int status;

	FT_CHECK(waitpid(pid, &status, 0) == pid && !status, "status %#x",
		 status);
}

/* Checks that no process has failed: a failed process is never ready. */
static void check_alive(void)
{
	int status;
	const pid_t pid = waitpid(-1, &status, WNOHANG);

	FT_CHECK(pid <= 0, "a process ended: %#x", status);
}

static void node(unsigned count, const struct helpers *with, bool busy,
		 unsigned round)
{
	const double full = (double) count * BUFFERS * LEN;
	double begin, last, now, percent = 0, area = 0;
	unsigned i;

	spawn(count, with, busy);
	while (atomic_load(&shared->ready) < count) {
		usleep(10000);
		check_alive();
	}
	begin = last = ft_time_us();
	atomic_store(&shared->go, true);
	while (atomic_load(&shared->over) < count) {
		usleep(LOOK_US);
		check_alive();
		now = ft_time_us();
		area += percent * (now - last);
		percent = 100 * all_bytes(count) / full;
		last = now;
		if (count == 4)
			printf("bytes %u %s %s %.1f %.1f\n", round,
			       busy ? "busy" : "idle", with->name,
			       (now - begin) / 1e3, percent);
	}
	printf("node %s %u %s %.1f %.1f %lu %.3f\n", busy ? "busy" : "idle",
	       count, with->name, (double) atomic_load(&shared->cpu_us) / 1e3,
	       area / (last - begin), atomic_load(&shared->late),
	       elapsed_ms(count));
	atomic_store(&shared->quit, true);
	for (i = 0; i < count; i++)
		ended(shared->pid[i]);
}

int main(int argc, char **argv)
{
	unsigned count, i, with, rounds, loads = 2;
	int op;

	while ((op = getopt(argc, argv, FT_OPTS)) != -1)
		ft_parse_opt(argv[0], op, optarg);
	turns = ft_iters(TURNS);
	if (argv[optind]) {
		work = strtoul(argv[optind], NULL, 10);
		loads = 1;
	}
	rounds = turns < TURNS ? 1 : ROUNDS;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	for (i = 0; i < loads * 3 * rounds * HELPERS; i++) {
		/* runs with different helpers take turns */
		with = i % HELPERS;
		count = 2U << i / HELPERS / rounds % 3;
		node(count, &helpers[with], i < 3 * rounds * HELPERS,
		     i / HELPERS % rounds);
	}
	return 0;
}
