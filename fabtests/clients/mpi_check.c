/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: checks the data that an MPI program gets. Runs each test on all
 * ranks; rank 0 writes a line for each test, and "N passed, N failed, N
 * skipped". With -p only the tests with threads run, as some libraries offer
 * less where MPI_THREAD_MULTIPLE is asked for.
 *
 * mpirun -n 2 mpi_check [-l] [-t LIST] [-x LIST] [-m BYTES] [-T SECONDS] [-b] [-p]
 */
#include "mpi_check.h"
#include "mpi_report.h"

#include <signal.h>
#include <unistd.h>

#define DEADLINE 170 /* seconds, for all tests together */

static bool mc_broken; /* -b: the tests have to fail */

static const struct mc_test *const groups[] = {
	mc_pt2pt_tests, mc_match_tests,	 mc_mem_tests,
	mc_rma_tests,	mc_thread_tests,
};

static bool parallel; /* -p: run the tests with threads */

static const char *only, *except;
static int passed, failed, skipped;

/* True if a list with commas has this name in it. */
static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = list; p && *p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, name, len) && (!p[len] || p[len] == ','))
			return true;
	}
	return false;
}

static bool wanted(const struct mc_test *test)
{
	if (test->threads != parallel || (only && !listed(only, test->name)))
		return false;
	return !listed(except, test->name) &&
	       !(test->rma && listed(except, "rma"));
}

static void on_alarm(int signum)
{
	static const char text[] = "mpi_check: no end within the deadline: ";

	if (write(2, text, sizeof(text) - 1) < 0 ||
	    write(2, mc.test, strlen(mc.test)) < 0 || write(2, "\n", 1) < 0)
		_exit(3);
	_exit(2);
}

/* With -b the messages of mc_fail() are expected, and are not printed. */
static bool run(const struct mc_test *test)
{
	double start = MPI_Wtime();
	int mine, all = 0;

	mc.test = test->name;
	mc_report_begin(mc_broken && mc.rank == 0);
	test->run();
	mine = mc_report_end();
	/* the other ranks must find the error that rank 0 made */
	if (mc_broken && mc.rank == 0 && !test->local)
		mine = 0;
	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (mc.rank == 0)
		printf("%s %-18s %6.2f s\n", all ? "FAIL" : "PASS", test->name,
		       MPI_Wtime() - start);
	fflush(stdout);
	return !all;
}

static void run_all(void)
{
	const struct mc_test *test;
	size_t i;

	for (i = 0; i < MC_ARRAY_SIZE(groups); i++) {
		for (test = groups[i]; test->name; test++) {
			if (!wanted(test))
				continue;
			if (test->threads &&
			    mc.thread_level < MPI_THREAD_MULTIPLE) {
				if (mc.rank == 0)
					printf("SKIP %s: no threads\n",
					       test->name);
				skipped++;
			} else if (run(test)) {
				passed++;
			} else {
				failed++;
			}
		}
	}
}

static void list(void)
{
	const struct mc_test *test;
	size_t i;

	for (i = 0; i < MC_ARRAY_SIZE(groups); i++) {
		for (test = groups[i]; test->name; test++)
			puts(test->name);
	}
	exit(0);
}

static void parse(int argc, char **argv)
{
	int c, seconds = DEADLINE;

	mc.max_size = MC_MIB(8);
	while ((c = getopt(argc, argv, "lt:x:m:T:bp")) != -1) {
		switch (c) {
		case 'l':
			list();
			break;
		case 't':
			only = optarg;
			break;
		case 'x':
			except = optarg;
			break;
		case 'm':
			mc.max_size = strtoul(optarg, NULL, 0);
			break;
		case 'T':
			seconds = atoi(optarg);
			break;
		case 'b':
			mc_broken = true;
			break;
		case 'p':
			parallel = true;
			break;
		default:
			exit(2);
		}
	}
	signal(SIGALRM, on_alarm);
	alarm((unsigned int) seconds);
}

int main(int argc, char **argv)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	mc.test = "MPI_Init";
	parse(argc, argv);
	MPI_Init_thread(&argc, &argv,
			parallel ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&mc.thread_level);
	MPI_Comm_rank(MPI_COMM_WORLD, &mc.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mc.ranks);
	mc.next = (mc.rank + 1) % mc.ranks;
	mc.prev = (mc.rank + mc.ranks - 1) % mc.ranks;
	MPI_Get_library_version(version, &len);
	version[strcspn(version, ",\n")] = '\0';
	if (mc.rank == 0)
		printf("%s, %d ranks%s\n", version, mc.ranks,
		       mc_broken ? ", rank 0 sends wrong data" : "");
	run_all();
	mc.test = "MPI_Finalize";
	MPI_Finalize();
	/*
	 * only one process prints the error: a launcher may end the other
	 * processes at once
	 */
	if (mc.rank)
		return 0;
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}
