/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of fi_mrrc_cw_rdm that tests peers that are unknown, removed,
 * replaced, started again at the same address, or killed. Each operation with a
 * peer that is gone ends once, and operations with other peers go on.
 */
#include "cw/cw_nodes.h"

#include <pthread.h>

#define STRANGERS 64 /* maximum number of unknown peers, see fi_cwrite(3) */

/*
 * ---- peers in the address vector ------------------------------------------
 */

static void unknown(void)
{
	struct ft_comp comp;
	unsigned i;

	ft_stage("an unknown source");
	open_node(0);
	open_node(1);
	know(1, 0);
	memset(in, 0, 2 * LEN);
	ft_fill(out, LEN, 0);
	ft_fill(out + LEN, LEN, 1);
	expose(1, 0, 0);
	write_to(1, 0, 1);
	for (i = 0; i < 2000; i++)
		poll_all();
	FT_CHECK(!ft_take(&node[0].ep, FT_RX, &comp) &&
			 !ft_take(&node[1].ep, FT_TX, &comp) &&
			 !ft_take(&node[1].ep, FT_RX, &comp),
		 "something completes");
	know(0, 1);
	write_to(0, 1, 0);
	expose(0, 1, 1);
	wait_err(0, FT_TX, out, 0);
	wait_err(1, FT_RX, in, 0);
	wait_err(1, FT_TX, out + LEN, 0);
	wait_err(0, FT_RX, in + LEN, 0);
	FT_CHECK_BUF(in, LEN, 0, "to an unknown peer");
	FT_CHECK_BUF(in + LEN, LEN, 1, "from an unknown peer");
	close_all();
}

/*
 * If more unknown peers connect than the provider accepts, the provider refuses
 * the excess until other unknown peers are gone.
 */
static void strangers(void)
{
	static struct ft_ep ep[STRANGERS + 8];
	const unsigned n = STRANGERS + 8;
	fi_addr_t to[STRANGERS + 8];
	unsigned i, k, refused = 0;
	struct ft_comp comp;
	uint64_t end;

	ft_stage("%u unknown sources", n);
	open_node(0);
	/* do not wait for connections, which may take long */
	for (i = 0; i < n; i++) {
		ft_rdm_ep_open(&pair, &ep[i], &pair.dom[1]);
		to[i] = ft_rdm_insert(&ep[i], &node[0].ep);
	}
	end = ft_deadline();
	for (i = 0; i < n; i++) {
		FT_CALL(fi_cwrite(ep[i].cw, out, 8, NULL, to[i], 5, out));
		for (k = 0; k < 5; k++) {
			ft_poll(&ep[i]);
			ft_poll(&node[0].ep);
		}
	}
	while (refused < n - STRANGERS) {
		ft_poll(&node[0].ep);
		for (i = 0; i < n; i++) {
			ft_poll(&ep[i]);
			if (!ft_take(&ep[i], FT_TX, &comp))
				continue;
			FT_CHECK(comp.err == FI_ECONNABORTED, "error %d",
				 comp.err);
			refused++;
		}
		FT_CHECK(ft_limit_us() < end, "%u are refused", refused);
	}
	for (i = 0; i < 20; i++) {
		ft_poll(&node[0].ep);
		for (k = 0; k < n; k++)
			FT_CHECK(!ft_take(&ep[k], FT_TX, &comp),
				 "more are refused");
	}
	/*
	 * a connection of a known peer is accepted while the unknown peers
	 * exist, and when they are gone
	 */
	for (k = 3; k < 5; k++) {
		open_node(1);
		know(1, 0);
		write_to(1, 0, k);
		for (i = 0; i < 2000; i++)
			poll_all();
		know(0, 1);
		expose(0, 1, k);
		wait_err(1, FT_TX, out + k * LEN, 0);
		wait_err(0, FT_RX, in + k * LEN, 0);
		ft_ep_close(&node[1].ep);
		for (i = 0; k == 3 && i < n; i++)
			ft_ep_close(&ep[i]);
	}
	close_all();
}

/* Like expose(), but the registration is kept */
static void expose_kept(int i, int k, uint64_t tag)
{
	const struct iovec iov = { in, LEN };
	const struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = node[i].peer[k],
		.cwtag = tag,
		.context = in,
	};

	FT_CALL(fi_cwtagmsg(node[i].ep.cw, &msg, FI_MRRC_CW_KEEP | FI_MORE));
}

/*
 * Two unknown peers together have more tags than one peer may have: one of the
 * two peers loses its connection.
 */
