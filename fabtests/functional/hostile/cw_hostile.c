/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_hostile: tests peers of reliable datagram endpoints that violate
 * the control protocol of conditional writes, in every byte: the address of a
 * violating peer is quarantined. The test also uses forged names, and names
 * without an endpoint. An honest peer has operations in flight all the time,
 * and is not affected. Peers with short buffers get short transfers.
 */
#include "fakes/clock.h"
#include "cw/cw_raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define LEN 64

static struct ft_pair pair;
static struct sockaddr_in server; /* the server's name */
static char buf[4096];
static uint32_t attempts;
static struct raw_side witness; /* listener of all invented names */
static uint16_t witness_port;
static bool witness_says = true;
static in_addr_t dial_from; /* source address of connections; 0: any */

/* Finds the control protocol's fields in a name: see fi/cw/name.c */
static uint16_t *ctl_port(struct sockaddr_in *name)
{
	return (uint16_t *) (name->sin_zero + 2);
}

static uint32_t number(const struct sockaddr_in *name)
{
	uint32_t value;

	memcpy(&value, name->sin_zero + 4, 4);
	return value;
}

/* Makes the name of an endpoint that does not exist */
static struct sockaddr_in fake_name(uint16_t port, uint32_t value)
{
	struct sockaddr_in name = { .sin_family = AF_INET };

	inet_pton(AF_INET, ft_opts.addr, &name.sin_addr);
	name.sin_port = htons(9 + value);
	memcpy(name.sin_zero, "MW", 2);
	*ctl_port(&name) = htons(port);
	memcpy(name.sin_zero + 4, &value, 4);
	return name;
}

static fi_addr_t insert(const struct sockaddr_in *name)
{
	fi_addr_t addr;

	FT_CHECK(fi_av_insert(pair.s.av, name, 1, &addr, 0, NULL) == 1,
		 "fi_av_insert");
	return addr;
}

static void transfer(uint64_t tag)
{
	struct ft_comp comp;

	ft_fill(buf, LEN, tag);
	FT_CALL(fi_cwrite(pair.c.cw, buf, LEN, NULL, pair.c.to, tag, buf));
	FT_CALL(fi_cwtag(pair.s.cw, buf + LEN, LEN, NULL, pair.s.to, tag, buf));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK_BUF(buf + LEN, LEN, tag, "the honest peer's");
}

/* ---- connections by hand ------------------------------------------------- */

static void set_source(struct fi_info *info)
{
	struct sockaddr_in *at = calloc(1, sizeof(*at));

	at->sin_family = AF_INET;
	at->sin_addr.s_addr = dial_from;
	free(info->src_addr);
	info->src_addr = at;
	info->src_addrlen = sizeof(*at);
}

static void dial(struct raw_side *ctl, const struct sockaddr_in *as,
		 size_t name_len, uint32_t to)
{
	uint8_t mark[RAW_PEER_MARK], name[64] = { 0 };
	struct sockaddr_in dest = server;
	size_t len;

	memcpy(name, as, sizeof(*as));
	len = raw_peer_mark(mark, name, name_len, ++attempts, to);
	memset(dest.sin_zero, 0, sizeof(dest.sin_zero));
	dest.sin_port = *ctl_port(&server);
	raw_open_fabric(ctl, raw_core_name(), &dest, sizeof(dest));
	if (dial_from)
		set_source(ctl->info);
	raw_open_ep(ctl, ctl->info, false);
	raw_post_room(ctl);
	FT_CALL(fi_connect(ctl->ep, ctl->info->dest_addr, mark, len));
}

/* Waits for the answer to a connection request; true: connected */
static bool answered(struct raw_side *ctl)
{
	uint64_t end = ft_deadline();
	struct fi_eq_err_entry err = { 0 };
	struct raw_event event;
	uint32_t got;
	ssize_t ret;

	while ((ret = fi_eq_read(ctl->eq, &got, event.room, sizeof(event.room),
				 0)) == -FI_EAGAIN) {
		raw_progress(ctl);
		ft_poll(&pair.s);
		ft_poll(&pair.c);
		raw_witness_poll(&witness, witness_says);
		FT_CHECK(ft_limit_us() < end, "no answer");
	}
	if (ret == -FI_EAVAIL)
		fi_eq_readerr(ctl->eq, &err, 0);
	return ret > 0 && got == FI_CONNECTED;
}

