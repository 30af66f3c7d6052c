/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_cm: connections of endpoints with conditional writes. Who asked
 * for them and who did not, in every combination; the application's private
 * data, which is its own; and a peer that speaks the protocol wrongly, in
 * every byte: it loses, others go on.
 */
#include "ft_mrrc.h"

#define DATA_MAX 64
#define MARK	 20		/* FI_CW_CM_DATA, as on the wire */
#define LIMIT_US 10000000

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep;
};

struct event {
	struct fi_eq_cm_entry cm;
	uint8_t data[256];
	size_t len;		/* of data */
};

static char buf[4096];

static void open_fabric(struct side *side, const char *prov, const void *dest,
			size_t destlen)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *hints = ft_hints(&attr);
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(prov);
	if (dest) {
		hints->dest_addr = malloc(destlen);
		memcpy(hints->dest_addr, dest, destlen);
		hints->dest_addrlen = destlen;
	}
	FT_CALL(fi_getinfo(FT_FIVERSION, dest ? NULL : ft_opts.addr, NULL,
			   dest ? 0 : FI_SOURCE, hints, &side->info));
	fi_freeinfo(hints);
	FT_CALL(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
	FT_CALL(fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL));
}

static void open_ep(struct side *side, struct fi_info *info, bool cw)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA };

	if (!side->domain)
		FT_CALL(fi_domain(side->fabric, info, &side->domain, NULL));
	if (!side->cq)
		FT_CALL(fi_cq_open(side->domain, &attr, &side->cq, NULL));
	FT_CALL(fi_endpoint(side->domain, info, &side->ep, NULL));
	FT_CALL(fi_ep_bind(side->ep, &side->eq->fid, 0));
	FT_CALL(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	if (cw)
		FT_CALL(fi_cw_enable(&side->ep->fid, 0));
	FT_CALL(fi_enable(side->ep));
}

/* Takes nothing. */
static void progress(struct side *side)
{
	if (side && side->cq)
		fi_cq_read(side->cq, NULL, 0);
}

/* One event, while the other side makes progress. */
static void wait_event(struct side *side, struct side *other, uint32_t want,
		       struct event *event)
{
	uint64_t end = ft_now_us() + LIMIT_US;
	struct fi_eq_err_entry err = { 0 };
	uint32_t got;
	ssize_t ret;

	while ((ret = fi_eq_read(side->eq, &got, event, sizeof(event->cm) +
				 sizeof(event->data), 0)) == -FI_EAGAIN) {
		progress(side);
		progress(other);
		/* cores make connections when their event queue is read */
		if (other)
			fi_eq_read(other->eq, &got, NULL, 0, FI_PEEK);
		FT_CHECK(ft_now_us() < end, "no event %u", want);
	}
	if (ret == -FI_EAVAIL)
		fi_eq_readerr(side->eq, &err, 0);
	FT_CHECK(ret >= (ssize_t) sizeof(event->cm) && got == want,
		 "event %u (%zd, error %d), not %u", got, ret, err.err, want);
	event->len = ret - sizeof(event->cm);
}

static void check_data(const struct event *event, uint8_t seed, size_t len,
		       const char *what)
{
	size_t i;

	/* some cores fill up */
	FT_CHECK(event->len == len ||
		 (ft_core("verbs") && event->len > len),
		 "%s: %zu bytes of private data, not %zu", what, event->len,
		 len);
	for (i = 0; i < len; i++)
		FT_CHECK(event->data[i] == (uint8_t) (seed + i),
			 "%s: byte %zu of private data", what, i);
}

static void listen_at(struct side *s, bool cw, void *name, size_t *len)
{
	open_fabric(s, ft_opts.prov, NULL, 0);
	FT_CALL(fi_passive_ep(s->fabric, s->info, &s->pep, NULL));
	FT_CALL(fi_pep_bind(s->pep, &s->eq->fid, 0));
	if (cw)
		FT_CALL(fi_cw_enable(&s->pep->fid, 0));
	FT_CALL(fi_listen(s->pep));
	FT_CALL(fi_getname(&s->pep->fid, name, len));
}

