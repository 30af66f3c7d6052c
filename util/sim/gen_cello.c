/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cello: the disk I/O of a timesharing system, after the Cello92 trace of
 * ou2009 (section 7).
 *
 * From the paper: one client behind a cache of 30 MB, 0.5 million I/Os a day, a
 * capacity of 10.4 GB (Table 2); users that simulate, compile, edit and read
 * mail; requests of at most 2 pages of 4 KB, almost 80 % of them of 2 (section
 * 7, Fig. 9a). The generator simulates the client's cache: misses and
 * write-backs of its LRU are the trace, without short-term reuse.
 *
 * Assumed: a file system of 8 KB blocks, 2 pages, in groups of 16 MB with inode
 * tables read and written by the page; a file's odd page is a separate block;
 * how large files are; 24 users, each with 32 files in work, and new files
 * chosen by Zipf's law with exponent 0.75; the shares of whole and partial
 * reads and writes; inodes written at once, data every 30 s or on eviction; no
 * difference between day and night. MB is 2^20 bytes, GB is 10^9. All requests
 * are read-write: the paper's cache knows one kind of access.
 */
#include "config.h"
#include "sim/gen.h"
#include "sim/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <bsd/sys/queue.h>

#define CELLO_REQUESTS 500000
#define BLOCK	       (2 * SIM_PAGE)
#define BLOCKS	       (UINT64_C(10400000000) / BLOCK)
#define CACHE_PAGES    (30 * 256)
#define GROUP	       2048 /* blocks */
#define GROUP_INODES   16   /* number of inode blocks at a group's start */
#define BLOCK_INODES   32
#define USERS	       24
#define USER_FILES     32
#define IO_US	       15000
#define OP_US	       900000
#define SYNC_US	       30000000
#define SAME_USER      4 /* 1 in 4 operations changes the user */

/* Weights of files with 1, 2-3, 4-7, ... 128-255 pages, in percent. */
static const unsigned int size_weights[] = { 14, 20, 22, 18, 12, 8, 4, 2 };

#define CLASS_CNT (sizeof(size_weights) / sizeof(size_weights[0]))

enum op { READ_ALL, READ_PART, WRITE_ALL, WRITE_PART, OP_CNT };

static const unsigned int op_weights[OP_CNT] = { 62, 12, 10, 16 };
/* Weights of a file at work and of a new file, in percent. */
static const unsigned int source_weights[] = { 62, 38 };

struct file {
	uint32_t block; /* the first block */
	uint32_t inode; /* the inode's block */
	uint32_t pages;
};

struct entry {
	TAILQ_ENTRY(entry) link;
	uint32_t block;
	uint8_t pages;
	bool dirty;
};

TAILQ_HEAD(entry_list, entry);

struct cello {
	struct sim_rng rng;
	struct sim_zipf zipf;
	struct file *file; /* by popularity */
	size_t files;
	size_t user[USERS][USER_FILES]; /* indices of file */
	size_t last_user;
	struct entry *entry;
	uint16_t *entry_of;    /* index of the entry of each block + 1, or 0 */
	struct entry_list lru; /* oldest first */
	struct entry_list unused;
	uint32_t pages; /* pages of lru's entries */
	uint64_t time;
	uint64_t sync; /* time of the next sync */
	struct sim_trace *out;
	size_t requests; /* requests wanted */
};

/* ---- the client's cache -------------------------------------------------- */

static int cello_io(struct cello *cello, uint32_t block, uint32_t pages)
{
	if (cello->out->count == cello->requests)
		return 0;
	cello->time += sim_rng_about(&cello->rng, IO_US);
	return sim_trace_append(cello->out,
				&(struct sim_req){
					.time = cello->time,
					.addr = (uint64_t) block * BLOCK,
					.len = (uint64_t) pages * SIM_PAGE,
					.access = SIM_RW,
				});
}

static int cello_clean(struct cello *cello, struct entry *entry)
{
	if (!entry->dirty)
		return 0;
	entry->dirty = false;
	return cello_io(cello, entry->block, entry->pages);
}

static int cello_evict(struct cello *cello)
{
	struct entry *entry = TAILQ_FIRST(&cello->lru);

	TAILQ_REMOVE(&cello->lru, entry, link);
	TAILQ_INSERT_TAIL(&cello->unused, entry, link);
	cello->entry_of[entry->block] = 0;
	cello->pages -= entry->pages;
	return cello_clean(cello, entry);
}

/*
 * Finds a block or makes room for a new one; puts the block at the end of the
 * LRU list.
 */
static int cello_touch(struct cello *cello, uint32_t block, uint32_t pages,
		       bool read)
{
	struct entry *entry;
	int ret;

	if (cello->entry_of[block]) {
		entry = &cello->entry[cello->entry_of[block] - 1];
		TAILQ_REMOVE(&cello->lru, entry, link);
		TAILQ_INSERT_TAIL(&cello->lru, entry, link);
		return 0;
	}
	while (cello->pages + pages > CACHE_PAGES) {
		ret = cello_evict(cello);
		if (ret)
			return ret;
	}
	entry = TAILQ_FIRST(&cello->unused);
	TAILQ_REMOVE(&cello->unused, entry, link);
	TAILQ_INSERT_TAIL(&cello->lru, entry, link);
	entry->block = block;
	entry->pages = pages;
	entry->dirty = false;
	cello->entry_of[block] = entry - cello->entry + 1;
	cello->pages += pages;
	return read ? cello_io(cello, block, pages) : 0;
}

static int cello_sync(struct cello *cello)
{
	struct entry *entry;
	int ret;

	TAILQ_FOREACH(entry, &cello->lru, link) {
		ret = cello_clean(cello, entry);
		if (ret)
			return ret;
	}
	cello->sync += SYNC_US;
	return 0;
}

