/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sequences: makes the same random sequences of calls on objects of the
 * raw core provider and of ofi_mrrc over this provider. The calls have to
 * return the same results, except for the differences listed in whys[]. Each
 * sequence runs in a process of its own on each side: where the raw core
 * crashes, ofi_mrrc may, too.
 *
 * All random numbers of a call are drawn before the call, so that both sides
 * keep the same objects as long as their results are equal.
 */
#include "obj/sequences.h"

#include <limits.h>

#define SEQUENCES 500
#define STEPS	  80
#define PEER	  (1ULL << 43) /* FI_PEER, which older headers lack */

struct obj objs[OBJS_MAX];
unsigned obj_cnt;
struct fi_info *infos[FT_SIDES][INFOS_MAX];
unsigned info_cnt[FT_SIDES];
enum ft_side side;

bool async;

static char contexts[8];
static unsigned step;
static const char *const class_names[CLASSES] = {
	"fabric", "domain", "eq",  "cq",  "cntr", "av",
	"ep",	  "srx",    "stx", "pep", "mr",
};

uint64_t below(uint64_t n)
{
	return ft_twin_rand() % n;
}

bool once_in(unsigned n)
{
	return ft_twin_once_in(n);
}

const char *name(const struct obj *obj)
{
	static char names[4][24];
	static unsigned next;
	char *to = names[next++ % 4];

	if (!obj)
		return "NULL";
	snprintf(to, sizeof(names[0]), "%s%td", class_names[obj->class],
		 obj - objs);
	return to;
}

/*
 * Picks an open object of a class, or of any class if ANY_CLASS. Returns NULL
 * if there is no such object.
 */
struct obj *pick(enum class class)
{
	unsigned i, n = 0, nth;

	for (i = 0; i < obj_cnt; i++)
		n += objs[i].fid &&
		     (class == ANY_CLASS || objs[i].class == class);
	nth = n ? below(n) : below(1);
	for (i = 0; n && i < obj_cnt; i++)
		if (objs[i].fid &&
		    (class == ANY_CLASS || objs[i].class == class) && !nth--)
			return &objs[i];
	return NULL;
}

struct obj *obj_of(const struct fid *fid)
{
	unsigned i;

	for (i = 0; i < obj_cnt; i++)
		if (fid && objs[i].fid == fid)
			return &objs[i];
	return NULL;
}

bool half_open(void)
{
	unsigned i;

	for (i = 0; i < obj_cnt; i++)
		if (objs[i].fid && objs[i].class == EP && objs[i].has_queue &&
		    !objs[i].enabled)
			return ft_rxm();
	return false;
}

bool room(void)
{
	return obj_cnt < OBJS_MAX;
}

struct obj *opened(enum class class, struct fid *fid)
{
	struct obj *obj = &objs[obj_cnt++];

	memset(obj, 0, sizeof(*obj));
	obj->class = class;
	obj->fid = fid;
	return obj;
}

void say(const char *call, const char *fmt, ...)
{
	char key[64], text[512];
	va_list ap;

	snprintf(key, sizeof(key), "%u.%s", step, call);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ft_twin_say(key, "%s", text);
}

void *random_context(void)
{
	return once_in(4) ? NULL : &contexts[below(sizeof(contexts))];
}

const char *context_name(const void *context)
{
	static char text[2];
	const char *at = context;

	if (!context)
		return "NULL";
	if (at < contexts || at >= contexts + sizeof(contexts))
		return "unknown";
	text[0] = (char) ('0' + (at - contexts));
	return text;
}

/*
 * Does the core free this object, or a part of the object, although the object
 * is busy, and use the freed object afterwards?
 */
static bool freed_in_use(const struct obj *obj)
{
	const bool v2 = FI_MAJOR(fi_version()) >= 2;
	const struct obj *user;

	for (user = objs; user < objs + obj_cnt; user++) {
		if (!user->fid)
			continue;
		if ((obj->class == CQ && ft_rxm() && user->has_queue) ||
		    (obj->class == EQ && v2 && user->has_eq) ||
		    (obj->class == FABRIC && v2 && ft_rxm() &&
		     user->class != FABRIC))
			return true;
	}
	return false;
}

int close_obj(struct obj *obj)
{
	bool forced = once_in(200);
	int ret;

	/*
	 * before an endpoint is enabled, ofi_rxm and net have no queues to look
	 * at
	 */
	if (obj->class == EP && ft_rdm() && !obj->enabled && !forced)
		return -FI_EBUSY;
	if (freed_in_use(obj))
		return -FI_EBUSY;
	say("closing", "%s", name(obj));
	ret = fi_close(obj->fid);
	say("close", "%s = %d", name(obj), ret);
	/*
	 * do not close an object twice: some cores free a busy object in each
	 * close
	 */
	if (!ret || obj->class == CQ || (obj->class == DOMAIN && ft_rxm()))
		obj->fid = NULL;
	return ret;
}

