/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that the tests of fabtests/ share: options, checks that end the
 * process, a connected pair of endpoints, completions, buffers with known
 * contents.
 *
 * A test is one process that drives both sides of its connections: server
 * and client each have their own fabric and domain. Unless a test starts
 * threads itself, one thread does everything, so the order of events is the
 * same in each run.
 *
 * Over ofi_mrrc buffers are passed without descriptors and the provider's
 * counters are checked. In raw mode (-R, or a provider list without ofi_mrrc)
 * ft_desc() registers each buffer and no counters are checked: raw mode proves
 * the tests right.
 *
 * Exit status: 0 passed, 1 failed, 77 skipped with a printed reason.
 */
#ifndef FT_MRRC_H
#define FT_MRRC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_ext_mrrc.h>

#if FI_MAJOR_VERSION >= 2
/* FI_REG_MR is deprecated in 2.x, with a warning at each use */
#undef FI_REG_MR
#define FI_REG_MR (1ULL << 59)
#endif

#ifndef FI_BUFFERED_RECV /* libfabric 2.x has no FI_BUFFERED_RECV */
#define FI_BUFFERED_RECV 0
#endif

#define FT_FIVERSION ft_fiversion
#define FT_SKIP_RC   77
#define FT_PAGE	     4096UL
#define FT_ANY	     FI_ADDR_UNSPEC
/* maximum number of buffers that a test uses, see ft_iov_limit() */
#define FT_IOV_MAX  4
#define FT_NAME_MAX 64 /* maximum bytes of a listener's name */
#define FT_HEX_MAX  (2 * FT_NAME_MAX + 1)

/* ---- ft_mrrc.c: options, environment, checks -------------------------- */

struct ft_opts {
	const char *prov; /* "tcp;ofi_mrrc" */
	const char *addr; /* address of both sides */
	/* FI_EP_UNSPEC: the type that the provider's name implies */
	enum fi_ep_type type;
	bool raw;
	bool verbose;
	int timeout;	/* seconds that the whole test may take */
	unsigned iters; /* number of rounds; 0: the test's own number */
	unsigned seed;
};
extern struct ft_opts ft_opts;
extern uint32_t ft_fiversion; /* API version passed to fi_getinfo() */

#define FT_OPTS "p:s:e:Rvt:I:S:h"

void ft_usage(const char *name);
/* Handles one option of FT_OPTS; exits for -h and unknown options. */
void ft_parse_opt(const char *name, int op, char *arg);
/* Parses FT_OPTS; sets what tests over ofi_mrrc need; starts the deadline. */
void ft_init(int argc, char **argv);
/* Acts as option -R does from now on. Call it before anything is opened. */
void ft_set_raw(void);
/* Does the second half of ft_init(), for programs with options of their own. */
void ft_start(const char *name);
/* Prints that the test passed. */
int ft_done(void);
/* Does the test run over the core @name, as in ft_core("verbs")? */
bool ft_core(const char *name);
/*
 * The core's own tables of calls, for connected endpoints or, with ofi_rxm, for
 * reliable datagrams. Where all objects of a core share its tables of calls, as
 * in tcp, a test can replace calls in the tables.
 */
struct ft_core_ops {
	struct fi_ops *ep;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_tagged *tagged;
	struct fi_ops_cq *cq;
	struct fi_ops_mr *mr;
	struct fi_ops_cm *cm, *pep_cm; /* NULL with ofi_rxm */
};
void ft_core_ops(const char *name, struct ft_core_ops *ops);
/* Does the test run over ofi_rxm? */
bool ft_rxm(void);
/*
 * Makes ofi_rxm over verbs copy messages of up to 1 KiB instead of 128 KiB, for
 * tests that count lookups. Returns the number of bytes that the core copies
 * without being asked. Must be called before any object of libfabric is opened.
 */
size_t ft_rxm_copies_little(void);
/* FI_EP_RDM if the provider has reliable datagrams, else FI_EP_MSG. */
enum fi_ep_type ft_ep_type(void);
bool ft_rdm(void);
/*
 * Returns the CQ format with all fields that the core's completions have: some
 * cores have no tags.
 */
