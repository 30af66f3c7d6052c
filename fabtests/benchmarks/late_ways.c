/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See late_ways.h. */
#include "late_ways.h"

/*
 * Place of a buffer. turn is written last: a reader of the slot waits for it.
 */
struct slot {
	uint64_t addr, key, index, turn;
};

/* Mapped, not static: memory of a program's file is registered each time. */
struct memory {
	/* the receiver writes to the sender's */
	struct slot ring[LATE_DEPTH_MAX];
	struct slot asked[LATE_DEPTH_MAX]; /* the sender receives these */
	struct slot heard[LATE_DEPTH_MAX]; /* the receiver receives these */
};

struct late_job late_job;
/* pairs for conditional writes, for plain connections, and over ofi_rxm */
static struct ft_pair cw, msg, rdm;
static struct memory *mem;
/* LATE_DEPTH_MAX buffers of LATE_LEN_MAX bytes each */
static char *out, *in, *bounce;
static struct fid_mr *in_mr, *ring_mr;
static bool recv_data; /* remote CQ data needs a posted receive */

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
	static struct ft_pair *const pair[LATE_WAYS] = { &cw,  &rdm, &rdm,
							 &msg, &msg, &msg };

	return side == LATE_SENDER ? &pair[late_job.way]->c :
				     &pair[late_job.way]->s;
}

static void cond(unsigned i, char *memory, uint64_t flags,
		 ssize_t (*call)(struct fi_mrrc_cw *cw,
				 const struct fi_msg_cw *msg, uint64_t flags),
		 struct ft_ep *ep)
{
	struct iovec iov = { part(memory, i), late_job.len };
	struct fi_msg_cw op = {
		.msg_iov = &iov,
		.iov_count = 1,
		.cwtag = tag_of(i),
	};

	/* the next operation follows at once */
	if (i + 1 < late_job.depth)
		flags |= FI_MORE;
	FT_POST(ep, call(ep->cw, &op, FI_COMPLETION | flags));
}

static void cw_post(unsigned i)
{
	cond(i, out, 0, fi_cwritemsg, &cw.c);
}

static void cw_show(unsigned i)
{
	cond(i, in, FI_MRRC_CW_KEEP, fi_cwtagmsg, &cw.s);
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

/* Posts a receive into a slot, whose context is the slot. */
static void listen_for(struct ft_ep *ep, struct slot *slot)
{
	FT_POST(ep, fi_recv(ep->ep, slot, sizeof(*slot), NULL, 0, slot));
}

static struct slot slot_of(unsigned i)
{
	return (struct slot){
		.addr = ft_raddr(&msg.dom[0], in) + i * late_job.len,
		.key = fi_mr_key(in_mr),
		.index = i,
		.turn = late_job.turn,
	};
}

static void nothing(unsigned i)
{
	(void) i;
}

static void fifo_ahead(int side, unsigned i)
{
	if (side == LATE_RECEIVER && recv_data)
		listen_for(&msg.s, &mem->heard[i]);
}

static void fifo_show(unsigned i)
{
	struct slot slot = slot_of(i);

	FT_POST(&msg.s, fi_inject_write(msg.s.ep, &slot, sizeof(slot), 0,
					ft_raddr(&msg.dom[1], mem->ring) +
						i * sizeof(slot),
					fi_mr_key(ring_mr)));
}

static void fifo_look(void)
{
	struct slot *slot;
	unsigned i;

	for (i = 0; i < late_job.depth; i++) {
		slot = &mem->ring[i];
		if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) !=
		    late_job.turn)
			continue;
		slot->turn = 0;
		FT_POST(&msg.c,
			fi_writedata(msg.c.ep, part(out, i), late_job.len, NULL,
				     i, 0, slot->addr, slot->key, NULL));
	}
}

static void fifo_heard(unsigned i, const struct ft_comp *comp)
{
	(void) i;
	FT_CHECK(comp->flags & FI_REMOTE_CQ_DATA && comp->data < late_job.depth,
		 "flags 0x%" PRIx64 ", data %" PRIu64, comp->flags, comp->data);
}

static void hand_ahead(int side, unsigned i)
{
	listen_for(side == LATE_SENDER ? &msg.c : &msg.s,
		   side == LATE_SENDER ? &mem->asked[i] : &mem->heard[i]);
}

static void hand_show(unsigned i)
{
	struct slot slot = slot_of(i);

	FT_POST(&msg.s, fi_inject(msg.s.ep, &slot, sizeof(slot), 0));
}

static void hand_asked(const struct ft_comp *comp)
{
	const struct slot *slot = comp->ctx;

	FT_CHECK(slot->turn == late_job.turn, "turn %" PRIu64, slot->turn);
	FT_POST(&msg.c, fi_write(msg.c.ep, part(out, slot->index), late_job.len,
				 NULL, 0, slot->addr, slot->key, NULL));
	FT_POST(&msg.c, fi_inject(msg.c.ep, slot, sizeof(*slot), 0));
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
	[LATE_FIFO] = { "fifo", fifo_ahead, nothing, fifo_show,
			.heard = fifo_heard, .look = fifo_look },
	[LATE_HAND] = { "hand", hand_ahead, nothing, hand_show,
			.asked = hand_asked },
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

/* Opens a pair. Afterwards each thread drives only its own side. */
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
	open_pair(&msg, &attr);
	attr.cw = attr.cw_pep = true;
	open_pair(&cw, &attr);
	FT_CHECK(msg.c.dom->info->tx_attr->inject_size >= sizeof(struct slot),
		 "slots cannot be injected");
	recv_data = msg.s.dom->info->rx_attr->mode & FI_RX_CQ_DATA;
	in_mr = ft_reg(&msg.dom[0], in, LATE_DEPTH_MAX * LATE_LEN_MAX,
		       FI_REMOTE_WRITE);
	ring_mr = ft_reg(&msg.dom[1], mem->ring, sizeof(mem->ring),
			 FI_REMOTE_WRITE);
}

void late_open(bool only_rxm)
{
	const size_t size = LATE_DEPTH_MAX * LATE_LEN_MAX;

	mem = ft_map(NULL, sizeof(*mem));
	out = ft_map(NULL, size);
	in = ft_map(NULL, size);
	bounce = ft_map(NULL, size);
	open_rdm();
	if (!only_rxm)
		open_msg();
}
