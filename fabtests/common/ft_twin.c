/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Twin runs: see ft_twin.h.
 *
 * Each side has a pipe and a child process, which does the rounds of a batch,
 * or fewer if the child dies. The parent reads the results of one round from
 * each side and compares the results. When one child dies, the parent ends the
 * other child, and two new children begin with the next round.
 */
#include "ft_twin.h"

#include <fnmatch.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#define MAX_REPORTED 20 /* maximum number of printed failures */
#define ROUND_END    "."

struct side {
	pid_t pid;
	FILE *in;
	char **line; /* lines of the current round */
	unsigned cnt, room;
	/* "", or the way in which the child ended in this round */
	char died[64];
};

static struct side sides[FT_SIDES];
static FILE *out; /* pipe to the parent, in a child */
static uint64_t rand_state;

void ft_twin_seed(unsigned round)
{
	rand_state = ((uint64_t) ft_opts.seed << 32) + round;
	ft_twin_rand();
}

/* splitmix64 */
uint64_t ft_twin_rand(void)
{
	uint64_t x = rand_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

bool ft_twin_once_in(unsigned n)
{
	return !(ft_twin_rand() % n);
}

const char *ft_twin_prov(enum ft_side side)
{
	static char raw[128];
	char *tail;

	if (side == FT_OURS)
		return ft_opts.prov;
	snprintf(raw, sizeof(raw), "%s", ft_opts.prov);
	tail = strstr(raw, ";ofi_mrrc");
	if (tail)
		*tail = '\0';
	return raw;
}

void ft_twin_say(const char *key, const char *fmt, ...)
{
	va_list ap;

	fprintf(out, "%s ", key);
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	putc('\n', out);
}

static unsigned limit_s;
static unsigned alarms; /* alarms in this round */

/* Extends the time limit by the load, as other programs use processors, too. */
static void on_alarm(int sig)
{
	const bool over = ++alarms >= ft_load();

	if (over)
		signal(sig, SIG_DFL);
	alarm(over ? 1 : limit_s);
}

static void begin_round(void)
{
	alarms = 0;
	alarm(limit_s);
}

static void child(const struct ft_twin *twin, enum ft_side side, unsigned round,
		  unsigned end, int fd)
{
	const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
	size_t i;

	out = fdopen(fd, "w");
	FT_CHECK(out, "fdopen");
	/* in a batch of one round, the lines before a crash must not be lost */
	setvbuf(out, NULL, twin->batch > 1 ? _IOFBF : _IOLBF, 1 << 16);
	/* resets handlers of the parent and of its providers */
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	/* makes uses of freed memory by the raw core visible on both sides */
	mallopt(M_PERTURB, 0x5a);
	limit_s = twin->limit_s;
	signal(SIGALRM, on_alarm);
	begin_round();
	if (twin->setup)
		twin->setup(side, round);
	for (; round < end; round++) {
		begin_round();
		ft_twin_seed(round);
		twin->round(side, round);
		fprintf(out, ROUND_END "\n");
		fflush(out);
	}
	_exit(0);
}

static void start(const struct ft_twin *twin, enum ft_side side, unsigned round,
		  unsigned end)
{
	struct side *s = &sides[side];
	int fds[2];

	FT_CHECK(!pipe(fds), "pipe: %s", strerror(errno));
	fflush(stdout);
	s->pid = fork();
	FT_CHECK(s->pid >= 0, "fork: %s", strerror(errno));
	if (!s->pid) {
		close(fds[0]);
		child(twin, side, round, end, fds[1]);
	}
	close(fds[1]);
	s->in = fdopen(fds[0], "r");
	FT_CHECK(s->in, "fdopen: %s", strerror(errno));
}

/* Waits for a child that ended, or ends it, and notes how it ended. */
static void stop(struct side *s, bool end_it, char *how, size_t len)
{
	int status;

	if (!s->in)
		return;
	if (end_it)
		kill(s->pid, SIGKILL);
	FT_CHECK(waitpid(s->pid, &status, 0) == s->pid, "waitpid");
	fclose(s->in);
	s->in = NULL;
	if (end_it)
		return;
	if (WIFSIGNALED(status))
		snprintf(how, len, "%s", strsignal(WTERMSIG(status)));
	else
		snprintf(how, len, "exit status %d", WEXITSTATUS(status));
}

static void forget(struct side *s)
{
	while (s->cnt)
		free(s->line[--s->cnt]);
	s->died[0] = '\0';
}

/* Reads one round's lines, or the lines that came before the child died. */
static void read_round(struct side *s)
{
	char *line = NULL;
	size_t len = 0;
	ssize_t n;

	forget(s);
	while ((n = getline(&line, &len, s->in)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (!strcmp(line, ROUND_END)) {
			free(line);
			return;
		}
		if (s->cnt == s->room) {
			s->room = s->room ? 2 * s->room : 1024;
			s->line = realloc(s->line, s->room * sizeof(*s->line));
			FT_CHECK(s->line, "no memory");
		}
		s->line[s->cnt] = strdup(line);
		FT_CHECK(s->line[s->cnt], "no memory");
		s->cnt++;
	}
	free(line);
	stop(s, false, s->died, sizeof(s->died));
}

static size_t key_len(const char *line)
{
	return strcspn(line, " ");
}

static struct ft_twin_why *explain(struct ft_twin_why *why, unsigned round,
				   const char *key, const char *raw,
				   const char *ours)
{
	for (; why->key; why++)
		if (!fnmatch(why->key, key, 0) &&
		    (!why->holds || why->holds(round, raw, ours)))
			return why;
	return NULL;
}

struct diff {
	bool explained, failed;
};

/*
 * Describes a round in a separate child, since children inherit the parent's
 * state of libfabric.
 */
static void describe(const struct ft_twin *twin, unsigned round)
{
	int status;
	pid_t pid;

	if (!twin->describe)
		return;
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		alarm(twin->limit_s);
		if (twin->setup)
			twin->setup(FT_OURS, round);
		ft_twin_seed(round);
		twin->describe(round);
		fflush(stderr);
		_exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFSIGNALED(status))
		fprintf(stderr, "  (describing it: %s)\n",
			strsignal(WTERMSIG(status)));
}

/* Prints the lines of one side before line nr. */
static void transcript(const struct side *s, unsigned nr)
{
	unsigned i;

	for (i = 0; i < nr && i < s->cnt; i++)
		fprintf(stderr, "    %s\n", s->line[i]);
}

static void unexplained(const struct ft_twin *twin, unsigned round,
			struct diff *diff, unsigned reported, unsigned nr,
			const char *key, const char *raw, const char *ours)
{
	if (reported < MAX_REPORTED) {
		if (!diff->failed) {
			fprintf(stderr,
				"round %u of seed %u (FT_ROUND=%u, "
				"-S %u repeats it):\n",
				round, ft_opts.seed, round, ft_opts.seed);
			describe(twin, round);
			if (twin->batch == 1)
				transcript(&sides[FT_OURS], nr);
		}
		fprintf(stderr, "  %s: raw \"%s\", %s \"%s\"\n", key,
			raw ? raw : "(nothing)", ft_opts.prov,
			ours ? ours : "(nothing)");
	}
	diff->failed = true;
}

static const char *line_of(const struct side *s, unsigned i)
{
	return i < s->cnt ? s->line[i] : NULL;
}

/*
 * Compares values of lines with the same key; a line may lack its counterpart:
 */
static void compare(struct ft_twin *twin, unsigned round, struct diff *diff,
		    struct ft_twin_result *result)
{
	const struct side *raw = &sides[FT_RAW], *ours = &sides[FT_OURS];
	const bool died = *raw->died || *ours->died;
	struct ft_twin_why *why;
	const char *a, *b;
	char key[256];
	unsigned i;

	for (i = 0; i < raw->cnt || i < ours->cnt; i++) {
		a = line_of(raw, i);
		b = line_of(ours, i);
		if (died && (!a || !b))
			break;
		result->lines++;
		if (a && b && !strcmp(a, b))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int) key_len(a ? a : b),
			 a ? a : b);
		if (a && b &&
		    (key_len(a) != key_len(b) || strncmp(a, b, key_len(a)))) {
			unexplained(twin, round, diff, result->failed, i, key,
				    a, b);
			return;
		}
		a = a ? a + key_len(a) + 1 : NULL;
		b = b ? b + key_len(b) + 1 : NULL;
		why = explain(twin->whys, round, key, a, b);
		if (!why) {
			unexplained(twin, round, diff, result->failed, i, key,
				    a, b);
			/*
			 * stop here: later differences of the round may have
			 * the same reason
			 */
			if (!a || !b || twin->batch == 1)
				return;
			continue;
		}
		why->cnt++;
		diff->explained = true;
		if (why->ends)
			return;
	}
	if (*raw->died) {
		result->raw_died++;
		ft_log("raw core, sequence %u: %s after \"%s\"", round,
		       raw->died, raw->cnt ? raw->line[raw->cnt - 1] : "");
		if (getenv("FT_ROUND"))
			transcript(raw, raw->cnt);
	} else if (*ours->died) {
		unexplained(twin, round, diff, result->failed, ours->cnt,
			    ours->cnt ? ours->line[ours->cnt - 1] : "begin",
			    "went on", ours->died);
	}
}

