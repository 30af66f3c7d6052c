/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The format of recorded requests (trace.h).
 */
#include "core/text/trace.h"

#include <endian.h>
#include <string.h>

static const struct {
	const char *name;
	const char *help;
} trace_ops[] = {
#define X(id, name, help) { name, help },
	MRRC_TRACE_OPS(X)
#undef X
}, trace_results[] = {
#define X(id, name, help) { name, help },
	MRRC_TRACE_RESULTS(X)
#undef X
};

const char *mrrc_trace_op_name(enum mrrc_trace_op op)
{
	return op < MRRC_TRACE_OP_CNT ? trace_ops[op].name : "?";
}

const char *mrrc_trace_op_help(enum mrrc_trace_op op)
{
	return op < MRRC_TRACE_OP_CNT ? trace_ops[op].help : "";
}

const char *mrrc_trace_result_name(enum mrrc_trace_result result)
{
	return result < MRRC_TRACE_RESULT_CNT ? trace_results[result].name :
						"?";
}

const char *mrrc_trace_result_help(enum mrrc_trace_result result)
{
	return result < MRRC_TRACE_RESULT_CNT ? trace_results[result].help : "";
}

void mrrc_trace_swap_rec(struct mrrc_trace_rec *rec)
{
	rec->begin = le64toh(rec->begin);
	rec->end = le64toh(rec->end);
	rec->addr = le64toh(rec->addr);
	rec->len = le64toh(rec->len);
	rec->peer = le64toh(rec->peer);
	rec->site = le64toh(rec->site);
	rec->cost = le64toh(rec->cost);
	rec->thread = le32toh(rec->thread);
	rec->domain = le16toh(rec->domain);
}

void mrrc_trace_swap_cost(struct mrrc_trace_cost *cost)
{
	cost->reg_page = le64toh(cost->reg_page);
	cost->reg = le64toh(cost->reg);
	cost->dereg_page = le64toh(cost->dereg_page);
	cost->dereg = le64toh(cost->dereg);
	cost->copy_page = le64toh(cost->copy_page);
	cost->copy = le64toh(cost->copy);
	cost->page = le32toh(cost->page);
	cost->batch = le32toh(cost->batch);
}

void mrrc_trace_swap_head(struct mrrc_trace_head *head)
{
	struct mrrc_trace_domain *domain;
	int i;

	head->version = le32toh(head->version);
	head->head_size = le32toh(head->head_size);
	head->rec_size = le32toh(head->rec_size);
	head->chunk_size = le32toh(head->chunk_size);
	head->pid = le32toh(head->pid);
	head->page = le32toh(head->page);
	head->start = le64toh(head->start);
	head->max_bytes = le64toh(head->max_bytes);
	head->dropped = le64toh(head->dropped);
	head->domains = le32toh(head->domains);
	for (domain = head->domain; domain < head->domain + MRRC_TRACE_DOMAINS;
	     domain++) {
		domain->max_bytes = le64toh(domain->max_bytes);
		domain->max_regions = le64toh(domain->max_regions);
	}
	for (i = 0; i < MRRC_TRACE_COSTS; i++)
		mrrc_trace_swap_cost(&head->cost[i]);
}

static uint64_t trace_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double trace_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

void mrrc_trace_put_cost(const struct mrrc_cost *cost,
			 struct mrrc_trace_cost *to)
{
	*to = (struct mrrc_trace_cost){
		.reg_page = trace_bits(cost->reg_page),
		.reg = trace_bits(cost->reg),
		.dereg_page = trace_bits(cost->dereg_page),
		.dereg = trace_bits(cost->dereg),
		.copy_page = trace_bits(cost->copy_page),
		.copy = trace_bits(cost->copy),
		.page = cost->page,
		.batch = cost->batch,
	};
}

bool mrrc_trace_get_cost(const struct mrrc_trace_cost *from,
			 struct mrrc_cost *out)
{
	const struct mrrc_cost cost = {
		.reg_page = trace_double(from->reg_page),
		.reg = trace_double(from->reg),
		.dereg_page = trace_double(from->dereg_page),
		.dereg = trace_double(from->dereg),
		.copy_page = trace_double(from->copy_page),
		.copy = trace_double(from->copy),
		.page = from->page,
		.batch = from->batch,
	};

	if (!from->page || mrrc_cost_check(&cost))
		return false;
	*out = cost;
	return true;
}

const char *mrrc_trace_check_rec(const struct mrrc_trace_rec *rec)
{
	if (!rec->op || rec->op >= MRRC_TRACE_OP_CNT)
		return "unknown operation";
	if (mrrc_trace_result(rec) >= MRRC_TRACE_RESULT_CNT)
		return "unknown result";
	if (mrrc_trace_peer(rec) >= MRRC_TRACE_PEER_CNT)
		return "unknown kind of peer";
	if (rec->begin & MRRC_TRACE_OPEN)
		return "begin beyond 2^63";
	return NULL;
}

static bool trace_text(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

const char *mrrc_trace_check_head(const struct mrrc_trace_head *head)
{
	const struct mrrc_trace_domain *domain;
	struct mrrc_cost cost;
	int i;

	if (memcmp(head->magic, MRRC_TRACE_MAGIC, sizeof(head->magic)))
		return "not a recorded trace";
	if (head->version != MRRC_TRACE_VERSION)
		return "recorded by another version of ofi_mrrc";
	if (head->head_size != MRRC_TRACE_HEAD ||
	    head->rec_size != sizeof(struct mrrc_trace_rec) ||
	    head->chunk_size != MRRC_TRACE_CHUNK ||
	    !trace_text(head->program, sizeof(head->program)))
		return "damaged header";
	for (domain = head->domain; domain < head->domain + MRRC_TRACE_DOMAINS;
	     domain++) {
		if (!trace_text(domain->provider, sizeof(domain->provider)) ||
		    !trace_text(domain->policy, sizeof(domain->policy)) ||
		    !trace_text(domain->monitor, sizeof(domain->monitor)))
			return "damaged header";
	}
	for (i = 0; i < MRRC_TRACE_COSTS; i++) {
		if (head->cost[i].page &&
		    !mrrc_trace_get_cost(&head->cost[i], &cost))
			return "damaged header";
	}
	return NULL;
}
