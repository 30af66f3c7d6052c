/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_cm: tests connections of endpoints with conditional writes: sides
 * with and without conditional writes, in every combination; the application's
 * private data, which arrive unchanged; and a peer that violates the protocol
 * in any byte, whose connection ends while other connections go on.
 */
#include "fakes/clock.h"
#include "cw/cw_raw.h"

#include <poll.h>
#include <pthread.h>

#define DATA_MAX 64

static char buf[4096];

static void check_data(const struct raw_event *event, uint8_t seed, size_t len,
		       const char *what)
{
	size_t i;

	/* some cores pad private data */
	FT_CHECK(event->len == len || (ft_core("verbs") && event->len > len),
		 "%s: %zu bytes of private data, not %zu", what, event->len,
		 len);
	for (i = 0; i < len; i++)
		FT_CHECK(event->cm.data[i] == (uint8_t) (seed + i),
			 "%s: byte %zu of private data", what, i);
}

static void listen_at(struct raw_side *s, bool cw, void *name, size_t *len)
{
	struct fi_mrrc_cw_attr most = { .size = sizeof(most) };

	raw_open_fabric(s, ft_opts.prov, NULL, 0);
	FT_CALL(fi_passive_ep(s->fabric, s->info, &s->pep, NULL));
	FT_CALL(fi_pep_bind(s->pep, &s->eq->fid, 0));
	if (cw) {
		FT_CALL(fi_cw_enable(&s->pep->fid, 0));
		FT_CALL(fi_cw_query(&s->pep->fid, &most));
		FT_CHECK(most.cm_data_size == RAW_MARK && !most.iov_limit,
			 "%zu bytes of private data, %zu buffers",
			 most.cm_data_size, most.iov_limit);
	}
	FT_CALL(fi_listen(s->pep));
	FT_CALL(fi_getname(&s->pep->fid, name, len));
}

static void transfer(struct raw_side *c, struct raw_side *s, int want)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = fi_cwrite(c->cw, buf, 64, NULL, 0, 1, buf);
	FT_CHECK(ret == want, "fi_cwrite: %zd, not %d", ret, want);
	ret = fi_cwtag(s->cw, buf + 64, 64, NULL, 0, 1, buf + 64);
	FT_CHECK(ret == want, "fi_cwtag: %zd, not %d", ret, want);
	if (want)
		return;
	FT_CHECK(raw_wait_comp(c, s, &entry) == 1, "the write fails");
	FT_CHECK(raw_wait_comp(s, c, &entry) == 1 && entry.len == 64,
		 "the tag fails");
}

/* Both sides' tags differ, long before the control endpoints are connected. */
static void check_tags(struct raw_side *c, struct raw_side *s)
{
	uint64_t tag[2];

	FT_CALL(fi_cw_tag_alloc(c->cw, &tag[0]));
	FT_CALL(fi_cw_tag_alloc(s->cw, &tag[1]));
	FT_CHECK(tag[0] != tag[1], "both sides get tag %#" PRIx64, tag[0]);
}

/*
 * With or without conditional writes on either side, the application's private
 * data arrives, and no other data.
 */
static void combination(bool c_cw, bool s_cw, size_t c_len, size_t s_len)
{
	uint8_t data[DATA_MAX], name[64];
	struct raw_side s = { 0 }, c = { 0 };
	size_t len = sizeof(name), i;
	struct raw_event event;
	ssize_t ret;

	ft_stage("client %d, server %d, %zu and %zu bytes", c_cw, s_cw, c_len,
		 s_len);
	listen_at(&s, true, name, &len);
	raw_open_fabric(&c, ft_opts.prov, name, len);
	raw_open_ep(&c, c.info, c_cw);
	for (i = 0; i < DATA_MAX; i++)
		data[i] = 10 + i;
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, data, c_len));
	if (c_cw) {
		ret = fi_cwrite(c.cw, buf, 1, NULL, 0, 1, NULL);
		FT_CHECK(ret == -FI_EOPBADSTATE, "too early: %zd", ret);
	}
	raw_wait_event(&s, &c, FI_CONNREQ, &event);
	check_data(&event, 10, c_len, "request");
	raw_open_ep(&s, event.cm.info, s_cw);
	if (c_cw && s_cw)
		check_tags(&c, &s);
	for (i = 0; i < DATA_MAX; i++)
		data[i] = 90 + i;
	FT_CALL(fi_accept(s.ep, data, s_len));
	fi_freeinfo(event.cm.info);
	/* from here on no listener of the application is needed */
	FT_CALL(fi_close(&s.pep->fid));
	s.pep = NULL;
	raw_wait_event(&c, &s, FI_CONNECTED, &event);
	check_data(&event, 90, s_len, "acceptance");
	raw_wait_event(&s, &c, FI_CONNECTED, &event);
	transfer(&c, &s, c_cw && s_cw ? 0 : -FI_EOPNOTSUPP);
	raw_close_side(&c);
	raw_close_side(&s);
}