void ft_twin_run(struct ft_twin *twin, struct ft_twin_result *result)
{
	const char *only = getenv("FT_ROUND");
	unsigned round = 0, rounds = twin->rounds, end = 0;
	struct ft_twin_why *why;
	enum ft_side side;
	char how[64];

	memset(result, 0, sizeof(*result));
	if (only) {
		round = (unsigned) strtoul(only, NULL, 0);
		rounds = round + 1;
	}
	for (; round < rounds; round++) {
		struct diff diff = { false, false };

		if (!sides[FT_RAW].in) {
			end = (round / twin->batch + 1) * twin->batch;
			end = end < rounds ? end : rounds;
			for (side = 0; side < FT_SIDES; side++)
				start(twin, side, round, end);
		}
		ft_stage("round %u of %u, seed %u", round, rounds,
			 ft_opts.seed);
		for (side = 0; side < FT_SIDES; side++)
			read_round(&sides[side]);
		compare(twin, round, &diff, result);
		result->rounds++;
		result->explained += diff.explained;
		result->failed += diff.failed;
		if (*sides[FT_RAW].died || *sides[FT_OURS].died) {
			stop(&sides[FT_RAW], true, NULL, 0);
			stop(&sides[FT_OURS], true, NULL, 0);
		} else if (round + 1 == end) {
			/* leak checkers may make the child fail at its end */
			for (side = 0; side < FT_SIDES; side++) {
				stop(&sides[side], false, how, sizeof(how));
				FT_CHECK(!strcmp(how, "exit status 0"),
					 "side %u ended with %s", side, how);
			}
		}
	}
	for (why = twin->whys; why->key; why++)
		if (why->cnt)
			ft_log("explained %u times: %s: %s", why->cnt, why->key,
			       why->why);
}
