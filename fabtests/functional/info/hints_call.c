/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes random calls of fi_getinfo() (hints.c). A call depends on the round's
 * random numbers alone. Hints begin with few fields, as many applications' do,
 * or as an info that the provider gave, and get some random changes.
 */
#include "info/hints_call.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>

#define ANY_MR_MODE 0xffc /* FI_MR_LOCAL ... FI_MR_COLLECTIVE */

static bool once_in(unsigned n)
{
	return ft_twin_once_in(n);
}

static uint64_t below(uint64_t n)
{
	return ft_twin_rand() % n;
}

#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof(*(list)))])

/* ---- attributes ------------------------------------------------------- */

#define ATTR(part, type, member, kind)                                        \
	{                                                                     \
#part "." #member, part, kind, offsetof(struct type, member), \
			sizeof(((struct type *) NULL)->member)                \
	}

const struct attr attrs[] = {
	ATTR(INFO, fi_info, caps, CAPS),
	ATTR(INFO, fi_info, mode, MODE),
	ATTR(INFO, fi_info, addr_format, FORMAT),
	ATTR(TX, fi_tx_attr, caps, CAPS),
	ATTR(TX, fi_tx_attr, mode, MODE),
	ATTR(TX, fi_tx_attr, op_flags, OP_FLAGS),
	ATTR(TX, fi_tx_attr, msg_order, ORDER),
	ATTR(TX, fi_tx_attr, comp_order, ORDER),
	ATTR(TX, fi_tx_attr, inject_size, COUNT),
	ATTR(TX, fi_tx_attr, size, COUNT),
	ATTR(TX, fi_tx_attr, iov_limit, COUNT),
	ATTR(TX, fi_tx_attr, rma_iov_limit, COUNT),
	ATTR(TX, fi_tx_attr, tclass, COUNT),
	ATTR(RX, fi_rx_attr, caps, CAPS),
	ATTR(RX, fi_rx_attr, mode, MODE),
	ATTR(RX, fi_rx_attr, op_flags, OP_FLAGS),
	ATTR(RX, fi_rx_attr, msg_order, ORDER),
	ATTR(RX, fi_rx_attr, comp_order, ORDER),
	ATTR(RX, fi_rx_attr, total_buffered_recv, COUNT),
	ATTR(RX, fi_rx_attr, size, COUNT),
	ATTR(RX, fi_rx_attr, iov_limit, COUNT),
	ATTR(EP, fi_ep_attr, type, ENUM),
	ATTR(EP, fi_ep_attr, protocol, ENUM),
	ATTR(EP, fi_ep_attr, protocol_version, COUNT),
	ATTR(EP, fi_ep_attr, max_msg_size, COUNT),
	ATTR(EP, fi_ep_attr, msg_prefix_size, COUNT),
	ATTR(EP, fi_ep_attr, max_order_raw_size, COUNT),
	ATTR(EP, fi_ep_attr, max_order_war_size, COUNT),
	ATTR(EP, fi_ep_attr, max_order_waw_size, COUNT),
	ATTR(EP, fi_ep_attr, mem_tag_format, COUNT),
	ATTR(EP, fi_ep_attr, tx_ctx_cnt, COUNT),
	ATTR(EP, fi_ep_attr, rx_ctx_cnt, COUNT),
	ATTR(EP, fi_ep_attr, auth_key_size, COUNT),
	ATTR(DOMAIN, fi_domain_attr, threading, ENUM),
	ATTR(DOMAIN, fi_domain_attr, control_progress, ENUM),
	ATTR(DOMAIN, fi_domain_attr, data_progress, ENUM),
	ATTR(DOMAIN, fi_domain_attr, resource_mgmt, ENUM),
	ATTR(DOMAIN, fi_domain_attr, av_type, ENUM),
	ATTR(DOMAIN, fi_domain_attr, mr_mode, MR_MODE),
	ATTR(DOMAIN, fi_domain_attr, mr_key_size, COUNT),
	ATTR(DOMAIN, fi_domain_attr, cq_data_size, COUNT),
	ATTR(DOMAIN, fi_domain_attr, cq_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, ep_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, tx_ctx_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, rx_ctx_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, max_ep_tx_ctx, COUNT),
	ATTR(DOMAIN, fi_domain_attr, max_ep_rx_ctx, COUNT),
	ATTR(DOMAIN, fi_domain_attr, max_ep_stx_ctx, COUNT),
	ATTR(DOMAIN, fi_domain_attr, max_ep_srx_ctx, COUNT),
	ATTR(DOMAIN, fi_domain_attr, cntr_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, mr_iov_limit, COUNT),
	ATTR(DOMAIN, fi_domain_attr, caps, CAPS),
	ATTR(DOMAIN, fi_domain_attr, mode, MODE),
	ATTR(DOMAIN, fi_domain_attr, auth_key_size, COUNT),
	ATTR(DOMAIN, fi_domain_attr, max_err_data, COUNT),
	ATTR(DOMAIN, fi_domain_attr, mr_cnt, COUNT),
	ATTR(DOMAIN, fi_domain_attr, tclass, COUNT),
	ATTR(FABRIC, fi_fabric_attr, prov_version, VERSION),
	ATTR(FABRIC, fi_fabric_attr, api_version, VERSION),
};
const size_t attr_cnt = sizeof(attrs) / sizeof(*attrs);

