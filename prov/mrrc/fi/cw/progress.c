/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Automatic progress of conditional writes: a thread for each domain that
 * promises FI_PROGRESS_AUTO, from its first endpoint with conditional writes
 * until the domain closes.
 *
 * While the application reads its completion queues often enough, reading makes
 * the progress, and the thread only checks now and then that the application
 * still reads: two threads that poll would hinder each other. If the
 * application reads less often, as when it computes between reads, the thread
 * sleeps until a control endpoint has events. The application must not have
 * asked for FI_THREAD_DOMAIN: the progress thread also calls the core.
 */
#include "config.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fi/cw/group.h"
#include "sys/base/threads.h"

#define CW_AUTO_FDS	2
#define CW_AUTO_LOOK_NS 1000000 /* between checks whether reads make progress */
/* longest sleep, in case a core does not wake the thread */
#define CW_AUTO_WAIT_MS 500
/* time for the application to read first; longer if it does read */
#define CW_AUTO_GRACE_NS    20000
#define CW_AUTO_PATIENCE_NS 160000
#define CW_AUTO_SLICE_NS    100000 /* length of a turn on the processor */

struct mrrc_cw_auto {
	struct mrrc_domain *domain;
	pthread_t thread;
	int stop_fd;
	atomic_bool stop;
};

static void cw_auto_nap(long ns)
{
	const struct timespec nap = { .tv_nsec = ns };

	nanosleep(&nap, NULL);
}

/*
 * Forks wait until no progress thread is at work: a child may close objects
 * that it inherited, and locks that a progress thread held, the core's among
 * them, would stay locked in the child. The wait is bounded: the forking thread
 * may hold a lock that a progress thread waits for.
 */
#define CW_AUTO_FORK_NS 200000000
#define CW_AUTO_TRY_NS	50000

static pthread_rwlock_t cw_auto_work = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int cw_auto_forks; /* forks that wait */
static _Thread_local bool cw_auto_forking;

/* A thread is at work until pthread_rwlock_unlock(). Forks go first. */
static void cw_auto_begin(void)
{
	while (atomic_load(&cw_auto_forks))
		cw_auto_nap(CW_AUTO_TRY_NS);
	pthread_rwlock_rdlock(&cw_auto_work);
}

/* Polls: the clock of pthread_rwlock_timedwrlock() can be set. */
static void cw_auto_fork_prepare(void)
{
	const uint64_t begin = mrrc_cw_now_ns();
	int ret;

	atomic_fetch_add(&cw_auto_forks, 1);
	while ((ret = pthread_rwlock_trywrlock(&cw_auto_work)) &&
	       mrrc_cw_now_ns() - begin < CW_AUTO_FORK_NS)
		cw_auto_nap(CW_AUTO_TRY_NS);
	atomic_fetch_sub(&cw_auto_forks, 1);
	cw_auto_forking = !ret;
}

static void cw_auto_fork_parent(void)
{
	if (cw_auto_forking)
		pthread_rwlock_unlock(&cw_auto_work);
}

static void cw_auto_fork_child(void)
{
	/*
	 * the copied lock names a thread of the parent as its writer, and may
	 * have other forks of the parent waiting
	 */
	cw_auto_work = (pthread_rwlock_t) PTHREAD_RWLOCK_INITIALIZER;
	atomic_store(&cw_auto_forks, 0);
}

static int cw_auto_ready;

static void cw_auto_init(void)
{
	cw_auto_ready = -pthread_atfork(cw_auto_fork_prepare,
					cw_auto_fork_parent,
					cw_auto_fork_child);
}

/*
 * Collects the descriptors to sleep on, if no group has work. Does not wait for
 * a group's lock: the holder of the lock makes progress, and might wait for the
 * calling thread.
 */
