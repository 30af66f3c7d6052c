/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_process: tests allocations for code that knows no domain, such as
 * libmrrc_mpi.so: the memory comes from the process's first open domain.
 * Allocations stay usable when their domain is closed, but are no longer
 * registered.
 */
#include "ft_mrrc.h"

#include "fi/alloc/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define LEN   300000
#define FORKS 50

static const struct mrrc_process_alloc *calls;
static struct ft_pair pair;
static struct fi_info *info;
static struct fid_fabric *fabric;

void mrrc_process_alloc_ready(const struct mrrc_process_alloc *ready)
{
	calls = ready;
}

static char *get(size_t len)
{
	void *buf;

	FT_CALL(calls->alloc(len, &buf));
	return buf;
}

static struct fid_domain *open_domain(void)
{
	struct fid_domain *domain;

	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	return domain;
}

static bool has(struct fid_domain *domain, const void *buf)
{
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };

	return !fi_mr_query(domain, buf, &attr);
}

static void closed(const char *when)
{
	void *buf = &buf;

	FT_CHECK(calls->alloc(LEN, &buf) == -FI_ENOSYS && buf == &buf,
		 "%s: memory without a domain", when);
	FT_CHECK(calls->release(&buf) == -FI_ENOENT, "%s: foreign", when);
}

/* Memory from the pair's first domain is not registered again for transfers. */
static void transfers(void)
{
	struct ft_attr attr = FT_ATTR;
	char *buf, *other = ft_map(NULL, LEN);
	uint64_t before;
	unsigned i, side;

	ft_stage("transfers");
	ft_pair_open(&pair, &attr);
	buf = get(LEN);
	side = !has(pair.dom[0].domain, buf);
	FT_CALL(calls->release(buf));
	before = ft_counter(&pair.dom[side], "registrations");
	for (i = 0; i < 20; i++) {
		buf = get(LEN);
		FT_CHECK(has(pair.dom[side].domain, buf), "another domain");
		ft_verify_pair(&pair.c, side ? buf : other, side ? other : buf,
			       LEN, i);
		FT_CALL(calls->release(buf));
	}
	FT_CHECK(ft_opts.raw ||
			 ft_counter(&pair.dom[side], "registrations") == before,
		 "registered again");
	FT_CHECK(calls->release(buf) == -FI_EALREADY, "freed twice");
	FT_CHECK(calls->release(other) == -FI_ENOENT, "foreign");
	ft_release_pair(&pair);
	munmap(other, LEN);
	ft_pair_close(&pair);
	closed("after the pair");
}

/* Closes domains that have allocations, in the order of opening. */
static void domains(void)
{
	struct fid_domain *one = open_domain(), *two;
	char *buf[2] = { get(LEN), get(100) };
	unsigned i;

	ft_stage("two domains");
	two = open_domain();
	memset(buf[0], 'p', LEN);
	FT_CHECK(has(one, buf[0]) && has(one, get(LEN)), "not of the first");
	FT_CALL(fi_close(&one->fid));
	for (i = 0; i < 4; i++)
		FT_CALL(calls->release(buf[i % 2]));
	FT_CHECK(buf[0][0] == 'p' && buf[0][LEN - 1] == 'p', "data are lost");
	buf[1] = get(LEN);
	FT_CHECK(has(two, buf[1]), "not of the second");
	FT_CALL(calls->release(buf[1]));
	FT_CALL(fi_close(&two->fid));
	closed("after two domains");
}

/* The application's own allocations keep their domain open. */
static void own(void)
{
	struct fid_domain *domain = open_domain();
	void *buf;

	ft_stage("own allocations");
	FT_CALL(fi_mr_alloc(domain, LEN, 0, 0, &buf, NULL));
	FT_CHECK(fi_close(&domain->fid) == -FI_EBUSY, "closed");
	FT_CALL(calls->release(get(LEN)));
	FT_CALL(fi_mr_free(domain, buf));
	FT_CALL(fi_close(&domain->fid));
}

static void *allocate(void *stop)
{
	while (!atomic_load((atomic_bool *) stop))
		FT_CALL(calls->release(get(100)));
	return NULL;
}

/*
 * Forks while another thread allocates: the child gets no memory from the
 * inherited domain, and does not hang.
 */
static void forks(void)
{
	struct fid_domain *domain = open_domain();
	char *buf = get(LEN);
	atomic_bool stop = false;
	pthread_t thread;
	int i, status;
	void *other;
	pid_t pid;

	ft_stage("forks");
	FT_CHECK(!pthread_create(&thread, NULL, allocate, &stop), "no thread");
	for (i = 0; i < FORKS; i++) {
		pid = fork();
		FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			signal(SIGALRM, SIG_DFL);
			alarm(15);
			if (calls->alloc(100, &other) != -FI_ENOSYS ||
			    calls->release(buf))
				_exit(1);
			fi_close(&domain->fid);
			_exit(0);
		}
		FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
			 "fork %d: status %#x", i, status);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	FT_CALL(calls->release(buf));
	FT_CALL(fi_close(&domain->fid));
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CHECK(calls, "the provider gave no calls");
	if (ft_opts.raw && !getenv("FI_HOOK")) {
		fi_close(&open_domain()->fid);
		closed("a raw core");
	} else {
		closed("before a domain");
		domains();
		own();
		transfers();
		forks();
	}
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return ft_done();
}