void *attr_of(const struct fi_info *info, const struct attr *attr)
{
	void *parts[] = {
		[INFO] = (void *) info,	      [TX] = info->tx_attr,
		[RX] = info->rx_attr,	      [EP] = info->ep_attr,
		[DOMAIN] = info->domain_attr, [FABRIC] = info->fabric_attr,
	};

	return parts[attr->part] ? (char *) parts[attr->part] + attr->offset :
				   NULL;
}

uint64_t attr_get(const struct fi_info *info, const struct attr *attr)
{
	const void *at = attr_of(info, attr);

	if (!at)
		return 0;
	return attr->size == 8 ? *(const uint64_t *) at :
				 *(const uint32_t *) at;
}

static void put(struct fi_info *info, const struct attr *attr, uint64_t value)
{
	void *at = attr_of(info, attr);

	if (!at)
		return;
	if (attr->size == 8)
		*(uint64_t *) at = value;
	else
		*(uint32_t *) at = (uint32_t) value;
}

/* ---- random calls ----------------------------------------------------- */

static uint64_t random_caps(void)
{
	static const uint64_t caps[] = {
		FI_MSG,
		FI_RMA,
		FI_TAGGED,
		FI_ATOMIC,
		FI_MULTICAST,
		FI_NAMED_RX_CTX,
		FI_DIRECTED_RECV,
		FI_VARIABLE_MSG,
		FI_HMEM,
		FI_COLLECTIVE,
		FI_READ,
		FI_WRITE,
		FI_RECV,
		FI_SEND,
		FI_REMOTE_READ,
		FI_REMOTE_WRITE,
		FI_MULTI_RECV,
		FI_REMOTE_COMM,
		FI_LOCAL_COMM,
		FI_FENCE,
		FI_RMA_EVENT,
		FI_SOURCE,
		FI_SOURCE_ERR,
		FI_TRIGGER,
		FI_RMA_PMEM,
		FI_MSG | FI_RMA,
		FI_MSG | FI_TAGGED,
		FI_MSG | FI_RMA | FI_READ,
	};

	return once_in(10) ? 1ULL << below(64) : ONE_OF(caps);
}

static uint64_t random_op_flags(void)
{
	static const uint64_t flags[] = {
		FI_COMPLETION,
		FI_INJECT,
		FI_INJECT_COMPLETE,
		FI_TRANSMIT_COMPLETE,
		FI_DELIVERY_COMPLETE,
		FI_COMMIT_COMPLETE,
		FI_MULTI_RECV,
		FI_MORE,
		FI_FENCE,
		FI_REMOTE_CQ_DATA,
	};

	return once_in(10) ? 1ULL << below(64) : ONE_OF(flags);
}

static uint64_t random_count(uint64_t old)
{
	static const uint64_t counts[] = {
		0,     1,	2,	    4,		8,
		16,    64,	128,	    256,	1024,
		65536, 1 << 20, UINT32_MAX, UINT64_MAX, FI_SHARED_CONTEXT,
	};

	switch (below(4)) {
	case 0:
		return old + 1;
	case 1:
		return old ? old - 1 : 0;
	default:
		return ONE_OF(counts);
	}
}