static int cw_auto_fds(struct mrrc_cw_auto *cwa, struct pollfd *fds)
{
	struct mrrc_cw_domain *cwd = cwa->domain->cw;
	struct mrrc_cw_group *group = atomic_load(&cwd->groups);
	struct fid *fids[2];
	int ret = 0;

	fds[0] = (struct pollfd){ cwa->stop_fd, POLLIN, 0 };
	fds[1] = (struct pollfd){ cwd->wake_fd, POLLIN, 0 };
	for (; group; group = group->next) {
		fids[0] = &group->cq->fid;
		fids[1] = &group->eq->fid;
		if (!mrrc_mutex_try(&group->lock))
			return -FI_EAGAIN;
		if (mrrc_cw_group_waits(group))
			ret = -FI_EAGAIN;
		else
			ret = fi_trywait(group->domain->fabric->core, fids, 2);
		mrrc_mutex_unlock(&group->lock);
		if (ret)
			return -FI_EAGAIN;
	}
	return 0;
}

/*
 * The application may compute on all processors. Linux 6.12 or newer lets a
 * thread with short turns run at once; older kernels ignore the attribute.
 */
static void cw_auto_short_turns(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
	    attr.policy != SCHED_OTHER)
		return;
	attr.runtime = CW_AUTO_SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Has the application read often enough lately? */
static bool cw_auto_idle(struct mrrc_cw_domain *cwd)
{
	/* loaded before the time, so that `seen` is not later than `now` */
	const uint64_t seen = atomic_load(&cwd->seen);
	const uint64_t missed = atomic_load(&cwd->missed);
	const uint64_t now = mrrc_cw_now_ns();

	return now - seen < CW_GAP_NS && now - missed > CW_AUTO_LOOK_NS;
}

static void *cw_auto_main(void *arg)
{
	struct mrrc_cw_auto *cwa = arg;
	struct mrrc_cw_domain *cwd = cwa->domain->cw;
	struct pollfd fds[CW_AUTO_FDS];
	long grace = CW_AUTO_GRACE_NS;
	uint64_t seen;
	int ret;

	prctl(PR_SET_TIMERSLACK, 1);
	cw_auto_short_turns();
	while (!atomic_load(&cwa->stop)) {
		if (cw_auto_idle(cwd)) {
			cw_auto_nap(CW_AUTO_LOOK_NS);
			continue;
		}
		cw_auto_begin();
		ret = cw_auto_fds(cwa, fds);
		pthread_rwlock_unlock(&cw_auto_work);
		if (!ret)
			poll(fds, CW_AUTO_FDS, CW_AUTO_WAIT_MS);
		/* an application that reads has got the completion already */
		seen = atomic_load(&cwd->seen);
		cw_auto_nap(grace);
		if (atomic_load(&cwd->seen) != seen) {
			if (grace < CW_AUTO_PATIENCE_NS)
				grace *= 2;
			continue;
		}
		grace = CW_AUTO_GRACE_NS;
		cw_auto_begin();
		mrrc_cw_progress(cwd, true);
		pthread_rwlock_unlock(&cw_auto_work);
	}
	return NULL;
}

/*
 * The thread blocks all signals, which are for the application's threads. The
 * thread is not started by mrrc_thread_start(): a thread that frees memory must
 * count as a thread of the application.
 */
static int cw_auto_thread(struct mrrc_cw_auto *cwa)
{
	sigset_t all, before;
	int ret;

	mrrc_thread_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&cwa->thread, NULL, cw_auto_main, cwa);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(cwa->thread, "mrrc-cwrite");
	return -ret;
}

int mrrc_cw_auto_start(struct mrrc_domain *domain)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mrrc_cw_domain *cwd = domain->cw;
	struct mrrc_cw_auto *cwa;
	int ret = 0;

	/* an endpoint's info may differ from its domain's */
	if (!domain->automatic)
		return 0;
	pthread_once(&once, cw_auto_init);
	if (cw_auto_ready)
		return cw_auto_ready;
	mrrc_mutex_lock(&cwd->lock);
	if (cwd->automatic)
		goto unlock;
	cwa = calloc(1, sizeof(*cwa));
	if (!cwa) {
		ret = -FI_ENOMEM;
		goto unlock;
	}
	cwa->domain = domain;
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
	mrrc_mutex_unlock(&cwd->lock);
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
	(void) ret;
	pthread_join(cwa->thread, NULL);
	close(cwa->stop_fd);
	free(cwa);
	cwd->automatic = NULL;
}
