/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens the device to be measured, with a domain, and registers memory in the
 * domain.
 */
#ifndef PROF_DEVICE_H
#define PROF_DEVICE_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "prof/options.h"

#define PROF_FIVERSION FI_VERSION(1, 17)

/* The text of an error, with a remedy. */
struct prof_err {
	char text[512];
};

/* Stores the text in @err; returns @ret, which is negative. */
int prof_fail(struct prof_err *err, int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct prof_device {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	uint64_t key; /* the key to request next */
};

/*
 * Called before libfabric starts: switches libfabric's own cache and hooks off.
 */
void prof_device_env(void);

int prof_device_open(const struct prof_options *options,
		     struct prof_device *device, struct prof_err *err);
void prof_device_close(struct prof_device *device);

/* The device's names. */
const char *prof_device_provider(const struct prof_device *device);
const char *prof_device_name(const struct prof_device *device);

/* Registers a buffer with all local rights. 0 or -FI_E*. */
int prof_device_reg(struct prof_device *device, void *buf, size_t len,
		    struct fid_mr **mr);

/* Makes hints to query a device; NULL: any provider, or any domain. */
struct fi_info *prof_device_hints(const char *provider, const char *domain);

/*
 * Prints providers and devices, one on each line; returns the number of lines.
 */
int prof_device_list(struct prof_err *err);

#endif /* PROF_DEVICE_H */
