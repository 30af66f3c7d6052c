/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_files: tests parts of files as sources: every kind of operation,
 * offsets and lengths around pages, all modes; cached registrations; limits;
 * wrong calls; a file that is replaced; operations that are under way when a
 * writer opens the file; many files, a sparse file, fork. files_change.c tests
 * files that change.
 */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LEN  (4UL << 20) /* length of the file */
#define HUGE (48UL << 20)
#define BIG  (1UL << 20) /* a part of this length is mapped over every core */
#define SEED 7
#define FDS  4096

static struct ft_pair pair;
static char *in, *shadow; /* contents of the file */
static struct fid_mr *mr;
static char dir[64], path[80];
static uint64_t tags;
static bool can_map; /* ft_file_maps() */

static struct fid_mrrc_file *file_open(int fd, uint64_t flags)
{
	struct fid_mrrc_file *file;

	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, flags, &file, dir));
	FT_CHECK(file->fid.context == dir, "its context");
	return file;
}

static void query(struct fid_mrrc_file *file, struct fi_mrrc_file_stats *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	FT_CALL(fi_mrrc_file_query(file, attr));
	FT_CHECK(attr->size == sizeof(*attr), "attr: %zu bytes", attr->size);
}

/* ---- operations ---- */

enum kind { SEND, TSEND, WRITE, CWRITE, KINDS };

static ssize_t post(struct fid_mrrc_file *file, enum kind kind, size_t offset,
		    size_t len, uint64_t flags)
{
	struct fi_mrrc_file_msg msg =
		fi_mrrc_file_part(offset, len, pair.c.to, file);

	msg.tag = tags;
	msg.data = 4711;
	msg.rma_addr = ft_raddr(&pair.dom[0], in);
	msg.key = fi_mr_key(mr);
	switch (kind) {
	case SEND:
		return fi_mrrc_file_sendmsg(file, pair.c.ep, &msg, flags);
	case TSEND:
		return fi_mrrc_file_tsendmsg(file, pair.c.ep, &msg, flags);
	case WRITE:
		return fi_mrrc_file_writemsg(file, pair.c.ep, &msg, flags);
	default:
		return fi_mrrc_file_cwritemsg(file, pair.c.ep, &msg, flags);
	}
}

static void receive(enum kind kind, size_t len)
{
	memset(in, 0x5a, len + 1);
	tags++;
	if (kind == SEND)
		FT_POST(&pair.s, fi_recv(pair.s.ep, in, len, NULL, FT_ANY, in));
	else if (kind == TSEND)
		FT_POST(&pair.s, fi_trecv(pair.s.ep, in, len, NULL, FT_ANY,
					  tags, 0, in));
	else if (kind == CWRITE)
		FT_POST(&pair.s, fi_cwtag(pair.s.cw, in, len, NULL, pair.s.to,
					  tags, in));
}

static void finish(struct fid_mrrc_file *file, enum kind kind, size_t offset,
		   size_t len)
{
	uint64_t end = ft_deadline();
	struct ft_comp comp;

	ft_wait(&pair.c, FT_TX, &comp);
	FT_CHECK(comp.ctx == file, "context %p", comp.ctx);
	if (kind == WRITE) {
		while (memcmp(in, shadow + offset, len)) {
			ft_progress(&pair.c);
			FT_CHECK(ft_limit_us() < end, "written: wrong data");
		}
	} else {
		ft_wait(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.ctx == in && comp.len == len, "%zu bytes",
			 comp.len);
	}
	FT_CHECK(!memcmp(in, shadow + offset, len),
		 "kind %d: wrong data, %zu bytes at %zu", kind, len, offset);
	FT_CHECK(in[len] == 0x5a, "kind %d: too much", kind);
}

static void transfer(struct fid_mrrc_file *file, enum kind kind, size_t offset,
		     size_t len)
{
	receive(kind, len);
	FT_POST(&pair.c, post(file, kind, offset, len, FI_COMPLETION));
	finish(file, kind, offset, len);
}

/* ---- data ---- */

