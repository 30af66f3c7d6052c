/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the parts of test_serve. */
#ifndef TEST_SERVE_H
#define TEST_SERVE_H

#include "test/suites.h"

void add_admit(Suite *suite);
void add_wire(Suite *suite);
void add_files(Suite *suite);
void add_local(Suite *suite);
void add_fetch(Suite *suite);
void add_requests(Suite *suite);
void add_secret(Suite *suite);
void add_session(Suite *suite);

/* A directory with files, and one beside the served files; a fixture. */
extern int top, out;
void make_files(void);
void remove_files(void);

void write_file(int dir, const char *name, const char *text);

#endif /* TEST_SERVE_H */
