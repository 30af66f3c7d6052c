/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_copied: tests that messages that ofi_rxm copies are not looked up
 * when they are sent, for any setting of ofi_rxm's parameters; the provider
 * looks longer messages up, since peers read these messages from the sender's
 * buffer. The test sends sizes around the limit, and memory that cannot be
 * registered.
 *
 * Each setting runs in its own process, since ofi_rxm reads its parameters
 * once.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define MOST 200000

static const struct setting {
	const char *buffer, *segmented;
	size_t copied;
} settings[] = {
	{ NULL, NULL, 131072 },
	{ NULL, "40000", 40000 },
	{ NULL, "100", 16384 }, /* the limit is at least one buffer */
	{ "4096", NULL, 32768 },
	{ "70000", "150000", 70000 }, /* too long for segments */
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

static struct ft_pair pair;

static uint64_t lookups(void)
{
	struct fi_mrrc_stats st = { .size = sizeof(st) };

	FT_CALL(fi_mrrc_stats_read(pair.dom[1].domain, &st));
	return st.lookups;
}

/* Returns the number of lookups by the sender for one message. */
static uint64_t looked_up(char *out, char *in, size_t len, bool tagged)
{
	struct iovec iov[2] = { { out, len / 3 },
				{ out + len / 3, len - len / 3 } };
	const uint64_t was = lookups();
	struct ft_comp comp;

	ft_stage("%zu bytes", len);
	ft_fill(out, len, len);
	if (tagged) {
		FT_POST(&pair.s,
			fi_trecv(pair.s.ep, in, len, NULL, FT_ANY, 7, 0, in));
		FT_POST(&pair.c,
			fi_tsendv(pair.c.ep, iov, NULL, 2, pair.c.to, 7, out));
		ft_wait(&pair.s, FT_RX, &comp);
		ft_wait(&pair.c, FT_TX, &comp);
	} else {
		ft_send_recv(&pair.c, out, in, len);
	}
	FT_CHECK_BUF(in, len, len, "a message");
	return lookups() - was;
}

/*
 * Sends memory that is mapped read-only: verbs may be unable to register such
 * memory (before Linux 6.2 or so), and need not register such memory for a
 * message that is copied.
 */
static void readonly(char *in, size_t len)
{
	int fd = memfd_create("fi_mrrc_copied", MFD_CLOEXEC);
	const uint64_t was = lookups();
	char *out;

	ft_stage("shared read-only memory");
	FT_CHECK(fd >= 0 && !ftruncate(fd, (off_t) len), "memfd: %s",
		 strerror(errno));
	out = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	FT_CHECK(out != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	memset(in, 0x5a, len);
	ft_send_recv(&pair.c, out, in, len);
	FT_CHECK(!memcmp(in, out, len), "wrong data");
	FT_CHECK(lookups() == was, "read-only memory is looked up");
	ft_unmap(out, len);
}

/* A triggered operation is refused, however short. */
static void triggered(char *out)
{
	const struct fi_msg msg = {
		.msg_iov = &(struct iovec){ out, FT_PAGE },
		.iov_count = 1,
		.addr = pair.c.to,
	};
	ssize_t ret = fi_sendmsg(pair.c.ep, &msg, FI_TRIGGER);

	FT_CHECK(ret == -FI_EOPNOTSUPP, "a triggered operation: %zd", ret);
}

static int with(const struct setting *set)
{
	const size_t limit = set->copied;
	struct ft_attr attr = FT_ATTR;
	char *out, *in;
	size_t len;
	int tagged;

	attr.caps |= FI_TAGGED;
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, MOST);
	in = ft_map(NULL, MOST);
	for (tagged = 0; tagged < 2; tagged++) {
		for (len = 1; len < limit; len *= 3)
			FT_CHECK(!looked_up(out, in, len, tagged),
				 "%zu bytes are looked up", len);
		FT_CHECK(!looked_up(out, in, limit, tagged),
			 "%zu bytes are looked up", limit);
		FT_CHECK(looked_up(out, in, limit + 1, tagged),
			 "%zu bytes are not looked up", limit + 1);
	}
	/*
	 * a message from a buffer that the cache knows is not looked up, either
	 */
	FT_CHECK(!looked_up(out, in, limit, false),
		 "%zu known bytes are looked up", limit);
	readonly(in, limit);
	triggered(out);
	ft_unmap(out, MOST);
	ft_unmap(in, MOST);
	ft_pair_close(&pair);
	return ft_done();
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		pid = fork();
		FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			set("FI_OFI_RXM_BUFFER_SIZE", settings[i].buffer);
			set("FI_OFI_RXM_SAR_LIMIT", settings[i].segmented);
			ft_init(argc, argv);
			if (!ft_rxm() || !ft_core("verbs"))
				ft_skip("of ofi_rxm over verbs");
			exit(with(&settings[i]));
		}
		FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		if (status)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	return 0;
}