static void strange_tags(void)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct fi_mrrc_cw_attr most = { .size = sizeof(most) };
	uint64_t end;
	struct ft_comp comp;
	bool gone = false;
	unsigned i;

	ft_stage("tags of strangers");
	open_all(1);
	FT_CALL(fi_cw_query(&node[0].ep.ep->fid, &most));
	for (i = 1; i < 4; i++) {
		open_node(i);
		know(i, 0);
	}
	expose(3, 0, 7);
	for (i = 0; i < most.max_pending * 5 / 8; i++) {
		expose_kept(1, 0, i);
		expose_kept(2, 0, i);
		if (i % 64 == 0)
			poll_all();
	}
	end = ft_deadline();
	while (!gone) {
		poll_all();
		for (i = 1; i < 3; i++)
			gone |= ft_take(&node[i].ep, FT_RX, &comp);
		FT_CALL(fi_cw_stats_read(node[0].ep.cw, &st));
		FT_CHECK(ft_limit_us() < end, "%" PRIu64 " tags are kept",
			 st.known_tags);
	}
	FT_CHECK(comp.err == FI_ECONNABORTED, "error %d", comp.err);
	FT_CALL(fi_cw_stats_read(node[0].ep.cw, &st));
	FT_CHECK(st.known_tags <= most.max_pending + 256, "%" PRIu64 " tags",
		 st.known_tags);
	know(0, 3);
	write_to(0, 3, 7);
	wait_err(3, FT_RX, in + 7 * LEN, 0);
	wait_err(0, FT_TX, out + 7 * LEN, 0);
	close_all();
}

static void removes(void)
{
	unsigned i, n = ft_iters(50);

	open_all(3);
	for (i = 0; i < n; i++) {
		ft_stage("removed and inserted, round %u", i);
		transfer(0, 1, 1);
		write_to(0, 1, 10);
		expose(0, 1, 11);
		write_to(1, 0, 20);
		expose(1, 0, 21);
		write_to(0, 2, 30); /* stays */
		if (i % 2)
			poll_all();
		FT_CALL(fi_av_remove(node[0].ep.av, &node[0].peer[1], 1, 0));
		wait_err(0, FT_TX, out + 10 * LEN, FI_ECANCELED);
		wait_err(0, FT_RX, in + 11 * LEN, FI_ECANCELED);
		wait_err(1, FT_TX, out + 20 * LEN, FI_ECONNABORTED);
		wait_err(1, FT_RX, in + 21 * LEN, FI_ECONNABORTED);
		know(0, 1);
		transfer(i % 2, 1 - i % 2, 2);
		expose(2, 0, 30);
		wait_err(0, FT_TX, out + 30 * LEN, 0);
		wait_err(2, FT_RX, in + 30 * LEN, 0);
	}
	for (i = 0; i < 3; i++)
		check_none(i);
	close_all();
}

