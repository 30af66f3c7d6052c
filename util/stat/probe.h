/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tries the provider in a child process: does a copy of libfabric load the
 * provider? Collects the provider's lines on standard error and its domain's
 * segment.
 */
#ifndef STAT_PROBE_H
#define STAT_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stat/segment.h"

struct stat_probe_how {
	const char *path; /* path of libfabric */
	bool verbs;	  /* try verbs before tcp, unless FI_PROVIDER decides */
	bool open;	  /* open a domain, and keep it open */
	bool always;	  /* register over every core */
};

/* The child's answer. */
struct stat_probed {
	char error[256];  /* reason why libfabric was not loaded, or "" */
	uint32_t version; /* version of libfabric */
	char file[2048];  /* path of the provider's file; "": not loaded */
	/* the provider's version; 0: it offers nothing here */
	uint32_t provider;
	char name[128]; /* the provider's name, with its core */
	/* error of the call that failed, and the call's name; or 0 */
	int ret;
	char call[16];
};

struct stat_probe {
	pid_t pid;
	int hold; /* a pipe whose close ends the child */
	struct stat_probed ed;
	char *said; /* the child's lines on standard error */
	/*
	 * the provider's file is loaded, and stays mapped even if it refuses
	 * libfabric
	 */
	bool loaded;
	bool has_segment;
	struct stat_segment segment;
};

/*
 * Starts a probe; must be called before this process hooks its libc. Returns
 * -E* if there is no child, or the child did not answer.
 */
int stat_probe(const struct stat_probe_how *how, struct stat_probe *probe);

/* Ends the child. */
void stat_probe_fini(struct stat_probe *probe);

#define STAT_PROBE_CHOOSE                  \
	"FI_PROVIDER=\"verbs;ofi_mrrc\", " \
	"\"verbs;ofi_rxm;ofi_mrrc\" for MPI, or FI_HOOK=mrrc"

/* Does @providers, as in FI_PROVIDER or FI_HOOK, name ofi_mrrc? */
bool stat_probe_named(const char *providers);

#endif /* STAT_PROBE_H */
