/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sides of connections that do not use struct ft_pair, and a peer that itself
 * sends messages of the control protocol of conditional writes. See cw_raw.h.
 */
#include "cw/cw_raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum fi_threading raw_threading;
enum fi_wait_obj raw_wait_obj = FI_WAIT_NONE;

void raw_open_fabric(struct raw_side *side, const char *prov, const void *dest,
		     size_t destlen)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *hints = ft_hints(&attr);
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(prov);
	hints->domain_attr->threading = raw_threading;
	if (!strchr(prov, ';')) {
		hints->domain_attr->mr_mode |= FI_MR_LOCAL;
		hints->ep_attr->type = FI_EP_MSG;
	}
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

void raw_open_ep(struct raw_side *side, struct fi_info *info, bool cw)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = raw_wait_obj,
	};

	if (!side->domain)
		FT_CALL(fi_domain(side->fabric, info, &side->domain, NULL));
	if (!side->cq)
		FT_CALL(fi_cq_open(side->domain, &attr, &side->cq, NULL));
	FT_CALL(fi_endpoint(side->domain, info, &side->ep, NULL));
	if (fi_cw_open(side->ep, &side->cw))
		side->cw = NULL;
	FT_CALL(fi_ep_bind(side->ep, &side->eq->fid, 0));
	FT_CALL(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	if (cw)
		FT_CALL(fi_cw_enable(&side->ep->fid, 0));
	FT_CALL(fi_enable(side->ep));
}

/* Makes progress without reading a completion. */
void raw_progress(struct raw_side *side)
{
	if (side && side->cq)
		fi_cq_read(side->cq, NULL, 0);
}

/* Waits for one event, while the other side makes progress. */
void raw_wait_event(struct raw_side *side, struct raw_side *other,
		    uint32_t want, struct raw_event *event)
{
	uint64_t end = ft_deadline();
	struct fi_eq_err_entry err = { 0 };
	struct raw_event unread;
	uint32_t got;
	ssize_t ret;

	while ((ret = fi_eq_read(side->eq, &got, event->room,
				 sizeof(event->room), 0)) == -FI_EAGAIN) {
		raw_progress(side);
		raw_progress(other);
		/* cores make connections when their event queue is read */
		if (other)
			fi_eq_read(other->eq, &got, unread.room,
				   sizeof(unread.room), FI_PEEK);
		FT_CHECK(ft_limit_us() < end, "no event %u", want);
	}
	if (ret == -FI_EAVAIL)
		fi_eq_readerr(side->eq, &err, 0);
	FT_CHECK(ret >= (ssize_t) sizeof(event->cm) && got == want,
		 "event %u (%zd, error %d), not %u", got, ret, err.err, want);
	event->len = ret - sizeof(event->cm);
}

void raw_close_ep(struct raw_side *side)
{
	if (side->ep)
		FT_CALL(fi_close(&side->ep->fid));
	side->ep = NULL;
}

void raw_close_side(struct raw_side *side)
{
	raw_close_ep(side);
	if (side->mr)
		FT_CALL(fi_close(&side->mr->fid));
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

ssize_t raw_wait_comp(struct raw_side *side, struct raw_side *other,
		      struct fi_cq_data_entry *entry)
{
	uint64_t end = ft_deadline();
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(side->cq, entry, 1)) == -FI_EAGAIN) {
		raw_progress(other);
		FT_CHECK(ft_limit_us() < end, "no completion");
	}
	if (ret != -FI_EAVAIL)
		return ret;
	FT_CHECK(fi_cq_readerr(side->cq, &err, 0) == 1, "fi_cq_readerr");
	return -err.err;
}

void raw_put(uint8_t *to, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		*to++ = value;
		value >>= 8;
	}
}

