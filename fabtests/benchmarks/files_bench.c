/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * files_bench: measures the cost of serving a file, as dalessandro2007 does
 * (slides "Traditional Approach" to "Pipelining Effect"). A file is written to
 * a peer in parts (pages), of which some are under way at a time (pipes):
 *
 *   none     from memory that was registered before: the other ways' limit
 *   static   read into registered memory (FI_MRRC_FILE_COPY)
 *   dynamic  mapped, registered and kept from the last time (FI_MRRC_FILE_MAP)
 *   first    the same, of a file that is neither mapped nor registered yet
 *   direct   read past the page cache (FI_MRRC_FILE_DIRECT)
 *   auto     as the provider chooses
 *
 * Before each transfer the file is in the page cache ("in"), or is not ("out");
 * with "out" each way starts with a newly opened file.
 *
 * Prints lines "PLACE SIZE PART PIPES", followed for each way by MB/s and
 * nanoseconds of processor time per KiB: medians of interleaved rounds, "- -"
 * for a way that the machine does not support. The last two numbers are ratios
 * of throughput, medians over rounds: dynamic to none, and auto to the best
 * fixed way. One thread drives both ends of the connection, so the processor
 * time includes both.
 */
#include "ft_bench.h"

#include <fcntl.h>

#define ROUNDS	  31
#define PIPES_MAX 6
#define TOTAL	  ((size_t) 4 << 20) /* minimum bytes that are timed at once */
#define OUT_MORE  6 /* factor for the number of rounds if few parts are timed */
#define SEED	  5

enum way { NONE, STATIC, DYNAMIC, FIRST, DIRECT, AUTO, WAYS };

struct row {
	bool out;
	size_t size, part;
	unsigned pipes;
};

static struct ft_pair pair;
static struct fid_mr *target, *source;
static char *from, *to, dir[64], path[80];
static uint64_t flags, failures;
static bool can_direct;
static size_t max = (size_t) 64 << 20;
static double speed[WAYS][ROUNDS], cpu[WAYS][ROUNDS];

/* ---- the file ------------------------------------------------------------ */

/* Makes the provider unmap the file: a writer breaks the provider's lease. */
static int file_cold(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

static struct fid_mrrc_file *file_open(enum way way)
{
	static const uint64_t modes[WAYS] = {
		[STATIC] = FI_MRRC_FILE_COPY,
		[DYNAMIC] = FI_MRRC_FILE_MAP,
		[FIRST] = FI_MRRC_FILE_MAP,
		[DIRECT] = FI_MRRC_FILE_DIRECT,
	};
	int fd = way == FIRST ? file_cold() : open(path, O_RDONLY | O_CLOEXEC);
	struct fid_mrrc_file *file;

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, modes[way], &file,
				  NULL));
	close(fd);
	return file;
}

/*
 * Makes a file of exactly the size that is sent: in some of the ways, the
 * kernel would read more bytes than requested of a longer file.
 */
static void file_make(size_t len)
{
	int fd;

	close(ft_file_make(path, from, len));
	fd = file_cold();
	FT_CHECK(!fsync(fd), "fsync: %s", strerror(errno));
	close(fd);
}

/* Returns the number of the file's pages that are in the page cache. */
static size_t resident(int fd, size_t len)
{
	const size_t pages = (len + FT_PAGE - 1) / FT_PAGE;
	unsigned char *in = malloc(pages);
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	size_t i, n = 0;

	FT_CHECK(in && p != MAP_FAILED && !mincore(p, len, in), "mincore");
	for (i = 0; i < pages; i++)
		n += in[i] & 1;
	munmap(p, len);
	free(in);
	return n;
}

/*
 * Drops the file from the page cache. Pages that are still being read ahead
 * stay. Returns false if the whole file stays.
 */
