/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Infos of control endpoints: see cw/cw.h.
 */
#include "config.h"
#include "fi/cw/group.h"
#include "fi/cw/mark.h"

void mrrc_cw_info_adapt(struct fi_info *info)
{
	uint16_t *port = mrrc_cw_addr_port(info->src_addr);

	if (port)
		*port = 0;
	info->tx_attr->op_flags = 0;
	info->rx_attr->op_flags = 0;
	/*
	 * a message has to follow its write: not every core grants this order
	 */
	info->tx_attr->msg_order |= FI_ORDER_SAS | FI_ORDER_SAW;
	info->rx_attr->msg_order |= FI_ORDER_SAS | FI_ORDER_SAW;
	info->tx_attr->size = CW_TX;
	info->rx_attr->size = CW_RX + 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->ep_attr->tx_ctx_cnt = 1;
}

struct fi_info *mrrc_cw_info(const struct mrrc_ep *via,
			     const struct sockaddr *dest)
{
	struct fi_info *info = fi_dupinfo(via->info);

	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = NULL;
	info->dest_addrlen = 0;
	mrrc_cw_info_adapt(info);
	if (!dest)
		return info;
	info->addr_format = mrrc_cw_addr_format(dest);
	info->dest_addrlen = mrrc_cw_addr_len(dest);
	info->dest_addr = malloc(info->dest_addrlen);
	if (!info->dest_addr) {
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, dest, info->dest_addrlen);
	return info;
}

/* A peer accepts a name only from its own address. */
static int cw_info_set_src(struct fi_info *info,
			   const struct mrrc_cw_name *name)
{
	const size_t len = mrrc_cw_addr_len(&name->sa);
	void *addr;

	if (!mrrc_cw_addr_known(name))
		return 0;
	addr = malloc(len);
	if (!addr)
		return -FI_ENOMEM;
	memcpy(addr, name, len);
	mrrc_cw_name_strip(addr);
	*mrrc_cw_addr_port(addr) = 0;
	free(info->src_addr);
	info->src_addr = addr;
	info->src_addrlen = len;
	return 0;
}

int mrrc_cw_info_to(const struct mrrc_ep *via, const struct sockaddr *dest,
		    const struct mrrc_cw_name *from, struct fi_info **info)
{
	*info = mrrc_cw_info(via, dest);
	if (!*info)
		return -FI_ENOMEM;
	if (!from || !cw_info_set_src(*info, from))
		return 0;
	fi_freeinfo(*info);
	return -FI_ENOMEM;
}