static bool accepted(const struct sockaddr_in *as, size_t len, uint32_t to)
{
	struct raw_side ctl = { 0 };
	bool yes;

	dial(&ctl, as, len, to);
	yes = answered(&ctl);
	raw_close_side(&ctl);
	return yes;
}

/*
 * Checks that the write under way ends with this error, while another listener,
 * if any, makes progress
 */
static void check_ends_beside(struct raw_side *other, int err)
{
	uint64_t end = ft_deadline();
	struct raw_event event;
	struct ft_comp comp;

	while (!ft_take(&pair.s, FT_TX, &comp)) {
		ft_poll(&pair.s);
		ft_poll(&pair.c);
		if (other) {
			fi_eq_read(other->eq, (uint32_t[]){ 0 }, event.room,
				   sizeof(event.room), 0);
			raw_progress(other);
		}
		FT_CHECK(ft_limit_us() < end, "it goes on");
	}
	FT_CHECK(comp.err == err, "error %d (%s), not %d", comp.err,
		 fi_strerror(comp.err), err);
}

static void check_ends(int err)
{
	check_ends_beside(NULL, err);
}

static void cwrite_to(fi_addr_t addr, uint64_t tag)
{
	FT_CALL(fi_cwrite(pair.s.cw, buf, 8, NULL, addr, tag, buf));
}

/*
 * ---- messages --------------------------------------------------------------
 */

/* Connects as a new peer and sends only the messages @msg. */
static void says(const uint8_t *const msg[], const size_t *len, unsigned cnt,
		 bool bad)
{
	struct sockaddr_in name = fake_name(witness_port, 1000 + attempts);
	struct raw_side ctl = { 0 };
	uint8_t copy[512];
	fi_addr_t addr;
	ssize_t ret;
	unsigned i;

	addr = insert(&name);
	dial(&ctl, &name, sizeof(name), number(&server));
	FT_CHECK(answered(&ctl), "refused");
	cwrite_to(addr, 1);
	for (i = 0; i < cnt; i++) {
		memcpy(copy, msg[i], len[i]);
		if (copy[0] == 1 && len[i] >= 32)
			raw_put(copy + 24, number(&name), 8);
		if (fi_inject(ctl.ep, copy, len[i], 0))
			break; /* the connection may have ended already */
		raw_progress(&ctl);
	}
	if (bad) {
		check_ends(FI_ECONNABORTED);
		ret = fi_cwrite(pair.s.cw, buf, 8, NULL, addr, 1, buf);
		FT_CHECK(ret == -FI_EACCES, "a write to quarantine: %zd", ret);
		ret = fi_cwtag(pair.s.cw, buf, 8, NULL, addr, 1, buf);
		FT_CHECK(ret == -FI_EACCES, "a tag for quarantine: %zd", ret);
		FT_CHECK(!accepted(&name, sizeof(name), number(&server)),
			 "accepted out of quarantine");
	}
	FT_CALL(fi_av_remove(pair.s.av, &addr, 1, 0));
	if (!bad)
		check_ends(FI_ECANCELED);
	raw_close_side(&ctl);
	/* an address that was removed and inserted is no longer quarantined */
	addr = insert(&name);
	if (attempts % 8 == 0)
		FT_CHECK(accepted(&name, sizeof(name), number(&server)),
			 "still in quarantine");
	FT_CALL(fi_av_remove(pair.s.av, &addr, 1, 0));
}

