/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes and closes registrations on the core's domain, as the cache decides.
 * Any thread, no lock held.
 */
#include "config.h"
#include <inttypes.h>
#include <strings.h>
#include <unistd.h>

#include <rdma/fi_ext_mrrc.h>

#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "fi/reg.h"
#include "fi/report.h"
#include "fi/secret.h"
#include "fi/sized.h"
#include "sys/node/budget.h"
#include "sys/cache/cache_mt.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/predict/ahead.h"
#include "sys/proof/prove.h"
#include "fi/reg_budget.h"

#define MRRC_KEY_TRIES 64

static uint64_t reg_rights(enum mrrc_access access)
{
	uint64_t rights = FI_SEND | FI_WRITE;

	if (access & MRRC_RW)
		rights |= FI_RECV | FI_READ;
	if (access & MRRC_REMOTE_READ)
		rights |= FI_REMOTE_READ;
	if (access & MRRC_REMOTE_WRITE)
		rights |= FI_REMOTE_WRITE;
	return rights;
}

/*
 * Where the application chooses keys, the provider's keys come from the upper
 * half of all keys; if the application wants such a key, mr.c evicts the
 * region. Keys are a counter, hashed with the domain's secret, so that a peer
 * cannot guess other keys from its own. A key that is taken is skipped.
 */
static uint64_t reg_key(struct mrrc_reg *reg)
{
	const uint64_t next = atomic_fetch_add(&reg->next_key, 1);
	const uint64_t top = mrrc_reg_key_top(reg);

	return top | (mrrc_hash_keyed(&reg->secret, next) & (top - 1));
}

int mrrc_reg_own(struct mrrc_reg *reg, const void *buf, size_t len,
		 uint64_t rights, struct fid_mr **mr)
{
	struct iovec iov = { (void *) buf, len };
	/* attr[1]: a newer libfabric reads more fields, and finds zeroes */
	struct fi_mr_attr attr[2] = { {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = rights,
		.iface = FI_HMEM_SYSTEM,
	} };
	uint64_t flags = reg->below & MRRC_BELOW_CACHES ? MRRC_MR_NOCACHE : 0;
	int ret, tries = 0;

	do {
		attr->requested_key = reg_key(reg);
		ret = reg->core_ops->regattr(&reg->core->fid, attr, flags, mr);
	} while (ret == -FI_ENOKEY && !(reg->mr_mode & FI_MR_PROV_KEY) &&
		 ++tries < MRRC_KEY_TRIES);
	if (ret)
		MRRC_DBG(MR, "%zu bytes at %p, rights %#" PRIx64 ": %s\n", len,
			 buf, rights, fi_strerror(-ret));
	return ret;
}

int mrrc_reg_make(struct mrrc_reg *reg, uintptr_t start, size_t len,
		  enum mrrc_access access, struct fid_mr **mr)
{
	return mrrc_reg_own(reg, (void *) start, len, reg_rights(access), mr);
}

void mrrc_reg_unmake(struct fid_mr *mr, uintptr_t start, size_t len)
{
	int ret = fi_close(&mr->fid);

	if (ret)
		MRRC_WARN(MR,
			  "the core provider does not deregister %zu "
			  "bytes at %p: %s\n",
			  len, (void *) start, fi_strerror(-ret));
}

static int reg_core(void *arg, uintptr_t start, size_t len,
		    enum mrrc_access access, void **cookie, void **desc)
{
	struct fid_mr *mr;
	int ret;

	ret = mrrc_reg_make(arg, start, len, access, &mr);
	if (ret)
		return ret;
	*cookie = mr;
	*desc = fi_mr_desc(mr);
	return 0;
}

static void reg_dereg(void *arg, struct mrrc_region *const *regions,
		      size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		mrrc_reg_unmake(regions[i]->cookie, regions[i]->start,
				regions[i]->len);
}

static const struct mrrc_reg_ops mrrc_reg_ops = {
	.reg = reg_core,
	.dereg = reg_dereg,
};

static bool reg_helper(unsigned below, bool thread_safe)
{
	switch (mrrc_params.helper) {
	case MRRC_HELPER_ALWAYS:
	case MRRC_HELPER_PREDICT:
		return thread_safe;
	case MRRC_HELPER_AUTO:
		return below & MRRC_BELOW_DEREG_SLOW &&
		       (thread_safe || below & MRRC_BELOW_DEREG_SAFE);
	default:
		return false;
	}
}

