/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_manual: tests FI_OFI_MRRC_MONITOR=manual. The cache keeps any memory
 * registered, including shared memory, until fi_mrrc_invalidate() names the
 * memory; the next use registers the memory again, in every domain.
 */
#include "ft_mrrc.h"

#define LEN (8 * FT_PAGE)

static struct ft_pair pair;
static uint64_t seed;

static void use(char *p, char *other)
{
	ft_verify_pair(&pair.c, p, other, LEN, ++seed);
	ft_verify_pair(&pair.s, other, p, LEN, ++seed);
	ft_release_pair(&pair);
}

static void check_count(const char *what, uint64_t got, uint64_t want)
{
	FT_CHECK(got == want, "%s: %" PRIu64 ", not %" PRIu64, what, got, want);
}

/* p is used by the client, domain 1; other by the server. */
static void round_of(char *p, char *other)
{
	struct fi_mrrc_stats s[2], t[2];
	int i;

	use(p, other);
	for (i = 0; i < 2; i++)
		ft_stats(&pair.dom[i], &s[i]);
	use(p, other);
	/*
	 * invalidate a part of the buffer: all regions that overlap the part
	 * are dropped
	 */
	if (!ft_opts.raw)
		FT_CALL(fi_mrrc_invalidate(pair.dom[0].domain, p + FT_PAGE, 1));
	ft_map(p, LEN);
	for (i = 0; i < 2 && !ft_opts.raw; i++) {
		ft_stats(&pair.dom[i], &t[i]);
		check_count("uncached", t[i].uncached, 0);
		check_count("registrations", t[i].registrations,
			    s[i].registrations);
		check_count("hits", t[i].hits, s[i].hits + 2);
		/* reported to the other domain, too, which has no part of p */
		check_count("invalidations", t[i].invalidations,
			    s[i].invalidations + i);
	}
	use(p, other);
	for (i = 0; i < 2 && !ft_opts.raw; i++) {
		ft_stats(&pair.dom[i], &s[i]);
		check_count("registrations", s[i].registrations,
			    t[i].registrations + i);
	}
}

/*
 * A buffer that cannot be registered is sent from a copy (verbs, memory shared
 * read-only, Linux before 6.2 or so); the copy does not stay registered.
 */
static void copies(char *in)
{
	struct fi_mrrc_stats before, after;
	int fd = memfd_create("fi_mrrc_manual", MFD_CLOEXEC);
	char *p;

	ft_stage("copies");
	FT_CHECK(fd >= 0 && !ftruncate(fd, LEN), "memfd: %s", strerror(errno));
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	FT_CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	ft_stats(&pair.dom[1], &before);
	ft_send_recv(&pair.c, p, in, LEN);
	FT_CHECK(!memcmp(in, p, LEN), "wrong data");
	ft_stats(&pair.dom[1], &after);
	FT_CHECK(after.bounces == before.bounces ||
			 after.regions <= before.regions,
		 "a copy is kept registered");
	FT_CALL(fi_mrrc_invalidate(pair.dom[1].domain, p, LEN));
	ft_unmap(p, LEN);
}

static void bad_calls(void)
{
	struct fid_domain *domain = pair.dom[0].domain;

	check_count("no address",
		    (uint64_t) -fi_mrrc_invalidate(domain, NULL, LEN),
		    FI_EINVAL);
	check_count("no length",
		    (uint64_t) -fi_mrrc_invalidate(domain, domain, 0),
		    FI_EINVAL);
	check_count("too long",
		    (uint64_t) -fi_mrrc_invalidate(domain, domain, SIZE_MAX),
		    FI_EINVAL);
	check_count("beyond the end",
		    (uint64_t) -fi_mrrc_invalidate(
			    domain, (void *) (UINTPTR_MAX - 9), 20),
		    FI_EINVAL);
	/* no region is there, so the call has nothing to do */
	FT_CALL(fi_mrrc_invalidate(domain, (void *) FT_PAGE, FT_PAGE));
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	unsigned i, rounds;
	char *p, *other;

	setenv("FI_OFI_MRRC_MONITOR", "manual", 1);
	ft_init(argc, argv);
	ft_rxm_copies_little();
	rounds = ft_iters(ft_core("verbs") ? 5 : 50);
	ft_pair_open(&pair, &attr);
	if (ft_stats(&pair.dom[0], &st)) {
		FT_CHECK(!strcmp(st.monitor, "manual"), "monitor %s",
			 st.monitor);
		bad_calls();
	}
	p = ft_map(NULL, LEN);
	/* no other monitor keeps shared memory registered */
	other = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(other != MAP_FAILED, "mmap: %s", strerror(errno));
	for (i = 0; i < rounds; i++) {
		ft_stage("round %u", i);
		round_of(p, other);
	}
	if (!ft_opts.raw)
		copies(other);
	ft_check_idle(&pair.dom[0], "at the end");
	if (!ft_opts.raw)
		FT_CALL(fi_mrrc_invalidate(pair.dom[1].domain, p, LEN));
	ft_unmap(p, LEN);
	ft_unmap(other, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
