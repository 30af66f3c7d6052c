/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * httpd: a parallel web server's reads of whole files, after the HTTPD trace
 * of ou2009 (section 7).
 *
 * From the paper: 7 server nodes that share a data set of 524 MB, and 1.1
 * million requests (Table 2); whole files are read and nothing is written;
 * requests of 1 to 32 pages of 4 KB in a wide distribution with many large
 * requests (Fig. 9b, of which only the text could be read); the nodes seldom
 * read a file at the same time.
 *
 * Assumed: how many files there are of each size; popularity by Zipf's law with
 * exponent 0.75, small files favoured a little; of the nodes' requests, which
 * one cache sees in turn (proc 0), 1 in 20 repeats one of the last 1024, except
 * the last 64; 10 ms between two requests. MB is 2^20 bytes. Files lie in
 * random order with a page between two, so that no file continues another. All
 * requests are read-only, as sends of a file's content.
 */
#include "config.h"
#include "sim/gen.h"
#include "sim/rng.h"

#include <errno.h>
#include <stdlib.h>

#define HTTPD_REQUESTS 1100000
#define DATA_PAGES     (524 * 256)
#define BASE	       UINT64_C(0x100000000)
#define GAP_US	       10000
#define RECENT	       1024 /* requests that may be repeated, */
#define RECENT_MIN     64   /* except this many of the last */
#define REPEAT	       20   /* 1 in 20 is repeated */
/* Popularity: random below KEY_SPREAD, times KEY_CLASS plus the size's class. */
#define KEY_SPREAD 1000
#define KEY_CLASS  12

/* Weights of files with 1, 2-3, 4-7, 8-15, 16-31 and 32 pages, in percent. */
static const unsigned int size_weights[] = { 20, 20, 20, 16, 12, 12 };

#define CLASS_CNT (sizeof(size_weights) / sizeof(size_weights[0]))

struct file {
	uint64_t addr, len;
	uint64_t key; /* most popular first */
};

struct httpd {
	struct sim_rng rng;
	struct sim_zipf zipf;
	struct file *file; /* by popularity */
	size_t files;
	uint32_t recent[RECENT]; /* a ring, by the count of requests */
};

static int file_cmp(const void *left, const void *right)
{
	const struct file *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

/* Returns the pages of a file, which are at most the pages left. */
static uint64_t httpd_file(struct httpd *httpd, uint64_t addr, uint64_t left,
			   struct file *file)
{
	struct sim_rng *rng = &httpd->rng;
	uint64_t class, pages;

	class = sim_rng_pick(rng, size_weights, CLASS_CNT);
	pages = UINT64_C(1) << class;
	if (class < CLASS_CNT - 1)
		pages += sim_rng_below(rng, pages);
	if (pages > left)
		pages = left;
	file->addr = addr;
	file->len = (pages - 1) * SIM_PAGE + 1 + sim_rng_below(rng, SIM_PAGE);
	file->key = sim_rng_below(rng, KEY_SPREAD) * (KEY_CLASS + class);
	return pages;
}

static int httpd_files(struct httpd *httpd)
{
	uint64_t pages, left, addr = BASE;

	httpd->file = calloc(DATA_PAGES, sizeof(*httpd->file));
	if (!httpd->file)
		return -ENOMEM;
	for (left = DATA_PAGES; left; left -= pages) {
		pages = httpd_file(httpd, addr, left,
				   &httpd->file[httpd->files++]);
		addr += (pages + 1) * SIM_PAGE;
	}
	qsort(httpd->file, httpd->files, sizeof(*httpd->file), file_cmp);
	return sim_zipf_init(&httpd->zipf, httpd->files);
}

static int httpd_request(struct httpd *httpd, struct sim_trace *trace,
			 uint64_t *time)
{
	struct sim_rng *rng = &httpd->rng;
	size_t back, i;

	i = sim_zipf_next(&httpd->zipf, rng);
	if (!sim_rng_below(rng, REPEAT)) {
		back = RECENT_MIN + sim_rng_below(rng, RECENT - RECENT_MIN);
		if (back < trace->count)
			i = httpd->recent[(trace->count - back) % RECENT];
	}
	httpd->recent[trace->count % RECENT] = i;
	*time += sim_rng_about(rng, GAP_US);
	return sim_trace_append(trace, &(struct sim_req){
					       .time = *time,
					       .addr = httpd->file[i].addr,
					       .len = httpd->file[i].len,
					       .access = SIM_RO,
				       });
}

static int httpd_make(uint64_t seed, size_t requests, struct sim_trace *trace)
{
	struct httpd *httpd = calloc(1, sizeof(*httpd));
	struct sim_trace out;
	uint64_t time = 0;
	int ret;

	if (!httpd)
		return -ENOMEM;
	if (!requests)
		requests = HTTPD_REQUESTS;
	sim_rng_init(&httpd->rng, seed);
	ret = httpd_files(httpd);
	if (ret)
		goto out_free;
	ret = sim_trace_init(&out, sim_gen_httpd.name);
	if (ret)
		goto out_free;
	while (!ret && out.count < requests)
		ret = httpd_request(httpd, &out, &time);
	if (ret)
		sim_trace_fini(&out);
	else
		*trace = out;
out_free:
	sim_zipf_fini(&httpd->zipf);
	free(httpd->file);
	free(httpd);
	return ret;
}

const struct sim_gen sim_gen_httpd = {
	.name = "httpd",
	.help = "web server, whole files of 1 to 32 pages (ou2009)",
	.requests = HTTPD_REQUESTS,
	.make = httpd_make,
};
