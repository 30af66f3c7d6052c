/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_wire_app: a server and its clients in one process, which exchange
 * messages and conditional writes. scripts/wire.py connects server and clients
 * through a proxy that changes bytes on the way. The program prints "ready" and
 * the port where it listens. For each 'g' on its standard input a new client
 * and the server send messages and conditional writes to each other, until all
 * have completed ("ok"), one has failed ("lost"), or an 'e' comes ("ended").
 * Errors of operations do not end the process; a crash does, or a length that
 * the core cannot have received.
 */
#include "ft_mrrc.h"

#include <netinet/in.h>
#include <poll.h>

#define ENDS 64
#define ROOM (64 << 10)

enum step { RECV, RECV_LONG, TRECV, TAG, WRITE, SEND, SEND_LONG, TSEND, STEPS };
/* the long messages are more than ofi_rxm sends in one packet */
static const size_t lengths[] = {
	100, 20000, 100, 3000, 3000, 100, 20000, 100
};

struct op {
	struct end *end;
	enum step step;
};

struct end {
	struct fid_ep *ep;
	struct fi_mrrc_cw *cw;
	fi_addr_t to;
	unsigned posted, completed;
	bool up, failed;
	struct op op[STEPS];
	char *buf; /* ROOM bytes for each step */
};

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
};

static struct ft_attr attr;
static struct side server, client;
static struct fid_pep *pep;
static struct end accepted[ENDS]; /* the first one serves datagrams */
static struct end caller;

static void open_side(struct side *side, const void *dest, size_t destlen)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = ft_hints(&attr);

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
	FT_CALL(fi_domain(side->fabric, side->info, &side->domain, NULL));
	FT_CALL(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL));
	if (ft_rdm())
		FT_CALL(fi_av_open(side->domain, &av_attr, &side->av, NULL));
}

