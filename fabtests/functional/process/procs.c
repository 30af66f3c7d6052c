/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_procs: tests server and client in processes of their own, with
 * transfers in both directions. Then a client is killed in the middle of its
 * transfers: the server gets each operation back once, closes the client's
 * objects, and serves the next client. At the end the server serves several
 * clients at once.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <sys/wait.h>

#define LEN	(16 * FT_PAGE)
#define WINDOW	16
#define CLIENTS 4

#define REPLY_FD 3 /* descriptor of the client's process */

/*
 * The name of the server's listener or endpoint, which the client needs; also
 * the client's reply.
 */
struct invitation {
	char name[256];
	size_t len;
};

static struct ft_attr attr;

/* ---- client ------------------------------------------------------------ */

static void insert(struct ft_ep *ep, const struct invitation *inv)
{
	int ret = fi_av_insert(ep->av, inv->name, 1, &ep->to, 0, NULL);

	FT_CHECK(ret == 1, "fi_av_insert: %d", ret);
}

static void get_name(struct fid *fid, struct invitation *inv)
{
	memset(inv, 0, sizeof(*inv));
	inv->len = sizeof(inv->name);
	FT_CALL(fi_getname(fid, inv->name, &inv->len));
}

/* Opens a reliable datagram client: the endpoint sends its own name. */
static void client_open_rdm(struct ft_pair *pair, const struct invitation *inv)
{
	struct invitation reply;

	memset(pair, 0, sizeof(*pair));
	pair->attr = attr;
	ft_rdm_open(pair, &pair->dom[1]);
	ft_rdm_ep_open(pair, &pair->c, &pair->dom[1]);
	insert(&pair->c, inv);
	get_name(&pair->c.ep->fid, &reply);
	FT_CHECK(write(REPLY_FD, &reply, sizeof(reply)) == sizeof(reply),
		 "write");
	close(REPLY_FD);
}