static void kinds(uint64_t flags)
{
	static const size_t lens[] = {
		1, 100, 4095, 4096, 4097, 65536, 300001, BIG, BIG + 5000,
	};
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, flags);
	struct fi_mrrc_file_stats attr;
	enum kind kind;
	unsigned i;

	close(fd); /* the descriptor may be closed at once */
	for (kind = 0; kind < KINDS; kind++) {
		for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
			if (kind == TSEND && !(pair.attr.caps & FI_TAGGED))
				continue;
			ft_stage("kind %d, %zu bytes, flags %" PRIx64, kind,
				 lens[i], flags);
			transfer(file, kind, 0, lens[i]);
			transfer(file, kind, 4096, lens[i]);
			transfer(file, kind, 12345, lens[i]);
			transfer(file, kind, LEN - lens[i], lens[i]);
			transfer(file, kind, ft_rand() % (LEN - lens[i]),
				 lens[i]);
		}
	}
	query(file, &attr);
	FT_CHECK(attr.length == LEN, "%" PRIu64 " bytes long", attr.length);
	FT_CHECK(!attr.copied == !!(flags & FI_MRRC_FILE_DIRECT), "copied");
	if (flags & (FI_MRRC_FILE_COPY | FI_MRRC_FILE_DIRECT))
		FT_CHECK(!attr.mapped, "mapped");
	else if (can_map)
		FT_CHECK(attr.mapped >= 40 && !strlen(attr.why),
			 "%" PRIu64 " mapped: %s", attr.mapped, attr.why);
	FT_CALL(fi_close(&file->fid));
}

/* Sources of 0 bytes, and remote CQ data. */
static void odd_ones(void)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, 0);
	struct ft_comp comp;

	ft_stage("no bytes, and remote data");
	transfer(file, SEND, 0, 0);
	receive(SEND, BIG);
	FT_POST(&pair.c,
		post(file, SEND, 5, BIG, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.data == 4711 && comp.flags & FI_REMOTE_CQ_DATA, "data");
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/*
 * Checks that operations that the core refuses are not counted (over tcp), and
 * the reason for copies.
 */
static void refused(void)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, 0);
	struct fi_mrrc_file_stats attr;
	unsigned posted = 0, i;
	struct ft_comp comp;

	ft_stage("a full queue");
	query(file, &attr);
	FT_CHECK(!can_map || !strcmp(attr.why, "nothing was sent yet"), "%s",
		 attr.why);
	/* over a device the peer would have to post a receive for each */
	while (ft_core("tcp") && posted < FDS &&
	       !post(file, SEND, 0, 1, FI_COMPLETION))
		posted++;
	query(file, &attr);
	FT_CHECK(attr.copied == posted && attr.copied_bytes == posted,
		 "%" PRIu64 " copied, not %u", attr.copied, posted);
	FT_CHECK(!can_map || !posted || strstr(attr.why, "short"), "%s",
		 attr.why);
	for (i = 0; i < posted; i++) {
		receive(SEND, 1);
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* The same for conditional writes: as many wait for a tag as may. */
static void refused_cwrite(void)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, 0);
	struct fi_mrrc_cw_attr most = { .size = sizeof(most) };
	struct fi_mrrc_file_stats attr;
	uint64_t i;

	ft_stage("as many conditional writes as may wait");
	FT_CALL(fi_cw_query(&pair.c.ep->fid, &most));
	tags++;
	for (i = 0; i < most.max_pending; i++)
		FT_CALL(post(file, CWRITE, 0, 1, 0));
	FT_CHECK(post(file, CWRITE, 0, 1, 0) == -FI_EAGAIN, "one more");
	query(file, &attr);
	FT_CHECK(attr.mapped + attr.copied == i,
		 "%" PRIu64 " mapped, %" PRIu64 " copied, not %" PRIu64,
		 attr.mapped, attr.copied, i);
	ft_ep_close(&pair.c);
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* Registrations are kept, and found again after the file was closed. */
static void cached(void)
{
	struct fi_mrrc_stats before, after;
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file;
	unsigned i;

	if (!can_map || !ft_caches(&pair.dom[1]))
		return;
	ft_stage("registered once");
	file = file_open(fd, FI_MRRC_FILE_MAP);
	transfer(file, SEND, 0, BIG);
	ft_stats(&pair.dom[1], &before);
	for (i = 0; i < 10; i++) {
		transfer(file, SEND, 0, BIG);
		transfer(file, WRITE, 4096, BIG / 2);
		FT_CALL(fi_close(&file->fid));
		file = file_open(fd, FI_MRRC_FILE_MAP);
	}
	ft_stats(&pair.dom[1], &after);
	FT_CHECK(after.registrations == before.registrations &&
			 after.hits >= before.hits + 20,
		 "%" PRIu64 " registrations, %" PRIu64 " hits",
		 after.registrations - before.registrations,
		 after.hits - before.hits);
	if (ft_rxm()) {
		/* conditional writes have a domain of their own */
		transfer(file, CWRITE, 0, BIG);
		ft_stats(&pair.dom[1], &before);
		FT_CHECK(before.hits == after.hits,
			 "registrations of the datagrams' domain");
	}
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

static struct fi_ops_rma core_rma;
static unsigned described, undescribed;

static ssize_t looked_at(struct fid_ep *ep, const struct fi_msg_rma *msg,
			 uint64_t flags)
{
	if (msg->desc && msg->desc[0])
		described++;
	else
		undescribed++;
	return core_rma.writemsg(ep, msg, flags);
}

/* Conditional writes pass descriptors, which a device would need. */
static void descriptors(uint64_t flags)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, flags);
	struct ft_core_ops core;

	if (!ft_core("tcp"))
		goto out;
	ft_stage("descriptors, flags %" PRIx64, flags);
	ft_core_ops("tcp", &core);
	core_rma = *core.rma;
	core.rma->writemsg = looked_at;
	transfer(file, CWRITE, 0, BIG);
	*core.rma = core_rma;
	FT_CHECK(described && !undescribed, "%u writes, %u without", described,
		 undescribed);
