/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_hints: makes the same random calls of fi_getinfo() to the raw core
 * provider and to ofi_mrrc over this provider. The results have to be equal,
 * attribute by attribute, except for the differences listed in whys[].
 *
 * Both sides' environments name the provider in FI_PROVIDER in the second half
 * of the rounds, where hints need not name the provider.
 */
#include "info/hints_call.h"

#define ROUNDS 10000

static unsigned half;	   /* first round with FI_PROVIDER */
static uint64_t threading; /* threading in the hints */

static void say_bytes(const char *key, const void *buf, size_t len)
{
	char hex[2 * 256 + 1] = "";
	size_t i;

	for (i = 0; buf && i < len && i < 256; i++)
		sprintf(hex + 2 * i, "%02x", ((const unsigned char *) buf)[i]);
	ft_twin_say(key, "%s %zu", buf ? hex : "NULL", len);
}

static void say_str(const char *key, const char *str)
{
	ft_twin_say(key, "%s", str ? str : "NULL");
}

static void say_info(unsigned n, const struct fi_info *info)
{
	char key[64];
	size_t i;

#define KEY(name) (snprintf(key, sizeof(key), "%u.%s", n, name), key)
	for (i = 0; i < attr_cnt; i++)
		if (attr_of(info, &attrs[i]))
			ft_twin_say(KEY(attrs[i].name), "%#" PRIx64,
				    attr_get(info, &attrs[i]));
	if (info->domain_attr && threading && threading <= FI_THREAD_ENDPOINT)
		ft_twin_say(KEY("threading"), "%s",
			    info->domain_attr->threading == threading ?
				    "as asked" :
				    "another");
	say_bytes(KEY("src_addr"), info->src_addr, info->src_addrlen);
	say_bytes(KEY("dest_addr"), info->dest_addr, info->dest_addrlen);
	say_str(KEY("handle"), info->handle ? "set" : NULL);
	say_str(KEY("nic"), info->nic ? "set" : NULL);
	if (info->domain_attr) {
		say_str(KEY("DOMAIN.name"), info->domain_attr->name);
		say_str(KEY("DOMAIN.domain"),
			info->domain_attr->domain ? "set" : NULL);
	}
	if (info->fabric_attr) {
		say_str(KEY("FABRIC.name"), info->fabric_attr->name);
		say_str(KEY("FABRIC.prov_name"), info->fabric_attr->prov_name);
		say_str(KEY("FABRIC.fabric"),
			info->fabric_attr->fabric ? "set" : NULL);
	}
#undef KEY
}

static void ask(enum ft_side side, unsigned round)
{
	struct fi_info *list = NULL, *infos[INFOS_MAX];
	struct call call;
	unsigned n, i;
	bool named;
	int ret;

	make_call(side, round >= half, &call);
	threading = call.hints && call.hints->domain_attr ?
			    call.hints->domain_attr->threading :
			    0;
	named = call.hints && call.hints->fabric_attr &&
		call.hints->fabric_attr->prov_name;
	ret = fi_getinfo(call.version, call.node, call.service, call.flags,
			 call.hints, &list);
	fi_freeinfo(call.hints);
	if (ret) {
		ft_twin_say("ret", "%d", ret);
		return;
	}
	n = collect(side, list, infos);
	ft_twin_say("ret", "%d", n ? 0 : -FI_ENODATA);
	if (n)
		ft_twin_say(named ? "infos" : "infos.unnamed", "%u", n);
	for (i = 0; i < n; i++)
		say_info(i, infos[i]);
	fi_freeinfo(list);
}

static void setup(enum ft_side side, unsigned round)
{
	if (round >= half)
		setenv("FI_PROVIDER", ft_twin_prov(side), 1);
	else
		unsetenv("FI_PROVIDER");
}

static void describe(unsigned round)
{
	struct call call;

	make_call(FT_OURS, round >= half, &call);
	fprintf(stderr, "  fi_getinfo(%u.%u, \"%s\", \"%s\", %#" PRIx64 ")%s\n",
		FI_MAJOR(call.version), FI_MINOR(call.version),
		call.node ? call.node : "NULL",
		call.service ? call.service : "NULL", call.flags,
		round >= half ? " with FI_PROVIDER" : "");
	if (call.hints)
		fprintf(stderr, "%s\n", fi_tostr(call.hints, FI_TYPE_INFO));
	else
		fprintf(stderr, "  without hints\n");
}

/* ---- explained differences -------------------------------------------- */

static bool our_name(unsigned round, const char *raw, const char *ours)
{
	size_t len = raw ? strlen(raw) : 0;

	return raw && ours && !strncmp(raw, ours, len) &&
	       !strcmp(ours + len, ";ofi_mrrc");
}

/* FI_THREAD_SAFE */
static bool raw_safe(unsigned round, const char *raw, const char *ours)
{
	return !strcmp(raw, "0x1");
}

static bool as_asked(unsigned round, const char *raw, const char *ours)
{
	return ours && !strcmp(ours, "as asked");
}

static bool rxm_has_more(unsigned round, const char *raw, const char *ours)
{
	return ft_rxm() && atoi(raw) > atoi(ours);
}

static struct ft_twin_why whys[] = {
	{ "infos.unnamed",
	  "ofi_rxm offers one variant more where FI_PROVIDER "
	  "alone names its core",
	  rxm_has_more, true, 0 },
	{ "*.DOMAIN.threading",
	  "what is FI_THREAD_SAFE is offered as the "
	  "level that was asked for",
	  raw_safe, false, 0 },
	{ "*.threading", "the same", as_asked, false, 0 },
	{ "*.FABRIC.prov_name", "the provider appends its name", our_name,
	  false, 0 },
	{ "*.FABRIC.prov_version", "each provider has its own", NULL, false,
	  0 },
	{ NULL, NULL, NULL, false, 0 },
};

int main(int argc, char **argv)
{
	struct ft_twin twin = {
		.limit_s = 60,
		.setup = setup,
		.round = ask,
		.describe = describe,
		.whys = whys,
	};
	struct ft_twin_result result;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("compares ofi_mrrc with a raw core");
	if (!ft_core("tcp") && !ft_core("net"))
		ft_skip("the differences that are explained are those of tcp "
			"and net");
	twin.rounds = ft_iters(ROUNDS);
	twin.batch = half = (twin.rounds + 1) / 2;
	ft_twin_run(&twin, &result);
	ft_log("%u calls, %u lines, %u with explained differences, %u in which "
	       "the raw core crashed",
	       result.rounds, result.lines, result.explained, result.raw_died);
	FT_CHECK(!result.failed, "%u of %u calls have unexplained differences",
		 result.failed, result.rounds);
	return ft_done();
}