void mrrc_reg_init(struct mrrc_reg *reg, const char *core_name, int mr_mode,
		   const struct fi_info *info, bool thread_safe)
{
	const unsigned below = mrrc_below(core_name);

	*reg = (struct mrrc_reg){
		.core_name = core_name,
		.pid = getpid(),
		.mr_mode = mr_mode,
		.key_size = info->domain_attr->mr_key_size,
		.hmem = (info->caps | info->domain_attr->caps) & FI_HMEM,
		.below = below,
		.any_thread = mrrc_params.helper != MRRC_HELPER_NEVER &&
			      (thread_safe || below & MRRC_BELOW_DEREG_SAFE),
		.helper = reg_helper(below, thread_safe),
	};
	if (info->domain_attr->name)
		strncpy(reg->device, info->domain_attr->name,
			sizeof(reg->device) - 1);
	mrrc_secret_make(&reg->secret);
}

/* The limit for the cache: 0 derives the limit, 1 keeps almost nothing. */
static size_t reg_limit(size_t param)
{
	if (param == SIZE_MAX)
		return 0;
	return param ? param : 1;
}

static void reg_open_segment(struct mrrc_reg *reg)
{
	int ret;

	ret = mrrc_stats_shm_open(&reg->segment);
	if (ret)
		MRRC_INFO(MR, "fi_mrrc_stat will not find this domain: %s\n",
			  fi_strerror(-ret));
}

void mrrc_reg_idle(struct mrrc_reg *reg)
{
	reg_open_segment(reg);
	mrrc_report_open(reg);
}

/* Opens the cache; without a segment the counters are in its memory. */
static int reg_open_cache(struct mrrc_reg *reg, struct mrrc_cache_attr *attr)
{
	int ret;

	reg_open_segment(reg);
	if (reg->segment)
		attr->stats = mrrc_stats_shm_stats(reg->segment);
	ret = mrrc_cache_mt_open(attr, &reg->cache);
	if (ret) {
		mrrc_stats_shm_close(reg->segment);
		return ret;
	}
	mrrc_report_open(reg);
	return 0;
}

static int reg_open_monitor(struct mrrc_reg *reg)
{
	char why[MRRC_MON_REASON] = "";
	char hooks[MRRC_LIBC_HOOKS_WHY] = "";
	int ret;

	ret = mrrc_mon_open(mrrc_params.monitor, why, &reg->mon);
	if (ret) {
		MRRC_WARN(MR, "memory monitor %s cannot work here: %s\n",
			  mrrc_params.monitor, why);
		return ret;
	}
	if (mrrc_params.hooks == MRRC_LIBC_HOOKS_OFF)
		strcpy(hooks, "FI_OFI_MRRC_HOOKS=0");
	else if (mrrc_mon_hookable(reg->mon))
		reg->hooks = !mrrc_mon_hook(reg->mon, hooks);
	mrrc_report_monitor(reg, why, hooks);
	mrrc_report_hooks();
	return 0;
}

/* The monitor may stay, for caches of cores (import.c); hooks do not stay. */
static void reg_close_monitor(struct mrrc_reg *reg)
{
	if (reg->hooks)
		mrrc_mon_unhook(reg->mon);
	mrrc_mon_close(reg->mon);
}

int mrrc_reg_open(struct mrrc_reg *reg)
{
	struct mrrc_cache_attr attr = {
		.max_bytes = reg_limit(mrrc_params.cache_max_size),
		.max_regions = reg_limit(mrrc_params.cache_max_count),
		.policy = mrrc_params.policy,
		.ops = &mrrc_reg_ops,
		.arg = reg,
		.helper = reg->helper,
		.predictor = mrrc_params.helper == MRRC_HELPER_PREDICT ?
				     &mrrc_ahead_predictor :
				     NULL,
		.helpers = mrrc_params.helper_node,
		.revoke = reg->revoke,
		.records = reg->records,
	};
	int ret;

	ret = mrrc_reg_join(attr.helper && attr.predictor, &reg->budget);
	if (ret)
		return ret;
	attr.budget = reg->budget;
	if (mrrc_reg_budget_limit(reg))
		attr.max_bytes = mrrc_reg_budget_limit(reg);
	/* "no regions" is no limit of the cache, but one byte works */
	if (!mrrc_params.cache_max_count)
		attr.max_bytes = 1;
	ret = reg_open_monitor(reg);
	if (ret)
		goto err_leave;
	attr.mon = reg->mon;
	ret = reg_open_cache(reg, &attr);
	if (ret)
		goto err_mon;
	mrrc_report_limit(reg);
	reg->predicts = mrrc_cache_mt_predicts(reg->cache);
	if (attr.predictor && !reg->predicts)
		MRRC_WARN(MR, "FI_OFI_MRRC_HELPER=predict has no effect: %s\n",
			  reg->helper ? "the memory monitor does not tell "
					"whether memory has changed" :
					"the core provider cannot be called "
					"by a helper thread");
	return 0;

err_mon:
	reg_close_monitor(reg);
err_leave:
	mrrc_budget_leave(reg->budget);
	return ret;
}

