/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/prove: a thread leaves a hook by a jump; hooks go with the pages of libc's
 * code, or are overwritten.
 */
#include "config.h"
#include "prove_fixture.h"
#include "suites.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/mappings.h"
#include "sys/mon.h"
#include "sys/trust.h"

#define JUMPS 200
#define PAGES 1024 /* of which the rights are changed at a time */

static sigjmp_buf away;
static atomic_bool jumps, sends;

static void on_signal(int sig)
{
	if (atomic_load(&jumps))
		siglongjmp(away, 1);
}

static void *sender_main(void *arg)
{
	const pthread_t *to = arg;

	while (atomic_load(&sends)) {
		pthread_kill(*to, SIGUSR1);
		usleep(100);
	}
	return NULL;
}

static void change(char *ptr, int rights)
{
	if (mprotect(ptr, PAGES * page, PROT_READ | rights))
		_exit(1);
}

/* Handlers jump out of hooked calls: trust is not lost with them. */
START_TEST(test_jump)
{
	const struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread, self = pthread_self();
	volatile unsigned count = 0;
	char *ptr = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	atomic_store(&sends, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, sender_main, &self), 0);
	if (sigsetjmp(away, 1))
		count++;
	atomic_store(&jumps, count < JUMPS);
	while (count < JUMPS) {
		change(ptr, PROT_EXEC);
		change(ptr, PROT_WRITE);
	}
	atomic_store(&sends, false);
	pthread_join(thread, NULL);
	munmap(ptr, PAGES * page);
	ck_assert_msg(trusted(true), "%s", why);
}
END_TEST

/* ---- libc's file ---- */

struct text {
	uintptr_t in;
	size_t differs; /* bytes */
};

/* The executable mapping of an address, and the file that it is of. */
static bool compare(void *arg, const struct mrrc_mapping *mapping)
{
	struct text *text = arg;
	const uint8_t *live = (const uint8_t *) mapping->start;
	size_t i, len = mapping->end - mapping->start;
	uint8_t *file;
	int fd;

	if (!mapping->execute || text->in < mapping->start ||
	    text->in >= mapping->end)
		return true;
	fd = open(mapping->name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	file = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, mapping->offset);
	close(fd);
	ck_assert_ptr_ne(file, MAP_FAILED);
	for (i = 0; i < len; i++)
		text->differs += live[i] != file[i];
	munmap(file, len);
	return false;
}

/* Of libc and the dynamic loader. */
static size_t differs(void)
{
	struct text libc = { .in = (uintptr_t) dlsym(RTLD_DEFAULT, "shmdt") };
	struct text loader = { .in = _r_debug.r_brk };

	ck_assert(libc.in && loader.in);
	mrrc_mappings_each(compare, &libc);
	mrrc_mappings_each(compare, &loader);
	return libc.differs + loader.differs;
}

/*
 * As a domain that closes, while another user keeps the monitor: the code is that
 * of its files, and hooks can come again.
 */
START_TEST(test_unhook)
{
	struct mrrc_mon *other;

	ck_assert_uint_gt(differs(), 0);
	ck_assert_int_eq(mrrc_mon_open(NULL, NULL, &other), 0);
	ck_assert_ptr_eq(other, mon);
	ck_assert_int_eq(mrrc_mon_hook(other, NULL), 0);
	mrrc_mon_unhook(mon);
	ck_assert_msg(trusted(true), "%s", why);
	mrrc_mon_unhook(mon);
	ck_assert(!mrrc_trusted());
	ck_assert_uint_eq(differs(), 0);
	ck_assert(mrrc_mon_works(mon));
	ck_assert_int_eq(mrrc_mon_hook(mon, NULL), 0);
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert_uint_gt(differs(), 0);
	mrrc_mon_close(mon);
	ck_assert_uint_gt(differs(), 0);
	mrrc_mon_close(mon);
	ck_assert_uint_eq(differs(), 0);
}
END_TEST

TCase *prove_lost_tcase(void)
{
	TCase *tcase = tcase_create("lost");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_jump);
	tcase_add_test(tcase, test_unhook);
	return tcase;
}
