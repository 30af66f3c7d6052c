/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_readonly: tests memory that may only be read. Read-only memory can be
 * the source of sends and writes; receiving into read-only memory, and using
 * memory that is not mapped, is an error, from the call or as a completion, and
 * affects no later operation. Memory for messages that the core copies in the
 * call is not tested: an invalid address of such a message raises SIGSEGV, as
 * memcpy does.
 */
#include "ft_mrrc.h"

#include <fcntl.h>

#define LEN (4 * FT_PAGE)

static struct ft_pair pair;
static char *in;
static struct fid_mr *mr;

static const char text[] =
	"A string literal may be sent from, as any other "
	"memory that can be read; it is long enough not to be injected by any "
	"provider that we know, so that it has to be registered or copied on "
	"its way, and that with nothing but the right to read it. Two hundred "
	"and fifty-six bytes are the most that verbs injects.";
static const uint64_t table[1024] = { 1, 2, 3 };

static void send_from(const void *p, size_t len, const char *what)
{
	uint64_t end;

	ft_stage("sending %s", what);
	memset(in, 0x5a, len);
	ft_send_recv(&pair.c, p, in, len);
	FT_CHECK(!memcmp(in, p, len), "%s: sent, wrong data", what);
	ft_release(&pair.dom[0]);
	memset(in, 0x5a, len);
	FT_POST(&pair.c,
		fi_write(pair.c.ep, p, len, ft_desc(&pair.dom[1], p, len),
			 pair.c.to, ft_raddr(&pair.dom[0], in), fi_mr_key(mr),
			 (void *) p));
	ft_wait_ctx(&pair.c, FT_TX, (void *) p, FI_WRITE);
	end = ft_deadline();
	while (memcmp(in, p, len)) {
		ft_progress(&pair.c);
		FT_CHECK(ft_limit_us() < end, "%s: written, wrong data", what);
	}
	ft_release_pair(&pair);
}

/* Maps a file with known contents and the rights @prot. */
static char *map_file(int prot, int flags)
{
	int fd = memfd_create("fi_mrrc_readonly", MFD_CLOEXEC);
	char *p, *q;

	FT_CHECK(fd >= 0 && !ftruncate(fd, LEN), "memfd: %s", strerror(errno));
	q = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FT_CHECK(q != MAP_FAILED, "mmap: %s", strerror(errno));
	ft_fill(q, LEN, 42);
	munmap(q, LEN);
	p = mmap(NULL, LEN, prot, flags, fd, 0);
	FT_CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	return p;
}

static char *map_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *p;

	FT_CHECK(fd >= 0, "/proc/self/exe: %s", strerror(errno));
	p = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE, fd, 0);
	FT_CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	return p;
}

/* Can the memory be registered? Kernels before 6.2 or so refuse some memory. */
static bool registrable(const char *p)
{
	struct fid_mr *m;

	if (fi_mr_reg(pair.dom[1].domain, p, LEN, FI_SEND, 0, 4711, 0, &m,
		      NULL))
		return false;
	FT_CALL(fi_close(&m->fid));
	return true;
}

/*
 * Sends memory that cannot be registered: the provider sends a copy; a raw core
 * cannot send such memory.
 */
static void send_copy_of(const char *p)
{
	struct fi_mrrc_stats before, after;

	if (ft_opts.raw)
		return;
	ft_stats(&pair.dom[1], &before);
	send_from(p, LEN, "memory that cannot be registered");
	ft_stats(&pair.dom[1], &after);
	FT_CHECK(after.bounces > before.bounces, "no copy was sent");
}

static void sources(void)
{
	char *p = ft_map(NULL, LEN);
	unsigned i;

	for (i = 0; i < 3; i++) {
		send_from(text, sizeof(text), "a string literal");
		send_from(table, sizeof(table), "constant data");
	}
	ft_fill(p, LEN, 9);
	send_from(p, LEN, "pages that may be written");
	FT_CHECK(!mprotect(p, LEN, PROT_READ), "mprotect");
	send_from(p, LEN, "the same, read-only now");
	ft_unmap(p, LEN);
	p = map_file(PROT_READ, MAP_SHARED);
	if (registrable(p)) {
		send_from(p, LEN, "a shared file, read-only");
		send_from(p + 5, LEN - 100, "a shared file, again");
	} else {
		printf("note: the core cannot register shared read-only "
		       "mappings\n");
		send_copy_of(p);
	}
	ft_unmap(p, LEN);
	p = map_file(PROT_READ, MAP_PRIVATE);
	send_from(p, LEN, "a private file, read-only");
	ft_unmap(p, LEN);
	p = map_self();
	send_from(p, LEN, "the program's own file");
	ft_unmap(p, LEN);
}

