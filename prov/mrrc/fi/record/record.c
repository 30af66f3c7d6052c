/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The recorder (record.h): from requests to records.
 *
 * Each process records into one file, which is opened with the first domain and
 * closed at exit.
 */
#include "config.h"
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "fi/param.h"
#include "fi/record/record.h"
#include "fi/say.h"
#include "sys/cache/cache_mt.h"
#include "sys/base/own_file.h"
#include "sys/observe/trace_file.h"
#include "fi/report.h"

static struct {
	pthread_once_t once;
	struct mrrc_mutex lock; /* before locks with a rank; guards opening */
	bool tried;		/* opened, or failed, here */
	bool child;		/* forked since init */
	struct mrrc_trace_file *_Atomic file; /* NULL: none */
	atomic_bool warned;
	_Atomic uint64_t eps;
} recorder = {
	.once = PTHREAD_ONCE_INIT,
	.lock = MRRC_MUTEX_INIT(MRRC_RANK_FILES),
};

/* The call that this thread is in. */
static _Thread_local struct {
	const void *site;
	uint64_t peer;
	uint64_t now; /* the time of a group of ends; else 0 */
	enum mrrc_trace_op op;
	enum mrrc_trace_peer kind;
} recorded_call __attribute__((tls_model("initial-exec")));

static struct mrrc_trace_file *record_file(void)
{
	return atomic_load_explicit(&recorder.file, memory_order_acquire);
}

/* ---- opening ---- */

/* Unranked: the handlers of stats_file.c take a lock of the same rank. */
static void fork_prepare(void)
{
	pthread_mutex_lock(&recorder.lock.mutex);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&recorder.lock.mutex);
}

static void fork_child(void)
{
	struct mrrc_trace_file *file = record_file();

	atomic_store(&recorder.file, NULL);
	recorder.child = true;
	recorder.tried = false;
	if (file)
		mrrc_trace_file_forked(file);
	pthread_mutex_unlock(&recorder.lock.mutex);
}

