/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations whose source is a part of a file (file/file.h).
 *
 * The part is mapped unless mapping costs more than a copy by the domain's cost
 * model, or is impossible. The part is also copied where the core may read a
 * mapping with the processor in this process, since an error of the disk would
 * raise a signal. The copy is made by read(2) in the posting call.
 */
#include "config.h"
#include <fcntl.h>
#include <sys/mman.h>

#include "fi/blocks.h"
#include "fi/cw/cw.h"
#include "fi/cw/link.h"
#include "fi/data/pending.h"
#include "fi/data/post.h"
#include "fi/file/file.h"
#include "sys/file/lease_file.h"
#include "sys/base/vm.h"
#include "fi/fid.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/* ofi_rxm copies messages up to this size in this process, at most */
#define FILE_LAYERED_MAX ((size_t) 256 << 10)

/* the levels of completion that a call may ask for, and all that there are */
#define FILE_LEVELS \
	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define FILE_ALL_LEVELS (FILE_LEVELS | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)

#define FILE_FLAGS \
	(FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE | FILE_LEVELS)

/* The part that one operation reads. */
struct file_part {
	struct mrrc_block block;
	struct mrrc_file *file;
	size_t len;
	bool follows;		     /* where the one before has ended */
	struct mrrc_lease_hold hold; /* of a mapped part */
	bool kept;		     /* it could not be yielded */
	struct mrrc_reg *reg;	     /* of a copied one */
	void *buf;
	struct mrrc_direct *direct;
	struct mrrc_comp *comp; /* for an error */
	uint64_t comp_flags;
};

struct file_source {
	struct mrrc_source source;
	struct mrrc_file *file;
	uint64_t offset;
	size_t len;
	uint64_t comp_flags; /* of its completion */
};

/* ---- counters ---- */

/* sign: 1 or -1 */
static void file_count(const struct file_part *part, int sign)
{
	const bool mapped = part->hold.lease;
	struct mrrc_file *file = part->file;

	atomic_fetch_add(part->direct ? &file->direct :
			 mapped	      ? &file->mapped :
					&file->copied,
			 sign);
	atomic_fetch_add(part->direct ? &file->direct_bytes :
			 mapped	      ? &file->mapped_bytes :
					&file->copied_bytes,
			 sign * part->len);
}

/* ---- the end of an operation ---- */

static bool file_part_lost(const struct mrrc_block *block)
{
	const struct file_part *part =
		container_of(block, struct file_part, block);

	return part->hold.lease && !mrrc_file_forked(part->file) &&
	       mrrc_lease_lost(&part->hold);
}

static bool file_part_wanted(const struct mrrc_block *block)
{
	const struct file_part *part =
		container_of(block, struct file_part, block);

	return part->hold.lease && !part->kept &&
	       !mrrc_file_forked(part->file) && mrrc_lease_wanted(&part->hold);
}

/* The writer has not opened the file yet, so the file is unchanged. */
static bool file_part_yield(struct mrrc_op *op, struct mrrc_block *block,
			    void *buf, void **desc)
{
	struct file_part *part = container_of(block, struct file_part, block);
	struct mrrc_file *file = part->file;
	const size_t len = part->len;

	part->kept = mrrc_file_read(file->fd, &file->id, buf, len,
				    part->hold.offset) ||
		     mrrc_lease_lost(&part->hold);
	if (part->kept)
		return false;
	file_count(part, -1);
	mrrc_lease_release(&part->hold);
	part->hold.lease = NULL;
	part->reg = &op->domain->reg;
	part->buf = buf;
	*desc = NULL;
	mrrc_alloc_desc(part->reg, buf, len, desc);
	file_count(part, 1);
	return true;
}

/* again: the part was not posted. */
static void file_part_free(struct file_part *part, bool again)
{
	struct mrrc_file *file = part->file;

	if (again)
		file_count(part, -1);
	if (part->hold.lease && !mrrc_file_forked(file))
		mrrc_lease_release(&part->hold);
	if (part->buf)
		mrrc_alloc_give(part->reg, part->buf);
	if (part->direct)
		mrrc_direct_put(file, part->direct, again);
	mrrc_comp_free(part->comp);
	free(part);
	/* from now on it may be closed */
	atomic_fetch_sub(&file->parts, 1);
}

