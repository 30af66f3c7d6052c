/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_versions: tests applications of several API versions. Structures have
 * grown at their ends: an older application's structure is neither read nor
 * written beyond its end, and a newer application gets the fields that it
 * expects. Objects that other providers would have to share are refused.
 */
#include "ft_mrrc.h"

#ifndef FI_AUTH_KEY /* libfabric has FI_AUTH_KEY since 1.20 */
#define FI_AUTH_KEY (1ULL << 57)
#endif
#ifdef FI_XPU /* libfabric has FI_XPU since 2.7 */
#include <rdma/fi_xpu.h>
#define XPU_CALLS
#else
#define FI_XPU (1ULL << 44)
#endif

#define LEN    (2 * FT_PAGE)
#define CANARY 0xa5
#define BEYOND 64 /* number of bytes examined after an entry */
/* the first version with appended fields */
#define API_LONGER   FI_VERSION(1, 19)
#define API_SRC_ADDR FI_VERSION(1, 20)

/* length of an error entry of API 1.5, which is the same in all versions */
#define ERR_LEN \
	(offsetof(struct fi_cq_err_entry, err_data_size) + sizeof(size_t))

#if FI_MAJOR_VERSION >= 2
#define MR_ATTR_LEN offsetof(struct fi_mr_attr, hmem_data)
#else
#define MR_ATTR_LEN sizeof(struct fi_mr_attr)
#endif

/*
 * length of a structure up to the last field that all versions have
 */
#define LEN_TO(type, last) \
	(offsetof(type, last) + sizeof(((type *) NULL)->last))

static struct ft_pair pair;
static char *buf;