/*
 * ---- a hostile peer, which uses the core alone -----------------------------
 */

/*
 * Makes the application's connection; reads the peer's cookie, and the address
 * where the peer listens
 */
static void raw_join(struct raw_side *c, struct raw_side *s, const void *name,
		     size_t len, uint8_t *cookie, uint8_t *dest)
{
	const uint8_t mark[RAW_MARK] = { 0x4d, 0x43, 0x52, 0x4d, 1, 1 };
	struct raw_event event;

	raw_open_fabric(c, raw_core_name(), name, len);
	raw_open_ep(c, c->info, false);
	FT_CALL(fi_connect(c->ep, c->info->dest_addr, mark, sizeof(mark)));
	raw_wait_event(s, c, FI_CONNREQ, &event);
	raw_open_ep(s, event.cm.info, true);
	FT_CALL(fi_accept(s->ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	raw_wait_event(c, s, FI_CONNECTED, &event);
	FT_CHECK(event.len == RAW_MARK && event.cm.data[5] == 2,
		 "no mark of accept");
	memcpy(cookie, event.cm.data + 8, 8);
	memcpy(dest, name, len);
	memcpy(dest + 2, event.cm.data + 16, 2); /* the port */
	raw_wait_event(s, c, FI_CONNECTED, &event);
}

static void raw_connect(struct raw_side *c, struct raw_side *ctl,
			struct raw_side *s, const void *name, size_t len,
			uint8_t *cookie, bool wrong_cookie)
{
	uint8_t mark[RAW_MARK] = { 0x4d, 0x43, 0x52, 0x4d, 1, 3 };
	struct raw_event event;
	uint8_t dest[64];

	raw_join(c, s, name, len, cookie, dest);
	memcpy(mark + 8, cookie, 8);
	if (wrong_cookie)
		mark[15] ^= 1;
	raw_open_fabric(ctl, raw_core_name(), dest, len);
	raw_open_ep(ctl, ctl->info, false);
	raw_post_room(ctl);
	FT_CALL(fi_connect(ctl->ep, ctl->info->dest_addr, mark, sizeof(mark)));
	if (!wrong_cookie)
		raw_wait_event(ctl, s, FI_CONNECTED, &event);
}

/*
 * The application's own connection works, whatever happened to the control
 * connection.
 */
static void check_apps(struct raw_side *c, struct raw_side *s)
{
	struct fi_cq_data_entry entry = { 0 };
	ssize_t ret;

	FT_CALL(fi_recv(s->ep, buf + 128, 64, NULL, 0, buf + 128));
	FT_CALL(fi_inject(c->ep, "alive", 6, 0));
	ret = raw_wait_comp(s, c, &entry);
	FT_CHECK(ret == 1 && entry.op_context == buf + 128 &&
			 !memcmp(buf + 128, "alive", 6),
		 "the application's connection: %zd", ret);
}

/* Sends only the messages @msg; checks that the server's operations end. */
static void says(const uint8_t *const msg[], const size_t *len, unsigned cnt,
		 struct raw_side *s, const void *name, size_t namelen,
		 bool must_end)
{
	/* the tag that the server's write waits for has an invalid key */
	bool bad_key = must_end && cnt == 2 && msg[1][16] == 1;
	struct fi_cq_data_entry entry;
	struct raw_side c = { 0 }, ctl = { 0 };
	uint8_t cookie[8], copy[512];
	unsigned i;
	ssize_t ret;

	raw_connect(&c, &ctl, s, name, namelen, cookie, false);
	FT_CALL(fi_cwrite(s->cw, buf, 8, NULL, 0, 1, buf));
	for (i = 0; i < cnt; i++) {
		memcpy(copy, msg[i], len[i]);
		/*
		 * the cookie is in network byte order in a mark, and
		 * little-endian in HELLO
		 */
		if (copy[0] == 1 && len[i] == 32)
			memcpy(copy + 24,
			       (uint8_t[]){ cookie[7], cookie[6], cookie[5],
					    cookie[4], cookie[3], cookie[2],
					    cookie[1], cookie[0] },
			       8);
		ret = fi_inject(ctl.ep, copy, len[i], 0);
		/* the connection may have ended already */
		if (ret)
			break;
		raw_progress(&ctl);
	}
	if (must_end) {
		ret = raw_wait_comp(s, &ctl, &entry);
		/*
		 * tcp reports a write as complete when the write is sent, and
		 * the write fails afterwards
		 */
		if (ret == 1 && bad_key && ft_core("tcp")) {
			ret = fi_cwtag(s->cw, buf, 8, NULL, 0, 2, buf);
			ret = ret == -FI_ENOTCONN ?
				      -FI_ECONNABORTED :
				      raw_wait_comp(s, &ctl, &entry);
		}
		FT_CHECK(ret == -FI_ECONNABORTED, "it goes on: %zd", ret);
		ret = fi_cwrite(s->cw, buf, 8, NULL, 0, 1, buf);
		FT_CHECK(ret == -FI_ENOTCONN, "after the end: %zd", ret);
	}
	check_apps(&c, s);
	raw_close_side(&ctl);
	raw_close_ep(s);
	if (!must_end) {
		ret = raw_wait_comp(s, NULL, &entry);
		FT_CHECK(ret == -FI_ECANCELED || ret == -FI_ECONNABORTED,
			 "closed: %zd", ret);
	}
	raw_close_side(&c);
}

/* Tests a pair that keeps to the protocol, on the same listener. */
static void honest(struct raw_side *s, const void *name, size_t len)
{
	struct raw_side c = { 0 };
	struct raw_event event;

	raw_open_fabric(&c, ft_opts.prov, name, len);
	raw_open_ep(&c, c.info, true);
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, NULL, 0));
	raw_wait_event(s, &c, FI_CONNREQ, &event);
	raw_open_ep(s, event.cm.info, true);
	FT_CALL(fi_accept(s->ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	raw_wait_event(&c, s, FI_CONNECTED, &event);
	raw_wait_event(s, &c, FI_CONNECTED, &event);
	transfer(&c, s, 0);
	raw_close_side(&c);
	raw_close_ep(s);
}

static void strangers(struct raw_side *s, const void *name, size_t len)
{
	struct raw_side c = { 0 }, ctl = { 0 };
	/* this entry has no room for data */
	struct fi_eq_err_entry err = { 0 };
	uint64_t end = ft_deadline();
	struct fi_eq_cm_entry entry;
	uint8_t cookie[8];
	uint32_t event;
	ssize_t ret;

	ft_stage("a wrong cookie");
	raw_connect(&c, &ctl, s, name, len, cookie, true);
	while ((ret = fi_eq_read(ctl.eq, &event, &entry, sizeof(entry), 0)) ==
	       -FI_EAGAIN) {
		raw_progress(s);
		FT_CHECK(ft_limit_us() < end, "no answer");
	}
	FT_CHECK(ret == -FI_EAVAIL, "a stranger is let in");
	fi_eq_readerr(ctl.eq, &err, 0);
	raw_close_side(&ctl);
	raw_close_ep(s);
	raw_close_side(&c);
}

/* A connection request whose mark claims more private data than arrived. */
static void lying_mark(struct raw_side *s, const void *name, size_t len)
{
	const uint8_t mark[RAW_MARK] = { 0x4d, 0x43, 0x52, 0x4d, 1, 1, 1, 44 };
	struct raw_side c = { 0 };
	struct raw_event event;

	ft_stage("a mark that lies");
	raw_open_fabric(&c, raw_core_name(), name, len);
	raw_open_ep(&c, c.info, false);
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, mark, sizeof(mark)));
	raw_wait_event(s, &c, FI_CONNREQ, &event);
	FT_CHECK(event.len < RAW_DATA && !memcmp(event.cm.data, mark, RAW_MARK),
		 "%zu bytes of private data", event.len);
	FT_CALL(fi_reject(s->pep, event.cm.info->handle, NULL, 0));
	fi_freeinfo(event.cm.info);
	raw_close_side(&c);
}

