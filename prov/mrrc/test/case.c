/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of tests that add themselves (case.h).
 */
#include "config.h"
#include "case.h"

/* Before main(). */
void case_add(struct test_case *tcase, struct case_test *test)
{
	if (tcase->last)
		tcase->last->next = test;
	else
		tcase->first = test;
	tcase->last = test;
}

Suite *case_suite(const struct test_case *tcase)
{
	Suite *suite = suite_create(tcase->name);
	TCase *all = tcase_create(tcase->name);
	const struct case_test *test;

	tcase_set_timeout(all, 0); /* the clock ends no test */
	tcase_add_checked_fixture(all, tcase->setup, tcase->teardown);
	for (test = tcase->first; test; test = test->next)
		tcase_add_loop_test(all, test->test, test->start, test->end);
	suite_add_tcase(suite, all);
	return suite;
}
