/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_objects: tests calls that open objects without attributes, or with an
 * info that lacks some attributes: calls that the core accepts are accepted,
 * and calls that the core refuses do not crash. The test also opens many
 * objects of one parent: closing an object takes no longer than with few
 * objects.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- without attributes -------------------------------------------------- */

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

enum lacks { LACKS_TX, LACKS_RX, LACKS_EP, LACKS_DOMAIN, LACKS_FABRIC, LACKS };

static int cq_open(struct world *w)
{
	struct fi_cq_entry entry[2];
	struct fid_cq *cq;
	int ret = fi_cq_open(w->domain, NULL, &cq, NULL);

	/* a queue with default attributes is empty */
	if (!ret)
		FT_CHECK(fi_cq_read(cq, entry, 2) == -FI_EAGAIN, "not empty");
	return ret ? ret : fi_close(&cq->fid);
}

static int cntr_open(struct world *w)
{
	struct fid_cntr *cntr;
	int ret = fi_cntr_open(w->domain, NULL, &cntr, NULL);

	return ret ? ret : fi_close(&cntr->fid);
}

static int av_open(struct world *w)
{
	struct fid_av *av;
	int ret = fi_av_open(w->domain, NULL, &av, NULL);

	return ret ? ret : fi_close(&av->fid);
}

static int eq_open(struct world *w)
{
	struct fid_eq *eq;
	int ret = fi_eq_open(w->fabric, NULL, &eq, NULL);

	return ret ? ret : fi_close(&eq->fid);
}

static int wait_open(struct world *w)
{
	struct fid_wait *wait;
	int ret = w->fabric->ops->wait_open(w->fabric, NULL, &wait);

	return ret ? ret : fi_close(&wait->fid);
}

static int poll_open(struct world *w)
{
	struct fid_poll *poll;
	int ret = w->domain->ops->poll_open(w->domain, NULL, &poll);

	return ret ? ret : fi_close(&poll->fid);
}

static int stx_open(struct world *w)
{
	struct fid_stx *stx;
	int ret = fi_stx_context(w->domain, NULL, &stx, NULL);

	return ret ? ret : fi_close(&stx->fid);
}

static int srx_open(struct world *w)
{
	struct fid_ep *srx;
	int ret = fi_srx_context(w->domain, NULL, &srx, NULL);

	return ret ? ret : fi_close(&srx->fid);
}

static int regattr(struct world *w)
{
	struct fid_mr *mr;
	int ret = fi_mr_regattr(w->domain, NULL, 0, &mr);

	return ret ? ret : fi_close(&mr->fid);
}

static int regv(struct world *w)
{
	struct fid_mr *mr;
	int ret = fi_mr_regv(w->domain, NULL, 0, FI_SEND, 0, 0, 0, &mr, NULL);

	return ret ? ret : fi_close(&mr->fid);
}

static int ep_open(struct world *w)
{
	struct fid_ep *ep;
	int ret = fi_endpoint(w->domain, NULL, &ep, NULL);

	return ret ? ret : fi_close(&ep->fid);
}

static int pep_open(struct world *w)
{
	struct fid_pep *pep;
	int ret = fi_passive_ep(w->fabric, NULL, &pep, NULL);

	return ret ? ret : fi_close(&pep->fid);
}

static int domain_open(struct world *w)
{
	struct fid_domain *domain;
	int ret = fi_domain(w->fabric, NULL, &domain, NULL);

	return ret ? ret : fi_close(&domain->fid);
}

/* Removes a part of the info. */
static void take_part(struct fi_info *info, enum lacks lacks)
{
	void **part[] = { (void **) &info->tx_attr, (void **) &info->rx_attr,
			  (void **) &info->ep_attr,
			  (void **) &info->domain_attr,
			  (void **) &info->fabric_attr };

	*part[lacks] = NULL;
}

