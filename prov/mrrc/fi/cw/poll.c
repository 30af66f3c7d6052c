/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress of a group: its completions, events and deadlines, and the work that
 * is left until the group's lock is released. See cw/cw.h.
 */
#include "config.h"
#include <sys/timerfd.h>

#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"
#include "sys/base/pause.h"

/* polls for each read of the EQ, unless the group is connecting */
#define CW_EQ_EVERY  64
#define CW_EQ_ASLEEP 16 /* a poll before sleeping counts as this many polls */

/* ---- deadlines ----------------------------------------------------------- */

/*
 * Sets the group's timer to the first deadline of its links or its listener: a
 * thread may sleep until the group has events, with no other clock.
 */
static void cw_set_timer(struct mrrc_cw_group *group)
{
	int64_t first = mrrc_cw_over->until(group), next;
	struct itimerspec at = { 0 };
	struct mrrc_cw_ep *cw;

	next = mrrc_cw_listen_until(group);
	if (next && (!first || next < first))
		first = next;

	TAILQ_FOREACH(cw, &group->eps, link) {
		next = mrrc_cw_until(cw);
		if (next && (!first || next < first))
			first = next;
	}
	if (first) {
		at.it_value.tv_sec = ++first / 1000;
		at.it_value.tv_nsec = first % 1000 * 1000000;
	}
	/* without a deadline, setting makes the timer unreadable */
	timerfd_settime(group->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void mrrc_cw_group_release(struct mrrc_cw_group *group)
{
	if (group->alarm)
		cw_set_timer(group);
	group->alarm = false;
	mrrc_mutex_unlock(&group->lock);
}

static bool cw_late(const struct mrrc_cw_ep *cw, int64_t now)
{
	const int64_t until = mrrc_cw_until(cw);

	return until && now > until;
}

/*
 * Gives up links whose peer has not come, or not answered, in time. After a
 * delay of this process, the answer may be among messages that were not read.
 */
static void cw_group_late(struct mrrc_cw_group *group)
{
	const int64_t now = mrrc_now_ms();
	struct mrrc_cw_ep *cw;
	const char *why;

	TAILQ_FOREACH(cw, &group->eps, link) {
		if (cw_late(cw, now))
			break;
	}
	if (cw)
		mrrc_cw_links_drain(group);
	TAILQ_FOREACH(cw, &group->eps, link) {
		if (!cw_late(cw, now))
			continue;
		why = mrrc_cw_step(cw, CW_ON_QUIT) == CW_DO_LOSE ?
			      "the peer does not come" :
			      "the peer does not confirm that a tag is "
			      "cancelled";
		MRRC_WARN(EP_CTRL, "a control connection is given up: %s\n",
			  why);
		mrrc_cw_lose(cw, why);
	}
	mrrc_cw_over->late(group);
}

/* ---- polls --------------------------------------------------------------- */

/*
 * Reads the events first: after a delay, peers may have come that would
 * otherwise count as late.
 */
static void cw_group_events(struct mrrc_cw_group *group)
{
	struct fid *fid = &group->eq->fid;
	bool woken = mrrc_cw_listen_woken(group);

	/*
	 * the EQ stays readable after its events are read, until fi_trywait()
	 */
	if (woken) {
		fi_trywait(group->domain->fabric->core, &fid, 1);
		woken = mrrc_cw_listen_woken(group);
	}
	if (mrrc_cw_events(group))
		woken = false;
	mrrc_cw_listen_tend(group, woken);
	if (atomic_load(&group->meeting))
		cw_group_late(group);
}

void mrrc_cw_group_poll(struct mrrc_cw_group *group, bool asleep)
{
	mrrc_cw_links_poll(group, asleep);
	group->polls += asleep ? CW_EQ_ASLEEP : 1;
	if (group->cnt && !atomic_load(&group->meeting) &&
	    group->polls < CW_EQ_EVERY &&
	    !(asleep && mrrc_cw_listen_due(group)))
		return;
	group->polls = 0;
	cw_group_events(group);
}

/*
 * One thread at a time finishes operations, without the lock, including
 * operations that other threads add meanwhile: so completions come in the order
 * in which operations ended.
 */
void mrrc_cw_group_unlock(struct mrrc_cw_group *group)
{
	struct cw_list ended = STAILQ_HEAD_INITIALIZER(ended);
	struct mrrc_cw_ep *cw;
	int cancel;

	/*
	 * a thread cancelled here would leave requests unanswered and
	 * operations unfinished, and no other thread would finish them
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	do {
		while ((cw = TAILQ_FIRST(&group->lost)))
			mrrc_cw_lost(cw);
		mrrc_cw_over->greet(group);
		if (!group->more)
			mrrc_cw_flush_all(group);
	} while (!TAILQ_EMPTY(&group->lost));
	group->more = false;
	while (!group->finishing && !STAILQ_EMPTY(&group->ended)) {
		group->finishing = true;
		STAILQ_CONCAT(&ended, &group->ended);
		mrrc_cw_group_release(group);
		mrrc_cw_finish(&ended);
		mrrc_mutex_lock(&group->lock);
		group->finishing = false;
	}
	mrrc_cw_group_release(group);
	pthread_setcancelstate(cancel, NULL);
}

void mrrc_cw_progress(struct mrrc_cw_domain *domain, bool asleep)
{
	struct mrrc_cw_group *group = atomic_load(&domain->groups);

	for (; group; group = group->next) {
		/* the thread with the lock makes progress */
		if ((!asleep && !mrrc_cw_group_used(group)) ||
		    !mrrc_mutex_try(&group->lock))
			continue;
		mrrc_cw_group_poll(group, asleep);
		mrrc_cw_group_unlock(group);
	}
}

static bool cw_unsent(struct mrrc_cw_ep *cw)
{
	return mrrc_cw_up(cw) && !cw->lost &&
	       (cw->busy || !TAILQ_EMPTY(&cw->sm.replies));
}

/*
 * Makes progress while left() says so. The peer may be slow to make room;
 * meanwhile other links of the group continue.
 */
static void cw_wait(struct mrrc_cw_ep *cw, bool (*left)(struct mrrc_cw_ep *cw),
		    int64_t end)
{
	unsigned tries = 0;
	bool more;

	do {
		mrrc_mutex_lock(&cw->group->lock);
		more = left(cw);
		if (more)
			mrrc_cw_group_poll(cw->group, false);
		mrrc_cw_group_unlock(cw->group);
		if (more)
			mrrc_pause(&tries);
	} while (more && mrrc_now_ms() < end);
}

/*
 * Sends the messages queued for the peer first: otherwise the peer has received
 * data and would not be told.
 */
void mrrc_cw_linger(struct mrrc_cw_ep *cw, int64_t end)
{
	cw_wait(cw, cw_unsent, end);
}

/*
 * A core may keep the bytes of a message that it has reported as sent, and
 * loses the bytes when its endpoint closes (tcp).
 */
void mrrc_cw_wait_arrived(struct mrrc_cw_ep *cw, int64_t end)
{
	cw_wait(cw, mrrc_cw_unconfirmed, end);
}

void mrrc_cw_close_wait(struct mrrc_cw_ep *cw)
{
	mrrc_cw_linger(cw, mrrc_now_ms() + CW_LINGER_MS);
	mrrc_cw_wait_arrived(cw, mrrc_now_ms() + CW_ARRIVED_MS);
}
