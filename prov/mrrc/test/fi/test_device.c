/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi/hook/mr, fi/obj/mr: which registrations bypass the cache of a core such as
 * verbs. The core is a fake that keeps the flags; the provider's cache is
 * empty. fi/cw/link: domains whose memory goes inside messages. fi/data/resolve:
 * messages that the core copies.
 */
#include "config.h"

#include "fi/alloc/alloc.h"
#include "fi/cw/link.h"
#include "fi/data/bounce.h"
#include "fi/fid.h"
#include "fi/data/resolve.h"
#include "fi/hook/hook.h"
#include "fi/obj/obj.h"
#include "fi/param.h"
#include "fi/record/record.h"
#include "test/case.h"
#include "test/fi/unused.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- symbols of other folders ---- */

struct mrrc_params mrrc_params;
struct fi_provider mrrc_prov = { .name = "test_device" };

bool mrrc_reg_kind(const struct mrrc_reg *reg, const struct fi_mr_attr *attr,
		   uint64_t flags, enum mrrc_access *kind)
{
	return false;
}

uint64_t mrrc_record_start(const struct mrrc_reg *reg)
{
	return 0;
}

void mrrc_record_own(const struct mrrc_reg *reg, uint64_t start,
		     const struct fi_mr_attr *attr, int ret, uint64_t *chain)
{
}

UNUSED(void, mrrc_record_by, enum mrrc_trace_op op, enum mrrc_trace_peer kind,
       uint64_t peer, const void *site);
UNUSED(void, mrrc_record_end, uint64_t *chain);
UNUSED(int, mrrc_record_get, struct mrrc_reg *reg, uint64_t *chain,
       const struct iovec *iov, enum mrrc_access access, unsigned pieces,
       struct mrrc_plan *plan, struct mrrc_admit *admit, bool *copy);
UNUSED(bool, mrrc_alloc_desc, const struct mrrc_reg *reg, const void *addr,
       size_t len, void **desc);
UNUSED(bool, mrrc_bounce_allowed, const struct mrrc_op *op,
       enum mrrc_access access);
UNUSED(int, mrrc_bounce_block, struct mrrc_op *op, const struct iovec *iov,
       size_t offset, enum mrrc_access access, void **base, void **desc);
UNUSED(int, mrrc_bounce_out, struct mrrc_op *op, struct iovec *iov);
UNUSED(int, mrrc_op_hold, struct mrrc_op *op, struct mrrc_region *region);
/* exists in libfabric 2 only */
UNUSED(struct fid *, mrrc_fid_core, struct fid *fid);
UNUSED(int, mrrc_fid_bind, struct fid *fid, struct fid *bfid, uint64_t flags);
UNUSED(int, mrrc_fid_control, struct fid *fid, int command, void *arg);
UNUSED(int, mrrc_fid_ops_open, struct fid *fid, const char *name,
       uint64_t flags, void **ops, void *context);
UNUSED(int, mrrc_fid_ops_set, struct fid *fid, const char *name, uint64_t flags,
       void *ops, void *context);
UNUSED(int, mrrc_fid_tostr, const struct fid *fid, char *buf, size_t len);

/* ---- the core ---- */

static uint64_t core_flags;
static struct fid_mr core_mr;

static int core_close(struct fid *fid)
{
	return 0;
}

static int core_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			uint64_t flags, struct fid_mr **mr)
{
	static struct fi_ops ops = { .size = sizeof(ops), .close = core_close };

	core_flags = flags;
	core_mr.fid.ops = &ops;
	*mr = &core_mr;
	return 0;
}

static struct fi_ops_mr core_ops = {
	.size = sizeof(core_ops),
	.regattr = core_regattr,
};

static const uint64_t revokes[] = { 0, 1000, MRRC_REVOKE_NEVER };
static const uint64_t rights[] = { FI_SEND, FI_SEND | REMOTE };