static uint64_t random_value(const struct attr *attr, uint64_t old)
{
	static const uint32_t formats[] = {
		FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6,
		FI_SOCKADDR_IB,	  FI_ADDR_STR, FI_ADDR_PSMX,   77,
	};
	static const uint32_t versions[] = {
		0,
		FI_VERSION(0, 1),
		FI_VERSION(1, 0),
		FI_VERSION(1, 5),
		FI_VERSION(1, 17),
		FI_VERSION(117, 0),
		FI_VERSION(999, 0),
	};

	switch (attr->kind) {
	case CAPS:
		return once_in(3) ? old ^ random_caps() : old | random_caps();
	case MODE:
		return once_in(4) ? ~0ULL : old ^ 1ULL << (50 + below(10));
	case ORDER:
		return once_in(4) ? old ^ 1ULL << below(64) :
				    old | 1ULL << below(12);
	case OP_FLAGS:
		return old ^ random_op_flags();
	case MR_MODE:
		if (once_in(3))
			return ANY_MR_MODE;
		return once_in(4) ? below(4) : old ^ 1ULL << below(12);
	case ENUM:
		return once_in(8) ? 99 - below(200) : below(7);
	case FORMAT:
		return ONE_OF(formats);
	case VERSION:
		return ONE_OF(versions);
	default:
		return random_count(old);
	}
}

static void random_name(char **name)
{
	static const char *const names[] = { "lo", "eth0", "127.0.0.0/8",
					     "no such name", "" };

	free(*name);
	*name = strdup(ONE_OF(names));
}

static void random_addr(void **addr, size_t *len, uint32_t *format)
{
	struct sockaddr_in6 *in6 = calloc(1, sizeof(*in6));
	struct sockaddr_in *in = (struct sockaddr_in *) in6;

	FT_CHECK(in6, "no memory");
	free(*addr);
	*addr = in6;
	if (once_in(8)) {
		*len = sizeof(*in6);
		in6->sin6_family = once_in(4) ? 99 : AF_INET6;
		in6->sin6_addr = in6addr_loopback;
		*format = FI_SOCKADDR_IN6;
		return;
	}
	*len = sizeof(*in);
	in->sin_family = once_in(16) ? 99 : AF_INET;
	in->sin_addr.s_addr = htonl(once_in(4) ? 0x0a090807 : INADDR_LOOPBACK);
	in->sin_port = htons(once_in(2) ? 0 : 4711);
	if (once_in(2))
		*format = once_in(2) ? FI_SOCKADDR : FI_SOCKADDR_IN;
}

static void drop_part(struct fi_info *hints, bool may_drop_fabric)
{
	switch (below(may_drop_fabric ? 5 : 4)) {
	case 0:
		free(hints->tx_attr);
		hints->tx_attr = NULL;
		break;
	case 1:
		free(hints->rx_attr);
		hints->rx_attr = NULL;
		break;
	case 2:
		if (hints->ep_attr)
			free(hints->ep_attr->auth_key);
		free(hints->ep_attr);
		hints->ep_attr = NULL;
		break;
	case 3:
		if (hints->domain_attr) {
			free(hints->domain_attr->name);
			free(hints->domain_attr->auth_key);
		}
		free(hints->domain_attr);
		hints->domain_attr = NULL;
		break;
	case 4:
		/* the provider's name goes with the fabric attributes */
		if (hints->fabric_attr) {
			free(hints->fabric_attr->name);
			free(hints->fabric_attr->prov_name);
		}
		free(hints->fabric_attr);
		hints->fabric_attr = NULL;
	}
}

static void mutate(struct fi_info *hints, bool may_drop_fabric)
{
	const struct attr *attr;

	switch (below(16)) {
	case 0:
		drop_part(hints, may_drop_fabric);
		return;
	case 1:
		if (hints->domain_attr)
			random_name(&hints->domain_attr->name);
		return;
	case 2:
		if (hints->fabric_attr && once_in(4))
			random_name(&hints->fabric_attr->name);
		return;
	case 3:
		random_addr(&hints->src_addr, &hints->src_addrlen,
			    &hints->addr_format);
		return;
	case 4:
		random_addr(&hints->dest_addr, &hints->dest_addrlen,
			    &hints->addr_format);
		return;
	default:
		attr = &ONE_OF(attrs);
		put(hints, attr, random_value(attr, attr_get(hints, attr)));
	}
}

