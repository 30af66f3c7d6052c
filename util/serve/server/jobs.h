/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads for calls that may block. Jobs are posted and collected by one
 * thread, the event loop. A read may hang permanently (a dead disk, a network
 * file system), so jobs for which an ending server waits have threads of their
 * own.
 */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include <pthread.h>
#include <stdbool.h>

#define JOBS_THREADS_MAX 64

/* A job; embedded in the object that the job works on. */
struct job {
	void (*run)(struct job *job); /* called in a thread of the pool */
	struct job *next;
};

struct job_list {
	struct job *first, **end;
};

struct jobs {
	pthread_mutex_t lock; /* guards the following fields */
	pthread_cond_t posted, idle;
	unsigned running; /* number of running jobs */
	struct job_list todo, done;
	bool ending;
	int fd; /* an eventfd, readable when jobs are done */
	pthread_t thread[JOBS_THREADS_MAX];
	unsigned threads;
};

/* Starts the threads. 0, or a negative errno. */
int jobs_open(struct jobs *jobs, unsigned threads);

/*
 * Drops jobs that have not begun, and waits up to a second for running jobs.
 * Returns false if a job still runs: the caller then has to keep all objects of
 * the job, @jobs included.
 */
bool jobs_close(struct jobs *jobs);

void jobs_post(struct jobs *jobs, struct job *job);

/* Cancels a posted job; returns false if the job has begun. */
bool jobs_cancel(struct jobs *jobs, struct job *job);

/* Takes a job that has run since the last call, or NULL. */
struct job *jobs_take(struct jobs *jobs);

#endif /* SERVE_JOBS_H */
