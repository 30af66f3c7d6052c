/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * helper_replay: measures the registered bytes of buffers of recorded MPI
 * programs with a helper, as in figure 11 of li2011. bench.sh runs
 * helper_replay.
 *
 *	helper_replay -p CORE STRETCH SECONDS TRACE...
 *
 * The program repeats the messages that rank 0 of each trace sent and received
 * in its first SECONDS, over a connection of a process with itself: with the
 * same lengths and the same distances of the buffers, without descriptors, at
 * the trace's times multiplied by STRETCH. The program does not wait for the
 * end of a message. One process runs without a helper, another process with a
 * helper that predicts.
 *
 * Prints "replay TRACE WAY MESSAGES SECONDS MEAN PEAK LATER LATE LAG". MEAN,
 * PEAK: registered KiB; LATER: the peak of the second half; LATE: uses that
 * found their buffer deregistered; LAG: maximum ms by which a message was
 * posted after its time. Lines "bytes TRACE WAY SECONDS KIB" come before the
 * line "replay", with the registered bytes over time.
 *
 * The buffer of the connection's other side is registered before the first
 * message, and does not count.
 */
#include "helper_run.h"
#include "sim/trace.h"

#define LOOKS 200 /* number of looks, at equal intervals */

struct replay {
	const struct sim_trace *trace;
	const char *helper;
	/* begin and end of the rank's messages, us of the trace */
	uint64_t begin, end;
	uint64_t first, last; /* first and last byte of the buffers */
	size_t most;	      /* maximum length of a message */
	char *buf, *other;
	struct fid_mr *mr;
	struct helper_bytes bytes;
	double later_peak; /* peak of the second half */
	double look;	   /* us when to print next */
	unsigned posted, flying;
	double lag; /* us */
};

static const char *core;
static double stretch, seconds;
static struct ft_pair pair;

/* ---- the trace ----------------------------------------------------------- */

static bool replayed(const struct replay *r, const struct sim_req *req)
{
	return !req->proc && req->time <= r->end;
}

static void survey(struct replay *r)
{
	const struct sim_trace *trace = r->trace;
	const struct sim_req *req = trace->req, *end = req + trace->count;
	uint64_t last = 0;

	while (req < end && req->proc)
		req++;
	FT_CHECK(req < end, "%s: nothing of rank 0", trace->name);
	r->begin = req->time;
	r->end = r->begin + (uint64_t) (seconds * 1e6);
	r->first = UINT64_MAX;
	for (; req < end; req++) {
		if (!replayed(r, req))
			continue;
		last = req->time;
		if (req->addr < r->first)
			r->first = req->addr & ~(FT_PAGE - 1);
		if (req->addr + req->len > r->last)
			r->last = req->addr + req->len;
		if (req->len > r->most)
			r->most = req->len;
	}
	r->end = last;
	FT_CHECK(r->end > r->begin, "%s: one time only", trace->name);
}

/* Returns the place of the request's buffer. */
static char *buffer(const struct replay *r, const struct sim_req *req)
{
	return r->buf + (req->addr - r->first);
}

/* Writes to all buffers before the first send, as the program did. */
static void touch(struct replay *r)
{
	const struct sim_req *req = r->trace->req;
	size_t i;

	r->buf = ft_map(NULL, r->last - r->first);
	for (i = 0; i < r->trace->count; i++) {
		if (replayed(r, &req[i]))
			memset(buffer(r, &req[i]), 1, req[i].len);
	}
}

/* ---- messages ------------------------------------------------------------ */

static void post(struct replay *r, const struct sim_req *req)
{
	struct ft_ep *c = &pair.c, *s = &pair.s;
	void *desc = fi_mr_desc(r->mr);
	char *buf = buffer(r, req);

	if (req->access == SIM_RO) {
		FT_POST(s, fi_recv(s->ep, r->other, req->len, desc, FT_ANY, r));
		FT_POST(c, fi_send(c->ep, buf, req->len, NULL, c->to, r));
	} else {
		FT_POST(c, fi_recv(c->ep, buf, req->len, NULL, FT_ANY, r));
		FT_POST(s, fi_send(s->ep, r->other, req->len, desc, s->to, r));
	}
	r->posted++;
	r->flying += 2;
}

