/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the control endpoints of conditional writes meet: see cw.h.
 *
 * The application's connection carries it, in front of its own private data:
 * the connecting side says that it takes part, the accepting side that it
 * does too, the port where it listens for the control endpoint, and a cookie
 * that this one has to bring. A listener of our own needs nothing of the
 * application's, who may close its own, or never look at it again.
 *
 * What a request's marker said is kept by the request's handle until an
 * endpoint is opened with it.
 */
#include "config.h"
#include <arpa/inet.h>
#include <sys/random.h>
#include <time.h>

#include "cw.h"

#define CW_EVENT_DATA	512
#define CW_MEET_MS	10000
#define CW_MARK_MAGIC	0x4d43524d	/* "MRCM" */

enum cw_mark_kind { CW_MARK_CONNECT = 1, CW_MARK_ACCEPT, CW_MARK_CONTROL };

/* In network byte order. FI_CW_CM_DATA bytes */
struct cw_mark {
	uint32_t magic;
	uint8_t version, kind;
	uint16_t len;		/* of the application's data */
	uint32_t cookie[2];
	uint16_t port, zero;
};

_Static_assert(sizeof(struct cw_mark) == FI_CW_CM_DATA, "as documented");

/* A request that was marked, until it is used: of the fabric */
struct mrrc_cw_mark {
	struct mrrc_cw_mark *next;
	const struct fid *handle;
};

static void cw_mark_make(struct cw_mark *mark, enum cw_mark_kind kind,
			 size_t len, uint64_t cookie, uint16_t port)
{
	*mark = (struct cw_mark) {
		.magic = htonl(CW_MARK_MAGIC),
		.version = MRRC_CW_VERSION_MAX,
		.kind = kind,
		.len = htons(len),
		.cookie = { htonl(cookie >> 32), htonl(cookie) },
		.port = port,
	};
}

/* Is there one of this kind at data? A later version begins like this one. */
static bool cw_mark_read(const void *data, size_t len, enum cw_mark_kind kind,
			 struct cw_mark *mark)
{
	if (len < sizeof(*mark))
		return false;
	memcpy(mark, data, sizeof(*mark));
	return mark->magic == htonl(CW_MARK_MAGIC) && mark->version &&
	       mark->kind == kind && ntohs(mark->len) <= len - sizeof(*mark);
}

static uint64_t cw_mark_cookie(const struct cw_mark *mark)
{
	return (uint64_t) ntohl(mark->cookie[0]) << 32 |
	       ntohl(mark->cookie[1]);
}

int mrrc_cw_cm_data(int level, int optname, void *optval)
{
	size_t *len = optval;

	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_CM_DATA_SIZE)
		*len = *len > FI_CW_CM_DATA ? *len - FI_CW_CM_DATA : 0;
	return 0;
}

/* ---- marks of requests --------------------------------------------------- */

bool mrrc_cw_mark_take(struct mrrc_fabric *fabric, const struct fid *handle)
{
	struct mrrc_cw_mark **pos, *mark;

	pthread_mutex_lock(&fabric->track_lock);
	for (pos = &fabric->marks; *pos; pos = &(*pos)->next) {
		if ((*pos)->handle == handle)
			break;
	}
	mark = *pos;
	if (mark)
		*pos = mark->next;
	pthread_mutex_unlock(&fabric->track_lock);
	free(mark);
	return mark != NULL;
}

/* Also when an address is used again, or an event peeked at first. */
static void cw_mark_note(struct mrrc_fabric *fabric, const struct fid *handle,
			 bool marked)
{
	struct mrrc_cw_mark *mark;

	mrrc_cw_mark_take(fabric, handle);
	if (!marked)
		return;
	mark = malloc(sizeof(*mark));
	if (!mark)
		return;		/* then the peer learns that we do not */
	mark->handle = handle;
	pthread_mutex_lock(&fabric->track_lock);
	mark->next = fabric->marks;
	fabric->marks = mark;
	pthread_mutex_unlock(&fabric->track_lock);
}