static void record_init(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static const char *record_why(int ret)
{
	switch (-ret) {
	case EINVAL:
		return "not a regular file";
	case EBUSY:
		return "another process writes it: put %p, the process, into "
		       "the path";
	case E2BIG:
		return "no room in the address space: lower "
		       "FI_OFI_MRRC_TRACE_SIZE";
	case EFBIG:
		return "beyond the limit for files (ulimit -f)";
	case EOVERFLOW:
		return "FI_OFI_MRRC_TRACE_SIZE is reached";
	default:
		return mrrc_own_file_why(ret) ?: fi_strerror(-ret);
	}
}

/* Opens the file. The lock is held. */
static void record_open_file(void)
{
	struct mrrc_trace_file *file;
	char path[PATH_MAX];
	int ret;

	recorder.tried = true;
	if (recorder.child && !strstr(mrrc_params.trace, "%p")) {
		MRRC_INFO(DOMAIN,
			  "requests of a forked process are not recorded: "
			  "FI_OFI_MRRC_TRACE has no %%p: %s\n",
			  mrrc_params.trace);
		return;
	}
	ret = mrrc_param_path(mrrc_params.trace, path, sizeof(path));
	if (ret) {
		mrrc_say(NULL, FI_LOG_DOMAIN,
			 "requests are not recorded: %s is too long",
			 mrrc_params.trace);
		return;
	}
	ret = mrrc_trace_file_open(path, mrrc_params.trace_size, &file);
	if (ret) {
		mrrc_say(NULL, FI_LOG_DOMAIN,
			 "requests are not recorded in %s: %s", path,
			 record_why(ret));
		return;
	}
	MRRC_INFO(DOMAIN, "requests are recorded in %s\n", path);
	atomic_store(&recorder.warned, false);
	atomic_store_explicit(&recorder.file, file, memory_order_release);
}

void mrrc_record_open(struct mrrc_reg *reg)
{
	struct mrrc_stats_shm_info info = { .provider = reg->core_name };
	struct mrrc_trace_file *file;

	if (!*mrrc_params.trace)
		return;
	pthread_once(&recorder.once, record_init);
	mrrc_mutex_lock(&recorder.lock);
	if (!recorder.tried)
		record_open_file();
	file = record_file();
	if (file) {
		if (reg->cache)
			mrrc_reg_info(reg, &info);
		reg->traced =
			1 +
			mrrc_trace_file_domain(file, &info,
					       reg->cache ? &reg->cost : NULL);
	}
	mrrc_mutex_unlock(&recorder.lock);
}

uint64_t mrrc_record_ep(void)
{
	return atomic_fetch_add(&recorder.eps, 1) + 1;
}

/* ---- records ---- */

void mrrc_record_by(enum mrrc_trace_op op, enum mrrc_trace_peer kind,
		    uint64_t peer, const void *site)
{
	recorded_call.op = op;
	recorded_call.kind = kind;
	recorded_call.peer = peer;
	recorded_call.site = site;
}

static __attribute__((noinline)) void
record_warn(const struct mrrc_trace_file *file)
{
	const int error = atomic_load(&file->error);

	mrrc_say(&recorder.warned, FI_LOG_DOMAIN,
		 "no more requests are recorded, only counted: %s",
		 record_why(error));
}

static void record_put(struct mrrc_trace_file *file, const struct mrrc_reg *reg,
		       const struct mrrc_trace_rec *what,
		       enum mrrc_trace_result result, unsigned access,
		       uint64_t *chain)
{
	const enum mrrc_trace_op op = recorded_call.op ? recorded_call.op :
							 MRRC_TRACE_REG;
	struct mrrc_trace_rec *rec = mrrc_trace_file_next(file);

	if (mrrc_unlikely(!rec)) {
		record_warn(file);
		return;
	}
	rec->begin = htole64(what->begin);
	rec->addr = htole64(what->addr);
	rec->len = htole64(what->len);
	rec->cost = htole64(what->cost);
	rec->peer = htole64(recorded_call.peer);
	rec->site = htole64((uintptr_t) recorded_call.site);
	rec->domain = htole16(reg->traced - 1);
	rec->how = mrrc_trace_how(access, result, recorded_call.kind);
	if (chain)
		mrrc_trace_file_chain(file, rec, chain);
	mrrc_trace_file_commit(rec, op);
}

static int record_lookup(struct mrrc_reg *reg, const struct iovec *iov,
			 enum mrrc_access access, unsigned pieces,
			 struct mrrc_plan *plan, struct mrrc_admit *admit,
			 bool *copy)
{
	/* a request that failed before its plan stays a miss */
	plan->missing = 1;
	return admit ? mrrc_cache_mt_get_or_copy(reg->cache, admit,
						 iov->iov_base, iov->iov_len,
						 access, pieces, plan, copy) :
		       mrrc_cache_mt_get_pieces(reg->cache, iov->iov_base,
						iov->iov_len, access, pieces,
						plan);
}

int mrrc_record_get(struct mrrc_reg *reg, uint64_t *chain,
		    const struct iovec *iov, enum mrrc_access access,
		    unsigned pieces, struct mrrc_plan *plan,
		    struct mrrc_admit *admit, bool *copy)
{
	struct mrrc_trace_file *file = record_file();
	enum mrrc_trace_result result = MRRC_TRACE_HIT;
	struct mrrc_trace_rec rec = { 0 };
	int ret;

	if (!file) /* a forked child */
		return record_lookup(reg, iov, access, pieces, plan, admit,
				     copy);
	rec.begin = mrrc_trace_file_now(file);
	ret = record_lookup(reg, iov, access, pieces, plan, admit, copy);
	if (mrrc_unlikely(ret || plan->missing)) {
		result = ret	       ? MRRC_TRACE_FAILED :
			 copy && *copy ? MRRC_TRACE_COPY :
					 MRRC_TRACE_MISS;
		rec.cost = mrrc_trace_file_now(file) - rec.begin;
	}
	rec.addr = (uintptr_t) iov->iov_base;
	rec.len = iov->iov_len;
	record_put(file, reg, &rec, result, access, ret ? NULL : chain);
	return ret;
}

void mrrc_record_hit(const struct mrrc_reg *reg, uint64_t *chain,
		     const void *addr, size_t len, enum mrrc_access access)
{
	struct mrrc_trace_file *file = record_file();
	struct mrrc_trace_rec rec = {
		.addr = (uintptr_t) addr,
		.len = len,
	};

	if (!file)
		return;
	rec.begin = mrrc_trace_file_now(file);
	record_put(file, reg, &rec, MRRC_TRACE_HIT, access, chain);
}

uint64_t mrrc_record_start(const struct mrrc_reg *reg)
{
	struct mrrc_trace_file *file = record_file();

	return reg->traced && file ? mrrc_trace_file_now(file) : 0;
}

/* The access that a cache would record for the request. */
static unsigned record_access(uint64_t access)
{
	unsigned bits = 0;

	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		bits |= MRRC_RW;
	if (access & FI_REMOTE_READ)
		bits |= MRRC_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		bits |= MRRC_REMOTE_WRITE;
	return bits;
}

void mrrc_record_own(const struct mrrc_reg *reg, uint64_t start,
		     const struct fi_mr_attr *attr, int ret, uint64_t *chain)
{
	struct mrrc_trace_file *file = record_file();
	struct mrrc_trace_rec rec;
	size_t i;

	if (!start || !file)
		return;
	rec.begin = start;
	rec.cost = mrrc_trace_file_now(file) - start;
	for (i = 0; i < attr->iov_count; i++) {
		rec.addr = (uintptr_t) attr->mr_iov[i].iov_base;
		rec.len = attr->mr_iov[i].iov_len;
		record_put(file, reg, &rec,
			   ret ? MRRC_TRACE_FAILED : MRRC_TRACE_CORE,
			   record_access(attr->access), ret ? NULL : chain);
		rec.cost = 0; /* a single call */
	}
}

void mrrc_record_end_begin(void)
{
	struct mrrc_trace_file *file = record_file();

	recorded_call.now = file ? mrrc_trace_file_now(file) : 0;
}

void mrrc_record_end_done(void)
{
	recorded_call.now = 0;
}

void mrrc_record_end(uint64_t *chain)
{
	struct mrrc_trace_file *file = record_file();

	if (*chain && file)
		mrrc_trace_file_end(file, chain,
				    recorded_call.now ?
					    recorded_call.now :
					    mrrc_trace_file_now(file));
	*chain = 0;
}
