/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * frrwp_bench: one transaction after another between a client and a server,
 * each a thread, as in figures 5 to 8 of Ou, He and Han (2009):
 *
 *   typical  register, tell the key, register, write, say so
 *   fast     the request first, both sides register at the same time
 *   crw      the same with fi_cwtag() and fi_cwrite()
 *
 * read brings data to the client, write to the server. Memory is cold (never
 * registered before) or warm. Prints medians, in microseconds from the start
 * of a transaction: when the writing application has posted its write and is
 * free, and when the target has been told that the data is there.
 */
#include "ft_bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 15
#define LEN_MAX (4UL << 20)

enum process { TYPICAL, FAST, CRW, PROCESSES };
static const char *const process_name[] = { "typical", "fast", "crw" };

struct message {
	uint32_t process, is_read, cold, last;
	uint64_t len, tag, addr, key;
};

static struct ft_pair pair;
static char *warm[2];			/* the server's, the client's */
static struct fid_mr *warm_mr[2];	/* ... as targets */
static struct message mail[2][2], sent[2];
static unsigned turn[2];
static double posted_at, there_at;
static atomic_uint served;

static struct ft_ep *side_ep(int side)
{
	return side ? &pair.c : &pair.s;
}

/* Only this side's queues. */
static void wait_for(int side, enum ft_dir dir, void *ctx)
{
	struct ft_ep *ep = side_ep(side);
	struct ft_comp comp;

	for (;;) {
		ft_poll(ep);
		if (!ft_take(ep, dir, &comp)) {
			sched_yield();
			continue;
		}
		FT_CHECK(!comp.err && comp.ctx == ctx,
			 "side %d: error %d, context %p, not %p", side,
			 comp.err, comp.ctx, ctx);
		return;
	}
}

static void post_recv(int side)
{
	struct message *msg = &mail[side][turn[side] % 2];

	FT_CALL(fi_recv(side_ep(side)->ep, msg, sizeof(*msg), NULL, 0, msg));
}

static struct message *receive(int side)
{
	struct message *msg = &mail[side][turn[side]++ % 2];

	wait_for(side, FT_RX, msg);
	post_recv(side);
	return msg;
}

static void say(int side, const struct message *msg)
{
	sent[side] = *msg;
	FT_CALL(fi_send(side_ep(side)->ep, &sent[side], sizeof(*msg), NULL, 0,
			&sent[side]));
	wait_for(side, FT_TX, &sent[side]);
}

static char *get_buf(int side, const struct message *msg)
{
	char *buf;

	if (!msg->cold)
		return warm[side];
	buf = ft_map(NULL, msg->len);
	memset(buf, side, msg->len);
	return buf;
}

static void put_buf(const struct message *msg, char *buf)
{
	if (msg->cold)
		ft_unmap(buf, msg->len);
}

static struct fid_mr *expose(int side, struct message *msg, char *buf)
{
	struct ft_dom *dom = &pair.dom[side];
	struct fid_mr *mr = warm_mr[side];

	if (msg->cold)
		mr = ft_reg(dom, buf, msg->len, FI_REMOTE_WRITE);
	msg->addr = ft_raddr(dom, buf);
	msg->key = fi_mr_key(mr);
	return mr;
}

static void hide(const struct message *msg, struct fid_mr *mr)
{
	if (msg->cold)
		FT_CALL(fi_close(&mr->fid));
}

/* Into the cache, where the write finds it. */
static void register_local(int side, const struct message *msg, char *buf)
{
	struct fid_mr *mr;

	mr = ft_reg(&pair.dom[side], buf, msg->len, FI_WRITE);
	FT_CALL(fi_close(&mr->fid));
}

/* The writer's part, with what the target said in key. */
static void write_to(int side, const struct message *msg,
		     const struct message *key, char *buf)
{
	struct ft_ep *ep = side_ep(side);

	if (msg->process == CRW)
		FT_CALL(fi_cwrite(ep->ep, buf, msg->len, NULL, 0, msg->tag,
				  buf));
	else
		FT_CALL(fi_write(ep->ep, buf, msg->len, NULL, 0, key->addr,
				 key->key, buf));
	posted_at = ft_now_us();
	wait_for(side, FT_TX, buf);
	if (msg->process != CRW)
		say(side, msg);
}

