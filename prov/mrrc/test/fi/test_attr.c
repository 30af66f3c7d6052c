/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi/attr: applications older and newer than the provider pass attributes.
 * longer.h makes the provider newer; a newer core reads beyond the fields that
 * the provider knows.
 */
#include "config.h"
#include <unistd.h>

#include "fi/attr.h"
#include "fi/fid.h"
#include "fi/info.h"
#include "fi/mrrc_fi.h"
#include "fi/obj/cq.h"
#include "fi/obj/obj.h"
#include "fi/sized.h"
#include "sys/base/pool.h"
#include "test/case.h"

#define POISON 0xa5

static struct {
	struct fid_domain domain;
	struct fid_fabric fabric;
	struct fid_wait wait;
	struct fid_cq cq;
	struct fid_cntr cntr;
	struct fid_eq eq;
	void *attr; /* the attributes that the core object was opened with */
	bool copied;
	/* fields of a copy: one that the application set, and one of ours */
	int wait_obj;
	struct fid_wait *wait_set;
	uint64_t flags;
	int format;
} core;

static struct mrrc_pool pool;
static struct mrrc_fabric fabric;
static struct mrrc_domain domain;
static struct mrrc_wait wait_set;
static char *pages;
static size_t page;
static struct sigaction before;

/* Checks that a newer core would read zeroes beyond the known fields. */
static void zero_behind(const void *attr, size_t len, size_t end)
{
	for (; len < end; len++)
		ck_assert_msg(!((const char *) attr)[len],
			      "byte %zu of a copy is not zero", len);
}

static int core_close(struct fid *fid)
{
	return 0;
}

static struct fi_ops core_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = core_close,
};

static int core_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
			struct fid_cq **cq, void *context)
{
	core.copied = attr != core.attr;
	core.wait_obj = attr->wait_obj;
	core.wait_set = attr->wait_set;
	core.flags = attr->flags;
	core.format = attr->format;
	if (core.copied)
		zero_behind(attr, MRRC_LEN_TO(struct fi_cq_attr, wait_set),
			    sizeof(struct mrrc_cq_attrs));
	attr->size = 77;
	*cq = &core.cq;
	return 0;
}

static int core_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr,
			  struct fid_cntr **cntr, void *context)
{
	core.copied = attr != core.attr;
	core.wait_obj = attr->wait_obj;
	core.wait_set = attr->wait_set;
	core.flags = attr->flags;
	if (core.copied)
		zero_behind(attr, MRRC_LEN_TO(struct fi_cntr_attr, flags),
			    sizeof(struct mrrc_cntr_attrs));
	*cntr = &core.cntr;
	return 0;
}

static int core_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr,
			struct fid_eq **eq, void *context)
{
	core.wait_obj = attr->wait_obj;
	core.wait_set = attr->wait_set;
	core.flags = attr->flags;
	zero_behind(attr, MRRC_LEN_TO(struct fi_eq_attr, wait_set),
		    sizeof(struct mrrc_eq_attrs));
	*eq = &core.eq;
	return 0;
}

static struct fi_ops_domain core_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.cq_open = core_cq_open,
	.cntr_open = core_cntr_open,
};

static struct fi_ops_fabric core_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.eq_open = core_eq_open,
};

static struct fi_ops wait_fid_ops = {
	.size = sizeof(struct fi_ops),
	.tostr = mrrc_fid_tostr,
};

static void read_behind(int signum)
{
	ck_abort_msg("attributes are read behind their end");
}

static void setup(void)
{
	/* The handler is left by a jump, so the signal must stay unblocked. */
	const struct sigaction action = {
		.sa_handler = read_behind,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGSEGV, &action, &before);
	page = (size_t) sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(pages, MAP_FAILED);
	ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
	memset(pages + 2 * page, POISON, page);

	memset(&core, 0, sizeof(core));
	core.domain.ops = &core_domain_ops;
	core.fabric.ops = &core_fabric_ops;
	core.cq.fid.ops = &core_fid_ops;
	core.cntr.fid.ops = &core_fid_ops;
	core.eq.fid.ops = &core_fid_ops;
	memset(&fabric, 0, sizeof(fabric));
	fabric.core = &core.fabric;
	memset(&domain, 0, sizeof(domain));
	domain.core = &core.domain;
	domain.fabric = &fabric;
	mrrc_mutex_init(&domain.cq_lock, MRRC_RANK_CQS);
	memset(&wait_set, 0, sizeof(wait_set));
	wait_set.core = &core.wait;
	wait_set.wait.fid.fclass = FI_CLASS_WAIT;
	wait_set.wait.fid.ops = &wait_fid_ops;
}

