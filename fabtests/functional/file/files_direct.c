/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_files_direct: tests parts of files that are read past the page cache:
 * which parts are read ahead, and that parts read ahead are not used once the
 * file has changed; files that are closed while they are read; limits; a kernel
 * that refuses io_uring.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define LEN   (16UL << 20) /* length of the file */
#define PART  (256UL << 10)
#define BIG   (64UL << 20) /* length of a sparse file */
#define FILES 24
#define SEED  11

static struct ft_pair pair;
static char *in, *shadow;
static struct fid_mr *mr; /* registration of in: its pins do not change */
static char dir[64], path[80];

static struct fid_mrrc_file *file_open(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct fid_mrrc_file *file;

	FT_CHECK(fd >= 0, "%s: %s", name, strerror(errno));
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, FI_MRRC_FILE_DIRECT,
				  &file, NULL));
	close(fd);
	return file;
}

static struct fi_mrrc_file_stats query(struct fid_mrrc_file *file)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };

	FT_CALL(fi_mrrc_file_query(file, &attr));
	return attr;
}

static ssize_t post(struct fid_mrrc_file *file, size_t offset, size_t len)
{
	return fi_mrrc_file_send(file, pair.c.ep, offset, len, pair.c.to, file);
}

static void transfer(struct fid_mrrc_file *file, size_t offset, size_t len)
{
	struct ft_comp comp;

	memset(in, 0x5a, len);
	FT_POST(&pair.s,
		fi_recv(pair.s.ep, in, len, fi_mr_desc(mr), FT_ANY, in));
	FT_POST(&pair.c, post(file, offset, len));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.len == len && !memcmp(in, shadow + offset, len),
		 "wrong data: %zu bytes at %zu", len, offset);
}

/* Waits until the provider has a lease again, after a writer. */
static void settle(struct fid_mrrc_file *file)
{
	const uint64_t limit = ft_deadline();

	do {
		transfer(file, LEN - PART, PART);
		FT_CHECK(ft_limit_us() < limit, "no lease: %s",
			 query(file).why);
	} while (*query(file).why);
}