/*
 * Closes all objects; an object comes after the objects that are bound to it.
 */
static void close_all(void)
{
	static const enum class order[] = {
		EP, SRX, STX, PEP, MR, CQ, CNTR, AV, DOMAIN, EQ, FABRIC,
	};
	unsigned pass, i, left = 0;

	for (pass = 0; pass < CLASSES; pass++)
		for (i = obj_cnt; i--;)
			if (objs[i].fid && objs[i].class == order[pass])
				close_obj(&objs[i]);
	for (i = 0; i < obj_cnt; i++)
		left += !!objs[i].fid;
	say("left", "%u", left);
}

static void random_call(void)
{
	const struct random_call *const all[] = { open_calls, use_calls,
						  comm_calls };
	const struct random_call *c;
	unsigned sum = 0, i;
	uint64_t nth;

	for (i = 0; i < 3; i++)
		for (c = all[i]; c->call; c++)
			sum += c->weight;
	nth = below(sum);
	for (i = 0; i < 3; i++)
		for (c = all[i]; c->call; c++) {
			if (nth < c->weight) {
				say("next", "%s", c->name);
				c->call();
				return;
			}
			nth -= c->weight;
		}
}

static void sequence(enum ft_side this_side, unsigned round)
{
	unsigned steps = 10 + below(STEPS);

	side = this_side;
	/* most calls need a fabric and a domain */
	open_fabric();
	open_domain();
	for (step = 1; step <= steps; step++)
		random_call();
	close_all();
}

static void get_infos(enum ft_side of)
{
	struct fi_info *hints = fi_allocinfo(), *list, *info;

	FT_CHECK(hints, "no memory");
	hints->mode = ~(uint64_t) FI_BUFFERED_RECV;
	hints->domain_attr->mr_mode = 0xffc; /* all modes that exist */
	hints->ep_attr->type = ft_ep_type();
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(ft_twin_prov(of));
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &list));
	fi_freeinfo(hints);
	for (info = list; info; info = info->next) {
		/* ofi_rxm (2.x) crashes if the domain lacks FI_COLLECTIVE */
		if (info->caps & FI_COLLECTIVE && FI_MAJOR(fi_version()) >= 2)
			continue;
		if (!strcmp(info->fabric_attr->prov_name, ft_twin_prov(of)) &&
		    info_cnt[of] < INFOS_MAX)
			infos[of][info_cnt[of]++] = info;
	}
	FT_CHECK(info_cnt[of], "no info of %s", ft_twin_prov(of));
}

/* ---- explained differences -------------------------------------------- */

static long ret_of(const char *text)
{
	const char *at = text ? strstr(text, " = ") : NULL;

	return at ? strtol(at + 3, NULL, 0) : LONG_MIN;
}

static uint64_t flags_of(const char *text)
{
	const char *at = text ? strstr(text, " flags ") : NULL;

	return at ? strtoull(at + 7, NULL, 0) : 0;
}

static bool peer_flag(unsigned round, const char *raw, const char *ours)
{
	return flags_of(ours) & PEER && ret_of(raw) == -FI_EINVAL &&
	       ret_of(ours) == -FI_ENOSYS;
}

static bool peer_opened(unsigned round, const char *raw, const char *ours)
{
	return flags_of(ours) & PEER && !ret_of(raw) &&
	       ret_of(ours) == -FI_ENOSYS;
}

static bool reg_mr_flag(unsigned round, const char *raw, const char *ours)
{
	return !strncmp(ours, "domain", 6) && flags_of(ours) & FI_REG_MR &&
	       (ret_of(raw) == -FI_EBADFLAGS || ret_of(raw) == -FI_ENOSYS);
}

static bool other_domain(unsigned round, const char *raw, const char *ours)
{
	return ours && strstr(ours, ", of another domain") &&
	       ret_of(ours) == -FI_EINVAL;
}

static bool threaded_domain(unsigned round, const char *raw, const char *ours)
{
	return ft_core("tcp") && FI_MAJOR(fi_version()) >= 2 &&
	       !strncmp(ours, "domain", 6) && ret_of(raw) == -FI_ENOSYS;
}

static bool busy_parent(unsigned round, const char *raw, const char *ours)
{
	return (!strncmp(ours, "fabric", 6) || !strncmp(ours, "domain", 6)) &&
	       !ret_of(raw) && ret_of(ours) == -FI_EBUSY;
}