/*
 * Reports an error to the application if claiming the operation set
 * block->error; ends the block.
 */
static void file_part_end(struct mrrc_op *op, struct mrrc_block *block)
{
	struct file_part *part = container_of(block, struct file_part, block);
	const struct fi_cq_err_entry entry = {
		.op_context = op->context,
		.flags = part->comp_flags,
		.err = FI_EIO,
		.prov_errno = FI_EIO,
	};

	if (block->error && op->cq && !op->cq->internal) {
		mrrc_pending_write(op->cq, part->comp, &entry);
		part->comp = NULL;
	}
	file_part_free(part, atomic_load(&op->flags) & MRRC_OP_REFUSED);
}

static const struct mrrc_block_ops file_part_ops = {
	.end = file_part_end,
	.lost = file_part_lost,
	.wanted = file_part_wanted,
	.yield = file_part_yield,
};

/* ---- mapped ---- */

/* May the core copy the part in this process? */
static bool file_core_copies(const struct mrrc_op *op, size_t len)
{
	const struct mrrc_ep *ep = atomic_load(&op->ep);

	if (len <= ep->inject_size)
		return true;
	return !op->domain->core_local && len <= FILE_LAYERED_MAX &&
	       op->domain->reg.below & MRRC_BELOW_LAYERED;
}

/*
 * Finds out why the core did not register the part: because of the disk
 * (-FI_EIO), or because the core registers no mapping of a file, as before
 * Linux 6.2, or reached a limit (-FI_EAGAIN).
 */
static int file_refused(struct mrrc_file *file, char *addr, size_t len, int ret)
{
	const size_t skip = (uintptr_t) addr & (mrrc_vm_page() - 1);

	if (ret != -FI_EFAULT && ret != -FI_EACCES && ret != -FI_EINVAL &&
	    ret != -FI_EOPNOTSUPP)
		return -FI_EAGAIN; /* a limit */
	if (madvise(addr - skip, len + skip, MADV_POPULATE_READ) &&
	    errno != EINVAL)
		return -FI_EIO;
	if (!atomic_exchange(&file->shared->refused, true))
		MRRC_INFO(MR,
			  "parts of files are copied: the core provider does "
			  "not register shared read-only mappings: %s\n",
			  fi_strerror(-ret));
	return -FI_EAGAIN;
}

/*
 * Does the application read consecutive parts from the disk? If so, read(2)
 * takes less time than faulting in each page: the kernel reads ahead in large
 * pages. Parts that are requested again are mapped. Threads that post at the
 * same time may disturb this detection. lease: NULL: the part is not mapped.
 */
static bool file_cold(const struct file_source *source,
		      const struct file_part *part,
		      const struct mrrc_lease_file *lease)
{
	const uint64_t offset = source->offset;
	const size_t len = source->len;
	struct mrrc_file *file = source->file;
	bool cold;

	cold = !(file->flags & FI_MRRC_FILE_MAP) && part->follows;
	if (cold && !atomic_load(&file->cold))
		cold = lease ? mrrc_lease_file_cached(lease, offset, len) <
				       len :
			       !mrrc_file_cached(file->fd, offset, len);
	atomic_store(&file->cold, cold);
	return cold;
}

/*
 * Registers the part, which is at addr, for the operation's domain, which for
 * conditional writes is not the file's domain. *copy: the part should be copied
 * instead.
 */
static int file_register(const struct file_source *source,
			 const struct mrrc_op *op, const struct file_part *part,
			 struct mrrc_admit *admit, char *addr, unsigned pieces,
			 struct mrrc_plan *plan, bool *copy)
{
	const struct mrrc_lease_file *lease = mrrc_lease_file(part->hold.lease);
	struct mrrc_cache_mt *cache = op->domain->reg.cache;

	*copy = false;
	if (mrrc_cache_mt_known(cache, addr, source->len, MRRC_RO, plan))
		return 0;
	if (!mrrc_lease_file_readable(lease, source->offset, source->len) ||
	    file_cold(source, part, lease)) {
		*copy = true;
		return 0;
	}
	mrrc_lease_file_ahead(lease, source->offset, source->len,
			      part->follows);
	return mrrc_cache_mt_get_stable(cache, admit, addr, source->len, pieces,
					plan, copy);
}

