/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shapes_bench: measures the ways in which programs use memory for transfers,
 * one transfer at a time. The client writes from a buffer, or reads a buffer
 * that the server has registered for it:
 *
 *   reused      8 buffers of 64 KiB in turn
 *   parts       16 parts of an array, which end inside a page, in turn
 *   views       4 KiB anywhere in 8 MiB
 *   blocks      256 blocks of 16 KiB from a pool of 1,024, as a table lists
 *               them; 3 % of the table change before its next round
 *   fresh       1 MiB from malloc(), which is freed afterwards
 *   neighbours  64 readable buffers of 200,000 bytes side by side, in turn
 *   bulk        128 KiB; both sides register their buffers, 8 in turn
 *   rails       as reused; each buffer is registered with four domains, as for
 *               four devices, and written over one of them
 *
 * in five ways, each in another process:
 *
 *   each   the program registers what it transfers, and closes it afterwards
 *   cache  the same, over libfabric's own cache
 *   hook   the same, with FI_HOOK=mrrc
 *   null   no descriptor, over ofi_mrrc; peers' rights need one
 *   once   the program registers all its memory before; for fresh memory,
 *          fi_mr_alloc() in place of malloc()
 *
 * Prints a line of words for each shape and way: microseconds and registrations
 * of a transfer, first uses included. The program fails if a transfer brings
 * other data than the buffer has.
 */
#include "ft_bench.h"
#include "reg_count.h"

#include <sys/mman.h>

enum way { EACH, CACHE, HOOK, NONE, ONCE, WAYS };
static const char *const ways[WAYS] = { "each", "cache", "hook", "null",
					"once" };

enum kind { WRITE, READ, BULK, RAILS };

#define RAIL_CNT  3   /* domains besides the pair's */
#define BLOCKS	  256 /* in the table */
#define POOL	  1024
#define CHANGED	  8 /* of the table, each round */
#define VIEW_STEP 64

struct shape {
	const char *name;
	enum kind kind;
	size_t len;	   /* of a transfer */
	size_t apart;	   /* from one place in memory to the next */
	unsigned places;   /* 0: malloc() */
	unsigned ops, few; /* transfers; with -I */
	unsigned (*place)(const struct shape *shape, unsigned op);
};

static unsigned in_turn(const struct shape *shape, unsigned op)
{
	return op % shape->places;
}

static unsigned anywhere(const struct shape *shape, unsigned op)
{
	(void) op;
	return (unsigned) (ft_rand() % shape->places);
}

static unsigned table[BLOCKS];

/* Blocks may repeat. */
static unsigned by_table(const struct shape *shape, unsigned op)
{
	unsigned i;

	for (i = 0; !op && i < BLOCKS; i++)
		table[i] = i;
	for (i = 0; op && op % BLOCKS == 0 && i < CHANGED; i++)
		table[ft_rand() % BLOCKS] = anywhere(shape, op);
	return table[op % BLOCKS];
}

static const struct shape shapes[] = {
	{ "reused", WRITE, 65536, 65536 + 4096, 8, 128, 16, in_turn },
	{ "parts", WRITE, 65600, 65600, 16, 256, 32, in_turn },
	{ "views", WRITE, 4096, VIEW_STEP, (8 << 20) / VIEW_STEP - 64, 4096, 64,
	  anywhere },
	{ "blocks", WRITE, 16384, 16384, POOL, 6 * BLOCKS, 2 * BLOCKS,
	  by_table },
	{ "fresh", WRITE, 1 << 20, 1 << 20, 0, 32, 4, NULL },
	{ "neighbours", READ, 200000, 200000, 64, 256, 128, in_turn },
	{ "bulk", BULK, 131072, 131072 + 4096, 8, 64, 16, in_turn },
	{ "rails", RAILS, 65536, 65536 + 4096, 8, 128, 16, in_turn },
};

static struct ft_pair pair;
static struct fid_mr *target; /* of dest */
static struct fid_mr *all;    /* the shape's memory, ONCE */
static struct fid_domain *rails[RAIL_CNT];
static struct fid_mr *railed[RAIL_CNT];
static char *memory, *dest;
static const char *core = "verbs";
static enum way way;

