/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event loop (serve/server/server.h).
 */
#include "config.h"
#include "serve/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "serve/wire/path.h"

#define TICK_MS	   250
#define STALLED_MS 1
#define BATCH	   64
#define CLOSERS	   4
/* ms after which an ending server closes an idle connection */
#define LINGER_MS 1000

uint64_t server_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

/* ---- events -------------------------------------------------------------- */

static struct conn *conn_at(struct server *server, unsigned i)
{
	return &server->conn[i];
}

void server_complete(struct server *server, struct op *op, size_t len, int err)
{
	/* ofi_rxm reports the length that the peer claims */
	if (op && (op->kind == OP_RX || op->kind == OP_SHARED) && !err &&
	    len > SERVE_MSG_MAX)
		err = FI_ETRUNC;
	/* a completion without a context belongs to the provider */
	if (op && op->conn)
		conn_complete(op, len, err);
	else if (op)
		rdm_complete(server, op, len, err);
}

/* Reads completions. Returns true if the queue is empty. */
static bool read_cq(struct server *server)
{
	struct fi_cq_data_entry entry[BATCH];
	struct fi_cq_err_entry err;
	unsigned rounds;
	ssize_t ret, i;

	for (rounds = 0; rounds < BATCH; rounds++) {
		ret = fi_cq_read(server->cq, entry, BATCH);
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			if (fi_cq_readerr(server->cq, &err, 0) == 1)
				server_complete(server, err.op_context, 0,
						err.err ? err.err : FI_EOTHER);
			continue;
		}
		if (ret <= 0)
			return true;
		for (i = 0; i < ret; i++)
			server_complete(server, entry[i].op_context,
					entry[i].len, 0);
	}
	return false;
}

static void handle_event(struct server *server, uint32_t event,
			 const struct fi_eq_cm_entry *entry)
{
	struct conn *conn;

	if (event == FI_CONNREQ) {
		conn_accept(server, entry->info);
		fi_freeinfo(entry->info);
		return;
	}
	conn = conn_find(server, entry->fid);
	if (conn && event == FI_CONNECTED)
		conn_connected(conn);
	else if (conn && event == FI_SHUTDOWN)
		conn_close(conn, NULL);
}

/* Reads an event. Returns true if there was an event. */
static bool read_eq(struct server *server)
{
	struct fi_eq_err_entry err;
	struct fi_eq_cm_entry entry;
	struct conn *conn;
	uint32_t event;
	unsigned i;
	ssize_t ret;

	for (i = 0; i < BATCH; i++) {
		ret = fi_eq_read(server->net.eq, &event, &entry, sizeof(entry),
				 0);
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			fi_eq_readerr(server->net.eq, &err, 0);
			conn = conn_find(server, err.fid);
			if (conn)
				conn_close(conn, fi_strerror(err.err));
			continue;
		}
		if (ret < 0)
			break;
		handle_event(server, event, &entry);
	}
	return i;
}

static void take_jobs(struct jobs *jobs)
{
	struct job *job;
	uint64_t count;
	ssize_t len;

	len = read(jobs->fd, &count, sizeof(count));
	(void) len;
	while ((job = jobs_take(jobs)))
		conn_job_done(job);
}

/* ---- signals ------------------------------------------------------------- */

/*
 * Lets the next signal end the program, whatever state the loop is in: the loop
 * itself may hang.
 */
