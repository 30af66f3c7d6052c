/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of monitors (mon_fixture.h). */
#include "config.h"
#include "test/sys/monitor/mon_fixture.h"
#include "test/suites.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "test/fakes/fault.h"
#include "sys/base/vm.h"

size_t mon_page;
struct mrrc_mon *mon;
struct mon_probe mon_probe;
uint64_t mon_token;

static struct mrrc_range note(struct mrrc_mon_sub *sub, uintptr_t start,
			      uintptr_t end)
{
	struct mon_probe *self = (struct mon_probe *) sub;
	const unsigned i = atomic_load(&self->count);

	if (i < MON_SEEN)
		self->got[i] = (struct mrrc_range){ start, end };
	atomic_store(&self->count, i + 1);
	return self->hull;
}

static struct mrrc_range keep(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct mon_probe *self = (struct mon_probe *) sub;

	return self->keep.end > pos ? self->keep : (struct mrrc_range){ 0 };
}

void mon_probe_init(struct mon_probe *probe)
{
	*probe = (struct mon_probe){
		.sub = { .lock = &probe->lock, .notify = note, .cover = keep },
	};
	mrrc_lock_init(&probe->lock, MRRC_RANK_CACHE);
}

void mon_setup(void)
{
	mon_page = mrrc_vm_page();
	mon = NULL;
	if (mrrc_mon_open("uffd", NULL, &mon))
		return;
	/* Huge pages would be watched as a whole: see test_huge.c. */
	mon->huge.size = 0;
	mon_probe_init(&mon_probe);
	mrrc_mon_subscribe(mon, &mon_probe.sub);
}

void mon_teardown(void)
{
	if (!mon)
		return;
	mrrc_mon_unsubscribe(mon, &mon_probe.sub);
	mrrc_mon_close(mon);
	mon = NULL;
}

char *mon_map(size_t pages)
{
	char *ptr = mmap(NULL, pages * mon_page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	memset(ptr, 1, pages * mon_page);
	return ptr;
}

static char *map_segment(size_t len)
{
	const int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	char *ptr;

	if (id < 0)
		return NULL;
	ptr = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	return ptr;
}

static int open_file(enum mon_kind kind, size_t len)
{
	char path[] = "/var/tmp/mrrc_XXXXXX";
	int fd;

	if (kind == MON_FILE || kind == MON_FILE_PRIVATE) {
		fd = mkstemp(path);
		unlink(path);
	} else {
		fd = memfd_create("mrrc", MFD_CLOEXEC);
	}
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t) len), 0);
	return fd;
}

char *mon_map_kind(enum mon_kind kind, size_t pages)
{
	const bool private = kind == MON_MEMORY_FILE_PRIVATE ||
			     kind == MON_FILE_PRIVATE;
	const size_t len = pages * mrrc_vm_page();
	char *ptr;
	int fd;

	if (kind == MON_SEGMENT)
		return map_segment(len);
	/* Anonymous shared memory is a file in memory, too. */
	fd = kind == MON_SHARED ? -1 : open_file(kind, len);
	ptr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   (private ? MAP_PRIVATE : MAP_SHARED) |
			   (fd < 0 ? MAP_ANONYMOUS : 0),
		   fd, 0);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	close(fd);
	return ptr;
}

int mon_watch(void *ptr, size_t pages)
{
	return mrrc_mon_watch(mon, (uintptr_t) ptr, pages * mon_page,
			      &mon_token);
}

/* When a call that causes events returns, they are read, but not handled. */
unsigned mon_events(void)
{
	mrrc_mon_drain(mon);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
	return atomic_load(&mon_probe.count);
}

bool mon_told(void *ptr, size_t pages)
{
	unsigned count = mon_events();
	unsigned i;

	for (i = 0; i < count && i < MON_SEEN; i++) {
		if (mon_probe.got[i].start == (uintptr_t) ptr &&
		    mon_probe.got[i].end == (uintptr_t) ptr + pages * mon_page)
			return true;
	}
	return false;
}

void *mon_churn(void *arg)
{
	atomic_bool *stop = arg;
	char *ptr;

	while (!atomic_load(stop)) {
		ptr = mon_map(2);
		mon_watch(ptr, 1);
		munmap(ptr, 2 * mon_page);
		free(malloc(300 * 1024)); /* allocates a mapping of its own */
	}
	return NULL;
}

void mon_reopen(bool hook)
{
	const unsigned fds = fault_fds();
	atomic_bool stop = false;
	struct mrrc_mon *again;
	pthread_t thread;
	int i;

	ck_assert_int_eq(pthread_create(&thread, NULL, mon_churn, &stop), 0);
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(
			mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL, &again), 0);
		ck_assert(!hook || !mrrc_mon_hook(again, NULL));
		mrrc_mon_close(again);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert(comes(fault_fds() == fds));
}

bool mon_even(void)
{
	return !(mrrc_mon_seq(mon) & 1);
}

static pthread_t holder;
static sem_t holds, lets_go;

static void *hold_main(void *arg)
{
	mrrc_lock_acquire(arg);
	sem_post(&holds);
	while (sem_wait(&lets_go))
		;
	mrrc_lock_release(arg);
	return NULL;
}

void mon_hold(struct mrrc_lock *lock)
{
	sem_init(&holds, 0, 0);
	sem_init(&lets_go, 0, 0);
	ck_assert_int_eq(pthread_create(&holder, NULL, hold_main, lock), 0);
	while (sem_wait(&holds))
		;
}

void mon_let_go(void)
{
	sem_post(&lets_go);
}

void mon_hold_end(void)
{
	mon_let_go();
	pthread_join(holder, NULL);
}
