/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_ahead: with FI_OFI_MRRC_HELPER=predict, buffers that are used at
 * regular times are deregistered in between, and registered again before the
 * next use. Data is verified in each transfer. Memory that is replaced, dropped
 * or unmapped between two uses is left alone: the helper makes none of its
 * pages resident. A buffer that waits for a message stays registered until the
 * message comes. All buffers stay registered where the process has no processor
 * for a helper. A helper that a call wakes leaves the buffer of this call
 * alone, even if the helper interrupts the call; calls that note no buffer wake
 * no helper.
 */
#include "ft_mrrc.h"

#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>

#define LEN	(64 * FT_PAGE)
#define BUFFERS 3
#define GAP_US	40000 /* time between two uses */
#define ROUNDS	20

static uint64_t seed;

static struct fi_mrrc_stats stats(struct ft_pair *pair)
{
	struct fi_mrrc_stats st;

	ft_stats(&pair->dom[1], &st);
	return st;
}

static void use(struct ft_pair *pair, char *from, char *to)
{
	ft_verify_pair(&pair->c, from, to, LEN, ++seed);
	ft_release_pair(pair);
}

static void round_of(struct ft_pair *pair, char **buf, char *to)
{
	unsigned i;

	for (i = 0; i < BUFFERS; i++) {
		use(pair, buf[i], to);
		usleep(GAP_US);
	}
}

/* Uses the buffers in turn until the helper has predicted some of the uses. */
static void in_time(struct ft_pair *pair, char **buf, char *to, bool helps)
{
	const uint64_t end = ft_deadline();
	unsigned i;

	for (i = 0; helps ? ft_counter(&pair->dom[1], "ahead_used") < 5 : i < 3;
	     i++) {
		ft_stage("round %u of regular uses", i);
		FT_CHECK(ft_limit_us() < end,
			 "after %u rounds %" PRIu64 " of %" PRIu64
			 " uses were foreseen, %" PRIu64 " deregistrations",
			 i, ft_counter(&pair->dom[1], "ahead_used"),
			 ft_counter(&pair->dom[1], "noted_uses"),
			 ft_counter(&pair->dom[1], "early_deregistrations"));
		round_of(pair, buf, to);
	}
	if (!helps)
		return;
	FT_CHECK(ft_counter(&pair->dom[1], "early_deregistrations") >= 5,
		 "%" PRIu64 " early",
		 ft_counter(&pair->dom[1], "early_deregistrations"));
	FT_CHECK(ft_counter(&pair->dom[1], "ahead_registrations") >= 5,
		 "%" PRIu64 " ahead",
		 ft_counter(&pair->dom[1], "ahead_registrations"));
}

static size_t present(char *p)
{
	unsigned char in[LEN / FT_PAGE];
	size_t count = 0, i;

	FT_CHECK(!mincore(p, LEN, in), "mincore: %s", strerror(errno));
	for (i = 0; i < LEN / FT_PAGE; i++)
		count += in[i] & 1;
	return count;
}

static void replace(char *p)
{
	ft_map(p, LEN);
}

static void drop(char *p)
{
	FT_CHECK(!madvise(p, LEN, MADV_DONTNEED), "madvise: %s",
		 strerror(errno));
}

/*
 * Unmaps memory and maps it again, as an allocator does that gives memory back.
 */
static void unmap(char *p)
{
	ft_unmap(p, LEN);
	usleep(GAP_US);
	FT_CHECK(ft_map_hole(p, LEN), "another mapping took the place");
}

/*
 * Changes a buffer's memory just after a use, while the helper expects the
 * buffer's next use. Now and then a helper that begins to register a buffer
 * while its memory changes may make new pages resident.
 */
