/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This library is loaded by LD_PRELOAD into the programs that scripts/wire.py
 * tests. Connections to 127.0.0.1 go to the proxy at port WIRE_PROXY, which
 * learns the intended port from its own address. A signal that ends the process
 * prints the stack, unless AddressSanitizer does.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAMES 24

extern void __asan_init(void) __attribute__((weak));

__attribute__((visibility("default"))) int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	const char *proxy = getenv("WIRE_PROXY");
	struct sockaddr_in to;

	if (proxy && addr->sa_family == AF_INET && len >= sizeof(to)) {
		memcpy(&to, addr, sizeof(to));
		if (to.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
			/* 127.HIGH.LOW.1 */
			to.sin_addr.s_addr = htonl(INADDR_LOOPBACK |
						   ntohs(to.sin_port) << 8);
			to.sin_port = htons((uint16_t) atoi(proxy));
			return (int) syscall(SYS_connect, fd, &to, sizeof(to));
		}
	}
	return (int) syscall(SYS_connect, fd, addr, len);
}

static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

/*
 * Keeps fatal signals unblocked: threads of the provider block all signals, and
 * would print no stack.
 */
__attribute__((visibility("default"))) int
pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t less;
	size_t i;

	if (set && how != SIG_UNBLOCK) {
		less = *set;
		for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
			sigdelset(&less, fatal[i]);
		set = &less;
	}
	return syscall(SYS_rt_sigprocmask, how, set, old, _NSIG / 8) ? errno :
								       0;
}

static void died(int sig)
{
	char text[] = "\nWIRE: signal 00\n";
	const int out = dup(STDERR_FILENO);
	void *frame[FRAMES];

	/* no message of another thread comes between the following lines */
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	text[sizeof(text) - 4] += sig / 10;
	text[sizeof(text) - 3] += sig % 10;
	if (write(out, text, sizeof(text) - 1) > 0)
		backtrace_symbols_fd(frame, backtrace(frame, FRAMES), out);
	raise(sig);
}

__attribute__((constructor)) static void at_death(void)
{
	struct sigaction action = {
		.sa_handler = died,
		.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER,
	};
	static char alt[64 << 10];
	const stack_t stack = { .ss_sp = alt, .ss_size = sizeof(alt) };
	void *frame[1];
	size_t i;

	if (__asan_init)
		return;
	backtrace(frame, 1); /* loads libraries that backtrace() needs */
	sigaltstack(&stack, NULL);
	for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &action, NULL);
}
