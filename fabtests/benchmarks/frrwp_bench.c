/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * frrwp_bench: measures one transaction after another between a client and a
 * server, each a process, as in figures 5 to 8 of Ou, He and Han (2009):
 *
 *   typical  the writer registers when it has the key of the registered target
 *   fast     the request goes first, and both sides register at the same time
 *   crw      the same with fi_cwtag() and fi_cwrite()
 *
 * A read brings data to the client, a write to the server. Memory is cold
 * (never registered before) or warm (its registration is kept, in crw by
 * FI_MRRC_CW_KEEP). Prints the time of each step (frrwp_steps.h). With -q only
 * cold writes of 4 and 64 KiB are made, and for each size a line "sooner SIZE N
 * ROUNDS" is printed: in N rounds the target had its data sooner by crw than by
 * typical.
 */
#include "ft_bench.h"
#include "frrwp_steps.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define ROUNDS_MAX 41
#define LEN_MAX	   (4UL << 20)
/* environment of the client: the listener */
#define CLIENT "FT_FRRWP_CLIENT"
#define SHARED "FT_FRRWP_SHARED" /* file descriptor of struct shared */

enum process { TYPICAL, FAST, CRW, PROCESSES };
static const char *const process_name[] = { "typical", "fast", "crw" };

struct message {
	uint32_t process, is_read, cold, last;
	uint64_t len, tag, addr, key;
};

/* Memory that both processes have mapped. */
struct shared {
	struct message msg; /* the transaction that comes next */
	atomic_uint next, ready, served;
	double at[STEP_CNT]; /* each time is set by one side */
};

static struct shared *sh;
static bool quick;
static struct ft_pair pair;
/* This process's side. */
static int me; /* me is 0 in the server, 1 in the client */
static char *buf, *warm;
static struct fid_mr *warm_mr; /* registration of warm, as a target */
/* Mapped, not static: memory of a program's file is registered each time. */
static struct {
	struct message mail[2], sent, asked;
} * box;
static bool asking; /* the completion of the request is to come */
static unsigned turn;

static struct ft_ep *my_ep(void)
{
	return me ? &pair.c : &pair.s;
}

static void stamp(enum step step)
{
	sh->at[step] = ft_time_us();
}

static void wait_for(enum ft_dir dir, void *ctx)
{
	struct ft_ep *ep = my_ep();
	struct ft_comp comp;

	for (;;) {
		ft_poll(ep);
		if (!ft_take(ep, dir, &comp)) {
			sched_yield();
			continue;
		}
		if (!comp.err && asking && comp.ctx == &box->asked) {
			asking = false;
			continue;
		}
		FT_CHECK(!comp.err && comp.ctx == ctx,
			 "side %d: error %d, context %p, not %p", me, comp.err,
			 comp.ctx, ctx);
		return;
	}
}

/*
 * Waits until *what has the value, and reads the queues meanwhile, like an
 * application that makes progress by itself.
 */
static void idle_until(atomic_uint *what, unsigned value)
{
	while (atomic_load(what) != value) {
		ft_poll(my_ep());
		sched_yield();
	}
}

static void post_recv(void)
{
	struct message *msg = &box->mail[turn % 2];

	FT_CALL(fi_recv(my_ep()->ep, msg, sizeof(*msg), NULL, 0, msg));
}

static struct message *receive(void)
{
	struct message *msg = &box->mail[turn++ % 2];

	wait_for(FT_RX, msg);
	post_recv();
	return msg;
}

static void say(const struct message *msg)
{
	box->sent = *msg;
	FT_CALL(fi_send(my_ep()->ep, &box->sent, sizeof(box->sent), NULL, 0,
			&box->sent));
	wait_for(FT_TX, &box->sent);
}

static struct fid_mr *expose(struct message *msg)
{
	struct ft_dom *dom = &pair.dom[me];
	struct fid_mr *mr = warm_mr;

	stamp(S_treg);
	if (msg->cold)
		mr = ft_reg(dom, buf, msg->len, FI_REMOTE_WRITE);
	stamp(S_tregd);
	msg->addr = ft_raddr(dom, buf);
	msg->key = fi_mr_key(mr);
	return mr;
}

static void hide(const struct message *msg, struct fid_mr *mr)
{
	if (msg->cold)
		FT_CALL(fi_close(&mr->fid));
}

/* Registers the writer's buffer, so that the write finds it in the cache. */
static void register_local(const struct message *msg)
{
	struct fid_mr *mr;

	stamp(S_wreg);
	mr = ft_reg(&pair.dom[me], buf, msg->len, FI_WRITE);
	FT_CALL(fi_close(&mr->fid));
	stamp(S_wregd);
}

