/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random calls on objects: see sequences.c; sequences_call.c has the calls. */
#ifndef SEQUENCES_H
#define SEQUENCES_H

#include "ft_twin.h"

#include <stdarg.h>

#define OBJS_MAX  64
#define INFOS_MAX 16

enum class {
	FABRIC,
	DOMAIN,
	EQ,
	CQ,
	CNTR,
	AV,
	EP,
	SRX,
	STX,
	PEP,
	MR,
	CLASSES,
	ANY_CLASS,
};

struct obj {
	enum class class;
	struct fid *fid;   /* NULL: closed */
	bool enabled;	   /* of endpoints */
	unsigned inserted; /* addresses, of address vectors */
	bool has_eq;	   /* the endpoint has an EQ; passive ones, too */
	bool has_queue;	   /* of endpoints: a queue or counter is bound */
	bool connect_failed;
	bool waits; /* the completion queue has a wait object */
};

extern struct obj objs[OBJS_MAX];
extern unsigned obj_cnt;
/* Infos for 127.0.0.1, as fi_getinfo() gave them to each side */
extern struct fi_info *infos[FT_SIDES][INFOS_MAX];
extern unsigned info_cnt[FT_SIDES];
extern enum ft_side side; /* of this child */

uint64_t below(uint64_t n);
bool once_in(unsigned n);
const char *name(const struct obj *obj);
struct obj *pick(enum class class);
struct obj *obj_of(const struct fid *fid);
bool room(void);
/* Is an endpoint bound and not enabled? ofi_rxm's progress needs it to be. */
bool half_open(void);
struct obj *opened(enum class class, struct fid *fid);
/* A result: "ARGUMENTS = RETURN VALUE ..." */
void say(const char *call, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int close_obj(struct obj *obj);

/* An operation context or NULL, and its name. */
void *random_context(void);
const char *context_name(const void *context);
/*
 * A connection or transfer was begun: the results of later calls on endpoints
 * and queues are a race, and not compared.
 */
extern bool async;

void open_fabric(void);
void open_domain(void);

struct random_call {
	const char *name;
	void (*call)(void);
	unsigned weight;
};
#define CALL(name, weight)          \
	{                           \
#name, name, weight \
	}
extern const struct random_call open_calls[], use_calls[], comm_calls[];

#endif /* SEQUENCES_H */
