/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads for what may block (serve/server/jobs.h).
 */
#include "config.h"
#include "serve/server/jobs.h"
#include "sys/base/threads.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_S 1

static void list_init(struct job_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_add(struct job_list *list, struct job *job)
{
	job->next = NULL;
	*list->end = job;
	list->end = &job->next;
}

static struct job *list_take(struct job_list *list)
{
	struct job *job = list->first;

	if (job) {
		list->first = job->next;
		if (!list->first)
			list->end = &list->first;
	}
	return job;
}

static void *work(void *arg)
{
	const uint64_t one = 1;
	struct jobs *jobs = arg;
	struct job *job;
	ssize_t len;

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->ending) {
		job = list_take(&jobs->todo);
		if (!job) {
			pthread_cond_wait(&jobs->posted, &jobs->lock);
			continue;
		}
		jobs->running++;
		pthread_mutex_unlock(&jobs->lock);
		job->run(job);
		pthread_mutex_lock(&jobs->lock);
		jobs->running--;
		pthread_cond_signal(&jobs->idle);
		list_add(&jobs->done, job);
		/* the pipe cannot be full, since the loop reads it */
		len = write(jobs->fd, &one, sizeof(one));
		(void) len;
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

int jobs_open(struct jobs *jobs, unsigned threads)
{
	sigset_t all, old;
	int ret = 0;

	memset(jobs, 0, sizeof(*jobs));
	list_init(&jobs->todo);
	list_init(&jobs->done);
	jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (jobs->fd < 0)
		return -errno;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->posted, NULL);
	pthread_cond_init(&jobs->idle, NULL);
	/* signals are for the loop */
	mrrc_thread_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (!ret && jobs->threads < threads) {
		ret = pthread_create(&jobs->thread[jobs->threads], NULL, work,
				     jobs);
		jobs->threads += !ret;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		jobs_close(jobs);
	return -ret;
}

/* Waits until no job runs, for a limited time. */
static bool wait_idle(struct jobs *jobs)
{
	struct timespec end;
	bool idle;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CLOSE_S;
	pthread_mutex_lock(&jobs->lock);
	jobs->ending = true;
	pthread_cond_broadcast(&jobs->posted);
	while (jobs->running &&
	       !pthread_cond_timedwait(&jobs->idle, &jobs->lock, &end))
		;
	idle = !jobs->running;
	pthread_mutex_unlock(&jobs->lock);
	return idle;
}

bool jobs_close(struct jobs *jobs)
{
	unsigned i;

	if (!wait_idle(jobs))
		return false;
	for (i = 0; i < jobs->threads; i++)
		pthread_join(jobs->thread[i], NULL);
	pthread_cond_destroy(&jobs->idle);
	pthread_cond_destroy(&jobs->posted);
	pthread_mutex_destroy(&jobs->lock);
	close(jobs->fd);
	return true;
}

void jobs_post(struct jobs *jobs, struct job *job)
{
	pthread_mutex_lock(&jobs->lock);
	list_add(&jobs->todo, job);
	pthread_cond_signal(&jobs->posted);
	pthread_mutex_unlock(&jobs->lock);
}

bool jobs_cancel(struct jobs *jobs, struct job *job)
{
	struct job_list kept;
	struct job *other;
	bool found = false;

	list_init(&kept);
	pthread_mutex_lock(&jobs->lock);
	while ((other = list_take(&jobs->todo))) {
		if (other == job)
			found = true;
		else
			list_add(&kept, other);
	}
	if (kept.first)
		jobs->todo = kept;
	pthread_mutex_unlock(&jobs->lock);
	return found;
}

struct job *jobs_take(struct jobs *jobs)
{
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = list_take(&jobs->done);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}
