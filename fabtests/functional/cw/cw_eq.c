/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_eq: tests event queues of endpoints with conditional writes.
 * Events that the application writes are unchanged, for any object and length;
 * and an endpoint may close while another thread reads one of its events.
 */
#include "ft_mrrc.h"
#include "ft_conn.h"

#include <pthread.h>
#include <stdatomic.h>

#define LONG 1000

static struct ft_pair pair;
static atomic_bool stop;
static atomic_uint connected;

static void check_event(struct fid_eq *eq, uint32_t event, const void *data,
			size_t len, uint64_t flags)
{
	char room[2 * LONG + 1];
	char *buf = room + 1; /* unaligned */
	uint32_t got = 77;
	ssize_t ret;

	memset(room, 0x55, sizeof(room));
	ret = fi_eq_read(eq, &got, buf, 2 * LONG, flags);
	FT_CHECK(ret == (ssize_t) len && got == event,
		 "event %u: %zd bytes of event %u, not %zu", event, ret, got,
		 len);
	FT_CHECK(!memcmp(buf, data, len), "event %u was changed", event);
	FT_CHECK(buf[len] == 0x55, "more was written");
}

static void own_event(struct fid_eq *eq, uint32_t event, const void *data,
		      size_t len)
{
	ssize_t ret;

	ft_stage("event %u of the application's, %zu bytes", event, len);
	ret = fi_eq_write(eq, event, data, len, 0);
	FT_CHECK(ret == (ssize_t) len, "fi_eq_write: %zd", ret);
	check_event(eq, event, data, len, FI_PEEK);
	check_event(eq, event, data, len, 0);
}

static void own_events(struct fid_eq *eq)
{
	char data[LONG];
	struct fi_eq_cm_entry cm = {
		.fid = (struct fid *) 0x1234,
		.info = (struct fi_info *) 0x5678,
	};
	size_t len;
	uint32_t event;

	for (event = FI_NOTIFY; event <= FI_JOIN_COMPLETE; event++) {
		ft_fill(data, sizeof(data), event);
		memcpy(data, &cm, sizeof(cm));
		own_event(eq, event, data, 1);
		own_event(eq, event, data, sizeof(struct fi_eq_entry));
		own_event(eq, event, data, sizeof(cm));
		for (len = 500; len < 600; len++)
			own_event(eq, event, data, len);
		own_event(eq, event, data, LONG);
	}
}

/*
 * The provider does not read the application's memory for an event that the
 * application writes, even if a listener is bound to the event queue.
 */
static void beside_a_listener(void)
{
	struct fi_eq_attr eq_attr = {
		.flags = FI_WRITE,
		.wait_obj = FI_WAIT_UNSPEC,
	};
	struct ft_attr attr = FT_ATTR;
	struct ft_dom dom = { 0 };
	struct fid_pep *pep;
	struct fid_eq *eq;

	dom.info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(dom.info->fabric_attr, &dom.fabric, NULL));
	FT_CALL(fi_eq_open(dom.fabric, &eq_attr, &eq, NULL));
	FT_CALL(fi_passive_ep(dom.fabric, dom.info, &pep, NULL));
	FT_CALL(fi_pep_bind(pep, &eq->fid, 0));
	FT_CALL(fi_cw_enable(&pep->fid, 0));
	own_events(eq);
	FT_CALL(fi_close(&pep->fid));
	FT_CALL(fi_close(&eq->fid));
	FT_CALL(fi_close(&dom.fabric->fid));
	fi_freeinfo(dom.info);
}

static void *read_main(void *arg)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	unsigned *seen = arg;
	uint32_t event;
	ssize_t ret;

	while (!atomic_load(&stop)) {
		ret = fi_eq_read(pair.s.eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL)
			ret = fi_eq_readerr(pair.s.eq, &err, 0);
		*seen += ret > 0;
	}
	return NULL;
}

/*
 * A thread reads an event from the queue while the event's object closes. Even
 * with FI_THREAD_DOMAIN a separate thread may read the event queue, which
 * belongs to the fabric.
 */