void mrrc_cw_marks_free(struct mrrc_fabric *fabric)
{
	struct mrrc_cw_mark *mark;

	while ((mark = fabric->marks)) {
		fabric->marks = mark->next;
		free(mark);
	}
}

/* ---- the two control endpoints ------------------------------------------- */

static uint16_t *cw_port(void *addr)
{
	struct sockaddr *sa = addr;

	switch (sa ? sa->sa_family : AF_UNSPEC) {
	case AF_INET:
		return &((struct sockaddr_in *) addr)->sin_port;
	case AF_INET6:
		return &((struct sockaddr_in6 *) addr)->sin6_port;
	default:
		return NULL;
	}
}

static size_t cw_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6);
}

/*
 * For a control endpoint: the application's, less what it made of it. A
 * request's info is made for its own handle.
 */
static void cw_info_adapt(struct fi_info *info)
{
	uint16_t *port = cw_port(info->src_addr);

	if (port)
		*port = 0;
	info->tx_attr->op_flags = 0;
	info->rx_attr->op_flags = 0;
	/* a message follows its write */
	info->tx_attr->msg_order |= FI_ORDER_SAS | FI_ORDER_SAW;
	info->rx_attr->msg_order |= FI_ORDER_SAS | FI_ORDER_SAW;
	info->tx_attr->size = CW_TX;
	info->rx_attr->size = CW_RX + 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->ep_attr->tx_ctx_cnt = 1;
}

static struct fi_info *cw_info(const struct mrrc_cw_ep *cw,
			       const struct sockaddr *dest)
{
	struct fi_info *info = fi_dupinfo(cw->ep->info);

	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = NULL;
	info->dest_addrlen = 0;
	cw_info_adapt(info);
	if (!dest)
		return info;
	info->dest_addrlen = cw_addr_len(dest);
	info->dest_addr = malloc(info->dest_addrlen);
	if (!info->dest_addr) {
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, dest, info->dest_addrlen);
	return info;
}

static int64_t cw_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void cw_meet(struct mrrc_cw_ep *cw, enum cw_phase phase)
{
	if (phase == CW_UP) {
		atomic_fetch_sub(&cw->group->meeting, 1);
	} else {
		atomic_fetch_add(&cw->group->meeting, 1);
		cw->meet_by = cw_now_ms() + CW_MEET_MS;
	}
	cw->phase = phase;
}

/* Who does not come need not be waited for. */
static void cw_meeting(struct mrrc_cw_group *group)
{
	struct mrrc_cw_ep *cw;
	int64_t now = cw_now_ms();

	TAILQ_FOREACH(cw, &group->eps, link) {
		if ((cw->phase == CW_LISTENING ||
		     cw->phase == CW_CONNECTING) && now > cw->meet_by)
			mrrc_cw_lose(cw, "the peer does not come");
	}
}

/*
 * The group's listener, at any of this host's addresses. It stays as long as
 * the group: tcp (1.17) looks into one that is closed, for who is about to
 * connect to it. Lock held.
 */
static int cw_listener_open(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_group *group = cw->group;
	struct sockaddr_storage addr = { .ss_family = AF_INET };
	size_t len = sizeof(addr);
	struct fi_info *info;
	int ret;

	info = cw_info(cw, NULL);
	if (!info)
		return -FI_ENOMEM;
	if (info->addr_format == FI_SOCKADDR_IN6 ||
	    (info->src_addr &&
	     ((struct sockaddr *) info->src_addr)->sa_family == AF_INET6))
		addr.ss_family = AF_INET6;
	free(info->src_addr);
	info->src_addrlen = cw_addr_len((struct sockaddr *) &addr);
	info->src_addr = calloc(1, info->src_addrlen);
	if (info->src_addr)
		memcpy(info->src_addr, &addr, info->src_addrlen);
	ret = fi_passive_ep(cw->ep->domain->fabric->core, info, &group->pep,
			    NULL);
	fi_freeinfo(info);
	if (ret) {
		group->pep = NULL;
		return ret;
	}
	ret = fi_pep_bind(group->pep, &group->eq->fid, 0);
	if (!ret)
		ret = fi_listen(group->pep);
	if (!ret)
		ret = fi_getname(&group->pep->fid, &addr, &len);
	if (!ret && !cw_port(&addr))
		ret = -FI_EOPNOTSUPP;
	if (ret) {
		fi_close(&group->pep->fid);
		group->pep = NULL;
		return ret;
	}
	group->port = *cw_port(&addr);
	return 0;
}

