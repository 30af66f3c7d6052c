/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_av: tests names of reliable datagram endpoints with conditional
 * writes: the names have the length of the core's names, can be inserted in
 * arrays together with plain names, are returned unchanged, and affect no other
 * calls.
 */
#include "ft_mrrc.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define NAME 64

static struct ft_pair pair;
static char buf[4096];

static size_t name_of(struct ft_ep *ep, void *name)
{
	size_t len = NAME;

	memset(name, 0, NAME);
	FT_CALL(fi_getname(&ep->ep->fid, name, &len));
	return len;
}

/* Makes the core's own name of a name; returns whether both are equal. */
static bool plain(const char *name, char *core, size_t len)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) core;
	struct sockaddr_in *in = (struct sockaddr_in *) core;

	memcpy(core, name, len);
	if (in->sin_family == AF_INET) {
		memset(in->sin_zero, 0, sizeof(in->sin_zero));
	} else {
		in6->sin6_flowinfo = 0;
		in6->sin6_scope_id = 0;
	}
	return !memcmp(name, core, len);
}

static void names(void)
{
	char name[NAME], again[NAME], core[NAME], text[2][128];
	size_t len, room, text_len[2] = { 128, 128 };
	int ret, want;

	ft_stage("names");
	len = name_of(&pair.c, name);
	FT_CHECK(len == sizeof(struct sockaddr_in) ||
			 len == sizeof(struct sockaddr_in6),
		 "%zu bytes", len);
	FT_CHECK(!plain(name, core, len), "the name says nothing");
	/* without room for the name, the answer is the core's */
	for (room = 0; room < len; room += 5) {
		size_t left = room;

		memset(again, 0x55, NAME);
		ret = fi_getname(&pair.c.ep->fid, again, &left);
		want = left == len && (!ret || ret == -FI_ETOOSMALL);
		FT_CHECK(want, "room for %zu: %d, %zu", room, ret, left);
		FT_CHECK(!memcmp(again, name, room) && again[room] == 0x55,
			 "room for %zu: more or other bytes", room);
	}
	fi_av_straddr(pair.c.av, name, text[0], &text_len[0]);
	fi_av_straddr(pair.c.av, core, text[1], &text_len[1]);
	FT_CHECK(text_len[0] == text_len[1] && !strcmp(text[0], text[1]),
		 "\"%s\", not \"%s\"", text[0], text[1]);
}

/*
 * Inserts an array of names, of a plain address, and of an address that the
 * core has twice.
 */
static void arrays(enum fi_av_type type)
{
	struct fi_av_attr attr = { .type = type };
	char name[2][NAME], all[4 * NAME], got[NAME];
	fi_addr_t addr[4] = { 77, 77, 77, 77 };
	struct fid_av *av;
	size_t len, i, n;
	int ret;

	ft_stage("arrays, type %d", type);
	len = name_of(&pair.s, name[0]);
	name_of(&pair.c, name[1]);
	memcpy(all, name[0], len);
	plain(name[1], all + len, len);
	/* a third address, which no endpoint has */
	memcpy(all + 2 * len, name[1], len);
	all[2 * len + 3] ^= 1;
	memcpy(all + 3 * len, name[0], len);
	FT_CALL(fi_av_open(pair.c.dom->domain, &attr, &av, NULL));
	ret = fi_av_insert(av, all, 4, addr, 0, NULL);
	FT_CHECK(ret == 4, "fi_av_insert: %d", ret);
	for (i = 0; i < 4; i++) {
		n = NAME;
		FT_CALL(fi_av_lookup(av, addr[i], got, &n));
		FT_CHECK(n == len && !memcmp(got, all + i * len, len),
			 "address %zu is another one", i);
		n = 3;
		memset(got, 0x55, NAME);
		fi_av_lookup(av, addr[i], got, &n);
		FT_CHECK(n == len && got[3] == 0x55, "lookup with no room");
	}
	FT_CALL(fi_av_remove(av, addr, 3, 0));
	n = NAME;
	FT_CHECK(addr[0] != addr[3] || (!fi_av_lookup(av, addr[3], got, &n) &&
					!memcmp(got, name[0], len)),
		 "inserted twice, removed once");
	FT_CALL(fi_av_remove(av, addr + 3, 1, 0));
	if (type == FI_AV_TABLE) {
		ret = fi_av_insert(av, all, 3, NULL, 0, NULL);
		FT_CHECK(ret == 3, "without addresses: %d", ret);
	}
	FT_CALL(fi_close(&av->fid));
}