static void changed(struct ft_pair *pair, char **buf, char *to,
		    void (*change)(char *p), const char *how)
{
	unsigned i, j, rounds = 0;
	size_t pages;

	for (i = 0; i < 4; i++) {
		ft_stage("round %u: %s", i, how);
		round_of(pair, buf, to);
		for (j = 0; j < BUFFERS; j++)
			change(buf[j]);
		usleep(2 * BUFFERS * GAP_US);
		for (j = 0, pages = 0; j < BUFFERS; j++)
			pages += present(buf[j]);
		rounds += pages != 0;
	}
	FT_CHECK(rounds < 3, "%s: new memory is there after %u of 4 rounds",
		 how, rounds);
	round_of(pair, buf, to);
}

/* A receive waits for longer than any time between uses so far. */
static void waits(struct ft_pair *pair, char *buf, char *from)
{
	void *d = ft_desc(&pair->dom[1], buf, LEN);

	ft_stage("a receive that waits");
	FT_POST(&pair->c, fi_recv(pair->c.ep, buf, LEN, d, FT_ANY, buf));
	usleep(20 * GAP_US);
	ft_fill(from, LEN, ++seed);
	d = ft_desc(&pair->dom[0], from, LEN);
	FT_POST(&pair->s, fi_send(pair->s.ep, from, LEN, d, pair->s.to, from));
	ft_wait_ctx(&pair->s, FT_TX, from, FI_MSG | FI_SEND);
	ft_wait_ctx(&pair->c, FT_RX, buf, FI_MSG | FI_RECV);
	FT_CHECK_BUF(buf, LEN, seed, "received");
	ft_release_pair(pair);
}

/* ---- tests on one processor, each in its own process ---- */

static void open_on_one(int argc, char **argv, const char *node,
			struct ft_pair *pair)
{
	struct ft_attr attr = FT_ATTR;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	FT_CHECK(!sched_setaffinity(0, sizeof(one), &one), "affinity");
	FT_CHECK(!setenv("FI_OFI_MRRC_HELPER_NODE", node, 1), "setenv");
	ft_init(argc, argv);
	ft_pair_open(pair, &attr);
}

/*
 * A conservative helper does nothing on a single processor, which the
 * application needs.
 */
static void without(int argc, char **argv)
{
	struct ft_pair pair;
	char *buf[BUFFERS], *to;
	unsigned i;

	open_on_one(argc, argv, "conservative", &pair);
	to = ft_map(NULL, LEN);
	for (i = 0; i < BUFFERS; i++)
		buf[i] = ft_map(NULL, LEN);
	for (i = 0; i < ROUNDS; i++)
		round_of(&pair, buf, to);
	FT_CHECK(!ft_caches(&pair.dom[1]) ||
			 !ft_counter(&pair.dom[1], "early_deregistrations"),
		 "%" PRIu64 " deregistrations without a processor for them",
		 ft_counter(&pair.dom[1], "early_deregistrations"));
	ft_pair_close(&pair);
}

/* Returns the sum of say(thread) over all helper threads. */
static unsigned helpers(unsigned (*say)(int thread))
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[300], name[32];
	unsigned count = 0;
	FILE *file;

	FT_CHECK(dir, "/proc/self/task: %s", strerror(errno));
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file) &&
		    !strcmp(name, "mrrc-helper\n"))
			count += say(atoi(entry->d_name));
		if (file)
			fclose(file);
	}
	closedir(dir);
	return count;
}

/* Gives a helper thread real-time priority; returns 1 if that is allowed. */
static unsigned run_first(int thread)
{
	const struct sched_param param = { .sched_priority = 1 };

	return !sched_setscheduler(thread, SCHED_FIFO, &param);
}

