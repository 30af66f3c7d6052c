/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes for the core the attributes with which an application opens an
 * object.
 *
 * Attribute structures grow at their ends. The application's structures may be
 * shorter or longer than those of the headers that the provider was built with:
 * the application's API version tells which fields exist. So attributes are
 * passed on as they are wherever possible. A copy has the fields that this
 * header knows, and zeroes behind these fields, since a newer core reads more.
 * A copy loses the fields of newer headers, so objects that need such a field
 * (FI_XPU) are refused.
 *
 * A struct fi_info needs no such copy: applications get infos from libfabric,
 * in libfabric's own size (fi_getinfo(3)).
 *
 * Threading: any.
 */
#ifndef MRRC_ATTR_H
#define MRRC_ATTR_H

#include <string.h>

#include "fi/compat.h"

/* The length of a structure that ends with this field. */
#define MRRC_LEN_TO(type, last) \
	(offsetof(type, last) + sizeof(((type *) NULL)->last))

/*
 * Copies of attributes for the core; attr[1] is room for fields of newer
 * headers.
 */
struct mrrc_cq_attrs {
	struct fi_cq_attr attr[2];
};

struct mrrc_cntr_attrs {
	struct fi_cntr_attr attr[2];
};

struct mrrc_eq_attrs {
	struct fi_eq_attr attr[2];
};

struct mrrc_mr_attrs {
	struct fi_mr_attr attr[2];
};

static inline struct fi_cq_attr *
mrrc_cq_attr_copy(struct mrrc_cq_attrs *copy, const struct fi_cq_attr *attr)
{
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, attr, MRRC_LEN_TO(struct fi_cq_attr, wait_set));
	return copy->attr;
}

static inline struct fi_cntr_attr *
mrrc_cntr_attr_copy(struct mrrc_cntr_attrs *copy,
		    const struct fi_cntr_attr *attr)
{
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, attr, MRRC_LEN_TO(struct fi_cntr_attr, flags));
	return copy->attr;
}

static inline struct fi_eq_attr *
mrrc_eq_attr_copy(struct mrrc_eq_attrs *copy, const struct fi_eq_attr *attr)
{
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, attr, MRRC_LEN_TO(struct fi_eq_attr, wait_set));
	return copy->attr;
}

#if FI_MAJOR_VERSION >= 2
/* Copies the attributes of an application of this API version, 2.0 or newer. */
static inline struct fi_mr_attr *
mrrc_mr_attr_copy(struct mrrc_mr_attrs *copy, const struct fi_mr_attr *attr,
		  uint32_t version)
{
	size_t len = MRRC_LEN_TO(struct fi_mr_attr, base_mr);

	if (FI_VERSION_GE(version, FI_VERSION(2, 5)))
		len += sizeof(size_t); /* sub_mr_cnt */
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, attr, len);
	return copy->attr;
}
#endif

#endif /* MRRC_ATTR_H */
