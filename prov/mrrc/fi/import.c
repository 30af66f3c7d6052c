/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cores such as verbs cache registrations themselves: with all rights, so that
 * memory mapped read-only cannot be registered, with keys that outlive
 * fi_close(), and with a monitor that collides with ours. The public way to
 * avoid such caches is to import a memory monitor (fi_import(3)), which
 * replaces libfabric's:
 *
 *  - start() refuses while a domain of ours is being opened, which then has
 *    no cache at all;
 *  - for all other domains start() accepts, and our monitor reports changes of
 *    memory to their caches, so that a process has one monitor.
 *
 * Once a core's cache is in use nothing can be imported (-FI_EBUSY); our
 * registrations then bypass that cache, one by one (MRRC_MR_NOCACHE). An import
 * lasts until the process ends.
 */
#include "config.h"
#include <stdlib.h>

#include <rdma/fi_ext.h>

#include "fi/import.h"
#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "sys/monitor/mon.h"
#include "sys/monitor/notifier.h"

static _Thread_local bool opening __attribute__((tls_model("initial-exec")));

static struct {
	pthread_once_t once;
	struct mrrc_mon *mon;
	struct mrrc_notifier *notifier;
	struct fid_mem_monitor monitor;
} import = { .once = PTHREAD_ONCE_INIT };

static int import_start(struct fid_mem_monitor *monitor)
{
	return opening ? -FI_ENOSYS : 0;
}

static void import_stop(struct fid_mem_monitor *monitor)
{
}

static int import_subscribe(struct fid_mem_monitor *monitor, const void *addr,
			    size_t len)
{
	return mrrc_notifier_watch(import.notifier, (uintptr_t) addr, len);
}

/* libfabric never calls unsubscribe: a watch ends with the memory. */
static void import_unsubscribe(struct fid_mem_monitor *monitor,
			       const void *addr, size_t len)
{
}

static bool import_valid(struct fid_mem_monitor *monitor, const void *addr,
			 size_t len)
{
	return mrrc_notifier_valid(import.notifier, (uintptr_t) addr, len);
}

static void import_tell(void *arg, uintptr_t start, size_t len)
{
	import.monitor.import_ops->notify(&import.monitor, (void *) start, len);
}

static struct fi_ops_mem_monitor import_ops = {
	.size = sizeof(struct fi_ops_mem_monitor),
	.start = import_start,
	.stop = import_stop,
	.subscribe = import_subscribe,
	.unsubscribe = import_unsubscribe,
	.valid = import_valid,
};

/*
 * Has the user set libfabric's limit to 0? libfabric's parameters come from the
 * environment or from libfabric.conf.
 */
static bool import_no_count(void)
{
	size_t count;

	return !fi_param_get_size_t(NULL, "mr_cache_max_count", &count) &&
	       !count;
}

bool mrrc_core_keeps_keys(void)
{
	char *monitor;

	return !import_no_count() &&
	       (fi_param_get_str(NULL, "mr_cache_monitor", &monitor) ||
		strcmp(monitor, "disabled"));
}

/*
 * Has the user chosen a monitor for libfabric, or no cache? If so, this choice
 * stays.
 */
static bool import_unwanted(void)
{
	char *chosen;

	/*
	 * with the manual monitor only users of this provider announce unmapped
	 * memory
	 */
	return !strcmp(mrrc_params.monitor, "manual") ||
	       !fi_param_get_str(NULL, "mr_cache_monitor", &chosen) ||
	       import_no_count();
}

static void import_once(void)
{
	int ret;

	if (import_unwanted() ||
	    mrrc_mon_open(mrrc_params.monitor, NULL, &import.mon))
		return;
	if (!mrrc_mon_works(import.mon))
		goto err_mon;
	ret = mrrc_notifier_open(import.mon, import_tell, NULL,
				 &import.notifier);
	if (ret)
		goto err_mon;
	import.monitor.fid.fclass = FI_CLASS_MEM_MONITOR;
	import.monitor.export_ops = &import_ops;
	ret = fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0,
			&import.monitor.fid, NULL);
	if (!ret) {
		MRRC_INFO(MR, "libfabric's caches use our memory monitor\n");
		return;
	}
	MRRC_INFO(MR, "libfabric keeps its own memory monitor: %s\n",
		  fi_strerror(-ret));
	mrrc_notifier_close(import.notifier);
err_mon:
	mrrc_mon_close(import.mon);
}

void mrrc_core_open_begin(bool local)
{
	if (local)
		pthread_once(&import.once, import_once);
	opening = true;
}

void mrrc_core_open_end(void)
{
	opening = false;
}

bool mrrc_core_opening(void)
{
	return opening;
}