static void messages(void)
{
	uint8_t h[32], bad[64], t[64], both[96];
	const uint8_t *msg[3] = { h, t, t };
	size_t lens[3] = { raw_hello(h, 0), raw_tag(t, 1), sizeof(t) };
	unsigned i, bit;

	ft_stage("no harm");
	says(msg, lens, 2, false);
	ft_stage("a tag twice");
	says(msg, lens, 3, true);
	ft_stage("HELLO twice");
	msg[1] = h;
	lens[1] = lens[0];
	says(msg, lens, 2, true);
	ft_stage("a tag before HELLO");
	msg[0] = t;
	lens[0] = sizeof(t);
	says(msg, lens, 1, true);
	msg[0] = h;
	lens[0] = sizeof(h);
	msg[1] = bad;
	lens[1] = sizeof(bad);
	for (i = 0; i < 64; i++) {
		bit = ft_rand() % 8;
		raw_tag(bad, 1);
		bad[i] ^= 1 << bit;
		ft_stage("byte %u, bit %u", i, bit);
		/* the peer chooses identity, tag, address and key freely */
		if ((i >= 8 && i < 24) || (i >= 40 && i < 56))
			continue;
		/* an unknown version of the protocol is no violation */
		if (i == 1)
			continue;
		says(msg, lens, 2, true);
	}
	ft_stage("a message too short");
	raw_tag(bad, 1);
	lens[1] = 40;
	says(msg, lens, 2, true);
	ft_stage("empty");
	lens[1] = 0;
	says(msg, lens, 2, true);
	ft_stage("two in one");
	memcpy(both, h, sizeof(h));
	memcpy(both + sizeof(h), t, sizeof(t));
	msg[0] = both;
	lens[0] = sizeof(both);
	says(msg, lens, 1, false);
	ft_stage("two in one, the second cut short");
	lens[0]--;
	says(msg, lens, 1, true);
	lens[0] = sizeof(h) + 1;
	says(msg, lens, 1, true);
	ft_stage("two in one, of which the first seems to go on");
	lens[0] = sizeof(both);
	raw_put(both + 2, sizeof(both) + 1, 2);
	says(msg, lens, 1, true);
	ft_stage("two in one, the first of no length");
	raw_put(both + 2, 0, 2);
	says(msg, lens, 1, true);
}

/* Returns the messages in the next transfer to ctl, of *len bytes. */
static const uint8_t *heard(struct raw_side *ctl, size_t *len)
{
	uint64_t end = ft_deadline();
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(ctl->cq, &entry, 1)) == -FI_EAGAIN) {
		ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "no message");
	}
	FT_CHECK(ret == 1, "a message: %zd", ret);
	*len = entry.len;
	return entry.op_context;
}

/* A peer that takes no bytes of writes gets transfers of at most 512 bytes. */
static void short_buffers(void)
{
	enum { TAGS = 20 };
	struct sockaddr_in name = fake_name(witness_port, 1000 + attempts);
	const fi_addr_t addr = insert(&name);
	struct raw_side ctl = { 0 };
	size_t len, sum = 0;
	struct ft_comp comp;
	uint8_t h[32];
	unsigned i;

	ft_stage("short buffers");
	dial(&ctl, &name, sizeof(name), number(&server));
	FT_CHECK(answered(&ctl), "refused");
	/* tags wait for the peer's HELLO; then all are due at once */
	for (i = 0; i < TAGS; i++)
		FT_CALL(fi_cwtag(pair.s.cw, buf, 8, NULL, addr, i, NULL));
	FT_CALL(fi_inject(ctl.ep, h, raw_hello(h, number(&name)), 0));
	while (sum < sizeof(h) + TAGS * 64) {
		heard(&ctl, &len);
		sum += len;
	}
	FT_CALL(fi_av_remove(pair.s.av, (fi_addr_t *) &addr, 1, 0));
	for (i = 0; i < TAGS; i++) {
		ft_wait_any(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED, "error %d", comp.err);
	}
	raw_close_side(&ctl);
}

/*
 * Connects as a new peer. Returns how many bytes of a write the server's
 * messages take, as its HELLO says
 */
static unsigned bytes_taken(struct raw_side *ctl, fi_addr_t *addr)
{
	struct sockaddr_in name = fake_name(witness_port, 1000 + attempts);
	const uint8_t *hello;
	size_t len;

	*addr = insert(&name);
	dial(ctl, &name, sizeof(name), number(&server));
	FT_CHECK(answered(ctl), "refused");
	hello = heard(ctl, &len);
	return hello[20] | hello[21] << 8;
}

/*
 * Only the first 16 links of a domain, of which the honest peer has one, take
 * long messages. A link that is freed makes room for another.
 */
static void long_messages(void)
{
	enum { LINKS = 16 };
	const unsigned most = ft_core("verbs") ? 192 : 4096;
	struct raw_side ctl[LINKS] = { 0 };
	fi_addr_t addr[LINKS];
	unsigned i;

	ft_stage("long messages");
	for (i = 0; i < LINKS; i++)
		FT_CHECK(bytes_taken(&ctl[i], &addr[i]) ==
				 (i < LINKS - 1 ? most : 192),
			 "link %u", i);
	FT_CALL(fi_av_remove(pair.s.av, &addr[0], 1, 0));
	raw_close_side(&ctl[0]);
	FT_CHECK(bytes_taken(&ctl[0], &addr[0]) == most, "after one is freed");
	for (i = 0; i < LINKS; i++) {
		FT_CALL(fi_av_remove(pair.s.av, &addr[i], 1, 0));
		raw_close_side(&ctl[i]);
	}
}

