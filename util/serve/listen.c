/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where clients connect (serve/server.h).
 */
#include "config.h"
#include "serve/server.h"

#include "sys/sockets.h"

static int open_listener(struct server *server)
{
	int ret;

	ret = fi_passive_ep(server->net.fabric, server->net.info, &server->pep,
			    NULL);
	if (!ret)
		ret = fi_pep_bind(server->pep, &server->net.eq->fid, 0);
	if (!ret)
		ret = fi_cw_enable(&server->pep->fid, 0);
	if (!ret)
		ret = fi_listen(server->pep);
	return ret;
}

int listen_open(struct server *server)
{
	size_t len = sizeof(server->at);
	int ret;

	ret = server->options.kind.rdm ? rdm_open(server) :
					 open_listener(server);
	if (!ret)
		ret = fi_getname(server->pep ? &server->pep->fid :
					       &server->rdm.ep->fid,
				 &server->at, &len);
	if (!ret)
		mrrc_sockets_impatient((struct sockaddr *) &server->at);
	return ret;
}