/* Returns how often the thread has slept. */
static unsigned sleeps(int thread)
{
	char path[64], line[256];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	file = fopen(path, "r");
	FT_CHECK(file, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %u", &count);
	fclose(file);
	return count;
}

/* Uses by small messages are not noted, and wake no helper. */
static void undisturbed(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	unsigned before, i;
	char *buf, *to;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	to = ft_map(NULL, FT_PAGE);
	buf = ft_map(NULL, FT_PAGE);
	usleep(10 * GAP_US);
	before = helpers(sleeps);
	for (i = 0; i < 5 * ROUNDS; i++) {
		ft_verify_pair(&pair.c, buf, to, FT_PAGE, ++seed);
		usleep(1000);
	}
	i = helpers(sleeps) - before;
	FT_CHECK(i < ROUNDS, "helpers were woken %u times", i);
	ft_pair_close(&pair);
}

/* Each use is noted and wakes the helpers before its buffer is held. */
static void interrupted(int argc, char **argv)
{
	struct fi_mrrc_stats st;
	const uint64_t end = ft_deadline();
	struct ft_pair pair;
	uint64_t first;
	char *buf, *to;
	unsigned i;

	open_on_one(argc, argv, "aggressive", &pair);
	to = ft_map(NULL, LEN);
	buf = ft_map(NULL, LEN);
	if (ft_caches(&pair.dom[1]) && helpers(run_first)) {
		use(&pair, buf, to);
		first = stats(&pair).misses;
		/* on a loaded machine few intervals between uses are alike */
		for (i = 0;
		     i < ROUNDS / 2 ||
		     (ft_counter(&pair.dom[1], "early_deregistrations") < 5 &&
		      ft_limit_us() < end);
		     i++) {
			use(&pair, buf, to);
			usleep(2 * GAP_US);
		}
		st = stats(&pair);
		FT_CHECK(ft_counter(&pair.dom[1], "early_deregistrations"),
			 "no deregistration in %" PRIu64 " uses",
			 ft_counter(&pair.dom[1], "noted_uses"));
		FT_CHECK(st.misses - first <=
				 ft_counter(&pair.dom[1], "late_uses"),
			 "%" PRIu64 " misses, %" PRIu64 " late uses",
			 st.misses - first,
			 ft_counter(&pair.dom[1], "late_uses"));
	}
	ft_pair_close(&pair);
}

/* The same test as interrupted(), with the data calls that record a trace. */
static void interrupted_recorded(int argc, char **argv)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/fi_mrrc_ahead.%d.trace",
		 (int) getpid());
	FT_CHECK(!setenv("FI_OFI_MRRC_TRACE", path, 1), "setenv");
	interrupted(argc, argv);
	FT_CHECK(!unlink(path), "%s: %s", path, strerror(errno));
}

static void in_process(void (*run)(int argc, char **argv), int argc,
		       char **argv, const char *what)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		run(argc, argv);
		exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status, "%s: %#x", what,
		 status);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	char *buf[BUFFERS], *to;
	bool helps;
	unsigned i;

	FT_CHECK(!setenv("FI_OFI_MRRC_HELPER", "predict", 1), "setenv");
	in_process(without, argc, argv, "without a processor for a helper");
	in_process(undisturbed, argc, argv, "small messages");
	in_process(interrupted, argc, argv, "interrupted by a helper");
	in_process(interrupted_recorded, argc, argv,
		   "interrupted by a helper, and recorded");
	/* the helper works also while all processors are busy */
	FT_CHECK(!setenv("FI_OFI_MRRC_HELPER_NODE", "aggressive", 0), "setenv");
	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	helps = ft_caches(&pair.dom[1]);
	to = ft_map(NULL, LEN);
	for (i = 0; i < BUFFERS; i++)
		buf[i] = ft_map_apart(LEN);
	in_time(&pair, buf, to, helps);
	/* a core that registers by itself might make pages resident */
	if (helps) {
		changed(&pair, buf, to, replace, "replaced");
		changed(&pair, buf, to, drop, "dropped");
		changed(&pair, buf, to, unmap, "unmapped");
	}
	waits(&pair, buf[0], to);
	/* close while registrations are planned, and some uses are unread */
	round_of(&pair, buf, to);
	use(&pair, buf[0], to);
	ft_pair_close(&pair);
	for (i = 0; i < BUFFERS; i++)
		ft_unmap(buf[i], LEN);
	ft_unmap(to, LEN);
	return ft_done();
}
