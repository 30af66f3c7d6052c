/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_end: conditional writes whose connection ends: either side
 * closes, shuts down or is killed with operations pending. Each of them ends
 * once, nothing is left, and it can all be done again, many times.
 */
#include "ft_mrrc.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#define OPS 16
#define LEN 512

struct seen {
	unsigned wr[OPS], tag[OPS];
};

static struct ft_attr attr;
static char *out, *in;

/* Writes that wait for tags of their own, and the other way round. */
static void post(struct ft_ep *ep, uint64_t base)
{
	uintptr_t i;

	for (i = 0; i < OPS; i++) {
		FT_CALL(fi_cwrite(ep->ep, out + i * LEN, LEN, NULL, ep->to,
				  base + i, (void *) (1000 + i)));
		FT_CALL(fi_cwtag(ep->ep, in + i * LEN, LEN, NULL, ep->to,
				 base + 100 + i, (void *) (2000 + i)));
	}
}

static void note(struct seen *seen, const struct ft_comp *comp, int err)
{
	uintptr_t ctx = (uintptr_t) comp->ctx;

	FT_CHECK(comp->err == err, "context %zu: error %d (%s), not %d",
		 (size_t) ctx, comp->err, fi_strerror(comp->err), err);
	if (ctx - 1000 < OPS)
		seen->wr[ctx - 1000]++;
	else if (ctx - 2000 < OPS)
		seen->tag[ctx - 2000]++;
	else
		FT_CHECK(0, "context %zu is nobody's", (size_t) ctx);
}

/* Everything that post() posted comes, once, with this error. */
static void check_ends(struct ft_ep *ep, int err, bool only_cqs)
{
	uint64_t end = ft_now_us() + 10000000;
	struct seen seen = { 0 };
	struct ft_comp comp;
	unsigned cnt = 0, i;

	while (cnt < 2 * OPS) {
		ft_poll(ep);
		while (ft_take(ep, FT_TX, &comp) || ft_take(ep, FT_RX, &comp)) {
			note(&seen, &comp, err);
			cnt++;
		}
		FT_CHECK(ft_now_us() < end, "%u of %u ended", cnt, 2 * OPS);
	}
	for (i = 0; i < OPS; i++)
		FT_CHECK(seen.wr[i] == 1 && seen.tag[i] == 1,
			 "operations %u end %u and %u times", i, seen.wr[i],
			 seen.tag[i]);
	if (only_cqs)
		return;
	ssize_t ret = fi_cwrite(ep->ep, out, 1, NULL, ep->to, 1, NULL);
	FT_CHECK(ret == -FI_ENOTCONN, "fi_cwrite after the end: %zd", ret);
	ret = fi_cwtag(ep->ep, in, 1, NULL, ep->to, 1, NULL);
	FT_CHECK(ret == -FI_ENOTCONN, "fi_cwtag after the end: %zd", ret);
}

static unsigned fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	FT_CHECK(dir, "/proc/self/fd");
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* As many rounds of progress as it may take for tags to arrive. */
static void mingle(struct ft_ep *ep)
{
	unsigned i;

	for (i = ft_rand() % 200; i; i--)
		ft_progress(ep);
}

static void works(struct ft_pair *pair, unsigned seed)
{
	struct ft_comp comp;

	ft_fill(out, LEN, seed);
	FT_CALL(fi_cwrite(pair->c.ep, out, LEN, NULL, pair->c.to, seed, out));
	FT_CALL(fi_cwtag(pair->s.ep, in, LEN, NULL, pair->s.to, seed, in));
	ft_wait(&pair->c, FT_TX, &comp);
	ft_wait(&pair->s, FT_RX, &comp);
	FT_CHECK_BUF(in, LEN, seed, "conditional write");
}

static void closes(struct ft_pair *pair, unsigned round)
{
	struct ft_ep *dead = round % 2 ? &pair->s : &pair->c;
	struct ft_ep *alive = round % 2 ? &pair->c : &pair->s;

	ft_stage("close, round %u", round);
	works(pair, round);
	post(dead, 5000);
	post(alive, 9000);
	if (round % 4 > 1)
		mingle(alive);
	if (round % 8 < 6) {
		FT_CALL(fi_close(&dead->ep->fid));
		dead->ep = NULL;
		check_ends(dead, FI_ECANCELED, true);
	} else {
		FT_CALL(fi_shutdown(dead->ep, 0));
		check_ends(dead, FI_ECONNABORTED, false);
	}
	check_ends(alive, FI_ECONNABORTED, false);
	ft_check_idle(alive->dom, "peer closed");
	ft_check_idle(dead->dom, "closed");
	ft_reconnect(pair);
}

static void reconnects(struct ft_pair *pair)
{
	unsigned i, n = ft_iters(ft_core("verbs") ? 40 : 400), fds = 0;
	size_t rss = 0;

	for (i = 0; i < n; i++) {
		closes(pair, i);
		if (i == n / 4) {
			/* then the control endpoints have met, too */
			works(pair, i);
			fds = fd_count();
			rss = ft_rss();
		}
	}
	works(pair, i);
	FT_CHECK(fd_count() <= fds, "%u descriptors, then %u", fds,
		 fd_count());
	FT_CHECK(!rss || ft_rss() < rss + (4 << 20), "%zu KiB more",
		 (ft_rss() - rss) / 1024);
}