static void hostile(void)
{
	uint8_t name[64], h[32], bad[64], t[64];
	const uint8_t *msg[3] = { h, bad, NULL };
	size_t len = sizeof(name), i, lens[3];
	struct raw_side s = { 0 };
	unsigned bit;

	listen_at(&s, true, name, &len);
	honest(&s, name, len);
	strangers(&s, name, len);
	lying_mark(&s, name, len);
	lens[0] = raw_hello(h, 0);
	lens[1] = raw_tag(t, 1);
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
	/* flip a bit of each byte of a tag's message, one byte at a time */
	for (i = 0; i < 64; i++) {
		bit = ft_rand() % 8;
		raw_tag(bad, 1);
		bad[i] ^= 1 << bit;
		ft_stage("byte %zu, bit %u", i, bit);
		/* the peer chooses identity, tag, address and key freely */
		if ((i >= 8 && i < 24) || (i >= 40 && i < 56))
			continue;
		lens[1] = 64;
		says(msg, lens, 2, &s, name, len, true);
	}
	ft_stage("a message too short");
	raw_tag(bad, 1);
	lens[1] = 40;
	says(msg, lens, 2, &s, name, len, true);
	ft_stage("empty");
	lens[1] = 0;
	says(msg, lens, 2, &s, name, len, true);
	ft_stage("a key of nothing");
	raw_tag(bad, 1);
	raw_put(bad + 16, 1, 8);
	lens[1] = 64;
	says(msg, lens, 2, &s, name, len, true);
	ft_stage("an honest peer, afterwards");
	honest(&s, name, len);
	raw_close_side(&s);
}