size_t raw_hello(uint8_t *msg, uint64_t cookie)
{
	memset(msg, 0, 32);
	raw_put(msg, 1, 1);
	raw_put(msg + 2, 32, 2);
	raw_put(msg + 8, 0x5743524d, 4);
	raw_put(msg + 12, 1, 1);
	raw_put(msg + 13, 1, 1);
	raw_put(msg + 14, 32, 2);
	raw_put(msg + 16, 100, 4);
	raw_put(msg + 24, cookie, 8);
	return 32;
}

size_t raw_tag(uint8_t *msg, uint64_t id)
{
	memset(msg, 0, 64);
	raw_put(msg, 2, 1);
	raw_put(msg + 1, 1, 1);
	raw_put(msg + 2, 64, 2);
	raw_put(msg + 8, id, 8);
	raw_put(msg + 16, 1000 + id, 8);
	raw_put(msg + 24, 16, 8);
	raw_put(msg + 32, 1, 2);
	raw_put(msg + 48, 77, 8);
	raw_put(msg + 56, 16, 8);
	return 64;
}

/* Returns the core alone, as a provider list. */
const char *raw_core_name(void)
{
	static char core[32];

	sscanf(ft_opts.prov, "%31[^;]", core);
	/* net's control connections are tcp's */
	return strcmp(core, "net") ? core : "tcp";
}

/* Writes the mark like struct cw_mark of fi/cw/mark.h, in network order */
static void raw_mark(uint8_t *mark, uint8_t kind, size_t len, uint64_t cookie,
		     uint32_t number)
{
	const uint32_t words[2] = { htonl(cookie >> 32), htonl(cookie) };

	memset(mark, 0, RAW_MARK);
	memcpy(mark, "MCRM", 4);
	mark[4] = 1;
	mark[5] = kind;
	mark[7] = len;
	memcpy(mark + 8, words, sizeof(words));
	memcpy(mark + 16, &number, sizeof(number));
}

size_t raw_peer_mark(uint8_t *mark, const void *as, size_t len, uint64_t nonce,
		     uint32_t number)
{
	raw_mark(mark, 4, len, nonce, number);
	memcpy(mark + RAW_MARK, as, len);
	return RAW_MARK + len;
}

uint16_t raw_witness_open(struct raw_side *witness)
{
	struct sockaddr_in at;
	size_t len = sizeof(at);

	raw_open_fabric(witness, raw_core_name(), NULL, 0);
	FT_CALL(fi_passive_ep(witness->fabric, witness->info, &witness->pep,
			      NULL));
	FT_CALL(fi_pep_bind(witness->pep, &witness->eq->fid, 0));
	FT_CALL(fi_listen(witness->pep));
	FT_CALL(fi_getname(&witness->pep->fid, &at, &len));
	return ntohs(at.sin_port);
}

unsigned raw_witness_poll(struct raw_side *witness, bool yes)
{
	uint8_t mark[RAW_MARK];
	struct raw_event event;
	unsigned cnt = 0;
	uint32_t got;

	while (fi_eq_read(witness->eq, &got, event.room, sizeof(event.room),
			  0) > 0) {
		if (got != FI_CONNREQ)
			continue;
		memcpy(mark, event.cm.data, sizeof(mark));
		FT_CHECK(mark[5] == 5, "not a question: %u", mark[5]);
		mark[5] = 6;
		mark[7] = 0;
		FT_CALL(fi_reject(witness->pep, event.cm.info->handle, mark,
				  yes ? sizeof(mark) : 0));
		fi_freeinfo(event.cm.info);
		cnt++;
	}
	return cnt;
}

void raw_post_room(struct raw_side *ctl)
{
	static char room[4][512];
	unsigned i;

	FT_CALL(fi_mr_reg(ctl->domain, room, sizeof(room), FI_RECV, 0, 0, 0,
			  &ctl->mr, NULL));
	for (i = 0; i < 4; i++)
		FT_CALL(fi_recv(ctl->ep, room[i], sizeof(room[i]),
				fi_mr_desc(ctl->mr), 0, room[i]));
}
