/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Short waits (pause.h). */
#include "config.h"
#include "sys/base/pause.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#define PAUSE_YIELDS 100
#define PAUSE_NAPS   4 /* naps before the caller gives up */
#define PAUSE_NS     50000

void mrrc_pause_for(long ns)
{
	struct timespec time = { .tv_nsec = ns };
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	while (nanosleep(&time, &time) && errno == EINTR)
		;
	pthread_setcancelstate(old, NULL);
}

void mrrc_pause(unsigned *tries)
{
	if (*tries >= PAUSE_YIELDS) {
		mrrc_pause_for(PAUSE_NS);
		return;
	}
	++*tries;
	sched_yield();
}

void mrrc_pause_brief(unsigned left)
{
	if (left > PAUSE_NAPS)
		sched_yield();
	else if (left)
		mrrc_pause_for(PAUSE_NS);
}
