/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_hook: tests the hooking form of the provider. Registrations of the
 * core's own domains come from the cache, keys are revoked, and with the
 * utility form above the hook no registration is cached twice.
 *
 * The test runs over the core below ofi_mrrc, with FI_HOOK=mrrc. Registrations
 * by ofi_rxm itself are counted in the provider's log.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <sys/wait.h>

#define LEN	(16 * FT_PAGE)
#define BIG	(1UL << 20) /* ofi_rxm makes a rendezvous of this length */
#define ROUNDS	20
#define THREADS 4
#define LOCAL	(FI_SEND | FI_RECV | FI_READ | FI_WRITE)

static struct ft_pair pair;
static char *out, *in;

static void hook_stats(struct ft_dom *dom, struct fi_mrrc_stats *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	FT_CALL(fi_mrrc_stats_read(dom->domain, st));
}

static struct fid_mr *reg_key(void *buf, size_t len, uint64_t access,
			      uint64_t key)
{
	struct fid_mr *mr = NULL;

	FT_CALL(fi_mr_reg(pair.dom[1].domain, buf, len, access, 0, key, 0, &mr,
			  buf));
	FT_CHECK(mr->fid.context == buf, "its context is %p", mr->fid.context);
	return mr;
}

/* Calls with NULL get the core's answers; verbs (1.17) crashes. */
static void no_arguments(void)
{
	struct fid_mr *mr;
	void *ops;
	int ret;

	if (ft_core("verbs"))
		return;
	ft_stage("operations without a name");
	ret = fi_open_ops(&pair.dom[1].domain->fid, NULL, 0, &ops, NULL);
	FT_CHECK(ret == -FI_ENOSYS, "fi_open_ops: %d", ret);
	ft_stage("registering without attributes");
	ret = fi_mr_regattr(pair.dom[1].domain, NULL, 0, &mr);
	FT_CHECK(ret == -FI_EINVAL, "fi_mr_regattr: %d", ret);
}

/*
 * Registers the same memory again and again: the core registers it once or
 * twice.
 */
static void again(void)
{
	struct fi_mrrc_stats before, after;
	struct fid_mr *mr[ROUNDS];
	int i;

	ft_stage("the same memory again");
	hook_stats(&pair.dom[1], &before);
	for (i = 0; i < ROUNDS; i++)
		mr[i] = reg_key(out + i * 100, LEN / 2, LOCAL, 1000 + i);
	for (i = 0; i < ROUNDS; i++) {
		if (!(pair.dom[1].info->domain_attr->mr_mode & FI_MR_PROV_KEY))
			FT_CHECK(fi_mr_key(mr[i]) == 1000UL + i, "key %" PRIu64,
				 fi_mr_key(mr[i]));
		FT_CALL(fi_close(&mr[i]->fid));
	}
	hook_stats(&pair.dom[1], &after);
	FT_CHECK(after.lookups - before.lookups == ROUNDS,
		 "%" PRIu64 " lookups", after.lookups - before.lookups);
	if (strcmp(after.monitor, "none"))
		FT_CHECK(after.registrations - before.registrations <= 2,
			 "%" PRIu64 " registrations",
			 after.registrations - before.registrations);
}

/* Transfers with descriptors from the cache, from memory that is replaced. */
static void remapped(void)
{
	struct fi_mrrc_stats before, after;
	int i;

	hook_stats(&pair.dom[1], &before);
	for (i = 0; i < ROUNDS; i++) {
		ft_stage("remapped memory, round %d", i);
		ft_verify_pair(&pair.c, out, in, LEN, i);
		ft_release_pair(&pair);
		/*
		 * replaced in one call, as another thread could map into a hole
		 */
		FT_CHECK(ft_map(out, LEN) == out, "not the same address");
	}
	hook_stats(&pair.dom[1], &after);
	if (strcmp(after.monitor, "none"))
		FT_CHECK(after.invalidations - before.invalidations >= ROUNDS,
			 "%" PRIu64 " invalidations",
			 after.invalidations - before.invalidations);
}

