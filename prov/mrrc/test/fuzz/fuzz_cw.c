/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whatever bytes a peer sends, the decoder refuses them, or makes a message
 * that is the same after it was encoded and decoded again. A connection that
 * gets such messages stays valid until it ends, and then leaves no memory
 * allocated.
 *
 * The input is a sequence of messages, each message after two bytes: the first
 * byte selects an act of this side, which precedes the message, and the second
 * byte is the message's length.
 */
#include "core/cw/cw.h"
#include "test/fuzz/fuzz.h"

const char fuzz_corpus[] = "prov/mrrc/test/fuzz/corpus_cw";
const bool fuzz_each_byte = false;

#define OPS    16
#define INLINE 32

struct fuzz {
	struct mrrc_cw cw;
	struct mrrc_cw_wr wr[OPS];
	struct mrrc_cw_target target[OPS];
	bool wr_live[OPS], target_live[OPS], issued[OPS];
	bool full;
	char placed[INLINE];
};

static int fuzz_send(void *arg, const struct mrrc_cw_msg *msg)
{
	struct fuzz *fuzz = arg;
	uint8_t buf[MRRC_CW_MSG_MAX];

	must(mrrc_cw_encode(msg, buf) <= sizeof(buf));
	return fuzz->full ? -EAGAIN : 0;
}

static int fuzz_issue(void *arg, struct mrrc_cw_wr *wr,
		      const struct mrrc_cw_rtag *rtag)
{
	struct fuzz *fuzz = arg;
	uint64_t sum = 0;
	unsigned i;

	if (fuzz->full)
		return -EAGAIN;
	must(rtag->count <= MRRC_CW_SEGS && wr->len <= rtag->len);
	for (i = 0; i < rtag->count; i++)
		sum += rtag->seg[i].len;
	must(sum == rtag->len);
	must(!fuzz->issued[wr - fuzz->wr]);
	fuzz->issued[wr - fuzz->wr] = true;
	return 0;
}

static void fuzz_place(void *arg, struct mrrc_cw_target *target,
		       const void *bytes, size_t len)
{
	struct fuzz *fuzz = arg;

	must(fuzz->target_live[target - fuzz->target]);
	must(len <= target->len && len <= INLINE);
	memcpy(fuzz->placed, bytes, len);
}

static void fuzz_wr_end(void *arg, struct mrrc_cw_wr *wr,
			const struct mrrc_cw_end *end)
{
	struct fuzz *fuzz = arg;

	must(fuzz->wr_live[wr - fuzz->wr]);
	fuzz->wr_live[wr - fuzz->wr] = false;
	fuzz->issued[wr - fuzz->wr] = false;
}

static void fuzz_target_end(void *arg, struct mrrc_cw_target *target,
			    const struct mrrc_cw_end *end)
{
	struct fuzz *fuzz = arg;

	must(fuzz->target_live[target - fuzz->target]);
	fuzz->target_live[target - fuzz->target] = false;
	must(end->err || end->len <= target->len);
}

static const struct mrrc_cw_ops fuzz_ops = {
	.send = fuzz_send,
	.issue = fuzz_issue,
	.place = fuzz_place,
	.wr_end = fuzz_wr_end,
	.target_end = fuzz_target_end,
};

static void fuzz_post_target(struct fuzz *fuzz, unsigned i)
{
	struct mrrc_cw_target *target = &fuzz->target[i];

	target->len = 64;
	target->count = 1;
	target->seg[0] = (struct mrrc_cw_seg){ 0, 1, 64 };
	fuzz->target_live[i] = !mrrc_cw_post_target(&fuzz->cw, target, i % 4);
}

static void fuzz_act(struct fuzz *fuzz, uint8_t what)
{
	static const char bytes[OPS * 8];
	unsigned i = what % OPS;

	switch (what / OPS) {
	case 0:
		if (!fuzz->wr_live[i]) {
			fuzz->wr[i].len = i * 8;
			fuzz->wr[i].bytes = i % 2 ? bytes : NULL;
			fuzz->wr_live[i] = true;
			if (mrrc_cw_post_wr(&fuzz->cw, &fuzz->wr[i], i % 4))
				fuzz->wr_live[i] = false;
		}
		break;
	case 1:
		if (!fuzz->target_live[i])
			fuzz_post_target(fuzz, i);
		break;
	case 2:
		if (fuzz->wr_live[i])
			mrrc_cw_cancel_wr(&fuzz->cw, &fuzz->wr[i]);
		break;
	case 3:
		if (fuzz->target_live[i])
			mrrc_cw_cancel_target(&fuzz->cw, &fuzz->target[i]);
		break;
	case 4:
		if (fuzz->issued[i] &&
		    (fuzz->wr[i].state == MRRC_CW_WR_ISSUED ||
		     fuzz->wr[i].state == MRRC_CW_WR_TOLD))
			mrrc_cw_landed(&fuzz->cw, &fuzz->wr[i], 0);
		break;
	case 5:
		fuzz->full = !fuzz->full;
		mrrc_cw_push(&fuzz->cw);
		break;
	}
}

static void check_message(const uint8_t *data, size_t size, struct fuzz *fuzz)
{
	struct mrrc_cw_msg msg, again;
	uint8_t buf[MRRC_CW_MSG_MAX];
	size_t len;
	int ret;

	ret = mrrc_cw_decode(data, size, &msg);
	must(!ret || ret == -EPROTO || ret == -EPROTONOSUPPORT);
	if (ret)
		return;
	len = mrrc_cw_encode(&msg, buf);
	must(len <= size);
	if (msg.type != MRRC_CW_HELLO)
		must(len == size && !memcmp(buf, data, len));
	must(!mrrc_cw_decode(buf, len, &again));
	if (msg.type == MRRC_CW_DONE && msg.done.bytes)
		again.done.bytes = msg.done.bytes;
	must(!memcmp(&msg, &again, sizeof(msg)));
	mrrc_cw_receive(&fuzz->cw, &msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mrrc_cw_attr attr = {
		.credits = 8,
		.pending = OPS,
		.inline_max = INLINE,
	};
	struct fuzz *fuzz = calloc(1, sizeof(*fuzz));
	const uint8_t *end = data + size;
	unsigned i;
	size_t len, first;

	must(fuzz);
	mrrc_cw_init(&fuzz->cw, &attr, &fuzz_ops, fuzz);
	mrrc_cw_hello(&fuzz->cw);
	while (end - data >= 2) {
		fuzz_act(fuzz, data[0]);
		len = data[1];
		data += 2;
		if (len > (size_t) (end - data))
			len = end - data;
		while (len) {
			first = mrrc_cw_first(data, len);
			must(first && first <= len);
			check_message(data, first, fuzz);
			data += first;
			len -= first;
		}
		must(mrrc_cw_valid(&fuzz->cw));
	}
	mrrc_cw_down(&fuzz->cw, ECONNABORTED);
	must(mrrc_cw_valid(&fuzz->cw));
	for (i = 0; i < OPS; i++)
		must(!fuzz->wr_live[i] && !fuzz->target_live[i]);
	mrrc_cw_fini(&fuzz->cw);
	free(fuzz);
	return 0;
}