static bool drop(size_t len)
{
	int fd = file_cold();
	unsigned tries = 0;

	do {
		if (tries)
			usleep(1000);
		FT_CALL(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	} while (resident(fd, len) && tries++ < 1000);
	close(fd);
	return tries <= 1000;
}

/* ---- one transfer -------------------------------------------------------- */

static void post(struct fid_mrrc_file *file, size_t at, size_t len)
{
	struct fi_mrrc_file_msg part =
		fi_mrrc_file_part(at, len, pair.c.to, NULL);
	const struct fi_rma_iov there = {
		ft_raddr(&pair.dom[0], to) + at,
		len,
		fi_mr_key(target),
	};
	const struct iovec here = { from + at, len };
	void *desc = fi_mr_desc(source);
	struct fi_msg_rma msg = {
		.msg_iov = &here,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &there,
		.rma_iov_count = 1,
	};

	if (file) {
		part.rma_addr = there.addr;
		part.key = there.key;
		FT_POST(&pair.c,
			fi_mrrc_file_writemsg(file, pair.c.ep, &part, flags));
	} else {
		FT_POST(&pair.c, fi_writemsg(pair.c.ep, &msg, flags));
	}
}

static void transfer(struct fid_mrrc_file *file, const struct row *row)
{
	struct ft_comp comp;
	unsigned flight = 0;
	size_t at, len;

	for (at = 0; at < row->size; at += len) {
		len = row->size - at < row->part ? row->size - at : row->part;
		if (flight == row->pipes) {
			ft_wait(&pair.c, FT_TX, &comp);
			flight--;
		}
		post(file, at, len);
		flight++;
	}
	while (flight--)
		ft_wait(&pair.c, FT_TX, &comp);
}

/* Times one round of a way. Returns false if the way is not possible. */
static bool timed(enum way way, const struct row *row, unsigned round)
{
	const bool again = !row->out && way != FIRST && row->size < TOTAL;
	const size_t times = again ? TOTAL / row->size : 1;
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };
	struct fid_mrrc_file *file;
	uint64_t used;
	double start;
	size_t i;

	file = way == NONE ? NULL : file_open(way);
	/*
	 * a first transfer makes the kept registrations, and brings the target
	 * into the processor's cache
	 */
	if (!row->out && way != FIRST)
		transfer(file, row);
	memset(to, 0, row->size);
	FT_CHECK(!row->out || drop(row->size), "the page cache keeps %s", path);
	used = ft_cpu_us();
	start = ft_time_us();
	for (i = 0; i < times; i++)
		transfer(file, row);
	start = ft_time_us() - start;
	used = ft_cpu_us() - used;
	speed[way][round] = (double) (times * row->size) / start;
	cpu[way][round] =
		(double) used * 1e3 * 1024 / (double) (times * row->size);
	failures += !!memcmp(from, to, row->size);
	if (!file)
		return true;
	FT_CALL(fi_mrrc_file_query(file, &attr));
	FT_CALL(fi_close(&file->fid));
	return way == STATIC || way == AUTO || !attr.copied;
}

/* ---- rows ---------------------------------------------------------------- */

/*
 * Returns the median, over the rounds, of one way's speed divided by the
 * other's.
 */
static double ratio(enum way one, enum way other, unsigned rounds)
{
	double of[ROUNDS];
	unsigned i;

	for (i = 0; i < rounds; i++)
		of[i] = speed[one][i] / speed[other][i];
	return ft_median(of, rounds);
}

static double median_speed(enum way way, unsigned rounds)
{
	double copy[ROUNDS];

	memcpy(copy, speed[way], rounds * sizeof(*copy));
	return ft_median(copy, rounds);
}

static void print_row(const struct row *row, const bool *can, unsigned rounds)
{
	enum way way, best = STATIC;
	double most = median_speed(STATIC, rounds);

	printf("%s %zu %zu %u", row->out ? "out" : "in", row->size, row->part,
	       row->pipes);
	for (way = NONE; way < WAYS; way++) {
		if (can[way])
			printf(" %.1f %.1f", median_speed(way, rounds),
			       ft_median(cpu[way], rounds));
		else
			printf(" - -");
	}
	for (way = DYNAMIC; way <= DIRECT; way++) {
		if (!can[way] || way == FIRST ||
		    median_speed(way, rounds) <= most)
			continue;
		best = way;
		most = median_speed(way, rounds);
	}
	if (can[NONE] && can[DYNAMIC])
		printf(" %.3f", ratio(DYNAMIC, NONE, rounds));
	else
		printf(" -");
	printf(" %.3f\n", ratio(AUTO, best, rounds));
	fflush(stdout);
}