static size_t cached(void)
{
	static unsigned char pages[LEN / FT_PAGE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *view = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	size_t i, n = 0;

	FT_CHECK(view != MAP_FAILED && !mincore(view, LEN, pages), "mincore");
	for (i = 0; i < LEN / FT_PAGE; i++)
		n += pages[i] & 1;
	munmap(view, LEN);
	close(fd);
	return n * FT_PAGE;
}

/* Sends parts in order: all parts but the first are read ahead, each once. */
static void in_order(size_t part)
{
	struct fid_mrrc_file *file = file_open(path);
	struct fi_mrrc_file_stats attr;
	size_t at, len;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	ft_stage("in order, %zu bytes", part);
	FT_CALL(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	close(fd);
	settle(file);
	attr = query(file);
	at = cached();
	for (at = 0; at < LEN; at += len) {
		len = LEN - at < part ? LEN - at : part;
		transfer(file, at, len);
	}
	FT_CHECK(query(file).direct_bytes == attr.direct_bytes + LEN,
		 "%" PRIu64 " bytes read directly",
		 query(file).direct_bytes - attr.direct_bytes);
	/*
	 * the first part is read separately: the part sent before was elsewhere
	 * in the file
	 */
	FT_CHECK(query(file).ahead_bytes >= attr.ahead_bytes + LEN - 3 * part,
		 "%" PRIu64 " bytes read ahead",
		 query(file).ahead_bytes - attr.ahead_bytes);
	FT_CALL(fi_close(&file->fid));
}

static void past_the_cache(void)
{
	struct fid_mrrc_file *file = file_open(path);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	size_t at, before;

	ft_stage("past the page cache");
	FT_CHECK(!fsync(fd), "fsync");
	FT_CALL(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	close(fd);
	before = cached();
	for (at = 0; at < LEN; at += PART)
		transfer(file, at, PART);
	FT_CHECK(cached() <= before, "%zu bytes of the file are kept",
		 cached());
	FT_CALL(fi_close(&file->fid));
}

static void overwrite(size_t offset, size_t len)
{
	const uint64_t start = ft_limit_us();
	int fd = open(path, O_RDWR | O_CLOEXEC);

	FT_CHECK(fd >= 0 && ft_limit_us() - start < 20000000, "a writer waits");
	ft_fill(shadow + offset, len, ft_rand());
	FT_CHECK(pwrite(fd, shadow + offset, len, (off_t) offset) ==
			 (ssize_t) len,
		 "pwrite: %s", strerror(errno));
	close(fd);
}

/* Bytes of a file that were read ahead of a later change are not sent. */
static void changed(void)
{
	const unsigned rounds = ft_iters(ft_races(40));
	struct fid_mrrc_file *file = file_open(path);
	size_t offset;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		ft_stage("changed, round %u of %u", i, rounds);
		settle(file);
		offset = ft_rand() % (LEN / PART - 4) * PART;
		transfer(file, offset, PART);
		transfer(file, offset + PART, PART);
		usleep(ft_rand() % 2 * 3000);
		overwrite(offset + 2 * PART, PART);
		/* sometimes the provider has a lease again by then */
		usleep(ft_rand() % 2 * 15000);
		transfer(file, offset + 2 * PART, PART);
	}
	ft_stage("truncated");
	settle(file);
	transfer(file, 0, PART);
	transfer(file, PART, PART);
	FT_CHECK(!truncate(path, 2 * PART + 100), "truncate");
	FT_CHECK(post(file, 2 * PART, PART) == -FI_ENODATA, "truncated");
	transfer(file, 2 * PART, 100);
	FT_CALL(fi_close(&file->fid));
	close(ft_file_make(path, shadow, LEN));
}

static ssize_t full_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	return -FI_EAGAIN;
}

/* A part for which the core has no room is not read again. */
static void refused(void)
{
	struct fid_mrrc_file *file = file_open(path);
	struct ft_core_ops core;
	struct fi_ops_msg ops;
	uint64_t ahead;
	unsigned i;

	ft_stage("refused by the core");
	ft_core_ops("tcp", &core);
	settle(file);
	ahead = query(file).ahead_bytes;
	ops = *core.msg;
	core.msg->sendmsg = full_sendmsg;
	for (i = 0; i < 10; i++)
		FT_CHECK(post(file, PART, PART) == -FI_EAGAIN, "taken");
	*core.msg = ops;
	transfer(file, PART, PART);
	FT_CHECK(query(file).ahead_bytes == ahead + 10 * PART,
		 "%" PRIu64 " bytes were there",
		 query(file).ahead_bytes - ahead);
	FT_CALL(fi_close(&file->fid));
}

/*
 * Closes files while reads are under way: after the close, the memory of the
 * reads can be used for other data.
 */
static void closed(void)
{
	const unsigned rounds = ft_iters(ft_races(40));
	struct fid_mrrc_file *file;
	void *buf[8];
	struct fid_mr *block;
	unsigned i, j;
	size_t at;

	for (i = 0; i < rounds; i++) {
		ft_stage("closed, round %u of %u", i, rounds);
		file = file_open(path);
		transfer(file, 0, 4 * PART);
		transfer(file, 4 * PART, 4 * PART);
		FT_CALL(fi_close(&file->fid));
		for (j = 0; j < 8; j++) {
			FT_CALL(fi_mr_alloc(pair.dom[1].domain, 4 * PART, 0, 0,
					    &buf[j], &block));
			memset(buf[j], 0x5a, 4 * PART);
		}
		usleep(2000);
		for (j = 0; j < 8; j++) {
			for (at = 0; at < 4 * PART; at += FT_PAGE)
				FT_CHECK(((char *) buf[j])[at] == 0x5a,
					 "written to after the close");
			fi_mr_free(pair.dom[1].domain, buf[j]);
		}
	}
}

/* KiB */
static size_t pinned(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	size_t n = 0;
	char line[128];

	FT_CHECK(status, "status");
	while (fgets(line, sizeof(line), status) &&
	       sscanf(line, "VmPin: %zu", &n) != 1)
		;
	fclose(status);
	return n;
}

static uint64_t allocated(void)
{
	struct fi_mr_heap_stats stats = { .size = sizeof(stats) };

	FT_CALL(fi_mr_alloc_stats_read(pair.dom[1].domain, &stats));
	return stats.live_bytes;
}

/* Parts that were read ahead take a limited amount of memory. */
static void many(void)
{
	const uint64_t before = allocated();
	struct fid_mrrc_file *file[FILES];
	char name[96];
	unsigned i;
	size_t at;
	int fd;

	ft_stage("many files");
	snprintf(name, sizeof(name), "%s.big", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	FT_CHECK(fd >= 0 && !ftruncate(fd, BIG), "%s: %s", name,
		 strerror(errno));
	close(fd);
	memset(shadow, 0, LEN);
	for (i = 0; i < FILES; i++) {
		file[i] = file_open(name);
		for (at = 0; at < 6 << 20; at += 1 << 20)
			transfer(file[i], at, 1 << 20);
	}
	/* 64 MiB, and up to a quarter more for the size classes of parts */
	FT_CHECK(allocated() - before <= 80UL << 20, "%" PRIu64 " bytes",
		 allocated() - before);
	for (i = 0; i < FILES; i++)
		FT_CALL(fi_close(&file[i]->fid));
	FT_CHECK(allocated() <= before, "%" PRIu64 " bytes are left",
		 allocated() - before);
	unlink(name);
	ft_fill(shadow, LEN, SEED);
	close(ft_file_make(path, shadow, LEN));
}

/* Memory that the io_uring has registered is unpinned with its block. */
static void unpinned(size_t before)
{
	const uint64_t limit = ft_deadline();

	ft_stage("unpinned");
	do {
		FT_CALL(fi_mr_trim(pair.dom[1].domain));
		FT_CHECK(ft_limit_us() < limit, "%zu KiB are pinned",
			 pinned() - before);
	} while (pinned() > before && !usleep(1000));
}

static void forked(void)
{
	struct fid_mrrc_file *file = file_open(path);
	size_t at;
	int status;
	pid_t pid;

	ft_stage("fork");
	settle(file);
	for (at = 0; at < LEN; at += PART) {
		transfer(file, at, PART);
		if (at % (16 * PART))
			continue;
		pid = fork();
		if (!pid)
			_exit(post(file, at, PART) != -FI_EOPNOTSUPP ||
			      fi_close(&file->fid));
		FT_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
			 "the child: %d", status);
	}
	FT_CALL(fi_close(&file->fid));
}

static void pair_open(void)
{
	struct ft_attr attr = FT_ATTR;

	ft_pair_open(&pair, &attr);
	mr = ft_reg(&pair.dom[0], in, LEN, FI_RECV);
}

static void pair_close(void)
{
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
}

/*
 * Runs in a new domain: ft_deny_uring() makes io_uring_setup(2) fail, but a
 * domain that has an io_uring already can still use the io_uring.
 */
static void denied(void)
{
	struct fid_mrrc_file *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	ft_stage("io_uring is denied");
	ft_deny_uring();
	pair_open();
	ret = fi_mrrc_file_open(pair.dom[1].domain, fd, FI_MRRC_FILE_DIRECT,
				&file, NULL);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "opened: %d", ret);
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, 0, &file, NULL));
	transfer(file, 0, PART);
	FT_CALL(fi_close(&file->fid));
	close(fd);
	pair_close();
}

static void leased(void)
{
	in_order(PART);
	in_order(300001);
	in_order(2UL << 20);
	changed();
	if (ft_core("tcp") && !ft_rxm())
		refused();
}

int main(int argc, char **argv)
{
	struct fid_mrrc_file *file;
	size_t before;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	in = ft_map(NULL, LEN);
	pair_open();
	shadow = ft_map(NULL, LEN);
	ft_fill(shadow, LEN, SEED);
	ft_file_dir(FT_FS_DISK, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	close(ft_file_make(path, shadow, LEN));
	if (!ft_file_direct(&pair.dom[1], dir)) {
		unlink(path);
		rmdir(dir);
		ft_skip("no direct reads in %s", dir);
	}
	before = pinned();
	file = file_open(path);
	transfer(file, 0, PART);
	if (*query(file).why)
		printf("note: not read ahead: %s\n", query(file).why);
	else
		leased();
	FT_CALL(fi_close(&file->fid));
	past_the_cache();
	closed();
	many();
	unpinned(before);
	forked();
	pair_close();
	denied();
	unlink(path);
	rmdir(dir);
	return ft_done();
}