/* For the peer's; *port in network byte order. Lock held. */
static int cw_listen(struct mrrc_cw_ep *cw, uint16_t *port)
{
	int ret = 0;

	if (!cw->group->pep)
		ret = cw_listener_open(cw);
	if (ret)
		return ret;
	*port = cw->group->port;
	cw_meet(cw, CW_LISTENING);
	return 0;
}

/* The peer told where it listens. Lock held. */
static int cw_connect(struct mrrc_cw_ep *cw, const struct cw_mark *mark)
{
	struct cw_mark mine;
	struct fi_info *info;
	int ret;

	cw->cookie = cw_mark_cookie(mark);
	cw->sm.attr.cookie = cw->sm.attr.my_cookie = cw->cookie;
	*cw_port(&cw->dest) = mark->port;
	info = cw_info(cw, (struct sockaddr *) &cw->dest);
	if (!info)
		return -FI_ENOMEM;
	ret = mrrc_cw_link_open(cw, info);
	if (!ret) {
		cw_mark_make(&mine, CW_MARK_CONTROL, 0, cw->cookie, 0);
		cw_meet(cw, CW_CONNECTING);
		ret = fi_connect(cw->ctl, info->dest_addr, &mine,
				 sizeof(mine));
	}
	fi_freeinfo(info);
	return ret;
}

/* Somebody came to where we listen: by the cookie, for whom? Lock held. */
static void cw_connreq(struct mrrc_cw_group *group, struct fi_info *info,
		       const void *data, size_t len)
{
	struct mrrc_cw_ep *cw = NULL;
	struct cw_mark mark;
	int ret;

	if (cw_mark_read(data, len, CW_MARK_CONTROL, &mark)) {
		TAILQ_FOREACH(cw, &group->eps, link) {
			if (cw->phase == CW_LISTENING && !cw->ctl &&
			    cw->cookie == cw_mark_cookie(&mark))
				break;
		}
	}
	if (!cw) {
		MRRC_WARN(EP_CTRL, "a stranger's connection is refused\n");
		fi_reject(group->pep, info->handle, NULL, 0);
		return;
	}
	cw_info_adapt(info);
	ret = mrrc_cw_link_open(cw, info);
	if (ret)
		fi_reject(group->pep, info->handle, NULL, 0);
	else
		ret = fi_accept(cw->ctl, NULL, 0);
	if (ret)
		mrrc_cw_lose(cw, fi_strerror(-ret));
}

static void cw_connected(struct mrrc_cw_ep *cw)
{
	if (cw->phase != CW_LISTENING && cw->phase != CW_CONNECTING)
		return;
	cw_meet(cw, CW_UP);
	mrrc_cw_hello(&cw->sm);
	mrrc_cw_after(cw);
}

/* Whose event: an object named by it may be closed. */
static struct mrrc_cw_ep *cw_find(struct mrrc_cw_group *group,
				  const struct fid *fid)
{
	struct mrrc_cw_ep *cw;

	TAILQ_FOREACH(cw, &group->eps, link) {
		if (cw->ctl && fid == &cw->ctl->fid)
			return cw;
	}
	return NULL;
}

