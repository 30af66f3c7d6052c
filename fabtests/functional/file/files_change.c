/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_files_change: tests files that are overwritten, truncated, extended
 * and punched while parts of the files are sent, on several file systems. Each
 * page of the file has a number, which a writer raises with each change. Each
 * word that arrives has to have a number that its page had between posting and
 * completion. The server does not fail, and the writers do not wait for long.
 * The test does the same with files that are read past the page cache, mostly
 * in parts in order.
 */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#define SENT_US 20000000 /* us until at least one part is sent */
#define PAGES	256
#define LEN	(PAGES * FT_PAGE)
#define WORDS	(FT_PAGE / sizeof(uint64_t))

static struct ft_pair pair;
static char dir[64], path[80], in[LEN];
static uint64_t tags;

/*
 * For each page, the numbers of the last change that has begun, and of the last
 * change that has ended. Even numbers stand for words with the number, odd
 * numbers for zeros, or for no page at all.
 */
static _Atomic uint32_t begun[PAGES], ended[PAGES];
static atomic_bool stop;
static _Atomic uint64_t changes, longest_us;

/* ---- the writer ---- */

static uint64_t word_of(uint32_t number, unsigned page, unsigned word)
{
	return (uint64_t) number << 32 | page << 16 | word | 1ULL << 15;
}

static void begin(unsigned page, unsigned count, bool zero)
{
	for (; count--; page++)
		atomic_store(&begun[page], ((ended[page] + 2) & ~1U) + zero);
}

static void end(unsigned page, unsigned count)
{
	for (; count--; page++)
		atomic_store(&ended[page], begun[page]);
}

static void fill(int fd, unsigned page, unsigned count)
{
	uint64_t words[WORDS];
	unsigned i;

	begin(page, count, false);
	for (; count--; page++) {
		for (i = 0; i < WORDS; i++)
			words[i] = word_of(begun[page], page, i);
		FT_CHECK(pwrite(fd, words, FT_PAGE, (off_t) (page * FT_PAGE)) ==
				 (ssize_t) FT_PAGE,
			 "pwrite: %s", strerror(errno));
		end(page, 1);
	}
}

static int writer_open(void)
{
	const uint64_t from = ft_limit_us();
	int fd = open(path, O_RDWR | O_CLOEXEC);

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	if (ft_limit_us() - from > longest_us)
		longest_us = ft_limit_us() - from;
	return fd;
}

/* Truncates the file at a page: the bytes behind it are gone, then zeros. */
static void shorten(unsigned page)
{
	int fd;

	begin(page, PAGES - page, true);
	FT_CHECK(!truncate(path, (off_t) (page * FT_PAGE)), "truncate: %s",
		 strerror(errno));
	fd = writer_open();
	if (ft_rand() % 2)
		usleep(ft_rand() % 2000);
	FT_CHECK(!ftruncate(fd, LEN), "ftruncate: %s", strerror(errno));
	end(page, PAGES - page);
	if (ft_rand() % 2)
		fill(fd, page, PAGES - page);
	close(fd);
}

/*
 * Changes the file through a writable mapping, which outlives the descriptor.
 */
static void by_mapping(unsigned page)
{
	int fd = writer_open();
	uint64_t *map =
		mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned i;

	FT_CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	usleep(ft_rand() % 2000);
	begin(page, 1, false);
	for (i = 0; i < WORDS; i++)
		((_Atomic uint64_t *) map)[page * WORDS + i] =
			word_of(begun[page], page, i);
	end(page, 1);
	munmap(map, LEN);
}

static void change(void)
{
	unsigned page = ft_rand() % PAGES, count = 1 + ft_rand() % 8;
	int fd;

	if (count > PAGES - page)
		count = PAGES - page;
	switch (ft_rand() % 4) {
	case 0:
		shorten(page);
		break;
	case 1:
		by_mapping(page);
		break;
	case 2:
		fd = writer_open();
		begin(page, count, true);
		FT_CHECK(!fallocate(fd,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				    (off_t) (page * FT_PAGE),
				    (off_t) (count * FT_PAGE)),
			 "fallocate: %s", strerror(errno));
		end(page, count);
		close(fd);
		break;
	default:
		fd = writer_open();
		fill(fd, page, count);
		close(fd);
	}
	atomic_fetch_add(&changes, 1);
}

