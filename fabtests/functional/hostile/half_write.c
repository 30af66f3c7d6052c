/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_half_write: tests a peer's write or read that is half transferred
 * when the target frees the memory. A relay between the sides stops the
 * transfer. The memory is freed and its block ended, and other memory is mapped
 * at the same address if the system allows that. When the relay goes on, the
 * other memory may neither change nor be read, and the target goes on running.
 */
#include "ft_mrrc.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define LEN	 ((size_t) 4 << 20)
#define READ_LEN ((size_t) 16 << 20) /* more bytes than sockets hold */
/* bytes of a write's header in tcp's protocol */
#define HDR    40
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define FRESH  4
#define OLD    1
#define SECRET 1000

static struct ft_pair pair;
static char *out; /* READ_LEN bytes of the client */

/* ---- the relay ----------------------------------------------------------- */

enum { TO_SERVER, TO_CLIENT };

/* The relay: one connection at a time, in a separate thread. */
static struct relay {
	int listener;
	struct sockaddr_in server;
	/* number of bytes that the relay may pass on; SIZE_MAX: all */
	atomic_size_t left[2];
	atomic_bool stop;
	pthread_t thread;
} relay;

static bool send_all(int fd, const char *buf, size_t len)
{
	ssize_t ret;

	for (; len; buf += ret, len -= ret) {
		ret = send(fd, buf, len, MSG_NOSIGNAL);
		if (ret <= 0)
			return false;
	}
	return true;
}

static bool relay_some(int from, int to, atomic_size_t *left)
{
	static char buf[1 << 16];
	size_t most = atomic_load(left);
	ssize_t len;

	len = recv(from, buf, most < sizeof(buf) ? most : sizeof(buf), 0);
	if (len <= 0)
		return false;
	if (most != SIZE_MAX)
		atomic_fetch_sub(left, (size_t) len);
	return send_all(to, buf, len);
}

static void relay_pass(int client, int server)
{
	struct pollfd fd[2] = { { .fd = client }, { .fd = server } };
	const int to[2] = { server, client };
	int i;

	while (!atomic_load(&relay.stop)) {
		for (i = 0; i < 2; i++)
			fd[i].events = atomic_load(&relay.left[i]) ? POLLIN : 0;
		if (poll(fd, 2, 1) <= 0)
			continue;
		for (i = 0; i < 2; i++) {
			if (fd[i].revents && !fd[i].events)
				return;
			if (fd[i].revents &&
			    !relay_some(fd[i].fd, to[i], &relay.left[i]))
				return;
		}
	}
}

static void *relay_run(void *arg)
{
	struct pollfd fd = { .fd = relay.listener, .events = POLLIN };
	int client, server;

	while (!atomic_load(&relay.stop)) {
		if (poll(&fd, 1, 1) <= 0)
			continue;
		client = accept(relay.listener, NULL, NULL);
		server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		FT_CHECK(client >= 0 && server >= 0, "sockets");
		if (!connect(server, (struct sockaddr *) &relay.server,
			     sizeof(relay.server)))
			relay_pass(client, server);
		close(server);
		close(client);
	}
	return NULL;
}

/* Starts the relay; name becomes the relay's name in place of the server's. */
static void relay_start(struct sockaddr_in *name)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(own);

	relay.server = *name;
	relay.left[TO_SERVER] = relay.left[TO_CLIENT] = SIZE_MAX;
	relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FT_CHECK(relay.listener >= 0, "socket");
	FT_CHECK(!bind(relay.listener, (struct sockaddr *) &own, sizeof(own)) &&
			 !listen(relay.listener, 8) &&
			 !getsockname(relay.listener, (struct sockaddr *) &own,
				      &len),
		 "a listener: %s", strerror(errno));
	FT_CHECK(!pthread_create(&relay.thread, NULL, relay_run, NULL),
		 "pthread_create");
	*name = own;
}

static void relay_end(void)
{
	atomic_store(&relay.stop, true);
	pthread_join(relay.thread, NULL);
	close(relay.listener);
}