static void cw_event(struct mrrc_cw_group *group, uint32_t event,
		     struct fi_eq_cm_entry *entry, size_t len)
{
	struct mrrc_cw_ep *cw = cw_find(group, entry->fid);

	switch (event) {
	case FI_CONNREQ:
		if (group->pep && entry->info)
			cw_connreq(group, entry->info, entry->data,
				   len - sizeof(*entry));
		fi_freeinfo(entry->info);
		break;
	case FI_CONNECTED:
		if (cw)
			cw_connected(cw);
		break;
	case FI_SHUTDOWN:
		if (cw)
			mrrc_cw_lose(cw, "the peer has gone");
		break;
	default:
		break;
	}
}

void mrrc_cw_group_events(struct mrrc_cw_group *group)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + CW_EVENT_DATA];
	} entry;
	struct fi_eq_err_entry err;
	struct mrrc_cw_ep *cw;
	uint32_t event;
	ssize_t ret;

	if (atomic_load(&group->meeting))
		cw_meeting(group);
	for (;;) {
		ret = fi_eq_read(group->eq, &event, &entry, sizeof(entry), 0);
		if (ret >= (ssize_t) sizeof(entry.cm)) {
			cw_event(group, event, &entry.cm, ret);
			continue;
		}
		if (ret != -FI_EAVAIL)
			return;
		memset(&err, 0, sizeof(err));
		if (fi_eq_readerr(group->eq, &err, 0) <= 0)
			return;
		/* a listener goes on: one who came did not stay */
		cw = cw_find(group, err.fid);
		if (cw)
			mrrc_cw_lose(cw, fi_strerror(err.err));
	}
}

/* ---- the application's connection ---------------------------------------- */

/* mark, then the application's data: malloc'd */
static void *cw_with_mark(const struct cw_mark *mark, const void *param,
			  size_t len)
{
	char *data = malloc(sizeof(*mark) + len);

	if (!data)
		return NULL;
	memcpy(data, mark, sizeof(*mark));
	if (len)
		memcpy(data + sizeof(*mark), param, len);
	return data;
}

int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen)
{
	const struct sockaddr *dest = addr ? addr : ep->info->dest_addr;
	struct cw_mark mark;
	void *data;
	int ret;

	if (!dest || !cw_port((void *) dest) || paramlen > UINT16_MAX)
		return -FI_EINVAL;
	memcpy(&ep->cw->dest, dest, cw_addr_len(dest));
	cw_mark_make(&mark, CW_MARK_CONNECT, paramlen, 0, 0);
	data = cw_with_mark(&mark, param, paramlen);
	if (!data)
		return -FI_ENOMEM;
	ret = fi_connect(ep->core, addr, data, paramlen + sizeof(mark));
	free(data);
	return ret;
}

int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen)
{
	struct mrrc_cw_ep *cw = ep->cw;
	struct cw_mark mark;
	uint16_t port = 0;
	void *data;
	int ret;

	if (!ep->cw_marked) {
		cw->phase = CW_ALONE;
		return fi_accept(ep->core, param, paramlen);
	}
	if (paramlen > UINT16_MAX)
		return -FI_EINVAL;
	if (getrandom(&cw->cookie, sizeof(cw->cookie), 0) !=
	    sizeof(cw->cookie))
		return -FI_EIO;
	cw->accepts = true;
	pthread_mutex_lock(&cw->group->lock);
	cw->sm.attr.cookie = cw->sm.attr.my_cookie = cw->cookie;
	ret = cw_listen(cw, &port);
	mrrc_cw_group_unlock(cw->group);
	if (ret) {
		MRRC_WARN(EP_CTRL, "cannot listen for conditional writes: "
			  "%s\n", fi_strerror(-ret));
		return ret;
	}
	cw_mark_make(&mark, CW_MARK_ACCEPT, paramlen, cw->cookie, port);
	data = cw_with_mark(&mark, param, paramlen);
	if (!data)
		return -FI_ENOMEM;
	ret = fi_accept(ep->core, data, paramlen + sizeof(mark));
	free(data);
	return ret;
}

