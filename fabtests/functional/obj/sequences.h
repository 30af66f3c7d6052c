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
	struct fid *fid;	  /* NULL: the object is closed */
	const struct obj *domain; /* of a completion queue or an endpoint */
	bool enabled;		  /* an endpoint is enabled */
	unsigned inserted;	  /* number of addresses in an address vector */
	bool has_eq;	/* an endpoint, also a passive one, has an EQ */
	bool has_queue; /* a queue or counter is bound to an endpoint */
	bool connect_failed;
	bool waits; /* the completion queue has a wait object */
};

extern struct obj objs[OBJS_MAX];
extern unsigned obj_cnt;
/* Infos for 127.0.0.1, as fi_getinfo() gave them to each side */
extern struct fi_info *infos[FT_SIDES][INFOS_MAX];
extern unsigned info_cnt[FT_SIDES];
extern enum ft_side side; /* this child's side */

uint64_t below(uint64_t n);
bool once_in(unsigned n);
const char *name(const struct obj *obj);
struct obj *pick(enum class class);
struct obj *obj_of(const struct fid *fid);
bool room(void);
/*
 * Is an endpoint bound and not enabled? ofi_rxm's progress needs enabled
 * endpoints.
 */
bool half_open(void);
struct obj *opened(enum class class, struct fid *fid);
/* Reports a result: "ARGUMENTS = RETURN VALUE ..." */
void say(const char *call, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int close_obj(struct obj *obj);

/* Returns a random operation context, or NULL; returns a context's name. */
void *random_context(void);
const char *context_name(const void *context);
/*
 * True once a connection or transfer was begun: then the results of later calls
 * on endpoints and queues are a race, and not compared.
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