enum fi_cq_format ft_cq_format(void);
/* Returns the user's number of rounds, or else the test's own (dflt). */
unsigned ft_iters(unsigned dflt);
/*
 * Returns dflt; over verbs, where the machine may be emulated, a tenth of dflt
 */
unsigned ft_races(unsigned dflt);
/* Notes what the test is doing, for the message at the deadline. */
void ft_stage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ft_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void ft_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
void ft_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* CLOCK_MONOTONIC in us, with a fraction and without. */
double ft_time_us(void);
uint64_t ft_now_us(void);
uint64_t ft_clock_us(clockid_t clock);
uint64_t ft_cpu_us(void);    /* processor time of all threads of the process */
uint64_t ft_thread_us(void); /* processor time of this thread */
/* Number of runnable tasks for each processor that may be used, at least 1 */
double ft_load(void);
/* Time of this thread's clock for limits: see ft_limit.c */
uint64_t ft_limit_us(void);
/* Time by ft_limit_us() after which an operation counts as hung */
uint64_t ft_deadline(void);
/*
 * Does round i of a race take place? A race is tried n times, or for 3 s since
 * begin if that ends earlier, but at least n / 20 times.
 */
bool ft_round(unsigned i, unsigned n, uint64_t begin);
uint64_t ft_rand(void); /* any thread may call; each has its own sequence */

