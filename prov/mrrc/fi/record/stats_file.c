/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of closed domains, in a file (stats_file.h). */
#include "config.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "fi/reg.h"
#include "fi/record/stats_file.h"
#include "fi/say.h"
#include "sys/cache/cache_mt.h"
#include "sys/base/file_limit.h"
#include "sys/base/own_file.h"
#include "fi/report.h"

#define LINE_MAX_LEN 8192

static struct {
	pthread_once_t once;
	int ready; /* 0, or the error of init */
	/* guards the list; taken before locks with a rank */
	struct mrrc_mutex lock;
	TAILQ_HEAD(, mrrc_reg) open;
	atomic_bool warned;
} stats_file = {
	.once = PTHREAD_ONCE_INIT,
	.ready = -FI_EBUSY,
	.lock = MRRC_MUTEX_INIT(MRRC_RANK_FILES),
};

/* ---- fork: the listed domains are the parent's ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&stats_file.lock.mutex);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&stats_file.lock.mutex);
}

static void fork_child(void)
{
	TAILQ_INIT(&stats_file.open);
	pthread_mutex_unlock(&stats_file.lock.mutex);
}

static void stats_file_init(void)
{
	TAILQ_INIT(&stats_file.open);
	stats_file.ready =
		-pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- the line ---- */

struct line {
	char text[LINE_MAX_LEN];
	size_t len;
};

static void put(struct line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct line *line, const char *fmt, ...)
{
	const size_t room = sizeof(line->text) - line->len;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line->text + line->len, room, fmt, args);
	va_end(args);
	if (len > 0)
		line->len += (size_t) len < room ? (size_t) len : room - 1;
}

/* Names are plain text; characters that would end the string are left out. */
static void put_string(struct line *line, const char *key, const char *value)
{
	put(line, "\"%s\": \"", key);
	for (; *value; value++) {
		if (*value >= ' ' && *value <= '~' && *value != '"' &&
		    *value != '\\')
			put(line, "%c", *value);
	}
	put(line, "\", ");
}

static void put_reg(struct line *line, struct mrrc_reg *reg,
		    const struct mrrc_stats *stats)
{
	struct mrrc_stats_shm_info info;
	char asks[MRRC_TRUST_WHY] = "", lacks[MRRC_STATS_SHM_LACKS] = "";
	int i;

	mrrc_reg_info(reg, &info);
	info.asks(info.arg, asks);
	info.lacks(info.arg, lacks);
	line->len = 0;
	put(line, "{");
	put_string(line, "provider", info.provider);
	put(line, "\"pid\": %d, ", (int) getpid());
	put_string(line, "policy", info.policy);
	put_string(line, "monitor", info.monitor);
	put_string(line, "asks", asks);
	put_string(line, "lacks", lacks);
	put(line, "\"max_bytes\": %zu, \"max_regions\": %zu, \"counters\": {",
	    info.max_bytes, info.max_regions);
	for (i = 0; i < MRRC_STAT_SHARED; i++)
		put(line, "%s\"%s\": %" PRIu64, i ? ", " : "",
		    mrrc_stat_name(i), stats->value[i]);
	put(line, "}}\n");
}

/* ---- the file ---- */

/* Appends in one write, so that lines of several processes do not mix. */
static int file_append(const char *path, const struct line *line)
{
	struct stat stat;
	ssize_t len;
	int fd, ret;

	fd = mrrc_own_file_open(path, O_WRONLY | O_APPEND);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) &&
	    !mrrc_file_may(stat.st_size + line->len)) {
		close(fd);
		return -EFBIG;
	}
	len = write(fd, line->text, line->len);
	ret = len < 0 ? -errno : (size_t) len < line->len ? -FI_EIO : 0;
	close(fd);
	return ret;
}

static void write_reg(struct mrrc_reg *reg, const struct mrrc_stats *stats)
{
	char path[PATH_MAX];
	struct line line;
	int ret;

	put_reg(&line, reg, stats);
	ret = mrrc_param_path(mrrc_params.stats_file, path, sizeof(path));
	if (!ret)
		ret = file_append(path, &line);
	if (ret)
		mrrc_say(&stats_file.warned, FI_LOG_DOMAIN,
			 "counters are not written to %s: %s",
			 ret == -FI_EINVAL ? mrrc_params.stats_file : path,
			 mrrc_own_file_why(ret) ?: fi_strerror(-ret));
}

/* ---- domains ---- */

void mrrc_stats_file_add(struct mrrc_reg *reg)
{
	if (!*mrrc_params.stats_file || !reg->cache)
		return;
	pthread_once(&stats_file.once, stats_file_init);
	if (stats_file.ready)
		return;
	mrrc_mutex_lock(&stats_file.lock);
	reg->listed = true;
	TAILQ_INSERT_TAIL(&stats_file.open, reg, link);
	mrrc_mutex_unlock(&stats_file.lock);
}

void mrrc_stats_file_close(struct mrrc_reg *reg)
{
	bool listed;

	if (!*mrrc_params.stats_file || stats_file.ready || !reg->cache ||
	    mrrc_mon_forked(reg->mon))
		return;
	mrrc_mutex_lock(&stats_file.lock);
	listed = reg->listed;
	reg->listed = false;
	if (listed)
		TAILQ_REMOVE(&stats_file.open, reg, link);
	mrrc_mutex_unlock(&stats_file.lock);
	if (listed)
		write_reg(reg, &reg->last);
}

/*
 * Writes, at exit, domains that are still open. A domain that is closed
 * meanwhile is not written twice.
 */
__attribute__((destructor)) static void stats_file_exit(void)
{
	struct mrrc_stats stats;
	struct mrrc_reg *reg;

	if (stats_file.ready)
		return;
	mrrc_mutex_lock(&stats_file.lock);
	while ((reg = TAILQ_FIRST(&stats_file.open))) {
		TAILQ_REMOVE(&stats_file.open, reg, link);
		reg->listed = false;
		mrrc_cache_mt_stats(reg->cache, &stats);
		write_reg(reg, &stats);
	}
	mrrc_mutex_unlock(&stats_file.lock);
}