/*
 * A write with remote CQ data takes no receive over tcp. Over verbs such a
 * write takes a receive, and violates the control protocol.
 */
static void written_data(void)
{
	const struct iovec iov = { buf, 0 };
	const struct fi_rma_iov rma = { 0, 0, 0 };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.rma_iov = &rma,
		.rma_iov_count = ft_core("verbs"),
		.data = 1,
	};
	struct sockaddr_in name = fake_name(witness_port, 1000 + attempts);
	const fi_addr_t addr = insert(&name);
	struct raw_side ctl = { 0 };
	uint8_t h[32];
	unsigned i;

	ft_stage("a write with data");
	dial(&ctl, &name, sizeof(name), number(&server));
	FT_CHECK(answered(&ctl), "refused");
	cwrite_to(addr, 1);
	raw_hello(h, number(&name));
	FT_CALL(fi_inject(ctl.ep, h, sizeof(h), 0));
	for (i = 0; i < 3; i++) {
		if (fi_writemsg(ctl.ep, &msg, FI_REMOTE_CQ_DATA))
			break;
		raw_progress(&ctl);
	}
	if (ft_core("verbs")) {
		check_ends(FI_ECONNABORTED);
		FT_CHECK(!accepted(&name, sizeof(name), number(&server)),
			 "accepted out of quarantine");
	}
	transfer(4);
	FT_CALL(fi_av_remove(pair.s.av, (fi_addr_t *) &addr, 1, 0));
	if (!ft_core("verbs"))
		check_ends(FI_ECANCELED);
	raw_close_side(&ctl);
}

/*
 * ---- forged names ----------------------------------------------------------
 */

