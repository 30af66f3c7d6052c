/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The leased files of a domain: mappings from which operations read, and a
 * thread that gives a file's lease up when a writer waits for the file.
 *
 * An operation holds the part of a mapping that it reads, from before the
 * operation is posted until it has ended. A hold succeeds only while the lease
 * is whole. When a lease is to be given up, no hold succeeds any more, and the
 * thread waits until no hold is left. Operations that take longer than
 * MRRC_LEASE_COPY_MS read a copy at the same addresses; where the network reads
 * the pages themselves (attr.pins), such operations are marked as failed after
 * MRRC_LEASE_FAIL_MS. Then the lease is given up, and the writer goes on.
 *
 * If a lease is not given up within mrrc_lease_break_ms(), because the process
 * was stopped, for example, the kernel takes the lease. So data of holds that
 * are shorter are right; longer holds are lost if a writer waits, or has
 * waited.
 *
 * A mapping without users is kept, with its lease, for the next user of the
 * same file. All calls except open and close: any thread that holds no lock.
 */
#ifndef MRRC_LEASE_H
#define MRRC_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/queue.h>

#include "sys/base/fd_id.h"

#define MRRC_LEASE_COPY_MS 100
#define MRRC_LEASE_FAIL_MS 5000

struct mrrc_leases;
struct mrrc_lease;
struct mrrc_lease_file;

struct mrrc_leases_attr {
	void *arg; /* argument of the following calls, made with no lock held */
	/* the range is about to be unmapped: registrations must go */
	void (*forget)(void *arg, uintptr_t start, size_t len);
	/* a writer waits for operations that may have ended */
	void (*progress)(void *arg);
	bool pins;	   /* the network reads pages, not addresses */
	unsigned idle_max; /* maximum number of mappings kept without a user */
	/* for tests, in place of MRRC_LEASE_COPY_MS and _FAIL_MS; or 0 */
	unsigned wait_ms;
	/* for tests, in place of the kernel's time; or NULL */
	const atomic_uint *break_ms;
};

/* A part that an operation reads. */
struct mrrc_lease_hold {
	struct mrrc_lease *lease;
	size_t offset, len;
	int64_t since;
	bool copied;	    /* the set's lock */
	atomic_bool failed; /* the bytes read may not be the file's */
	TAILQ_ENTRY(mrrc_lease_hold) link;
};

/* -ENOTSUP: leases cannot work here. */
int mrrc_leases_open(const struct mrrc_leases_attr *attr,
		     struct mrrc_leases **leases);

/* Closes the set, when there are no users. */
void mrrc_leases_close(struct mrrc_leases *leases);

/* Adds a user of the file behind @fd, which is @id; errors: lease_file.h. */
int mrrc_lease_get(struct mrrc_leases *leases, int fd,
		   const struct mrrc_fd_id *id, struct mrrc_lease **lease);

/*
 * Removes a user of the lease, whose holds were released, or whose last hold
 * failed with -ESTALE.
 */
void mrrc_lease_put(struct mrrc_lease *lease);

/*
 * Holds a part of the file, and sets *addr to the part's address. -ENODATA: the
 * file is shorter. -ESTALE: the lease is not whole, and the user should put it.
 */
int mrrc_lease_hold(struct mrrc_lease *lease, uint64_t offset, size_t len,
		    struct mrrc_lease_hold *hold, char **addr);
void mrrc_lease_release(struct mrrc_lease_hold *hold);

/* Does a writer wait for the lease, which this hold keeps? */
bool mrrc_lease_wanted(const struct mrrc_lease_hold *hold);

/*
 * May the bytes that were read differ from the file? Called when all were read.
 */
bool mrrc_lease_lost(const struct mrrc_lease_hold *hold);

/* The file, for the functions of lease_file.h on held parts. */
const struct mrrc_lease_file *mrrc_lease_file(const struct mrrc_lease *lease);

#endif /* MRRC_LEASE_H */