static void close_ep(struct side *side)
{
	if (side->ep)
		FT_CALL(fi_close(&side->ep->fid));
	side->ep = NULL;
}

static void close_side(struct side *side)
{
	close_ep(side);
	if (side->cq)
		FT_CALL(fi_close(&side->cq->fid));
	if (side->pep)
		FT_CALL(fi_close(&side->pep->fid));
	FT_CALL(fi_close(&side->eq->fid));
	if (side->domain)
		FT_CALL(fi_close(&side->domain->fid));
	FT_CALL(fi_close(&side->fabric->fid));
	fi_freeinfo(side->info);
	memset(side, 0, sizeof(*side));
}

static ssize_t wait_comp(struct side *side, struct side *other,
			 struct fi_cq_data_entry *entry)
{
	uint64_t end = ft_now_us() + LIMIT_US;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(side->cq, entry, 1)) == -FI_EAGAIN) {
		progress(other);
		FT_CHECK(ft_now_us() < end, "no completion");
	}
	if (ret != -FI_EAVAIL)
		return ret;
	FT_CHECK(fi_cq_readerr(side->cq, &err, 0) == 1, "fi_cq_readerr");
	return -err.err;
}

static void transfer(struct side *c, struct side *s, int want)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = fi_cwrite(c->ep, buf, 64, NULL, 0, 1, buf);
	FT_CHECK(ret == want, "fi_cwrite: %zd, not %d", ret, want);
	ret = fi_cwtag(s->ep, buf + 64, 64, NULL, 0, 1, buf + 64);
	FT_CHECK(ret == want, "fi_cwtag: %zd, not %d", ret, want);
	if (want)
		return;
	FT_CHECK(wait_comp(c, s, &entry) == 1, "the write fails");
	FT_CHECK(wait_comp(s, c, &entry) == 1 && entry.len == 64,
		 "the tag fails");
}

/* Whatever was asked for, the application's data arrives, and is all. */
static void combination(bool c_cw, bool s_cw, size_t c_len, size_t s_len)
{
	uint8_t data[DATA_MAX], name[64];
	struct side s = { 0 }, c = { 0 };
	size_t len = sizeof(name), i;
	struct event event;
	ssize_t ret;

	ft_stage("client %d, server %d, %zu and %zu bytes", c_cw, s_cw, c_len,
		 s_len);
	listen_at(&s, true, name, &len);
	open_fabric(&c, ft_opts.prov, name, len);
	open_ep(&c, c.info, c_cw);
	for (i = 0; i < DATA_MAX; i++)
		data[i] = 10 + i;
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, data, c_len));
	if (c_cw) {
		ret = fi_cwrite(c.ep, buf, 1, NULL, 0, 1, NULL);
		FT_CHECK(ret == -FI_EOPBADSTATE, "too early: %zd", ret);
	}
	wait_event(&s, &c, FI_CONNREQ, &event);
	check_data(&event, 10, c_len, "request");
	open_ep(&s, event.cm.info, s_cw);
	for (i = 0; i < DATA_MAX; i++)
		data[i] = 90 + i;
	FT_CALL(fi_accept(s.ep, data, s_len));
	fi_freeinfo(event.cm.info);
	/* nothing of the application's is needed any more */
	FT_CALL(fi_close(&s.pep->fid));
	s.pep = NULL;
	wait_event(&c, &s, FI_CONNECTED, &event);
	check_data(&event, 90, s_len, "acceptance");
	wait_event(&s, &c, FI_CONNECTED, &event);
	transfer(&c, &s, c_cw && s_cw ? 0 : -FI_EOPNOTSUPP);
	close_side(&c);
	close_side(&s);
}

/* ---- a hostile peer, which is the core alone ----------------------------- */

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		*to++ = value;
		value >>= 8;
	}
}

