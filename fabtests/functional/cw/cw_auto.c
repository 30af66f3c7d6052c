/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rest of fi_mrrc_cw_wait: automatic progress, where the provider has it.
 */
#include "fakes/clock.h"
#include "cw/cw_wait.h"

/*
 * The provider's thread, which makes automatic progress, sleeps for half a
 * second at most. The thread does not act after less than 500 us without a
 * call.
 */
#define POSTS	 140
#define PAUSE_US 5000
#define GAP_US	 400

/* Tests a transfer for which neither side makes calls that progress. */
void automatic(void)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct ft_comp comp;

	if (fi_mrrc_feature(&pair.c.ep->fid, "cw-auto-progress") != 1) {
		FT_CHECK(!ft_core("tcp") || ft_rdm(),
			 "tcp promises automatic progress");
		ft_log("progress is not automatic here");
		return;
	}
	ft_stage("automatic progress");
	ft_fill(out, LEN, 99);
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 99, out));
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 99, in));
	do {
		usleep(1000);
		FT_CALL(fi_cw_stats_read(pair.s.cw, &st));
		FT_CHECK(ft_limit_us() < end, "nothing happens");
	} while (st.tags != st.tags_ended);
	FT_CHECK_BUF(in, LEN, 99, "conditional write");
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
}

/*
 * fi_cq_readerr() returns an error of the core, also if conditional writes have
 * completed since the core reported the error.
 */
void automatic_error(void)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	struct ft_comp comp;
	ssize_t ret;

	if (fi_mrrc_feature(&pair.c.ep->fid, "cw-auto-progress") != 1 ||
	    !ft_core("tcp"))
		return;
	ft_stage("an error beside automatic progress");
	FT_CALL(fi_recv(pair.s.ep, in, LEN, ft_desc(&pair.dom[0], in, LEN),
			FT_ANY, &err));
	FT_CALL(fi_cancel(&pair.s.ep->fid, &err));
	ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 97, in));
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 97, out));
	do {
		usleep(1000);
		FT_CALL(fi_cw_stats_read(pair.s.cw, &st));
		FT_CHECK(ft_limit_us() < end, "nothing happens");
	} while (st.tags != st.tags_ended);
	usleep(10000);
	ret = fi_cq_readerr(pair.s.cq[FT_RX], &err, 0);
	FT_CHECK(ret == 1 && err.op_context == &err && err.err == FI_ECANCELED,
		 "fi_cq_readerr: %zd", ret);
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
}

/*
 * An application that posts and never reads leaves progress to the provider. If
 * posts counted as progress, the provider's thread would rest as long as there
 * are posts: by the test's clock one post follows another almost at once.
 */
void automatic_posts(void)
{
	static char buf[1 << 19]; /* more tags than can be posted in time */
	uint64_t end = ft_deadline();
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct ft_comp comp;
	unsigned posted = 0, calls = 0;
	ssize_t ret;

	if (fi_mrrc_feature(&pair.c.ep->fid, "cw-auto-progress") != 1)
		return;
	ft_stage("automatic progress beside posts");
	ft_fill(out, LEN, 98);
	clock_stop(true);
	/* the last read was long ago */
	clock_advance(1000000);
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 98, out));
	do {
		/* after many posts, expose the buffer */
		if (calls++ == POSTS)
			FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to,
					 98, in));
		clock_advance(GAP_US);
		ret = fi_cwtag(pair.c.cw, buf + posted, 1, NULL, pair.c.to, 1,
			       buf + posted);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_cwtag: %zd", ret);
		posted += !ret;
		usleep(PAUSE_US);
		FT_CALL(fi_cw_stats_read(pair.s.cw, &st));
		FT_CHECK(ft_limit_us() < end, "nothing happens");
	} while (calls <= POSTS || st.tags != st.tags_ended);
	clock_stop(false);
	FT_CHECK_BUF(in, LEN, 98, "conditional write");
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	while (posted--) {
		FT_CALL(fi_cancel(&pair.c.ep->fid, buf + posted));
		ft_wait_any(&pair.c, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED, "cancel: %d", comp.err);
	}
}
