/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes about connection requests, by handle. A request is noted when its event
 * is read, until an endpoint is opened with the handle or the request is
 * rejected. If neither happens, the request stays noted until the fabric
 * closes, as the core keeps the handle.
 *
 * Threading: any; the fabric's track_lock guards the list.
 */
#include "config.h"
#include "fi/obj/request.h"

struct mrrc_request {
	struct mrrc_request *next;
	const struct fid *handle;
};

bool mrrc_request_take(struct mrrc_fabric *fabric, const struct fid *handle)
{
	struct mrrc_request **pos, *request;

	mrrc_mutex_lock(&fabric->track_lock);
	for (pos = &fabric->requests; *pos; pos = &(*pos)->next) {
		if ((*pos)->handle == handle)
			break;
	}
	request = *pos;
	if (request)
		*pos = request->next;
	mrrc_mutex_unlock(&fabric->track_lock);
	free(request);
	return request != NULL;
}

/* Replaces a note: the address is used again, or the event was peeked at. */
void mrrc_request_note(struct mrrc_fabric *fabric, const struct fid *handle,
		       bool noted)
{
	struct mrrc_request *request;

	mrrc_request_take(fabric, handle);
	if (!noted)
		return;
	request = malloc(sizeof(*request));
	if (!request)
		return; /* no memory: as if nothing had been noted */
	request->handle = handle;
	mrrc_mutex_lock(&fabric->track_lock);
	request->next = fabric->requests;
	fabric->requests = request;
	mrrc_mutex_unlock(&fabric->track_lock);
}

void mrrc_requests_free(struct mrrc_fabric *fabric)
{
	struct mrrc_request *request;

	while ((request = fabric->requests)) {
		fabric->requests = request->next;
		free(request);
	}
}
