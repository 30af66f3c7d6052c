/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holds that only their thread writes (sys/cache/cache_hit.h), for spin(1):
 *
 *	spin -a holds.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * Threads hold a region by a tag that they know; the same thread or another
 * thread puts the region. The threads' stores are buffered (x86-TSO). The
 * evictor marks the region dead, forces a barrier on each thread (membarrier),
 * adds up, and registers anew. No region is deregistered while it is held, and
 * in the end every region is deregistered. With -DNO_BARRIER, -DNO_CHECK,
 * -DNO_AGAIN or -DNO_LOCK (to spin -a) one part of the protocol is missing, and
 * spin finds a run that goes wrong. Two threads with three holds each (-DOPS=3)
 * have 13 million states.
 */
#ifndef T
#define T	2	/* threads */
#endif
#ifndef OPS
#define OPS	2	/* holds of each */
#endif
#ifndef LIVES
#define LIVES	2	/* registrations */
#endif

mtype = { LANE, PASS };

byte tag = 1;		/* odd: indexed */
byte lane[T];		/* in memory */
byte passed;		/* holds that any thread may put, in memory */
bool loose;		/* the last put deregisters; lock */
bool locked;
/* what is true */
byte live = 1;		/* the tag that is registered, or 0 */
byte holds;		/* of it */
bool over;		/* the evictor is done */
byte idle;		/* threads that are over */

chan buf[T] = [3] of { mtype, byte };

inline drain(t)		/* one store becomes visible */
{
	if
	:: buf[t]?LANE,v -> lane[t] = v
	:: buf[t]?PASS,v -> passed++
	fi
}

/* the store buffer of a thread */
proctype buffer(byte t)
{
	byte v;
end:
	do
	:: atomic { nempty(buf[t]) -> drain(t); v = 0 }
	od
}

inline sum_is_zero(res)
{
	res = 0;
	i = 0;
	do
	:: i < T -> res = res + lane[i]; i++
	:: else -> break
	od;
	i = 0
}

inline deregister()
{
	assert(holds == 0 && live);
	live = 0
}

inline lock()
{
	atomic { empty(buf[me]) && !locked -> locked = true }
}

/* the region was seen dead after a decrement */
inline last()
{
#ifdef NO_AGAIN
	skip
#else
	lock();
	if
	:: loose ->
		sum_is_zero(s);
		if
		:: s == 0 -> atomic { loose = false; deregister() }
		:: else
		fi
	:: else
	fi;
	s = 0;
	locked = false
#endif
}

proctype thread(byte me)
{
	byte mine, n, s, i, known, had;

	do
	:: n < OPS ->
		n++;
		/* a tag that a table has: this life's, or an older one's */
		known = tag;
		if
		:: known % 2 == 1
		:: known % 2 == 0 && known > 1 -> known = known - 1
		:: known > 2 && known % 2 == 1 -> known = known - 2
		:: else -> known = 1
		fi;
		mine++;
		buf[me]!LANE,mine;
#ifndef NO_CHECK
		had = tag;
#else
		had = known;
#endif
		if
		:: had == known ->
			atomic {
				/* held, as of that look */
				had = 0;
				holds++;
				assert(live == known);
			}
			if
			:: atomic { holds--; mine-- };
				buf[me]!LANE,mine;
				had = tag;
				if
				:: had % 2 == 0 -> had = 0; last()
				:: else -> had = 0
				fi
			:: buf[me]!PASS,0
			fi
		:: else ->
			had = 0;
			mine--;
			buf[me]!LANE,mine;
			had = tag;
			if
			:: had % 2 == 0 -> had = 0; last()
			:: else -> had = 0
			fi
		fi;
		known = 0
	:: atomic { passed > 0 -> passed--; holds--; mine-- };
		buf[me]!LANE,mine;
		had = tag;
		if
		:: had % 2 == 0 -> had = 0; last()
		:: else -> had = 0
		fi
	:: atomic { n == OPS && holds == 0 && passed == 0 && over -> break }
	od;
	atomic { empty(buf[me]) -> idle++ }
}

proctype evictor()
{
	byte s, i, v, lives = 1;

	do
	:: lives <= LIVES ->
#ifndef NO_LOCK
		atomic { !locked -> locked = true };
#endif
		tag = tag - 1;
#ifdef NO_LOCK
		/* it is said to be loose before it is known */
		loose = true;
#endif
#ifndef NO_BARRIER
		i = 0;
		do
		:: i < T ->
			atomic {
				do
				:: nempty(buf[i]) -> drain(i)
				:: empty(buf[i]) -> break
				od;
				v = 0;
				i++
			}
		:: else -> break
		od;
		i = 0;
#endif
		sum_is_zero(s);
		if
		:: s == 0 -> atomic { loose = false; deregister() }
		:: else -> loose = true
		fi;
		s = 0;
		locked = false;
		lives++;
		if
		:: lives > LIVES -> break
		:: else
		fi;
		/* deregistered, here or there: the memory's next life */
		live == 0;
		atomic { !locked -> locked = true };
		atomic { tag = tag + 3; live = tag };
		locked = false
	od;
	over = true
}

init
{
	byte i;

	atomic {
		do
		:: i < T -> run thread(i); run buffer(i); i++
		:: else -> break
		od;
		run evictor()
	}
	/* all is over: what is left? */
	idle == T;
	assert(live == 0 && !loose)
}