static void next_signal_ends(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void begin_end(struct server *server)
{
	unsigned i, busy = 0, live = 0;

	server->ending = true;
	server->end_by = server_now() + 1000UL * server->options.grace;
	if (server->pep)
		fi_close(&server->pep->fid);
	server->pep = NULL;
	for (i = 0; i < server->conns; i++) {
		live += server->conn[i].state != CONN_FREE;
		busy += conn_busy(conn_at(server, i));
	}
	server_say("ending: %u clients, %u of them with ranges on their way",
		   live, busy);
	next_signal_ends();
}

static void read_signals(struct server *server)
{
	struct signalfd_siginfo info;

	while (read(server->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			report(server);
		else
			begin_end(server);
	}
}

/* ---- the loop ------------------------------------------------------------ */

/*
 * Ends connections of an ending server: finished connections, or all
 * connections when the server's time to end has passed.
 */
static void end_conns(struct server *server, uint64_t now)
{
	struct conn *conn;
	unsigned i;

	for (i = 0; i < server->conns; i++) {
		conn = conn_at(server, i);
		if (now >= server->end_by ||
		    (!conn_busy(conn) && now - conn->moved >= LINGER_MS))
			conn_close(conn, NULL);
	}
}

/*
 * Checks the deadlines of all clients, but not for each event: there may be
 * thousands of clients.
 */
static void tick(struct server *server)
{
	const uint64_t now = server_now();
	unsigned i;

	if (!server->stalled && !server->ending &&
	    now - server->ticked < TICK_MS)
		return;
	server->ticked = now;
	server->stalled = false;
	for (i = 0; i < server->conns; i++)
		conn_tick(conn_at(server, i), now);
	rdm_tick(server, now);
	if (server->ending)
		end_conns(server, now);
}

static void reap(struct server *server)
{
	unsigned i;

	for (i = 0; server->closed && i < server->conns; i++)
		conn_reap(conn_at(server, i));
}

static int watch(struct server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/*
 * The queue's descriptor covers conditional writes only if it is taken after
 * the first endpoint was enabled: fi_cwrite(3).
 */
static void watch_cq(struct server *server)
{
	int fd;

	if (server->cq_watched || (!server->total.clients && !server->rdm.ep))
		return;
	if (!fi_control(&server->cq->fid, FI_GETWAIT, &fd) &&
	    !watch(server, fd))
		server->cq_watched = true;
}

static void wait_events(struct server *server, int ms)
{
	struct fid *fids[] = { &server->net.eq->fid, &server->cq->fid };
	struct epoll_event events[5];
	int i, count;

	if (fi_trywait(server->net.fabric, fids, server->cq_watched ? 2 : 1))
		return;
	count = epoll_wait(server->epoll, events, 5, ms);
	for (i = 0; i < count; i++)
		server->listen.woken |= events[i].data.fd ==
					server->listen.eq_fd;
}

static void loop(struct server *server)
{
	size_t memory;
	bool empty;

	do {
		read_signals(server);
		take_jobs(&server->jobs);
		take_jobs(&server->closers);
		listen_tend(server, read_eq(server));
		empty = read_cq(server);
		tick(server);
		if (empty)
			reap(server);
		watch_cq(server);
		if (empty)
			wait_events(server,
				    server->stalled ? STALLED_MS : TICK_MS);
	} while (!server->ending || report_live(server, &memory));
}

/* ---- begin and end ------------------------------------------------------- */

static int fail(const char *what, int ret)
{
	const char *hint = net_hint(ret);

	server_complain("%s: %s%s%s", what, fi_strerror(-ret), hint ? "; " : "",
			hint ? hint : "");
	return ret;
}

/*
 * Raises the limit of descriptors to the user's maximum, since each client
 * takes several descriptors.
 */
static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * Changes to another user. Root locks memory without a limit, so the limit is
 * raised for the new user.
 */
static int change_user(const struct user *user)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	int ret;

	if (!user->name || user->uid == geteuid())
		return 0;
	setrlimit(RLIMIT_MEMLOCK, &none);
	ret = user_become(user);
	return ret ? fail(user->name, ret) : 0;
}

static int open_loop(struct server *server)
{
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* a write past the limit of files (ulimit -f) fails instead */
	signal(SIGXFSZ, SIG_IGN);
	server->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->signals < 0 || server->epoll < 0)
		return fail("descriptors", -errno);
	ret = jobs_open(&server->jobs, server->options.threads);
	if (!ret)
		ret = jobs_open(&server->closers, CLOSERS);
	if (ret)
		return fail("threads", ret);
	ret = watch(server, server->signals);
	if (!ret)
		ret = watch(server, server->jobs.fd);
	if (!ret)
		ret = watch(server, server->closers.fd);
	return ret ? fail("epoll", ret) : 0;
}

static int open_queues(struct server *server)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_FD,
		.size = (server->conns - server->options.threads) *
				(CONN_RX_MAX + 2 * SERVE_PIPES_MAX) +
			SERVER_RXS,
	};
	int ret;

	ret = fi_cq_open(server->net.domain, &attr, &server->cq, NULL);
	if (ret)
		return fail("completion queue (try a smaller --max-clients)",
			    ret);
	ret = fi_control(&server->net.eq->fid, FI_GETWAIT,
			 &server->listen.eq_fd);
	if (!ret)
		ret = watch(server, server->listen.eq_fd);
	return ret ? fail("event queue", ret) : 0;
}