static void *writer(void *arg)
{
	while (!stop) {
		change();
		/*
		 * write at full speed, and sometimes pause so that a lease can
		 * be taken
		 */
		if (ft_rand() % 32 == 0)
			usleep(ft_rand() % 400000);
	}
	return arg;
}

/* ---- the server, and the data that arrive ---- */

/*
 * Is a word of a copy a mixture of two changes? In the middle of a change a
 * copied word may have bytes from before and after, where the processor copies
 * single bytes, as emulated processors do.
 */
static bool is_torn(uint64_t word, unsigned page, unsigned i, uint32_t low,
		    uint32_t high)
{
	uint64_t of_some = 0, differs;
	unsigned shift;

	for (; low <= high; low++) {
		differs = word ^ (low & 1 ? 0 : word_of(low, page, i));
		for (shift = 0; shift < 64; shift += 8) {
			if (!(differs >> shift & 0xff))
				of_some |= 0xffULL << shift;
		}
	}
	return of_some == UINT64_MAX;
}

/*
 * Checks the received data. @mapped: the part did not change during the
 * transfer, so each page has one number.
 */
static void check(size_t offset, size_t len, const uint32_t *from, bool mapped)
{
	const uint64_t *words = (const uint64_t *) in;
	uint32_t low, high, number, first = 0;
	unsigned page, i;
	uint64_t word;
	size_t at;
	bool whole;

	for (at = 0; at < len / sizeof(*words); at++) {
		word = words[at];
		page = (offset / sizeof(word) + at) / WORDS;
		i = (offset / sizeof(word) + at) % WORDS;
		low = from[page];
		high = begun[page];
		number = word >> 32;
		first = at && i ? first : number;
		whole = word ? word == word_of(number, page, i) &&
					number >= low && number <= high :
			       low & 1 || high > low;
		if (mapped ? whole && number == first :
			     whole || is_torn(word, page, i, low, high))
			continue;
		ft_fail(__FILE__, __LINE__,
			"page %u word %u: %#" PRIx64 ", not of %u to %u, %s",
			page, i, word, low, high, mapped ? "mapped" : "copied");
	}
}

static ssize_t post(struct fid_mrrc_file *file, bool cw, size_t offset,
		    size_t len)
{
	return cw ? fi_mrrc_file_cwrite(file, pair.c.ep, offset, len, pair.c.to,
					tags, file) :
		    fi_mrrc_file_send(file, pair.c.ep, offset, len, pair.c.to,
				      file);
}

/*
 * Chooses any part of the file, or the part after the latest part, which may
 * have been read ahead.
 */
static void choose(size_t *offset, size_t *len)
{
	if (*len && ft_rand() % 4 && *offset + 2 * *len <= LEN) {
		*offset += *len;
		return;
	}
	*len = (1 + ft_rand() % (LEN / (ft_rand() % 2 ? 8 : 64))) * 8;
	*offset = ft_rand() % ((LEN - *len) / 8 + 1) * 8;
}

static uint64_t mapped(struct fid_mrrc_file *file)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };

	FT_CALL(fi_mrrc_file_query(file, &attr));
	return attr.mapped;
}

static void receive(void)
{
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, LEN, NULL, FT_ANY, in));
}

/* Returns true if the part was sent; false: the file was shorter. */
static bool transfer(struct fid_mrrc_file *file, bool cw, bool early)
{
	static size_t offset, len;
	static uint32_t from[PAGES];
	/* a receive is posted for a part that the file did not have */
	static bool posted;
	const uint64_t before = mapped(file);
	struct ft_comp comp;
	ssize_t ret;
	unsigned i;

	choose(&offset, &len);
	for (i = 0; i < PAGES; i++)
		from[i] = ended[i];
	memset(in, 0x5a, len);
	if (!cw && !posted && early) {
		receive();
		posted = true;
	}
	ret = post(file, cw, offset, len);
	if (ret == -FI_ENODATA)
		return false;
	FT_CHECK(!ret, "post: %zd (%s)", ret, fi_strerror((int) -ret));
	if (!early)
		usleep(ft_rand() % 3000);
	if (!cw && !posted)
		receive();
	posted &= cw;
	if (cw)
		FT_POST(&pair.s, fi_cwtag(pair.s.cw, in, len, NULL, pair.s.to,
					  tags++, in));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.len == len, "%zu bytes of %zu", comp.len, len);
	check(offset, len, from, mapped(file) > before);
	return true;
}

