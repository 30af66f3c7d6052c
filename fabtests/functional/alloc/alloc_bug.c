/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * alloc_bug: makes one mistake with memory of fi_mr_alloc, which a tool has to
 * find; test_tools.sh compiles and runs alloc_bug.
 *
 * usage: alloc_bug overflow|freed|unset|leak|none
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_ext_mrrc.h>

#define LEN 100

static struct fid_domain *open_domain(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("tcp;ofi_mrrc");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) ||
	    fi_fabric(info->fabric_attr, &fabric, NULL) ||
	    fi_domain(fabric, info, &domain, NULL))
		exit(2);
	return domain;
}

int main(int argc, char **argv)
{
	struct fid_domain *domain = open_domain();
	const char *bug = argc > 1 ? argv[1] : "none";
	volatile char *buf;
	void *addr;

	if (fi_mr_alloc(domain, LEN, 0, 0, &addr, NULL))
		return 2;
	buf = addr;
	if (!strcmp(bug, "leak")) {
		/* the registers and the stack get other addresses */
		if (fi_mr_alloc(domain, 777, 0, 0, &addr, NULL) ||
		    fi_mr_alloc(domain, 1, 0, 0, &addr, NULL))
			return 2;
		return 0;
	}
	if (!strcmp(bug, "overflow"))
		buf[LEN] = 1;
	if (!strcmp(bug, "unset") && buf[7])
		puts("seven");
	memset(addr, 0, LEN);
	if (fi_mr_free(domain, addr))
		return 2;
	if (!strcmp(bug, "freed"))
		buf[5] = 1;
	return fi_close(&domain->fid) ? 2 : 0;
}
