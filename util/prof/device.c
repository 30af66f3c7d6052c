/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device (device.h).
 */
#include "config.h"
#include "prof/device.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

int prof_fail(struct prof_err *err, int ret, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return ret;
}

void prof_device_env(void)
{
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	unsetenv("FI_HOOK");
	unsetenv("FI_PROVIDER");
}

struct fi_info *prof_device_hints(const char *provider, const char *domain)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	/* if strdup() failed, fi_freeinfo() accepts the NULL */
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	if (domain)
		hints->domain_attr->name = strdup(domain);
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
	hints->domain_attr->mode = ~0ULL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return hints;
}

static bool is_exact(const struct fi_info *info, const char *provider,
		     const char *domain)
{
	return !strcasecmp(info->fabric_attr->prov_name, provider) &&
	       (!domain || (info->domain_attr->name &&
			    !strcmp(info->domain_attr->name, domain)));
}

/*
 * Returns the first info with exactly this provider and domain: some providers
 * answer for any domain, and utility providers answer for the domains below
 * them.
 */
static struct fi_info *exact(struct fi_info *list, const char *provider,
			     const char *domain)
{
	struct fi_info *info = list, *found;

	while (info && !is_exact(info, provider, domain))
		info = info->next;
	found = info ? fi_dupinfo(info) : NULL;
	fi_freeinfo(list);
	return found;
}

static struct fi_info *get_info(const char *provider, const char *domain,
				const char *source, enum fi_ep_type type,
				int *ret)
{
	struct fi_info *hints = prof_device_hints(provider, domain);
	struct fi_info *info = NULL;

	if (!hints) {
		*ret = -FI_ENOMEM;
		return NULL;
	}
	hints->ep_attr->type = type;
	*ret = fi_getinfo(PROF_FIVERSION, source, NULL, source ? FI_SOURCE : 0,
			  hints, &info);
	fi_freeinfo(hints);
	if (*ret || !provider)
		return *ret ? NULL : info;
	info = exact(info, provider, domain);
	if (!info)
		*ret = -FI_ENODATA;
	return info;
}

/* Prefers endpoints for messages, over which bandwidth can be measured. */
static struct fi_info *find_info(const char *provider,
				 const struct prof_options *options, int *ret)
{
	static const enum fi_ep_type types[] = {
		FI_EP_MSG,
		FI_EP_RDM,
		FI_EP_UNSPEC,
	};
	struct fi_info *info = NULL;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types) && !info; i++)
		info = get_info(provider, options->domain, options->source,
				types[i], ret);
	return info;
}

static bool is_here(const struct addrinfo *addr)
{
	int fd = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool here;

	here = fd < 0 || !bind(fd, addr->ai_addr, addr->ai_addrlen) ||
	       errno != EADDRNOTAVAIL;
	if (fd >= 0)
		close(fd);
	return here;
}

/*
 * Is the address an IP address of another machine? Providers accept any
 * address: some fail when an object is opened at the address, others use
 * another address instead.
 */
static bool is_elsewhere(const char *source)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *addr;

	if (getaddrinfo(source, NULL, &hints, &list))
		return false;
	for (addr = list; addr && !is_here(addr); addr = addr->ai_next)
		;
	freeaddrinfo(list);
	return !addr;
}

static int find_device(const struct prof_options *options,
		       struct prof_device *device, struct prof_err *err)
{
	int ret = 0;

	if (options->provider) {
		device->info = find_info(options->provider, options, &ret);
	} else {
		device->info = find_info("verbs", options, &ret);
		if (!device->info)
			device->info = find_info("tcp", options, &ret);
	}
	if (device->info && options->source && is_elsewhere(options->source)) {
		fi_freeinfo(device->info);
		return prof_fail(err, -FI_EADDRNOTAVAIL,
				 "--address: %s is no "
				 "address of this machine",
				 options->source);
	}
	if (device->info)
		return 0;
	return prof_fail(err, ret,
			 "%s%s%s%s%s: %s; --list shows what there "
			 "is",
			 options->provider ? options->provider : "verbs or tcp",
			 options->domain ? ", domain " : "",
			 options->domain ? options->domain : "",
			 options->source ? ", address " : "",
			 options->source ? options->source : "",
			 ret == -FI_ENODATA ? "no such device" :
					      fi_strerror(-ret));
}

int prof_device_open(const struct prof_options *options,
		     struct prof_device *device, struct prof_err *err)
{
	int ret;

	*device = (struct prof_device){ .key = 1 };
	ret = find_device(options, device, err);
	if (ret)
		return ret;
	ret = fi_fabric(device->info->fabric_attr, &device->fabric, NULL);
	if (ret) {
		prof_fail(err, ret, "opening the fabric %s: %s",
			  device->info->fabric_attr->name, fi_strerror(-ret));
		goto err_info;
	}
	ret = fi_domain(device->fabric, device->info, &device->domain, NULL);
	if (ret) {
		prof_fail(err, ret, "opening the domain %s: %s",
			  prof_device_name(device), fi_strerror(-ret));
		goto err_fabric;
	}
	return 0;

err_fabric:
	fi_close(&device->fabric->fid);
err_info:
	fi_freeinfo(device->info);
	return ret;
}

void prof_device_close(struct prof_device *device)
{
	fi_close(&device->domain->fid);
	fi_close(&device->fabric->fid);
	fi_freeinfo(device->info);
}

const char *prof_device_provider(const struct prof_device *device)
{
	return device->info->fabric_attr->prov_name;
}

const char *prof_device_name(const struct prof_device *device)
{
	return device->info->domain_attr->name ?
		       device->info->domain_attr->name :
		       "?";
}

int prof_device_reg(struct prof_device *device, void *buf, size_t len,
		    struct fid_mr **mr)
{
	uint64_t access = FI_SEND | FI_RECV;

	if (device->info->caps & FI_RMA)
		access |= FI_READ | FI_WRITE;
	return fi_mr_reg(device->domain, buf, len, access, 0, device->key++, 0,
			 mr, NULL);
}

static bool is_listed(const struct fi_info *from, const struct fi_info *at)
{
	for (; from != at; from = from->next) {
		if (!strcmp(from->fabric_attr->prov_name,
			    at->fabric_attr->prov_name) &&
		    !strcmp(from->domain_attr->name, at->domain_attr->name))
			return true;
	}
	return false;
}

int prof_device_list(struct prof_err *err)
{
	struct fi_info *info, *at;
	int ret;

	info = get_info(NULL, NULL, NULL, FI_EP_UNSPEC, &ret);
	if (!info)
		return prof_fail(err, ret, "fi_getinfo: %s", fi_strerror(-ret));
	printf("%-24s %s\n", "PROVIDER", "DOMAIN");
	for (at = info; at; at = at->next) {
		if (!at->domain_attr->name || is_listed(info, at) ||
		    strstr(at->fabric_attr->prov_name, "ofi_mrrc"))
			continue;
		printf("%-24s %s\n", at->fabric_attr->prov_name,
		       at->domain_attr->name);
	}
	fi_freeinfo(info);
	return 0;
}
