/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See top.h. Drawing is in screen.c. */
#include "config.h"
#include "stat/top.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stat/screen.h"

#define ARROW 256 /* value of an arrow key: plus the letter of its sequence */

static const int signals[] = { SIGINT,	SIGTERM, SIGHUP,
			       SIGQUIT, SIGTSTP, SIGWINCH };

static volatile sig_atomic_t caught;

static void note_signal(int signo)
{
	/* SIGWINCH only has to interrupt the wait */
	if (signo != SIGWINCH)
		caught = signo;
}

bool stat_is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

/* ---- the terminal ---- */

static void take_terminal(struct stat_top *top)
{
	struct termios raw;

	top->keys = isatty(STDIN_FILENO) &&
		    !tcgetattr(STDIN_FILENO, &top->modes);
	if (top->keys) {
		raw = top->modes;
		raw.c_lflag &= ~(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	stat_screen_begin();
}

static void give_terminal(struct stat_top *top)
{
	stat_screen_end();
	if (top->keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &top->modes);
}

/* Signals come only while the program waits, so they interrupt no sample. */
static void begin(struct stat_top *top)
{
	const struct sigaction action = { .sa_handler = note_signal };
	struct sigaction old;
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		/* keep a signal ignored, as nohup(1) does */
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaddset(&set, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, &top->mask);
	take_terminal(top);
	top->begun = true;
}

void stat_top_end(struct stat_top *top)
{
	stat_rows_fini(&top->rows);
	if (!top->begun)
		return;
	give_terminal(top);
	if (caught) {
		signal(caught, SIG_DFL);
		raise(caught);
	}
	sigprocmask(SIG_SETMASK, &top->mask, NULL);
}

/* ---- keys ---- */

/*
 * Returns the number of the selected domain's row, or rows.count if no domain
 * is selected or the selected domain is gone.
 */
static size_t selected(const struct stat_top *top)
{
	const struct stat_domain *domain;
	size_t i;

	for (i = 0; i < top->rows.count; i++) {
		domain = top->rows.row[i].pair.domain;
		if (domain->pid == top->pid && domain->id == top->id)
			break;
	}
	return i;
}

static void select_row(struct stat_top *top, int step)
{
	const size_t count = top->rows.count;
	size_t at = selected(top);

	if (!count)
		return;
	if (at == count)
		at = 0;
	else if (step < 0 ? at > 0 : at + step < count)
		at += step;
	top->pid = top->rows.row[at].pair.domain->pid;
	top->id = top->rows.row[at].pair.domain->id;
}

static void sort_by(struct stat_top *top, int step)
{
	top->order.column =
		(top->order.column + STAT_COLUMNS + step) % STAT_COLUMNS;
}

/* Handles a key. Returns false to end. */
static bool press(struct stat_top *top, int key)
{
	switch (key) {
	case 'q':
		return false;
	case 'k':
	case ARROW | 'A':
		select_row(top, -1);
		break;
	case 'j':
	case ARROW | 'B':
		select_row(top, 1);
		break;
	case '<':
	case ARROW | 'D':
		sort_by(top, -1);
		break;
	case '>':
	case ARROW | 'C':
		sort_by(top, 1);
		break;
	case 'r':
		top->order.reverse = !top->order.reverse;
		break;
	case '\r':
	case '\n':
		select_row(top, 0);
		top->table = !top->table && top->rows.count;
		break;
	case '\033':
		top->table = false;
		break;
	}
	return true;
}

static int next_key(const char **text)
{
	const char *at = *text;

	if (at[0] == '\033' && (at[1] == '[' || at[1] == 'O') && at[2]) {
		*text += 3;
		return ARROW | at[2];
	}
	++*text;
	return *at;
}

/* ---- samples ---- */

int stat_top_show(struct stat_top *top, const struct stat_sample *sample,
		  const struct stat_sample *before)
{
	size_t at;

	stat_rows_fini(&top->rows);
	if (stat_rows_init(&top->rows, sample, before, top->order))
		return -ENOMEM;
	if (!top->begun)
		begin(top);
	at = selected(top);
	top->table = top->table && at < top->rows.count;
	return top->table ? stat_screen_table(&top->rows.row[at], before) :
			    stat_screen_rows(&top->rows, at);
}

/* Handles keys; each key acts on the rows as the previous key has left them. */
static bool read_keys(struct stat_top *top, const struct stat_sample *sample,
		      const struct stat_sample *before)
{
	char text[64];
	const char *at = text;
	const ssize_t len = read(STDIN_FILENO, text, sizeof(text) - 1);

	if (len <= 0)
		return len < 0 && errno == EINTR;
	text[len] = '\0';
	while (*at) {
		if (!press(top, next_key(&at)) ||
		    stat_top_show(top, sample, before))
			return false;
	}
	return true;
}

/* Stops the program for ^Z, until the shell continues the program */
static void stop(struct stat_top *top)
{
	caught = 0;
	give_terminal(top);
	raise(SIGSTOP);
	take_terminal(top);
}

static struct timespec until(const struct timespec *end)
{
	struct timespec now, left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left.tv_sec = end->tv_sec - now.tv_sec;
	left.tv_nsec = end->tv_nsec - now.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += 1000000000;
	}
	return left;
}

bool stat_top_wait(struct stat_top *top, double seconds,
		   const struct stat_sample *sample,
		   const struct stat_sample *before)
{
	struct pollfd input = { .fd = top->keys ? STDIN_FILENO : -1,
				.events = POLLIN };
	struct timespec end, left;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long) ((seconds - (time_t) seconds) * 1e9);
	end.tv_sec += (time_t) seconds + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while ((left = until(&end)).tv_sec >= 0) {
		ret = ppoll(&input, 1, &left, &top->mask);
		if (caught == SIGTSTP)
			stop(top);
		if (caught || (ret > 0 && !read_keys(top, sample, before)))
			return false;
		if (ret < 0 && stat_top_show(top, sample, before))
			return false;
	}
	return true;
}