/* Removes a peer while others post to it, and connect */
static void *remover_main(void *arg)
{
	unsigned i, n = *(unsigned *) arg;
	fi_addr_t addr;

	for (i = 0; i < n; i++) {
		usleep(ft_rand() % 300);
		addr = __atomic_load_n(&node[0].peer[1], __ATOMIC_RELAXED);
		FT_CALL(fi_av_remove(node[0].ep.av, &addr, 1, 0));
		addr = ft_rdm_insert(&node[0].ep, &node[1].ep);
		__atomic_store_n(&node[0].peer[1], addr, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void remove_races(void)
{
	uint64_t posted[2] = { 0 }, ended[2] = { 0 };
	unsigned i, k, n = ft_iters(200);
	struct ft_comp comp;
	pthread_t thread;
	bool over = false;
	fi_addr_t addr;
	ssize_t ret;

	ft_stage("removed while it is used");
	open_all(2);
	FT_CHECK(!pthread_create(&thread, NULL, remover_main, &n), "thread");
	for (i = 0; !over || ended[0] < posted[0] || ended[1] < posted[1];
	     i++) {
		if (!over && !pthread_tryjoin_np(thread, NULL)) {
			over = true;
			/*
			 * operations that wait for a partner end when their
			 * peer is removed
			 */
			addr = node[0].peer[1];
			FT_CALL(fi_av_remove(node[0].ep.av, &addr, 1, 0));
			FT_CALL(fi_av_remove(node[1].ep.av, &node[1].peer[0], 1,
					     0));
		}
		for (k = 0; !over && k < 2; k++) {
			addr = __atomic_load_n(&node[k].peer[1 - k],
					       __ATOMIC_RELAXED);
			ret = i % 2 ? fi_cwrite(node[k].ep.cw, out, 8, NULL,
						addr, 1, out) :
				      fi_cwtag(node[k].ep.cw, in, 8, NULL, addr,
					       1, in);
			posted[k] += !ret;
			FT_CHECK(!ret || ret == -FI_EOPNOTSUPP ||
					 ret == -FI_EAGAIN,
				 "posting: %zd", ret);
		}
		poll_all();
		for (k = 0; k < 2; k++) {
			while (ft_take(&node[k].ep, FT_TX, &comp) ||
			       ft_take(&node[k].ep, FT_RX, &comp))
				ended[k]++;
		}
	}
	for (k = 0; k < 2; k++) {
		FT_CHECK(ended[k] == posted[k],
			 "%" PRIu64 " of %" PRIu64 " ended", ended[k],
			 posted[k]);
		check_none(k);
	}
	close_all();
}

/*
 * After an endpoint has closed, a new endpoint opens at the same address, which
 * the peer inserts again.
 */
static void restarts(void)
{
	struct fi_info *info = pair.dom[1].info;
	void *src = info->src_addr;
	struct ft_comp comp;
	fi_addr_t old;
	char name[64];
	size_t len;
	unsigned i;

	ft_stage("started again at its address");
	open_all(2);
	for (i = 0; i < 5; i++) {
		transfer(0, 1, i);
		write_to(0, 1, 100);
		len = sizeof(name);
		FT_CALL(fi_getname(&node[1].ep.ep->fid, name, &len));
		ft_ep_close(&node[1].ep);
		memset(name + 8, 0, len == 16 ? 8 : 0);
		info->src_addr = name;
		info->src_addrlen = len;
		open_node(1);
		info->src_addr = src;
		old = node[0].peer[1];
		know(0, 1);
		know(1, 0);
		FT_CHECK(node[0].peer[1] == old,
			 "the core calls it by another address");
		/*
		 * the new endpoint has another number: the write was for the
		 * old endpoint
		 */
		wait_comp(0, FT_TX, &comp);
		FT_CHECK(comp.ctx == out + 100 * LEN &&
				 (comp.err == FI_ECANCELED ||
				  comp.err == FI_ECONNABORTED),
			 "error %d", comp.err);
	}
	transfer(0, 1, i);
	transfer(1, 0, i + 1);
	close_all();
}

/* ---- kill -9 ------------------------------------------------------------- */

static fi_addr_t insert_hex(const char *hex)
{
	char name[FT_NAME_MAX];
	fi_addr_t addr;

	ft_hex_name(hex, name);
	FT_CHECK(fi_av_insert(node[0].ep.av, name, 1, &addr, 0, NULL) == 1,
		 "insert");
	return addr;
}

/* Prints its name on its standard output, and runs until it is killed. */
void victim(const char *hex)
{
	char name[FT_HEX_MAX];
	fi_addr_t to;

	memset(&pair, 0, sizeof(pair));
	pair.attr = attr;
	ft_rdm_open(&pair, &pair.dom[0]);
	open_node(0);
	to = insert_hex(hex);
	ft_name_hex(&node[0].ep.ep->fid, name);
	printf("%s\n", name);
	fflush(stdout);
	ft_cw_victim(&node[0].ep, to, out, LEN, in, LEN);
}

/* Starts a process that runs victim(); returns its address. */
static fi_addr_t start_victim(char **argv, pid_t *pid)
{
	char hex[FT_HEX_MAX + 2];
	FILE *from;
	int fd[2];

	ft_name_hex(&node[0].ep.ep->fid, hex);
	setenv(VICTIM, hex, 1);
	FT_CHECK(!pipe(fd), "pipe");
	*pid = ft_again(argv, fd[1]);
	close(fd[1]);
	from = fdopen(fd[0], "r");
	FT_CHECK(fgets(hex, sizeof(hex), from), "no victim");
	fclose(from);
	return insert_hex(hex);
}

static void poll_nodes(struct ft_ep *ep)
{
	poll_all();
}

static void kills(char **argv)
{
	unsigned i, n = ft_iters(ft_rxm() ? 5 : 10), fds = 0;
	fi_addr_t to;
	pid_t pid;

	open_all(2);
	for (i = 0; i < n; i++) {
		ft_stage("kill -9, round %u", i);
		to = start_victim(argv, &pid);
		ft_cw_survivor(&node[0].ep, to, out, LEN, in, LEN, pid,
			       poll_nodes);
		check_none(0);
		/* transfers of other peers go on */
		transfer(i % 2, 1 - i % 2, 7);
		FT_CALL(fi_av_remove(node[0].ep.av, &to, 1, 0));
		if (i == n / 2)
			fds = ft_fd_count();
	}
	ft_wait_fds(&node[0].ep, fds);
	close_all();
}

void peers(char **argv)
{
	unknown();
	if (!ft_core("verbs"))
		strange_tags();
	removes();
	remove_races();
	/* ofi_rxm's endpoints open slowly, and each would need a connection */
	if (!ft_core("verbs") && !ft_rxm())
		strangers();
	if (!ft_core("verbs"))
		restarts();
	kills(argv);
}