static void closing(enum fi_threading threading)
{
	unsigned i, k, seen = 0, n = ft_races(300);
	struct ft_attr attr = FT_ATTR;
	struct ft_comp comp;
	pthread_t reader;
	char bytes[2] = "a";

	attr.cw = attr.cw_pep = true;
	attr.threading = threading;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < n; i++) {
		ft_stage("closing, threading %d, round %u", threading, i);
		atomic_store(&stop, false);
		FT_CHECK(!pthread_create(&reader, NULL, read_main, &seen),
			 "thread");
		FT_CALL(fi_close(&pair.c.ep->fid));
		pair.c.ep = NULL;
		for (k = ft_rand() % 100; k; k--)
			ft_poll(&pair.s);
		FT_CALL(fi_close(&pair.s.ep->fid));
		pair.s.ep = NULL;
		atomic_store(&stop, true);
		pthread_join(reader, NULL);
		ft_reconnect(&pair);
	}
	ft_log("%u events in %u rounds", seen, n);
	/*
	 * The write shows that the connection still works, and makes sure that
	 * the connection is accepted: tcp (1.17) leaks a connection that is
	 * half accepted when its event queue closes.
	 */
	FT_CALL(fi_cwrite(pair.c.cw, bytes, 1, NULL, 0, 1, NULL));
	FT_CALL(fi_cwtag(pair.s.cw, bytes + 1, 1, NULL, 0, 1, NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(bytes[1] == 'a', "conditional write");
	ft_pair_close(&pair);
}

static void wait_event(struct fid_eq *eq, uint32_t want,
		       struct fi_eq_cm_entry *entry)
{
	uint64_t end = ft_deadline();
	uint32_t event;
	ssize_t ret;

	do {
		FT_CHECK(ft_limit_us() < end, "no event %u", want);
		ret = fi_eq_read(eq, &event, entry, sizeof(*entry), 0);
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret >= (ssize_t) sizeof(*entry) && event == want,
		 "event %u, not %u: %zd", event, want, ret);
}

static void *connected_main(void *arg)
{
	struct fi_eq_cm_entry entry;
	struct ft_ep *ep = arg;

	wait_event(ep->eq, FI_CONNECTED, &entry);
	FT_CHECK(entry.fid == &ep->ep->fid, "FI_CONNECTED for another fid");
	atomic_fetch_add(&connected, 1);
	return NULL;
}

static void open_end(struct ft_ep *ep, struct ft_dom *dom, struct fi_info *info)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	ft_ep_init(&pair, ep, dom);
	FT_CALL(fi_eq_open(dom->fabric, &attr, &ep->eq, NULL));
	FT_CALL(fi_endpoint(dom->domain, info, &ep->ep, ep));
	FT_CALL(fi_cw_open(ep->ep, &ep->cw));
	FT_CALL(fi_ep_bind(ep->ep, &ep->eq->fid, 0));
	ft_bind_queues(&pair, ep);
	FT_CALL(fi_cw_enable(&ep->ep->fid, 0));
	FT_CALL(fi_enable(ep->ep));
}

static void transfer(struct ft_ep *from, struct ft_ep *to, char *out, char *in)
{
	struct ft_comp comp;

	*in = 0;
	FT_CALL(fi_cwrite(from->cw, out, 1, NULL, 0, 1, NULL));
	FT_CALL(fi_cwtag(to->cw, in, 1, NULL, 0, 1, NULL));
	ft_wait(from, FT_TX, &comp);
	ft_wait(to, FT_RX, &comp);
	FT_CHECK(*in == *out, "conditional write");
}

/*
 * Separate threads read the queues of a connection that is being made, while
 * the thread of the domain works on another connection.
 */
static void connecting(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_eq_cm_entry entry;
	unsigned i, n = ft_races(60);
	pthread_t reader[2];
	char bytes[2] = "a";
	struct ft_ep s, c;

	attr.cw = attr.cw_pep = true;
	attr.threading = FI_THREAD_DOMAIN;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < n; i++) {
		ft_stage("connecting, round %u", i);
		atomic_store(&connected, 0);
		open_end(&c, &pair.dom[1], pair.dom[1].info);
		FT_CALL(fi_connect(c.ep, pair.dom[1].info->dest_addr, NULL, 0));
		FT_CHECK(!pthread_create(&reader[0], NULL, connected_main, &c),
			 "thread");
		wait_event(pair.peq, FI_CONNREQ, &entry);
		open_end(&s, &pair.dom[0], entry.info);
		s.peer = &c;
		FT_CHECK(!pthread_create(&reader[1], NULL, connected_main, &s),
			 "thread");
		FT_CALL(fi_accept(s.ep, NULL, 0));
		fi_freeinfo(entry.info);
		while (atomic_load(&connected) < 2)
			transfer(&pair.c, &pair.s, bytes, bytes + 1);
		pthread_join(reader[0], NULL);
		pthread_join(reader[1], NULL);
		c.peer = &s;
		transfer(&c, &s, bytes, bytes + 1);
		ft_ep_close(&s);
		ft_ep_close(&c);
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm())
		ft_skip("of connected endpoints");
	beside_a_listener();
	closing(FI_THREAD_SAFE);
	closing(FI_THREAD_DOMAIN);
	connecting();
	return ft_done();
}
