/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that the tests of fabtests/ share: options, checks that end the
 * process, a connected pair of endpoints, completions, buffers with known
 * contents.
 *
 * A test is one process that drives both sides of its connections: server
 * and client each have their own fabric and domain. Unless a test starts
 * threads itself, one thread does everything, so what happens is the same in
 * each run.
 *
 * Over ofi_mrrc buffers are passed without descriptors and the provider's
 * counters are checked. In raw mode (-R, or a provider list without
 * ofi_mrrc) ft_desc() registers each buffer and no counters are checked: it
 * proves the tests right.
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
/* deprecated in 2.x, with a warning at each use */
#undef FI_REG_MR
#define FI_REG_MR (1ULL << 59)
#endif

#ifndef FI_BUFFERED_RECV /* not in libfabric 2.x */
#define FI_BUFFERED_RECV 0
#endif

#define FT_FIVERSION ft_fiversion
#define FT_SKIP_RC   77
#define FT_PAGE	     4096UL
#define FT_ANY	     FI_ADDR_UNSPEC
/* maximum number of buffers that a test uses, see ft_iov_limit() */
#define FT_IOV_MAX  4
#define FT_NAME_MAX 64 /* bytes of a listener's name */
#define FT_HEX_MAX  (2 * FT_NAME_MAX + 1)

/* ---- ft_mrrc.c: options, environment, checks -------------------------- */