/* Posts the conditional write; the provider reports when the core got it. */
static void cond_write(const struct message *msg)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct ft_ep *ep = my_ep();
	double *at = sh->at;

	stamp(S_wreg);
	FT_CALL(fi_cwrite(ep->cw, buf, msg->len, NULL, 0, msg->tag, buf));
	stamp(S_free);
	wait_for(FT_TX, buf);
	stamp(S_done);
	FT_CALL(fi_cw_stats_read(ep->cw, &st));
	at[S_posted] = st.last_issued / 1e3;
	at[S_wregd] = at[S_posted] < at[S_free] ? at[S_posted] : at[S_free];
}

/* Writes to the target's memory, whose key the target has sent. */
static void write_to(const struct message *msg, const struct message *key)
{
	stamp(S_posted);
	FT_CALL(fi_write(my_ep()->ep, buf, msg->len, NULL, 0, key->addr,
			 key->key, buf));
	stamp(S_free);
	wait_for(FT_TX, buf);
	stamp(S_done);
	say(msg);
}

static void cond_tag(const struct message *msg)
{
	struct iovec iov = { buf, msg->len };
	struct fi_msg_cw tag = {
		.msg_iov = &iov,
		.iov_count = 1,
		.cwtag = msg->tag,
		.context = buf,
	};

	stamp(S_treg);
	FT_CALL(fi_cwtagmsg(my_ep()->cw, &tag,
			    FI_COMPLETION | (msg->cold ? 0 : FI_MRRC_CW_KEEP)));
	stamp(S_tregd);
	wait_for(FT_RX, buf);
	stamp(S_told);
}

static void target(const struct message *msg)
{
	struct message key = *msg;
	struct fid_mr *mr;

	if (msg->process == CRW) {
		cond_tag(msg);
		return;
	}
	mr = expose(&key);
	say(&key);
	stamp(S_key);
	receive();
	stamp(S_told);
	hide(msg, mr);
}

/*
 * Plays the writer's part in a transaction that the target begins (crw), or for
 * which the target sends its key.
 */
static void writer(const struct message *msg)
{
	struct message key;

	if (msg->process == CRW) {
		cond_write(msg);
		return;
	}
	if (msg->process == FAST)
		register_local(msg);
	key = *receive();
	stamp(S_keyin);
	if (msg->process == TYPICAL)
		register_local(msg);
	write_to(msg, &key);
}

/* ---- a transaction ------------------------------------------------------- */

/* Makes both sides' buffers before the transaction starts. */
static void prepare(const struct message *msg)
{
	bool writes = me == !msg->is_read;

	buf = msg->cold ? ft_map(NULL, msg->len) : warm;
	if (msg->cold)
		memset(buf, me, msg->len);
	buf[msg->len - 1] = writes ? msg->tag : ~msg->tag;
}

static void check(const struct message *msg)
{
	FT_CHECK(buf[msg->len - 1] == (char) msg->tag,
		 "the data did not arrive");
	if (msg->cold)
		ft_unmap(buf, msg->len);
}

static void serve(const struct message *msg)
{
	if (!msg->is_read) {
		target(msg);
	} else if (msg->process == TYPICAL) {
		register_local(msg);
		write_to(msg, msg);
	} else {
		writer(msg);
	}
}

static void server(void)
{
	struct message msg;
	unsigned done;

	for (done = 0;; done++) {
		idle_until(&sh->next, done + 1);
		if (sh->msg.last)
			return;
		prepare(&sh->msg);
		atomic_store(&sh->ready, done + 1);
		msg = *receive();
		stamp(S_heard);
		serve(&msg);
		check(&msg);
		atomic_store(&sh->served, done + 1);
	}
}

/* Sends the request; asked() waits for its completion later. */
static void ask(const struct message *msg)
{
	box->asked = *msg;
	FT_CALL(fi_send(my_ep()->ep, &box->asked, sizeof(box->asked), NULL, 0,
			&box->asked));
	asking = true;
	stamp(S_asked);
}

static void asked(void)
{
	if (asking) {
		asking = false;
		wait_for(FT_TX, &box->asked);
	}
}

static void client(struct message *msg)
{
	struct fid_mr *mr;

	if (msg->is_read && msg->process == TYPICAL) {
		mr = expose(msg);
		ask(msg);
		receive();
		stamp(S_told);
		hide(msg, mr);
	} else if (msg->is_read) {
		ask(msg);
		target(msg);
	} else {
		ask(msg);
		writer(msg);
	}
}