/*
 * Begins to examine the process's code, which takes some 30 ms of a processor.
 * Called after the device is measured, since the examination would disturb the
 * measurement.
 */
static void reg_begin_trust(struct mrrc_reg *reg)
{
	mrrc_prove_tell(mrrc_report_trust);
	if (!mrrc_mon_set_probe(reg->mon, mrrc_params.probe))
		MRRC_WARN(MR, "FI_OFI_MRRC_PROBE=hooked has no effect: not "
			      "every call that unmaps memory is hooked\n");
	mrrc_stats_shm_update();
}

void mrrc_reg_attach(struct mrrc_reg *reg, struct fid_domain *core)
{
	reg->core = core;
	reg->core_ops = core->mr;
}

void mrrc_reg_begin(struct mrrc_reg *reg, const struct mrrc_cost *cost)
{
	reg->cost = *cost;
	mrrc_cache_mt_set_cost(reg->cache, cost);
	reg_begin_trust(reg);
}

#define REG_LOCAL_RW (FI_RECV | FI_READ)
#define REG_RIGHTS \
	(FI_SEND | FI_WRITE | REG_LOCAL_RW | FI_REMOTE_READ | FI_REMOTE_WRITE)

bool mrrc_reg_kind(const struct mrrc_reg *reg, const struct fi_mr_attr *attr,
		   uint64_t flags, enum mrrc_access *kind)
{
	const int remote_modes = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	unsigned bits = MRRC_RO;

	if (flags || attr->iov_count != 1 || !attr->mr_iov->iov_len ||
	    attr->offset || !mrrc_reg_is_system(reg, attr) || !attr->access ||
	    (attr->access & ~REG_RIGHTS) ||
	    (reg->mr_mode & (FI_MR_ENDPOINT | FI_MR_RAW)))
		return false;
	if (attr->access & REG_LOCAL_RW)
		bits |= MRRC_RW;
	if (attr->access & FI_REMOTE_READ)
		bits |= MRRC_REMOTE_READ;
	if (attr->access & FI_REMOTE_WRITE)
		bits |= MRRC_REMOTE_WRITE | MRRC_RW;
	*kind = bits;
	/* requests that share a region share its key and absolute addresses */
	return !mrrc_access_remote(bits) ||
	       (reg->mr_mode & remote_modes) == remote_modes;
}

static uint64_t stats_uncached(const uint64_t *value)
{
	return value[MRRC_STAT_UNCACHED_NO_MONITOR] +
	       value[MRRC_STAT_UNCACHED_NOT_PRIVATE] +
	       value[MRRC_STAT_UNCACHED_UNWATCHABLE] +
	       value[MRRC_STAT_UNCACHED_WATCH_LIMIT] +
	       value[MRRC_STAT_UNCACHED_RACED] +
	       value[MRRC_STAT_UNCACHED_TOO_BIG] +
	       value[MRRC_STAT_UNCACHED_FULL];
}

/* The log has the counts before the flush, which evicts all. */
void mrrc_reg_flush(struct mrrc_reg *reg)
{
	const uint64_t *value = reg->last.value;

	mrrc_cache_mt_stats(reg->cache, &reg->last);
	mrrc_cache_mt_flush(reg->cache);
	mrrc_report_hooks();
	MRRC_INFO(MR,
		  "%s: %" PRIu64 " lookups, %" PRIu64 " hits, %" PRIu64
		  " registrations, %" PRIu64 " evictions, %" PRIu64
		  " invalidations, %" PRIu64 " uncached\n",
		  reg->core_name, value[MRRC_STAT_LOOKUPS],
		  value[MRRC_STAT_HITS], value[MRRC_STAT_REGISTRATIONS],
		  value[MRRC_STAT_EVICTIONS], value[MRRC_STAT_INVALIDATIONS],
		  stats_uncached(value));
}

