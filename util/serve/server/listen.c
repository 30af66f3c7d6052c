/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Listens for clients that connect (serve/server/server.h).
 *
 * libfabric's tcp keeps connections that send nothing as long as it listens,
 * and does not report these connections; when no descriptor is left, its event
 * queue wakes the loop permanently. Therefore, when the event queue was
 * readable but had no event, the server searches for silent connections, and
 * ends connections that were silent for too long or are too many. The provider
 * ends silent control connections in the same way (prov/mrrc/fi/cw/listen.c).
 */
#include "config.h"
#include "serve/server/server.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sys/base/sockets.h"

#define SILENT_MS  5000
#define SILENT_MAX 64	/* maximum number of silent connections */
#define SWEEP_MS   1000 /* ms between searches for silent connections */
/* ms between searches where connections cause no event */
#define UNSEEN_MS 5000
#define VAIN_MAX  256 /* useless wakes before the event queue is muted */
#define MUTE_MS	  100

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
	struct server_listen *listen = &server->listen;
	const struct fi_info *info = server->net.info;
	size_t len = sizeof(listen->at);
	int ret;

	ret = server->options.kind.rdm ? rdm_open(server) :
					 open_listener(server);
	if (!ret)
		ret = fi_getname(server->pep ? &server->pep->fid :
					       &server->rdm.ep->fid,
				 &listen->at, &len);
	if (ret)
		return ret;
	listen->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (listen->spare < 0)
		return -FI_EMFILE;
	listen->sockets = !strncmp(info->fabric_attr->prov_name, "tcp", 3);
	/* ofi_rxm, and tcp of 2.x, accept in other threads and queues */
	listen->unseen = server->options.kind.rdm ||
			 FI_MAJOR(fi_version()) >= 2;
	if (listen->sockets)
		mrrc_sockets_impatient((struct sockaddr *) &listen->at);
	return 0;
}

void listen_close(struct server *server)
{
	if (server->listen.spare > 0)
		close(server->listen.spare);
}

/* Stops the event queue from waking the loop, or lets it wake the loop. */
static void mute(struct server *server, bool muted)
{
	struct epoll_event event = {
		.events = muted ? 0 : EPOLLIN,
		.data.fd = server->listen.eq_fd,
	};

	epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->listen.eq_fd, &event);
}

static void tend_vain(struct server *server, uint64_t now)
{
	struct server_listen *listen = &server->listen;

	if (listen->muted && now >= listen->muted) {
		mute(server, false);
		listen->muted = 0;
		listen->vain = 0;
	} else if (!listen->muted && listen->vain >= VAIN_MAX) {
		mute(server, true);
		listen->muted = now + MUTE_MS;
		listen->sweep_at = now;
	}
}

static void sweep(struct server_listen *listen, uint64_t now)
{
	unsigned left;

	left = mrrc_sockets_end_silent((struct sockaddr *) &listen->at,
				       SILENT_MS, SILENT_MAX, listen->spare);
	dup3(STDIN_FILENO, listen->spare, O_CLOEXEC);
	listen->sweep_at = left		  ? now + SWEEP_MS :
			   listen->unseen ? now + UNSEEN_MS :
					    0;
}

void listen_tend(struct server *server, bool any)
{
	struct server_listen *listen = &server->listen;
	const bool vain = listen->woken && !any;
	uint64_t now;

	listen->woken = false;
	listen->vain = vain ? listen->vain + 1 : any ? 0 : listen->vain;
	if (!listen->sockets ||
	    (!vain && !listen->unseen && !listen->sweep_at && !listen->muted))
		return;
	now = server_now();
	if (!listen->sweep_at)
		listen->sweep_at = now + SWEEP_MS;
	tend_vain(server, now);
	if (now >= listen->sweep_at)
		sweep(listen, now);
}