static char *provider(enum ft_side side, enum naming naming)
{
	char name[128];
	size_t i;

	switch (naming) {
	case IN_ENVIRONMENT:
		return NULL;
	case UNKNOWN_CORE:
		return strdup(side == FT_OURS ? "nosuch;ofi_mrrc" : "nosuch");
	case CORE_IN_HINTS:
		side = FT_RAW;
		break;
	default:
		break;
	}
	snprintf(name, sizeof(name), "%s", ft_twin_prov(side));
	for (i = 0; naming == UPPER_CASE && name[i]; i++)
		name[i] = (char) toupper(name[i]);
	return strdup(name);
}

unsigned collect(enum ft_side side, struct fi_info *list,
		 struct fi_info *infos[INFOS_MAX])
{
	struct fi_info *info;
	unsigned n = 0;

	for (info = list; info; info = info->next) {
		if (side == FT_RAW && strcasecmp(info->fabric_attr->prov_name,
						 ft_twin_prov(side)))
			continue;
		FT_CHECK(n < INFOS_MAX, "more than %u infos", n);
		infos[n++] = info;
	}
	return n;
}

/*
 * Returns an info that this side offers, as an application would pass it back.
 */
static struct fi_info *an_answer(enum ft_side side, enum naming naming)
{
	/*
	 * keep the infos of this child: asking for infos takes longer than the
	 * test
	 */
	static struct fi_info *infos[INFOS_MAX];
	static unsigned n;
	struct fi_info *hints, *list;

	if (!n) {
		hints = fi_allocinfo();
		FT_CHECK(hints, "no memory");
		hints->mode = ~0ULL;
		hints->domain_attr->mr_mode = ANY_MR_MODE;
		hints->fabric_attr->prov_name = provider(side, IN_HINTS);
		FT_CALL(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &list));
		fi_freeinfo(hints);
		n = collect(side, list, infos);
		FT_CHECK(n, "no info of %s", ft_twin_prov(side));
	}
	hints = fi_dupinfo(infos[below(n)]);
	FT_CHECK(hints, "no memory");
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = provider(side, naming);
	return hints;
}

static struct fi_info *blank(enum ft_side side, enum naming naming)
{
	struct fi_info *hints = fi_allocinfo();

	FT_CHECK(hints, "no memory");
	hints->fabric_attr->prov_name = provider(side, naming);
	hints->mode = once_in(2) ? ~0ULL : 0;
	hints->domain_attr->mr_mode = once_in(2) ? ANY_MR_MODE : 0;
	hints->caps = once_in(2) ? FI_MSG : 0;
	if (once_in(2))
		hints->ep_attr->type = ft_ep_type();
	return hints;
}

void make_call(enum ft_side side, bool env, struct call *call)
{
	static const char *const nodes[] = { "127.0.0.1", "localhost", "::1",
					     "10.9.8.7" };
	static const char *const services[] = { "0", "4711", "no service",
						"99999" };
	unsigned mutations, i;

	memset(call, 0, sizeof(*call));
	call->version = fi_version();
	if (once_in(4))
		call->version = FI_VERSION(1, below(20));
	if (once_in(50))
		call->version = once_in(2) ? 0 : FI_VERSION(9, 0);
	if (once_in(4))
		call->node = ONE_OF(nodes);
	if (once_in(4))
		call->service = ONE_OF(services);
	if (once_in(8))
		call->flags |= FI_SOURCE;
	if (once_in(4))
		call->flags |= FI_NUMERICHOST;
	if (once_in(20))
		call->flags |= 1ULL << below(54);
	if ((call->flags & FI_NUMERICHOST) && once_in(20))
		call->node = "no address";

	if (env)
		call->naming = IN_ENVIRONMENT + below(ft_rxm() ? 2 : 3);
	else
		call->naming = once_in(10) ? UPPER_CASE :
			       once_in(50) ? UNKNOWN_CORE :
					     IN_HINTS;
	if (call->naming == IN_ENVIRONMENT && once_in(10))
		return;
	call->hints = once_in(2) ? blank(side, call->naming) :
				   an_answer(side, call->naming);
	mutations = once_in(10) ? below(20) : below(4);
	for (i = 0; i < mutations; i++)
		mutate(call->hints, call->naming == IN_ENVIRONMENT);
}
