/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_files_ahead: tests parts of files that are not in the page cache. For
 * a separate part only the part is read from the disk, for parts in order also
 * the following bytes. Parts in order are copied when they are sent for the
 * first time.
 */
#include "ft_mrrc.h"

#include <fcntl.h>

#define LEN  (16UL << 20) /* length of the file */
#define PART (64UL << 10)
#define LONG (1UL << 20)
#define FAR  (8UL << 20)
#define SEED 9

#define TRIES	5
#define WAIT_US 5000000

static struct ft_pair pair;
static char *in, *shadow, *view;
static char dir[64], path[80];

static size_t resident(size_t offset, size_t len)
{
	unsigned char pages[LEN / FT_PAGE];
	size_t i, n = 0;

	FT_CHECK(!mincore(view + offset, len, pages), "mincore");
	for (i = 0; i < len / FT_PAGE; i++)
		n += pages[i] & 1;
	return n * FT_PAGE;
}

/*
 * Removes the file from the provider's mapping and from the page cache. Returns
 * false if the file stays in the page cache.
 */
static bool drop(void)
{
	const uint64_t limit = ft_limit_us() + WAIT_US;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	do {
		FT_CALL(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	} while (resident(0, LEN) && ft_limit_us() < limit && !usleep(1000));
	close(fd);
	return !resident(0, LEN);
}

static struct fid_mrrc_file *file_open(uint64_t flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct fid_mrrc_file *file;

	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	FT_CALL(fi_mrrc_file_open(pair.dom[1].domain, fd, flags, &file, NULL));
	close(fd);
	return file;
}

static void transfer(struct fid_mrrc_file *file, size_t offset, size_t len)
{
	struct ft_comp comp;

	memset(in, 0x5a, len);
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, len, NULL, FT_ANY, in));
	FT_POST(&pair.c, fi_mrrc_file_send(file, pair.c.ep, offset, len,
					   pair.c.to, file));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(!memcmp(in, shadow + offset, len), "wrong data at %zu",
		 offset);
}

static uint64_t copied(struct fid_mrrc_file *file)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };

	FT_CALL(fi_mrrc_file_query(file, &attr));
	return attr.copied;
}

static uint64_t leases(struct fid_mrrc_file *file)
{
	struct fi_mrrc_file_stats attr = { .size = sizeof(attr) };

	FT_CALL(fi_mrrc_file_query(file, &attr));
	return attr.leases;
}

/* Keeps page faults of the provider's mapping from reading ahead. */
static void faults_alone(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, n = 0;
	char line[256];

	FT_CHECK(maps, "maps");
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, path) ||
		    sscanf(line, "%lx-%lx", &start, &end) != 2 ||
		    (char *) start == view)
			continue;
		FT_CALL(madvise((void *) start, end - start, MADV_RANDOM));
		n++;
	}
	fclose(maps);
	FT_CHECK(n, "not mapped");
}

/* Prints an unexpected result of a stage; returns false. */
static bool unlike(const char *what, size_t bytes)
{
	printf("%s: %zu\n", what, bytes);
	return false;
}

/* For a separate part only the part is read, not its neighbours. */
static bool apart(struct fid_mrrc_file *file)
{
	transfer(file, FAR, PART);
	transfer(file, FAR, PART);
	if (resident(0, LEN) != PART)
		return unlike("bytes read for a part", resident(0, LEN));
	transfer(file, LEN - PART, PART);
	if (resident(0, LEN) != 2 * PART)
		return unlike("bytes read for two parts", resident(0, LEN));
	return !copied(file) || unlike("parts copied", copied(file));
}

/*
 * For parts in order the kernel reads the following bytes, without page faults.
 */
static bool in_order(struct fid_mrrc_file *file)
{
	const uint64_t limit = ft_limit_us() + WAIT_US;

	transfer(file, 0, PART);
	if (resident(0, LEN) >= LONG)
		return unlike("bytes read for the first part",
			      resident(0, LEN));
	faults_alone();
	transfer(file, PART, PART);
	while (!resident(2 * PART, LONG)) {
		if (ft_limit_us() > limit)
			return unlike("bytes read ahead", 0);
		usleep(1000);
	}
	return !copied(file) || unlike("parts copied", copied(file));
}

/*
 * The provider copies parts in order that come from the disk, and takes no
 * lease for the copies.
 */
static bool cold(struct fid_mrrc_file *file)
{
	size_t at;

	/*
	 * send each part twice, as an operation that the core refused is posted
	 * again
	 */
	for (at = 0; at < LONG / 2; at += PART) {
		transfer(file, at, PART);
		transfer(file, at, PART);
	}
	if (copied(file) != LONG / PART || leases(file))
		return unlike("parts in their order copied", copied(file));
	/* a separate part is not copied, and the part after it is */
	transfer(file, FAR, PART);
	if (copied(file) != LONG / PART || leases(file) != 1)
		return unlike("parts copied with one apart", copied(file));
	transfer(file, FAR + PART, LONG);
	/* now the parts are in the page cache */
	for (at = 0; at < LONG / 2; at += PART)
		transfer(file, at, PART);
	return copied(file) == LONG / PART + 1 ||
	       unlike("parts copied of all", copied(file));
}

/* A part that is too large for a copy is mapped. */
static bool large(struct fid_mrrc_file *file)
{
	transfer(file, 0, LEN);
	return !copied(file) || unlike("parts copied", copied(file));
}

/*
 * Runs a stage a few times. The kernel may read more bytes at any time, or drop
 * pages that were read, so the stage passes if one of its results is as
 * expected.
 */
static void expect(const char *what, uint64_t flags,
		   bool (*stage)(struct fid_mrrc_file *file))
{
	struct fid_mrrc_file *file;
	unsigned i;
	bool seen = false;

	for (i = 0; i < TRIES && !seen; i++) {
		ft_stage("%s, try %u", what, i);
		file = file_open(flags);
		seen = drop() ? stage(file) :
				unlike("stays in the page cache",
				       resident(0, LEN));
		FT_CALL(fi_close(&file->fid));
	}
	FT_CHECK(seen, "%s: not as expected in %d tries", what, TRIES);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	int fd;

	setenv("FI_OFI_MRRC_ALLOC_MAX_SIZE", "8M", 1);
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("files are ofi_mrrc's");
	if (ft_rxm())
		ft_skip("ofi_rxm may copy short parts: so does the provider");
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, LEN);
	shadow = ft_map(NULL, LEN);
	ft_fill(shadow, LEN, SEED);
	ft_file_dir(FT_FS_DISK, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = ft_file_make(path, shadow, LEN);
	view = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	FT_CHECK(view != MAP_FAILED, "mmap: %s", strerror(errno));
	FT_CHECK(!fsync(fd), "fsync: %s", strerror(errno));
	close(fd);
	if (!ft_file_maps(&pair.dom[1], dir) || !drop()) {
		unlink(path);
		rmdir(dir);
		ft_skip("%s: files are not mapped, or not on a disk", dir);
	}
	expect("a part apart", FI_MRRC_FILE_MAP, apart);
	expect("parts in their order", FI_MRRC_FILE_MAP, in_order);
	expect("cold, in parts", 0, cold);
	expect("cold, larger than a copy may be", 0, large);
	unlink(path);
	rmdir(dir);
	munmap(view, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
