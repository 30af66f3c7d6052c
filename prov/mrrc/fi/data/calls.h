/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric's data calls as lists, for code that does the same with each call
 * of a group.
 *
 * MRRC_*_CALLS: calls that name memory to be registered and return ssize_t, as
 * X(group, call, the recorder's name of the call, peer, (parameters), arguments
 * behind the endpoint).
 *
 * MRRC_*_PLAIN_CALLS and the lists of collective calls: the other calls, as
 * X(type, group, call, (parameters), arguments).
 */
#ifndef MRRC_CALLS_H
#define MRRC_CALLS_H

#define MRRC_MSG_CALLS(X)                                                      \
	X(msg, recv, RECV, src_addr,                                           \
	  (struct fid_ep * ep, void *buf, size_t len, void *desc,              \
	   fi_addr_t src_addr, void *context),                                 \
	  buf, len, desc, src_addr, context)                                   \
	X(msg, recvv, RECV, src_addr,                                          \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,           \
	   size_t count, fi_addr_t src_addr, void *context),                   \
	  iov, desc, count, src_addr, context)                                 \
	X(msg, recvmsg, RECV, msg->addr,                                       \
	  (struct fid_ep * ep, const struct fi_msg *msg, uint64_t flags), msg, \
	  flags)                                                               \
	X(msg, send, SEND, dest_addr,                                          \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,        \
	   fi_addr_t dest_addr, void *context),                                \
	  buf, len, desc, dest_addr, context)                                  \
	X(msg, sendv, SEND, dest_addr,                                         \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,           \
	   size_t count, fi_addr_t dest_addr, void *context),                  \
	  iov, desc, count, dest_addr, context)                                \
	X(msg, sendmsg, SEND, msg->addr,                                       \
	  (struct fid_ep * ep, const struct fi_msg *msg, uint64_t flags), msg, \
	  flags)                                                               \
	X(msg, senddata, SEND, dest_addr,                                      \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,        \
	   uint64_t data, fi_addr_t dest_addr, void *context),                 \
	  buf, len, desc, data, dest_addr, context)

#define MRRC_MSG_PLAIN_CALLS(X)                                            \
	X(ssize_t, msg, inject,                                            \
	  (struct fid_ep * ep, const void *buf, size_t len,                \
	   fi_addr_t dest_addr),                                           \
	  buf, len, dest_addr)                                             \
	X(ssize_t, msg, injectdata,                                        \
	  (struct fid_ep * ep, const void *buf, size_t len, uint64_t data, \
	   fi_addr_t dest_addr),                                           \
	  buf, len, data, dest_addr)

#define MRRC_TAGGED_CALLS(X)                                                  \
	X(tagged, recv, TRECV, src_addr,                                      \
	  (struct fid_ep * ep, void *buf, size_t len, void *desc,             \
	   fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context), \
	  buf, len, desc, src_addr, tag, ignore, context)                     \
	X(tagged, recvv, TRECV, src_addr,                                     \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,          \
	   size_t count, fi_addr_t src_addr, uint64_t tag, uint64_t ignore,   \
	   void *context),                                                    \
	  iov, desc, count, src_addr, tag, ignore, context)                   \
	X(tagged, recvmsg, TRECV, msg->addr,                                  \
	  (struct fid_ep * ep, const struct fi_msg_tagged *msg,               \
	   uint64_t flags),                                                   \
	  msg, flags)                                                         \
	X(tagged, send, TSEND, dest_addr,                                     \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,       \
	   fi_addr_t dest_addr, uint64_t tag, void *context),                 \
	  buf, len, desc, dest_addr, tag, context)                            \
	X(tagged, sendv, TSEND, dest_addr,                                    \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,          \
	   size_t count, fi_addr_t dest_addr, uint64_t tag, void *context),   \
	  iov, desc, count, dest_addr, tag, context)                          \
	X(tagged, sendmsg, TSEND, msg->addr,                                  \
	  (struct fid_ep * ep, const struct fi_msg_tagged *msg,               \
	   uint64_t flags),                                                   \
	  msg, flags)                                                         \
	X(tagged, senddata, TSEND, dest_addr,                                 \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,       \
	   uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context),  \
	  buf, len, desc, data, dest_addr, tag, context)

#define MRRC_TAGGED_PLAIN_CALLS(X)                                         \
	X(ssize_t, tagged, inject,                                         \
	  (struct fid_ep * ep, const void *buf, size_t len,                \
	   fi_addr_t dest_addr, uint64_t tag),                             \
	  buf, len, dest_addr, tag)                                        \
	X(ssize_t, tagged, injectdata,                                     \
	  (struct fid_ep * ep, const void *buf, size_t len, uint64_t data, \
	   fi_addr_t dest_addr, uint64_t tag),                             \
	  buf, len, data, dest_addr, tag)

