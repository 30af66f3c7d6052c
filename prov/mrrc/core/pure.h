/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps core pure: every core file includes this file by force (-include), so
 * that a libfabric, verbs, thread or clock identifier does not compile.
 *
 * The system headers that declare some of the poisoned names come first:
 * poisoning after a declaration leaves the declaration valid and refuses any
 * use.
 */
#ifndef MRRC_PURE_H
#define MRRC_PURE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* libfabric */
#pragma GCC poison fid fid_mr fid_domain fid_ep fid_fabric fid_cq fid_cntr
#pragma GCC poison fi_addr_t fi_info fi_mr_attr fi_mr_reg fi_mr_regattr
#pragma GCC poison fi_mr_desc fi_mr_key fi_close fi_log fi_param_get
/* verbs */
#pragma GCC poison ibv_mr ibv_pd ibv_context ibv_reg_mr ibv_dereg_mr
/* threads */
#pragma GCC poison pthread_t pthread_mutex_t pthread_mutex_lock
#pragma GCC poison pthread_create pthread_self thrd_create mtx_lock
/* clock, files, memory map */
#pragma GCC poison time clock gettimeofday clock_gettime nanosleep
#pragma GCC poison printf fprintf fopen open read write ioctl getenv
#pragma GCC poison mmap munmap madvise sysconf

#endif /* MRRC_PURE_H */