static void take(struct replay *r, struct ft_ep *ep)
{
	struct ft_comp comp;
	int dir;

	for (dir = FT_TX; dir < FT_DIRS; dir++) {
		while (ft_take(ep, dir, &comp)) {
			FT_CHECK(!comp.err, "a message failed: %d (%s)",
				 comp.err, fi_strerror(comp.err));
			r->flying--;
		}
	}
}

static double passed(const struct replay *r)
{
	return r->bytes.last - r->bytes.begin;
}

static void look(struct replay *r)
{
	const double all = (double) (r->end - r->begin) * stretch;

	helper_bytes_look(&r->bytes);
	if (passed(r) > all / 2 && r->bytes.now > r->later_peak)
		r->later_peak = r->bytes.now;
	if (passed(r) < r->look)
		return;
	printf("bytes %s %s %.3f %.1f\n", r->trace->name, r->helper,
	       passed(r) / 1e6, r->bytes.now / 1024);
	r->look += all / LOOKS;
}

/* Waits until @us after the beginning; returns how late the end is, in us. */
static double wait_until(struct replay *r, double us)
{
	double now, next;

	for (;;) {
		ft_progress(&pair.c);
		take(r, &pair.c);
		take(r, &pair.s);
		now = ft_time_us() - r->bytes.begin;
		if (now >= us)
			return now - us;
		if (now >= r->look) {
			look(r);
			continue;
		}
		next = r->look < us ? r->look : us;
		/* a program that computes does not wait for messages, either */
		if (!r->flying)
			usleep((useconds_t) (next - now) + 1);
	}
}

/* ---- a run --------------------------------------------------------------- */

static void replay(void *arg)
{
	struct replay *r = arg;
	const struct sim_req *req = r->trace->req;
	const struct sim_req *end = req + r->trace->count;
	double lag;

	helper_open("helper_replay", FT_NULL_DESC, core, r->helper, &pair);
	touch(r);
	r->other = ft_map(NULL, r->most);
	r->mr = ft_reg(&pair.dom[0], r->other, r->most, FI_SEND | FI_RECV);
	helper_bytes_begin(&r->bytes, &pair.dom[1]);
	for (; req < end; req++) {
		if (!replayed(r, req))
			continue;
		ft_stage("%s, message %u", r->trace->name, r->posted);
		lag = wait_until(r, (double) (req->time - r->begin) * stretch);
		if (lag > r->lag)
			r->lag = lag;
		post(r, req);
		look(r);
	}
	while (r->flying)
		wait_until(r, 0);
	printf("replay %s %s %u %.1f %.1f %.1f %.1f %" PRIu64 " %.1f\n",
	       r->trace->name, r->helper, r->posted, passed(r) / 1e6,
	       helper_bytes_mean(&r->bytes) / 1024, r->bytes.peak / 1024,
	       r->later_peak / 1024, ft_counter(&pair.dom[1], "late_uses"),
	       r->lag / 1e3);
	FT_CALL(fi_close(&r->mr->fid));
	ft_pair_close(&pair);
}

static void both(const char *path)
{
	struct replay r = { 0 };
	struct sim_trace trace;
	char err[SIM_ERR_MAX];

	FT_CHECK(!sim_trace_read(path, err, sizeof(err), &trace), "%s", err);
	r.trace = &trace;
	survey(&r);
	r.helper = "never";
	helper_in_child(replay, &r);
	r.helper = "predict";
	helper_in_child(replay, &r);
	sim_trace_fini(&trace);
}

int main(int argc, char **argv)
{
	int op;

	while ((op = getopt(argc, argv, FT_OPTS)) != -1)
		ft_parse_opt(argv[0], op, optarg);
	FT_CHECK(argc - optind > 2, "STRETCH SECONDS TRACE...");
	core = ft_opts.prov ? ft_opts.prov : "tcp";
	stretch = strtod(argv[optind++], NULL);
	seconds = strtod(argv[optind++], NULL);
	FT_CHECK(stretch > 0 && seconds > 0, "STRETCH and SECONDS above 0");
	for (; optind < argc; optind++)
		both(argv[optind]);
	return 0;
}
