/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_av: tests address vectors with events, and the sources of messages:
 * FI_SOURCE, and receives for one sender (FI_DIRECTED_RECV). fi_mrrc_sequences
 * tests the other calls on address vectors.
 */
#include "ft_mrrc.h"

#define PEERS 4
#define LEN   5000
#define LONG  200000 /* more than a core copies */

static struct ft_pair pair; /* domains; the pair has no endpoints */
static struct ft_ep hub, peers[PEERS];
static fi_addr_t addrs[PEERS]; /* addresses of the peers in hub's AV */
static char *out, *in;

/* ---- tests without messages --------------------------------------------- */

static void names(struct ft_ep *ep, char *name, size_t *len)
{
	*len = 256;
	FT_CALL(fi_getname(&ep->ep->fid, name, len));
}

static void lookup(struct fid_av *av, fi_addr_t addr, const char *name,
		   size_t len)
{
	char got[256];
	size_t size = sizeof(got);

	FT_CALL(fi_av_lookup(av, addr, got, &size));
	FT_CHECK(size == len && !memcmp(got, name, len),
		 "an address of %zu bytes where %zu were inserted", size, len);
}

/* The event of an insertion names the application's address vector. */
static void with_events(void)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	uint64_t end = ft_deadline();
	struct fi_eq_entry entry = { 0 };
	struct fid_eq *eq;
	struct fid_av *av;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	uint32_t event = 0;
	char name[256];
	size_t len;
	ssize_t ret;

	ft_stage("events of an address vector");
	names(&peers[0], name, &len);
	ret = fi_av_open(pair.dom[0].domain, &attr, &av, NULL);
	if (ret == -FI_ENOSYS || ret == -FI_EINVAL) {
		printf("note: no events here: %s\n", fi_strerror((int) -ret));
		return;
	}
	FT_CHECK(!ret, "fi_av_open: %zd", ret);
	FT_CALL(fi_eq_open(pair.dom[0].fabric, &eq_attr, &eq, NULL));
	/* fi_av_bind() is deprecated in 2.x */
	ret = av->fid.ops->bind(&av->fid, &eq->fid, 0);
	if (ret == -FI_ENOSYS) {
		printf("note: no events here: %s\n", fi_strerror(FI_ENOSYS));
		FT_CALL(fi_close(&av->fid));
		FT_CALL(fi_close(&eq->fid));
		return;
	}
	FT_CHECK(!ret, "binding an event queue: %zd", ret);
	ret = fi_av_insert(av, name, 1, &addr, 0, &addr);
	FT_CHECK(!ret || ret == 1, "fi_av_insert: %zd", ret);
	do {
		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		FT_CHECK(ft_limit_us() < end, "no event");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == sizeof(entry) && event == FI_AV_COMPLETE,
		 "fi_eq_read: %zd, event %u", ret, event);
	FT_CHECK(entry.fid == &av->fid && entry.context == &addr &&
			 entry.data == 1,
		 "fid %p, context %p, data %" PRIu64, (void *) entry.fid,
		 entry.context, entry.data);
	lookup(av, addr, name, len);
	FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&eq->fid));
}

/* ---- sources of messages ----------------------------------------------- */

static void open_peers(const struct ft_attr *attr)
{
	int i, k;

	memset(&pair, 0, sizeof(pair));
	pair.attr = *attr;
	ft_rdm_open(&pair, &pair.dom[0]);
	ft_rdm_open(&pair, &pair.dom[1]);
	ft_rdm_ep_open(&pair, &hub, &pair.dom[0]);
	for (i = 0; i < PEERS; i++) {
		ft_rdm_ep_open(&pair, &peers[i], &pair.dom[1]);
		addrs[i] = ft_rdm_insert(&hub, &peers[i]);
		/*
		 * insert other addresses first, so that hub's address differs
		 */
		for (k = 0; k < i; k++)
			ft_rdm_insert(&peers[i], &peers[k]);
		peers[i].to = ft_rdm_insert(&peers[i], &hub);
		peers[i].peer = &hub;
		if (attr->av_type == FI_AV_TABLE)
			FT_CHECK(addrs[i] == (fi_addr_t) i, "index %" PRIu64,
				 addrs[i]);
	}
}

static void close_peers(void)
{
	int i;

	for (i = 0; i < PEERS; i++)
		ft_ep_close(&peers[i]);
	ft_ep_close(&hub);
	ft_pair_close(&pair);
}

/*
 * Makes progress for all endpoints, also for the hub, which has several peers.
 */
static void poll_all(void)
{
	int i;

	ft_poll(&hub);
	for (i = 0; i < PEERS; i++)
		ft_poll(&peers[i]);
}