out:
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

static struct fi_ops_msg core_msg;
static uint64_t core_flags;

static ssize_t level_seen(struct fid_ep *ep, const struct fi_msg *msg,
			  uint64_t flags)
{
	core_flags = flags & (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
			      FI_DELIVERY_COMPLETE);
	return core_msg.sendmsg(ep, msg, flags & ~core_flags);
}

static int set_op_flags(struct fid *fid, int command, void *arg)
{
	return command == FI_SETOPSFLAG ? 0 : -FI_ENOSYS;
}

/* Sends with flags have their own level, others have the endpoint's. */
static void levels(void)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, 0);
	uint64_t before = FI_TRANSMIT | pair.dom[1].info->tx_attr->op_flags;
	uint64_t flags = before | FI_DELIVERY_COMPLETE;
	struct ft_core_ops core;
	struct fi_ops ops;

	if (!ft_core("tcp") || ft_rdm())
		goto out;
	ft_stage("levels of completion");
	ft_core_ops("tcp", &core);
	core_msg = *core.msg;
	ops = *core.ep;
	core.msg->sendmsg = level_seen;
	core.ep->control = set_op_flags;
	transfer(file, SEND, 0, BIG);
	FT_CHECK(!core_flags, "no level: %#" PRIx64, core_flags);
	FT_CALL(fi_control(&pair.c.ep->fid, FI_SETOPSFLAG, &flags));
	transfer(file, SEND, 0, BIG);
	FT_CHECK(core_flags == FI_DELIVERY_COMPLETE,
		 "the endpoint's: %#" PRIx64, core_flags);
	receive(SEND, BIG);
	FT_POST(&pair.c, post(file, SEND, 0, BIG, FI_TRANSMIT_COMPLETE));
	finish(file, SEND, 0, BIG);
	FT_CHECK(core_flags == FI_TRANSMIT_COMPLETE, "its own: %#" PRIx64,
		 core_flags);
	FT_CHECK(post(file, CWRITE, 0, BIG, 0) == -FI_EBADFLAGS,
		 "a conditional write that delivers");
	FT_CALL(fi_control(&pair.c.ep->fid, FI_SETOPSFLAG, &before));
	*core.ep = ops;
	*core.msg = core_msg;