static void open_end(struct end *end, struct side *side, struct fi_info *info)
{
	char *buf = end->buf ? end->buf : ft_map(NULL, STEPS * ROOM);
	int i;

	*end = (struct end){ .buf = buf };
	for (i = 0; i < STEPS; i++)
		end->op[i] = (struct op){ end, i };
	FT_CALL(fi_endpoint(side->domain, info, &end->ep, end));
	FT_CALL(fi_ep_bind(end->ep, ft_rdm() ? &side->av->fid : &side->eq->fid,
			   0));
	FT_CALL(fi_ep_bind(end->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(fi_cw_enable(&end->ep->fid, 0));
	FT_CALL(fi_cw_open(end->ep, &end->cw));
	FT_CALL(fi_enable(end->ep));
}

static void close_end(struct end *end)
{
	if (end->ep)
		fi_close(&end->ep->fid);
	end->ep = NULL;
}

static ssize_t post(struct end *end, enum step step)
{
	char *buf = end->buf + step * ROOM;
	const size_t len = lengths[step];
	void *op = &end->op[step];

	switch (step) {
	case RECV:
	case RECV_LONG:
		return fi_recv(end->ep, buf, len, NULL, FT_ANY, op);
	case SEND:
	case SEND_LONG:
		return fi_send(end->ep, buf, len, NULL, end->to, op);
	case TRECV:
		return fi_trecv(end->ep, buf, len, NULL, FT_ANY, 7, 0, op);
	case TSEND:
		return fi_tsend(end->ep, buf, len, NULL, end->to, 7, op);
	case TAG:
		return fi_cwtag(end->cw, buf, len, NULL, end->to, 1, op);
	default:
		return fi_cwrite(end->cw, buf, len, NULL, end->to, 1, op);
	}
}

static void fail(struct end *end, enum step step, int err)
{
	if (!err)
		return;
	fprintf(stderr, "%s: step %d: %s\n",
		end == &caller ? "client" : "server", step, fi_strerror(err));
	end->failed = true;
}

static void post_all(struct end *end)
{
	ssize_t ret = 0;

	while (end->up && end->posted < STEPS && ret != -FI_EAGAIN) {
		if (!(attr.caps & FI_TAGGED) &&
		    (end->posted == TRECV || end->posted == TSEND)) {
			end->completed++;
			end->posted++;
			continue;
		}
		ret = post(end, end->posted);
		if (ret != -FI_EAGAIN) {
			end->posted++;
			fail(end, end->posted - 1, (int) -ret);
		}
	}
}

static bool read_cq(struct side *side)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	struct op *op;
	ssize_t ret = fi_cq_read(side->cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		ret = fi_cq_readerr(side->cq, &err, 0);
		entry.op_context = err.op_context;
	}
	op = ret == 1 ? entry.op_context : NULL;
	if (!op || !op->end->ep)
		return ret == 1;
	if (err.err)
		fail(op->end, op->step, err.err);
	else
		op->end->completed++;
	FT_CHECK(err.err || op->step >= WRITE || entry.len <= lengths[op->step],
		 "step %d: a length that was not posted: %zu bytes", op->step,
		 entry.len);
	/* the server's reliable datagram endpoint goes on receiving */
	if (ft_rdm() && op->end != &caller && op->step <= TRECV)
		post(op->end, op->step);
	return true;
}

static void accept_end(struct fi_info *info)
{
	int i;

	for (i = 0; i < ENDS && accepted[i].ep; i++)
		;
	if (i == ENDS) {
		fi_reject(pep, info->handle, NULL, 0);
	} else {
		open_end(&accepted[i], &server, info);
		if (fi_accept(accepted[i].ep, NULL, 0))
			close_end(&accepted[i]);
	}
	fi_freeinfo(info);
}

static bool read_eq(struct side *side)
{
	struct fi_eq_err_entry err = { 0 };
	char room[sizeof(struct fi_eq_cm_entry) + 256]
		__attribute__((aligned(8)));
	struct fi_eq_cm_entry *entry = (void *) room;
	uint32_t event = 0;
	struct end *end;
	ssize_t ret = fi_eq_read(side->eq, &event, room, sizeof(room), 0);

	if (ret == -FI_EAVAIL) {
		ret = fi_eq_readerr(side->eq, &err, 0);
		entry->fid = err.fid;
		event = FI_SHUTDOWN;
	}
	if (ret <= 0 || !entry->fid)
		return false;
	if (event == FI_CONNREQ) {
		accept_end(entry->info);
		return true;
	}
	end = entry->fid->context;
	if (event == FI_CONNECTED)
		end->up = true;
	else if (end == &caller)
		end->failed = true;
	else if (entry->fid != &pep->fid)
		close_end(end);
	return true;
}

static bool progress(void)
{
	bool any = read_cq(&server);
	int i;

	any |= read_cq(&client);
	if (!ft_rdm()) {
		any |= read_eq(&server);
		any |= read_eq(&client);
	}
	for (i = 0; i < ENDS; i++) {
		if (accepted[i].ep)
			post_all(&accepted[i]);
	}
	if (caller.ep)
		post_all(&caller);
	return any;
}

static void insert(struct side *side, struct end *end, struct end *whom)
{
	char name[64] = { 0 };
	size_t len = sizeof(name);

	FT_CALL(fi_getname(&whom->ep->fid, name, &len));
	FT_CHECK(fi_av_insert(side->av, name, 1, &end->to, 0, NULL) == 1,
		 "fi_av_insert");
	end->up = true;
}

static void begin(void)
{
	open_end(&caller, &client, client.info);
	if (!ft_rdm()) {
		caller.failed =
			fi_connect(caller.ep, client.info->dest_addr, NULL, 0);
		return;
	}
	insert(&client, &caller, &accepted[0]);
	/* the receives for the former client are still posted */
	accepted[0].posted = accepted[0].posted ? TAG : 0;
	insert(&server, &accepted[0], &caller);
}

static void end(const char *how)
{
	close_end(&caller);
	/* cancelled operations do not belong to the next client */
	while (read_cq(&client))
		;
	if (ft_rdm()) {
		accepted[0].up = false;
		fi_av_remove(server.av, &accepted[0].to, 1, 0);
	}
	puts(how);
}

/*
 * Reads a command from standard input; waits for a command if there is nothing
 * else to do.
 */
static char command(bool wait)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	char said;

	if (poll(&fd, 1, wait) <= 0)
		return '\0';
	if (read(STDIN_FILENO, &said, 1) <= 0)
		exit(0);
	return said;
}

int main(int argc, char **argv)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	bool any = true;
	char said;

	ft_init(argc, argv);
	attr = FT_ATTR;
	if (ft_rdm())
		attr.caps |= FI_TAGGED;
	open_side(&server, NULL, 0);
	if (ft_rdm()) {
		open_end(&accepted[0], &server, server.info);
		FT_CALL(fi_getname(&accepted[0].ep->fid, &name, &len));
	} else {
		FT_CALL(fi_passive_ep(server.fabric, server.info, &pep, NULL));
		FT_CALL(fi_pep_bind(pep, &server.eq->fid, 0));
		FT_CALL(fi_cw_enable(&pep->fid, 0));
		FT_CALL(fi_listen(pep));
		FT_CALL(fi_getname(&pep->fid, &name, &len));
	}
	open_side(&client, ft_rdm() ? NULL : &name, len);
	printf("ready %u\n", ntohs(name.sin_port));
	for (;;) {
		said = command(!any);
		if (said == 'g')
			begin();
		else if (said == 'e' && caller.ep)
			end("ended");
		any = progress();
		if (caller.ep && caller.failed)
			end("lost");
		else if (caller.ep && caller.completed == STEPS)
			end("ok");
	}
}
