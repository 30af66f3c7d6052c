/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Phases of a link's connection, as a table: for each phase and event the next
 * phase and the action. A link is the state of conditional writes between one
 * endpoint and one peer; it has a connection besides the connection of the
 * application. The caller locks, and performs the table's actions.
 */
#ifndef MRRC_CW_PHASE_H
#define MRRC_CW_PHASE_H

#include <stdbool.h>

#define MRRC_CW_PHASES(X)                                            \
	X(OPTED)      /* enabled, not connected */                   \
	X(LISTENING)  /* the peer's connection will come */          \
	X(CONNECTING) /* our connection is on its way to the peer */ \
	X(UP)                                                        \
	X(LOST)	 /* the connection ended, or failed */               \
	X(ALONE) /* the peer does not take part */

#define MRRC_CW_EVENTS(X)                                              \
	X(AWAIT)   /* a connection of the peer's is to be accepted */  \
	X(RECALL)  /* the awaited connection will not come */          \
	X(PLAIN)   /* the peer says that it does not take part */      \
	X(JOIN)	   /* the peer says where it listens */                \
	X(DIAL)	   /* we connect */                                    \
	X(MET)	   /* the connection is established */                 \
	X(QUIT)	   /* the peer has gone, or a deadline has passed */   \
	X(REQUEST) /* a peer of reliable datagrams wants to connect */ \
	X(POST)	   /* the application posts an operation */            \
	X(CLOSE)   /* the control endpoint is closed */                \
	X(RESET)   /* the link may connect again */

/* What has to be done */
#define MRRC_CW_ACTS(X)                                             \
	X(NONE)                                                     \
	X(GREET)   /* say HELLO to the peer */                      \
	X(LOSE)	   /* give up the connection */                     \
	X(CHOOSE)  /* both connect: drop one connection */          \
	X(DROP)	   /* drop an attempt, but keep its operations */   \
	X(END)	   /* end the connection and its operations */      \
	X(RENEW)   /* after a lost connection: RESET, then go on */ \
	X(CONNECT) /* the link needs a connection */                \
	X(FAIL)	   /* the link can have no connection */

#define MRRC_CW_PHASE_ENUM(name) CW_##name,
#define MRRC_CW_EVENT_ENUM(name) CW_ON_##name,
#define MRRC_CW_ACT_ENUM(name)	 CW_DO_##name,

enum cw_phase { MRRC_CW_PHASES(MRRC_CW_PHASE_ENUM) CW_PHASE_CNT };
enum cw_event { MRRC_CW_EVENTS(MRRC_CW_EVENT_ENUM) CW_EVENT_CNT };
/* REFUSE: the event must not happen in this phase */
enum cw_act { CW_DO_REFUSE, MRRC_CW_ACTS(MRRC_CW_ACT_ENUM) CW_ACT_CNT };

struct cw_step {
	enum cw_phase next;
	enum cw_act act;
};

struct cw_step mrrc_cw_phase_step(enum cw_phase phase, enum cw_event event);
const char *mrrc_cw_phase_name(enum cw_phase phase);
const char *mrrc_cw_event_name(enum cw_event event);

#endif /* MRRC_CW_PHASE_H */