static void transfer(struct ft_ep *w, struct ft_ep *t, fi_addr_t to,
		     fi_addr_t from)
{
	struct ft_comp comp;

	memset(buf, 1, 64);
	memset(buf + 64, 0, 64);
	FT_CALL(fi_cwrite(w->cw, buf, 64, NULL, to, 3, buf));
	FT_CALL(fi_cwtag(t->cw, buf + 64, 64, NULL, from, 3, buf + 64));
	ft_wait(w, FT_TX, &comp);
	ft_wait(t, FT_RX, &comp);
	FT_CHECK(!memcmp(buf, buf + 64, 64), "data");
}

/* Sends a message of the core's, whose source is known */
static void message(struct ft_ep *from)
{
	struct ft_ep *to = from->peer;
	struct ft_comp comp;

	FT_CALL(fi_recv(to->ep, buf + 2048, 64, NULL, FT_ANY, buf));
	FT_POST(from, fi_send(from->ep, buf, 64, NULL, from->to, buf));
	ft_wait(from, FT_TX, &comp);
	ft_wait(to, FT_RX, &comp);
	FT_CHECK(comp.src == to->to, "from %" PRIu64 ", not %" PRIu64, comp.src,
		 to->to);
}

/* Tests addresses with which conditional writes are not possible */
static void wrong_ones(void)
{
	char name[NAME], core[NAME];
	fi_addr_t self, other;
	struct ft_comp comp;
	size_t len;
	ssize_t ret;

	ft_stage("a plain name");
	len = name_of(&pair.s, name);
	FT_CALL(fi_cwtag(pair.s.cw, buf, 1, NULL, pair.s.to, 9, buf));
	FT_CALL(fi_av_remove(pair.c.av, &pair.c.to, 1, 0));
	/*
	 * the peer notices that its address was removed, so that its next
	 * operation makes a new connection
	 */
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECONNABORTED, "removed: error %d", comp.err);
	plain(name, core, len);
	FT_CHECK(fi_av_insert(pair.c.av, core, 1, &other, 0, NULL) == 1,
		 "fi_av_insert");
	ret = fi_cwrite(pair.c.cw, buf, 1, NULL, other, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "fi_cwrite: %zd", ret);
	ret = fi_cwtag(pair.c.cw, buf, 1, NULL, other, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "fi_cwtag: %zd", ret);
	FT_CALL(fi_av_remove(pair.c.av, &other, 1, 0));
	ret = fi_cwrite(pair.c.cw, buf, 1, NULL, other, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "removed: %zd", ret);
	pair.c.to = ft_rdm_insert(&pair.c, &pair.s);
	transfer(&pair.c, &pair.s, pair.c.to, pair.s.to);

	ft_stage("itself");
	self = ft_rdm_insert(&pair.c, &pair.c);
	ret = fi_cwrite(pair.c.cw, buf, 1, NULL, self, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "fi_cwrite to itself: %zd", ret);
}

/*
 * An endpoint without conditional writes has the core's name, and is found by
 * that name.
 */
static void not_asked(const struct ft_attr *with)
{
	struct ft_attr attr = *with;
	char name[NAME], core[NAME];
	struct ft_ep other;
	fi_addr_t addr;
	size_t len;
	ssize_t ret;

	ft_stage("not asked for");
	attr.cw = false;
	pair.attr = attr;
	ft_rdm_ep_open(&pair, &other, &pair.dom[0]);
	pair.attr = *with;
	len = name_of(&other, name);
	FT_CHECK(plain(name, core, len), "the name is not the core's");
	ret = fi_cw_enable(&other.ep->fid, 0);
	FT_CHECK(ret == -FI_EBUSY, "enabled too late: %zd", ret);
	addr = ft_rdm_insert(&pair.c, &other);
	ret = fi_cwrite(pair.c.cw, buf, 1, NULL, addr, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "fi_cwrite: %zd", ret);
	/*
	 * the AV of an endpoint without conditional writes accepts names of
	 * endpoints with conditional writes
	 */
	addr = ft_rdm_insert(&other, &pair.c);
	ret = fi_cwrite(other.cw, buf, 1, NULL, addr, 1, buf);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "fi_cwrite from it: %zd", ret);
	other.to = addr;
	other.peer = &pair.c;
	ft_verify_pair(&other, buf, buf + 2048, 2048, 7);
	ft_ep_close(&other);
}