static struct fid_mr *reg_with(struct fid_domain *domain, const void *buf,
			       size_t len, uint64_t access)
{
	static uint64_t key; /* where the application chooses it */
	struct fid_mr *mr;

	FT_CALL(fi_mr_reg(domain, buf, len, access, 0, ++key, 0, &mr, NULL));
	return mr;
}

static struct fid_mr *reg(struct ft_dom *dom, const void *buf, size_t len,
			  uint64_t access)
{
	return reg_with(dom->domain, buf, len, access);
}

static void rails_open(void)
{
	unsigned i;

	for (i = 0; i < RAIL_CNT; i++)
		FT_CALL(fi_domain(pair.c.dom->fabric, pair.c.dom->info,
				  &rails[i], NULL));
}

static void rails_close(void)
{
	unsigned i;

	for (i = 0; i < RAIL_CNT; i++)
		FT_CALL(fi_close(&rails[i]->fid));
}

static void rails_reg(const char *buf, size_t len)
{
	unsigned i;

	for (i = 0; i < RAIL_CNT; i++)
		railed[i] = reg_with(rails[i], buf, len, FI_WRITE);
}

static void rails_dereg(void)
{
	unsigned i;

	for (i = 0; i < RAIL_CNT; i++)
		FT_CALL(fi_close(&railed[i]->fid));
}

