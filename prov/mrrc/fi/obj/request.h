/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection requests that the application has not answered yet. */
#ifndef MRRC_REQUEST_H
#define MRRC_REQUEST_H

#include "fi/mrrc_fi.h"

/*
 * mrrc_request_note() notes a connection request, if @noted;
 * mrrc_request_take() removes a note, and returns whether there was one.
 */
void mrrc_request_note(struct mrrc_fabric *fabric, const struct fid *handle,
		       bool noted);
bool mrrc_request_take(struct mrrc_fabric *fabric, const struct fid *handle);
void mrrc_requests_free(struct mrrc_fabric *fabric);

#endif /* MRRC_REQUEST_H */
