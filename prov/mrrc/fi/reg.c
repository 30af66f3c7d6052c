/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations of ours on the core's domain, as the cache decides on them.
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
#include "fi/secret.h"
#include "sys/cache_mt.h"
#include "sys/libc_hooks.h"
#include "sys/prove.h"

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
 * Where the application chooses keys, ours come from the upper half; if the
 * application wants one of them, mr.c evicts the region. They are a counter,
 * hashed with the domain's secret: from the keys that a peer was given it
 * cannot guess others. A key that is taken is skipped.
 */
static uint64_t reg_key(struct mrrc_reg *reg)
{
	size_t bits = 8 * reg->key_size;
	uint64_t next = atomic_fetch_add(&reg->next_key, 1);
	uint64_t top;

	if (!bits || bits > 64)
		bits = 64;
	top = 1ULL << (bits - 1);
	return top | (mrrc_hash_keyed(&reg->secret, next) & (top - 1));
}

int mrrc_reg_own(struct mrrc_reg *reg, const void *buf, size_t len,
		 uint64_t rights, struct fid_mr **mr)
{
	struct iovec iov = { (void *) buf, len };
	/* two: a newer libfabric reads more fields, and finds zeroes */
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
		.helper = reg_helper(below, thread_safe),
	};
	if (info->domain_attr->name)
		strncpy(reg->device, info->domain_attr->name,
			sizeof(reg->device) - 1);
	mrrc_secret_make(&reg->secret);
}

/* As the cache has it: 0 derives the limit, 1 keeps almost nothing. */
static size_t reg_limit(size_t param)
{
	if (param == SIZE_MAX)
		return 0;
	return param ? param : 1;
}

static void reg_asks(void *arg, char why[MRRC_TRUST_WHY])
{
	const struct mrrc_reg *reg = arg;

	mrrc_mon_asks(reg->mon, why);
}

void mrrc_reg_info(struct mrrc_reg *reg, struct mrrc_stats_shm_info *info)
{
	*info = (struct mrrc_stats_shm_info){
		.provider = reg->core_name,
		.policy = mrrc_params.policy,
		.monitor = mrrc_mon_title(reg->mon),
		.asks = reg_asks,
		.arg = reg,
	};
	mrrc_cache_mt_limits(reg->cache, &info->max_bytes, &info->max_regions);
}

/* Without a segment the cache counts in memory of its own. */
static int reg_open_cache(struct mrrc_reg *reg, struct mrrc_cache_attr *attr)
{
	struct mrrc_stats_shm_info info;
	int ret;

	ret = mrrc_stats_shm_open(&reg->segment);
	if (ret)
		MRRC_INFO(MR, "fi_mrrc_stat will not find this domain: %s\n",
			  fi_strerror(-ret));
	else
		attr->stats = mrrc_stats_shm_stats(reg->segment);
	ret = mrrc_cache_mt_open(attr, &reg->cache);
	if (ret) {
		mrrc_stats_shm_close(reg->segment);
		return ret;
	}
	mrrc_reg_info(reg, &info);
	if (reg->segment)
		mrrc_stats_shm_publish(reg->segment, &info);
	return 0;
}

/* Another library has patched over our hooks: warn once. */
static void reg_check_hooks(void)
{
	static atomic_bool said;
	struct mrrc_libc_hooks_state state;

	mrrc_libc_hooks_state(&state);
	if (state.lost && !atomic_exchange(&said, true))
		MRRC_WARN(MR,
			  "another library has overwritten %u of our "
			  "hooks: unmapping is slower, lookups stay safe\n",
			  state.lost);
}

/* The one log line about the monitor. */
static void reg_say_monitor(const struct mrrc_reg *reg, const char *why,
			    const char *hooks)
{
	const char *name = mrrc_mon_name(reg->mon);
	const char *title = mrrc_mon_title(reg->mon);
	const char *but = !*hooks	      ? "" :
			  strcmp(title, name) ? ": " :
						", no hooks: ";

	if (!mrrc_mon_works(reg->mon)) {
		MRRC_WARN(MR,
			  "memory monitor %s: registrations are used "
			  "once and never kept: %s\n",
			  name, *why ? why : mrrc_mon_reason(reg->mon));
	} else if (mrrc_mon_manual(reg->mon)) {
		MRRC_INFO(MR, "memory monitor manual: the application tells "
			      "of what it unmaps (fi_mrrc_invalidate)\n");
	} else if (*hooks && mrrc_params.hooks == MRRC_LIBC_HOOKS_ON) {
		MRRC_WARN(MR, "memory monitor %s%s%s\n", title, but, hooks);
	} else {
		MRRC_INFO(MR, "memory monitor %s%s%s\n", title, but, hooks);
	}
}

static void reg_say_trust(const char *why)
{
	if (*why)
		MRRC_INFO(MR,
			  "lookups of a process with threads ask the "
			  "kernel: %s\n",
			  why);
	else
		MRRC_INFO(MR, "lookups make no system call: no code is "
			      "there that could unmap unannounced\n");
	mrrc_stats_shm_update();
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
		strcpy(hooks, "FI_OFI_MRRC_HOOKS says so");
	else if (mrrc_mon_hookable(reg->mon))
		mrrc_mon_hook(reg->mon, hooks);
	reg_say_monitor(reg, why, hooks);
	reg_check_hooks();
	return 0;
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
		.records = reg->records,
	};
	int ret;

	/* no regions: the cache has no such limit, but one of a byte works */
	if (!mrrc_params.cache_max_count)
		attr.max_bytes = 1;
	ret = reg_open_monitor(reg);
	if (ret)
		return ret;
	attr.mon = reg->mon;
	ret = reg_open_cache(reg, &attr);
	if (ret)
		mrrc_mon_close(reg->mon);
	return ret;
}