void mrrc_cw_shutdown(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw = ep->cw;

	pthread_mutex_lock(&cw->group->lock);
	mrrc_cw_lose(cw, "shut down");
	mrrc_cw_group_unlock(cw->group);
}

/* The connecting side's. mark: NULL if the peer does not take part */
static void cw_accepted(struct mrrc_ep *ep, const struct cw_mark *mark)
{
	struct mrrc_cw_ep *cw = ep->cw;
	int ret;

	pthread_mutex_lock(&cw->group->lock);
	if (cw->phase == CW_OPTED && !mark) {
		cw->phase = CW_ALONE;
	} else if (cw->phase == CW_OPTED) {
		ret = cw_connect(cw, mark);
		if (ret)
			mrrc_cw_lose(cw, fi_strerror(-ret));
	}
	mrrc_cw_group_unlock(cw->group);
}

/*
 * The application's connection is gone. Once the control endpoints have met
 * they know by themselves, after what is still under way has arrived.
 */
void mrrc_cw_gone(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw = ep->cw;

	pthread_mutex_lock(&cw->group->lock);
	if (cw->phase == CW_LISTENING || cw->phase == CW_CONNECTING)
		mrrc_cw_lose(cw, "the peer has gone before it came");
	mrrc_cw_group_unlock(cw->group);
}

/* An event with our fids in it, of the application. Its length without us */
static size_t cw_eq_event(struct mrrc_eq *eq, uint32_t event,
			  struct fi_eq_cm_entry *entry, size_t len, bool peek)
{
	size_t data_len = len - sizeof(*entry);
	struct mrrc_ep *ep = NULL;
	struct cw_mark mark;
	bool marked;

	if (mrrc_fid_core(entry->fid) && entry->fid->fclass == FI_CLASS_EP)
		ep = container_of(entry->fid, struct mrrc_ep, ep.fid);
	if (event == FI_CONNREQ && entry->info) {
		marked = cw_mark_read(entry->data, data_len, CW_MARK_CONNECT,
				      &mark);
		cw_mark_note(eq->fabric, entry->info->handle, marked);
	} else if (event == FI_SHUTDOWN && ep && ep->cw && !peek) {
		mrrc_cw_gone(ep);
		return len;
	} else if (event == FI_CONNECTED && ep && ep->cw &&
		   !ep->cw->accepts) {
		marked = cw_mark_read(entry->data, data_len, CW_MARK_ACCEPT,
				      &mark);
		if (!peek)
			cw_accepted(ep, marked ? &mark : NULL);
	} else {
		return len;
	}
	if (!marked)
		return len;
	data_len = ntohs(mark.len);
	memmove(entry->data, entry->data + sizeof(mark), data_len);
	return sizeof(*entry) + data_len;
}

ssize_t mrrc_cw_eq_read(struct mrrc_eq *eq, uint32_t *event, void *buf,
			size_t len, bool wait, int timeout, uint64_t flags)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + CW_EVENT_DATA];
	} entry;
	size_t room = len > sizeof(entry) ? sizeof(entry) : len;
	uint32_t core_event = 0;
	ssize_t ret;

	/* who has room for a connection's event gets it without our part */
	if (buf && len >= sizeof(entry.cm))
		room = sizeof(entry);
	ret = wait ? fi_eq_sread(eq->core, &core_event, &entry, room, timeout,
				 flags) :
		     fi_eq_read(eq->core, &core_event, &entry, room, flags);
	if (ret < 0)
		return ret;
	mrrc_eq_from_core(eq, core_event, &entry, ret);
	if (core_event <= FI_JOIN_COMPLETE &&
	    ret >= (ssize_t) sizeof(entry.cm))
		ret = cw_eq_event(eq, core_event, &entry.cm, ret,
				  flags & FI_PEEK);
	if (event)
		*event = core_event;
	if (!buf)
		return 0;
	if ((size_t) ret > len)
		ret = len;
	memcpy(buf, &entry, ret);
	return ret;
}