static void transaction(struct message *msg, double *times)
{
	unsigned cnt = atomic_load(&sh->next) + 1, i;
	double start;

	prepare(msg);
	memset(sh->at, 0, sizeof(sh->at));
	sh->msg = *msg;
	atomic_store(&sh->next, cnt);
	idle_until(&sh->ready, cnt);
	start = ft_time_us();
	client(msg);
	asked();
	idle_until(&sh->served, cnt);
	for (i = 0; i < STEP_CNT; i++)
		times[i] = sh->at[i] ? sh->at[i] - start : -1;
	check(msg);
}

/* Measures the three ways in turn. */
static void measure(bool is_read, bool cold, size_t len)
{
	const unsigned rounds = len <= 65536 ? ROUNDS_MAX : ROUNDS_MAX / 4;
	struct ft_steps best[PROCESSES] = { 0 };
	double times[STEP_CNT];
	struct message msg = { .is_read = is_read, .cold = cold, .len = len };
	static uint64_t tag;
	unsigned i, process, sooner = 0;
	double typical = 0;

	ft_stage("%s, %s, %zu bytes", is_read ? "read" : "write",
		 cold ? "cold" : "warm", len);
	for (i = 0; i < rounds; i++) {
		for (process = 0; process < PROCESSES; process++) {
			msg.process = process;
			msg.tag = tag++;
			transaction(&msg, times);
			ft_steps_note(&best[process], times);
			if (process == TYPICAL)
				typical = times[S_told];
			sooner += process == CRW && times[S_told] < typical;
		}
	}
	if (quick)
		printf("sooner %zu %u %u\n", len, sooner, rounds);
	for (process = 0; process < PROCESSES; process++) {
		printf("%-5s %-4s %7zu %-7s", is_read ? "read" : "write",
		       cold ? "cold" : "warm", len, process_name[process]);
		ft_steps_print(&best[process]);
	}
	fflush(stdout);
}

static void measure_all(void)
{
	static const size_t lens[] = { 4096, 65536, 1 << 20, LEN_MAX };
	unsigned i, k;

	printf("%-5s %-4s %7s %-7s", "op", "mem", "bytes", "process");
	ft_steps_print(NULL);
	for (k = quick ? 2 : 0; k < (quick ? 3 : 4); k++)
		for (i = 0; i < (quick ? 2 : sizeof(lens) / sizeof(*lens)); i++)
			measure(k & 1, k & 2, lens[i]);
	sh->msg.last = true;
	atomic_fetch_add(&sh->next, 1);
}

/* ---- two processes ------------------------------------------------------- */

static void open_shared(int fd)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FT_CHECK(sh != MAP_FAILED, "mmap: %s", strerror(errno));
}

/* Posts receives before the other side may send. */
static void open_side(void)
{
	box = ft_map(NULL, sizeof(*box));
	warm = ft_map(NULL, LEN_MAX);
	memset(warm, me, LEN_MAX);
	if (me)
		ft_connect_client(&pair, &pair.c);
	else
		ft_connect_server(&pair, &pair.s);
	warm_mr = ft_reg(&pair.dom[me], warm, LEN_MAX, FI_REMOTE_WRITE);
	post_recv();
}

static void close_side(void)
{
	FT_CALL(fi_close(&warm_mr->fid));
	ft_ep_close(my_ep());
}

static void start_client(char **argv)
{
	char hex[FT_HEX_MAX], text[16];
	int fd = memfd_create("frrwp", 0);

	FT_CHECK(fd >= 0 && !ftruncate(fd, sizeof(*sh)), "memfd_create");
	open_shared(fd);
	ft_name_hex(&pair.pep->fid, hex);
	sprintf(text, "%d", fd);
	setenv(CLIENT, hex, 1);
	setenv(SHARED, text, 1);
	ft_again(argv, STDOUT_FILENO);
}

static void client_main(const struct ft_attr *attr)
{
	me = 1;
	open_shared(atoi(getenv(SHARED)));
	ft_client_open(&pair, attr, getenv(CLIENT));
	open_side();
	measure_all();
	close_side();
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	int status = 0, op;

	while ((op = getopt(argc, argv, FT_OPTS "q")) != -1) {
		if (op == 'q')
			quick = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	ft_start(argv[0]);
	attr.format = ft_cq_format();
	attr.cw = attr.cw_pep = true;
	/*
	 * the benchmark polls, so no thread of the provider needs to make
	 * progress
	 */
	attr.threading = FI_THREAD_DOMAIN;
	if (getenv(CLIENT)) {
		client_main(&attr);
		return 0;
	}
	ft_listen(&pair, &attr);
	start_client(argv);
	open_side();
	server();
	wait(&status);
	FT_CHECK(!status, "the client: status %#x", status);
	close_side();
	return 0;
}
