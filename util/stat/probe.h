/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tries the provider in a child process: whether one copy of libfabric loads
 * it, what it prints on standard error, and what its domain lacks.
 */
#ifndef STAT_PROBE_H
#define STAT_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stat/segment.h"

struct stat_probe_how {
	const char *path; /* of libfabric */
	bool verbs;	  /* try verbs before tcp, unless FI_PROVIDER tells */
	bool open;	  /* open a domain, and keep it open */
	bool always;	  /* register, whether the core needs it or not */
};

/* What the child tells. */
struct stat_probed {
	char error[256];  /* why libfabric was not loaded, or "" */
	uint32_t version; /* of libfabric */
	char file[2048];  /* path of the provider's file; "": not loaded */
	/* the provider's version; 0: it offers nothing here */
	uint32_t provider;
	char name[128]; /* with its core */
	/* error of the call that failed, and its name; or 0 */
	int ret;
	char call[16];
};

struct stat_probe {
	pid_t pid;
	int hold; /* a pipe: the child ends when it is closed */
	struct stat_probed ed;
	char *said; /* all its lines on standard error */
	/*
	 * the provider is loaded: it stays mapped even if it refuses libfabric
	 */
	bool loaded;
	bool has_segment;
	struct stat_segment segment;
};

/*
 * Called before this process hooks its libc. -E*: there is no child, or it did
 * not answer.
 */
int stat_probe(const struct stat_probe_how *how, struct stat_probe *probe);

/* Ends the child. */
void stat_probe_fini(struct stat_probe *probe);

#define STAT_PROBE_CHOOSE                  \
	"FI_PROVIDER=\"verbs;ofi_mrrc\", " \
	"\"verbs;ofi_rxm;ofi_mrrc\" for MPI, or FI_HOOK=mrrc"

/* Does @providers, as FI_PROVIDER or FI_HOOK has them, name this provider? */
bool stat_probe_named(const char *providers);

#endif /* STAT_PROBE_H */