static void open_pair(void)
{
	struct ft_attr attr = FT_ATTR;
	struct sockaddr_in name;
	size_t len = sizeof(name), i;
	char hex[FT_HEX_MAX];
	struct ft_pair client;

	ft_listen(&pair, &attr);
	FT_CALL(fi_getname(&pair.pep->fid, &name, &len));
	FT_CHECK(len == sizeof(name), "a name of %zu bytes", len);
	relay_start(&name);
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *) &name)[i]);
	ft_client_open(&client, &attr, hex);
	pair.dom[1] = client.dom[1];
	ft_connect(&pair, &pair.s, &pair.c);
}

/* ---- memory that is freed ------------------------------------------------ */

struct target {
	char *buf;
	size_t len;
	uint64_t raddr, key;
	struct fid_mr_heap *heap;
};

static void describe(struct target *target)
{
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };

	FT_CALL(fi_mr_query(pair.dom[0].domain, target->buf, &attr));
	target->raddr = attr.raddr;
	target->key = attr.key;
	ft_fill(target->buf, target->len, OLD);
}

static void get(struct target *target, uint64_t flags)
{
	FT_CALL(fi_mr_alloc(pair.dom[0].domain, target->len, REMOTE, flags,
			    (void **) &target->buf, NULL));
	describe(target);
}

static void get_isolated(struct target *target)
{
	get(target, FI_MR_ALLOC_ISOLATED);
}

static void get_shared(struct target *target)
{
	get(target, 0);
}

static void get_huge(struct target *target)
{
	get(target, FI_MR_ALLOC_HUGE(21));
}

static void get_heap(struct target *target)
{
	struct fi_mr_heap_attr attr = {
		.size = sizeof(attr),
		.access = REMOTE,
		.numa_node = FI_MR_HEAP_NODE(0),
	};

	FT_CALL(fi_mr_heap_open(pair.dom[0].domain, &attr, &target->heap,
				NULL));
	FT_CALL(fi_mr_heap_alloc(target->heap, target->len, 0,
				 (void **) &target->buf, NULL));
	describe(target);
}

static void put_free(struct target *target)
{
	FT_CALL(fi_mr_free(pair.dom[0].domain, target->buf));
}

static void put_trim(struct target *target)
{
	put_free(target);
	FT_CALL(fi_mr_trim(pair.dom[0].domain));
}

static void put_heap(struct target *target)
{
	FT_CALL(fi_mr_heap_close(target->heap));
}

static const struct way {
	const char *name;
	void (*get)(struct target *target);
	void (*put)(struct target *target);
} ways[] = {
	{ "isolated", get_isolated, put_free },
	{ "of a block, trimmed", get_shared, put_trim },
	{ "of huge pages, trimmed", get_huge, put_trim },
	{ "of a heap, closed", get_heap, put_heap },
};

/*
 * ---- other memory, mapped afterwards ---------------------------------------
 */

struct fresh {
	char *buf;
	bool mapped;
};

/* Maps other memory, at the freed address if possible. */
static void fresh_get(struct fresh *fresh, const struct target *target)
{
	const size_t len = target->len;
	int i;

	for (i = 0; i < FRESH; i++) {
		fresh[i].mapped = i < FRESH / 2;
		if (!i && ft_map_hole(target->buf, len)) {
			fresh[i].buf = target->buf;
			ft_log("the address can be had");
		} else if (fresh[i].mapped) {
			fresh[i].buf = ft_map(NULL, len);
		} else {
			FT_CALL(fi_mr_alloc(pair.dom[0].domain, len, REMOTE,
					    i % 2 ? FI_MR_ALLOC_ISOLATED : 0,
					    (void **) &fresh[i].buf, NULL));
		}
		ft_fill(fresh[i].buf, len, SECRET + i);
	}
}

static void fresh_check(const struct fresh *fresh, size_t len)
{
	int i;

	for (i = 0; i < FRESH; i++)
		FT_CHECK_BUF(fresh[i].buf, len, SECRET + i,
			     "memory that a peer wrote over");
}

static void fresh_put(const struct fresh *fresh, size_t len)
{
	int i;

	for (i = 0; i < FRESH; i++) {
		if (fresh[i].mapped)
			ft_unmap(fresh[i].buf, len);
		else
			FT_CALL(fi_mr_free(pair.dom[0].domain, fresh[i].buf));
	}
	FT_CALL(fi_mr_trim(pair.dom[0].domain));
}

