/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * test_attr includes this header before all others. The header replaces headers
 * of libfabric by headers of a later version, whose attributes have more
 * fields.
 */
#ifndef MRRC_TEST_LONGER_H
#define MRRC_TEST_LONGER_H

#include <rdma/fabric.h>

#define fi_cq_attr   fi_cq_attr_now
#define fi_cntr_attr fi_cntr_attr_now
#include <rdma/fi_eq.h>
#undef fi_cq_attr
#undef fi_cntr_attr

#define LATER_FIELDS 8

/* -fms-extensions: fields of an unnamed member are fields of the structure */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wmicrosoft-anon-tag"
#endif
struct fi_cq_attr {
	struct fi_cq_attr_now;
	void *later[LATER_FIELDS];
};

struct fi_cntr_attr {
	struct fi_cntr_attr_now;
	void *later[LATER_FIELDS];
};

#endif /* MRRC_TEST_LONGER_H */