static void run(const struct row *row)
{
	unsigned rounds = ft_iters(ROUNDS);
	bool can[WAYS] = { true, true, true, true, can_direct, true };
	unsigned round, w;
	enum way way;

	/*
	 * a file outside the page cache is also new to the provider; the memory
	 * of the way "none" cannot be outside the page cache
	 */
	if (row->out)
		can[NONE] = can[FIRST] = false;
	/*
	 * a transfer brings the file into the page cache, so the transfer is
	 * not repeated within a round
	 */
	if (row->out && row->size < TOTAL)
		rounds *= OUT_MORE;
	if (rounds > ROUNDS)
		rounds = ROUNDS;
	for (round = 0; round < rounds; round++) {
		ft_stage("%zu bytes in parts of %zu, %u pipes, round %u",
			 row->size, row->part, row->pipes, round);
		for (w = round; w < round + WAYS; w++) {
			/*
			 * the work of a way may slow the next way, so both
			 * orders of ways are run
			 */
			way = round & 1 ? WAYS - 1 - w % WAYS : w % WAYS;
			if (can[way])
				can[way] = timed(way, row, round);
		}
	}
	print_row(row, can, rounds);
}

static void rows(bool out)
{
	static const size_t sizes[] = { 4UL << 10, 64UL << 10, 1UL << 20,
					16UL << 20, 64UL << 20 };
	static const unsigned pipes[] = { 1, 2, PIPES_MAX };
	struct row row = { .out = out };
	unsigned i, j, k;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		row.size = sizes[i];
		if (row.size > max)
			break;
		file_make(row.size);
		for (j = 0; j <= i; j++) {
			row.part = sizes[j];
			/* files in more than 1024 parts are left out */
			if (row.part < row.size >> 10)
				continue;
			for (k = 0; k < 3; k++) {
				row.pipes = pipes[k];
				if (k && row.part * pipes[k - 1] >= row.size)
					continue;
				run(&row);
			}
		}
	}
}

/* ---- main ---------------------------------------------------------------- */

static void open_all(void)
{
	struct ft_attr attr = FT_ATTR;

	/* the test environment's value keeps the provider from choosing */
	unsetenv("FI_OFI_MRRC_BOUNCE_SIZE");
	flags = FI_COMPLETION | (ft_core("verbs") ? FI_TRANSMIT_COMPLETE :
						    FI_DELIVERY_COMPLETE);
	ft_pair_open(&pair, &attr);
	from = ft_map(NULL, max);
	to = ft_map(NULL, max);
	ft_fill(from, max, SEED);
	memset(to, 0, max);
	source = ft_reg(&pair.dom[1], from, max, FI_WRITE);
	target = ft_reg(&pair.dom[0], to, max, FI_REMOTE_WRITE);
	ft_file_dir(FT_FS_DISK, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	can_direct = ft_file_direct(&pair.dom[1], dir);
}

static void close_all(void)
{
	unlink(path);
	rmdir(dir);
	FT_CALL(fi_close(&source->fid));
	FT_CALL(fi_close(&target->fid));
	ft_unmap(from, max);
	ft_unmap(to, max);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "m:")) != -1) {
		if (op == 'm')
			FT_CHECK(ft_parse_sizes(optarg, &max, 1) == 1 &&
					 max >= TOTAL,
				 "-m wants a size of 4M or more");
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	ft_start(argv[0]);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	FT_CHECK(ft_iters(ROUNDS) <= ROUNDS, "more than %d rounds", ROUNDS);
	open_all();
	rows(false);
	file_make(TOTAL);
	if (drop(TOTAL))
		rows(true);
	else
		printf("note: the page cache keeps what is in %s\n", dir);
	FT_CHECK(!failures, "%" PRIu64 " transfers had other bytes", failures);
	close_all();
	return ft_done();
}
