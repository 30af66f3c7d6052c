/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads for what may block. Jobs are posted and collected by one thread, the
 * event loop. A read may hang for good (a dead disk, a network file system), so
 * what the server waits for at its end is never done by a thread that reads.
 */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include <pthread.h>
#include <stdbool.h>

#define JOBS_THREADS_MAX 64

/* Embedded in what it works on. */
struct job {
	void (*run)(struct job *job); /* in a thread of the pool */
	struct job *next;
};

struct job_list {
	struct job *first, **end;
};

struct jobs {
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t posted, idle;
	unsigned running; /* jobs */
	struct job_list todo, done;
	bool ending;
	int fd; /* an eventfd, readable when jobs are done */
	pthread_t thread[JOBS_THREADS_MAX];
	unsigned threads;
};

/* 0, or a negative errno. */
int jobs_open(struct jobs *jobs, unsigned threads);

/*
 * Forgets jobs that do not run, and waits a second for those that do. False: one
 * still runs, and all that it uses has to stay, @jobs as well.
 */
bool jobs_close(struct jobs *jobs);

void jobs_post(struct jobs *jobs, struct job *job);

/* True: a job that was posted has not begun, and does not. */
bool jobs_cancel(struct jobs *jobs, struct job *job);

/* A job that has run since the last call, or NULL. */
struct job *jobs_take(struct jobs *jobs);

#endif /* SERVE_JOBS_H */