/*
 * Sends parts until the provider maps one; sends one if it cannot map the file.
 */
static void settle(struct fid_mrrc_file *file, bool maps,
		   struct fi_mrrc_file_stats *attr)
{
	const uint64_t limit = ft_deadline();
	uint64_t before;

	FT_CALL(fi_mrrc_file_query(file, attr));
	before = attr->mapped;
	do {
		transfer(file, false, true);
		FT_CALL(fi_mrrc_file_query(file, attr));
		FT_CHECK(ft_limit_us() < limit, "not mapped: %s", attr->why);
	} while (maps && attr->mapped == before);
}

static void run(enum ft_fs fs, uint64_t mode, unsigned rounds)
{
	const bool direct = mode & FI_MRRC_FILE_DIRECT;
	static const char *const names[] = { "memory", "disk", "overlay" };
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };
	struct fid_mrrc_file *file;
	unsigned i, n, sent = 0;
	pthread_t thread;
	uint64_t start;
	bool maps;
	int fd;

	ft_stage("%s, mode %" PRIx64, names[fs], mode);
	if (!ft_file_dir(fs, dir, sizeof(dir))) {
		printf("note: no overlay here\n");
		return;
	}
	if (direct && !ft_file_direct(&pair.dom[1], dir)) {
		rmdir(dir);
		return;
	}
	maps = !direct && ft_file_maps(&pair.dom[1], dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = ft_file_make(path, in, LEN);
	close(fd);
	fd = writer_open();
	fill(fd, 0, PAGES);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, mode, &file, NULL));
	close(fd);
	stop = false;
	FT_CALL(pthread_create(&thread, NULL, writer, NULL));
	start = ft_limit_us();
	/*
	 * -I sets the number of transfers on each file system, however long
	 * they take. If there are few transfers, the writer may interfere with
	 * all of them.
	 */
	for (i = 0;
	     (ft_opts.iters ? i < ft_opts.iters : ft_round(i, rounds, start)) ||
	     (!sent && ft_limit_us() - start < SENT_US);
	     i++)
		sent += transfer(file, ft_rand() % 2, ft_rand() % 8);
	stop = true;
	pthread_join(thread, NULL);
	/* fill holes: parts of a file in memory with holes would be copied */
	fd = writer_open();
	fill(fd, 0, PAGES);
	close(fd);
	/* send once more undisturbed, and once more after a writer */
	for (n = 0; n < 2; n++) {
		settle(file, maps, &attr);
		close(writer_open());
	}
	ft_log("%s: %u of %u parts sent, %" PRIu64 " mapped, %" PRIu64
	       " read directly, %" PRIu64 " bytes of these ahead, %" PRIu64
	       " leases, %" PRIu64 " changes, the longest wait %" PRIu64 " us",
	       names[fs], sent, i, attr.mapped, attr.direct, attr.ahead_bytes,
	       attr.leases, changes, longest_us);
	FT_CHECK(sent, "none of %u was sent", i);
	FT_CHECK(longest_us < 20000000, "a writer waited %" PRIu64 " us",
		 longest_us);
	if (maps)
		FT_CHECK(attr.mapped && attr.leases > 1,
			 "%" PRIu64 " mapped: %s", attr.mapped, attr.why);
	else
		FT_CHECK(!attr.mapped, "mapped");
	FT_CHECK(direct == !!attr.direct, "read directly: %" PRIu64,
		 attr.direct);
	FT_CALL(fi_close(&file->fid));
	unlink(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	enum ft_fs fs;

	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "3M", 1);
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	for (fs = 0; fs < FT_FS_CNT; fs++) {
		run(fs, FI_MRRC_FILE_MAP, ft_iters(ft_races(100000)));
		run(fs, FI_MRRC_FILE_DIRECT, ft_iters(ft_races(100000)));
	}
	ft_pair_close(&pair);
	return ft_done();
}