/* Memory is unmapped while it is registered: closing ends the registration. */
static void held(void)
{
	char *p = ft_map(NULL, LEN);
	struct fi_mrrc_stats st;
	struct fid_mr *mr;

	ft_stage("unmapped while registered");
	p[0] = 1;
	mr = reg_key(p, LEN, LOCAL, 1);
	ft_unmap(p, LEN);
	hook_stats(&pair.dom[1], &st);
	FT_CHECK(st.held_regions == 1, "%" PRIu64 " held", st.held_regions);
	FT_CHECK(fi_close(&pair.dom[1].domain->fid) == -FI_EBUSY,
		 "a domain closes over its registrations");
	FT_CALL(fi_close(&mr->fid));
	hook_stats(&pair.dom[1], &st);
	FT_CHECK(!st.held_regions, "%" PRIu64 " held", st.held_regions);
}

/*
 * A registration for peers is the core's, and ends when it is closed.
 */
static void remote(void)
{
	struct fi_mrrc_stats before, after;
	struct fid_mr *mr;
	uint64_t i;

	ft_stage("registrations for peers");
	hook_stats(&pair.dom[1], &before);
	for (i = 0; i < ROUNDS; i++) {
		mr = reg_key(out, LEN, FI_REMOTE_READ, i | 1UL << 31);
		FT_CALL(fi_close(&mr->fid));
		mr = reg_key(out, LEN, LOCAL | FI_REMOTE_WRITE, i);
		FT_CALL(fi_close(&mr->fid));
	}
	hook_stats(&pair.dom[1], &after);
	FT_CHECK(after.lookups == before.lookups, "%" PRIu64 " lookups",
		 after.lookups - before.lookups);
}

/* Read-only memory can be sent. */
static void read_only(void)
{
	char *p = ft_map(NULL, LEN);
	struct fid_mr *mr;

	ft_stage("read-only memory");
	ft_fill(p, LEN, 7);
	FT_CALL(mprotect(p, LEN, PROT_READ));
	mr = reg_key(p, LEN, FI_SEND, 5);
	memset(in, 0, LEN);
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, LEN,
				 ft_desc(&pair.dom[0], in, LEN), FT_ANY, in));
	FT_POST(&pair.c,
		fi_send(pair.c.ep, p, LEN, fi_mr_desc(mr), pair.c.to, p));
	ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
	ft_wait_ctx(&pair.c, FT_TX, p, FI_SEND);
	FT_CHECK_BUF(in, LEN, 7, "from read-only memory");
	FT_CALL(fi_close(&mr->fid));
	ft_release(&pair.dom[0]);
	ft_unmap(p, LEN);
}

/* Data that are sent from an allocation. */
static void send_from(char *p, struct fid_mr *mr, unsigned seed)
{
	ft_fill(p, LEN, seed);
	memset(in, 0, LEN);
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, LEN,
				 ft_desc(&pair.dom[0], in, LEN), FT_ANY, in));
	FT_POST(&pair.c,
		fi_send(pair.c.ep, p, LEN, fi_mr_desc(mr), pair.c.to, p));
	ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
	ft_wait_ctx(&pair.c, FT_TX, p, FI_SEND);
	FT_CHECK_BUF(in, LEN, seed, "from an allocation");
}