/* Registers a buffer; returns whether the core's cache was bypassed. */
static bool
bypasses(int (*regattr)(struct fid *fid, const struct fi_mr_attr *attr,
			uint64_t flags, struct fid_mr **mr),
	 struct fid *domain, uint64_t access, enum fi_hmem_iface iface)
{
	static char buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = access,
		.iface = iface,
	};
	struct fid_mr *mr;

	core_flags = 0;
	ck_assert_int_eq(regattr(domain, &attr, 0, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_uint_eq(core_flags & ~MRRC_MR_NOCACHE, 0);
	return core_flags & MRRC_MR_NOCACHE;
}

TEST_CASE(device, NULL, NULL);

/* _i selects an element of revokes and one of rights. */
LOOP_TEST(test_hooked, 0, 6)
{
	const uint64_t revoke = revokes[_i / 2], access = rights[_i % 2];
	struct mrrc_hook_domain domain = {
		.reg.core_ops = &core_ops,
		.reg.below = MRRC_BELOW_CACHES,
		.reg.hmem = true,
		.reg.revoke = revoke,
	};
	const struct {
		void *owner;
		struct fi_ops_mr ops;
	} table = { &domain, mrrc_hook_mr_ops };
	struct fid_domain core = { .mr = (struct fi_ops_mr *) &table.ops };
	bool remote = access & REMOTE;

	ck_assert_int_eq(bypasses(table.ops.regattr, &core.fid, access,
				  FI_HMEM_SYSTEM),
			 remote && revoke != MRRC_REVOKE_NEVER);
	ck_assert_int_eq(bypasses(table.ops.regattr, &core.fid, access,
				  FI_HMEM_CUDA),
			 remote && !revoke);
	/* Without FI_HMEM, the interface is meaningless or not even a field. */
	domain.reg.hmem = false;
	ck_assert_int_eq(bypasses(table.ops.regattr, &core.fid, access,
				  FI_HMEM_CUDA),
			 remote && revoke != MRRC_REVOKE_NEVER);
}

LOOP_TEST(test_layered, 0, 2)
{
	struct fid_domain core = { .mr = &core_ops };
	struct mrrc_fabric fabric = { .fabric.api_version = FI_VERSION(1, 9) };
	struct mrrc_domain domain = {
		.core = &core,
		.fabric = &fabric,
		.reg.below = MRRC_BELOW_CACHES,
		.reg.hmem = true,
	};

	ck_assert(bypasses(mrrc_mr_ops.regattr, &domain.domain.fid, rights[_i],
			   FI_HMEM_SYSTEM));
	ck_assert_int_eq(bypasses(mrrc_mr_ops.regattr, &domain.domain.fid,
				  rights[_i], FI_HMEM_CUDA),
			 (rights[_i] & REMOTE) != 0);
}

/*
 * A message that the core copies goes to the core with all its descriptors, or
 * with none: verbs reads each descriptor of an array.
 */
TEST(test_copied)
{
	static char buf[8], some;
	static const struct {
		void *desc[2];
		uint64_t flags;
		bool device, copied, kept;
	} row[] = {
		{ { NULL, NULL }, 0, true, true, false },
		{ { NULL, NULL }, FI_INJECT, true, true, false },
		{ { &some, NULL }, 0, true, false, true },
		{ { NULL, &some }, FI_INJECT, true, false, true },
		{ { &some, &some }, 0, true, false, true },
		{ { &some, &some }, FI_INJECT, true, true, true },
		{ { NULL, &some }, 0, false, true, false },
		{ { &some, &some }, FI_INJECT, false, true, false },
	};
	const struct iovec iov[2] = { { buf, 4 }, { buf + 4, 4 } };
	struct mrrc_domain domain = { .core_local = true };
	struct mrrc_ep ep = { .domain = &domain, .inject_size = 64 };
	uint64_t flags;
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		domain.reg.hmem = row[i].device;
		flags = row[i].flags;
		ck_assert_int_eq(mrrc_copied(&ep, iov, row[i].desc, 2, NULL, 0,
					     &flags),
				 row[i].copied);
		ck_assert_int_eq(mrrc_any_desc(&ep, row[i].desc, 2),
				 row[i].kept);
		ck_assert(!row[i].copied || (flags & FI_INJECT));
	}
	domain.reg.hmem = true;
	flags = 0;
	ck_assert(mrrc_copied(&ep, iov, NULL, 2, NULL, 0, &flags));
	ck_assert(!mrrc_any_desc(&ep, NULL, 2));
}

TEST(no_message_takes_device_memory)
{
	struct mrrc_domain domain = { .reg.hmem = true };

	ck_assert_uint_eq(mrrc_cw_inline_max(&domain, 0), 0);
	domain.reg.hmem = false;
	ck_assert_uint_eq(mrrc_cw_inline_max(&domain, 0), MRRC_CW_INLINE);
}

/*
 * Only the first CW_LARGE links of a domain may send 4 KiB in a message, and only
 * over a core that needs no local registration.
 */
TEST(few_links_take_long_messages)
{
	struct mrrc_domain domain = { 0 };

	ck_assert_uint_eq(mrrc_cw_inline_max(&domain, CW_LARGE - 1),
			  MRRC_CW_INLINE);
	ck_assert_uint_eq(mrrc_cw_inline_max(&domain, CW_LARGE),
			  MRRC_CW_INLINE_MIN);
	domain.core_local = true;
	ck_assert_uint_eq(mrrc_cw_inline_max(&domain, 0), MRRC_CW_INLINE_MIN);
}
