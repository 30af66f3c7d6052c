/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes the server's lines to standard output and standard error. Once the log
 * is open, a thread writes the lines, as writing blocks if no process reads
 * them. Any thread may log.
 */
#ifndef SERVE_LOG_H
#define SERVE_LOG_H

/*
 * Starts the log's thread; until then, each call writes its line at once.
 * Returns 0, or a negative errno.
 */
int log_open(void);
/* Waits until all lines are written, or a second has passed. */
void log_close(void);

/* Prints a line on standard output, or on standard error. */
void server_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void server_complain(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

#endif /* SERVE_LOG_H */