static void early(const struct ft_attr *with)
{
	struct fi_av_attr av_attr = { .type = with->av_type };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct ft_dom *dom = &pair.dom[0];
	char name[NAME], core[NAME];
	struct fi_mrrc_cw *cw;
	size_t len = NAME;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	ssize_t ret;

	ft_stage("before it is enabled");
	FT_CALL(fi_av_open(dom->domain, &av_attr, &av, NULL));
	FT_CALL(fi_cq_open(dom->domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_endpoint(dom->domain, dom->info, &ep, NULL));
	FT_CHECK(fi_cw_enable(&ep->fid, 0) == -FI_ENOCQ, "without a CQ");
	FT_CALL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CHECK(fi_cw_enable(&ep->fid, 0) == -FI_ENOAV, "without an AV");
	FT_CALL(fi_ep_bind(ep, &av->fid, 0));
	FT_CALL(fi_cw_enable(&ep->fid, 0));
	FT_CALL(fi_cw_enable(&ep->fid, 0));
	FT_CALL(fi_cw_open(ep, &cw));
	ret = fi_cwrite(cw, buf, 1, NULL, 0, 1, buf);
	FT_CHECK(ret == -FI_EOPBADSTATE, "too early: %zd", ret);
	ret = fi_getname(&ep->fid, name, &len);
	FT_CHECK(ret || plain(name, core, len), "a name too early");
	FT_CALL(fi_enable(ep));
	len = NAME;
	FT_CALL(fi_getname(&ep->fid, name, &len));
	FT_CHECK(!plain(name, core, len), "no name");
	FT_CALL(fi_close(&ep->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&av->fid));
}

/* In an AV with events names are known once the event was read. */
static void events(void)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct fi_eq_entry entry;
	char name[NAME], got[NAME];
	size_t len = name_of(&pair.c, name), room = NAME;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;
	ssize_t ret;

	ft_stage("an address vector with events");
	FT_CALL(fi_eq_open(pair.dom[1].fabric, &eq_attr, &eq, NULL));
	ret = fi_av_open(pair.dom[1].domain, &attr, &av, NULL);
	if (ret) {
		printf("note: no events here: %s\n", fi_strerror((int) -ret));
		FT_CALL(fi_close(&eq->fid));
		return;
	}
	/* fi_av_bind() is deprecated in 2.x */
	ret = av->fid.ops->bind(&av->fid, &eq->fid, 0);
	if (ret == -FI_ENOSYS) {
		printf("note: no events here: %s\n", fi_strerror(FI_ENOSYS));
	} else {
		FT_CHECK(!ret, "binding an event queue: %zd", ret);
		FT_CALL(fi_av_insert(av, name, 1, &addr, 0, &addr));
		ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), 5000, 0);
		FT_CHECK(ret == sizeof(entry) && event == FI_AV_COMPLETE &&
				 entry.fid == &av->fid && entry.data == 1 &&
				 entry.context == &addr,
			 "event %u: %zd", event, ret);
		FT_CALL(fi_av_lookup(av, addr, got, &room));
		FT_CHECK(room == len && !memcmp(got, name, len), "the name");
		FT_CALL(fi_av_remove(av, &addr, 1, 0));
	}
	FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&eq->fid));
}

static void run(const void *arg)
{
	struct ft_attr attr = FT_ATTR;

	attr.caps |= FI_SOURCE;
	attr.av_type = *(const enum fi_av_type *) arg;
	attr.cw = true;
	ft_pair_open(&pair, &attr);
	names();
	arrays(attr.av_type);
	events();
	transfer(&pair.c, &pair.s, pair.c.to, pair.s.to);
	/* transfers by the core itself, with sources */
	message(&pair.c);
	message(&pair.s);
	wrong_ones();
	not_asked(&attr);
	early(&attr);
	ft_check_idle(&pair.dom[0], "server");
	ft_check_idle(&pair.dom[1], "client");
	ft_pair_close(&pair);
}

/*
 * Runs the test in a separate process, in which the first use of a plain name
 * prints on standard error what the name lacks.
 */
static void run_apart(enum fi_av_type type)
{
	static char output[65536];
	const char *said;

	ft_in_child(ft_opts.addr, run, &type, output, sizeof(output));
	said = strstr(output, "peer's fi_getname() returns");
	FT_CHECK(said && !strstr(said + 1, "peer's fi_getname() returns"),
		 "of a plain name it is not told once why:\n%s", output);
}

int main(int argc, char **argv)
{
	unsetenv("FI_LOG_LEVEL");
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (!ft_rdm())
		ft_skip("connected endpoints have no address vector");
	run_apart(FI_AV_TABLE);
	run_apart(FI_AV_MAP);
	if (!ft_core("verbs") && !access("/proc/net/if_inet6", R_OK)) {
		ft_opts.addr = "::1";
		run_apart(FI_AV_MAP);
	}
	return ft_done();
}