/* A domain that refuses to close keeps its allocations. */
static void allocated(void)
{
	struct fid_domain *used = pair.dom[1].domain, *domain;
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };
	struct fi_mr_heap_stats stats = { .size = sizeof(stats) };
	struct fid_mr *mr;
	uint64_t key;
	void *p;

	ft_stage("a domain that is in use, with allocations");
	FT_CALL(fi_mr_alloc(used, LEN, FI_REMOTE_READ, 0, &p, &mr));
	send_from(p, mr, 1);
	key = fi_mr_key(mr);
	FT_CHECK(fi_close(&used->fid) == -FI_EBUSY, "a domain in use closes");
	send_from(p, mr, 2);
	FT_CALL(fi_mr_query(used, p, &attr));
	FT_CHECK(attr.base == p && attr.mr == mr && attr.key == key,
		 "it is another");
	FT_CALL(fi_mr_free(used, p));
	/* no allocation is left, but the core refuses to close */
	FT_CHECK(fi_close(&used->fid) == -FI_EBUSY, "a domain in use closes");
	FT_CALL(fi_mr_alloc_stats_read(used, &stats));
	FT_CHECK(stats.allocs == 1 && !stats.live && !stats.blocks,
		 "%" PRIu64 " allocations, %" PRIu64 " live, %" PRIu64
		 " blocks",
		 stats.allocs, stats.live, stats.blocks);
	FT_CALL(fi_mr_alloc(used, LEN, 0, 0, &p, &mr));
	send_from(p, mr, 3);
	FT_CALL(fi_mr_free(used, p));

	ft_stage("a domain with nothing but an allocation");
	FT_CALL(fi_domain(pair.dom[1].fabric, pair.dom[1].info, &domain, NULL));
	FT_CALL(fi_mr_alloc(domain, LEN, 0, 0, &p, NULL));
	FT_CHECK(fi_close(&domain->fid) == -FI_EBUSY,
		 "a domain closes over an allocation");
	memset(p, 1, LEN);
	FT_CALL(fi_mr_free(domain, p));
	FT_CALL(fi_close(&domain->fid));
}

static void *thread_main(void *arg)
{
	char *own = ft_map(NULL, LEN);
	struct fid_mr *mr[2];
	unsigned i;

	for (i = 0; i < ft_iters(2000); i++) {
		mr[0] = reg_key(out + ft_rand() % LEN / 2, LEN / 2, LOCAL, i);
		mr[1] = reg_key(own, 1 + ft_rand() % LEN, LOCAL, i);
		FT_CALL(fi_close(&mr[i % 2]->fid));
		/* replaced in one call: another thread could map into a hole */
		if (i % 16 == 0)
			ft_map(own, LEN);
		FT_CALL(fi_close(&mr[1 - i % 2]->fid));
	}
	ft_unmap(own, LEN);
	return arg;
}

static void threads(void)
{
	struct fi_mrrc_stats st;
	pthread_t thread[THREADS];
	int i;

	ft_stage("threads");
	for (i = 0; i < THREADS; i++)
		FT_CALL(pthread_create(&thread[i], NULL, thread_main, NULL));
	for (i = 0; i < THREADS; i++)
		FT_CALL(pthread_join(thread[i], NULL));
	FT_CALL(fi_mrrc_flush(pair.dom[1].domain));
	hook_stats(&pair.dom[1], &st);
	FT_CHECK(!st.held_regions && !st.regions &&
			 st.registrations == st.deregistrations,
		 "%" PRIu64 " held, %" PRIu64 " regions, %" PRIu64
		 " registrations, %" PRIu64 " deregistrations",
		 st.held_regions, st.regions, st.registrations,
		 st.deregistrations);
}

/*
 * An application that asks for registration events gets an event for each
 * registration.
 */
static void events(void)
{
	struct ft_dom *dom = &pair.dom[1];
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	uint64_t end = ft_deadline();
	struct fi_eq_entry entry;
	struct fid_domain *domain;
	struct fid_mr *mr = NULL;
	struct fid_eq *eq;
	uint32_t event;
	ssize_t ret;
	int i;

	ft_stage("events");
	FT_CALL(fi_domain(dom->fabric, dom->info, &domain, NULL));
	FT_CALL(fi_eq_open(dom->fabric, &attr, &eq, NULL));
	ret = fi_domain_bind(domain, &eq->fid, FI_REG_MR);
	for (i = 0; !ret && i < 3; i++) {
		FT_CALL(fi_mr_reg(domain, out, LEN, LOCAL, 0, i, 0, &mr, &mr));
		do {
			ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
			FT_CHECK(ft_limit_us() < end, "no event");
		} while (ret == -FI_EAGAIN);
		FT_CHECK(ret == sizeof(entry) && event == FI_MR_COMPLETE &&
				 entry.context == &mr,
			 "%zd, event %u", ret, event);
		FT_CALL(fi_close(&mr->fid));
		ret = 0;
	}
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&eq->fid));
}

/* ---- the provider's log -------------------------------------------------- */

static FILE *logged;

