/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_takeover: tests a third endpoint that connects to a reliable
 * datagram endpoint in the name of another endpoint, from the same host: before
 * both endpoints are connected, while both are connected, and with operations
 * under way. All connections in another endpoint's name are refused, and the
 * operations complete. A question (ASK) with a wrong nonce gets no answer.
 */
#include "cw/cw_raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define LEN    64
#define ROUNDS 5

static struct ft_pair pair;
static struct sockaddr_in names[2]; /* the server's and the client's name */
static char buf[4096];

static uint32_t number(const struct sockaddr_in *name)
{
	uint32_t value;

	memcpy(&value, name->sin_zero + 4, 4);
	return value;
}

static struct sockaddr_in control(const struct sockaddr_in *name)
{
	struct sockaddr_in at = *name;

	memcpy(&at.sin_port, name->sin_zero + 2, 2);
	memset(at.sin_zero, 0, sizeof(at.sin_zero));
	return at;
}

/* Connects, with progress on both sides; returns whether it was accepted. */
static bool connects(const struct sockaddr_in *to, const uint8_t *mark,
		     size_t len)
{
	uint64_t end = ft_deadline();
	struct sockaddr_in dest = control(to);
	struct fi_eq_err_entry err = { 0 };
	struct raw_side ctl = { 0 };
	struct raw_event event;
	uint32_t got;
	ssize_t ret;

	raw_open_fabric(&ctl, raw_core_name(), &dest, sizeof(dest));
	raw_open_ep(&ctl, ctl.info, false);
	raw_post_room(&ctl);
	FT_CALL(fi_connect(ctl.ep, ctl.info->dest_addr, mark, len));
	while ((ret = fi_eq_read(ctl.eq, &got, event.room, sizeof(event.room),
				 0)) == -FI_EAGAIN) {
		raw_progress(&ctl);
		ft_poll(&pair.s);
		ft_poll(&pair.c);
		FT_CHECK(ft_limit_us() < end, "no answer");
	}
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(ctl.eq, &err, 0);
		FT_CHECK(!err.err_data_size, "told with %zu bytes",
			 err.err_data_size);
	}
	raw_close_side(&ctl);
	return ret > 0 && got == FI_CONNECTED;
}

static bool claims(const struct sockaddr_in *to, const struct sockaddr_in *as)
{
	uint8_t mark[RAW_PEER_MARK];
	size_t len;

	len = raw_peer_mark(mark, as, sizeof(*as), (uint64_t) ft_rand() << 32,
			    number(to));
	return connects(to, mark, len);
}

static bool asks(const struct sockaddr_in *to, const struct sockaddr_in *as,
		 uint64_t nonce)
{
	uint8_t mark[RAW_PEER_MARK];
	size_t len;

	len = raw_peer_mark(mark, as, sizeof(*as), nonce, number(to));
	mark[5] = 5;
	return connects(to, mark, len);
}

static void attack(void)
{
	struct sockaddr_in any = names[1];

	FT_CHECK(!claims(&names[0], &names[1]), "taken for the client");
	FT_CHECK(!claims(&names[1], &names[0]), "taken for the server");
	any.sin_addr.s_addr = htonl(INADDR_ANY);
	FT_CHECK(!claims(&names[0], &any), "taken for any endpoint");
	FT_CHECK(!asks(&names[0], &names[1], 0), "an answer");
	FT_CHECK(!asks(&names[1], &names[0], ft_rand()), "an answer");
}

static void expose(uint64_t tag)
{
	memset(buf + LEN, 0, LEN);
	FT_CALL(fi_cwtag(pair.s.cw, buf + LEN, LEN, NULL, pair.s.to, tag, buf));
}

static void write_exposed(uint64_t tag)
{
	struct ft_comp comp;

	ft_fill(buf, LEN, tag);
	FT_CALL(fi_cwrite(pair.c.cw, buf, LEN, NULL, pair.c.to, tag, buf));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK_BUF(buf + LEN, LEN, tag, "the peer's");
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t len = sizeof(names[0]);
	unsigned i;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (!ft_rdm())
		ft_skip("of reliable datagrams");
	attr.cw = true;
	ft_pair_open(&pair, &attr);
	FT_CALL(fi_getname(&pair.s.ep->fid, &names[0], &len));
	FT_CALL(fi_getname(&pair.c.ep->fid, &names[1], &len));
	FT_CHECK(names[0].sin_family == AF_INET, "family %u",
		 names[0].sin_family);

	ft_stage("before they meet");
	attack();
	expose(1);
	write_exposed(1);
	ft_stage("while they are connected");
	attack();
	expose(2);
	write_exposed(2);
	ft_stage("with a buffer exposed");
	for (i = 0; i < ROUNDS; i++) {
		expose(3 + i);
		attack();
		write_exposed(3 + i);
	}
	ft_check_idle(&pair.dom[0], "server");
	ft_check_idle(&pair.dom[1], "client");
	ft_pair_close(&pair);
	return ft_done();
}
