/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Automatic progress of conditional writes: a thread for each domain that
 * promises FI_PROGRESS_AUTO, from its first endpoint with conditional writes
 * until it closes.
 *
 * While the application does little but read its completion queues it makes
 * the progress, and the thread only looks now and then whether it still does.
 * Else, as when it computes between reads, the thread sleeps until a control
 * endpoint has something. The application must not have asked for
 * FI_THREAD_DOMAIN: this is another thread in the core.
 */
#include "config.h"
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cw.h"

#define CW_AUTO_FDS	65
#define CW_AUTO_NAP_NS	1000000	/* between looks at who makes progress */
#define CW_AUTO_WAIT_MS	500	/* groups may have come meanwhile */
#define CW_AUTO_GRACE_NS 20000	/* for the application to come first */
/* reads in those times that show that it does little else */
#define CW_AUTO_NAP_READS	20
#define CW_AUTO_GRACE_READS	3

struct mrrc_cw_auto {
	struct mrrc_domain *domain;
	pthread_t thread;
	pid_t pid;		/* a child has no such thread */
	int stop_fd;
	atomic_bool stop;
};

/* Nothing to do for any group: its descriptors may be slept on. */
static int cw_auto_fds(struct mrrc_cw_auto *cwa, struct pollfd *fds)
{
	struct mrrc_cw_domain *cwd = cwa->domain->cw;
	struct mrrc_cw_group *group = atomic_load(&cwd->groups);
	struct fid *fids[2];
	int cnt = 1, ret = 0;

	fds[0] = (struct pollfd) { cwa->stop_fd, POLLIN, 0 };
	for (; group && cnt + 2 <= CW_AUTO_FDS; group = group->next) {
		fids[0] = &group->cq->fid;
		fids[1] = &group->eq->fid;
		pthread_mutex_lock(&group->lock);
		if (group->cnt)
			ret = fi_trywait(cwa->domain->fabric->core, fids, 2);
		pthread_mutex_unlock(&group->lock);
		if (ret)
			return -FI_EAGAIN;
		fds[cnt++] = (struct pollfd) { group->cq_fd, POLLIN, 0 };
		fds[cnt++] = (struct pollfd) { group->eq_fd, POLLIN, 0 };
	}
	return cnt;
}

static void cw_auto_nap(long ns)
{
	const struct timespec nap = { .tv_nsec = ns };

	nanosleep(&nap, NULL);
}

static void *cw_auto_main(void *arg)
{
	struct mrrc_cw_auto *cwa = arg;
	struct mrrc_cw_domain *cwd = cwa->domain->cw;
	struct pollfd fds[CW_AUTO_FDS];
	unsigned reads, seen;
	int cnt;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!atomic_load(&cwa->stop)) {
		seen = atomic_load(&cwd->reads);
		cw_auto_nap(CW_AUTO_NAP_NS);
		if (atomic_load(&cwd->reads) - seen > CW_AUTO_NAP_READS)
			continue;
		reads = 0;
		while (reads < CW_AUTO_GRACE_READS &&
		       !atomic_load(&cwa->stop)) {
			cnt = cw_auto_fds(cwa, fds);
			if (cnt > 0)
				poll(fds, cnt, CW_AUTO_WAIT_MS);
			/* who reads now has it already */
			seen = atomic_load(&cwd->reads);
			cw_auto_nap(CW_AUTO_GRACE_NS);
			reads = atomic_load(&cwd->reads) - seen;
			if (!reads)
				mrrc_cw_progress(cwd);
		}
	}
	return NULL;
}

/*
 * Signals are the application's. Not mrrc_thread_start(): this thread frees
 * memory, so a process that has it is not alone with itself.
 */
static int cw_auto_thread(struct mrrc_cw_auto *cwa)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&cwa->thread, NULL, cw_auto_main, cwa);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

int mrrc_cw_auto_start(struct mrrc_domain *domain, const struct fi_info *info)
{
	struct mrrc_cw_domain *cwd = domain->cw;
	struct mrrc_cw_auto *cwa;
	int ret = 0;

	if (info->domain_attr->data_progress != FI_PROGRESS_AUTO ||
	    info->domain_attr->threading == FI_THREAD_DOMAIN)
		return 0;
	pthread_mutex_lock(&cwd->lock);
	if (cwd->automatic)
		goto unlock;
	cwa = calloc(1, sizeof(*cwa));
	if (!cwa) {
		ret = -FI_ENOMEM;
		goto unlock;
	}
	cwa->domain = domain;
	cwa->pid = getpid();
	cwa->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = cwa->stop_fd < 0 ? -errno : 0;
	if (!ret) {
		ret = cw_auto_thread(cwa);
		if (ret)
			close(cwa->stop_fd);
	}
	if (ret)
		free(cwa);
	else
		cwd->automatic = cwa;
unlock:
	pthread_mutex_unlock(&cwd->lock);
	return ret;
}

void mrrc_cw_auto_stop(struct mrrc_cw_domain *cwd)
{
	struct mrrc_cw_auto *cwa = cwd->automatic;
	uint64_t one = 1;
	ssize_t ret;

	if (!cwa)
		return;
	atomic_store(&cwa->stop, true);
	ret = write(cwa->stop_fd, &one, sizeof(one));
	(void)ret;
	if (cwa->pid == getpid())
		pthread_join(cwa->thread, NULL);
	close(cwa->stop_fd);
	free(cwa);
	cwd->automatic = NULL;
}
