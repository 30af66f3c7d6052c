/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * userfaultfd calls without the monitor's state: the probe, registration, and
 * the self-test of this kernel's probe.
 *
 * Stateless; any thread, no lock needed.
 */
#ifndef MRRC_UFFD_H
#define MRRC_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * 0: quiet, -EAGAIN: busy; with any other result the probe cannot be trusted.
 */
int mrrc_uffd_probe(int fd);

/* Registers a range in write-protect mode, and protects nothing. */
int mrrc_uffd_register(int fd, uintptr_t start, size_t len);
int mrrc_uffd_unregister(int fd, uintptr_t start, size_t len);

/*
 * Is the range, which is registered, a single mapping of private memory without
 * a file? Asks the kernel to continue a minor fault in the range, which is
 * possible only in page caches: the kernel's error tells private memory from
 * other memory. Also false if the kernel cannot tell. Not for a part of a huge
 * page, for which the kernel returns the same error as for private memory.
 */
bool mrrc_uffd_anonymous(int fd, uintptr_t start, size_t len);

/*
 * Feature of UFFDIO_API with which the kernel can answer mrrc_uffd_anonymous().
 */
#define MRRC_UFFD_TELLS (1 << 10) /* UFFD_FEATURE_MINOR_SHMEM */

/*
 * Was the page at @start written to? Asks the kernel for the page's NUMA node:
 * neither an absent page nor the kernel's page of zeros, which a read maps, has
 * a node.
 */
bool mrrc_uffd_written(uintptr_t start);

/* A userfaultfd for mrrc_uffd_prepare(), which reports nothing; or negative. */
int mrrc_uffd_spare(void);

/*
 * Prepares a range, so that the kernel merges the parts into which a watch
 * splits a mapping when the watch has ended. To be called before the range at
 * @start is watched, if the range's first page was never written to. The kernel
 * merges parts only if they share an anon_vma, or have none. A mapping gets its
 * anon_vma when a page of the mapping is first written to; parts share an
 * anon_vma that the mapping had before the split. So the range's first page is
 * made present. Writes only to private memory without a file, as writing to a
 * page of a file would change the file. No watch may begin or end during this
 * call.
 */
void mrrc_uffd_prepare(int fd, int spare, uintptr_t start);

#define MRRC_UFFD_STACK ((size_t) 256 << 10) /* of our threads */

/*
 * Tests the probe: two threads unmap, one event is read, and the probe must
 * still report that memory is busy. -ENOTSUP: the probe reports that memory is
 * quiet, as in kernels before 5.15. -ETIMEDOUT: the test has to be repeated, as
 * another thread may have mapped memory where the test waits for a hole.
 */
int mrrc_uffd_test(int fd);

/*
 * Opens a userfaultfd for user-space faults only, by the system call or, if
 * this fails, by /dev/userfaultfd. Returns the descriptor, or the system call's
 * -E*.
 */
int mrrc_uffd_new(void);

#endif /* MRRC_UFFD_H */