/* ---- users ------------------------------------------------------- */

/* Reads or writes blocks [from, to) of a file. */
static int cello_blocks(struct cello *cello, const struct file *file,
			uint32_t from, uint32_t to, bool read, bool write)
{
	uint32_t i, pages;
	int ret;

	for (i = from; i < to; i++) {
		pages = 2 * i + 1 == file->pages ? 1 : 2;
		ret = cello_touch(cello, file->block + i, pages, read);
		if (ret)
			return ret;
		if (write)
			TAILQ_LAST(&cello->lru, entry_list)->dirty = true;
	}
	return 0;
}

/*
 * Chooses mostly the same user again, then one of the user's files or a new
 * file.
 */
static const struct file *cello_choose(struct cello *cello)
{
	struct sim_rng *rng = &cello->rng;
	size_t *file;

	if (!sim_rng_below(rng, SAME_USER))
		cello->last_user = sim_rng_below(rng, USERS);
	file = &cello->user[cello->last_user][sim_rng_below(rng, USER_FILES)];
	if (sim_rng_pick(rng, source_weights, 2))
		*file = sim_zipf_next(&cello->zipf, rng);
	return &cello->file[*file];
}

static int cello_op(struct cello *cello)
{
	const struct file *file = cello_choose(cello);
	uint32_t blocks = (file->pages + 1) / 2, from = 0, to = blocks;
	enum op op = sim_rng_pick(&cello->rng, op_weights, OP_CNT);
	bool write = op == WRITE_ALL || op == WRITE_PART;
	int ret;

	cello->time += sim_rng_about(&cello->rng, OP_US);
	if (cello->time >= cello->sync) {
		ret = cello_sync(cello);
		if (ret)
			return ret;
	}
	ret = cello_touch(cello, file->inode, 1, true);
	if (ret)
		return ret;
	if (op == READ_PART)
		from = sim_rng_below(&cello->rng, blocks);
	if (op == WRITE_PART)
		from = blocks - 1;
	if (from)
		to = from + 1;
	ret = cello_blocks(cello, file, from, to, op != WRITE_ALL, write);
	if (ret || !write)
		return ret;
	return cello_io(cello, file->inode, 1);
}

/* ---- the file system ----------------------------------------------------- */

/* Fills the groups one after the other with files of random size. */
static void cello_files(struct cello *cello)
{
	uint32_t group, next, inodes, pages, class;
	struct sim_rng *rng = &cello->rng;

	for (group = 0; group + GROUP <= BLOCKS; group += GROUP) {
		next = group + GROUP_INODES;
		for (inodes = 0; inodes < GROUP_INODES * BLOCK_INODES;
		     inodes++) {
			class = sim_rng_pick(rng, size_weights, CLASS_CNT);
			pages = (1 << class) + sim_rng_below(rng, 1 << class);
			if (next + (pages + 1) / 2 > group + GROUP)
				break;
			cello->file[cello->files++] = (struct file){
				.block = next,
				.inode = group + inodes / BLOCK_INODES,
				.pages = pages,
			};
			next += (pages + 1) / 2;
		}
	}
}

/* Orders files by popularity, independently of their place and size. */
static void cello_shuffle(struct cello *cello)
{
	struct file swap;
	size_t i, j;

	for (i = cello->files - 1; i; i--) {
		j = sim_rng_below(&cello->rng, i + 1);
		swap = cello->file[i];
		cello->file[i] = cello->file[j];
		cello->file[j] = swap;
	}
}

static int cello_init(struct cello *cello, uint64_t seed)
{
	size_t i, j;
	int ret;

	sim_rng_init(&cello->rng, seed);
	cello->file = calloc(BLOCKS / GROUP * GROUP_INODES * BLOCK_INODES,
			     sizeof(*cello->file));
	cello->entry = calloc(CACHE_PAGES, sizeof(*cello->entry));
	cello->entry_of = calloc(BLOCKS, sizeof(*cello->entry_of));
	if (!cello->file || !cello->entry || !cello->entry_of)
		return -ENOMEM;
	cello_files(cello);
	cello_shuffle(cello);
	ret = sim_zipf_init(&cello->zipf, cello->files);
	if (ret)
		return ret;
	TAILQ_INIT(&cello->lru);
	TAILQ_INIT(&cello->unused);
	for (i = 0; i < CACHE_PAGES; i++)
		TAILQ_INSERT_TAIL(&cello->unused, &cello->entry[i], link);
	for (i = 0; i < USERS; i++) {
		for (j = 0; j < USER_FILES; j++)
			cello->user[i][j] =
				sim_zipf_next(&cello->zipf, &cello->rng);
	}
	cello->sync = SYNC_US;
	return 0;
}

static int cello_make(uint64_t seed, size_t requests, struct sim_trace *trace)
{
	struct cello *cello = calloc(1, sizeof(*cello));
	struct sim_trace out;
	int ret;

	if (!cello)
		return -ENOMEM;
	ret = cello_init(cello, seed);
	if (ret)
		goto out_free;
	ret = sim_trace_init(&out, sim_gen_cello.name);
	if (ret)
		goto out_free;
	cello->out = &out;
	cello->requests = requests ? requests : CELLO_REQUESTS;
	while (!ret && out.count < cello->requests)
		ret = cello_op(cello);
	if (ret)
		sim_trace_fini(&out);
	else
		*trace = out;
out_free:
	sim_zipf_fini(&cello->zipf);
	free(cello->entry_of);
	free(cello->entry);
	free(cello->file);
	free(cello);
	return ret;
}

const struct sim_gen sim_gen_cello = {
	.name = "cello",
	.help = "timesharing system's disk I/O behind a 30 MB cache (ou2009)",
	.requests = CELLO_REQUESTS,
	.make = cello_make,
};
