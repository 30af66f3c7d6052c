/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of the userfaultfd monitor, private to mon_uffd.c (watches ranges)
 * and mon_uffd_read.c (reads events).
 */
#ifndef MRRC_MON_UFFD_PRIV_H
#define MRRC_MON_UFFD_PRIV_H

#include "sys/monitor/mon.h"

#include <semaphore.h>

#include "sys/base/fd_id.h"

#define MRRC_UFFD_QUEUE 64 /* events; the last one takes in further events */

struct mrrc_uffd_event {
	struct mrrc_range range;
	enum mrrc_mon_event kind;
	bool announced; /* by a hook, not by the kernel */
};

struct mrrc_uffd {
	int fd;	     /* the userfaultfd; after stop, a stand-in */
	int stop_fd; /* readable once the reader has to end */
	int spare;   /* a userfaultfd, see mrrc_uffd_prepare(); -1: none */
	/* a program may have closed a descriptor and reused its number */
	struct mrrc_fd_id id;
	struct mrrc_fd_id stop_id;
	struct mrrc_fd_id spare_id;
	size_t huge; /* huge page size, 0 if none */
	bool tells;  /* mrrc_uffd_anonymous() works */
	/* uffd_prepare(): number of ranges so far; the last range to examine */
	_Atomic uint64_t watches, examined;
	pthread_mutex_t start_lock; /* no other lock is held */
	bool runs;		    /* both threads run; start_lock */
	atomic_bool woken;	    /* stop_fd can be read */
	pthread_t reader;
	pthread_t handler;
	sem_t ready;	    /* the reader has its own descriptors */
	sem_t work;	    /* wakes the handler */
	atomic_bool broken; /* the reader has ended: fd can be closed */
	atomic_bool stop;   /* the threads have to end */
	/*
	 * Held with all signals blocked, for reading and queuing only. Guards
	 * the fields below. mrrc_uffd_settle() checks that the queue is empty
	 * and makes the monitor's seq even under this lock, so that no event is
	 * queued between the check and the change of seq.
	 */
	pthread_mutex_t lock;
	struct mrrc_uffd_event queue[MRRC_UFFD_QUEUE];
	unsigned queued;
	bool dead; /* the reader reads no more: seq stays odd */
};

#endif /* MRRC_MON_UFFD_PRIV_H */