static int ep_lacks(struct world *w, enum lacks lacks)
{
	struct fid_ep *ep;
	int ret;

	take_part(w->info, lacks);
	ret = fi_endpoint(w->domain, w->info, &ep, NULL);
	return ret ? ret : fi_close(&ep->fid);
}

static int pep_lacks(struct world *w, enum lacks lacks)
{
	struct fid_pep *pep;
	int ret;

	take_part(w->info, lacks);
	ret = fi_passive_ep(w->fabric, w->info, &pep, NULL);
	return ret ? ret : fi_close(&pep->fid);
}

static int domain_lacks(struct world *w, enum lacks lacks)
{
	struct fid_domain *domain;
	int ret;

	take_part(w->info, lacks);
	ret = fi_domain(w->fabric, w->info, &domain, NULL);
	return ret ? ret : fi_close(&domain->fid);
}

#define ALL -1 /* no attributes at all */

static const struct {
	const char *name;
	int (*open)(struct world *w);
	int (*lacks)(struct world *w, enum lacks lacks);
	int what;
} cases[] = {
#define NONE(call, open)                                    \
	{                                                   \
		call " without attributes", open, NULL, ALL \
	}
	NONE("fi_cq_open", cq_open),	  NONE("fi_cntr_open", cntr_open),
	NONE("fi_av_open", av_open),	  NONE("fi_eq_open", eq_open),
	NONE("fi_wait_open", wait_open),  NONE("fi_poll_open", poll_open),
	NONE("fi_stx_context", stx_open), NONE("fi_srx_context", srx_open),
	NONE("fi_mr_regattr", regattr),	  NONE("fi_mr_regv", regv),
	NONE("fi_endpoint", ep_open),	  NONE("fi_passive_ep", pep_open),
	NONE("fi_domain", domain_open),
#define PARTS(call, lacks)                                                  \
	{ call " without tx_attr", NULL, lacks, LACKS_TX },                 \
		{ call " without rx_attr", NULL, lacks, LACKS_RX },         \
		{ call " without ep_attr", NULL, lacks, LACKS_EP },         \
		{ call " without domain_attr", NULL, lacks, LACKS_DOMAIN }, \
	{                                                                   \
		call " without fabric_attr", NULL, lacks, LACKS_FABRIC      \
	}
	PARTS("fi_endpoint", ep_lacks),	  PARTS("fi_passive_ep", pep_lacks),
	PARTS("fi_domain", domain_lacks),
};
#define CASES (sizeof(cases) / sizeof(*cases))

/*
 * Other results of a case: the core lacks the object; the case died by a
 * signal.
 */
#define NOT_OPEN 1
#define SIGNAL	 1000

/* Opens a domain; returns false if there is no such provider. */
static bool world_open(struct world *w, const char *prov, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo();
	bool is;

	hints->fabric_attr->prov_name = strdup(prov);
	hints->ep_attr->type = type;
	hints->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~3;
	is = !fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 &w->info);
	fi_freeinfo(hints);
	if (!is)
		return false;
	FT_CALL(fi_fabric(w->info->fabric_attr, &w->fabric, NULL));
	FT_CALL(fi_domain(w->fabric, w->info, &w->domain, NULL));
	return true;
}

/*
 * Runs the cases from number i on in a child process. A case may crash the
 * child.
 */
static void run_from(const char *prov, enum fi_ep_type type, unsigned i,
		     volatile int *got)
{
	struct fi_info *info;
	struct world w;

	/*
	 * use no handlers of the core, which would print the place of the crash
	 */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	if (!world_open(&w, prov, type))
		_exit(0);
	info = w.info;
	for (; i < CASES; i++) {
		got[i] = SIGNAL;
		w.info = fi_dupinfo(info);
		got[i] = cases[i].open ? cases[i].open(&w) :
					 cases[i].lacks(&w, cases[i].what);
	}
	_exit(0);
}

