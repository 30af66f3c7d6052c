/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libmrrc_mpi.so, preloaded (LD_PRELOAD) into an MPI program, takes the memory
 * of MPI_Alloc_mem from fi_mr_alloc(3), on a domain that the MPI library opened
 * with ofi_mrrc. The MPI library serves all other requests: requests before a
 * domain is open and after the domain is closed, requests with an info or of 0
 * bytes, and requests that fi_mr_alloc refuses.
 *
 * libmrrc_mpi.so includes no header of MPI: MPI_Alloc_mem has its arguments in
 * the same registers where an info is a pointer, as in Open MPI, and where an
 * info is an int, as in MPICH. libmrrc_mpi.so also replaces PMPI_Alloc_mem,
 * which Fortran's calls use in Open MPI.
 *
 * Any thread may call these functions.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "fi/alloc/process.h"

#define SHOWN __attribute__((visibility("default")))
/* MPI's name is another name of the function after it */
#define ALSO(name) SHOWN __attribute__((alias(name)))

/* MPI_INFO_NULL of MPICH, an int, and of the standard ABI of MPI 5 */
#define MPICH_INFO_NULL 0x1c000000u
#define ABI_INFO_NULL	((void *) 0x130)
#define MPI_FAILED	16 /* MPI_ERR_OTHER of Open MPI; an error in MPICH, too */

SHOWN int PMPI_Alloc_mem(intptr_t size, void *info, void *base);
SHOWN int PMPI_Free_mem(void *base);
ALSO("PMPI_Alloc_mem")
int MPI_Alloc_mem(intptr_t size, void *info, void *base);
ALSO("PMPI_Free_mem") int MPI_Free_mem(void *base);

/* the provider's calls; NULL: the provider is not loaded */
static const struct mrrc_process_alloc *_Atomic calls;

/*
 * A process may have two libfabrics, each with a provider: the provider that is
 * ready first serves all calls of MPI_Alloc_mem.
 */
void mrrc_process_alloc_ready(const struct mrrc_process_alloc *ready)
{
	if (!atomic_load(&calls))
		atomic_store(&calls, ready);
}

/*
 * Finds MPI's own function. In a program that loaded MPI by dlopen(), RTLD_NEXT
 * does not find the function, but the caller's library does.
 */
static void *real(const char *name, const void *caller)
{
	void *function = dlsym(RTLD_NEXT, name), *lib;
	Dl_info info;

	if (function || !dladdr(caller, &info))
		return function;
	lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (lib) {
		function = dlsym(lib, name);
		dlclose(lib);
	}
	return function;
}

/*
 * Is the info MPI_INFO_NULL? Open MPI's MPI_INFO_NULL is an object; finding the
 * object takes longer than an allocation, so the object's address is kept.
 */
static bool info_null(const void *info)
{
	static const void *_Atomic object;

	if (info == ABI_INFO_NULL ||
	    (uint32_t) (uintptr_t) info == MPICH_INFO_NULL)
		return true;
	if (!atomic_load(&object))
		atomic_store(&object,
			     dlsym(RTLD_DEFAULT, "ompi_mpi_info_null"));
	return info && info == atomic_load(&object);
}

int PMPI_Alloc_mem(intptr_t size, void *info, void *base)
{
	const struct mrrc_process_alloc *mrrc = atomic_load(&calls);
	int (*mpi)(intptr_t, void *, void *);

	if (mrrc && size > 0 && info_null(info) &&
	    !mrrc->alloc((size_t) size, base))
		return 0;
	*(void **) &mpi = real("PMPI_Alloc_mem", __builtin_return_address(0));
	return mpi ? mpi(size, info, base) : MPI_FAILED;
}

int PMPI_Free_mem(void *base)
{
	const struct mrrc_process_alloc *mrrc = atomic_load(&calls);
	int ret = mrrc ? mrrc->release(base) : -FI_ENOENT;
	int (*mpi)(void *);

	if (!ret)
		return 0;
	if (ret != -FI_ENOENT) {
		/*
		 * abort, as free() does for an invalid pointer: MPI's own heap
		 * does not know this memory
		 */
		fprintf(stderr, "MPI_Free_mem(): invalid pointer %p\n", base);
		abort();
	}
	*(void **) &mpi = real("PMPI_Free_mem", __builtin_return_address(0));
	return mpi ? mpi(base) : MPI_FAILED;
}
