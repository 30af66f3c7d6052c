/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * userfaultfd calls without the monitor's state: the probe, registration, and
 * the self-test that tells whether this kernel's probe can be trusted.
 *
 * Stateless; any thread, no lock needed.
 */
#ifndef MRRC_UFFD_H
#define MRRC_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 quiet, -EAGAIN busy; any other result means that it cannot be trusted. */
int mrrc_uffd_probe(int fd);

/* Write-protect mode, with nothing protected. */
int mrrc_uffd_register(int fd, uintptr_t start, size_t len);

/*
 * Is the range, which is registered, one mapping of private memory without a
 * file? In page caches the kernel continues minor faults, elsewhere it answers
 * that there are none. false also where the kernel cannot tell. Not for a part
 * of a huge page, for which the answer is the same.
 */
bool mrrc_uffd_anonymous(int fd, uintptr_t start, size_t len);

/*
 * May that be asked? @features: of UFFDIO_API. From Linux 6.8 on it gives a
 * mapping that was never written to an anon_vma of its own, which keeps it apart
 * from its neighbours for good, and a process can have only so many mappings.
 */
bool mrrc_uffd_tells(int fd, uint64_t features);

#define MRRC_UFFD_STACK ((size_t) 256 << 10) /* of our threads */

/*
 * Two threads unmap, one event is read: memory must still be busy. Kernels
 * before 5.15 say it is quiet: -ENOTSUP. -ETIMEDOUT: try again, another
 * thread may have mapped just where the test waits for a hole.
 */
int mrrc_uffd_test(int fd);

#endif /* MRRC_UFFD_H */