/*
 * Sleeps on the CQ's descriptor until an operation completes. Whenever nothing
 * wakes the thread, the test's clock advances by a second. Returns the seconds
 * of the sleep.
 */
static unsigned sleep_for(struct raw_side *s, struct fi_cq_err_entry *err)
{
	struct fid *fid = &s->cq->fid;
	struct fi_cq_data_entry entry;
	struct pollfd pfd = { .events = POLLIN };
	unsigned wakes = 0, seconds = 0, tries;
	ssize_t ret;

	FT_CALL(fi_control(fid, FI_GETWAIT, &pfd.fd));
	while ((ret = fi_cq_read(s->cq, &entry, 1)) == -FI_EAGAIN) {
		FT_CHECK(wakes < 100, "woken again and again");
		if (fi_trywait(s->fabric, &fid, 1))
			continue;
		if (poll(&pfd, 1, 0)) {
			wakes++;
			continue;
		}
		FT_CHECK(seconds < 60, "the sleeping thread is not woken");
		clock_advance(1000000);
		seconds++;
	}
	FT_CHECK(ret == -FI_EAVAIL && fi_cq_readerr(s->cq, err, 0) == 1,
		 "fi_cq_read: %zd", ret);
	/* the provider may be at work on its listener at this moment */
	for (tries = 0; tries < 100; tries++) {
		if (!fi_trywait(s->fabric, &fid, 1) && !poll(&pfd, 1, 0))
			break;
	}
	FT_CHECK(tries < 100, "the descriptor stays ready");
	return seconds;
}

