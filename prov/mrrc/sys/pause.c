/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Short waits (pause.h). */
#include "config.h"
#include "sys/pause.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define PAUSE_YIELDS 100
#define PAUSE_NAPS   4 /* naps before the caller gives up */
#define PAUSE_NS     50000

static void nap(void)
{
	const struct timespec time = { .tv_nsec = PAUSE_NS };
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	nanosleep(&time, NULL);
	pthread_setcancelstate(old, NULL);
}

void mrrc_pause(unsigned *tries)
{
	if (*tries >= PAUSE_YIELDS) {
		nap();
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
		nap();
}
