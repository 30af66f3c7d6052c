/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether the application has several threads (threads.h).
 *
 * __nptl_nthreads is the variable that glibc's thread debugging library reads.
 * pthread_create raises __nptl_nthreads before the new thread exists, and a
 * thread that ends lowers it.
 */
#include "config.h"
#include "sys/base/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>

/* glibc's default stack takes 8 MiB of addresses, which a program may lack */
#define THREAD_STACK	 ((size_t) 1 << 20)
#define THREAD_STACK_MAX ((size_t) 256 << 20)

struct mrrc_threads mrrc_threads = { .many = true };

/* The kernel's count of threads; 0 if it is not available. */
static unsigned threads_kernel(void)
{
	struct stat stat_;

	/* While there is one thread, no other thread can change the count. */
	return !stat("/proc/self/task", &stat_) && stat_.st_nlink > 2 ?
		       stat_.st_nlink - 2 :
		       0;
}

void mrrc_threads_look(void)
{
	if (!atomic_load(&mrrc_threads.many) &&
	    threads_kernel() > 1 + atomic_load(&mrrc_threads.ours))
		atomic_store(&mrrc_threads.many, true);
}

/*
 * Runs in the only thread of a forked child, which has none of the provider's
 * threads.
 */
static void threads_fork_child(void)
{
	atomic_store(&mrrc_threads.ours, 0);
	atomic_store(&mrrc_threads.outside, 0);
}

/*
 * defined by ThreadSanitizer's runtime; not looked up by dlsym(3), as a
 * dlsym(3) that fails keeps memory
 */
extern void __tsan_init(void) __attribute__((weak));

bool mrrc_threads_sanitized(void)
{
	return __tsan_init;
}

static void threads_find(void)
{
	/* without fork handlers, assume many threads */
	if (pthread_atfork(NULL, NULL, threads_fork_child))
		return;
#ifdef __GLIBC__
	if (!mrrc_threads_sanitized())
		mrrc_threads.live = dlvsym(RTLD_DEFAULT, "__nptl_nthreads",
					   "GLIBC_PRIVATE");
#endif
	/* With one thread, no other thread can change either count. */
	if (mrrc_threads.live && *mrrc_threads.live == 1 &&
	    threads_kernel() == 1)
		atomic_store(&mrrc_threads.many, false);
}

void mrrc_threads_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, threads_find);
}

void mrrc_thread_signals(sigset_t *set)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGILL,
				      SIGFPE,  SIGTRAP, SIGSYS };
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(set, faults[i]);
}

/*
 * Starts a thread with signals blocked: signals are for the application's
 * threads.
 */
static int thread_create(pthread_t *thread, size_t stack, void *(*run)(void *),
			 void *arg)
{
	pthread_attr_t attr;
	sigset_t all;
	sigset_t old;
	int ret;

	ret = pthread_attr_init(&attr);
	if (ret)
		return ret;
	mrrc_thread_signals(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!stack)
		stack = THREAD_STACK;
	/* thread-local variables of the program are on the stack, too */
	do {
		pthread_attr_setstacksize(&attr, stack);
		ret = pthread_create(thread, &attr, run, arg);
		stack *= 2;
	} while (ret == EINVAL && stack <= THREAD_STACK_MAX);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return ret;
}

int mrrc_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *),
		      void *arg)
{
	int ret;

	mrrc_threads_init();
	atomic_fetch_add(&mrrc_threads.ours, 1);
	ret = thread_create(thread, stack, run, arg);
	if (ret)
		atomic_fetch_sub(&mrrc_threads.ours, 1);
	return -ret;
}

void mrrc_thread_over(void)
{
	atomic_fetch_sub(&mrrc_threads.ours, 1);
}

void mrrc_thread_join(pthread_t thread)
{
	pthread_join(thread, NULL);
	atomic_fetch_sub(&mrrc_threads.ours, 1);
}