/* A control connection never comes, and no thread makes progress */
static void silent(void)
{
	uint8_t name[64], cookie[8], dest[64];
	struct raw_side s = { 0 }, c = { 0 };
	struct fi_cq_err_entry err = { 0 };
	size_t len = sizeof(name);
	unsigned seconds;

	ft_stage("a control connection that does not come");
	raw_threading = FI_THREAD_DOMAIN;
	raw_wait_obj = FI_WAIT_FD;
	listen_at(&s, true, name, &len);
	raw_join(&c, &s, name, len, cookie, dest);
	clock_stop(true);
	FT_CALL(fi_cwrite(s.cw, buf, 8, NULL, 0, 1, buf));
	seconds = sleep_for(&s, &err);
	clock_stop(false);
	FT_CHECK(err.err == FI_ECONNABORTED && err.op_context == buf,
		 "error %d", err.err);
	FT_CHECK(seconds >= 30 && seconds < 32, "after %u s", seconds);
	raw_close_side(&c);
	raw_close_side(&s);
	raw_threading = FI_THREAD_UNSPEC;
	raw_wait_obj = FI_WAIT_NONE;
}

/*
 * A connection request that could not be accepted is unchanged; an accepted
 * request cannot be accepted again.
 */
static void accept_again(void)
{
	uint8_t name[64], data[256] = { 0 };
	struct raw_side s = { 0 }, c = { 0 };
	size_t len = sizeof(name);
	struct raw_event event;
	ssize_t ret;

	ft_stage("accept once more");
	listen_at(&s, true, name, &len);
	raw_open_fabric(&c, ft_opts.prov, name, len);
	raw_open_ep(&c, c.info, true);
	ret = fi_connect(c.ep, c.info->dest_addr, data, sizeof(data));
	FT_CHECK(ret == -FI_EINVAL, "too much private data: %zd", ret);
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, NULL, 0));
	raw_wait_event(&s, &c, FI_CONNREQ, &event);
	raw_open_ep(&s, event.cm.info, true);
	/*
	 * the core would allow private data of this length, which leave no room
	 * for the mark
	 */
	ret = fi_accept(s.ep, data, sizeof(data));
	FT_CHECK(ret == -FI_EINVAL, "too much private data: %zd", ret);
	ret = fi_cwtag(s.cw, buf, 8, NULL, 0, 1, buf);
	FT_CHECK(ret == -FI_EOPBADSTATE, "not accepted: %zd", ret);
	FT_CALL(fi_accept(s.ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	raw_wait_event(&c, &s, FI_CONNECTED, &event);
	raw_wait_event(&s, &c, FI_CONNECTED, &event);
	FT_CHECK(fi_accept(s.ep, NULL, 0), "accepted once more");
	transfer(&c, &s, 0);
	raw_close_side(&c);
	raw_close_side(&s);
}

static void *sleep_main(void *arg)
{
	struct raw_side *side = arg;
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;
	ssize_t ret;

	ret = fi_eq_sread(side->eq, &event, &entry, sizeof(entry), 30000, 0);
	FT_CHECK(ret == sizeof(entry) && event == FI_CONNECTED,
		 "event %u, %zd bytes", event, ret);
	return NULL;
}

/* A thread already sleeps for events when conditional writes are enabled. */
static void asleep(void)
{
	uint8_t name[64];
	struct raw_side s = { 0 }, c = { 0 };
	size_t len = sizeof(name);
	struct raw_event event;
	pthread_t thread;

	ft_stage("asleep before");
	listen_at(&s, true, name, &len);
	raw_open_fabric(&c, ft_opts.prov, name, len);
	FT_CHECK(!pthread_create(&thread, NULL, sleep_main, &c), "thread");
	ft_wait_quiet();
	raw_open_ep(&c, c.info, true);
	FT_CALL(fi_connect(c.ep, c.info->dest_addr, NULL, 0));
	raw_wait_event(&s, NULL, FI_CONNREQ, &event);
	raw_open_ep(&s, event.cm.info, true);
	FT_CALL(fi_accept(s.ep, NULL, 0));
	fi_freeinfo(event.cm.info);
	raw_wait_event(&s, NULL, FI_CONNECTED, &event);
	pthread_join(thread, NULL);
	transfer(&c, &s, 0);
	raw_close_side(&c);
	raw_close_side(&s);
}

int main(int argc, char **argv)
{
	unsigned i;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm())
		ft_skip("of connected endpoints");
	for (i = 0; i < 16; i++)
		combination(i & 1, i & 2, i & 4 ? 33 : 0, i & 8 ? 7 : 0);
	hostile();
	if (ft_core("tcp")) {
		accept_again();
		asleep();
		silent();
	}
	return ft_done();
}