static int open_net(struct server *server)
{
	const struct serve_options *options = &server->options;
	struct addrinfo *list;
	int ret;

	ret = net_resolve(options->address, options->port, &list);
	if (ret) {
		server_complain("%s: %s", options->address, gai_strerror(ret));
		return -FI_EINVAL;
	}
	if (options->secret.set && peer_any(list->ai_addr, list->ai_addrlen)) {
		freeaddrinfo(list);
		server_complain("%s: with --secret name one --address, as "
				"proofs are for the one that a client "
				"connects to",
				options->address);
		return -FI_EINVAL;
	}
	ret = net_open(list, true, &options->kind, &server->net);
	freeaddrinfo(list);
	if (ret)
		return fail(options->address, ret);
	server->source.domain = server->net.domain;
	ret = open_queues(server);
	if (ret)
		return ret;
	ret = listen_open(server);
	return ret ? fail("listening", ret) : 0;
}

/*
 * Closes the server. Returns false if a read does not end: the caller then has
 * to keep the objects of the read.
 */
static bool close_server(struct server *server)
{
	bool idle = true;

	if (server->pep)
		fi_close(&server->pep->fid);
	rdm_close(server);
	if (server->closers.fd > 0)
		idle &= jobs_close(&server->closers);
	if (server->jobs.fd > 0)
		idle &= jobs_close(&server->jobs);
	if (!idle)
		return false;
	if (server->cq)
		fi_close(&server->cq->fid);
	net_close(&server->net);
	listen_close(server);
	if (server->epoll > 0)
		close(server->epoll);
	if (server->signals > 0)
		close(server->signals);
	if (server->source.dir > 0)
		close(server->source.dir);
	free(server->conn);
	return true;
}

/* Serves until the end. Returns 0, or a negative error. */
static int serve(struct server *server)
{
	const struct serve_options *options = &server->options;
	int ret;

	ret = log_open();
	if (ret)
		return fail("threads", ret);
	raise_limit();
	server->conns =
		(options->max_clients << options->kind.rdm) + options->threads;
	server->conn = calloc(server->conns, sizeof(*server->conn));
	ret = server->conn ? open_loop(server) : fail("clients", -ENOMEM);
	if (!ret)
		ret = open_net(server);
	if (!ret)
		ret = change_user(&options->user);
	if (ret)
		return ret;
	report_begin(server);
	loop(server);
	report_end(server);
	return 0;
}

static int open_source(struct server *server)
{
	const struct serve_options *options = &server->options;
	struct source *source = &server->source;

	source->copies = options->copy;
	source->others = options->others;
	source->dir = path_root(options->dir);
	if (source->dir < 0) {
		server_complain("%s: %s", options->dir,
				path_root_error(source->dir));
		return source->dir;
	}
	if (source->others && !path_root_others(source->dir)) {
		server_complain("%s: not all users may enter it (chmod o+x, "
				"also of the directories above it), so it "
				"would be served with --private only",
				options->dir);
		return -EACCES;
	}
	return 0;
}

int server_run(const struct serve_options *options)
{
	struct server server = { .options = *options };
	bool closed;
	int ret;

	ret = open_source(&server);
	if (!ret)
		ret = serve(&server);
	ret = ret ? EXIT_FAILURE : EXIT_SUCCESS;
	closed = close_server(&server);
	log_close();
	/* skips code at exit that would free objects in use */
	if (!closed)
		_exit(ret);
	return ret;
}