/* Connect and close without a look at anything. */
static void hasty(struct ft_pair *pair)
{
	unsigned i;

	for (i = 0; i < 50; i++) {
		ft_stage("hasty, round %u", i);
		if (i % 3)
			FT_CALL(fi_cwtag(pair->c.ep, in, LEN, NULL,
					 pair->c.to, 1, in));
		if (i % 2)
			mingle(&pair->c);
		ft_reconnect(pair);
	}
	works(pair, 1);
}

/* ---- kill -9 ------------------------------------------------------------- */

#define VICTIM "FT_CW_VICTIM"	/* the listener's name, in hexadecimal */

/* The client, in a process of its own, until it is killed. */
static void victim(const char *hex)
{
	struct fi_info *hints = ft_hints(&attr);
	struct ft_pair pair = { .attr = attr };
	struct ft_dom *dom = &pair.dom[1];
	unsigned i, byte, len = strlen(hex) / 2;
	struct ft_comp comp;
	uint64_t tag = 0;

	hints->dest_addr = malloc(len);
	hints->dest_addrlen = len;
	for (i = 0; i < len; i++) {
		sscanf(hex + 2 * i, "%2x", &byte);
		((char *) hints->dest_addr)[i] = byte;
	}
	FT_CALL(fi_getinfo(FT_FIVERSION, NULL, NULL, 0, hints, &dom->info));
	FT_CALL(fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	FT_CALL(fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
	ft_connect_client(&pair, &pair.c);
	for (;;) {
		if (ft_rand() % 2)
			fi_cwrite(pair.c.ep, out, 1 + ft_rand() % (16 * LEN),
				  NULL, 0, 1 + tag++, NULL);
		else
			fi_cwtag(pair.c.ep, in, 16 * LEN, NULL, 0,
				 1 + ft_rand() % 1000, NULL);
		ft_poll(&pair.c);
		while (ft_take(&pair.c, FT_TX, &comp) ||
		       ft_take(&pair.c, FT_RX, &comp))
			;
	}
}

static pid_t start_victim(const struct ft_pair *pair, char **argv)
{
	unsigned char name[64];
	char hex[2 * sizeof(name) + 1];
	size_t len = sizeof(name), i;
	pid_t pid;

	FT_CALL(fi_getname(&pair->pep->fid, name, &len));
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", name[i]);
	setenv(VICTIM, hex, 1);
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork");
	if (!pid) {
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	return pid;
}

/* It may be killed before there is more than the application's connection. */
static void read_events(struct ft_ep *ep)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event;

	if (fi_eq_read(ep->eq, &event, &entry, sizeof(entry), 0) == -FI_EAVAIL)
		fi_eq_readerr(ep->eq, &err, 0);
}

static void survivor(struct ft_pair *pair, pid_t pid)
{
	uint64_t kill_at = ft_now_us() + ft_rand() % 60000;
	uint64_t end = ft_now_us() + 20000000;
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	uint64_t posted = 0, ended = 0, tag = 0;
	struct ft_ep *ep = &pair->s;
	struct ft_comp comp;
	bool killed = false;
	ssize_t ret = 0;

	while (ret != -FI_ENOTCONN || ended < posted) {
		if (!killed && ft_now_us() > kill_at) {
			kill(pid, SIGKILL);
			killed = true;
		}
		ret = fi_cwtag(ep->ep, in, 16 * LEN, NULL, 0, 1 + tag++, NULL);
		posted += !ret;
		ret = fi_cwrite(ep->ep, out, 1 + ft_rand() % LEN, NULL, 0,
				1 + ft_rand() % 1000, NULL);
		posted += !ret;
		ft_poll(ep);
		read_events(ep);
		while (ft_take(ep, FT_TX, &comp) || ft_take(ep, FT_RX, &comp))
			ended++;
		FT_CHECK(ft_now_us() < end, "%" PRIu64 " of %" PRIu64
			 " ended", ended, posted);
	}
	FT_CHECK(killed, "ended before");
	FT_CALL(fi_cw_stats(ep->ep, &st));
	FT_CHECK(!st.pending_tags && !st.pending_writes && !st.known_tags,
		 "something is left");
	ft_check_idle(ep->dom, "peer killed");
}

static void kills(char **argv)
{
	unsigned i, n = ft_iters(ft_core("verbs") ? 8 : 20);
	struct ft_pair pair;
	pid_t pid;
	int status;

	ft_listen(&pair, &attr);
	for (i = 0; i < n; i++) {
		ft_stage("kill -9, round %u", i);
		pid = start_victim(&pair, argv);
		ft_connect_server(&pair, &pair.s);
		survivor(&pair, pid);
		FT_CHECK(waitpid(pid, &status, 0) == pid &&
			 WIFSIGNALED(status), "the victim: %#x", status);
		ft_ep_close(&pair.s);
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_pair pair;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm() || ft_core("verbs"))
		ft_skip("conditional writes need FI_EP_MSG, and not verbs");
	attr = FT_ATTR;
	attr.format = FI_CQ_FORMAT_DATA;
	attr.cw = attr.cw_pep = true;
	out = ft_map(NULL, 32 * LEN);
	in = ft_map(NULL, 32 * LEN);
	if (getenv(VICTIM))
		victim(getenv(VICTIM));
	kills(argv);
	ft_pair_open(&pair, &attr);
	reconnects(&pair);
	hasty(&pair);
	ft_pair_close(&pair);
	ft_unmap(out, 32 * LEN);
	ft_unmap(in, 32 * LEN);
	return ft_done();
}
