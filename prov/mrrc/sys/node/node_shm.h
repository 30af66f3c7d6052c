/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The segment in which the processes of one user on a node tell each other
 * which bytes they have registered and lack: a file with a slot for each
 * process, in a directory that sys/node/node_dir.h finds. core/cache/node.h
 * computes the consequences.
 *
 * A process writes only its own slot, and takes no lock: a process that is
 * stopped or killed at any moment does not stop other processes. A process does
 * not trust the segment: it cuts values to their ranges, and its loops end
 * after all slots.
 *
 * A process holds an open-file-description lock on its slot's byte of the file;
 * the kernel releases the lock when the process ends, whatever its number and
 * name space. Other marks of a living process fail: process numbers are reused
 * and differ between containers; fcntl(2)'s locks of a process end when any
 * code of the process closes the file; a robust mutex ends with its thread, and
 * has the kernel follow pointers that other processes may write. Forked
 * children share an open-file-description lock, so a fork handler closes the
 * descriptor in the child; the file is mapped by another descriptor, since a
 * mapping keeps a file description, too. A child made by a bare clone(2) keeps
 * its parent's slot locked until the child ends. Asking whether a slot is
 * locked takes some 500 ns, so a process asks only when it lacks bytes, and not
 * again for a slot's generation whose process was found dead.
 *
 * Threading: one call at a time for each object, except _ring and _wait.
 */
#ifndef MRRC_NODE_SHM_H
#define MRRC_NODE_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cache/node.h"

/*
 * The processes of all versions of the provider share one segment, since
 * otherwise each version would take the whole budget. So the name, the magic
 * number and the fields below must not change. New fields go into the slots'
 * spare bytes, which a process zeroes when it takes a slot, or behind the last
 * slot.
 */
#define MRRC_NODE_SLOTS	    1024
#define MRRC_NODE_SHM_NAME  "ofi_mrrc-%u.1" /* %u: the user ID */
#define MRRC_NODE_SHM_MAGIC UINT64_C(0x65646f6e5f697201)

/* Flags of a slot. */
#define MRRC_NODE_LIVE	 1u
#define MRRC_NODE_ACTIVE 2u
#define MRRC_NODE_HELPER 4u

/* Amounts are in units of MRRC_NODE_UNIT bytes. */
struct mrrc_node_slot {
	_Alignas(64) _Atomic uint64_t word; /* generation << 40 | reserved */
	_Atomic uint64_t want;
	_Atomic uint64_t used;
	_Atomic uint64_t cpus;
	_Atomic uint32_t flags;
	_Atomic uint32_t heard; /* the bell's number at the last look */
	_Atomic uint64_t spare[3];
};

/* An empty file, which is all zeroes, is a segment without processes. */
struct mrrc_node_head {
	_Alignas(64) _Atomic uint64_t magic; /* MRRC_NODE_SHM_MAGIC or 0 */
	/* number of slots that were ever in use; no other slots are read */
	_Atomic uint32_t slots;
	_Atomic uint32_t bell; /* a futex: some process lacks bytes */
	struct mrrc_node_slot slot[MRRC_NODE_SLOTS];
};

_Static_assert(sizeof(struct mrrc_node_slot) == 64 &&
		       offsetof(struct mrrc_node_slot, flags) == 32 &&
		       offsetof(struct mrrc_node_head, slot) == 64,
	       "other versions have another layout");

struct mrrc_node_shm;

/* The path of this user's segment in @dir. -ENAMETOOLONG. */
int mrrc_node_shm_path(const char *dir, char *path, size_t size);

/*
 * Sets fork handlers. Called before the caller sets its own, whose locks are
 * held during mrrc_node_shm_open(), as handlers run in reverse order.
 */
void mrrc_node_shm_init(void);

/*
 * Takes a slot of this user's segment in @dir; makes the segment if it does not
 * exist. -ELOOP, -EPERM: the file is not this user's alone; -EPROTO: the file
 * is not a segment; -EUSERS: no slot is left; -ENOSPC: no memory; or the error
 * of a call.
 */
int mrrc_node_shm_open(const char *dir, struct mrrc_node_shm **shm);
void mrrc_node_shm_close(struct mrrc_node_shm *shm);

/*
 * The meaning of an error of mrrc_node_shm_open() as text; NULL: strerror(3)
 * has the text.
 */
const char *mrrc_node_shm_why(int err);

/* Is the slot still ours? false: the application has closed the descriptor. */
bool mrrc_node_shm_whole(const struct mrrc_node_shm *shm);

/*
 * This process's slot, to write; mrrc_node_shm_reserve() sets the reservation.
 */
struct mrrc_node_slot *mrrc_node_shm_mine(struct mrrc_node_shm *shm);
void mrrc_node_shm_reserve(struct mrrc_node_shm *shm, uint64_t units);

/*
 * Reads the slots of all processes into @share, which has room for
 * MRRC_NODE_SLOTS. Returns the number of processes; *self: the index of this
 * process. @look: asks the kernel which processes are alive; otherwise
 * processes that have died since the last call with @look are included. @now:
 * ms.
 */
size_t mrrc_node_shm_read(struct mrrc_node_shm *shm, bool look, uint64_t now,
			  struct mrrc_node_share *share, size_t *self);

/* Wakes the threads of all processes that wait. Any thread. */
void mrrc_node_shm_ring(struct mrrc_node_shm *shm);

/*
 * mrrc_node_shm_wait() waits until the bell's number is not @bell, that is,
 * until a process rings, but at most @ns nanoseconds; 0: without limit. Any
 * thread.
 */
uint32_t mrrc_node_shm_bell(const struct mrrc_node_shm *shm);
void mrrc_node_shm_wait(struct mrrc_node_shm *shm, uint32_t bell, uint64_t ns);

#endif /* MRRC_NODE_SHM_H */