static void *desc(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

static void write_from(const char *buf, size_t len, struct fid_mr *given)
{
	struct fid_mr *own = NULL;
	struct ft_comp comp;

	if (!given && way != NONE)
		own = reg(pair.c.dom, buf, len, FI_WRITE);
	FT_POST(&pair.c,
		fi_write(pair.c.ep, buf, len, desc(given ? given : own),
			 pair.c.to, ft_raddr(pair.s.dom, dest),
			 fi_mr_key(target), NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	if (own)
		FT_CALL(fi_close(&own->fid));
}

/* The server's @buf is read to @dest at the client. */
static void read_to(const struct shape *shape, const char *buf, char *to)
{
	/* libfabric's cache may give the same object for each of them */
	struct fid_mr *readable = NULL, *own = NULL;
	const char *start = all ? memory : buf; /* of what is registered */
	struct ft_comp comp;

	if (!all) {
		readable = reg(pair.s.dom, buf, shape->len, FI_REMOTE_READ);
		if (shape->kind == BULK)
			own = reg(pair.c.dom, to, shape->len, FI_READ);
	}
	FT_POST(&pair.c,
		fi_read(pair.c.ep, to, shape->len, desc(own ? own : target),
			pair.c.to,
			ft_raddr(pair.s.dom, start) + (size_t) (buf - start),
			fi_mr_key(all ? all : readable), NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	if (own)
		FT_CALL(fi_close(&own->fid));
	if (readable)
		FT_CALL(fi_close(&readable->fid));
}

static bool writes(const struct shape *shape)
{
	return shape->kind == WRITE || shape->kind == RAILS;
}

/* Of memory that lives for one transfer. */
static char *fresh(size_t len, struct fid_mr **mr)
{
	void *buf;

	*mr = NULL;
	if (way == ONCE)
		FT_CALL(fi_mr_alloc(pair.c.dom->domain, len, 0, 0, &buf, mr));
	else
		FT_CHECK(buf = malloc(len), "malloc");
	return buf;
}

static void discard(char *buf)
{
	if (way == ONCE)
		FT_CALL(fi_mr_free(pair.c.dom->domain, buf));
	else
		free(buf);
}

/* Both ends of a buffer say which transfer it is for. */
static void stamp(char *buf, size_t len, uint64_t op)
{
	memcpy(buf, &op, sizeof(op));
	memcpy(buf + len - sizeof(op), &op, sizeof(op));
}

static bool stamped(const char *buf, size_t len, uint64_t op)
{
	return !memcmp(buf, &op, sizeof(op)) &&
	       !memcmp(buf + len - sizeof(op), &op, sizeof(op));
}

/* Returns its time, without that of filling the buffer. */
static double transfer(const struct shape *shape, unsigned op)
{
	char *buf = memory, *to = dest;
	struct fid_mr *given = all;
	double start = ft_time_us(), took;
	unsigned n;

	if (shape->kind == BULK)
		to += shape->place(shape, op) * shape->apart;
	if (!shape->places)
		buf = fresh(shape->len, &given);
	else
		buf += shape->place(shape, op) * shape->apart;
	took = ft_time_us() - start;
	stamp(buf, shape->len, op + 1);
	start = ft_time_us();
	if (shape->kind == RAILS && !all)
		rails_reg(buf, shape->len);
	if (writes(shape))
		write_from(buf, shape->len, given);
	else
		read_to(shape, buf, to);
	if (shape->kind == RAILS && !all)
		rails_dereg();
	if (!shape->places)
		discard(buf);
	took += ft_time_us() - start;
	/* over tcp a write may still be on its way */
	for (n = 0; n < 10000 && !stamped(to, shape->len, op + 1); n++)
		ft_progress(&pair.s);
	FT_CHECK(n < 10000, "%s, %s: transfer %u brought other data",
		 shape->name, ways[way], op);
	return took;
}

static void measure(const struct shape *shape)
{
	size_t room =
		(shape->places ? shape->places : 1) * shape->apart + FT_PAGE;
	unsigned op, ops = ft_opts.iters ? shape->few : shape->ops;
	struct ft_attr attr = FT_ATTR;
	uint64_t before;
	double took;

	if (way == NONE && shape->kind != WRITE)
		return;
	ft_stage("%s, %s", shape->name, ways[way]);
	memory = ft_map(NULL, room);
	dest = ft_map(NULL, room);
	memset(memory, 1, room);
	memset(dest, 1, room);
	ft_pair_open(&pair, &attr);
	if (shape->kind == RAILS)
		rails_open();
	target = writes(shape) ? reg(pair.s.dom, dest, room, FI_REMOTE_WRITE) :
				 reg(pair.c.dom, dest, room, FI_READ);
	/* what is done once, such as connecting, is over */
	if (writes(shape))
		write_from(memory, 64, NULL);
	else
		read_to(shape, memory, dest);
	before = reg_count();
	took = -ft_time_us();
	if (way == ONCE && shape->places)
		all = writes(shape) ?
			      reg(pair.c.dom, memory, room, FI_WRITE) :
			      reg(pair.s.dom, memory, room, FI_REMOTE_READ);
	if (all && shape->kind == RAILS)
		rails_reg(memory, room);
	took += ft_time_us();
	for (op = 0; op < ops; op++)
		took += transfer(shape, op);
	printf("%s %s %.2f %.2f\n", shape->name, ways[way], took / ops,
	       (double) (reg_count() - before) / ops);
	fflush(stdout);
	if (all && shape->kind == RAILS)
		rails_dereg();
	if (all)
		FT_CALL(fi_close(&all->fid));
	all = NULL;
	if (shape->kind == RAILS)
		rails_close();
	FT_CALL(fi_close(&target->fid));
	ft_pair_close(&pair);
	ft_unmap(memory, room);
	ft_unmap(dest, room);
}

static void run(int which)
{
	unsigned i;

	way = which;
	if (way == HOOK)
		setenv("FI_HOOK", "mrrc", 1);
	/* the hook keeps what the core's cache would keep */
	ft_bench_env(way == CACHE || way == HOOK ? FT_CORE_CACHE :
		     way == NONE || way == ONCE	 ? FT_NULL_DESC :
						   FT_REG_EACH,
		     core);
	ft_start("shapes_bench");
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		measure(&shapes[i]);
	exit(0);
}

int main(int argc, char **argv)
{
	int op;

	ft_opts.timeout = 1200;
	while ((op = getopt(argc, argv, "c:" FT_OPTS)) != -1) {
		if (op == 'c')
			core = optarg;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	return ft_bench_ways(ways, WAYS, run);
}
