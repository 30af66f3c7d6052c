/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations that a test makes: for descriptors in raw mode, and for peers.
 */
#include "ft_mrrc.h"

struct ft_mr {
	struct fid_mr *mr;
	struct ft_mr *next;
};

/* Next key that the test chooses, if the core lets an application choose. */
static uint64_t next_key = 1;

static int reg(struct ft_dom *dom, const void *buf, size_t len, uint64_t access,
	       struct fid_mr **mr)
{
	uint64_t key = __atomic_fetch_add(&next_key, 1, __ATOMIC_RELAXED);

	return fi_mr_reg(dom->domain, buf, len, access, 0, key, 0, mr, NULL);
}

void *ft_desc(struct ft_dom *dom, const void *buf, size_t len)
{
	uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	struct ft_mr *mr;

	static char nothing;

	if (!ft_opts.raw)
		return NULL;
	/* verbs needs descriptors for empty pieces, too */
	if (!len) {
		buf = &nothing;
		len = 1;
	}
	mr = malloc(sizeof(*mr));
	FT_CHECK(mr, "malloc");
	/* read-only memory cannot be registered for writing */
	if (reg(dom, buf, len, all, &mr->mr))
		FT_CALL(reg(dom, buf, len, FI_SEND | FI_WRITE, &mr->mr));
	mr->next = dom->mrs;
	dom->mrs = mr;
	return fi_mr_desc(mr->mr);
}

void ft_release(struct ft_dom *dom)
{
	struct ft_mr *mr;

	while ((mr = dom->mrs)) {
		dom->mrs = mr->next;
		FT_CALL(fi_close(&mr->mr->fid));
		free(mr);
	}
}

void ft_release_pair(struct ft_pair *pair)
{
	ft_release(&pair->dom[0]);
	ft_release(&pair->dom[1]);
}

struct fid_mr *ft_reg(struct ft_dom *dom, const void *buf, size_t len,
		      uint64_t access)
{
	struct fid_mr *mr;

	FT_CALL(reg(dom, buf, len, access, &mr));
	return mr;
}

uint64_t ft_raddr(struct ft_dom *dom, const void *buf)
{
	return dom->info->domain_attr->mr_mode &
			       (FI_MR_VIRT_ADDR | FT_MR_BASIC) ?
		       (uintptr_t) buf :
		       0;
}
