/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The MSG domain beside a domain of reliable datagrams: connected endpoints of
 * the same device, for control endpoints. See cw/cw.h.
 *
 * The domain of the datagram endpoints hides its connections: it does not
 * report that a peer has died, and a write that fails in it breaks the
 * application's connection. So the buffers of conditional writes are registered
 * in the MSG domain, which has its own cache. To resolve buffers in the MSG
 * domain, an endpoint without a core's object takes the place of the
 * application's endpoint.
 */
#include "config.h"
#include "fi/below.h"
#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/mark.h"
#include "fi/getinfo.h"
#include "fi/obj/ep.h"
#include "fi/obj/obj.h"
#include "fi/param.h"

static int cw_below_info(const struct mrrc_domain *domain,
			 const struct fi_info *app, struct fi_info **info)
{
	char *name = mrrc_below_connected(domain->fabric->core_prov_name);
	struct fi_info *at = fi_dupinfo(app);
	int ret = -FI_ENOMEM;
	uint16_t *port;

	if (name && at) {
		/*
		 * the application's endpoint uses the port: verbs would bind to
		 * the same port
		 */
		port = mrrc_cw_addr_port(at->src_addr);
		if (port)
			*port = 0;
		ret = mrrc_getinfo_msg(domain->fabric->fabric.api_version, at,
				       name, info);
	}
	if (ret)
		MRRC_WARN(EP_CTRL,
			  "conditional writes between reliable "
			  "datagram endpoints also need connected endpoints "
			  "of \"%s\": %s\n",
			  name ? name : "?", fi_strerror(-ret));
	fi_freeinfo(at);
	free(name);
	return ret == -FI_ENODATA ? -FI_EOPNOTSUPP : ret;
}

int mrrc_cw_below_open(struct mrrc_domain *domain, const struct fi_info *app)
{
	struct mrrc_cw_domain *cwd = domain->cw;
	struct fid_fabric *fabric;
	struct fid_domain *below;
	struct fi_info *info;
	int ret;

	if (cwd->below)
		return 0;
	ret = cw_below_info(domain, app, &info);
	if (ret)
		return ret;
	ret = mrrc_fabric_open(info->fabric_attr, &fabric, NULL);
	if (ret)
		goto free_info;
	ret = mrrc_domain_open(fabric, info, &below, NULL);
	if (ret)
		goto err_fabric;
	/* applications cannot pass descriptors of the MSG domain */
	ret = mrrc_domain_of(below)->reg.mr_mode & CW_NO_MODES ||
			      (mrrc_params.reg == MRRC_REGISTER_NEVER &&
			       mrrc_domain_of(below)->reg.mr_mode &
				       FI_MR_LOCAL) ?
		      -FI_EOPNOTSUPP :
		      0;
	if (!ret)
		ret = mrrc_ep_stand_in(mrrc_domain_of(below), info,
				       &cwd->below);
	if (!ret)
		goto free_info;

	fi_close(&below->fid);
err_fabric:
	fi_close(&fabric->fid);
free_info:
	fi_freeinfo(info);
	return ret;
}

void mrrc_cw_below_close(struct mrrc_cw_domain *cwd)
{
	struct mrrc_domain *domain;
	struct fid_fabric *fabric;
	int ret;

	if (!cwd->below)
		return;
	domain = cwd->below->domain;
	fabric = &domain->fabric->fabric;
	mrrc_ep_stand_in_free(cwd->below);
	cwd->below = NULL;
	ret = fi_close(&domain->domain.fid);
	if (!ret)
		ret = fi_close(&fabric->fid);
	if (ret)
		MRRC_WARN(DOMAIN,
			  "cannot close the domain of control "
			  "endpoints: %s\n",
			  fi_strerror(-ret));
}