static void teardown(void)
{
	sigaction(SIGSEGV, &before, NULL);
	mrrc_mutex_fini(&domain.cq_lock);
	munmap(pages, 3 * page);
}

/*
 * Returns attributes of length @len. Behind the attributes of an older
 * application, memory cannot be read; behind the attributes of a newer
 * application are fields that the provider does not know.
 */
static void *app_attr(bool older, size_t len)
{
	core.attr = pages + 2 * page;
	if (older)
		core.attr = pages + page - len;
	memset(core.attr, 0, len);
	return core.attr;
}

TEST_CASE(attr, setup, teardown);

static void open_cq(bool older, bool waits)
{
	const size_t len = MRRC_LEN_TO(struct fi_cq_attr, wait_set);
	struct fi_cq_attr *attr = app_attr(older, len);
	struct fid_cq *cq;

	attr->format = FI_CQ_FORMAT_MSG;
	attr->flags = FI_AFFINITY;
	attr->wait_obj = waits ? FI_WAIT_SET : FI_WAIT_FD;
	attr->wait_set = waits ? &wait_set.wait : NULL;
	ck_assert_int_eq(mrrc_cq_open(&domain.domain, attr, &cq, NULL), 0);
	ck_assert_int_eq(core.wait_obj, (int) attr->wait_obj);
	ck_assert_ptr_eq(core.wait_set, waits ? &core.wait : NULL);
	ck_assert_uint_eq(core.flags, FI_AFFINITY);
	/* The application's attributes have only changes that a core makes. */
	ck_assert_int_eq(attr->format, FI_CQ_FORMAT_MSG);
	ck_assert_uint_eq(attr->size, 77);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}

/* The application is older, or newer. */
LOOP_TEST(test_cq, 0, 2)
{
	open_cq(!_i, false);
	ck_assert(!core.copied);
	ck_assert_int_eq(core.format, FI_CQ_FORMAT_MSG);
}

LOOP_TEST(test_cq_wait_set, 0, 2)
{
	open_cq(!_i, true);
	ck_assert(core.copied);
}

LOOP_TEST(test_cq_format, 0, 2)
{
	domain.ops = &pool;
	domain.multi_recv = true;
	open_cq(!_i, false);
	ck_assert(core.copied);
	ck_assert_int_eq(core.format, FI_CQ_FORMAT_DATA);
}

static void open_cntr(bool older, bool waits)
{
	const size_t len = MRRC_LEN_TO(struct fi_cntr_attr, flags);
	struct fi_cntr_attr *attr = app_attr(older, len);
	struct fid_cntr *cntr;

	attr->flags = FI_AFFINITY;
	attr->wait_obj = waits ? FI_WAIT_SET : FI_WAIT_FD;
	attr->wait_set = waits ? &wait_set.wait : NULL;
	ck_assert_int_eq(mrrc_cntr_open(&domain.domain, attr, &cntr, NULL), 0);
	ck_assert_int_eq(core.wait_obj, (int) attr->wait_obj);
	ck_assert_ptr_eq(core.wait_set, waits ? &core.wait : NULL);
	ck_assert_uint_eq(core.flags, FI_AFFINITY);
	ck_assert_int_eq(core.copied, waits);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}

LOOP_TEST(test_cntr, 0, 2)
{
	open_cntr(!_i, false);
}

LOOP_TEST(test_cntr_wait_set, 0, 2)
{
	open_cntr(!_i, true);
}

/* Attributes of an event queue are always copied: the provider changes them. */
LOOP_TEST(test_eq, 0, 4)
{
	const size_t len = MRRC_LEN_TO(struct fi_eq_attr, wait_set);
	const bool waits = _i & 2;
	struct fi_eq_attr *attr = app_attr(_i & 1, len);
	struct fid_eq *eq;

	attr->flags = FI_AFFINITY;
	attr->wait_obj = waits ? FI_WAIT_SET : FI_WAIT_FD;
	attr->wait_set = waits ? &wait_set.wait : NULL;
	ck_assert_int_eq(mrrc_eq_open(&fabric.fabric, attr, &eq, NULL), 0);
	ck_assert_int_eq(core.wait_obj, (int) attr->wait_obj);
	ck_assert_ptr_eq(core.wait_set, waits ? &core.wait : NULL);
	ck_assert_uint_eq(core.flags, FI_AFFINITY | FI_WRITE);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}

