/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the parts of test_serve. */
#ifndef TEST_SERVE_H
#define TEST_SERVE_H

#include "test/case.h"

/* A directory with files, and one beside the served files; a fixture. */
extern int top, out;
extern unsigned fsyncs; /* calls of fsync(2) */
void make_files(void);
void remove_files(void);

void write_file(int dir, const char *name, const char *text);

#endif /* TEST_SERVE_H */
