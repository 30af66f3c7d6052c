/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's registrations on a domain of a core provider, and the cache
 * that decides which registrations are made. struct mrrc_reg is embedded in the
 * domains of the provider (obj/domain.c) and of the hook (hook/domain.c).
 *
 * Any thread, no lock held, except init, open and close.
 */
#ifndef MRRC_REG_H
#define MRRC_REG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <bsd/sys/queue.h>

#include <rdma/fi_domain.h>

#include "fi/below.h"
#include "core/cost/cost.h"
#include "core/text/hash.h"
#include "core/index/region.h"
#include "core/text/stats.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/monitor/mon.h"
#include "sys/observe/stats_shm.h"

struct fi_mrrc_counter;
struct fi_mrrc_stats;
struct mrrc_cache_mt;
struct mrrc_budget;
struct mrrc_alloc;
struct mrrc_heap;
struct mrrc_heaps;
struct mrrc_ring;

#define MRRC_ALLOC_RIGHTS 4 /* combinations of remote rights */

struct mrrc_reg {
	struct fid_domain *core;
	/* the core's calls, also when core->mr is replaced */
	struct fi_ops_mr *core_ops;
	const char *core_name; /* the core's name, for messages */
	char device[64];       /* the domain's name */
	struct mrrc_cost cost; /* cost of registering on the device */
	int mr_mode;	       /* the core's modes, as bits */
	size_t key_size;
	unsigned below; /* the core's enum mrrc_below */
	bool hmem;	/* opened with FI_HMEM */
	/* any thread may deregister, the application's or ours */
	bool any_thread;
	bool helper;   /* a thread of ours deregisters */
	bool predicts; /* the helper registers ahead of use */
	/*
	 * ns that keys outlive registrations, as in attr.revoke; 0: not at all
	 */
	uint64_t revoke;
	struct mrrc_pool *records; /* operations' records; or NULL */
	/* counter of the keys that we choose */
	atomic_uint_fast64_t next_key;
	struct mrrc_secret secret;
	struct mrrc_cache_mt *cache;
	pid_t pid;	 /* the process that opened the domain */
	unsigned traced; /* number in the recording, from 1; 0: not recorded */
	struct mrrc_mon *mon;
	bool hooks;		    /* the hooks of libc are used */
	struct mrrc_budget *budget; /* the node's; NULL: none */
	/* statistics segment; NULL: other processes cannot see the domain */
	struct mrrc_stats_shm *segment;
	struct mrrc_alloc *_Atomic alloc;	/* made at first use */
	struct mrrc_heaps *_Atomic alloc_heaps; /* alloc's */
	/* heaps of `alloc` with the default kind of pages, made at first use */
	struct mrrc_heap *_Atomic alloc_usual[MRRC_ALLOC_RIGHTS];
	/*
	 * is this struct in the list of alloc/process.c, whose lock guards the
	 * list? Only opening and closing the domain change @serves
	 */
	bool serves;
	TAILQ_ENTRY(mrrc_reg) process;
	struct mrrc_ring *_Atomic ring; /* for fi/file, made at first use */
	struct mrrc_stats last;		/* counters before the last flush */
	char unkept[MRRC_MON_REASON];	/* why memory is not watched */
	/* which calls of libc are not hooked, and why */
	char unhooked[MRRC_LIBC_HOOKS_WHY];
	/* bytes: the cache's limit, if locked memory makes it small; else 0 */
	size_t locked_max;
	/* in the list of stats_file.c, whose lock guards this and link */
	bool listed;
	TAILQ_ENTRY(mrrc_reg) link;
};

/*
 * Initialises the fields that are known before the core's domain is open.
 * @thread_safe: any thread may call the core's domain.
 */
void mrrc_reg_init(struct mrrc_reg *reg, const char *core_name, int mr_mode,
		   const struct fi_info *info, bool thread_safe);

/* Opens monitor and cache, by the parameters. */
int mrrc_reg_open(struct mrrc_reg *reg);