/* ---- opting in ----------------------------------------------------------- */

static int cw_enable_pep(struct mrrc_pep *pep)
{
	if (!pep->eq) {
		MRRC_WARN(EP_CTRL, "fi_cw_enable() comes after the listener's "
			  "event queue is bound\n");
		return -FI_ENOEQ;
	}
	pep->cw = true;
	atomic_store(&pep->eq->cw, true);
	return 0;
}

/* Connection requests of verbs have addresses of another format than said. */
static bool cw_inet(const struct fi_info *info)
{
	const struct sockaddr *addr = info->src_addr ? info->src_addr :
						       info->dest_addr;

	if (addr)
		return addr->sa_family == AF_INET ||
		       addr->sa_family == AF_INET6;
	return info->addr_format == FI_SOCKADDR ||
	       info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

static int cw_check_ep(const struct mrrc_ep *ep)
{
	const int no_modes = FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_RMA_EVENT;
	const struct fi_info *info = ep->info;
	const char *why = NULL;

	if (ep->connecting)
		return -FI_EBUSY;
	if (!ep->eq)
		return -FI_ENOEQ;
	if (!ep->tx.cq || !ep->rx.cq)
		return -FI_ENOCQ;
	if (!info || info->ep_attr->type != FI_EP_MSG)
		why = "an endpoint of type FI_EP_MSG";
	else if (!strcasecmp(ep->domain->fabric->core_prov_name, "verbs"))
		why = "another core provider than verbs, so far";
	else if (ep->shared_rx)
		why = "an endpoint without shared receive context";
	else if (!cw_inet(info))
		why = "addresses of FI_SOCKADDR_IN or FI_SOCKADDR_IN6";
	else if (!ep->core->rma || !(info->caps & FI_RMA))
		why = "an endpoint with FI_RMA";
	else if (ep->domain->reg.mr_mode & no_modes)
		why = "a core with simple registrations";
	if (!why)
		return 0;
	MRRC_WARN(EP_CTRL, "conditional writes need %s (%s)\n", why,
		  info ? fi_tostr(&info->addr_format, FI_TYPE_ADDR_FORMAT) :
			 "unknown");
	return -FI_EOPNOTSUPP;
}

static int cw_enable_ep(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw;
	int ret;

	if (ep->alias_of)
		return -FI_EINVAL;
	if (ep->cw)
		return 0;
	ret = cw_check_ep(ep);
	if (ret)
		return ret;
	ret = mrrc_cw_domain_open(ep->domain);
	if (!ret)
		ret = mrrc_cw_cq_join(ep->tx.cq);
	if (!ret)
		ret = mrrc_cw_cq_join(ep->rx.cq);
	if (!ret)
		ret = mrrc_cw_auto_start(ep->domain, ep->info);
	if (ret)
		return ret;
	cw = calloc(1, sizeof(*cw));
	if (!cw)
		return -FI_ENOMEM;
	cw->ep = ep;
	STAILQ_INIT(&cw->empty);
	ret = mrrc_cw_group_join(cw);
	if (ret) {
		free(cw);
		return ret;
	}
	ep->cw = cw;
	atomic_store(&ep->eq->cw, true);
	return 0;
}

int mrrc_cw_enable(struct fid *fid, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	switch (fid->fclass) {
	case FI_CLASS_PEP:
		return cw_enable_pep(container_of(fid, struct mrrc_pep,
						  pep.fid));
	case FI_CLASS_EP:
		return cw_enable_ep(container_of(fid, struct mrrc_ep, ep.fid));
	default:
		return -FI_EOPNOTSUPP;
	}
}