static void client_open(struct ft_pair *pair, const struct invitation *inv)
{
	struct ft_dom *dom = &pair->dom[1];
	struct fi_info *hints;

	if (ft_rdm()) {
		client_open_rdm(pair, inv);
		return;
	}
	memset(pair, 0, sizeof(*pair));
	pair->attr = attr;
	hints = ft_hints(&attr);
	hints->dest_addr = malloc(inv->len);
	FT_CHECK(hints->dest_addr, "malloc");
	memcpy(hints->dest_addr, inv->name, inv->len);
	hints->dest_addrlen = inv->len;
	FT_CALL(fi_getinfo(FT_FIVERSION, NULL, NULL, 0, hints, &dom->info));
	fi_freeinfo(hints);
	FT_CALL(fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	FT_CALL(fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
	ft_connect_client(pair, &pair->c);
}

/* Sends all messages back, until the server ends the client. */
static void client_main(const struct invitation *inv)
{
	char *buf = ft_map(NULL, WINDOW * LEN);
	struct ft_pair pair;
	struct ft_comp comp;
	void *d;
	unsigned i;

	client_open(&pair, inv);
	d = ft_desc(&pair.dom[1], buf, WINDOW * LEN);
	for (i = 0; i < WINDOW; i++)
		FT_POST(&pair.c, fi_recv(pair.c.ep, buf + i * LEN, LEN, d,
					 FT_ANY, buf + i * LEN));
	for (;;) {
		ft_poll(&pair.c);
		while (ft_take(&pair.c, FT_RX, &comp)) {
			if (comp.err || !comp.len)
				_exit(comp.err ? 3 : 0);
			FT_POST(&pair.c, fi_send(pair.c.ep, comp.ctx, comp.len,
						 d, pair.c.to, comp.ctx));
		}
		while (ft_take(&pair.c, FT_TX, &comp)) {
			if (comp.err)
				_exit(4);
			FT_POST(&pair.c, fi_recv(pair.c.ep, comp.ctx, LEN, d,
						 FT_ANY, comp.ctx));
		}
	}
}

/* ---- server ------------------------------------------------------------ */

static pid_t start_client(struct ft_pair *pair)
{
	struct invitation inv;
	char path[4096], limit[16];
	int fds[2], reply[2];
	ssize_t len;
	pid_t pid;

	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	FT_CHECK(len > 0, "/proc/self/exe: %s", strerror(errno));
	path[len] = '\0';
	if (ft_rdm())
		ft_rdm_ep_open(pair, &pair->s, &pair->dom[0]);
	get_name(ft_rdm() ? &pair->s.ep->fid : &pair->pep->fid, &inv);
	FT_CHECK(!pipe(fds) && !pipe(reply), "pipe");
	FT_CHECK(write(fds[1], &inv, sizeof(inv)) == sizeof(inv), "write");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		/*
		 * exec, so that the client does not inherit libfabric's state
		 */
		dup2(fds[0], STDIN_FILENO);
		dup2(reply[1], REPLY_FD);
		snprintf(limit, sizeof(limit), "%d", ft_opts.timeout);
		execl(path, path, "-p", ft_opts.prov, "-s", ft_opts.addr, "-t",
		      limit, "-e", ft_rdm() ? "rdm" : "msg", "client",
		      (char *) NULL);
		_exit(5);
	}
	close(fds[0]);
	close(fds[1]);
	close(reply[1]);
	if (ft_rdm()) {
		FT_CHECK(read(reply[0], &inv, sizeof(inv)) == sizeof(inv),
			 "no reply");
		insert(&pair->s, &inv);
	}
	close(reply[0]);
	return pid;
}

static void echo(struct ft_pair *pair, char *out, char *in, unsigned rounds)
{
	struct ft_ep *s = &pair->s;
	unsigned i;
	size_t len;

	for (i = 0; i < rounds; i++) {
		ft_stage("echo %u", i);
		len = 1 + ft_rand() % LEN;
		ft_fill(out, len, i);
		memset(in, 0, len);
		FT_POST(s, fi_recv(s->ep, in, len, ft_desc(s->dom, in, len),
				   FT_ANY, in));
		FT_POST(s, fi_send(s->ep, out, len, ft_desc(s->dom, out, len),
				   s->to, out));
		ft_wait_ctx(s, FT_TX, out, FI_SEND);
		ft_wait_ctx(s, FT_RX, in, FI_RECV);
		FT_CHECK_BUF(in, len, i, "echo");
		ft_release(s->dom);
	}
}

static void goodbye(struct ft_ep *s, pid_t pid)
{
	int status;

	ft_stage("goodbye");
	FT_POST(s, fi_inject(s->ep, "", 0, s->to));
	ft_stage("goodbye: waiting for the client to end");
	while (!waitpid(pid, &status, WNOHANG))
		ft_poll(s);
	FT_CHECK(WIFEXITED(status) && !WEXITSTATUS(status),
		 "client ended with 0x%x", status);
	ft_ep_close(s);
}

/* Each client has its own part of both buffers, which is sometimes remapped. */
static void crowd(struct ft_pair *pair, char *out, char *in, unsigned rounds)
{
	struct fi_mrrc_stats before, after;
	struct ft_ep s[CLIENTS];
	size_t len[CLIENTS];
	pid_t pid[CLIENTS];
	unsigned i, k;
	char *from, *to;

	for (k = 0; k < CLIENTS; k++) {
		ft_stage("client %u of %d", k, CLIENTS);
		pid[k] = start_client(pair);
		ft_connect_server(pair, &s[k]);
	}
	ft_stats(&pair->dom[0], &before);
	for (i = 0; i < rounds; i++) {
		ft_stage("%d clients, round %u", CLIENTS, i);
		for (k = 0; k < CLIENTS; k++) {
			from = out + k * LEN, to = in + k * LEN;
			if (ft_rand() % 2)
				ft_map(ft_rand() % 2 ? from : to, LEN);
			len[k] = 1 + ft_rand() % LEN;
			ft_fill(from, len[k], i * CLIENTS + k);
			memset(to, 0, len[k]);
			FT_POST(&s[k], fi_recv(s[k].ep, to, LEN,
					       ft_desc(s[k].dom, to, LEN),
					       FT_ANY, to));
			FT_POST(&s[k], fi_send(s[k].ep, from, len[k],
					       ft_desc(s[k].dom, from, LEN),
					       s[k].to, from));
		}
		for (k = 0; k < CLIENTS; k++) {
			from = out + k * LEN, to = in + k * LEN;
			ft_wait_ctx(&s[k], FT_TX, from, FI_SEND);
			ft_wait_ctx(&s[k], FT_RX, to, FI_RECV);
			FT_CHECK_BUF(to, len[k], i * CLIENTS + k, "echo");
		}
		ft_release(&pair->dom[0]);
	}
	if (ft_caches(&pair->dom[0])) {
		ft_stats(&pair->dom[0], &after);
		FT_CHECK(after.invalidations - before.invalidations >=
				 rounds / 2,
			 "%" PRIu64 " invalidations in %u rounds",
			 after.invalidations - before.invalidations, rounds);
	}
	for (k = 0; k < CLIENTS; k++)
		goodbye(&s[k], pid[k]);
}

static void mark(bool *flags, const struct ft_comp *comp, uintptr_t base)
{
	uintptr_t k = (uintptr_t) comp->ctx - base;

	FT_CHECK(k < WINDOW && !flags[k], "context %p %s", comp->ctx,
		 k < WINDOW ? "twice" : "is of no operation");
	flags[k] = true;
}

/*
 * Returns the length of messages when a peer is killed. ofi_rxm (1.17) over
 * verbs, raw as well, never returns from fi_cq_read() when a peer dies within a
 * message of several segments (rxm_close_conn).
 */
static size_t killed_len(void)
{
	return ft_rxm() && ft_core("verbs") ? 2 * FT_PAGE : LEN;
}

/* The client dies with operations in flight; the server loses no operation. */
static void killed(struct ft_pair *pair, char *out, char *in, pid_t pid)
{
	bool sent[WINDOW] = { false }, received[WINDOW] = { false };
	struct ft_ep *s = &pair->s;
	void *sd = ft_desc(s->dom, out, WINDOW * LEN);
	void *rd = ft_desc(s->dom, in, WINDOW * LEN);
	uint64_t end = ft_now_us() + 500000;
	const size_t len = killed_len();
	struct ft_comp comp;
	unsigned i, back = 0;
	int status;
	ssize_t ret;

	ft_stage("client killed");
	for (i = 0; i < WINDOW; i++) {
		FT_POST(s, fi_recv(s->ep, in + i * LEN, len, rd, FT_ANY,
				   (void *) (uintptr_t) (100 + i)));
		ret = fi_send(s->ep, out + i * LEN, len, sd, s->to,
			      (void *) (uintptr_t) (200 + i));
		/* reliable datagrams try to connect without a time limit */
		FT_CHECK(!ret || ft_rdm(), "fi_send: %zd", ret);
		if (i == WINDOW / 2)
			kill(pid, SIGKILL);
	}
	waitpid(pid, &status, 0);
	ft_stage("client killed: operations come back");
	/* a core may keep operations until the endpoint is closed */
	while (back < 2 * WINDOW && ft_now_us() < end) {
		ft_poll(s);
		for (; ft_take(s, FT_RX, &comp); back++)
			mark(received, &comp, 100);
		for (; ft_take(s, FT_TX, &comp); back++)
			mark(sent, &comp, 200);
	}
	ft_log("%u of %d operations came back", back, 2 * WINDOW);
	ft_stage("client killed: closing");
	FT_CALL(fi_close(&s->ep->fid));
	s->ep = NULL;
	for (i = 0; i < 50; i++) {
		ft_poll(s);
		while (ft_take(s, FT_RX, &comp))
			mark(received, &comp, 100);
		while (ft_take(s, FT_TX, &comp))
			mark(sent, &comp, 200);
	}
	ft_check_idle(s->dom, "client killed");
	ft_ep_close(s);
	ft_release(&pair->dom[0]);
}

static void server_main(void)
{
	char *out = ft_map(NULL, WINDOW * LEN),
	     *in = ft_map(NULL, WINDOW * LEN);
	struct ft_pair pair;
	unsigned i;
	pid_t pid;

	if (ft_rdm()) {
		memset(&pair, 0, sizeof(pair));
		pair.attr = attr;
		ft_rdm_open(&pair, &pair.dom[0]);
	} else {
		ft_listen(&pair, &attr);
	}
	for (i = 0; i < ft_iters(ft_core("verbs") || ft_rdm() ? 4 : 6); i++) {
		ft_stage("client %u", i);
		pid = start_client(&pair);
		if (!ft_rdm())
			ft_connect_server(&pair, &pair.s);
		echo(&pair, out, in, 25);
		/* ofi_rxm of 2.1 reports no error when a peer dies */
		if (i % 2 || (ft_rxm() && FI_MAJOR_VERSION >= 2))
			goodbye(&pair.s, pid);
		else
			killed(&pair, out, in, pid);
	}
	if (!ft_rdm())
		crowd(&pair, out, in, 50);
	ft_unmap(out, WINDOW * LEN);
	ft_unmap(in, WINDOW * LEN);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct invitation inv;

	ft_init(argc, argv);
	attr = FT_ATTR;
	attr.caps = FI_MSG;
	attr.abandons = true;
	if (optind < argc && !strcmp(argv[optind], "client")) {
		FT_CHECK(read(STDIN_FILENO, &inv, sizeof(inv)) == sizeof(inv),
			 "no invitation");
		client_main(&inv);
	}
	server_main();
	return ft_done();
}
