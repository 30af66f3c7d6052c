/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * demo_race: counts the RMA writes, from a buffer whose pages are replaced,
 * that carry data that was replaced before the write began.
 *
 * Each page of the buffer holds a number. A thread that replaces the pages
 * writes the next number into the new pages, and publishes the number. An RMA
 * write that begins after a number was published, and delivers an older number,
 * is stale: the device read pages that the process no longer has. The memory is
 * mapped all the time.
 *
 * Three caches are tested: libfabric's with the monitor that libfabric chooses,
 * libfabric's with userfaultfd, and ofi_mrrc; with -o only ofi_mrrc. Each cache
 * and way of replacing has a process, as the monitors are process-wide. The
 * program prints a line for each process:
 *
 *	race WAY CACHE STALE WRITES REGISTRATIONS
 *
 * STALE is "hangs" where the process made no progress for 20 s, and "fails"
 * where the process ended with an error; in both cases WRITES counts the writes
 * made before. A cache that hung while another thread replaced pages is not
 * tried again with another thread. Exit status: 1 if ofi_mrrc hung, failed, or
 * wrote stale data.
 */
#include "ft_bench.h"
#include "reg_count.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGES 4
#define LEN   (PAGES * FT_PAGE)
#define RW    (PROT_READ | PROT_WRITE)
#define ANON  (MAP_PRIVATE | MAP_ANONYMOUS)
/*
 * us without progress after which a run counts as hung: START_US before the
 * first write, HANGS_US between writes; virtual machines are slow
 */
#define START_US 120000000
#define HANGS_US 20000000

enum cache { DEFAULT, UFFD, OURS, CACHES };
static const char *const caches[CACHES] = { "libfabric", "libfabric-uffd",
					    "ofi_mrrc" };

static struct {
	const char *core;
	unsigned writes;
	bool ours; /* test only ofi_mrrc */
} opts = { .core = "verbs", .writes = 200 };

/* Results of a process, which its parent reads. */
static struct shared {
	unsigned writes, stale;
	uint64_t registrations;
} * shared;

static struct ft_pair pair;
static struct fid_mr *target;
static bool raw;
static char *buf, *other, *remote;

/* ---- ways to replace the pages ---- */

static void by_map(void)
{
	FT_CHECK(mmap(buf, LEN, RW, ANON | MAP_FIXED, -1, 0) == buf, "mmap");
}

static void by_unmap(void)
{
	ft_unmap(buf, LEN);
	FT_CHECK(ft_map(buf, LEN) == buf, "mmap: another address");
}

static void by_discard(void)
{
	FT_CALL(madvise(buf, LEN, MADV_DONTNEED));
}

static void by_move(void)
{
	other = ft_map(NULL, LEN);
	memset(other, 0, LEN);
	FT_CHECK(mremap(other, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, buf) ==
			 buf,
		 "mremap");
}

static void by_raw_map(void)
{
	FT_CHECK((char *) syscall(SYS_mmap, buf, LEN, RW, ANON | MAP_FIXED, -1,
				  0) == buf,
		 "mmap");
}

static void by_raw_discard(void)
{
	FT_CALL(syscall(SYS_madvise, buf, LEN, MADV_DONTNEED));
}

static const struct way {
	const char *name;
	void (*replace)(void);
	bool thread; /* another thread replaces, at any time */
} ways[] = {
	{ "thread-mmap", by_map, true },
	{ "thread-madvise", by_discard, true },
	{ "munmap-mmap", by_unmap, false },
	{ "madvise", by_discard, false },
	{ "mremap", by_move, false },
	{ "syscall-mmap", by_raw_map, false },
	{ "syscall-madvise", by_raw_discard, false },
};

/* ---- numbers ---- */

static uint64_t seq, published; /* seq is odd while pages are replaced */
static bool stop;

static void replace(const struct way *way)
{
	uint64_t next = published + 1;
	size_t page;

	__atomic_store_n(&seq, seq + 1, __ATOMIC_SEQ_CST);
	way->replace();
	for (page = 0; page < PAGES; page++)
		__atomic_store_n((uint64_t *) (buf + page * FT_PAGE), next,
				 __ATOMIC_RELEASE);
	__atomic_store_n(&published, next, __ATOMIC_SEQ_CST);
	__atomic_store_n(&seq, seq + 1, __ATOMIC_SEQ_CST);
}

static void *replacer(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		replace(arg);
		usleep(ft_rand() % 500);
	}
	return NULL;
}