/*
 * After the device is measured: reading the code takes some 50 ms of a
 * processor, which would disturb the measurement.
 */
static void reg_begin_trust(struct mrrc_reg *reg)
{
	mrrc_prove_tell(reg_say_trust);
	if (!mrrc_mon_set_probe(reg->mon, mrrc_params.probe))
		MRRC_WARN(MR, "FI_OFI_MRRC_PROBE=hooked has no effect: not "
			      "every call that unmaps is hooked\n");
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

void mrrc_reg_flush(struct mrrc_reg *reg)
{
	struct fi_mrrc_stats stats = { 0 };

	mrrc_cache_mt_stats(reg->cache, &reg->last);
	mrrc_cache_mt_flush(reg->cache);
	reg_check_hooks();
	mrrc_reg_stats(reg, &stats);
	MRRC_INFO(MR,
		  "%s: %" PRIu64 " lookups, %" PRIu64 " hits, %" PRIu64
		  " registrations, %" PRIu64 " evictions, %" PRIu64
		  " invalidations, %" PRIu64 " uncached\n",
		  reg->core_name, stats.lookups, stats.hits,
		  stats.registrations, stats.evictions, stats.invalidations,
		  stats.uncached);
}

void mrrc_reg_forget(struct mrrc_reg *reg, const void *addr, size_t len)
{
	if (mrrc_mon_manual(reg->mon))
		mrrc_cache_mt_invalidate(reg->cache, addr, len);
}

/*
 * Regions that are not held are deregistered here. The other domains that share
 * the monitor, and libfabric's caches if they do, forget the range as well.
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
	mrrc_cache_mt_close(reg->cache);
	mrrc_stats_shm_close(reg->segment);
	mrrc_mon_close(reg->mon);
}

void mrrc_reg_stats(struct mrrc_reg *reg, struct fi_mrrc_stats *out)
{
	struct mrrc_stats stats;
	const uint64_t *value = stats.value;
	struct mrrc_libc_hooks_state hooks;
	size_t max_bytes, max_regions;

	mrrc_libc_hooks_state(&hooks);
	mrrc_cache_mt_stats(reg->cache, &stats);
	mrrc_cache_mt_limits(reg->cache, &max_bytes, &max_regions);
	out->lookups = value[MRRC_STAT_LOOKUPS];
	out->hits = value[MRRC_STAT_HITS];
	out->misses = value[MRRC_STAT_MISSES];
	out->registrations = value[MRRC_STAT_REGISTRATIONS];
	out->deregistrations = value[MRRC_STAT_DEREGISTRATIONS];
	out->registration_failures = value[MRRC_STAT_REG_FAILURES];
	out->evictions = value[MRRC_STAT_EVICTIONS];
	out->invalidations = value[MRRC_STAT_INVALIDATIONS];
	out->uncached = value[MRRC_STAT_UNCACHED_NO_MONITOR] +
			value[MRRC_STAT_UNCACHED_NOT_PRIVATE] +
			value[MRRC_STAT_UNCACHED_UNWATCHABLE] +
			value[MRRC_STAT_UNCACHED_WATCH_LIMIT] +
			value[MRRC_STAT_UNCACHED_RACED] +
			value[MRRC_STAT_UNCACHED_TOO_BIG] +
			value[MRRC_STAT_UNCACHED_FULL];
	out->regions = value[MRRC_STAT_REGIONS];
	out->bytes = value[MRRC_STAT_BYTES];
	out->held_regions = mrrc_cache_mt_held(reg->cache);
	out->regions_peak = value[MRRC_STAT_REGIONS_PEAK];
	out->bytes_peak = value[MRRC_STAT_BYTES_PEAK];
	out->max_regions = max_regions;
	out->max_bytes = max_bytes;
	strncpy(out->monitor, mrrc_mon_title(reg->mon),
		sizeof(out->monitor) - 1);
	mrrc_mon_asks(reg->mon, out->asks);
	out->probes = value[MRRC_STAT_PROBES];
	out->splits = value[MRRC_STAT_SPLITS];
	out->merges = value[MRRC_STAT_MERGES];
	out->hooks = hooks.placed;
	out->hooks_lost = hooks.lost;
	out->announced = hooks.told;
	out->bounces = value[MRRC_STAT_BOUNCES];
	out->bounced_bytes = value[MRRC_STAT_BOUNCED_BYTES];
	out->bounce_memory = value[MRRC_STAT_BOUNCE_MEMORY];
	out->cost_register_page = value[MRRC_STAT_COST_REG_PAGE];
	out->cost_register = value[MRRC_STAT_COST_REG];
	out->cost_deregister_page = value[MRRC_STAT_COST_DEREG_PAGE];
	out->cost_deregister = value[MRRC_STAT_COST_DEREG];
	out->cost_copy_page = value[MRRC_STAT_COST_COPY_PAGE];
	/* without its parameters */
	memcpy(out->policy, mrrc_params.policy,
	       strnlen(mrrc_params.policy, sizeof(out->policy) - 1));
	out->policy[strcspn(out->policy, ":")] = '\0';
}
