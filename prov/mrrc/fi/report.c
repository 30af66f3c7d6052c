/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages about a domain's cache (report.h). Functions given to a segment run
 * in the segment's thread, or in the thread that reads code.
 */
#include "config.h"
#include <stdio.h>

#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "fi/report.h"
#include "fi/say.h"
#include "sys/cache/cache_mt.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/monitor/mon.h"
#include "sys/base/vm.h"

#define LOCKED_ENOUGH ((size_t) 1 << 20) /* bytes that most buffers fit in */
#define PATCHER_CURE  " (Open MPI's: --mca memory ^patcher)"

/* ---- the log ---- */

void mrrc_report_hooks(void)
{
	static atomic_bool said;
	struct mrrc_libc_hooks_state state;

	mrrc_libc_hooks_state(&state);
	if (state.lost && !atomic_exchange(&said, true))
		MRRC_WARN(MR,
			  "another library has overwritten %u hooks of "
			  "ofi_mrrc" PATCHER_CURE
			  ": unmapping is slower, lookups stay safe\n",
			  state.lost);
}

/* Warns of a cache that keeps nothing, unless the user asked for it. */
static void report_useless(const char *name, const char *why)
{
	static atomic_bool said;

	if (!strcmp(mrrc_params.monitor, MRRC_MON_AUTO))
		mrrc_say(&said, FI_LOG_MR,
			 "memory monitor %s: registrations are used once and "
			 "never kept: %s",
			 name, why);
	else if (!atomic_exchange(&said, true))
		MRRC_WARN(MR,
			  "memory monitor %s: registrations are used once and "
			  "never kept: %s\n",
			  name, why);
}

/* Logs the one line about the monitor. */
void mrrc_report_monitor(struct mrrc_reg *reg, const char *why,
			 const char *hooks)
{
	const char *name = mrrc_mon_name(reg->mon);
	const char *title = mrrc_mon_title(reg->mon);
	const char *but = !*hooks	      ? "" :
			  strcmp(title, name) ? ": " :
						", no hooks: ";

	snprintf(reg->unkept, sizeof(reg->unkept), "%s",
		 *why ? why : mrrc_mon_reason(reg->mon));
	snprintf(reg->unhooked, sizeof(reg->unhooked), "%s", hooks);
	if (!mrrc_mon_works(reg->mon))
		report_useless(name, reg->unkept);
	else if (mrrc_mon_manual(reg->mon))
		MRRC_INFO(MR, "memory monitor manual: the application reports "
			      "its unmaps (fi_mrrc_invalidate)\n");
	else if (*hooks && mrrc_params.hooks == MRRC_LIBC_HOOKS_ON)
		MRRC_WARN(MR, "memory monitor %s%s%s\n", title, but, hooks);
	else
		MRRC_INFO(MR, "memory monitor %s%s%s\n", title, but, hooks);
}

void mrrc_report_limit(struct mrrc_reg *reg)
{
	static atomic_bool said;
	const size_t locked = mrrc_vm_memlock();
	size_t bytes, regions;

	mrrc_cache_mt_limits(reg->cache, &bytes, &regions);
	if (mrrc_params.cache_max_size != SIZE_MAX || bytes < locked / 4 * 3 ||
	    bytes >= LOCKED_ENOUGH)
		return;
	reg->locked_max = bytes;
	if (mrrc_mon_works(reg->mon))
		mrrc_say(&said, FI_LOG_MR,
			 "buffers above %zu KiB are never kept registered: the "
			 "limit of locked memory is %zu KiB; raise it (ulimit "
			 "-l; of a container: --ulimit memlock=-1)",
			 bytes >> 10, locked >> 10);
}

void mrrc_report_trust(const char *why)
{
	if (*why)
		MRRC_INFO(MR,
			  "lookups of a process with threads ask the "
			  "kernel: %s\n",
			  why);
	else
		MRRC_INFO(MR, "lookups make no system call: all code "
			      "that can unmap memory is hooked\n");
	mrrc_stats_shm_update();
}

/* ---- the segment ---- */

static void reg_asks(void *arg, char why[MRRC_TRUST_WHY])
{
	const struct mrrc_reg *reg = arg;

	mrrc_mon_asks(reg->mon, why);
}

/* Describes missing hooks, of a monitor that works. */
static void lacks_hooks(const struct mrrc_reg *reg, char *text, size_t size)
{
	struct mrrc_libc_hooks_state state;

	mrrc_libc_hooks_state(&state);
	if (state.lost)
		snprintf(text, size,
			 "%u hooks, which another library has "
			 "overwritten" PATCHER_CURE ": unmapping is slower",
			 state.lost);
	else if (*reg->unhooked)
		snprintf(text, size,
			 "hooks of libc (%s)%s: unmapping is slower",
			 reg->unhooked,
			 strstr(reg->unhooked, "patched") ? PATCHER_CURE : "");
}

static void reg_lacks(void *arg, char text[MRRC_STATS_SHM_LACKS])
{
	const struct mrrc_reg *reg = arg;

	if (!reg->cache && mrrc_params.reg == MRRC_REGISTER_NEVER)
		snprintf(text, MRRC_STATS_SHM_LACKS,
			 "registers nothing: FI_OFI_MRRC_REGISTER=never");
	else if (!reg->cache)
		snprintf(text, MRRC_STATS_SHM_LACKS,
			 "registers nothing over %s, which needs none: "
			 "FI_OFI_MRRC_REGISTER=always",
			 reg->core_name);
	else if (!mrrc_mon_works(reg->mon))
		snprintf(text, MRRC_STATS_SHM_LACKS,
			 "a memory monitor, so that nothing is kept: %s",
			 *reg->unkept ? reg->unkept :
					mrrc_mon_reason(reg->mon));
	else if (reg->locked_max)
		snprintf(text, MRRC_STATS_SHM_LACKS,
			 "locked memory, so that buffers above %zu KiB are "
			 "never kept: ulimit -l",
			 reg->locked_max >> 10);
	else
		lacks_hooks(reg, text, MRRC_STATS_SHM_LACKS);
}

static void reg_collect(void *arg)
{
	const struct mrrc_reg *reg = arg;

	mrrc_cache_mt_collect(reg->cache);
}

void mrrc_reg_info(struct mrrc_reg *reg, struct mrrc_stats_shm_info *info)
{
	*info = (struct mrrc_stats_shm_info){
		.provider = reg->core_name,
		.policy = mrrc_params.policy,
		.monitor = "none",
		.lacks = reg_lacks,
		.arg = reg,
	};
	if (!reg->cache)
		return;
	info->monitor = mrrc_mon_title(reg->mon);
	info->asks = reg_asks;
	info->registers = true;
	/*
	 * Without a monitor threads have no hits to add up. The manual monitor
	 * has no thread, and libc's and the core's locks are cheaper in a
	 * process with one thread only.
	 */
	if (mrrc_mon_works(reg->mon) && !mrrc_mon_manual(reg->mon))
		info->collect = reg_collect;
	mrrc_cache_mt_limits(reg->cache, &info->max_bytes, &info->max_regions);
}

void mrrc_report_open(struct mrrc_reg *reg)
{
	struct mrrc_stats_shm_info info;

	if (!reg->segment)
		return;
	mrrc_reg_info(reg, &info);
	mrrc_stats_shm_publish(reg->segment, &info);
}
