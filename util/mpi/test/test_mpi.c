/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests libmrrc_mpi.so between a fake MPI library and a fake provider: which of
 * the two serves a call.
 */
#include "config.h"
#include "test/case.h"

#include <dlfcn.h>
#include <stdint.h>

#include <rdma/fi_errno.h>

#include "fi/alloc/process.h"

#define MPI_ANSWER   7 /* of the fake MPI */
#define MPI_MEMORY   ((void *) 0x1000)
#define OUR_MEMORY   ((void *) 0x2000)
#define MPICH_NULL   ((void *) (uintptr_t) 0x1c000000)
#define MPICH_JUNK   ((void *) (uintptr_t) 0xabcdef011c000000)
#define ABI_NULL     ((void *) (uintptr_t) 0x130)
#define MPICH_INFO   ((void *) (uintptr_t) 0x9c000001)
#define LOADED_LATER ((void *) 1)

int MPI_Alloc_mem(intptr_t size, void *info, void *base);
int MPI_Free_mem(void *base);

static struct {
	char info_null; /* of Open MPI */
	bool hidden;	/* MPI is not behind the library */
	intptr_t size;
	void *info, *freed;
	unsigned allocs, frees;
} mpi;

static struct {
	int alloc, release; /* what it returns */
	size_t len;
	void *freed;
} mrrc;

static int mpi_alloc(intptr_t size, void *info, void *base)
{
	mpi.allocs++;
	mpi.size = size;
	mpi.info = info;
	*(void **) base = MPI_MEMORY;
	return MPI_ANSWER;
}

static int mpi_free(void *base)
{
	mpi.frees++;
	mpi.freed = base;
	return MPI_ANSWER;
}

static int mrrc_alloc(size_t len, void **buf)
{
	mrrc.len = len;
	if (!mrrc.alloc)
		*buf = OUR_MEMORY;
	return mrrc.alloc;
}

static int mrrc_release(void *buf)
{
	mrrc.freed = buf;
	return mrrc.release;
}

void *__wrap_dlsym(void *lib, const char *name);
void *__wrap_dlopen(const char *name, int flags);
int __wrap_dlclose(void *lib);

void *__wrap_dlsym(void *lib, const char *name)
{
	if (!strcmp(name, "ompi_mpi_info_null"))
		return lib == RTLD_DEFAULT ? &mpi.info_null : NULL;
	if (lib != (mpi.hidden ? LOADED_LATER : RTLD_NEXT))
		return NULL;
	if (!strcmp(name, "PMPI_Alloc_mem"))
		return mpi_alloc;
	return strcmp(name, "PMPI_Free_mem") ? NULL : mpi_free;
}

void *__wrap_dlopen(const char *name, int flags)
{
	return flags & RTLD_NOLOAD ? LOADED_LATER : NULL;
}

int __wrap_dlclose(void *lib)
{
	return 0;
}

static const struct mrrc_process_alloc calls = {
	.size = sizeof(struct mrrc_process_alloc),
	.alloc = mrrc_alloc,
	.release = mrrc_release,
};

static void *by_mpi(intptr_t size, void *info)
{
	const unsigned before = mpi.allocs;
	void *buf = NULL;

	ck_assert_int_eq(MPI_Alloc_mem(size, info, &buf), MPI_ANSWER);
	ck_assert_uint_eq(mpi.allocs, before + 1);
	ck_assert_int_eq(mpi.size, size);
	ck_assert_ptr_eq(mpi.info, info);
	ck_assert_ptr_eq(buf, MPI_MEMORY);
	return buf;
}

static void by_us(intptr_t size, void *info)
{
	const unsigned before = mpi.allocs;
	void *buf = NULL;

	ck_assert_int_eq(MPI_Alloc_mem(size, info, &buf), 0);
	ck_assert_uint_eq(mpi.allocs, before);
	ck_assert_uint_eq(mrrc.len, (size_t) size);
	ck_assert_ptr_eq(buf, OUR_MEMORY);
}

static void freed_by_mpi(void *buf)
{
	const unsigned before = mpi.frees;

	ck_assert_int_eq(MPI_Free_mem(buf), MPI_ANSWER);
	ck_assert_uint_eq(mpi.frees, before + 1);
	ck_assert_ptr_eq(mpi.freed, buf);
}

static void setup(void)
{
	memset(&mpi, 0, sizeof(mpi));
	memset(&mrrc, 0, sizeof(mrrc));
}

TEST_CASE(mpi_mem, setup, NULL);

/* First of all: from here on there is a provider. */
TEST(mpi_mem_without_a_provider)
{
	freed_by_mpi(by_mpi(100, &mpi.info_null));
	mrrc_process_alloc_ready(&calls);
	by_us(100, &mpi.info_null);
	/* another libfabric's provider */
	mrrc_process_alloc_ready(&(const struct mrrc_process_alloc){ 0 });
	by_us(100, &mpi.info_null);
}

TEST(mpi_mem_infos)
{
	by_us(100, ABI_NULL);
	by_us(100, MPICH_NULL);
	/* an int leaves the upper half of its register as it is */
	by_us(100, MPICH_JUNK);
	by_mpi(100, MPICH_INFO);
	by_mpi(100, &mpi.hidden);
}

TEST(mpi_mem_sizes)
{
	by_mpi(0, MPICH_NULL);
	by_mpi(-1, MPICH_NULL);
	by_us(1, MPICH_NULL);
	mrrc.alloc = -FI_ENOMEM;
	by_mpi(1, MPICH_NULL);
}

TEST(mpi_mem_frees)
{
	ck_assert_int_eq(MPI_Free_mem(OUR_MEMORY), 0);
	ck_assert_ptr_eq(mrrc.freed, OUR_MEMORY);
	ck_assert_uint_eq(mpi.frees, 0);
	mrrc.release = -FI_ENOENT;
	freed_by_mpi(MPI_MEMORY);
	freed_by_mpi(NULL);
}

/* Python loads it so. */
TEST(mpi_mem_loaded_later)
{
	mpi.hidden = true;
	by_mpi(0, MPICH_NULL);
	mrrc.release = -FI_ENOENT;
	freed_by_mpi(MPI_MEMORY);
}

/* MPI's free() must not see memory of ours. */
TEST(mpi_mem_mistakes)
{
	static const int mistakes[] = { -FI_EALREADY, -FI_EINVAL };
	unsigned i;
	int status;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		mrrc.release = mistakes[i];
		fflush(NULL);
		pid = fork();
		if (!pid) {
			close(STDERR_FILENO);
			signal(SIGABRT, SIG_DFL);
			_exit(MPI_Free_mem(OUR_MEMORY));
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}