#define MRRC_RMA_CALLS(X)                                                     \
	X(rma, read, READ, src_addr,                                          \
	  (struct fid_ep * ep, void *buf, size_t len, void *desc,             \
	   fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context),   \
	  buf, len, desc, src_addr, addr, key, context)                       \
	X(rma, readv, READ, src_addr,                                         \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,          \
	   size_t count, fi_addr_t src_addr, uint64_t addr, uint64_t key,     \
	   void *context),                                                    \
	  iov, desc, count, src_addr, addr, key, context)                     \
	X(rma, readmsg, READ, msg->addr,                                      \
	  (struct fid_ep * ep, const struct fi_msg_rma *msg, uint64_t flags), \
	  msg, flags)                                                         \
	X(rma, write, WRITE, dest_addr,                                       \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,       \
	   fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),  \
	  buf, len, desc, dest_addr, addr, key, context)                      \
	X(rma, writev, WRITE, dest_addr,                                      \
	  (struct fid_ep * ep, const struct iovec *iov, void **desc,          \
	   size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,    \
	   void *context),                                                    \
	  iov, desc, count, dest_addr, addr, key, context)                    \
	X(rma, writemsg, WRITE, msg->addr,                                    \
	  (struct fid_ep * ep, const struct fi_msg_rma *msg, uint64_t flags), \
	  msg, flags)                                                         \
	X(rma, writedata, WRITE, dest_addr,                                   \
	  (struct fid_ep * ep, const void *buf, size_t len, void *desc,       \
	   uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,   \
	   void *context),                                                    \
	  buf, len, desc, data, dest_addr, addr, key, context)

#define MRRC_RMA_PLAIN_CALLS(X)                                            \
	X(ssize_t, rma, inject,                                            \
	  (struct fid_ep * ep, const void *buf, size_t len,                \
	   fi_addr_t dest_addr, uint64_t addr, uint64_t key),              \
	  buf, len, dest_addr, addr, key)                                  \
	X(ssize_t, rma, injectdata,                                        \
	  (struct fid_ep * ep, const void *buf, size_t len, uint64_t data, \
	   fi_addr_t dest_addr, uint64_t addr, uint64_t key),              \
	  buf, len, data, dest_addr, addr, key)

#define MRRC_ATOMIC_CALLS(X)                                                 \
	X(atomic, write, ATOMIC, dest_addr,                                  \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,    \
	   fi_addr_t dest_addr, uint64_t addr, uint64_t key,                 \
	   enum fi_datatype datatype, enum fi_op op, void *context),         \
	  buf, count, desc, dest_addr, addr, key, datatype, op, context)     \
	X(atomic, writev, ATOMIC, dest_addr,                                 \
	  (struct fid_ep * ep, const struct fi_ioc *iov, void **desc,        \
	   size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,   \
	   enum fi_datatype datatype, enum fi_op op, void *context),         \
	  iov, desc, count, dest_addr, addr, key, datatype, op, context)     \
	X(atomic, writemsg, ATOMIC, msg->addr,                               \
	  (struct fid_ep * ep, const struct fi_msg_atomic *msg,              \
	   uint64_t flags),                                                  \
	  msg, flags)                                                        \
	X(atomic, readwrite, ATOMIC, dest_addr,                              \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,    \
	   void *result, void *result_desc, fi_addr_t dest_addr,             \
	   uint64_t addr, uint64_t key, enum fi_datatype datatype,           \
	   enum fi_op op, void *context),                                    \
	  buf, count, desc, result, result_desc, dest_addr, addr, key,       \
	  datatype, op, context)                                             \
	X(atomic, readwritev, ATOMIC, dest_addr,                             \
	  (struct fid_ep * ep, const struct fi_ioc *iov, void **desc,        \
	   size_t count, struct fi_ioc *resultv, void **result_desc,         \
	   size_t result_count, fi_addr_t dest_addr, uint64_t addr,          \
	   uint64_t key, enum fi_datatype datatype, enum fi_op op,           \
	   void *context),                                                   \
	  iov, desc, count, resultv, result_desc, result_count, dest_addr,   \
	  addr, key, datatype, op, context)                                  \
	X(atomic, readwritemsg, ATOMIC, msg->addr,                           \
	  (struct fid_ep * ep, const struct fi_msg_atomic *msg,              \
	   struct fi_ioc *resultv, void **result_desc, size_t result_count,  \
	   uint64_t flags),                                                  \
	  msg, resultv, result_desc, result_count, flags)                    \
	X(atomic, compwrite, ATOMIC, dest_addr,                              \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,    \
	   const void *compare, void *compare_desc, void *result,            \
	   void *result_desc, fi_addr_t dest_addr, uint64_t addr,            \
	   uint64_t key, enum fi_datatype datatype, enum fi_op op,           \
	   void *context),                                                   \
	  buf, count, desc, compare, compare_desc, result, result_desc,      \
	  dest_addr, addr, key, datatype, op, context)                       \
	X(atomic, compwritev, ATOMIC, dest_addr,                             \
	  (struct fid_ep * ep, const struct fi_ioc *iov, void **desc,        \
	   size_t count, const struct fi_ioc *comparev, void **compare_desc, \
	   size_t compare_count, struct fi_ioc *resultv, void **result_desc, \
	   size_t result_count, fi_addr_t dest_addr, uint64_t addr,          \
	   uint64_t key, enum fi_datatype datatype, enum fi_op op,           \
	   void *context),                                                   \
	  iov, desc, count, comparev, compare_desc, compare_count, resultv,  \
	  result_desc, result_count, dest_addr, addr, key, datatype, op,     \
	  context)                                                           \
	X(atomic, compwritemsg, ATOMIC, msg->addr,                           \
	  (struct fid_ep * ep, const struct fi_msg_atomic *msg,              \
	   const struct fi_ioc *comparev, void **compare_desc,               \
	   size_t compare_count, struct fi_ioc *resultv, void **result_desc, \
	   size_t result_count, uint64_t flags),                             \
	  msg, comparev, compare_desc, compare_count, resultv, result_desc,  \
	  result_count, flags)