void mrrc_reg_forget(struct mrrc_reg *reg, const void *addr, size_t len)
{
	if (mrrc_mon_manual(reg->mon))
		mrrc_cache_mt_invalidate(reg->cache, addr, len);
}

/*
 * Deregisters regions that are not held. Other domains, and caches of
 * libfabric, that share the monitor also forget the range.
 */
int mrrc_reg_invalidate(struct mrrc_reg *reg, const void *addr, size_t len)
{
	const uintptr_t mask = (uintptr_t) sysconf(_SC_PAGESIZE) - 1;
	const uintptr_t start = (uintptr_t) addr & ~mask;
	uintptr_t end;

	if (!addr || !len || len > UINTPTR_MAX - mask ||
	    (uintptr_t) addr > UINTPTR_MAX - mask - len)
		return -FI_EINVAL;
	if (!reg->cache) /* nothing is registered here */
		return 0;
	end = ((uintptr_t) addr + len + mask) & ~mask;
	mrrc_cache_mt_invalidate(reg->cache, (void *) start, end - start);
	mrrc_mon_invalidate(reg->mon, start, end - start);
	return 0;
}

void mrrc_reg_close(struct mrrc_reg *reg)
{
	if (!reg->cache) {
		mrrc_stats_shm_close(reg->segment);
		return;
	}
	if (!mrrc_mon_forked(reg->mon))
		mrrc_stats_shm_still(reg->segment);
	mrrc_cache_mt_close(reg->cache);
	mrrc_stats_shm_close(reg->segment);
	reg_close_monitor(reg);
	mrrc_budget_leave(reg->budget);
}

void mrrc_reg_stats(struct mrrc_reg *reg, struct mrrc_stats *stats)
{
	uint64_t *value = stats->value;
	struct mrrc_libc_hooks_state hooks;
	struct mrrc_budget_stats node;

	if (reg->budget && !mrrc_mon_forked(reg->mon))
		mrrc_budget_stats(reg->budget, &node); /* up to date now */
	mrrc_cache_mt_stats(reg->cache, stats);
	mrrc_libc_hooks_state(&hooks);
	value[MRRC_STAT_UNCACHED] = stats_uncached(value);
	value[MRRC_STAT_HELD] = mrrc_cache_mt_held(reg->cache);
	value[MRRC_STAT_HOOKS] = hooks.placed;
	value[MRRC_STAT_HOOKS_LOST] = hooks.lost;
	value[MRRC_STAT_ANNOUNCED] = hooks.told;
}

int mrrc_stats_out(const struct mrrc_stats *stats, const char *monitor,
		   struct fi_mrrc_stats *out)
{
	struct fi_mrrc_stats full = { 0 };

#define FIELD(id, name) full.name = stats->value[MRRC_STAT_##id];
#define OTHER(id, name)
#define X(id, name, part, ...) part(id, name)
	MRRC_STATS(X)
#undef X
#undef OTHER
#undef FIELD
	strncpy(full.monitor, monitor, sizeof(full.monitor) - 1);
	return mrrc_sized_out(out, &full, sizeof(full));
}

_Static_assert(FI_MRRC_COUNTER == (int) MRRC_STAT_KIND_COUNTER &&
		       FI_MRRC_GAUGE == (int) MRRC_STAT_KIND_GAUGE &&
		       FI_MRRC_SCOPE_DOMAIN == (int) MRRC_STAT_SCOPE_DOMAIN &&
		       FI_MRRC_SCOPE_PROCESS == (int) MRRC_STAT_SCOPE_PROCESS &&
		       FI_MRRC_SCOPE_NODE == (int) MRRC_STAT_SCOPE_NODE,
	       "the public numbers are core's");

int mrrc_stats_out_one(const struct mrrc_stats *stats, size_t index,
		       struct fi_mrrc_counter *out)
{
	const struct mrrc_stat_text *text;
	struct fi_mrrc_counter full;

	if (index >= MRRC_STAT_CNT)
		return -FI_ENOENT;
	text = &mrrc_stat_text[index];
	full = (struct fi_mrrc_counter){
		.value = stats->value[index],
		.name = text->name,
		.help = text->help,
		.unit = text->unit,
		.scope = text->scope,
		.kind = text->kind,
	};
	return mrrc_sized_out(out, &full, sizeof(full));
}