static bool counted(unsigned round, const char *raw, const char *ours)
{
	return ret_of(raw) == -FI_ENOCQ && !ret_of(ours);
}

static bool net_eq(unsigned round, const char *raw, const char *ours)
{
	return ft_core("net") && !strncmp(ours, "eq", 2) &&
	       ret_of(raw) == -FI_EINVAL &&
	       (!ret_of(ours) || ret_of(ours) == -FI_EBUSY);
}

static bool claimed(unsigned round, const char *raw, const char *ours)
{
	return flags_of(ours) & FI_CLAIM &&
	       (ret_of(ours) == -FI_EINVAL || ret_of(ours) == -FI_EOPNOTSUPP);
}

static bool multi_recv(unsigned round, const char *raw, const char *ours)
{
	return flags_of(ours) & FI_MULTI_RECV &&
	       (!ret_of(raw) || ret_of(raw) == -FI_ENOSYS) &&
	       ret_of(ours) == -FI_EOPNOTSUPP;
}

static bool triggered(unsigned round, const char *raw, const char *ours)
{
	return flags_of(ours) & FI_TRIGGER && ret_of(ours) == -FI_EOPNOTSUPP;
}

static struct ft_twin_why whys[] = {
	{ "*_open", "FI_PEER is refused with another error", peer_flag, false,
	  0 },
	{ "*_open", "FI_PEER is refused; cores of libfabric 2.x may take it",
	  peer_opened, true, 0 },
	{ "*.bind", "FI_REG_MR is ofi_mrrc's own matter", reg_mr_flag, true,
	  0 },
	{ "*.bind",
	  "a completion queue of another domain would report wrong contexts",
	  other_domain, true, 0 },
	{ "*.bind",
	  "a domain for FI_THREAD_COMPLETION is FI_THREAD_SAFE in "
	  "the core: to its own kind of those tcp (2.x) binds nothing",
	  threaded_domain, true, 0 },
	{ "*.close",
	  "what has anything open is busy; for tcp and net not a "
	  "fabric with a passive endpoint, nor a domain with a shared receive "
	  "context",
	  busy_parent, true, 0 },
	{ "*.enable",
	  "an endpoint with counters alone needs no queue: it gets "
	  "one",
	  counted, true, 0 },
	{ "*.mr.local_key",
	  "a local registration has the key that was asked "
	  "for, whatever the core would choose",
	  NULL, false, 0 },
	{ "*.close",
	  "net closes an event queue or not, depending on its "
	  "domains",
	  net_eq, true, 0 },
	{ "*.receive",
	  "FI_CLAIM of what was not claimed is an error; cores "
	  "may ignore the flag",
	  claimed, true, 0 },
	{ "*.receive",
	  "FI_MULTI_RECV without that capability is an error; "
	  "cores may ignore the flag",
	  multi_recv, true, 0 },
	{ "*.receive", "FI_TRIGGER is not supported", triggered, true, 0 },
	{ "*.send", "FI_TRIGGER is not supported", triggered, true, 0 },
	{ "*.bind.late",
	  "fi_enable() and fi_connect() bind a completion queue "
	  "where there is a counter alone",
	  NULL, true, 0 },
	{ NULL, NULL, NULL, false, 0 },
};

int main(int argc, char **argv)
{
	struct ft_twin twin = {
		.batch = 1,
		.limit_s = 10,
		.round = sequence,
		.whys = whys,
	};
	struct ft_twin_result result;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("compares ofi_mrrc with a raw core");
	if (!ft_core("tcp") && !ft_core("net"))
		ft_skip("the differences that are explained are those of tcp "
			"and net");
	get_infos(FT_RAW);
	get_infos(FT_OURS);
	FT_CHECK(info_cnt[FT_RAW] == info_cnt[FT_OURS], "%u infos, raw %u",
		 info_cnt[FT_OURS], info_cnt[FT_RAW]);
	twin.rounds = ft_iters(SEQUENCES);
	ft_twin_run(&twin, &result);
	ft_log("%u sequences, %u results, %u with explained differences, %u in "
	       "which the raw core crashed",
	       result.rounds, result.lines, result.explained, result.raw_died);
	FT_CHECK(!result.failed,
		 "%u of %u sequences have unexplained "
		 "differences",
		 result.failed, result.rounds);
	FT_CHECK(result.raw_died * 3 <= result.rounds,
		 "the raw core crashed "
		 "in %u of %u",
		 result.raw_died, result.rounds);
	return ft_done();
}
