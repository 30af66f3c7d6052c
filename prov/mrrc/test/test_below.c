/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi/below: the properties of providers, by their names. */
#include <stdlib.h>

#include "fi/below.h"
#include "suites.h"

#define ANY_VERBS (MRRC_BELOW_CACHES | MRRC_BELOW_DEREG_SLOW)
#define ANY_TCP	  (MRRC_BELOW_SOCKETS | MRRC_BELOW_BY_ADDRESS)
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
	{ "net", "tcp", MRRC_BELOW_BY_ADDRESS },
	{ "net;ofi_rxm", "net", MRRC_BELOW_BY_ADDRESS | ANY_RXM },
	{ "sockets", "sockets", MRRC_BELOW_BY_ADDRESS },
	{ "ofi_rxm", "ofi_rxm", 0 },
	{ "udp;ofi_rxd", "udp", MRRC_BELOW_BY_ADDRESS | MRRC_BELOW_LAYERED },
	{ "", "", 0 },
};

START_TEST(test_has)
{
	ck_assert_uint_eq(mrrc_below(providers[_i].name), providers[_i].has);
}
END_TEST

START_TEST(test_connected)
{
	char *name = mrrc_below_connected(providers[_i].name);

	ck_assert_str_eq(name, providers[_i].connected);
	free(name);
}
END_TEST

int main(void)
{
	const int count = sizeof(providers) / sizeof(providers[0]);
	Suite *suite = suite_create("below");
	TCase *tcase = tcase_create("below");

	tcase_add_loop_test(tcase, test_has, 0, count);
	tcase_add_loop_test(tcase, test_connected, 0, count);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, CK_FORK_GETENV);
}
