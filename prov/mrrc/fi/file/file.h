/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of files as the source of operations: fi_mrrc_file(3).
 *
 * file.c opens files, post.c posts operations. A part is mapped, held by a
 * lease (sys/file/lease.h) and registered in the domain's cache, or the part is
 * read into memory of fi_mr_alloc(3), from or (direct.c) past the page cache.
 * In each case the part is in the operation's list of blocks, and ends with the
 * operation.
 *
 * Any thread; posting follows the endpoint's threading.
 */
#ifndef MRRC_FILE_H
#define MRRC_FILE_H

#include <rdma/fi_ext_mrrc.h>

#include "fi/file/direct.h"
#include "fi/mrrc_fi.h"
#include "sys/base/fd_id.h"
#include "sys/file/lease.h"

/* State of a domain, from its first file on. */
struct mrrc_file_domain {
	struct mrrc_leases *leases; /* NULL: leases are not available */
	/* the core does not register mappings of files */
	atomic_bool refused;
	atomic_size_t ahead; /* bytes that direct.c has read ahead */
};

struct mrrc_file {
	struct fid_mrrc_file file;
	struct mrrc_domain *domain;
	struct mrrc_file_domain *shared; /* the domain's */
	uint64_t flags;
	int fd; /* a descriptor of our own */
	struct mrrc_fd_id id;
	atomic_uint parts;	     /* parts that operations read now */
	_Atomic uint64_t last, next; /* begin and end of the latest part */
	/* the latest part was read from the disk */
	atomic_bool cold;
	_Atomic uint64_t mapped, mapped_bytes, copied, copied_bytes;
	_Atomic uint64_t direct, direct_bytes, ahead_bytes;
	/* FI_MRRC_FILE_DIRECT: our descriptor, with O_DIRECT */
	int direct_fd;
	size_t direct_align;	  /* alignment of offsets, lengths and memory */
	struct mrrc_mutex lock;	  /* guards the rest */
	struct mrrc_lease *lease; /* NULL: none */
	int no_lease;		  /* why there is none */
	int64_t again;		  /* ms: when to ask for a lease again */
	uint64_t leases;
	struct mrrc_direct_list parts_ahead; /* by offset */
	size_t ahead;			     /* bytes in parts_ahead */
	/* number of parts in order so far */
	unsigned run;
};

/*
 * file.c: holds a part of the mapping, which is then at *addr. -FI_ENODATA: the
 * file ends before the part's end; -FI_EAGAIN: there is no lease, so the part
 * has to be read.
 */
int mrrc_file_hold(struct mrrc_file *file, uint64_t offset, size_t len,
		   struct mrrc_lease_hold *hold, char **addr);

/* Would a hold ask the kernel for a lease now, and map the file? */
bool mrrc_file_asks(struct mrrc_file *file);

/*
 * Gets the number of the file's present lease, which no other lease has, and
 * the file's length; errors as for mrrc_file_hold().
 */
int mrrc_file_leased(struct mrrc_file *file, uint64_t offset, size_t len,
		     uint64_t *lease, uint64_t *length);

/* Is this a forked child, in which everything is its parent's? */
bool mrrc_file_forked(const struct mrrc_file *file);

/* post.c */
extern const struct fi_mrrc_ops_file mrrc_file_ops;

/* file.c: const struct fi_mrrc_ops_file */
int mrrc_file_query(struct fid_mrrc_file *file_fid,
		    struct fi_mrrc_file_stats *attr);

/* To be called once, before any domain is open: adds calls to domains'. */
void mrrc_file_calls_init(void);

static inline struct mrrc_file *mrrc_file_of(struct fid_mrrc_file *file)
{
	return container_of(file, struct mrrc_file, file);
}

#endif /* MRRC_FILE_H */
