/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The server's lines on standard output and standard error. Once the log is
 * open, a thread writes them, as writing blocks if no process reads them. Any
 * thread.
 */
#ifndef SERVE_LOG_H
#define SERVE_LOG_H

/*
 * Starts the thread. 0, or a negative errno. Until then lines are written at
 * once.
 */
int log_open(void);
/* Waits until all lines are written, at most a second. */
void log_close(void);

/* Prints a line on standard output, or on standard error. */
void server_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void server_complain(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

#endif /* SERVE_LOG_H */
