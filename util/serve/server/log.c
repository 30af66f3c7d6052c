/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes the lines that a process logs, in their order (serve/server/log.h).
 * Lines that find the buffer full are counted, and their number is logged when
 * there is room again.
 */
#include "config.h"
#include "serve/server/log.h"
#include "sys/base/threads.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#define LINES	1024 /* maximum number of waiting lines */
#define CLOSE_S 1

struct line {
	STAILQ_ENTRY(line) link;
	int fd;
	char *text;
	size_t len;
};

/* The log; a process has one log, as it has one standard output. */
static struct {
	pthread_mutex_t lock; /* guards the following fields */
	pthread_cond_t added, written;
	STAILQ_HEAD(, line) lines;
	/* lines in the buffer, including the one being written */
	unsigned count;
	unsigned long lost;
	bool open;
} log_of = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.added = PTHREAD_COND_INITIALIZER,
	.written = PTHREAD_COND_INITIALIZER,
	.lines = STAILQ_HEAD_INITIALIZER(log_of.lines),
};

static void put(int fd, const char *text, size_t len)
{
	ssize_t done;

	while (len) {
		done = write(fd, text, len);
		if (done < 0 && errno != EINTR)
			return;
		text += done < 0 ? 0 : done;
		len -= done < 0 ? 0 : (size_t) done;
	}
}

static void free_line(struct line *line)
{
	if (line)
		free(line->text);
	free(line);
}

static struct line *make_line(int fd, const char *fmt, va_list args)
{
	struct line *line = calloc(1, sizeof(*line));
	char *said;
	int len;

	if (!line || vasprintf(&said, fmt, args) < 0) {
		free(line);
		return NULL;
	}
	len = asprintf(&line->text, "fi_mrrc_serve: %s\n", said);
	free(said);
	if (len < 0) {
		free(line);
		return NULL;
	}
	line->fd = fd;
	line->len = (size_t) len;
	return line;
}

/* Adds a line to the buffer. The caller holds the lock. */
static void add(struct line *line)
{
	STAILQ_INSERT_TAIL(&log_of.lines, line, link);
	log_of.count++;
	pthread_cond_signal(&log_of.added);
}

static void print(int fd, const char *fmt, va_list args)
{
	struct line *line = make_line(fd, fmt, args);

	pthread_mutex_lock(&log_of.lock);
	if (line && !log_of.open) {
		put(fd, line->text, line->len);
	} else if (line && log_of.count < LINES) {
		add(line);
		line = NULL;
	} else {
		log_of.lost++;
	}
	pthread_mutex_unlock(&log_of.lock);
	free_line(line);
}

void server_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print(STDOUT_FILENO, fmt, args);
	va_end(args);
}

void server_complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print(STDERR_FILENO, fmt, args);
	va_end(args);
}

/* Takes the number of lost lines, to be logged. The caller holds the lock. */
static unsigned long take_lost(void)
{
	const unsigned long lost = log_of.lost;

	log_of.lost = 0;
	return lost;
}

static void *work(void *arg)
{
	unsigned long lost;
	struct line *line;

	pthread_mutex_lock(&log_of.lock);
	for (;;) {
		line = STAILQ_FIRST(&log_of.lines);
		if (!line) {
			pthread_cond_wait(&log_of.added, &log_of.lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&log_of.lines, link);
		pthread_mutex_unlock(&log_of.lock);
		put(line->fd, line->text, line->len);
		free_line(line);
		pthread_mutex_lock(&log_of.lock);
		lost = take_lost();
		log_of.count--;
		pthread_cond_signal(&log_of.written);
		if (!lost)
			continue;
		pthread_mutex_unlock(&log_of.lock);
		server_complain("%lu lines lost, as none were read", lost);
		pthread_mutex_lock(&log_of.lock);
	}
	return arg;
}

int log_open(void)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	mrrc_thread_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return -ret;
	pthread_detach(thread);
	pthread_mutex_lock(&log_of.lock);
	log_of.open = true;
	pthread_mutex_unlock(&log_of.lock);
	return 0;
}

void log_close(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CLOSE_S;
	pthread_mutex_lock(&log_of.lock);
	while (log_of.count &&
	       !pthread_cond_timedwait(&log_of.written, &log_of.lock, &end))
		;
	pthread_mutex_unlock(&log_of.lock);
}
