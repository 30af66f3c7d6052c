/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi/below: properties of core providers, found by their names. */

#include "fi/below.h"
#include "test/case.h"

#define ANY_VERBS (MRRC_BELOW_CACHES | MRRC_BELOW_DEREG_SLOW)
#define ANY_NET	  (MRRC_BELOW_BY_ADDRESS | MRRC_BELOW_LEN_CLAIMED)
#define ANY_TCP	  (MRRC_BELOW_SOCKETS | ANY_NET)
#define ANY_RXM \
	(MRRC_BELOW_LAYERED | MRRC_BELOW_PEERS_READ | MRRC_BELOW_RECVV_TWICE)

static const struct {
	const char *name, *connected;
	unsigned has;
} providers[] = {
	{ "verbs", "verbs",
	  ANY_VERBS | MRRC_BELOW_RX_ALWAYS | MRRC_BELOW_DEREG_SAFE },
	{ "VERBS;OFI_RXM", "VERBS", ANY_VERBS | ANY_RXM },
	{ "verbs;ofi_rxd", "verbs", ANY_VERBS | MRRC_BELOW_LAYERED },
	{ "verbsy", "verbsy", 0 },
	{ "verb", "verb", 0 },
	{ "tcp", "tcp", ANY_TCP },
	{ "tcp;ofi_rxm", "tcp", ANY_TCP | ANY_RXM },
	{ "net", "tcp", ANY_NET },
	{ "net;ofi_rxm", "net", ANY_NET | ANY_RXM },
	{ "sockets", "sockets", MRRC_BELOW_BY_ADDRESS },
	{ "ofi_rxm", "ofi_rxm", 0 },
	{ "udp;ofi_rxd", "udp", MRRC_BELOW_BY_ADDRESS | MRRC_BELOW_LAYERED },
	{ "", "", 0 },
};

#define COUNT ((int) (sizeof(providers) / sizeof(providers[0])))

TEST_CASE(below, NULL, NULL);

LOOP_TEST(test_has, 0, COUNT)
{
	ck_assert_uint_eq(mrrc_below(providers[_i].name), providers[_i].has);
}

LOOP_TEST(test_connected, 0, COUNT)
{
	char *name = mrrc_below_connected(providers[_i].name);

	ck_assert_str_eq(name, providers[_i].connected);
	free(name);
}

static const struct {
	size_t buffer, segmented, copied;
} copies[] = {
	{ SIZE_MAX, SIZE_MAX, 131072 }, { SIZE_MAX, 40000, 40000 },
	{ SIZE_MAX, 1 << 20, 1 << 20 }, { SIZE_MAX, 100, 16384 },
	{ 4096, SIZE_MAX, 32768 },	{ 4096, 0, 4096 },
	{ 65535, SIZE_MAX, 524280 },	{ 65536, SIZE_MAX, 65536 },
	{ 70000, 150000, 70000 },	{ 10, SIZE_MAX, 0 },
	{ (size_t) 1 << 31, 5, 0 },
};

LOOP_TEST(test_copied, 0, (int) (sizeof(copies) / sizeof(copies[0])))
{
	ck_assert_uint_eq(mrrc_below_copied(copies[_i].buffer,
					    copies[_i].segmented),
			  copies[_i].copied);
}
