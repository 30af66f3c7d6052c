/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The lines of domains: order, sums, and text that keeps its columns. */
#include "config.h"
#include "test/case.h"

#include "stat/rows.h"

TEST_CASE(rows, NULL, NULL);

/* Makes @cnt domains that differ by one counter; PIDs count down from @cnt. */
static struct stat_sample many(size_t cnt, enum mrrc_stat stat)
{
	struct stat_sample sample = {
		.domain = calloc(cnt, sizeof(*sample.domain)),
		.domains = cnt,
	};
	struct stat_segment *segment;
	size_t i, j;

	ck_assert_ptr_nonnull(sample.domain);
	for (i = 0; i < cnt; i++) {
		sample.domain[i].pid = cnt - i;
		strcpy(sample.domain[i].command, "rank");
		segment = &sample.domain[i].segment;
		segment->registers = true;
		segment->counters = MRRC_STAT_CNT;
		for (j = 0; j < MRRC_STAT_CNT; j++)
			strcpy(segment->counter[j].name, mrrc_stat_name(j));
		segment->counter[MRRC_STAT_LOOKUPS].value = 10;
		segment->counter[MRRC_STAT_HITS].value = 9;
		segment->counter[stat].value = i / 2;
	}
	return sample;
}

static struct stat_sample before;
static struct stat_order order;

static char *printed(const struct stat_sample *sample)
{
	struct stat_rows rows;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_int_eq(stat_rows_init(&rows, sample, &before, order), 0);
	stat_rows_print(&rows, out);
	stat_rows_fini(&rows);
	fclose(out);
	return text;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part,
		      text);
}

/* The first number of each row. */
static const char *pids(const char *text)
{
	static char list[256];
	size_t len = 0, i;

	for (i = 0; i < STAT_ROWS_HEAD; i++)
		text = strchr(text, '\n') + 1;
	for (*list = '\0'; *text; text = strchr(text, '\n') + 1)
		len += snprintf(list + len, sizeof(list) - len, "%d ",
				atoi(text));
	return list;
}

static const struct {
	struct stat_order order;
	enum mrrc_stat counter;
	const char *pids;
} orders[] = {
	/* by PID where the numbers are equal, in either direction */
	{ { STAT_MISSES, false }, MRRC_STAT_MISSES, "1 2 3 4 5 " },
	{ { STAT_MISSES, true }, MRRC_STAT_MISSES, "4 5 2 3 1 " },
	{ { STAT_EVICTED, false }, MRRC_STAT_EVICTIONS, "1 2 3 4 5 " },
	{ { STAT_INVALID, true }, MRRC_STAT_INVALIDATIONS, "4 5 2 3 1 " },
	{ { STAT_UNCACHED, true }, MRRC_STAT_UNCACHED_RACED, "4 5 2 3 1 " },
	{ { STAT_LOCKED, true }, MRRC_STAT_PINNED, "4 5 2 3 1 " },
	{ { STAT_HITS, true }, MRRC_STAT_HITS, "4 5 2 3 1 " },
	{ { STAT_SAVED, true }, MRRC_STAT_COST_DEREG, "4 5 2 3 1 " },
	{ { STAT_PID, false }, MRRC_STAT_MISSES, "1 2 3 4 5 " },
	{ { STAT_PID, true }, MRRC_STAT_MISSES, "5 4 3 2 1 " },
	{ { STAT_COMMAND, true }, MRRC_STAT_MISSES, "1 2 3 4 5 " },
};

EACH_TEST(rows_order, orders)
{
	struct stat_sample sample = many(5, orders[_i].counter);
	char *text;

	order = orders[_i].order;
	text = printed(&sample);
	ck_assert_str_eq(pids(text), orders[_i].pids);
	free(text);
	stat_sample_fini(&sample);
}

/* Values of any size leave the columns where they are. */
TEST(rows)
{
	struct stat_sample sample = many(1, MRRC_STAT_MISSES);
	struct stat_counter *counter = sample.domain->segment.counter;
	char *text;

	counter[MRRC_STAT_HITS].value = counter[MRRC_STAT_LOOKUPS].value =
		1000000000000;
	counter[MRRC_STAT_MISSES].value = 99999;
	counter[MRRC_STAT_EVICTIONS].value = 100000;
	counter[MRRC_STAT_UNCACHED_TOO_BIG].value = 12345678;
	counter[MRRC_STAT_UNCACHED_FULL].value = 1;
	counter[MRRC_STAT_PINNED].value = (1ULL << 30) - 1;
	counter[MRRC_STAT_COST_REG].value = 16;
	order = (struct stat_order){ .column = STAT_HITS };
	text = printed(&sample);
	ck_assert_str_eq(
		text,
		"1 domain of 1 process, sorted by hits\n"
		"1000G lookups, 0 a second, 100.0% hits, 1024 MiB locked, "
		"267 min saved\n"
		"not kept: 12345678 too_big, 1 full\n"
		"    PID COMMAND    LOOK/S  HIT% MISSES EVICTED INVALID "
		"UNCACHED"
		"   LOCKED   SAVED\n"
		"      1 rank            - 100.0  99999    100k       0   "
		"12346k"
		" 1024 MiB 267 min  12345678 too_big, 1 full\n");
	free(text);
	stat_sample_fini(&sample);
}

/* Domains of one process, and rates; a domain that registers nothing. */
TEST(rows_rates)
{
	struct stat_sample sample = many(4, MRRC_STAT_LOOKUPS);
	size_t i;
	char *text;

	before = many(4, MRRC_STAT_LOOKUPS);
	for (i = 0; i < 4; i++) {
		sample.domain[i].when = before.domain[i].when + 2;
		sample.domain[i].segment.counter[MRRC_STAT_LOOKUPS].value +=
			10 * i;
	}
	sample.domain[1].pid = before.domain[1].pid = 1;
	sample.domain[0].segment.registers = false;
	strcpy(sample.domain[0].segment.lacks, "registers nothing: why");
	order = (struct stat_order){ .column = STAT_LOOKUPS };
	text = printed(&sample);
	has(text, "4 domains of 3 processes, sorted by lookups\n");
	has(text, " 30 a second, ");
	ck_assert_str_eq(pids(text), "1 2 1 4 ");
	has(text, "\n      4 rank       open, but registers nothing: why\n");
	free(text);
	stat_sample_fini(&before);
	stat_sample_fini(&sample);
	text = printed(&sample);
	has(text, "0 domains of 0 processes");
	has(text, "no domain is open now\n");
	free(text);
}

static const struct {
	double seconds;
	const char *text;
} seconds_texts[] = {
	{ 0, "0 us" },	      { 9.99e-4, "999 us" },  { 1e-3, "1.0 ms" },
	{ .0999, "99.9 ms" }, { .99999, "1000 ms" },  { 1, "1.0 s" },
	{ 599.9, "599.9 s" }, { 600, "10 min" },      { 35999, "600 min" },
	{ 36000, "10 h" },    { 12345678, "3429 h" },
};

EACH_TEST(seconds, seconds_texts)
{
	char text[32];

	ck_assert_str_eq(stat_seconds_text(seconds_texts[_i].seconds, text,
					   sizeof(text)),
			 seconds_texts[_i].text);
	ck_assert_uint_le(strlen(text), 7);
}