/* The target's: when it has been told. */
static void told(int side, char *buf, const struct message *msg)
{
	if (msg->process == CRW)
		wait_for(side, FT_RX, buf);
	else
		receive(side);
	there_at = ft_now_us();
}

static void target(int side, const struct message *msg, char *buf)
{
	struct message key = *msg;
	struct fid_mr *mr = NULL;

	if (msg->process == CRW) {
		FT_CALL(fi_cwtag(side_ep(side)->ep, buf, msg->len, NULL, 0,
				 msg->tag, buf));
	} else {
		mr = expose(side, &key, buf);
		say(side, &key);
	}
	told(side, buf, msg);
	if (mr)
		hide(msg, mr);
}

static void *server_main(void *arg)
{
	struct message msg, *key;
	char *buf;

	(void) arg;
	for (;;) {
		msg = *receive(0);
		if (msg.last)
			return NULL;
		buf = get_buf(0, &msg);
		key = &msg;
		if (!msg.is_read) {
			target(0, &msg, buf);
		} else {
			if (msg.process != CRW)
				register_local(0, &msg, buf);
			if (msg.process == FAST)
				key = receive(0);
			write_to(0, &msg, key, buf);
		}
		put_buf(&msg, buf);
		atomic_fetch_add(&served, 1);
	}
}

static void transaction(struct message *msg, double *posted, double *there)
{
	unsigned asked = atomic_load(&served);
	char *buf = get_buf(1, msg);
	double start = ft_now_us();
	struct fid_mr *mr = NULL;

	if (msg->is_read && msg->process == TYPICAL) {
		mr = expose(1, msg, buf);
		say(1, msg);
		told(1, buf, msg);
		hide(msg, mr);
	} else {
		say(1, msg);
		if (msg->is_read) {
			target(1, msg, buf);
		} else {
			if (msg->process == FAST)
				register_local(1, msg, buf);
			write_to(1, msg, msg->process == CRW ? NULL :
				 receive(1), buf);
		}
	}
	put_buf(msg, buf);
	/* the server's figures: when it waits for the next request */
	while (atomic_load(&served) != asked + 1)
		sched_yield();
	*posted = posted_at - start;
	*there = there_at - start;
}

static void measure(bool is_read, bool cold, size_t len)
{
	double posted[PROCESSES][ROUNDS], there[PROCESSES][ROUNDS], p, t;
	static uint64_t tag;
	unsigned i, process;

	for (i = 0; i < ROUNDS; i++) {
		for (process = 0; process < PROCESSES; process++) {
			struct message msg = {
				.process = process,
				.is_read = is_read,
				.cold = cold,
				.len = len,
				.tag = tag++,
			};

			transaction(&msg, &posted[process][i],
				    &there[process][i]);
		}
	}
	for (process = 0; process < PROCESSES; process++) {
		p = ft_median(posted[process], ROUNDS);
		t = ft_median(there[process], ROUNDS);
		printf("%-6s %-5s %8zu %-8s %10.1f %10.1f\n",
		       is_read ? "read" : "write", cold ? "cold" : "warm",
		       len, process_name[process], p, t);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 4096, 65536, 1 << 20, LEN_MAX };
	struct message last = { .last = true };
	struct ft_attr attr = FT_ATTR;
	pthread_t server;
	unsigned i, k;

	ft_init(argc, argv);
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < 2; i++) {
		warm[i] = ft_map(NULL, LEN_MAX);
		memset(warm[i], i, LEN_MAX);
		warm_mr[i] = ft_reg(&pair.dom[i], warm[i], LEN_MAX,
				    FI_REMOTE_WRITE);
		post_recv(i);
	}
	FT_CHECK(!pthread_create(&server, NULL, server_main, NULL), "thread");
	printf("%-6s %-5s %8s %-8s %10s %10s\n", "", "", "bytes", "process",
	       "us posted", "us there");
	for (k = 0; k < 4; k++)
		for (i = 0; i < sizeof(lens) / sizeof(*lens); i++)
			measure(k & 1, k & 2, lens[i]);
	say(1, &last);
	pthread_join(server, NULL);
	return 0;
}