/* Writable shared files are sent from and received into. */
static void files(void)
{
	char *p = map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
	unsigned i;

	ft_stage("a shared file, both ways");
	for (i = 0; i < 5; i++) {
		ft_verify_pair(&pair.c, p, in, LEN, i);
		ft_verify_pair(&pair.s, in, p, LEN, 100 + i);
		ft_release_pair(&pair);
	}
	ft_unmap(p, LEN);
}

static void alive(const char *after)
{
	static uint64_t seed = 1000;
	char *p = ft_map(NULL, LEN);

	ft_stage("all is well after %s", after);
	ft_verify_pair(&pair.c, p, in, LEN, ++seed);
	ft_verify_pair(&pair.s, in, p, LEN, ++seed);
	ft_release_pair(&pair);
	ft_unmap(p, LEN);
	ft_check_idle(&pair.dom[0], after);
	ft_check_idle(&pair.dom[1], after);
}

/*
 * Checks the result of posting: an error of the call, or one completion with an
 * error. As the error may have ended the connection, the test makes a new
 * connection.
 */
static void expect_error(struct ft_ep *ep, enum ft_dir dir, ssize_t ret,
			 void *ctx, const char *what)
{
	struct ft_comp comp;

	ft_stage("%s", what);
	FT_CHECK(ret <= 0 && ret != -FI_EAGAIN, "%s: %zd", what, ret);
	ft_log("%s: %s", what, fi_strerror((int) -ret));
	if (ret) {
		ft_expect_none(ep, 5);
		return;
	}
	if (dir == FT_TX && ft_rxm() && !ft_core("verbs")) {
		/* the operation ends with its endpoint, which alive() checks */
		printf("note: %s: the core loses the operation\n", what);
		ft_reconnect(&pair);
		return;
	}
	if (dir == FT_RX && !ft_core("verbs")) {
		/*
		 * cores other than verbs do not refuse read-only memory, and
		 * write to it
		 */
		printf("note: %s: the core does not object\n", what);
		FT_CALL(fi_cancel(&ep->ep->fid, ctx));
	} else if (dir == FT_RX) {
		FT_POST(ep->peer, fi_send(ep->peer->ep, in, LEN,
					  ft_desc(ep->peer->dom, in, LEN),
					  ep->peer->to, NULL));
	}
	ft_wait_any(ep, dir, &comp);
	FT_CHECK(comp.err, "%s: it worked", what);
	FT_CHECK(comp.ctx == ctx, "%s: context %p", what, comp.ctx);
	ft_release_pair(&pair);
	ft_reconnect(&pair);
}

static void bad_receives(void)
{
	char *ro = ft_map(NULL, LEN), *gone = ft_map_apart(LEN);

	ft_fill(ro, LEN, 3);
	FT_CHECK(!mprotect(ro, LEN, PROT_READ), "mprotect");
	ft_unmap(gone, LEN);
	expect_error(&pair.s, FT_RX,
		     fi_recv(pair.s.ep, ro, LEN, NULL, FT_ANY, ro), ro,
		     "receiving into read-only memory");
	alive("a receive into read-only memory");
	FT_CHECK_BUF(ro, LEN, 3, "read-only memory");
	expect_error(&pair.s, FT_RX,
		     fi_recv(pair.s.ep, gone, LEN, NULL, FT_ANY, gone), gone,
		     "receiving into unmapped memory");
	alive("a receive into unmapped memory");
	/*
	 * send from the memory first, so that a registration for reading exists
	 */
	send_from(ro, LEN, "what cannot be received into");
	expect_error(&pair.c, FT_RX,
		     fi_recv(pair.c.ep, ro, LEN, NULL, FT_ANY, ro), ro,
		     "receiving into it even so");
	alive("a receive into a source");
	ft_unmap(ro, LEN);
}