static void run_cases(const char *prov, enum fi_ep_type type, volatile int *got)
{
	unsigned i;
	int status;
	pid_t pid;

	for (i = 0; i < CASES; i++)
		got[i] = NOT_OPEN;
	for (i = 0; i < CASES; i++) {
		fflush(stdout);
		pid = fork();
		FT_CHECK(pid >= 0, "fork");
		if (!pid)
			run_from(prov, type, i, got);
		FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		if (!WIFSIGNALED(status))
			break;
		while (i < CASES - 1 && got[i] != SIGNAL)
			i++;
		got[i] += WTERMSIG(status);
	}
}

static void compare(const char *core, enum fi_ep_type type)
{
	volatile int *raw = mmap(NULL, FT_PAGE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *ours = raw + CASES;
	char stack[64];
	unsigned i;

	FT_CHECK(raw != MAP_FAILED, "mmap");
	snprintf(stack, sizeof(stack), "%s;ofi_mrrc", core);
	ft_stage("over %s", stack);
	run_cases(core, type, raw);
	run_cases(stack, type, ours);
	for (i = 0; i < CASES; i++) {
		ft_log("%s over %s: %d, %d", cases[i].name, core, raw[i],
		       ours[i]);
		/* if a call crashes the raw core, ofi_mrrc may crash, too */
		if (raw[i] >= NOT_OPEN)
			continue;
		FT_CHECK(ours[i] < SIGNAL, "%s: signal %d; the core returns",
			 cases[i].name, ours[i] - SIGNAL);
		FT_CHECK(raw[i] || ours[i] == NOT_OPEN || !ours[i],
			 "%s: refused; the core opens", cases[i].name);
	}
	ft_unmap((void *) raw, FT_PAGE);
}

static void without_attributes(void)
{
	compare("sockets", FI_EP_RDM);
	compare("sockets", FI_EP_MSG);
	compare("tcp", FI_EP_MSG);
}

/* ---- many objects -------------------------------------------------------- */

#define MANY  8000
#define TRIES 5
/*
 * a close that takes SLOWER times as long counts as slower: walks over a list
 * of MANY objects would make closes a hundred times slower
 */
#define SLOWER 4

static struct fid *object[MANY];

static void open_cqs(struct fid_domain *domain, unsigned cnt)
{
	struct fi_cq_attr attr = { .size = 1, .wait_obj = FI_WAIT_NONE };
	struct fid_cq *cq;
	unsigned i;

	for (i = 0; i < cnt; i++) {
		FT_CALL(fi_cq_open(domain, &attr, &cq, NULL));
		object[i] = &cq->fid;
	}
}

/*
 * us of processor time for closing all objects, the oldest first or the newest.
 */
static uint64_t close_us(unsigned cnt, bool oldest)
{
	uint64_t begin = ft_thread_us();
	unsigned i;

	for (i = 0; i < cnt; i++)
		FT_CALL(fi_close(object[oldest ? i : cnt - 1 - i]));
	return ft_thread_us() - begin;
}

/* Opens many queues over udp, whose queues have no descriptors. */
static void many(void)
{
	uint64_t oldest, newest;
	struct world w;
	unsigned i;

	ft_stage("many queues");
	if (!world_open(&w, "udp;ofi_mrrc", FI_EP_DGRAM))
		return;
	for (i = 0; i < TRIES; i++) {
		open_cqs(w.domain, MANY);
		newest = close_us(MANY, false);
		open_cqs(w.domain, MANY);
		oldest = close_us(MANY, true);
		ft_log("closed: newest first %" PRIu64 " us, oldest %" PRIu64,
		       newest, oldest);
		if (oldest < SLOWER * newest)
			break;
	}
	FT_CHECK(i < TRIES, "%" PRIu64 " us, %" PRIu64 " the newest first",
		 oldest, newest);
	FT_CALL(fi_close(&w.domain->fid));
	FT_CALL(fi_close(&w.fabric->fid));
	fi_freeinfo(w.info);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw || !ft_core("tcp") || ft_rdm())
		ft_skip("the cores are those of this machine, once");
	without_attributes();
	many();
	return ft_done();
}