/* -FI_EAGAIN: copy it. */
static int file_map(const struct file_source *source, struct mrrc_op *op,
		    size_t limit, struct file_part *part,
		    struct mrrc_bufs *core)
{
	struct mrrc_domain *domain = op->domain;
	struct mrrc_file *file = source->file;
	struct iovec iov = { .iov_len = source->len };
	struct mrrc_admit *admit = NULL;
	struct mrrc_plan plan;
	bool cheaper;
	char *addr;
	int ret;

	/* a lease and a mapping cost more than many copies */
	if (mrrc_file_asks(file) && file_cold(source, part, NULL))
		return -FI_EAGAIN;
	ret = mrrc_file_hold(file, source->offset, source->len, &part->hold,
			     &addr);
	if (ret) {
		part->hold.lease = NULL;
		return ret;
	}
	if (!(file->flags & FI_MRRC_FILE_MAP) &&
	    source->len <= domain->bounce_max)
		admit = &domain->admit;
	ret = file_register(source, op, part, admit, addr, limit ? limit : 1,
			    &plan, &cheaper);
	iov.iov_base = addr;
	if (ret)
		ret = file_refused(file, addr, source->len, ret);
	else
		ret = cheaper ? -FI_EAGAIN :
				mrrc_resolve_plan(op, &iov, &plan, core);
	if (!ret)
		return 0;
	mrrc_lease_release(&part->hold);
	part->hold.lease = NULL;
	return ret;
}

/* ---- copied ---- */

/*
 * Uses memory of fi_mr_alloc(3) as the source. false: the memory belongs to
 * another domain than op's.
 */
static bool file_allocated(struct mrrc_op *op, void *buf, size_t len,
			   struct mrrc_bufs *core)
{
	core->count = 1;
	core->iov[0] = (struct iovec){ buf, len };
	core->desc[0] = NULL;
	return mrrc_alloc_desc(&op->domain->reg, buf, len, &core->desc[0]);
}

static int file_copy(const struct file_source *source, struct mrrc_op *op,
		     struct file_part *part, struct mrrc_bufs *core)
{
	struct mrrc_reg *reg = &op->domain->reg;
	struct mrrc_file *file = source->file;
	int ret;

	ret = mrrc_alloc_take(reg, 1, source->len, &part->buf);
	if (ret)
		return ret;
	part->reg = reg;
	ret = mrrc_file_read(file->fd, &file->id, part->buf, source->len,
			     source->offset);
	if (!ret)
		file_allocated(op, part->buf, source->len, core);
	return ret;
}

/*
 * Takes a part past the page cache as the source. -FI_EAGAIN: the part is to be
 * copied. For a conditional write the memory is registered like any other,
 * since it belongs to the file's domain.
 */
static int file_direct(const struct file_source *source, struct mrrc_op *op,
		       size_t limit, struct file_part *part,
		       struct mrrc_bufs *core)
{
	struct iovec iov = { .iov_len = source->len };
	bool any;
	int ret;

	ret = mrrc_direct_get(source->file, source->offset, source->len,
			      part->follows, &part->direct);
	if (ret)
		return ret;
	iov.iov_base = part->direct->addr;
	if (file_allocated(op, iov.iov_base, iov.iov_len, core))
		return 0;
	core->count = 0;
	return mrrc_resolve(op, &iov, NULL, 1, limit, MRRC_RO, core, &any);
}

/* ---- either ---- */

static int file_part_get(const struct file_source *source, struct mrrc_op *op,
			 size_t limit, struct file_part *part,
			 struct mrrc_bufs *core)
{
	struct mrrc_file *file = source->file;
	int ret = -FI_EAGAIN;