/*
 * To be called in place of mrrc_reg_open(): lets other processes see that the
 * domain registers nothing.
 */
void mrrc_reg_idle(struct mrrc_reg *reg);

/*
 * Called when the core's domain is open. obj/attach.h calls mrrc_reg_attach()
 * and mrrc_reg_begin().
 */
void mrrc_reg_attach(struct mrrc_reg *reg, struct fid_domain *core);

/*
 * Called before the first use of the cache, with the cost of registering. From
 * now on a thread examines whether lookups need to ask the kernel.
 */
void mrrc_reg_begin(struct mrrc_reg *reg, const struct mrrc_cost *cost);

/*
 * Makes a registration of exactly this range, with these rights, past all
 * caches. Close it with fi_close().
 */
int mrrc_reg_own(struct mrrc_reg *reg, const void *buf, size_t len,
		 uint64_t rights, struct fid_mr **mr);

/* Rights of the provider's own memory for operations. */
#define MRRC_REG_BOUNCE (FI_SEND | FI_WRITE | FI_RECV | FI_READ)

/* The rights of a buffer that peers write to, on every core. */
#define MRRC_REG_EXPOSE (FI_RECV | FI_READ | FI_REMOTE_WRITE)

/* The address by which a peer reaches buf in a registration from start on. */
static inline uint64_t mrrc_reg_remote(const struct mrrc_reg *reg,
				       const void *buf, uintptr_t start)
{
	return (uintptr_t) buf - (reg->mr_mode & FI_MR_VIRT_ADDR ? 0 : start);
}

/* The bit that is set in each key that the provider chooses */
static inline uint64_t mrrc_reg_key_top(const struct mrrc_reg *reg)
{
	const size_t bits = 8 * reg->key_size;

	return 1ULL << ((bits && bits <= 64 ? bits : 64) - 1);
}

/* Only users of FI_HMEM set the interface; older callers have no such field. */
static inline bool mrrc_reg_is_system(const struct mrrc_reg *reg,
				      const struct fi_mr_attr *attr)
{
	return !reg->hmem || attr->iface == FI_HMEM_SYSTEM;
}

/*
 * Finds the access of the region that could serve an explicit registration.
 * false: the registration must be the core's own.
 */
bool mrrc_reg_kind(const struct mrrc_reg *reg, const struct fi_mr_attr *attr,
		   uint64_t flags, enum mrrc_access *kind);

/* Ends other monitors' watches of a range of ours that may be unmapped now. */
void mrrc_reg_forget(struct mrrc_reg *reg, const void *addr, size_t len);

/*
 * Forgets a range, before it is unmapped. -FI_EINVAL: the range is empty or
 * wraps.
 */
int mrrc_reg_invalidate(struct mrrc_reg *reg, const void *addr, size_t len);

/*
 * Make a registration outside the cache, with a key that the provider chooses,
 * and close it. mrrc_reg_make() returns 0 or -E*, like the calls of struct
 * mrrc_reg_ops.
 */
int mrrc_reg_make(struct mrrc_reg *reg, uintptr_t start, size_t len,
		  enum mrrc_access access, struct fid_mr **mr);
void mrrc_reg_unmake(struct fid_mr *mr, uintptr_t start, size_t len);

/*
 * Called before the core's domain is closed: deregisters the regions that are
 * not held.
 */
void mrrc_reg_flush(struct mrrc_reg *reg);
void mrrc_reg_close(struct mrrc_reg *reg);

/* Fills in the counters except those of operations. */
void mrrc_reg_stats(struct mrrc_reg *reg, struct mrrc_stats *stats);

/*
 * Give the counters to applications: all fields, or one field (-FI_ENOENT: no
 * such name).
 */
int mrrc_stats_out(const struct mrrc_stats *stats, const char *monitor,
		   struct fi_mrrc_stats *out);
int mrrc_stats_out_one(const struct mrrc_stats *stats, size_t index,
		       struct fi_mrrc_counter *out);

#endif /* MRRC_REG_H */
