/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads ofi_rxm's parameters (rxm.h), which may be in libfabric's file as well
 * as in the environment: libfabric gives their values to any provider that
 * defines them.
 */
#include "config.h"
#include <pthread.h>

#include "fi/below.h"
#include "fi/mrrc_fi.h"
#include "fi/rxm.h"

/* The first version of libfabric whose ofi_rxm rxm.c does not know. */
#define RXM_UNKNOWN FI_VERSION(2, 8)

static struct {
	pthread_once_t once;
	size_t copied;
} rxm = { .once = PTHREAD_ONCE_INIT };

static void rxm_read(void)
{
	static struct fi_provider like = { .name = "ofi_rxm" };
	size_t buffer = SIZE_MAX, segmented = SIZE_MAX;

	fi_param_define(&like, "buffer_size", FI_PARAM_SIZE_T,
			"as ofi_rxm defines it");
	fi_param_define(&like, "sar_limit", FI_PARAM_SIZE_T,
			"as ofi_rxm defines it");
	fi_param_get_size_t(&like, "buffer_size", &buffer);
	fi_param_get_size_t(&like, "sar_limit", &segmented);
	rxm.copied = mrrc_below_copied(buffer, segmented);
}

size_t mrrc_rxm_copied(void)
{
	if (FI_VERSION_GE(fi_version(), RXM_UNKNOWN))
		return 0;
	pthread_once(&rxm.once, rxm_read);
	return rxm.copied;
}
