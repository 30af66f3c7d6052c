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

/* Write-protect mode, with nothing protected. */
int mrrc_uffd_register(int fd, uintptr_t start, size_t len);

/*
 * Is the range, which is registered, a single mapping of private memory without
 * a file? Asks the kernel to continue a minor fault there: it does so only in
 * page caches, and returns a different error for other memory. Also false if
 * the kernel cannot tell. Not for a part of a huge page, for which the kernel
 * returns the same error.
 */
bool mrrc_uffd_anonymous(int fd, uintptr_t start, size_t len);

/*
 * May mrrc_uffd_anonymous() be called? @features: of UFFDIO_API. Since Linux 6.8
 * the call gives a mapping that was never written to an anon_vma of its own,
 * with which it is never merged with its neighbours again, and the number of
 * mappings is limited.
 */
bool mrrc_uffd_tells(int fd, uint64_t features);

#define MRRC_UFFD_STACK ((size_t) 256 << 10) /* of our threads */

/*
 * Two threads unmap, and one event is read: memory must still be busy.
 * -ENOTSUP: the probe reports quiet, as in kernels before 5.15. -ETIMEDOUT: try
 * again, as another thread may have mapped memory where the test waits for a
 * hole.
 */
int mrrc_uffd_test(int fd);

/*
 * A userfaultfd of user space's faults alone, by the system call or else by
 * /dev/userfaultfd; or the system call's -E*.
 */
int mrrc_uffd_new(void);

#endif /* MRRC_UFFD_H */