out:
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* Files, and a part of a file, may exceed the limit of registered bytes. */
static void limits(void)
{
	struct fi_mrrc_stats before, after;
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, FI_MRRC_FILE_MAP);
	size_t at;
	unsigned i;

	ft_stage("larger than the limit");
	ft_stats(&pair.dom[1], &before);
	for (i = 0; i < 3; i++) {
		for (at = 0; at < LEN; at += BIG / 2)
			transfer(file, SEND, at, BIG / 2);
	}
	ft_stats(&pair.dom[1], &after);
	FT_CHECK(after.bytes <= after.max_bytes, "%" PRIu64 " bytes registered",
		 after.bytes);
	if (can_map && ft_caches(&pair.dom[1]))
		FT_CHECK(after.evictions > before.evictions, "no evictions");
	ft_stage("one part larger than the limit");
	transfer(file, SEND, 0, LEN);
	transfer(file, WRITE, 0, LEN);
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* ---- wrong calls ---- */

static void mistakes(void)
{
	struct fi_mrrc_file_stats small = { .size = sizeof(size_t) };
	int fd = ft_file_make(path, shadow, LEN), pipes[2];
	struct fid_mrrc_file *file = file_open(fd, 0), *none;
	struct fid_domain *domain = pair.dom[1].domain;

	ft_stage("mistakes");
	FT_CHECK(!pipe(pipes), "pipe");
	FT_CHECK(fi_mrrc_file_open(domain, pipes[0], 0, &none, NULL) ==
			 -FI_EINVAL,
		 "a pipe");
	close(pipes[0]);
	close(pipes[1]);
	FT_CHECK(fi_mrrc_file_open(domain, pipes[0], 0, &none, NULL) ==
			 -FI_EBADF,
		 "a closed descriptor");
	FT_CHECK(fi_mrrc_file_open(domain, fd, 1 << 9, &none, NULL) ==
			 -FI_EBADFLAGS,
		 "flags");
	FT_CHECK(fi_mrrc_file_open(domain, fd, 3, &none, NULL) == -FI_EBADFLAGS,
		 "both modes");
	FT_CHECK(fi_mrrc_file_send(file, pair.c.ep, LEN - 9, 10, pair.c.to,
				   file) == -FI_ENODATA,
		 "beyond the end");
	FT_CHECK(fi_mrrc_file_send(file, pair.c.ep, UINT64_MAX - 9, BIG,
				   pair.c.to, file) == -FI_ENODATA,
		 "beyond all files");
	FT_CHECK(fi_mrrc_file_send(file, pair.s.ep, 0, 10, pair.s.to, file) ==
			 -FI_EDOMAIN,
		 "an endpoint of another domain");
	FT_CHECK(post(file, SEND, 0, 10, FI_INJECT) == -FI_EBADFLAGS,
		 "FI_INJECT");
	FT_CHECK(fi_mrrc_file_query(file, &small) == -FI_EINVAL, "attr");
	FT_CHECK(fi_close(&domain->fid) == -FI_EBUSY, "the domain is in use");
	transfer(file, SEND, 0, BIG);
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* A file cannot be closed while an operation reads it. */
static void busy(uint64_t flags)
{
	int fd = ft_file_make(path, shadow, LEN);
	struct fid_mrrc_file *file = file_open(fd, flags);

	ft_stage("closed while it is read, flags %" PRIx64, flags);
	tags++;
	FT_POST(&pair.c, post(file, CWRITE, 0, BIG, FI_COMPLETION));
	FT_CHECK(fi_close(&file->fid) == -FI_EBUSY, "closed");
	tags--;
	receive(CWRITE, BIG);
	finish(file, CWRITE, 0, BIG);
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/* ---- writers ---- */

/*
 * Microseconds that a writer took: by CLOCK_MONOTONIC, and by the clock of
 * ft_limit_us(), which load slows
 */
static uint64_t writer_us, writer_limit_us;

static atomic_bool writes; /* set when the writer may begin */

static void *writer(void *arg)
{
	uint64_t begin, limit;

	while (!atomic_load(&writes))
		usleep(100);
	begin = ft_now_us();
	limit = ft_limit_us();
	FT_CHECK(!truncate(path, 1000), "truncate: %s", strerror(errno));
	writer_us = ft_now_us() - begin;
	writer_limit_us = ft_limit_us() - limit;
	return arg;
}

/*
 * Checks the writer's time: the kernel would let the writer go on after 45 s.
 */
static void check_writer(void)
{
	FT_CHECK(writer_limit_us < 20000000,
		 "the writer waited %" PRIu64 " us, by the clock %" PRIu64,
		 writer_limit_us, writer_us);
}

/* Lets the process map @more bytes. */
static void limit_addresses(size_t more)
{
	struct rlimit limit;
	FILE *statm = fopen("/proc/self/statm", "r");
	unsigned long pages;

	FT_CHECK(statm && fscanf(statm, "%lu", &pages) == 1, "statm");
	fclose(statm);
	FT_CALL(getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = pages * FT_PAGE + more;
	FT_CALL(setrlimit(RLIMIT_AS, &limit));
}

/*
 * Posts a part of a file, and starts a writer while the peer is not ready.
 * @copies: the process has address space left for a copy.
 */
static struct fid_mrrc_file *overtake(enum kind kind, size_t len, int fd,
				      bool copies, pthread_t *thread)
{
	struct fid_mrrc_file *file = file_open(fd, FI_MRRC_FILE_MAP);
	struct fi_mrrc_file_stats attr;

	tags++;
	FT_POST(&pair.c, post(file, kind, 7, len, FI_COMPLETION));
	tags--;
	query(file, &attr);
	FT_CHECK(attr.mapped == can_map, "mapped: %s", attr.why);
	atomic_store(&writes, false);
	FT_CALL(pthread_create(thread, NULL, writer, NULL));
	if (!copies)
		limit_addresses(len / 2);
	atomic_store(&writes, true);
	return file;
}

/*
 * The same file gets other bytes: no registration of the former bytes is used.
 */
static void written_anew(struct fid_mrrc_file *file)
{
	const uint64_t limit = ft_deadline();
	struct fi_mrrc_file_stats attr;
	uint64_t before;

	close(ft_file_make(path, shadow + 100, LEN));
	query(file, &attr);
	before = attr.mapped;
	do {
		receive(SEND, BIG);
		FT_POST(&pair.c, post(file, SEND, 7, BIG, FI_COMPLETION));
		finish(file, SEND, 107, BIG);
		query(file, &attr);
		FT_CHECK(ft_limit_us() < limit, "not mapped: %s", attr.why);
	} while (can_map && attr.mapped == before);
}

static void overtaken_end(struct fid_mrrc_file *file, int fd)
{
	FT_CHECK(fi_mrrc_file_send(file, pair.c.ep, 900, 200, pair.c.to,
				   file) == -FI_ENODATA,
		 "the truncated file is longer");
	transfer(file, SEND, 10, 900);
	written_anew(file);
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

/*
 * The peer is not ready when the file is truncated. The writer does not wait
 * for long, and the peer gets the former data: a conditional write, which has
 * no tag yet, is sent from a copy. A part of a file that the core already has
 * is copied to the same address. The operation fails if the process has no
 * address space left for the copy, or if a device reads the file's own pages.
 */
static void overtaken(enum kind kind, size_t len, bool copies)
{
	int fd = ft_file_make(path, shadow, len + 7);
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	const bool pins = can_map && ft_core("verbs") && kind != CWRITE;
	struct fi_mrrc_file_stats attr;
	struct fid_mrrc_file *file;
	struct ft_comp comp;
	pthread_t thread;

	ft_stage("kind %d, truncated while it is read, %d", kind, copies);
	file = overtake(kind, len, fd, copies, &thread);
	pthread_join(thread, NULL);
	check_writer();
	FT_CHECK(!pins || writer_us > 4000000,
		 "the writer waited %" PRIu64 " us", writer_us);
	setrlimit(RLIMIT_AS, &all);
	query(file, &attr);
	FT_CHECK(attr.copied == (!can_map || kind == CWRITE), "%lu copied",
		 (unsigned long) attr.copied);
	receive(kind, len);
	if (!can_map || kind == CWRITE || (copies && !pins)) {
		finish(file, kind, 7, len);
	} else {
		ft_wait_any(&pair.c, FT_TX, &comp);
		FT_CHECK(comp.err == FI_EIO && comp.ctx == file,
			 "error %d, context %p", comp.err, comp.ctx);
		ft_wait_any(&pair.s, FT_RX, &comp);
	}
	overtaken_end(file, fd);
}

/*
 * The peer becomes ready while a writer waits: the peer gets the former data.
 */
static void awaited(enum kind kind, size_t len)
{
	int fd = ft_file_make(path, shadow, len + 7);
	struct fid_mrrc_file *file;
	pthread_t thread;

	ft_stage("kind %d, a writer waits for the peer", kind);
	file = overtake(kind, len, fd, true, &thread);
	usleep(50000);
	receive(kind, len);
	finish(file, kind, 7, len);
	pthread_join(thread, NULL);
	check_writer();
	overtaken_end(file, fd);
}

/*
 * The core has a conditional write when a writer opens the file: the core goes
 * on reading at the same address.
 */
static void under_way(size_t len)
{
	int fd = ft_file_make(path, shadow, len + 7);
	struct fid_mrrc_file *file = file_open(fd, FI_MRRC_FILE_MAP);
	pthread_t thread;

	ft_stage("a writer comes while it is written");
	receive(CWRITE, len);
	usleep(20000);
	ft_progress(&pair.c);
	FT_POST(&pair.c, post(file, CWRITE, 7, len, FI_COMPLETION));
	FT_CALL(pthread_create(&thread, NULL, writer, NULL));
	finish(file, CWRITE, 7, len);
	pthread_join(thread, NULL);
	overtaken_end(file, fd);
}

/*
 * A descriptor stands for the file for which it was opened, also after a
 * rename.
 */
static void replaced(void)
{
	char other[96];
	int fd = ft_file_make(path, shadow, LEN), fd2;
	struct fid_mrrc_file *file = file_open(fd, FI_MRRC_FILE_MAP), *file2;

	ft_stage("replaced by rename");
	transfer(file, SEND, 0, BIG);
	snprintf(other, sizeof(other), "%s.new", path);
	fd2 = ft_file_make(other, shadow + 100, LEN / 2);
	FT_CHECK(!rename(other, path), "rename: %s", strerror(errno));
	file2 = file_open(fd2, FI_MRRC_FILE_MAP);
	transfer(file, SEND, 0, BIG);
	receive(SEND, BIG);
	FT_POST(&pair.c, post(file2, SEND, 0, BIG, FI_COMPLETION));
	finish(file2, SEND, 100, BIG);
	FT_CALL(fi_close(&file->fid));
	FT_CALL(fi_close(&file2->fid));
	close(fd);
	close(fd2);
}

/* ---- many files, a sparse file, fork ---- */

static void many(void)
{
	const unsigned count = ft_races(1000);
	struct fid_mrrc_file *file;
	char name[96];
	unsigned i;
	int fd;

	for (i = 0; i < count; i++) {
		ft_stage("file %u of %u", i, count);
		snprintf(name, sizeof(name), "%s.%u", path, i % 700);
		fd = ft_file_make(name, shadow + i, 300000);
		file = file_open(fd, FI_MRRC_FILE_MAP);
		receive(SEND, 290000);
		FT_POST(&pair.c, post(file, SEND, 3, 290000, FI_COMPLETION));
		finish(file, SEND, i + 3, 290000);
		FT_CALL(fi_close(&file->fid));
		close(fd);
		if (i % 3)
			unlink(name);
	}
	for (i = 0; i < 700; i++) {
		snprintf(name, sizeof(name), "%s.%u", path, i);
		unlink(name);
	}
}

/* Sending a sparse file takes no memory of the file system. */
static void sparse(uint64_t flags)
{
	const uint64_t len = 8ULL << 30;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct fid_mrrc_file *file;
	struct stat before, after;
	unsigned i;

	ft_stage("8 GiB, sparse, flags %" PRIx64, flags);
	FT_CHECK(!ftruncate(fd, (off_t) len), "ftruncate");
	FT_CHECK(pwrite(fd, shadow, BIG, (off_t) (len - BIG)) == (ssize_t) BIG,
		 "pwrite");
	FT_CHECK(!fstat(fd, &before), "fstat");
	file = file_open(fd, flags);
	close(fd);
	receive(SEND, BIG);
	FT_POST(&pair.c, post(file, SEND, len - BIG, BIG, FI_COMPLETION));
	finish(file, SEND, 0, BIG);
	memset(shadow, 0, BIG);
	for (i = 0; i < 64; i++) {
		receive(SEND, BIG);
		FT_POST(&pair.c,
			post(file, SEND, ft_rand() % ((len >> 20) - 2) * BIG,
			     BIG, FI_COMPLETION));
		finish(file, SEND, 0, BIG);
	}
	FT_CHECK(!stat(path, &after) && after.st_blocks == before.st_blocks,
		 "holes were allocated: %ld blocks, not %ld",
		 (long) after.st_blocks, (long) before.st_blocks);
	ft_fill(shadow, HUGE, SEED);
	FT_CALL(fi_close(&file->fid));
}

static void forked(void)
{
	int fd = ft_file_make(path, shadow, LEN), status;
	struct fid_mrrc_file *file = file_open(fd, FI_MRRC_FILE_MAP), *none;
	pthread_t thread;
	pid_t pid;

	ft_stage("fork");
	transfer(file, SEND, 0, BIG);
	pid = fork();
	if (!pid) {
		if (fi_mrrc_file_send(file, pair.c.ep, 0, BIG, pair.c.to,
				      file) != -FI_EOPNOTSUPP ||
		    fi_mrrc_file_open(pair.dom[1].domain, fd, 0, &none, NULL) !=
			    -FI_EOPNOTSUPP ||
		    fi_close(&file->fid))
			_exit(1);
		_exit(0);
	}
	FT_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
		 "the child: %d", status);
	transfer(file, SEND, 0, BIG);
	/* the parent still has the lease */
	FT_CALL(pthread_create(&thread, NULL, writer, NULL));
	pthread_join(thread, NULL);
	check_writer();
	FT_CALL(fi_close(&file->fid));
	close(fd);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	const struct rlimit fds = { FDS, FDS };
	size_t huge;
	unsigned i;

	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "3M", 1);
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	setrlimit(RLIMIT_NOFILE, &fds);
	attr.caps |= ft_rdm() ? FI_TAGGED : 0;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, HUGE + FT_PAGE);
	shadow = ft_map(NULL, HUGE);
	ft_fill(shadow, HUGE, SEED);
	mr = ft_reg(&pair.dom[0], in, LEN, FI_REMOTE_WRITE);
	ft_file_dir(FT_FS_MEMORY, dir, sizeof(dir));
	can_map = ft_file_maps(&pair.dom[1], dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	for (i = 0; i < 3u + ft_file_direct(&pair.dom[1], dir); i++) {
		kinds(i ? 1ULL << (i - 1) : 0);
		descriptors(i ? 1ULL << (i - 1) : 0);
		busy(i ? 1ULL << (i - 1) : 0);
	}
	odd_ones();
	refused();
	cached();
	levels();
	limits();
	mistakes();
	overtaken(CWRITE, BIG, true);
	overtaken(CWRITE, BIG, false);
	/* more bytes than sockets take; a device waits for the receive */
	huge = ft_core("verbs") ? BIG : HUGE - 7;
	overtaken(SEND, huge, true);
	overtaken(SEND, huge, false);
	awaited(CWRITE, BIG);
	awaited(SEND, huge);
	for (i = 0; i < 8; i++)
		under_way(huge);
	replaced();
	many();
	sparse(0);
	sparse(FI_MRRC_FILE_MAP);
	forked();
	if (!ft_rdm())
		refused_cwrite();
	unlink(path);
	rmdir(dir);
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
	return ft_done();
}