/* Cancels a receive; its error is the next entry of the queue. */
static void make_error(void)
{
	struct fi_cq_tagged_entry entry;
	uint64_t end = ft_deadline();
	ssize_t ret;

	FT_POST(&pair.s, fi_recv(pair.s.ep, buf, LEN, NULL, 0, buf));
	ret = fi_cancel(&pair.s.ep->fid, buf);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
		ft_skip("fi_cancel: %s", fi_strerror((int) -ret));
	FT_CHECK(!ret, "fi_cancel: %zd", ret);
	do {
		ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
		FT_CHECK(ft_limit_us() < end, "no error");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
}

/* Calls fi_cq_readerr() as an application with headers of any version does. */
static void read_error(const char *what)
{
	struct fid_cq *cq = pair.s.cq[FT_RX];
	unsigned char room[sizeof(struct fi_cq_err_entry) + BEYOND];
	struct fi_cq_err_entry *err = (struct fi_cq_err_entry *) room;
	size_t len = ERR_LEN;
	ssize_t ret;

	ft_stage("%s", what);
	memset(room, CANARY, sizeof(room));
	err->err_data = NULL;
	err->err_data_size = 0;
	if (FI_VERSION_GE(ft_fiversion, API_SRC_ADDR))
		len += sizeof(fi_addr_t);
	ret = cq->ops->readerr(cq, err, 0);
	FT_CHECK(ret == 1, "readerr: %zd", ret);
	FT_CHECK(err->err == FI_ECANCELED && err->op_context == buf,
		 "error %d, context %p", err->err, err->op_context);
	for (; len < sizeof(room); len++)
		FT_CHECK(room[len] == CANARY,
			 "%s: byte %zu of an entry of %zu"
			 " was written",
			 what, len, ERR_LEN);
}

/*
 * Returns zeroed attributes of this length, with nothing readable after them.
 */
static void *short_attr(size_t len)
{
	static char *pages;

	if (!pages) {
		pages = ft_map(NULL, 2 * FT_PAGE);
		FT_CHECK(!mprotect(pages + FT_PAGE, FT_PAGE, PROT_NONE),
			 "mprotect");
	}
	return memset(pages + FT_PAGE - len, 0, len);
}

/* Registers memory with attributes as short as in 1.17. */
static void short_mr_attr(void)
{
	struct fi_mr_attr *attr = short_attr(MR_ATTR_LEN);
	struct iovec iov = { buf, LEN };
	struct fid_mr *mr;

	ft_stage("short registration attributes");
	attr->mr_iov = &iov;
	attr->iov_count = 1;
	attr->access = FI_SEND | FI_RECV;
	attr->requested_key = 77;
	attr->context = buf;
	FT_CALL(fi_mr_regattr(pair.dom[0].domain, attr, 0, &mr));
	FT_CHECK(mr->fid.context == buf, "context %p", mr->fid.context);
	FT_CALL(fi_close(&mr->fid));
}

/* Opens an object, if the core has objects of this kind, and closes it. */
#define OPENS(call, object)                                           \
	do {                                                          \
		int ret_ = (call);                                    \
                                                                      \
		if (ret_ == -FI_ENOSYS || ret_ == -FI_EOPNOTSUPP)     \
			break;                                        \
		FT_CHECK(!ret_, "%s: %s", #call, fi_strerror(-ret_)); \
		FT_CALL(fi_close(&(object)->fid));                    \
	} while (0)

/* Opens objects with attributes that are as short as in any version. */
static void short_attrs(void)
{
	struct ft_dom *dom = &pair.dom[0];
	struct fi_cntr_attr *cntr_attr;
	struct fi_cq_attr *cq_attr;
	struct fi_eq_attr *eq_attr;
	struct fi_av_attr *av_attr;
	struct fi_rx_attr *rx_attr;
	struct fid_cntr *cntr;
	struct fid_ep *srx;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_av *av;
	int format;

	ft_stage("short attributes");
	for (format = FI_CQ_FORMAT_CONTEXT; format <= FI_CQ_FORMAT_TAGGED;
	     format++) {
		cq_attr = short_attr(LEN_TO(struct fi_cq_attr, wait_set));
		cq_attr->format = format;
		OPENS(fi_cq_open(dom->domain, cq_attr, &cq, buf), cq);
	}
	cntr_attr = short_attr(LEN_TO(struct fi_cntr_attr, flags));
	OPENS(fi_cntr_open(dom->domain, cntr_attr, &cntr, buf), cntr);
	eq_attr = short_attr(LEN_TO(struct fi_eq_attr, wait_set));
	OPENS(fi_eq_open(dom->fabric, eq_attr, &eq, buf), eq);
	av_attr = short_attr(LEN_TO(struct fi_av_attr, flags));
	av_attr->type = FI_AV_TABLE;
	OPENS(fi_av_open(dom->domain, av_attr, &av, buf), av);
	rx_attr = short_attr(sizeof(*rx_attr));
	*rx_attr = *dom->info->rx_attr;
	if (!fi_srx_context(dom->domain, rx_attr, &srx, buf))
		FT_CALL(fi_close(&srx->fid));
}

/*
 * Opens objects with short attributes that name wait sets, which the core
 * stores at another address.
 */
static void short_wait_attrs(void)
{
	struct ft_dom *dom = &pair.dom[0];
	struct fi_wait_attr *attr =
		short_attr(LEN_TO(struct fi_wait_attr, flags));
	struct fi_cntr_attr *cntr_attr;
	struct fi_cq_attr *cq_attr;
	struct fi_eq_attr *eq_attr;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_wait *set;
	int ret;

	ft_stage("short attributes with wait sets");
	attr->wait_obj = FI_WAIT_FD;
	ret = dom->fabric->ops->wait_open(dom->fabric, attr, &set);
	if (ret)
		return;
	cq_attr = short_attr(LEN_TO(struct fi_cq_attr, wait_set));
	cq_attr->wait_obj = FI_WAIT_SET;
	cq_attr->wait_set = set;
	OPENS(fi_cq_open(dom->domain, cq_attr, &cq, buf), cq);
	cntr_attr = short_attr(LEN_TO(struct fi_cntr_attr, flags));
	cntr_attr->wait_obj = FI_WAIT_SET;
	cntr_attr->wait_set = set;
	OPENS(fi_cntr_open(dom->domain, cntr_attr, &cntr, buf), cntr);
	eq_attr = short_attr(LEN_TO(struct fi_eq_attr, wait_set));
	eq_attr->wait_obj = FI_WAIT_SET;
	eq_attr->wait_set = set;
	OPENS(fi_eq_open(dom->fabric, eq_attr, &eq, buf), eq);
	FT_CALL(fi_close(&set->fid));
}

/*
 * Objects with FI_PEER are refused: their context would be a structure that
 * only another provider can use.
 */
static void peers(void)
{
	struct fi_eq_attr eq_attr = { .flags = FI_PEER };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fi_av_attr av_attr = { .flags = FI_PEER };
	struct iovec iov = { buf, LEN };
	struct fi_mr_attr mr_attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_SEND,
	};
	struct ft_dom *dom = &pair.dom[0];
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_mr *mr;

	ft_stage("peers' objects");
#define REFUSED(call) FT_CHECK((call) == -FI_ENOSYS, "not refused: " #call)
	REFUSED(fi_domain2(dom->fabric, dom->info, &domain, FI_PEER, buf));
	REFUSED(fi_eq_open(dom->fabric, &eq_attr, &eq, buf));
	REFUSED(fi_cq_open(dom->domain, &cq_attr, &cq, buf));
	REFUSED(fi_cntr_open(dom->domain, &cntr_attr, &cntr, buf));
	REFUSED(fi_av_open(dom->domain, &av_attr, &av, buf));
	REFUSED(fi_endpoint2(dom->domain, dom->info, &ep, FI_PEER, buf));
	REFUSED(fi_mr_regattr(dom->domain, &mr_attr, FI_AUTH_KEY, &mr));
}

/* Objects of a GPU are refused, and no info offers such objects. */
static void xpu(void)
{
	struct fi_cq_attr cq_attr = { .flags = FI_XPU };
	struct fi_cntr_attr cntr_attr = { .flags = FI_XPU };
	struct ft_dom *dom = &pair.dom[0];
	struct fi_info *hints = fi_dupinfo(dom->info), *info;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_cq *cq;
	int ret;

	ft_stage("objects of a GPU");
	ret = fi_cq_open(dom->domain, &cq_attr, &cq, buf);
	FT_CHECK(ret == -FI_EINVAL, "fi_cq_open: %d", ret);
	ret = fi_cntr_open(dom->domain, &cntr_attr, &cntr, buf);
	FT_CHECK(ret == -FI_EINVAL, "fi_cntr_open: %d", ret);
	REFUSED(fi_endpoint2(dom->domain, dom->info, &ep, FI_XPU, buf));
	hints->caps |= FI_XPU;
	ret = fi_getinfo(ft_fiversion, NULL, NULL, 0, hints, &info);
	FT_CHECK(ret == -FI_ENODATA, "fi_getinfo: %d", ret);
	hints->caps &= ~FI_XPU;
	fi_freeinfo(hints);
#ifdef XPU_CALLS
	{
		struct fi_xpu_attr attr = { 0 };
		struct fid_xpu_cntr xpu_cntr = { 0 };
		struct fid_xpu_ctx *ctx;
		struct fid_xpu_ep xpu_ep = { 0 };
		struct fid_xpu_cq xpu_cq = { 0 };

		FT_CHECK(!dom->info->domain_attr->max_xpu_ctx_cnt,
			 "contexts of GPUs are offered");
		REFUSED(fi_xpu_ctx(dom->domain, &attr, &ctx, buf));
		REFUSED(fi_ep_export_xpu(pair.s.ep, 0, &xpu_ep));
		REFUSED(fi_cq_export_xpu(pair.s.cq[FT_RX], 0, &xpu_cq));
		cntr_attr.flags = 0;
		FT_CALL(fi_cntr_open(dom->domain, &cntr_attr, &cntr, buf));
		REFUSED(fi_cntr_export_xpu(cntr, 0, &xpu_cntr));
		FT_CALL(fi_close(&cntr->fid));
	}
#endif
}

#if FI_MAJOR_VERSION >= 2
static void base_mr(void)
{
	struct iovec iov = { buf, LEN }, half = { buf, LEN / 2 };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_SEND | FI_RECV,
		.requested_key = 78,
	};
	struct fi_ops ops = { .size = sizeof(ops) };
	/* length of the structure in the application's version */
	const size_t len = FI_VERSION_LT(ft_fiversion, FI_VERSION(2, 5)) ?
				   LEN_TO(struct fi_mr_attr, base_mr) :
				   sizeof(attr);
	/*
	 * the provider passes a copy to tcp; other cores of 2.x read beyond the
	 * end
	 */
	const bool copied = strstr(ft_opts.prov, "ofi_mrrc") && !ft_rxm();
	struct fid_mr *base, *mr, stranger = { .fid.ops = &ops };
	int ret;

	ft_stage("a region within another");
	FT_CALL(fi_mr_regattr(pair.dom[0].domain, &attr, 0, &base));
	attr.mr_iov = &half;
	attr.requested_key = 79;
	attr.base_mr = base;
	ret = fi_mr_regattr(pair.dom[0].domain,
			    !copied ? &attr :
				      memcpy(short_attr(len), &attr, len),
			    0, &mr);
	FT_CHECK(!ret || ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP,
		 "base_mr: %d (%s)", ret, fi_strerror(-ret));
	if (!ret)
		FT_CALL(fi_close(&mr->fid));
	FT_CALL(fi_close(&base->fid));
	if (ft_opts.raw || FI_VERSION_LT(ft_fiversion, FI_VERSION(2, 0)))
		return;
	attr.base_mr = &stranger;
	ret = fi_mr_regattr(pair.dom[0].domain, &attr, 0, &mr);
	FT_CHECK(ret == -FI_EINVAL, "another provider's base_mr: %d", ret);
}