#define POST_ALL(call)                                                         \
	do {                                                                   \
		uint64_t end_ = ft_deadline();                                 \
		ssize_t rc_;                                                   \
                                                                               \
		while ((rc_ = (call)) == -FI_EAGAIN) {                         \
			poll_all();                                            \
			FT_CHECK(ft_limit_us() < end_, "%s: still -FI_EAGAIN", \
				 #call);                                       \
		}                                                              \
		FT_CHECK(!rc_, "%s: %zd", #call, rc_);                         \
	} while (0)

static void wait_all(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp)
{
	uint64_t end = ft_deadline();

	while (!ft_take(ep, dir, comp)) {
		poll_all();
		FT_CHECK(ft_limit_us() < end, "no completion");
	}
	FT_CHECK(!comp->err, "error %d", comp->err);
}

static void send_from(int i, size_t len, uint64_t seed, bool tagged)
{
	struct ft_ep *ep = &peers[i];
	char *p = out + (size_t) i * LONG;
	void *desc;

	ft_fill(p, len, seed);
	desc = ft_desc(ep->dom, p, len);
	if (tagged)
		POST_ALL(fi_tsend(ep->ep, p, len, desc, ep->to, 5, p));
	else
		POST_ALL(fi_send(ep->ep, p, len, desc, ep->to, p));
}

static void recv_from(int k, size_t len, fi_addr_t from, bool tagged)
{
	char *p = in + (size_t) k * LONG;
	void *desc;

	memset(p, 0, len);
	desc = ft_desc(hub.dom, p, len);
	if (tagged)
		POST_ALL(fi_trecv(hub.ep, p, len, desc, from, 5, 0, p));
	else
		POST_ALL(fi_recv(hub.ep, p, len, desc, from, p));
}

/* Any receive takes a message; the completion names the message's source. */
static void sources(size_t len, bool tagged)
{
	struct ft_comp comp;
	int i, k, who;

	for (k = 0; k < PEERS * 3; k++) {
		ft_stage("source of message %d, %zu bytes", k, len);
		who = (int) (ft_rand() % PEERS);
		recv_from(0, len, FT_ANY, tagged);
		send_from(who, len, (uint64_t) k, tagged);
		wait_all(&hub, FT_RX, &comp);
		FT_CHECK(comp.src == addrs[who],
			 "from %" PRIu64 ", not %" PRIu64, comp.src,
			 addrs[who]);
		FT_CHECK_BUF(in, len, (uint64_t) k, "from its source");
		wait_all(&peers[who], FT_TX, &comp);
	}
	for (i = 0; i < 2; i++)
		ft_release(&pair.dom[i]);
}

/* Each receive is for one sender; senders send in another order. */
static void directed(size_t len, bool tagged)
{
	struct ft_comp comp;
	int i, k;

	/* tcp of 2.1 gives the early message to the first receive */
	if (!tagged && !ft_rxm() && ft_core("tcp"))
		return;
	ft_stage("receives from one sender, %zu bytes%s", len,
		 tagged ? ", tagged" : "");
	/* one message comes before its receive is posted */
	send_from(2, len, 2, tagged);
	for (i = 0; i < 20; i++)
		poll_all();
	for (i = 0; i < PEERS; i++)
		recv_from(i, len, addrs[i], tagged);
	for (i = PEERS - 1; i >= 0; i--) {
		if (i != 2)
			send_from(i, len, (uint64_t) i, tagged);
	}
	for (k = 0; k < PEERS; k++) {
		wait_all(&hub, FT_RX, &comp);
		i = (int) (((char *) comp.ctx - in) / LONG);
		FT_CHECK(i >= 0 && i < PEERS, "context %p", comp.ctx);
		FT_CHECK(comp.src == addrs[i], "from %" PRIu64, comp.src);
		FT_CHECK_BUF(comp.ctx, len, (uint64_t) i, "from its sender");
	}
	for (i = 0; i < PEERS; i++)
		wait_all(&peers[i], FT_TX, &comp);
	for (i = 0; i < 2; i++)
		ft_release(&pair.dom[i]);
}

static void talk(enum fi_av_type type, bool tagged)
{
	static const size_t sizes[] = { 16, LEN, LONG };
	struct ft_attr attr = FT_ATTR;
	size_t i;

	attr.caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV |
		    (tagged ? FI_TAGGED : 0);
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.av_type = type;
	open_peers(&attr);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		sources(sizes[i], tagged);
		/* net (1.17) matches senders only by tagged receives */
		if (tagged || !ft_core("net"))
			directed(sizes[i], tagged);
	}
	ft_check_idle(&pair.dom[0], "talked");
	ft_check_idle(&pair.dom[1], "talked");
	if (!tagged)
		with_events();
	close_peers();
}

/* The source of an unknown peer's message is FI_ADDR_NOTAVAIL. */
static void strangers(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_comp comp;

	ft_stage("a message from an unknown source");
	attr.caps = FI_MSG | FI_SOURCE;
	open_peers(&attr);
	FT_CALL(fi_av_remove(hub.av, &addrs[1], 1, 0));
	recv_from(0, LEN, FT_ANY, false);
	send_from(1, LEN, 1, false);
	wait_all(&hub, FT_RX, &comp);
	FT_CHECK(comp.src == FI_ADDR_NOTAVAIL, "from %" PRIu64, comp.src);
	FT_CHECK_BUF(in, LEN, 1, "from a stranger");
	wait_all(&peers[1], FT_TX, &comp);
	ft_release_pair(&pair);
	close_peers();
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (!ft_rdm())
		ft_skip("%s: connected endpoints", ft_opts.prov);
	out = ft_map(NULL, PEERS * LONG);
	in = ft_map(NULL, PEERS * LONG);
	talk(FI_AV_TABLE, false);
	talk(FI_AV_MAP, true);
	strangers();
	ft_unmap(out, PEERS * LONG);
	ft_unmap(in, PEERS * LONG);
	return ft_done();
}