/*
 * A newer core gets no wrong attributes for a queue of the provider's own, or
 * if the application gives no attributes.
 */
TEST(test_none)
{
	struct mrrc_cq *own;
	struct fid_cq *cq;
	struct fid_eq *eq;

	ck_assert_int_eq(mrrc_cq_open(&domain.domain, NULL, &cq, NULL), 0);
	ck_assert_int_eq(core.wait_obj, FI_WAIT_FD);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(mrrc_cq_open_internal(&domain, &own), 0);
	ck_assert_int_eq(core.wait_obj, FI_WAIT_NONE);
	ck_assert_int_eq(fi_close(&own->cq.fid), 0);
	ck_assert_int_eq(mrrc_eq_open(&fabric.fabric, NULL, &eq, NULL), 0);
	ck_assert_int_eq(core.wait_obj, FI_WAIT_FD);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}

/* A core may have objects of a GPU; the provider refuses them. */
TEST(test_xpu)
{
	struct fi_info *info = fi_allocinfo();
	struct fi_cntr_attr *cntr_attr;
	struct fi_cq_attr *cq_attr;
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	cq_attr = app_attr(true, MRRC_LEN_TO(struct fi_cq_attr, wait_set));
	cq_attr->flags = FI_XPU;
	ck_assert_int_eq(mrrc_cq_open(&domain.domain, cq_attr, &cq, NULL),
			 -FI_EINVAL);
	cntr_attr = app_attr(true, MRRC_LEN_TO(struct fi_cntr_attr, flags));
	cntr_attr->flags = FI_XPU;
	ck_assert_int_eq(mrrc_cntr_open(&domain.domain, cntr_attr, &cntr, NULL),
			 -FI_EINVAL);

	ck_assert_ptr_nonnull(info);
	info->caps = FI_MSG | FI_XPU;
	info->tx_attr->caps = FI_SEND | FI_XPU;
	info->rx_attr->caps = FI_RECV | FI_XPU;
	info->domain_attr->caps = FI_LOCAL_COMM | FI_XPU;
	mrrc_info_from_core(info);
	ck_assert_uint_eq(info->caps, FI_MSG);
	ck_assert_uint_eq(info->tx_attr->caps, FI_SEND);
	ck_assert_uint_eq(info->rx_attr->caps, FI_RECV);
	ck_assert_uint_eq(info->domain_attr->caps, FI_LOCAL_COMM);
	fi_freeinfo(info);
}

/*
 * No info has FI_TRIGGER: the core would take the layer's counter, which the
 * context of a triggered operation names, for a counter of the core.
 */
TEST(test_trigger)
{
	struct fi_info *info = fi_allocinfo();

	ck_assert_ptr_nonnull(info);
	info->caps = FI_MSG | FI_TRIGGER;
	info->tx_attr->caps = FI_SEND | FI_TRIGGER;
	info->rx_attr->caps = FI_RECV | FI_TRIGGER;
	mrrc_info_from_core(info);
	ck_assert_uint_eq(info->caps, FI_MSG);
	ck_assert_uint_eq(info->tx_attr->caps, FI_SEND);
	ck_assert_uint_eq(info->rx_attr->caps, FI_RECV);
	fi_freeinfo(info);
}

/* A structure is of an older header, of a newer header, or has no size. */
TEST(test_sized)
{
	const uint64_t full[3] = { 0, 1, 2 };
	uint64_t out[5] = { 16, 9, 9, 9, 9 };

	ck_assert_int_eq(mrrc_sized_out(out, full, sizeof(full)), 0);
	ck_assert(out[0] == 16 && out[1] == 1 && out[2] == 9);
	out[0] = 23; /* The size ends within a field, which stays unchanged. */
	ck_assert_int_eq(mrrc_sized_out(out, full, sizeof(full)), 0);
	ck_assert(out[0] == 16 && out[2] == 9);
	out[0] = 32;
	ck_assert_int_eq(mrrc_sized_out(out, full, sizeof(full)), 0);
	ck_assert(out[0] == 24 && out[2] == 2 && !out[3] && out[4] == 9);
	out[0] = 8;
	ck_assert_int_eq(mrrc_sized_out(out, full, sizeof(full)), -FI_EINVAL);
	out[0] = UINT64_MAX;
	ck_assert_int_eq(mrrc_sized_out(out, full, sizeof(full)), -FI_EINVAL);
	ck_assert_int_eq(mrrc_sized_out(NULL, full, sizeof(full)), -FI_EINVAL);
}