#define FT_CHECK(cond, ...)                                       \
	do {                                                      \
		if (!(cond))                                      \
			ft_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* A call that must return 0. */
#define FT_CALL(call)                                                      \
	do {                                                               \
		long ft_ret_ = (long) (call);                              \
                                                                           \
		if (ft_ret_)                                               \
			ft_fail(__FILE__, __LINE__, "%s: %ld (%s)", #call, \
				ft_ret_, fi_strerror((int) -ft_ret_));     \
	} while (0)

/* A call that a core may not support. */
#define FT_CALL_OR_SKIP(call)                                                  \
	do {                                                                   \
		long ft_ret_ = (long) (call);                                  \
                                                                               \
		if (ft_ret_ == -FI_ENOSYS || ft_ret_ == -FI_EOPNOTSUPP)        \
			ft_skip("%s: %s", #call, fi_strerror((int) -ft_ret_)); \
		if (ft_ret_)                                                   \
			ft_fail(__FILE__, __LINE__, "%s: %ld (%s)", #call,     \
				ft_ret_, fi_strerror((int) -ft_ret_));         \
	} while (0)

/* ---- ft_mem.c: buffers ------------------------------------------------ */

/* Fills a buffer with contents that depend on the seed and on each position. */
void ft_fill(void *buf, size_t len, uint64_t seed);
/* Returns the offset of the first byte that differs, or -1. */
ssize_t ft_differs(const void *buf, size_t len, uint64_t seed);
void ft_check_buf(const char *file, int line, const void *buf, size_t len,
		  uint64_t seed, const char *what);
#define FT_CHECK_BUF(buf, len, seed, what) \
	ft_check_buf(__FILE__, __LINE__, buf, len, seed, what)
/* Maps anonymous pages, readable and writable; at addr unless addr is NULL. */
void *ft_map(void *addr, size_t len);
bool ft_map_hole(void *addr, size_t len);
/* Maps memory for tests that use its address after unmapping it. */
void *ft_map_apart(size_t len);
void ft_unmap(void *addr, size_t len);
bool ft_valgrind(void);
/* Returns resident bytes of this process; 0 where these are meaningless. */
size_t ft_rss(void);
size_t ft_mappings(void);
/* Returns the number of file descriptors of this process, plus a few. */
unsigned ft_fd_count(void);

/* ---- ft_conn.c: fabrics, domains, connections ------------------------- */

#define FT_MR_BASIC (1 << 0) /* FI_MR_BASIC, of which libfabric 2.x warns */

struct ft_attr {
	uint64_t caps, mode;
	enum fi_ep_type type; /* FI_EP_UNSPEC: as ft_ep_type() returns */
	enum fi_cq_format format;
	size_t cq_size; /* 0: the provider's default */
	enum fi_wait_obj wait_obj;
	enum fi_threading threading;
	enum fi_progress progress; /* progress of data */
	bool tx_selective;	   /* bind with FI_SELECTIVE_COMPLETION */
	bool rx_selective;
	bool one_cq; /* one CQ for both directions: cq[FT_TX] is cq[FT_RX] */
	bool no_cq;  /* no CQ over ofi_mrrc; a raw core gets a CQ anyway */
	bool cntr;
	bool srx;
	/* the application chooses keys, and targets are addressed by offset */
	bool scalable_mr;
	int mr_mode;		 /* in the hints; 0: as scalable_mr says */
	enum fi_av_type av_type; /* AV type of reliable datagrams */
	bool abandons;		 /* the pair is closed in mid-message */
	bool cw, cw_pep;	 /* fi_cw_enable() for endpoints, listener */
};

#define FT_ATTR                                                       \
	(struct ft_attr)                                              \
	{                                                             \
		.caps = FI_MSG | FI_RMA, .format = FI_CQ_FORMAT_DATA, \
		.wait_obj = FI_WAIT_NONE,                             \
	}

struct ft_mr;

struct ft_dom {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct ft_mr *mrs; /* ft_desc()'s registrations, raw mode */
};

/* A completion, in any format of the queue. */
struct ft_comp {
	void *ctx;
	uint64_t flags;
	size_t len;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src; /* source, where asked for (FI_SOURCE) */
	int err;       /* 0: success */
	struct ft_comp *next;
};

enum ft_dir { FT_TX, FT_RX, FT_DIRS };

struct ft_ep {
	struct ft_dom *dom;
	struct ft_ep *peer;
	struct fid_eq *eq;
	struct fid_ep *ep;
	/* NULL: the provider has no conditional writes */
	struct fi_mrrc_cw *cw;
	struct fid_ep *srx; /* shared context: ft_pair_close() closes it */
	struct fid_av *av;  /* address vector of reliable datagrams */
	/* address of the peer; a core ignores it on connected endpoints */
	fi_addr_t to;
	bool source; /* completions have a source */
	struct fid_cq *cq[FT_DIRS];
	struct fid_cntr *cntr[FT_DIRS];
	enum fi_cq_format format;
	bool quiet[FT_DIRS]; /* ft_poll() does not read this queue */
	struct ft_comp *head[FT_DIRS], **tail[FT_DIRS];
};

struct ft_pair {
	struct ft_attr attr;
	struct ft_dom dom[2]; /* the server's and the client's domain */
	struct fid_eq *peq;
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct fid_cq *srx_cq; /* the queue of all endpoints that share srx */
	struct ft_ep s, c;
};

/* Makes hints for the properties in attr; free with fi_freeinfo(). */
struct fi_info *ft_hints(const struct ft_attr *attr);
/* Gets an info for attr; skips the test if the provider offers none. */
struct fi_info *ft_getinfo(const struct ft_attr *attr);
/*
 * Opens fabrics, listener, domains, and the first connection. Reliable datagram
 * endpoints have no listener: ft_connect() inserts their addresses, none of
 * which is 0, and exchanges a message.
 */
void ft_pair_open(struct ft_pair *pair, const struct ft_attr *attr);
/* Makes one more connection on the same domains. */
void ft_connect(struct ft_pair *pair, struct ft_ep *s, struct ft_ep *c);
/* Open one half each, for sides in different processes; the listener first. */
void ft_listen(struct ft_pair *pair, const struct ft_attr *attr);
void ft_connect_server(struct ft_pair *pair, struct ft_ep *s);
void ft_connect_client(struct ft_pair *pair, struct ft_ep *c);
/*
 * Opens the client's fabric and domain, for a listener whose name ft_name_hex()
 * wrote to @hex.
 */
void ft_client_open(struct ft_pair *pair, const struct ft_attr *attr,
		    const char *hex);
/* Waits for the event that the other side is gone, if the core has one. */
void ft_wait_shutdown(struct ft_ep *ep);
/* Closes endpoint, queues, counters; drops completions that were not taken. */
void ft_ep_close(struct ft_ep *ep);
/* Closes all objects, and checks that no registration or descriptor is left. */
void ft_pair_close(struct ft_pair *pair);
/*
 * Make the parts of a reliable datagram pair: a domain, an endpoint, and the
 * address by which one endpoint sends to another.
 */
void ft_rdm_open(struct ft_pair *pair, struct ft_dom *dom);
void ft_rdm_ep_open(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom);
fi_addr_t ft_rdm_insert(struct ft_ep *ep, struct ft_ep *whom);
/*
 * Breaks the connection and makes a new one, for tests whose operations break
 * connections.
 */
void ft_reconnect(struct ft_pair *pair);
void ft_queue_close(struct ft_ep *ep);

/*
 * Returns the descriptor for a local buffer: NULL over ofi_mrrc; in raw mode
 * the descriptor of a registration that lasts until ft_release().
 */
void *ft_desc(struct ft_dom *dom, const void *buf, size_t len);
void ft_release(struct ft_dom *dom);
void ft_release_pair(struct ft_pair *pair); /* ft_release() for both sides */
/*
 * ft_reg() registers a buffer explicitly; ft_raddr() returns the address by
 * which a peer reaches the buffer's start.
 */
struct fid_mr *ft_reg(struct ft_dom *dom, const void *buf, size_t len,
		      uint64_t access);
uint64_t ft_raddr(struct ft_dom *dom, const void *buf);

/* ---- ft_comp.c: posting and completing -------------------------------- */

/* Reads all completions and counters of this endpoint. */
void ft_poll(struct ft_ep *ep);
/* Makes progress on this endpoint and on its peer. */
void ft_progress(struct ft_ep *ep);
/* Takes the oldest completion, if there is one. */
bool ft_take(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Like ft_take(), but waits for a completion; an error entry fails the test. */
void ft_wait(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Like ft_wait(); an error entry does not fail the test. */
void ft_wait_any(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Waits for a completion with this context and at least these flags. */
void ft_wait_ctx(struct ft_ep *ep, enum ft_dir dir, void *ctx, uint64_t flags);
/* Makes progress for a while; no operation may complete on a queue of ep. */
void ft_expect_none(struct ft_ep *ep, int msec);
/* Waits until memory holds the contents that a peer writes there. */
void ft_wait_buf(struct ft_ep *ep, const void *buf, size_t len, uint64_t seed);
void ft_wait_cntr(struct ft_ep *ep, enum ft_dir dir, uint64_t value);
/*
 * Waits until at most @max descriptors are open: a listener closes later than
 * its last connection, and a thread of the provider's may have a file open for
 * a moment. ep: NULL if no endpoint is open.
 */
void ft_wait_fds(struct ft_ep *ep, unsigned max);
/* Posts an operation; on -FI_EAGAIN makes progress and posts again. */
#define FT_POST(ep, call)                                        \
	do {                                                     \
		uint64_t ft_end_ = ft_deadline();                \
		ssize_t ft_rc_;                                  \
                                                                 \
		while ((ft_rc_ = (call)) == -FI_EAGAIN) {        \
			ft_progress(ep);                         \
			FT_CHECK(ft_limit_us() < ft_end_,        \
				 "%s: still -FI_EAGAIN", #call); \
		}                                                \
		FT_CHECK(!ft_rc_, "%s: %zd (%s)", #call, ft_rc_, \
			 fi_strerror((int) -ft_rc_));            \
	} while (0)

/* Sends sbuf to the peer's rbuf and waits for both completions. */
void ft_send_recv(struct ft_ep *from, const void *sbuf, void *rbuf, size_t len);
/*
 * Does the same as ft_send_recv(), but fills the buffer with this seed's
 * contents before, and checks the received contents.
 */
void ft_verify_pair(struct ft_ep *from, void *sbuf, void *rbuf, size_t len,
		    uint64_t seed);
size_t ft_iov_limit(struct ft_ep *ep);

/* ---- ft_thread.c: other threads --------------------------------------- */

/*
 * Waits until all other threads sleep, and continue to sleep for a moment: then
 * the test's threads wait for its next step, and the provider's threads have
 * read the code of libraries, which takes memory and time. A runnable thread
 * that waits for a processor does not count as sleeping.
 */
void ft_wait_quiet(void);
/*
 * Checks that the process uses little processor time while this thread waits,
 * in sleeps() or usleep(3). The check passes if one of several tries does,
 * since other threads may still have work to do.
 */
void ft_check_sleeps(void (*sleeps)(int ms));

/* ---- ft_proc.c: processes of their own --------------------------------- */

/*
 * Calls run(arg) in a child, in which libfabric reads its environment again. If
 * the child skips, this test skips. The child's output goes to the buffer
 * @output, or if that is NULL, to this process's output.
 */
void ft_in_child(const char *what, void (*run)(const void *arg),
		 const void *arg, char *output, size_t size);

/* Writes the name of a listener or endpoint, as text of FT_HEX_MAX bytes. */
void ft_name_hex(struct fid *fid, char *hex);
/*
 * Reads text of ft_name_hex() into FT_NAME_MAX bytes; returns the name's
 * length.
 */
size_t ft_hex_name(const char *hex, void *name);
/*
 * Starts this program again, in the mode that the environment selects; @out
 * becomes its standard output.
 */
pid_t ft_again(char **argv, int out);
/*
 * Posts conditional writes and exposes buffers, perhaps without partners, until
 * the process is killed.
 */
__attribute__((noreturn)) void ft_cw_victim(struct ft_ep *ep, fi_addr_t to,
					    void *out, size_t out_len, void *in,
					    size_t in_len);
/*
 * Exchanges data with the process @pid, which runs ft_cw_victim(), and kills
 * that process; returns when no operation can be posted any more, and all
 * operations have ended. progress() makes progress on this side.
 */
void ft_cw_survivor(struct ft_ep *ep, fi_addr_t to, void *out, size_t out_len,
		    void *in, size_t in_len, pid_t pid,
		    void (*progress)(struct ft_ep *ep));

/* ---- ft_file.c: files -------------------------------------------------- */

enum ft_fs { FT_FS_MEMORY, FT_FS_DISK, FT_FS_OVERLAY, FT_FS_CNT };

/*
 * Makes a new folder on a file system of the kind @fs; returns false if the
 * machine has no such file system.
 */
bool ft_file_dir(enum ft_fs fs, char *dir, size_t size);
/* Makes a file with the contents @data, and opens the file for reading. */
int ft_file_make(const char *path, const void *data, size_t len);
/*
 * Can parts of files in this folder be sent without a copy? For this, the file
 * system has to support leases, and the device has to register shared read-only
 * mappings.
 */
bool ft_file_maps(struct ft_dom *dom, const char *dir);
/*
 * Can reads of files in this folder bypass the page cache? If reads cannot,
 * prints the reason, once.
 */
bool ft_file_direct(struct ft_dom *dom, const char *dir);

/* Reads the statistics; false in raw mode, with *st zeroed. */
bool ft_stats(struct ft_dom *dom, struct fi_mrrc_stats *st);
/* Returns the counter @name; 0 over a raw core. */
uint64_t ft_counter(struct ft_dom *dom, const char *name);
/*
 * Are cache hits expected, that is, is there a monitor? If there is no monitor,
 * prints the reason, once.
 */
bool ft_caches(struct ft_dom *dom);
/*
 * Checks that posts == completions, that no registration is held, and that
 * limits are kept. Does nothing in raw mode.
 */
void ft_check_idle(struct ft_dom *dom, const char *when);
/* Flushes, and checks that the provider has no registration left. */
void ft_check_flushed(struct ft_dom *dom, const char *when);
void ft_print_stats(struct ft_dom *dom, const char *who);

#endif /* FT_MRRC_H */