static void write_buf(void)
{
	struct fid_mr *mr = NULL;
	struct ft_comp comp;

	if (raw)
		mr = ft_reg(pair.c.dom, buf, LEN, FI_WRITE);
	FT_POST(&pair.c,
		fi_write(pair.c.ep, buf, LEN, mr ? fi_mr_desc(mr) : NULL,
			 pair.c.to, ft_raddr(pair.s.dom, remote),
			 fi_mr_key(target), NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	if (mr)
		FT_CALL(fi_close(&mr->fid));
}

/* Makes one write; returns true if stale data arrived. */
static bool stale(void)
{
	const uint64_t began = __atomic_load_n(&seq, __ATOMIC_SEQ_CST);
	const uint64_t least = __atomic_load_n(&published, __ATOMIC_SEQ_CST);
	uint64_t number;
	size_t page;
	bool same;

	write_buf();
	same = !(began % 2) && __atomic_load_n(&seq, __ATOMIC_SEQ_CST) == began;
	for (page = 0; page < PAGES; page++) {
		number = *(volatile uint64_t *) (remote + page * FT_PAGE);
		/* number 0: new pages that were not written yet */
		if (number < least && (number || same))
			return true;
	}
	return false;
}

static void try_way(const struct way *way)
{
	const uint64_t before = reg_count();
	const unsigned writes = opts.writes * (way->thread ? 5 : 1);
	pthread_t thread;

	if (way->thread)
		FT_CHECK(!pthread_create(&thread, NULL, replacer, (void *) way),
			 "a thread");
	while (shared->writes < writes) {
		if (!way->thread)
			replace(way);
		shared->stale += stale();
		shared->writes++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (way->thread)
		pthread_join(thread, NULL);
	shared->registrations = reg_count() - before;
}

static void child_main(enum cache cache, const struct way *way)
{
	struct ft_attr attr = FT_ATTR;

	ft_bench_env(cache == OURS ? FT_NULL_DESC : FT_CORE_CACHE, opts.core);
	if (cache == UFFD)
		setenv("FI_MR_CACHE_MONITOR", "userfaultfd", 1);
	ft_start("demo_race");
	ft_stage("%s: %s", caches[cache], way->name);
	raw = ft_opts.raw;
	ft_pair_open(&pair, &attr);
	buf = ft_map_apart(LEN);
	remote = ft_map(NULL, LEN);
	target = ft_reg(&pair.dom[0], remote, LEN, FI_REMOTE_WRITE);
	try_way(way);
	/* closing the objects is not part of the test */
	_exit(0);
}

/*
 * Waits while a process makes progress. Returns NULL if the process has a
 * result, else the reason why it has no result.
 */
static const char *result_of(pid_t pid)
{
	uint64_t end = ft_limit_us() + START_US;
	unsigned seen = 0;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		usleep(20000);
		if (shared->writes != seen)
			end = ft_limit_us() + HANGS_US;
		seen = shared->writes;
		if (ft_limit_us() < end)
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return "hangs";
	}
	if (status)
		fprintf(stderr, "demo_race: status %#x\n", status);
	return status ? "fails" : NULL;
}

/* Runs a process. Returns NULL, or why there is no result. */
static const char *measure(enum cache cache, const struct way *way)
{
	const char *why;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		child_main(cache, way);
	why = result_of(pid);
	printf("race %s %s ", way->name, caches[cache]);
	if (why)
		printf("%s %u -\n", why, shared->writes);
	else
		printf("%u %u %" PRIu64 "\n", shared->stale, shared->writes,
		       shared->registrations);
	fflush(stdout);
	return why;
}

int main(int argc, char **argv)
{
	const char *why[CACHES] = { NULL };
	unsigned w, c, stales = 0;
	int op;

	while ((op = getopt(argc, argv, "c:n:os:t:v")) != -1) {
		if (op == 'c')
			opts.core = optarg;
		else if (op == 'n')
			opts.writes = (unsigned) atoi(optarg);
		else if (op == 'o')
			opts.ours = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	shared = mmap(NULL, sizeof(*shared), RW, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FT_CHECK(shared != MAP_FAILED, "mmap");
	for (w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
		for (c = opts.ours ? OURS : 0; c < CACHES; c++) {
			/*
			 * do not wait for a cache to hang again while another
			 * thread replaces pages
			 */
			if (why[c] && (ways[w].thread || c == OURS))
				continue;
			why[c] = measure(c, &ways[w]);
		}
		/* the loop over the caches ends with ofi_mrrc */
		stales += shared->stale;
	}
	return why[OURS] || stales ? 1 : 0;
}
