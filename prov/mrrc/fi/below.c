/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Differences between core providers, by name (below.h). */
#include "config.h"
#include "fi/below.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define ALONE ""

#define RXM_BUFFER 16384u /* default size of ofi_rxm's buffers */
/* ofi_rxm refuses buffers smaller than about this size */
#define RXM_LEAST 64u

/* A core provider, the utility providers over it, and their properties. */
static const struct below_row {
	const char *core, *over; /* NULL: any, or none */
	unsigned has;
} below_rows[] = {
	{ "verbs", NULL, MRRC_BELOW_CACHES | MRRC_BELOW_DEREG_SLOW },
	{ "verbs", ALONE, MRRC_BELOW_RX_ALWAYS | MRRC_BELOW_DEREG_SAFE },
	/*
	 * if a header claims an impossibly short length, the message has the
	 * length of an earlier one
	 */
	{ "tcp", NULL,
	  MRRC_BELOW_SOCKETS | MRRC_BELOW_BY_ADDRESS | MRRC_BELOW_LEN_CLAIMED },
	{ "net", NULL, MRRC_BELOW_BY_ADDRESS | MRRC_BELOW_LEN_CLAIMED },
	{ "udp", NULL, MRRC_BELOW_BY_ADDRESS },
	{ "sockets", NULL, MRRC_BELOW_BY_ADDRESS },
	{ NULL, "ofi_rxm", MRRC_BELOW_PEERS_READ | MRRC_BELOW_RECVV_TWICE },
};

unsigned mrrc_below(const char *name)
{
	const size_t len = strcspn(name, ";");
	const char *const over = name[len] ? name + len + 1 : ALONE;
	unsigned has = *over ? MRRC_BELOW_LAYERED : 0;
	const struct below_row *row;
	size_t i;

	for (i = 0; i < sizeof(below_rows) / sizeof(*below_rows); i++) {
		row = &below_rows[i];
		if (row->core && (strlen(row->core) != len ||
				  strncasecmp(name, row->core, len)))
			continue;
		if (!row->over || !strcasecmp(over, row->over))
			has |= row->has;
	}
	return has;
}

/* As rxm_ep_init_proto() of ofi_rxm, 1.17 to 2.7 */
size_t mrrc_below_copied(size_t buffer, size_t segmented)
{
	if (buffer == SIZE_MAX)
		buffer = RXM_BUFFER;
	if (buffer < RXM_LEAST || buffer > INT32_MAX)
		return 0;
	/* a segment is shorter than 64 KiB */
	if (buffer > UINT16_MAX || segmented < buffer)
		return buffer;
	return segmented == SIZE_MAX ? 8 * buffer : segmented;
}

char *mrrc_below_connected(const char *name)
{
	/* net has its own connected endpoints; tcp is the older provider */
	if (!strcasecmp(name, "net"))
		return strdup("tcp");
	return strndup(name, strcspn(name, ";"));
}