static void liars(void)
{
	const uint32_t to = number(&server);
	struct sockaddr_in name = fake_name(witness_port, 5);

	ft_stage("for no endpoint");
	FT_CHECK(!accepted(&name, sizeof(name), to + 1), "a wrong number");
	ft_stage("no name");
	memset(name.sin_zero, 0, sizeof(name.sin_zero));
	FT_CHECK(!accepted(&name, sizeof(name), to), "a plain name");
	FT_CHECK(!accepted(&name, 0, to), "no name");
	name = fake_name(witness_port, 6);
	FT_CHECK(!accepted(&name, 30, to), "a name that is too long");
	name.sin_family = 99;
	FT_CHECK(!accepted(&name, sizeof(name), to), "a strange name");
	ft_stage("of another host");
	name = fake_name(witness_port, 7);
	name.sin_addr.s_addr ^= htonl(0x100);
	FT_CHECK(!accepted(&name, sizeof(name), to), "another host's name");
	if (ntohl(name.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
		dial_from = name.sin_addr.s_addr;
		name = fake_name(witness_port, 9);
		FT_CHECK(!accepted(&name, sizeof(name), to), "from elsewhere");
		dial_from = 0;
	}
	ft_stage("of the server itself");
	FT_CHECK(!accepted(&server, sizeof(server), to), "its own name");
	ft_stage("an attempt that is over");
	name = fake_name(witness_port, 8);
	FT_CHECK(accepted(&name, sizeof(name), to), "a first attempt");
	witness_says = false;
	FT_CHECK(!accepted(&name, sizeof(name), to), "the same again");
	witness_says = true;
}

/* An unknown peer stays in quarantine although others connect. */
static void strangers(void)
{
	struct sockaddr_in bad = fake_name(witness_port, 100), name;
	const uint32_t to = number(&server);
	struct raw_side ctl = { 0 };
	uint8_t h[32];
	unsigned i;

	ft_stage("a hostile stranger");
	raw_hello(h, number(&bad));
	dial(&ctl, &bad, sizeof(bad), to);
	FT_CHECK(answered(&ctl), "refused");
	for (i = 0; i < 2 && !fi_inject(ctl.ep, h, sizeof(h), 0); i++)
		raw_progress(&ctl);
	FT_CHECK(!answered(&ctl), "HELLO twice");
	raw_close_side(&ctl);
	/* unknown peers with different names are refused */
	for (i = 0; i < 80; i++) {
		name = fake_name(witness_port, 400 + i);
		witness_says = false;
		FT_CHECK(!accepted(&name, sizeof(name), to), "not its own");
		witness_says = true;
	}
	for (i = 0; i < 80; i++) {
		name = fake_name(witness_port, 200 + i);
		FT_CHECK(accepted(&name, sizeof(name), to), "stranger %u", i);
	}
	FT_CHECK(!accepted(&bad, sizeof(bad), to),
		 "out of quarantine as others came");
}

/* No process listens at a name's address, or another process does. */
static void dead_ends(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, name;
	struct raw_side other = { 0 };
	struct raw_event event;
	socklen_t len = sizeof(at);
	fi_addr_t addr;
	int fd;

	ft_stage("no listener");
	name = fake_name(1, 77);
	addr = insert(&name);
	cwrite_to(addr, 1);
	check_ends(FI_ECONNABORTED);
	cwrite_to(addr, 1);
	check_ends(FI_ECONNABORTED);

	ft_stage("another listener");
	raw_open_fabric(&other, raw_core_name(), NULL, 0);
	FT_CALL(fi_passive_ep(other.fabric, other.info, &other.pep, NULL));
	FT_CALL(fi_pep_bind(other.pep, &other.eq->fid, 0));
	FT_CALL(fi_listen(other.pep));
	FT_CALL(fi_getname(&other.pep->fid, &at, (size_t[]){ sizeof(at) }));
	name = fake_name(ntohs(at.sin_port), 78);
	addr = insert(&name);
	cwrite_to(addr, 1);
	while (fi_eq_read(other.eq, (uint32_t[]){ 0 }, event.room,
			  sizeof(event.room), 0) == -FI_EAGAIN)
		ft_poll(&pair.s);
	raw_open_ep(&other, event.cm.info, false);
	FT_CALL(fi_accept(other.ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	check_ends_beside(&other, FI_ECONNABORTED);
	raw_close_side(&other);

	if (ft_core("verbs"))
		return;
	ft_stage("no answer");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	inet_pton(AF_INET, ft_opts.addr, &at.sin_addr);
	at.sin_port = 0;
	FT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *) &at, len) &&
			 !listen(fd, 5) &&
			 !getsockname(fd, (struct sockaddr *) &at, &len),
		 "listen");
	name = fake_name(ntohs(at.sin_port), 79);
	addr = insert(&name);
	cwrite_to(addr, 1);
	clock_advance(28000000);
	ft_expect_none(&pair.s, 2);
	clock_advance(3000000);
	check_ends(FI_ECONNABORTED);
	close(fd);
}

/*
 * A connection ends before its first byte: no state of the connection may stay.
 */
static void half_open(void)
{
	struct sockaddr_in at = server;
	int i, fd;

	ft_stage("a connection without a byte");
	at.sin_port = *ctl_port(&server);
	memset(at.sin_zero, 0, sizeof(at.sin_zero));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	FT_CHECK(fd >= 0 && !connect(fd, (struct sockaddr *) &at, sizeof(at)),
		 "connect: %s", strerror(errno));
	for (i = 0; i < 1000; i++)
		ft_poll(&pair.s);
	close(fd);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t len = sizeof(server);
	struct ft_comp comp;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (!ft_rdm())
		ft_skip("of reliable datagrams");
	attr.cw = true;
	ft_pair_open(&pair, &attr);
	FT_CALL(fi_getname(&pair.s.ep->fid, &server, &len));
	witness_port = raw_witness_open(&witness);
	transfer(1);
	FT_CALL(fi_cwrite(pair.c.cw, buf + 512, 8, NULL, pair.c.to, 99, NULL));
	long_messages();
	short_buffers();
	messages();
	transfer(2);
	written_data();
	liars();
	strangers();
	dead_ends();
	transfer(3);
	FT_CALL(fi_cwtag(pair.s.cw, buf + 1024, 8, NULL, pair.s.to, 99, NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	if (!ft_core("verbs"))
		half_open();
	raw_close_side(&witness);
	ft_check_idle(&pair.dom[0], "server");
	ft_pair_close(&pair);
	return ft_done();
}
