/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See late_ways.h. */
#include "late_ways.h"

struct late_job late_job;
static struct ft_pair msg, rdm; /* connected endpoints, ofi_rxm's */
/* LATE_DEPTH_MAX buffers of LATE_LEN_MAX each */
static char *out, *in, *bounce;

static char *part(char *memory, unsigned i)
{
	return memory + i * late_job.len;
}

static uint64_t tag_of(unsigned i)
{
	return late_job.turn * LATE_DEPTH_MAX + i;
}

struct ft_ep *late_ep(int side)
{
	const unsigned way = late_job.way;
	struct ft_pair *pair = way == LATE_RTR || way == LATE_READ ? &rdm :
								     &msg;

	return side == LATE_SENDER ? &pair->c : &pair->s;
}

static void cond(unsigned i, char *memory, uint64_t flags,
		 ssize_t (*call)(struct fi_mrrc_cw *cw,
				 const struct fi_msg_cw *msg, uint64_t flags),
		 struct ft_ep *ep)
{
	struct iovec iov = { part(memory, i), late_job.len };
	struct fi_msg_cw cw = {
		.msg_iov = &iov,
		.iov_count = 1,
		.cwtag = tag_of(i),
	};

	/* the next one follows at once */
	if (i + 1 < late_job.depth)
		flags |= FI_MORE;
	FT_POST(ep, call(ep->cw, &cw, FI_COMPLETION | flags));
}

static void cw_post(unsigned i)
{
	cond(i, out, 0, fi_cwritemsg, &msg.c);
}

static void cw_show(unsigned i)
{
	cond(i, in, FI_MRRC_CW_KEEP, fi_cwtagmsg, &msg.s);
}

static void rxm_post(unsigned i)
{
	FT_POST(&rdm.c, fi_tsend(rdm.c.ep, part(out, i), late_job.len, NULL,
				 rdm.c.to, tag_of(i), NULL));
}

static void rxm_show(unsigned i)
{
	FT_POST(&rdm.s, fi_trecv(rdm.s.ep, part(in, i), late_job.len, NULL,
				 FT_ANY, tag_of(i), 0, NULL));
}

static void nothing(unsigned i)
{
	(void) i;
}

static void copied_ahead(int side, unsigned i)
{
	if (side == LATE_RECEIVER)
		FT_POST(&msg.s, fi_recv(msg.s.ep, part(bounce, i), late_job.len,
					NULL, 0, NULL));
}

static void copied_post(unsigned i)
{
	FT_POST(&msg.c,
		fi_send(msg.c.ep, part(out, i), late_job.len, NULL, 0, NULL));
}

static void copied_heard(unsigned i, const struct ft_comp *comp)
{
	(void) comp;
	memcpy(part(in, i), part(bounce, i), late_job.len);
}

const struct late_way late_ways[LATE_WAYS] = {
	[LATE_CWRITE] = { "cwrite", .post = cw_post, .show = cw_show },
	[LATE_RTR] = { "rtr", .post = rxm_post, .show = rxm_show },
	[LATE_READ] = { "read", .post = rxm_post, .show = rxm_show },
	[LATE_COPIED] = { "copied", copied_ahead, copied_post, nothing,
			  .heard = copied_heard },
};

void late_fill(void)
{
	unsigned i;

	for (i = 0; i < late_job.depth; i++) {
		if (late_job.whole)
			ft_fill(part(out, i), late_job.len, tag_of(i));
		part(out, i)[0] = part(out, i)[late_job.len - 1] = tag_of(i);
		part(in, i)[0] = part(in, i)[late_job.len - 1] = ~tag_of(i);
		if (late_job.whole)
			memset(part(in, i), ~tag_of(i), late_job.len);
	}
}

void late_check(void)
{
	const char *from, *to;
	unsigned i;

	for (i = 0; i < late_job.depth; i++) {
		from = part(out, i);
		to = part(in, i);
		FT_CHECK(to[0] == from[0] &&
				 to[late_job.len - 1] == from[late_job.len - 1],
			 "%s: buffer %u was not written",
			 late_ways[late_job.way].name, i);
		FT_CHECK(!late_job.whole || !memcmp(to, from, late_job.len),
			 "%s: buffer %u has other data",
			 late_ways[late_job.way].name, i);
	}
}

/* Afterwards each thread drives only its own side. */
static void open_pair(struct ft_pair *pair, const struct ft_attr *attr)
{
	ft_pair_open(pair, attr);
	pair->s.peer = pair->c.peer = NULL;
}

static void open_rdm(void)
{
	struct ft_attr attr = FT_ATTR;
	const char *prov = ft_opts.prov;
	static char rxm[64];

	attr.caps = FI_MSG | FI_TAGGED;
	attr.format = FI_CQ_FORMAT_TAGGED;
	snprintf(rxm, sizeof(rxm), "%.*s;ofi_rxm", (int) strcspn(prov, ";"),
		 prov);
	ft_opts.prov = rxm;
	open_pair(&rdm, &attr);
	ft_opts.prov = prov;
}

static void open_msg(void)
{
	struct ft_attr attr = FT_ATTR;

	attr.format = ft_cq_format();
	attr.cw = attr.cw_pep = true;
	open_pair(&msg, &attr);
}

void late_open(bool only_rxm)
{
	const size_t size = LATE_DEPTH_MAX * LATE_LEN_MAX;

	out = ft_map(NULL, size);
	in = ft_map(NULL, size);
	bounce = ft_map(NULL, size);
	open_rdm();
	if (!only_rxm)
		open_msg();
}
