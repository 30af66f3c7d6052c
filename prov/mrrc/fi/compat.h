/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Definitions that some versions of libfabric's public headers lack, or call
 * deprecated, and a few internal bits of libfabric.
 */
#ifndef MRRC_COMPAT_H
#define MRRC_COMPAT_H

#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#ifndef container_of /* in fabric.h until libfabric 2.x */
#define container_of(ptr, type, field) \
	((type *) ((char *) (ptr) -offsetof(type, field)))
#endif
#ifndef count_of
#define count_of(x) (sizeof(x) / sizeof((x)[0]))
#endif

/* the libfabric that these headers belong to */
#define MRRC_FI_HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

#ifndef FI_AUTH_KEY /* since 1.20 */
#define FI_AUTH_KEY (1ULL << 57)
#endif
#ifdef FI_XPU		 /* since 2.7 */
#define MRRC_XPU_CALLS 1 /* tables of calls have XPU entries */
#else
#define FI_XPU (1ULL << 44) /* FI_XPU_TRIGGER in 1.x, which no core has */
#endif
#if FI_MAJOR_VERSION >= 2
/* deprecated: each use would warn, but older applications set them */
#undef FI_LOCAL_MR
#define FI_LOCAL_MR (1ULL << 55)
#undef FI_MR_BASIC
#define FI_MR_BASIC (1 << 0)
#undef FI_MR_SCALABLE
#define FI_MR_SCALABLE (1 << 1)
#undef FI_REG_MR
#define FI_REG_MR (1ULL << 59)
#endif
#ifndef FI_BUFFERED_RECV /* gone in 2.x: no endpoint has it */
#define FI_BUFFERED_RECV 0
#endif

/*
 * Flags internal to libfabric's src/fabric.c and util layer, in no public
 * header. The values are the same from v1.10 to v2.5.
 */
#define MRRC_GETINFO_INTERNAL  (1ULL << 58) /* the caller is a provider */
#define MRRC_GETINFO_CORE_ONLY (1ULL << 59) /* no utility providers */
/* also providers that FI_PROVIDER excludes */
#define MRRC_GETINFO_HIDDEN (1ULL << 60)
#define MRRC_MR_NOCACHE	    (1ULL << 60) /* bypass the core's cache */

#define MRRC_ALL_MR_MODES                                              \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | \
	 FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT |         \
	 FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE)

#endif /* MRRC_COMPAT_H */