/* As core/cw_wire.h has it, from what its comment says. */
static size_t hello(uint8_t *msg, const uint8_t *cookie)
{
	memset(msg, 0, 32);
	put(msg, 1, 1);
	put(msg + 2, 32, 2);
	put(msg + 8, 0x5743524d, 4);
	put(msg + 12, 1, 1);
	put(msg + 13, 1, 1);
	put(msg + 14, 32, 2);
	put(msg + 16, 100, 4);
	/* in network order in the mark, little endian here */
	for (int i = 0; i < 8; i++)
		msg[24 + i] = cookie[7 - i];
	return 32;
}

static size_t tag(uint8_t *msg, uint64_t id)
{
	memset(msg, 0, 64);
	put(msg, 2, 1);
	put(msg + 1, 1, 1);
	put(msg + 2, 64, 2);
	put(msg + 8, id, 8);
	put(msg + 16, 1000 + id, 8);
	put(msg + 24, 16, 8);
	put(msg + 32, 1, 2);
	put(msg + 48, 77, 8);
	put(msg + 56, 16, 8);
	return 64;
}

static void raw_connect(struct side *c, struct side *ctl, struct side *s,
			const void *name, size_t len, uint8_t *cookie,
			bool wrong_cookie)
{
	uint8_t mark[MARK] = { 0x4d, 0x43, 0x52, 0x4d, 1, 1 };
	const char *core = "tcp";
	struct event event;
	uint8_t dest[64];

	open_fabric(c, core, name, len);
	open_ep(c, c->info, false);
	FT_CALL(fi_connect(c->ep, c->info->dest_addr, mark, sizeof(mark)));
	wait_event(s, c, FI_CONNREQ, &event);
	open_ep(s, event.cm.info, true);
	FT_CALL(fi_accept(s->ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	wait_event(c, s, FI_CONNECTED, &event);
	FT_CHECK(event.len == MARK && event.data[5] == 2, "no mark of accept");
	memcpy(cookie, event.data + 8, 8);
	memcpy(dest, name, len);
	memcpy(dest + 2, event.data + 16, 2);	/* the port */
	wait_event(s, c, FI_CONNECTED, &event);

	mark[5] = 3;
	memcpy(mark + 8, cookie, 8);
	if (wrong_cookie)
		mark[15] ^= 1;
	open_fabric(ctl, core, dest, len);
	open_ep(ctl, ctl->info, false);
	FT_CALL(fi_connect(ctl->ep, ctl->info->dest_addr, mark,
			   sizeof(mark)));
	if (!wrong_cookie)
		wait_event(ctl, s, FI_CONNECTED, &event);
}

/* Says this and no more; the server's operations end. */
static void says(const uint8_t *const msg[], const size_t *len, unsigned cnt,
		 struct side *s, const void *name, size_t namelen,
		 bool must_end)
{
	struct fi_cq_data_entry entry;
	struct side c = { 0 }, ctl = { 0 };
	uint8_t cookie[8], copy[512];
	unsigned i;
	ssize_t ret;

	raw_connect(&c, &ctl, s, name, namelen, cookie, false);
	FT_CALL(fi_cwrite(s->ep, buf, 8, NULL, 0, 1, buf));
	for (i = 0; i < cnt; i++) {
		memcpy(copy, msg[i], len[i]);
		if (copy[0] == 1 && len[i] == 32)
			memcpy(copy + 24, (uint8_t[]) {
				cookie[7], cookie[6], cookie[5], cookie[4],
				cookie[3], cookie[2], cookie[1], cookie[0] },
				8);
		ret = fi_inject(ctl.ep, copy, len[i], 0);
		/* it may be gone already */
		if (ret)
			break;
		progress(&ctl);
	}
	if (must_end) {
		ret = wait_comp(s, &ctl, &entry);
		FT_CHECK(ret == -FI_ECONNABORTED, "it goes on: %zd", ret);
		ret = fi_cwrite(s->ep, buf, 8, NULL, 0, 1, buf);
		FT_CHECK(ret == -FI_ENOTCONN, "after the end: %zd", ret);
	}
	close_side(&ctl);
	close_ep(s);
	if (!must_end) {
		ret = wait_comp(s, NULL, &entry);
		FT_CHECK(ret == -FI_ECANCELED || ret == -FI_ECONNABORTED,
			 "closed: %zd", ret);
	}
	close_side(&c);
}

/* An honest pair on the same listener, before and after. */
static void honest(struct side *s, const void *name, size_t len)
{
	struct side c = { 0 };
	struct event event;

	open_fabric(&c, ft_opts.prov, name, len);
	open_ep(&c, c.info, true);
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, NULL, 0));
	wait_event(s, &c, FI_CONNREQ, &event);
	open_ep(s, event.cm.info, true);
	FT_CALL(fi_accept(s->ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	wait_event(&c, s, FI_CONNECTED, &event);
	wait_event(s, &c, FI_CONNECTED, &event);
	transfer(&c, s, 0);
	close_side(&c);
	close_ep(s);
}

static void strangers(struct side *s, const void *name, size_t len)
{
	struct side c = { 0 }, ctl = { 0 };
	struct fi_eq_err_entry err;
	uint64_t end = ft_now_us() + LIMIT_US;
	struct fi_eq_cm_entry entry;
	uint8_t cookie[8];
	uint32_t event;
	ssize_t ret;

	ft_stage("a wrong cookie");
	raw_connect(&c, &ctl, s, name, len, cookie, true);
	while ((ret = fi_eq_read(ctl.eq, &event, &entry, sizeof(entry), 0)) ==
	       -FI_EAGAIN) {
		progress(s);
		FT_CHECK(ft_now_us() < end, "no answer");
	}
	FT_CHECK(ret == -FI_EAVAIL, "a stranger is let in");
	fi_eq_readerr(ctl.eq, &err, 0);
	close_side(&ctl);
	close_ep(s);
	close_side(&c);
}

static void hostile(void)
{
	uint8_t name[64], h[32], bad[64], t[64];
	const uint8_t *msg[3] = { h, bad, NULL };
	size_t len = sizeof(name), i, lens[3];
	struct side s = { 0 };
	unsigned bit;

	listen_at(&s, true, name, &len);
	honest(&s, name, len);
	strangers(&s, name, len);
	lens[0] = hello(h, (uint8_t[8]) { 0 });
	lens[1] = tag(t, 1);
	ft_stage("no harm");
	msg[1] = t;
	says(msg, lens, 2, &s, name, len, false);
	ft_stage("a tag twice");
	msg[2] = t;
	lens[2] = lens[1];
	says(msg, lens, 3, &s, name, len, true);
	ft_stage("HELLO twice");
	msg[1] = h;
	lens[1] = lens[0];
	says(msg, lens, 2, &s, name, len, true);
	msg[1] = bad;
	/* each field of the head, and a length that lies about the rest */
	for (i = 0; i < 64; i++) {
		bit = ft_rand() % 8;
		tag(bad, 1);
		bad[i] ^= 1 << bit;
		ft_stage("byte %zu, bit %u", i, bit);
		/* identity, tag, address and key are the peer's to choose */
		if ((i >= 8 && i < 24) || (i >= 40 && i < 56))
			continue;
		lens[1] = 64;
		says(msg, lens, 2, &s, name, len, true);
	}
	ft_stage("a message too short");
	tag(bad, 1);
	lens[1] = 40;
	says(msg, lens, 2, &s, name, len, true);
	ft_stage("empty");
	lens[1] = 0;
	says(msg, lens, 2, &s, name, len, true);
	ft_stage("an honest peer, afterwards");
	honest(&s, name, len);
	close_side(&s);
}

int main(int argc, char **argv)
{
	unsigned i;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm() || ft_core("verbs"))
		ft_skip("conditional writes need FI_EP_MSG, and not verbs");
	for (i = 0; i < 16; i++)
		combination(i & 1, i & 2, i & 4 ? 33 : 0, i & 8 ? 7 : 0);
	if (ft_core("tcp"))
		hostile();
	return ft_done();
}
