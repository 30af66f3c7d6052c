/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps of transactions: see frrwp_steps.h.
 */
#include "frrwp_steps.h"

#include <stdio.h>
#include <string.h>

#define STEP_NAME(name) #name,

static const char *const step_name[] = { STEPS(STEP_NAME) };

void ft_steps_note(struct ft_steps *best, const double *times)
{
	enum step step;
	double after;

	if (!best->any || times[S_posted] < best->at[S_posted])
		memcpy(best->at, times, sizeof(best->at));
	best->any = true;
	for (step = S_free; step < STEP_CNT; step++) {
		after = times[step] - times[S_posted];
		/*
		 * with crw the application may be free before the core gets the
		 * write
		 */
		if (after > 0 &&
		    (!best->soonest[step] || after < best->soonest[step]))
			best->soonest[step] = after;
	}
}

void ft_steps_print(const struct ft_steps *best)
{
	enum step step;
	double at;

	for (step = 0; step < STEP_CNT; step++) {
		at = best ? best->at[step] : 0;
		if (best && step >= S_free && at > best->at[S_posted])
			at = best->at[S_posted] + best->soonest[step];
		if (!best)
			printf(" %8s", step_name[step]);
		else if (at < 0)
			printf(" %8s", "-");
		else
			printf(" %8.1f", at);
	}
	printf("\n");
}