/* Directs the log to a file, before libfabric starts. */
static void log_to_file(void)
{
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "ofi_mrrc", 1);
	logged = tmpfile();
	FT_CHECK(logged && dup2(fileno(logged), STDERR_FILENO) >= 0,
		 "no place for the log: %s", strerror(errno));
}

/*
 * Returns the number of lines of the log with this text; adds up the lookups
 * and hits in these lines.
 */
static unsigned log_lines(const char *text, unsigned long *lookups,
			  unsigned long *hits)
{
	unsigned long l, h;
	char line[1024];
	unsigned n = 0;
	char *at;

	*lookups = *hits = 0;
	rewind(logged);
	while (fgets(line, sizeof(line), logged)) {
		at = strstr(line, text);
		if (!at)
			continue;
		n++;
		if (sscanf(at + strlen(text), " %lu lookups, %lu hits", &l,
			   &h) == 2) {
			*lookups += l;
			*hits += h;
		}
	}
	return n;
}

/* ofi_rxm registers both ends of each rendezvous by itself. */
static void rendezvous(void)
{
	struct ft_attr attr = FT_ATTR;
	unsigned long lookups, hits;
	int i;

	attr.caps = FI_MSG | FI_TAGGED;
	/* pass no descriptors; the domain has no statistics */
	ft_opts.raw = false;
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, BIG);
	in = ft_map(NULL, BIG);
	for (i = 0; i < ROUNDS; i++) {
		ft_stage("rendezvous %d", i);
		ft_verify_pair(&pair.c, out, in, BIG, i);
		if (i % 8)
			continue;
		FT_CHECK(ft_map(out, BIG) == out, "not the same address");
	}
	ft_opts.raw = true;
	ft_pair_close(&pair);
	log_lines(ft_core("verbs") ? "> verbs:" : "> tcp:", &lookups, &hits);
	printf("rendezvous: %lu lookups, %lu hits\n", lookups, hits);
	/* tcp asks for no registration */
	if (ft_core("verbs"))
		FT_CHECK(lookups == 2 * ROUNDS && hits >= 2 * ROUNDS - 8,
			 "%lu lookups, %lu hits", lookups, hits);
}

/* Over ofi_mrrc, ofi_mrrc caches, and the hook below it does not. */
static void both(void)
{
	struct ft_attr attr = FT_ATTR;
	unsigned long lookups, hits;
	struct fi_mrrc_stats st;
	int i;

	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, BIG);
	in = ft_map(NULL, BIG);
	for (i = 0; i < ROUNDS; i++)
		ft_verify_pair(&pair.c, out, in, BIG, i);
	FT_CHECK(!ft_caches(&pair.dom[1]) ||
			 (ft_stats(&pair.dom[1], &st) && st.hits >= ROUNDS - 2),
		 "%" PRIu64 " hits", st.hits);
	ft_pair_close(&pair);
	FT_CHECK(!log_lines("registrations are cached", &lookups, &hits),
		 "two caches");
}

static void core(void)
{
	struct ft_attr attr = FT_ATTR;

	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	no_arguments();
	again();
	remapped();
	held();
	remote();
	read_only();
	allocated();
	threads();
	events();
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	ft_pair_close(&pair);
}

/*
 * Runs both() in its own process, since libfabric reads the environment once,
 * when it starts.
 */
static void both_forked(void)
{
	pid_t pid = fork();
	int status;

	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		log_to_file();
		both();
		exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "both forms at once: status 0x%x", status);
}

int main(int argc, char **argv)
{
	setenv("FI_HOOK", "mrrc", 1);
	/* leave libfabric's cache as it is, or would be without the hook */
	setenv("FI_MR_CACHE_MAX_COUNT", "1024", 0);
	ft_init(argc, argv);
	if (!ft_opts.raw)
		both_forked();
	ft_set_raw();
	if (ft_rdm()) {
		log_to_file();
		rendezvous();
	} else {
		/* fi_close() revokes keys; hook_keys.c has other settings */
		setenv("FI_OFI_MRRC_REVOKE_MS", "0", 0);
		core();
	}
	return ft_done();
}
