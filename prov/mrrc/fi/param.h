/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parameters, FI_OFI_MRRC_*: read once, before an object is opened.
 */
#ifndef MRRC_PARAM_H
#define MRRC_PARAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cost/cost.h"
#include "core/cache/node.h"
#include "sys/monitor/mon.h"
#include "sys/base/pages.h"

enum mrrc_register {
	MRRC_REGISTER_AUTO,   /* where the core requires FI_MR_LOCAL */
	MRRC_REGISTER_ALWAYS, /* over every core: for tests */
	MRRC_REGISTER_NEVER,  /* descriptors are up to the application */
};

/* Values of `revoke` other than a number of milliseconds. */
#define MRRC_REVOKE_UNLIMITED SIZE_MAX
#define MRRC_REVOKE_AUTO      (SIZE_MAX - 1)

enum mrrc_helper {
	MRRC_HELPER_AUTO, /* a helper where its thread may call the core */
	/* a helper everywhere: the core is opened for any thread */
	MRRC_HELPER_ALWAYS,
	MRRC_HELPER_NEVER,
	MRRC_HELPER_PREDICT, /* as ALWAYS, and registers ahead of use */
};

enum mrrc_libc_hooks {
	MRRC_LIBC_HOOKS_AUTO,
	MRRC_LIBC_HOOKS_ON, /* warn if they cannot be placed */
	MRRC_LIBC_HOOKS_OFF,
};

struct mrrc_params {
	enum mrrc_register reg;
	size_t revoke; /* ms that keys may outlive registrations: hook/mr.c */
	size_t cache_max_size; /* bytes; SIZE_MAX: not set, derive */
	size_t alloc_max_size; /* limit for fi_mr_alloc(), the same */
	size_t alloc_idle;     /* ms */
	size_t cw_cancel;      /* ms; 0: no limit */
	enum mrrc_pages alloc_pages;
	size_t cache_max_count; /* regions; SIZE_MAX: not set, derive */
	size_t node_max_size;	/* bytes of all processes; SIZE_MAX: not set */
	enum mrrc_node_helpers helper_node;
	enum mrrc_helper helper;
	enum mrrc_mon_probe probe;
	char policy[64];
	bool cost_measure;
	struct mrrc_cost cost; /* unless measured */
	char cost_text[PATH_MAX];
	size_t bounce_size; /* size of the largest buffer that is copied */
	char monitor[16];   /* "auto", "uffd", "manual", "none" */
	enum mrrc_libc_hooks hooks;
	char stats_file[PATH_MAX]; /* empty: none */
	char trace[PATH_MAX];	   /* empty: none */
	size_t trace_size;	   /* bytes */
};
extern struct mrrc_params mrrc_params;
void mrrc_params_init(void);
/* A path with %p replaced by the process id; -FI_EINVAL: too long. */
int mrrc_param_path(const char *pattern, char *path, size_t size);

#endif /* MRRC_PARAM_H */