/* ---- transfers ----------------------------------------------------------- */

static void relay_go(void)
{
	struct ft_comp comp;

	atomic_store(&relay.left[TO_SERVER], SIZE_MAX);
	atomic_store(&relay.left[TO_CLIENT], SIZE_MAX);
	ft_wait_any(&pair.c, FT_TX, &comp);
	ft_log("it ends with %d", comp.err);
	if (comp.err)
		ft_reconnect(&pair);
}

static void post_write(const struct target *target)
{
	void *desc = ft_desc(&pair.dom[1], out, target->len);
	const struct fi_rma_iov rma = { target->raddr, target->len,
					target->key };
	const struct iovec iov = { out, target->len };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = out,
	};

	FT_POST(&pair.c, fi_writemsg(pair.c.ep, &msg,
				     FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

/* All bytes of a write but the last @rest arrive before the memory is freed. */
static void half_write(const struct way *way, size_t rest)
{
	const uint64_t end = ft_deadline();
	struct target target = { .len = LEN };
	struct fresh fresh[FRESH];
	size_t seen;

	ft_stage("a write into memory that is %s, the last %zu bytes late",
		 way->name, rest);
	way->get(&target);
	ft_fill(out, LEN, SECRET + FRESH);
	atomic_store(&relay.left[TO_SERVER], HDR + LEN - rest);
	post_write(&target);
	/*
	 * wait for whole pages: the target reads the rest only together with
	 * later bytes
	 */
	for (seen = 0; seen + FT_PAGE <= LEN - rest; seen += FT_PAGE) {
		while (memcmp(target.buf + seen, out + seen, FT_PAGE)) {
			ft_progress(&pair.c);
			FT_CHECK(ft_limit_us() < end, "%zu bytes came", seen);
		}
	}
	way->put(&target);
	fresh_get(fresh, &target);
	relay_go();
	fresh_check(fresh, LEN);
	fresh_put(fresh, LEN);
}

__attribute__((unused)) static void half_read(const struct way *way)
{
	struct target target = { .len = READ_LEN };
	struct fresh fresh[FRESH];
	size_t at;
	int i;

	ft_stage("a read of memory that is %s", way->name);
	way->get(&target);
	memset(out, 0, READ_LEN);
	atomic_store(&relay.left[TO_CLIENT], LEN / 4);
	FT_POST(&pair.c, fi_read(pair.c.ep, out, READ_LEN,
				 ft_desc(&pair.dom[1], out, READ_LEN),
				 pair.c.to, target.raddr, target.key, out));
	/* go on until sockets hold no more */
	while (atomic_load(&relay.left[TO_CLIENT]))
		ft_progress(&pair.c);
	for (i = 0; i < 100; i++) {
		ft_progress(&pair.c);
		usleep(1000);
	}
	way->put(&target);
	fresh_get(fresh, &target);
	relay_go();
	for (i = 0; i < FRESH; i++) {
		for (at = 0; at < READ_LEN; at += FT_PAGE)
			FT_CHECK(memcmp(out + at, fresh[i].buf + at, FT_PAGE),
				 "a peer read what came after it, at %zu", at);
	}
	fresh_put(fresh, READ_LEN);
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(ways) / sizeof(ways[0]);
	size_t i;

	ft_init(argc, argv);
	if (!ft_core("tcp") || ft_rdm())
		ft_skip("its relay speaks for connections over tcp");
	if (ft_opts.raw && !getenv("FI_HOOK"))
		ft_skip("a raw core allocates nothing");
	if (ft_valgrind())
		ft_skip("valgrind reports what the core is asked to do");
	out = ft_map(NULL, READ_LEN);
	open_pair();
	for (i = 0; i < count; i++) {
		half_write(&ways[i], LEN / 2);
#ifndef __SANITIZE_ADDRESS__
		/*
		 * AddressSanitizer makes freed addresses inaccessible: the
		 * core, which copies a short rest of a write itself, would stop
		 * without an error.
		 */
		half_write(&ways[i], 1000);
		half_read(&ways[i]);
#endif
	}
	ft_release(&pair.dom[1]);
	ft_pair_close(&pair);
	relay_end();
	ft_unmap(out, READ_LEN);
	return ft_done();
}