	if (file->flags & FI_MRRC_FILE_DIRECT) {
		ret = file_direct(source, op, limit, part, core);
	} else if (!(file->flags & FI_MRRC_FILE_COPY) && file->shared->leases &&
		   !atomic_load(&file->shared->refused) &&
		   !file_core_copies(op, source->len)) {
		part->comp = mrrc_comp_new(NULL);
		if (!part->comp)
			return -FI_ENOMEM;
		ret = file_map(source, op, limit, part, core);
	}
	if (ret == -FI_EAGAIN)
		ret = file_copy(source, op, part, core);
	if (ret == -FI_ENOMEM && part->comp && part->follows) {
		/*
		 * there is no block for a copy: map the part like a part that
		 * follows no other
		 */
		part->follows = false;
		ret = file_map(source, op, limit, part, core);
		ret = ret == -FI_EAGAIN ? -FI_ENOMEM : ret;
	}
	return ret;
}

/*
 * Does the part follow the latest part, or is it the latest part again, which
 * was not posted?
 */
static bool file_follows(const struct file_source *source)
{
	struct mrrc_file *file = source->file;
	const uint64_t offset = source->offset;
	const uint64_t next =
		atomic_exchange(&file->next, offset + source->len);
	const uint64_t last = atomic_exchange(&file->last, offset);

	return offset == next || offset == last;
}

/* struct mrrc_source */
static int file_resolve(const struct mrrc_source *from, struct mrrc_op *op,
			size_t limit, struct mrrc_bufs *core)
{
	const struct file_source *source =
		container_of(from, struct file_source, source);
	const struct iovec none = { &op->domain->nothing, 0 };
	struct mrrc_file *file = source->file;
	struct file_part *part;
	bool any;
	int ret;

	core->count = 0;
	if (!source->len)
		return mrrc_resolve(op, &none, NULL, 1, 1, MRRC_RO, core, &any);
	part = calloc(1, sizeof(*part));
	if (!part)
		return -FI_ENOMEM;
	atomic_fetch_add(&file->parts, 1);
	part->file = file;
	part->len = source->len;
	part->comp_flags = source->comp_flags;
	part->follows = file_follows(source);
	ret = file_part_get(source, op, limit, part, core);
	if (ret) {
		file_part_free(part, false);
		return ret;
	}
	file_count(part, 1);
	part->block.class = MRRC_BLOCK_FILE;
	part->block.ops = &file_part_ops;
	part->block.next = op->bounces;
	op->bounces = &part->block;
	return 0;
}

/* ---- calls ---- */

/* May it be posted? On success *ep and *source are what to post. */
static int file_check(struct fid_mrrc_file *file_fid, struct fid_ep *ep_fid,
		      const struct fi_mrrc_file_msg *msg, uint64_t flags,
		      uint64_t comp_flags, struct file_source *source,
		      struct mrrc_ep **ep)
{
	struct mrrc_file *file = mrrc_file_of(file_fid);

	if (!mrrc_fid_core(&ep_fid->fid) ||
	    (ep_fid->fid.fclass != FI_CLASS_EP &&
	     ep_fid->fid.fclass != FI_CLASS_TX_CTX))
		return -FI_EINVAL;
	if (flags & ~FILE_FLAGS)
		return -FI_EBADFLAGS;
	*ep = mrrc_ep_of(ep_fid);
	if ((*ep)->domain != file->domain)
		return -FI_EDOMAIN;
	if (mrrc_file_forked(file))
		return -FI_EOPNOTSUPP;
	*source = (struct file_source){
		.source.resolve = file_resolve,
		.file = file,
		.offset = msg->offset,
		.len = msg->len,
		.comp_flags = comp_flags,
	};
	return 0;
}

static int file_begin(struct fid_mrrc_file *file_fid, struct fid_ep *ep_fid,
		      const struct fi_mrrc_file_msg *msg, uint64_t flags,
		      uint64_t comp_flags, struct mrrc_bufs *core,
		      struct mrrc_op **op)
{
	struct file_source source;
	struct mrrc_ep *ep;
	int ret;

	ret = file_check(file_fid, ep_fid, msg, flags, comp_flags, &source,
			 &ep);
	if (!ret)
		ret = mrrc_op_begin(ep, &ep->tx, flags, msg->context, op);
	if (ret)
		return ret;
	ret = file_resolve(&source.source, *op,
			   comp_flags & FI_RMA ? ep->write_split_limit :
						 ep->tx.split_limit,
			   core);
	return ret ? (int) mrrc_op_posted(*op, ret) : 0;
}