#define MRRC_ATOMIC_PLAIN_CALLS(X)                                       \
	X(ssize_t, atomic, inject,                                       \
	  (struct fid_ep * ep, const void *buf, size_t count,            \
	   fi_addr_t dest_addr, uint64_t addr, uint64_t key,             \
	   enum fi_datatype datatype, enum fi_op op),                    \
	  buf, count, dest_addr, addr, key, datatype, op)                \
	X(int, atomic, writevalid,                                       \
	  (struct fid_ep * ep, enum fi_datatype datatype, enum fi_op op, \
	   size_t * count),                                              \
	  datatype, op, count)                                           \
	X(int, atomic, readwritevalid,                                   \
	  (struct fid_ep * ep, enum fi_datatype datatype, enum fi_op op, \
	   size_t * count),                                              \
	  datatype, op, count)                                           \
	X(int, atomic, compwritevalid,                                   \
	  (struct fid_ep * ep, enum fi_datatype datatype, enum fi_op op, \
	   size_t * count),                                              \
	  datatype, op, count)

#define MRRC_COLLECTIVE_CALLS(X)                                               \
	X(ssize_t, collective, barrier,                                        \
	  (struct fid_ep * ep, fi_addr_t coll_addr, void *context), coll_addr, \
	  context)                                                             \
	X(ssize_t, collective, broadcast,                                      \
	  (struct fid_ep * ep, void *buf, size_t count, void *desc,            \
	   fi_addr_t coll_addr, fi_addr_t root_addr,                           \
	   enum fi_datatype datatype, uint64_t flags, void *context),          \
	  buf, count, desc, coll_addr, root_addr, datatype, flags, context)    \
	X(ssize_t, collective, alltoall,                                       \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   enum fi_datatype datatype, uint64_t flags, void *context),          \
	  buf, count, desc, result, result_desc, coll_addr, datatype, flags,   \
	  context)                                                             \
	X(ssize_t, collective, allreduce,                                      \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   enum fi_datatype datatype, enum fi_op op, uint64_t flags,           \
	   void *context),                                                     \
	  buf, count, desc, result, result_desc, coll_addr, datatype, op,      \
	  flags, context)                                                      \
	X(ssize_t, collective, allgather,                                      \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   enum fi_datatype datatype, uint64_t flags, void *context),          \
	  buf, count, desc, result, result_desc, coll_addr, datatype, flags,   \
	  context)                                                             \
	X(ssize_t, collective, reduce_scatter,                                 \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   enum fi_datatype datatype, enum fi_op op, uint64_t flags,           \
	   void *context),                                                     \
	  buf, count, desc, result, result_desc, coll_addr, datatype, op,      \
	  flags, context)                                                      \
	X(ssize_t, collective, reduce,                                         \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,      \
	   uint64_t flags, void *context),                                     \
	  buf, count, desc, result, result_desc, coll_addr, root_addr,         \
	  datatype, op, flags, context)                                        \
	X(ssize_t, collective, scatter,                                        \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,     \
	   void *context),                                                     \
	  buf, count, desc, result, result_desc, coll_addr, root_addr,         \
	  datatype, flags, context)                                            \
	X(ssize_t, collective, gather,                                         \
	  (struct fid_ep * ep, const void *buf, size_t count, void *desc,      \
	   void *result, void *result_desc, fi_addr_t coll_addr,               \
	   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,     \
	   void *context),                                                     \
	  buf, count, desc, result, result_desc, coll_addr, root_addr,         \
	  datatype, flags, context)                                            \
	X(ssize_t, collective, msg,                                            \
	  (struct fid_ep * ep, const struct fi_msg_collective *msg,            \
	   struct fi_ioc *resultv, void **result_desc, size_t result_count,    \
	   uint64_t flags),                                                    \
	  msg, resultv, result_desc, result_count, flags)

#endif /* MRRC_CALLS_H */
