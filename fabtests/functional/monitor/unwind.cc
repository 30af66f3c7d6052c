/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_unwind: a signal arrives while a thread is in a hooked function of
 * libc. A backtrace from the signal's handler shows who called the function, an
 * exception thrown by the handler is caught, and a thread that is cancelled in
 * the handler destroys its objects.
 */
#include <csignal>

#include <execinfo.h>
#include <pthread.h>
#include <sys/syscall.h>

extern "C" {
#include "ft_mrrc.h"
}

#define FRAMES 64

/* libc's own declaration says that syscall() throws nothing */
extern "C" long any_call(long number, ...) __asm__("syscall");

static void *caller;
static bool shown, destroyed;

struct object {
	~object()
	{
		destroyed = true;
	}
};

/* Sends a signal, which arrives within the call of syscall(). */
static __attribute__((noinline)) void signal_within(int sig)
{
	object here;

	caller = __builtin_return_address(0);
	any_call(SYS_tgkill, getpid(), gettid(), sig);
}

static void on_backtrace(int)
{
	void *frame[FRAMES];
	const int count = backtrace(frame, FRAMES);

	shown = false;
	for (int i = 0; i < count; i++)
		shown = shown || frame[i] == caller;
}

static void on_throw(int sig)
{
	throw sig;
}

static void on_cancel(int)
{
	pthread_cancel(pthread_self());
}

static void on(void (*handler)(int))
{
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = SA_NODEFER; /* some handlers never return */
	FT_CHECK(!sigaction(SIGUSR1, &action, NULL), "%s", strerror(errno));
}

static void *cancelled_main(void *)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	signal_within(SIGUSR1);
	return NULL;
}

static bool is_caught()
{
	try {
		signal_within(SIGUSR1);
	} catch (int sig) {
		return sig == SIGUSR1;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct ft_attr attr = {};
	struct ft_pair pair;
	pthread_t thread;
	void *result;

	attr.caps = FI_MSG | FI_RMA;
	attr.format = FI_CQ_FORMAT_DATA;
	attr.wait_obj = FI_WAIT_NONE;
	ft_init(argc, argv);
#ifndef __x86_64__
	ft_skip("hooks have no unwind information here");
#endif
	ft_pair_open(&pair, &attr);

	ft_stage("backtrace");
	backtrace(&caller, 1); /* loads libraries that backtrace() needs */
	on(on_backtrace);
	signal_within(SIGUSR1);
	FT_CHECK(shown, "the caller is not in the backtrace");

	ft_stage("exception");
	on(on_throw);
	destroyed = false;
	FT_CHECK(is_caught() && destroyed, "destroyed %d", destroyed);

	ft_stage("cancellation");
	on(on_cancel);
	destroyed = false;
	FT_CHECK(!pthread_create(&thread, NULL, cancelled_main, NULL),
		 "pthread_create");
	pthread_join(thread, &result);
	FT_CHECK(result == PTHREAD_CANCELED && destroyed,
		 "cancelled %d, destroyed %d", result == PTHREAD_CANCELED,
		 destroyed);
	ft_pair_close(&pair);
	return ft_done();
}