struct ft_opts {
	const char *prov;     /* "tcp;ofi_mrrc" */
	const char *addr;     /* both sides' address */
	enum fi_ep_type type; /* FI_EP_UNSPEC: by the provider's name */
	bool raw;
	bool verbose;
	int timeout;	/* seconds that the whole test may take */
	unsigned iters; /* number of rounds; 0: the test's own */
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
/* Acts as for option -R from now on. Call it before anything is opened. */
void ft_set_raw(void);
/* Does the second half of ft_init(), for programs with options of their own. */
void ft_start(const char *name);
/* Prints that the test passed. */
int ft_done(void);
/* Over this core? ft_core("verbs") */
bool ft_core(const char *name);
/*
 * The core's own calls, of connected endpoints or with ofi_rxm of reliable
 * datagrams: where the core has tables that all its objects share, as tcp does,
 * a test can replace calls there.
 */
struct ft_core_ops {
	struct fi_ops *ep;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_tagged *tagged;
	struct fi_ops_cq *cq;
	struct fi_ops_mr *mr;
	struct fi_ops_cm *cm, *pep_cm; /* not with ofi_rxm */
};
void ft_core_ops(const char *name, struct ft_core_ops *ops);
/* Over ofi_rxm? */
bool ft_rxm(void);
/*
 * For tests that count lookups: ofi_rxm over verbs copies messages up to 1 KiB,
 * instead of 128 KiB. Returns the number of bytes that the core copies without
 * being asked. Call it before anything is opened.
 */
size_t ft_rxm_copies_little(void);
/* FI_EP_RDM if the provider has reliable datagrams, else FI_EP_MSG. */
enum fi_ep_type ft_ep_type(void);
bool ft_rdm(void);
/*
 * The format with all fields of the core's completions: some cores have no
 * tags.
 */
enum fi_cq_format ft_cq_format(void);
/* The test's own iteration count, or the user's. */
unsigned ft_iters(unsigned dflt);
/* A tenth of dflt over verbs, where the machine may be emulated; else dflt */
unsigned ft_races(unsigned dflt);
/* Says what the test is doing, for the deadline's message. */
void ft_stage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ft_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void ft_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
void ft_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* CLOCK_MONOTONIC, which is never set; with a fraction, and without. */
double ft_time_us(void);
uint64_t ft_now_us(void);
uint64_t ft_clock_us(clockid_t clock);
uint64_t ft_cpu_us(void);    /* processor time of all threads of the process */
uint64_t ft_thread_us(void); /* used by this one */
/* Number of runnable tasks for each processor that may be used, at least 1 */
double ft_load(void);
/* This thread's clock for limits: see ft_limit.c */
uint64_t ft_limit_us(void);
/* a time by that clock, after which an operation counts as hung */
uint64_t ft_deadline(void);
/*
 * Is there another round? Races are tried n times, or for 3 s since begin, but
 * at least n / 20 times.
 */
bool ft_round(unsigned i, unsigned n, uint64_t begin);
uint64_t ft_rand(void); /* any thread; each has its own sequence */

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
/* Offset of the first byte that differs, or -1. */
ssize_t ft_differs(const void *buf, size_t len, uint64_t seed);
void ft_check_buf(const char *file, int line, const void *buf, size_t len,
		  uint64_t seed, const char *what);
#define FT_CHECK_BUF(buf, len, seed, what) \
	ft_check_buf(__FILE__, __LINE__, buf, len, seed, what)
/* Maps anonymous pages, readable and writable; at addr if that is not NULL. */
void *ft_map(void *addr, size_t len);
bool ft_map_hole(void *addr, size_t len);
/* Maps memory for tests that use its address after unmapping it. */
void *ft_map_apart(size_t len);
void ft_unmap(void *addr, size_t len);
bool ft_valgrind(void);
/* Resident bytes of this process; 0 where that is meaningless. */
size_t ft_rss(void);
size_t ft_mappings(void);
/* Number of descriptors of this process, and a few more. */
unsigned ft_fd_count(void);

/* ---- ft_conn.c: fabrics, domains, connections ------------------------- */

struct ft_attr {
	uint64_t caps, mode;
	enum fi_ep_type type; /* FI_EP_UNSPEC: ft_ep_type() */
	enum fi_cq_format format;
	size_t cq_size; /* 0: the provider's default */
	enum fi_wait_obj wait_obj;
	enum fi_threading threading;
	enum fi_progress progress; /* of data */
	bool tx_selective;	   /* bind with FI_SELECTIVE_COMPLETION */
	bool rx_selective;
	bool one_cq; /* both directions: cq[FT_TX] is cq[FT_RX] */
	bool no_cq;  /* over ofi_mrrc; a raw core gets a CQ anyway */
	bool cntr;
	bool srx;
	/* the application chooses keys, and targets are addressed by offset */
	bool scalable_mr;
	enum fi_av_type av_type; /* of reliable datagrams */
	bool abandons;		 /* closes in mid-message */
	bool cw, cw_pep;	 /* fi_cw_enable(): endpoints, listener */
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
	struct ft_mr *mrs; /* of ft_desc(), raw mode */
};

/* A completion, in any format of the queue. */
struct ft_comp {
	void *ctx;
	uint64_t flags;
	size_t len;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src; /* where asked for (FI_SOURCE) */
	int err;       /* 0: success */
	struct ft_comp *next;
};

enum ft_dir { FT_TX, FT_RX, FT_DIRS };

struct ft_ep {
	struct ft_dom *dom;
	struct ft_ep *peer;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fi_mrrc_cw *cw; /* NULL: the provider has none */
	struct fid_ep *srx;    /* shared: closed by ft_pair_close() */
	struct fid_av *av;     /* reliable datagrams */
	/* address of the peer; connected: ignored by the core */
	fi_addr_t to;
	bool source; /* completions have a source */
	struct fid_cq *cq[FT_DIRS];
	struct fid_cntr *cntr[FT_DIRS];
	enum fi_cq_format format;
	bool quiet[FT_DIRS]; /* ft_poll() leaves this queue alone */
	struct ft_comp *head[FT_DIRS], **tail[FT_DIRS];
};

struct ft_pair {
	struct ft_attr attr;
	struct ft_dom dom[2]; /* server, client */
	struct fid_eq *peq;
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct fid_cq *srx_cq; /* the queue of all endpoints on srx */
	struct ft_ep s, c;
};

/* Hints for the properties in attr; free with fi_freeinfo(). */
struct fi_info *ft_hints(const struct ft_attr *attr);
/* Skips the test if the provider offers no such endpoint. */
struct fi_info *ft_getinfo(const struct ft_attr *attr);
/*
 * Opens fabrics, listener, domains, and the first connection. Reliable
 * datagrams have no listener; ft_connect() inserts their addresses and
 * exchanges a message, and no address is 0.
 */
void ft_pair_open(struct ft_pair *pair, const struct ft_attr *attr);
/* One more connection on the same domains. */
void ft_connect(struct ft_pair *pair, struct ft_ep *s, struct ft_ep *c);
/* Open the halves, for sides in different processes; the listener first. */
void ft_listen(struct ft_pair *pair, const struct ft_attr *attr);
void ft_connect_server(struct ft_pair *pair, struct ft_ep *s);
void ft_connect_client(struct ft_pair *pair, struct ft_ep *c);
/*
 * Opens the client's fabric and domain, for a listener whose name ft_name_hex()
 * wrote.
 */
void ft_client_open(struct ft_pair *pair, const struct ft_attr *attr,
		    const char *hex);
/* Waits for the event that the other side is gone, if the core has one. */
void ft_wait_shutdown(struct ft_ep *ep);
/* Closes endpoint, queues, counters; drops completions not taken. */
void ft_ep_close(struct ft_ep *ep);
/* Closes all objects, and checks that no registration or descriptor is left. */
void ft_pair_close(struct ft_pair *pair);
/*
 * Make the parts of reliable datagrams: a domain, an endpoint, and the address
 * that one endpoint has for another.
 */
void ft_rdm_open(struct ft_pair *pair, struct ft_dom *dom);
void ft_rdm_ep_open(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom);
fi_addr_t ft_rdm_insert(struct ft_ep *ep, struct ft_ep *whom);
/*
 * Breaks the connection and makes a new one, for tests whose operations break
 * it.
 */
void ft_reconnect(struct ft_pair *pair);
void ft_queue_close(struct ft_ep *ep);

/*
 * Descriptor for a local buffer: NULL over ofi_mrrc; in raw mode that of a
 * registration that lasts until ft_release().
 */
void *ft_desc(struct ft_dom *dom, const void *buf, size_t len);
void ft_release(struct ft_dom *dom);
void ft_release_pair(struct ft_pair *pair); /* of both sides */
/*
 * Registers explicitly; also gives the address by which a peer reaches the
 * start.
 */
struct fid_mr *ft_reg(struct ft_dom *dom, const void *buf, size_t len,
		      uint64_t access);
uint64_t ft_raddr(struct ft_dom *dom, const void *buf);

/* ---- ft_comp.c: posting and completing -------------------------------- */

/* Reads all completions and counters of this endpoint. */
void ft_poll(struct ft_ep *ep);
/* Both ends. */
void ft_progress(struct ft_ep *ep);
/* Takes the oldest completion, if there is one. */
bool ft_take(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Like ft_take(), but waits for a completion; an error entry fails the test. */
void ft_wait(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Like ft_wait(); an error entry does not fail the test. */
void ft_wait_any(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp);
/* Waits for a completion with this context and at least these flags. */
void ft_wait_ctx(struct ft_ep *ep, enum ft_dir dir, void *ctx, uint64_t flags);
/* Makes progress for a while; nothing may complete on either queue of ep. */
void ft_expect_none(struct ft_ep *ep, int msec);
/* Waits until memory holds what a peer writes there. */
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
 * Like ft_send_recv(); writes contents of this seed before, and checks them
 * after.
 */
void ft_verify_pair(struct ft_ep *from, void *sbuf, void *rbuf, size_t len,
		    uint64_t seed);
size_t ft_iov_limit(struct ft_ep *ep);

/* ---- ft_thread.c: other threads --------------------------------------- */

/*
 * Waits until all other threads sleep, and continue to sleep for a moment:
 * threads of the test then wait for its next step, and the provider's have read
 * the code of libraries, which takes memory and time. A thread that lacks a
 * processor does not sleep.
 */
void ft_wait_quiet(void);
/*
 * Checks that the process uses little processor time while this thread waits,
 * in sleeps() or usleep(3). One of several tries suffices, since other threads
 * may still have work to do.
 */
void ft_check_sleeps(void (*sleeps)(int ms));

/* ---- ft_proc.c: processes of their own --------------------------------- */

/*
 * Calls run(arg) in a child, in which libfabric reads its environment again. If
 * the child skips, this test skips. Its output goes to the buffer, if there is
 * one; else to this process's.
 */
void ft_in_child(const char *what, void (*run)(const void *arg),
		 const void *arg, char *output, size_t size);

/* Writes a listener's or endpoint's name, as text of FT_HEX_MAX bytes, */
void ft_name_hex(struct fid *fid, char *hex);
/* and reads it back, into FT_NAME_MAX bytes; returns its length. */
size_t ft_hex_name(const char *hex, void *name);
/*
 * Starts this program again, in the mode that the environment selects; out is
 * its standard output.
 */
pid_t ft_again(char **argv, int out);
/*
 * Posts writes and exposes buffers, perhaps without partners, until it is
 * killed.
 */
__attribute__((noreturn)) void ft_cw_victim(struct ft_ep *ep, fi_addr_t to,
					    void *out, size_t out_len, void *in,
					    size_t in_len);
/*
 * Exchanges data with a process that does the same, and kills it in between;
 * returns when no operation can be posted any more, and all have ended.
 * progress is that of this side.
 */
void ft_cw_survivor(struct ft_ep *ep, fi_addr_t to, void *out, size_t out_len,
		    void *in, size_t in_len, pid_t pid,
		    void (*progress)(struct ft_ep *ep));

/* ---- ft_file.c: files -------------------------------------------------- */

enum ft_fs { FT_FS_MEMORY, FT_FS_DISK, FT_FS_OVERLAY, FT_FS_CNT };

/*
 * Makes a new folder on a file system of this kind; false: this machine has
 * none.
 */
bool ft_file_dir(enum ft_fs fs, char *dir, size_t size);
/* Makes a file with these bytes, and opens it for reading. */
int ft_file_make(const char *path, const void *data, size_t len);
/*
 * Can parts of files there be sent without a copy? The file system has to keep
 * leases, and the device to register shared read-only mappings.
 */
bool ft_file_maps(struct ft_dom *dom, const char *dir);
/*
 * Can files there be read past the page cache? If not, prints the reason, once.
 */
bool ft_file_direct(struct ft_dom *dom, const char *dir);

/* false in raw mode; *st is zeroed then */

/* false in raw mode, with *st zeroed */
bool ft_stats(struct ft_dom *dom, struct fi_mrrc_stats *st);
/* The counter of that name; 0 over a raw core. */
uint64_t ft_counter(struct ft_dom *dom, const char *name);
/*
 * Are hits expected, that is, is there a monitor? If not, prints the reason,
 * once.
 */
bool ft_caches(struct ft_dom *dom);
/*
 * Checks that posts == completions, nothing is held, and limits are kept; raw:
 * no check
 */
void ft_check_idle(struct ft_dom *dom, const char *when);
/* Flushes, and checks that the provider has no registration left. */
void ft_check_flushed(struct ft_dom *dom, const char *when);
void ft_print_stats(struct ft_dom *dom, const char *who);

#endif /* FT_MRRC_H */