static void auth_keys(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char key[8] = "key";
	size_t len = sizeof(key);
	struct fid_av *av;
	fi_addr_t addr;
	int ret;

	ft_stage("authorization keys");
	if (fi_av_open(pair.dom[0].domain, &attr, &av, NULL))
		return;
	/*
	 * no supported core has authentication keys in address vectors: the
	 * calls return an error, without harm
	 */
	ret = fi_av_insert_auth_key(av, key, sizeof(key), &addr, 0);
	FT_CHECK(ret < 0, "fi_av_insert_auth_key: %d", ret);
	ret = fi_av_lookup_auth_key(av, 0, key, &len);
	FT_CHECK(ret < 0, "fi_av_lookup_auth_key: %d", ret);
	ret = fi_av_set_user_id(av, 0, 7, 0);
	FT_CHECK(ret < 0, "fi_av_set_user_id: %d", ret);
	FT_CALL(fi_close(&av->fid));
}
#endif

static void run(void)
{
	struct ft_attr attr = FT_ATTR;

	ft_pair_open(&pair, &attr);
	buf = ft_map(NULL, LEN);
	make_error();
	read_error("an error of the core");
	if (ft_stats(&pair.dom[0], &(struct fi_mrrc_stats){ .size = 0 })) {
		peers();
		xpu();
	}
	short_attrs();
	short_wait_attrs();
	/* ofi_rxm of 2.x itself reads beyond the end of attributes */
	if (FI_VERSION_LT(ft_fiversion, API_LONGER) &&
	    !(FI_MAJOR_VERSION >= 2 && ft_rxm()))
		short_mr_attr();
#if FI_MAJOR_VERSION >= 2
	base_mr();
	auth_keys();
#endif
	/*
	 * closing an endpoint keeps entries that the application has not read
	 */
	make_error();
	FT_CALL(fi_close(&pair.s.ep->fid));
	pair.s.ep = NULL;
	read_error("an error kept over close");
	ft_pair_close(&pair);
	ft_unmap(buf, LEN);
}

struct version {
	uint32_t version;
	const char *reg;
};

static void run_version(const void *arg)
{
	const struct version *version = arg;

	ft_fiversion = version->version;
	setenv("FI_OFI_MRRC_REGISTER", version->reg, 1);
	run();
}

static void in_child(uint32_t version, const char *reg)
{
	const struct version v = { version, reg };
	char what[64];

	snprintf(what, sizeof(what), "API %u.%u, registering %s",
		 FI_MAJOR(version), FI_MINOR(version), reg);
	ft_in_child(what, run_version, &v, NULL, 0);
}

int main(int argc, char **argv)
{
	const uint32_t versions[] = {
		FI_VERSION(1, 5),
		FI_VERSION(1, 17),
#if FI_MAJOR_VERSION >= 2
		FI_VERSION(2, 0),
#endif
		FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	};
	size_t i;

	ft_init(argc, argv);
	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		in_child(versions[i], "always");
		if (!ft_core("verbs"))
			in_child(versions[i], "never");
	}
	return ft_done();
}