static void bad_sends(void)
{
	char *gone = ft_map_apart(3 * LEN), *hole = ft_map_apart(3 * LEN);
	uint64_t addr = ft_raddr(&pair.dom[0], in);

	ft_unmap(gone, 3 * LEN);
	expect_error(&pair.c, FT_TX,
		     fi_send(pair.c.ep, gone, LEN, NULL, pair.c.to, gone), gone,
		     "sending unmapped memory");
	alive("a send of unmapped memory");
	expect_error(&pair.c, FT_TX,
		     fi_write(pair.c.ep, gone, LEN, NULL, pair.c.to, addr,
			      fi_mr_key(mr), gone),
		     gone, "writing unmapped memory");
	alive("a write of unmapped memory");
	ft_fill(hole, 3 * LEN, 4);
	ft_unmap(hole + LEN, LEN);
	/* ofi_rxm would keep its own registration permanently */
	if (!ft_rxm() || ft_core("verbs")) {
		expect_error(&pair.c, FT_TX,
			     fi_send(pair.c.ep, hole, 3 * LEN, NULL, pair.c.to,
				     hole),
			     hole, "sending memory with a hole");
		alive("a send of memory with a hole");
	}
	/* the memory up to the hole is valid */
	send_from(hole + LEN / 2, LEN / 2, "what ends at a hole");
	send_from(hole + 2 * LEN, LEN, "what begins after a hole");
	FT_CHECK(mmap(hole + LEN, LEN, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) != MAP_FAILED,
		 "mmap");
	send_from(hole + LEN / 2, LEN / 2, "what ends at PROT_NONE");
	send_from(hole + 2 * LEN, LEN, "what begins after PROT_NONE");
	ft_unmap(hole, 3 * LEN);
}

/* Wrong arguments of the calls, which raw cores may not detect. */
static void bad_arguments(void)
{
	struct iovec iov[2] = { { in, LEN }, { NULL, 8 } };
	struct iovec wrap[2] = { { in, SIZE_MAX }, { in, 2 } };
	struct iovec many[4096];
	char context[1024] = { 0 };
	const struct fi_msg trigger = {
		.msg_iov = iov,
		.iov_count = 1,
		.addr = pair.c.to,
		.context = context,
	};
	size_t i;
	struct ft_comp comp;
	ssize_t ret;

	expect_error(&pair.c, FT_TX,
		     fi_send(pair.c.ep, NULL, LEN, NULL, pair.c.to, NULL), NULL,
		     "NULL with a length");
	expect_error(&pair.c, FT_TX,
		     fi_send(pair.c.ep, in, SIZE_MAX - 5, NULL, pair.c.to, in),
		     in, "a length that wraps");
	expect_error(&pair.c, FT_TX,
		     fi_send(pair.c.ep, (void *) (UINTPTR_MAX - 100), LEN, NULL,
			     pair.c.to, in),
		     in, "an address that wraps");
	expect_error(&pair.s, FT_RX,
		     fi_recv(pair.s.ep, in, SIZE_MAX / 2, NULL, FT_ANY, in), in,
		     "half of all memory");
	expect_error(&pair.c, FT_TX,
		     fi_sendv(pair.c.ep, iov, NULL, 2, pair.c.to, iov), iov,
		     "an iov with NULL in it");
	expect_error(&pair.c, FT_TX,
		     fi_sendv(pair.c.ep, wrap, NULL, 2, pair.c.to, wrap), wrap,
		     "lengths whose sum wraps");
	for (i = 0; i < 4096; i++)
		many[i] = (struct iovec){ in, 1 };
	ret = fi_sendv(pair.c.ep, many, NULL, 4096, pair.c.to, many);
	FT_CHECK(ret < 0 && ret != -FI_EAGAIN, "4096 iovs: %zd", ret);
	ret = fi_sendmsg(pair.c.ep, &trigger, FI_TRIGGER);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "a triggered operation: %zd", ret);
	alive("wrong arguments");

	ft_stage("NULL without a length");
	FT_POST(&pair.c, fi_recv(pair.s.ep, NULL, 0, NULL, FT_ANY, NULL));
	FT_POST(&pair.c, fi_send(pair.c.ep, NULL, 0, NULL, pair.c.to, NULL));
	ft_wait(&pair.s, FT_RX, &comp);
	ft_wait(&pair.c, FT_TX, &comp);
	alive("nothing");
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	ft_rxm_copies_little();
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, 4 * LEN);
	mr = ft_reg(&pair.dom[0], in, 4 * LEN, FI_REMOTE_WRITE);
	sources();
	files();
	if (!ft_opts.raw) {
		bad_receives();
		bad_sends();
		bad_arguments();
	}
	alive("everything");
	FT_CALL(fi_close(&mr->fid));
	ft_unmap(in, 4 * LEN);
	ft_pair_close(&pair);
	return ft_done();
}