/* A call that asks for no level of completion has the endpoint's level. */
static uint64_t file_level(struct fid_ep *ep, uint64_t flags)
{
	return flags & FILE_LEVELS ?
		       0 :
		       mrrc_ep_of(ep)->tx.op_flags & FILE_ALL_LEVELS;
}

static uint64_t file_core_flags(struct fid_ep *ep, uint64_t flags)
{
	return flags | FI_COMPLETION | file_level(ep, flags);
}

/* What the core's messages have in common. */
#define FILE_MSG(core_msg, msg, core, op)          \
	({                                         \
		MRRC_POST_MSG(core_msg, core, op); \
		(core_msg)->addr = (msg)->addr;    \
		(core_msg)->data = (msg)->data;    \
		if (!(core)->desc[0])              \
			(core_msg)->desc = NULL;   \
	})

static ssize_t file_sendmsg(struct fid_mrrc_file *file, struct fid_ep *ep,
			    const struct fi_mrrc_file_msg *msg, uint64_t flags)
{
	struct fi_msg core_msg = { 0 };
	struct mrrc_bufs core;
	struct mrrc_op *op;
	int ret;

	ret = file_begin(file, ep, msg, flags, FI_SEND | FI_MSG, &core, &op);
	if (ret)
		return ret;
	FILE_MSG(&core_msg, msg, &core, op);
	return MRRC_OP_POST(op, fi_sendmsg(mrrc_ep_of(ep)->core, &core_msg,
					   file_core_flags(ep, flags)));
}

static ssize_t file_tsendmsg(struct fid_mrrc_file *file, struct fid_ep *ep,
			     const struct fi_mrrc_file_msg *msg, uint64_t flags)
{
	struct fi_msg_tagged core_msg = { .tag = msg->tag };
	struct mrrc_bufs core;
	struct mrrc_op *op;
	int ret;

	ret = file_begin(file, ep, msg, flags, FI_SEND | FI_TAGGED, &core, &op);
	if (ret)
		return ret;
	FILE_MSG(&core_msg, msg, &core, op);
	return MRRC_OP_POST(op, fi_tsendmsg(mrrc_ep_of(ep)->core, &core_msg,
					    file_core_flags(ep, flags)));
}

static ssize_t file_writemsg(struct fid_mrrc_file *file, struct fid_ep *ep,
			     const struct fi_mrrc_file_msg *msg, uint64_t flags)
{
	const struct fi_rma_iov target = { msg->rma_addr, msg->len, msg->key };
	struct fi_msg_rma core_msg = { .rma_iov = &target, .rma_iov_count = 1 };
	struct mrrc_bufs core;
	struct mrrc_op *op;
	int ret;

	ret = file_begin(file, ep, msg, flags, FI_WRITE | FI_RMA, &core, &op);
	if (ret)
		return ret;
	FILE_MSG(&core_msg, msg, &core, op);
	return MRRC_OP_POST(op, fi_writemsg(mrrc_ep_of(ep)->core, &core_msg,
					    file_core_flags(ep, flags)));
}

static ssize_t file_cwritemsg(struct fid_mrrc_file *file, struct fid_ep *ep_fid,
			      const struct fi_mrrc_file_msg *msg,
			      uint64_t flags)
{
	const struct fi_msg_cw cw = {
		.addr = msg->addr,
		.cwtag = msg->tag,
		.context = msg->context,
		.data = msg->data,
	};
	struct file_source source;
	struct mrrc_ep *ep;
	int ret;

	ret = file_check(file, ep_fid, msg, flags, 0, &source, &ep);
	if (ret)
		return ret;
	flags |= file_level(ep_fid, flags) & CW_NO_LEVELS;
	ep = mrrc_cw_base(ep);
	return mrrc_ep_has_cw(ep) ?
		       mrrc_cw_post_write(ep, &cw, flags, &source.source) :
		       -FI_EOPNOTSUPP;
}

const struct fi_mrrc_ops_file mrrc_file_ops = {
	.size = sizeof(struct fi_mrrc_ops_file),
	.sendmsg = file_sendmsg,
	.tsendmsg = file_tsendmsg,
	.writemsg = file_writemsg,
	.cwritemsg = file_cwritemsg,
	.query = mrrc_file_query,
};
