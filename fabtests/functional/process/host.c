/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A small program that keeps the process busy around registered memory: threads
 * come and go, buffers are mapped, sent, grown and unmapped, and a child is
 * forked. The program needs libfabric alone, since test_hosts.sh builds it
 * under each sanitizer, and other languages' processes call host_run() in a
 * library.
 *
 * host_run() prints each error, and returns the number of errors.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define ROUNDS 50
#define MAPPED ((size_t) 64 << 10)
#define GROWN  ((size_t) 1 << 20)

int host_run(const char *provider);

struct host {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t self;
	int wrong;
};

static int wrong(const char *what, long ret)
{
	printf("host: %s: %ld\n", what, ret);
	return 1;
}

static int host_info(struct host *host, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	ret = fi_getinfo(FI_VERSION(1, 14), "127.0.0.1", "0", FI_SOURCE, hints,
			 &host->info);
	fi_freeinfo(hints);
	return ret;
}

static int host_open(struct host *host, const char *provider)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	char name[256];
	size_t len = sizeof(name);
	int ret = host_info(host, provider);

	if (!ret)
		ret = fi_fabric(host->info->fabric_attr, &host->fabric, NULL);
	if (!ret)
		ret = fi_domain(host->fabric, host->info, &host->domain, NULL);
	if (!ret)
		ret = fi_av_open(host->domain, &av, &host->av, NULL);
	if (!ret)
		ret = fi_cq_open(host->domain, &cq, &host->cq, NULL);
	if (!ret)
		ret = fi_endpoint(host->domain, host->info, &host->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(host->ep, &host->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_ep_bind(host->ep, &host->av->fid, 0);
	if (!ret)
		ret = fi_enable(host->ep);
	if (!ret)
		ret = fi_getname(&host->ep->fid, name, &len);
	if (!ret && fi_av_insert(host->av, name, 1, &host->self, 0, NULL) != 1)
		ret = -FI_EADDRNOTAVAIL;
	return ret;
}

static void host_close(struct host *host)
{
	if (host->ep)
		fi_close(&host->ep->fid);
	if (host->cq)
		fi_close(&host->cq->fid);
	if (host->av)
		fi_close(&host->av->fid);
	if (host->domain)
		fi_close(&host->domain->fid);
	if (host->fabric)
		fi_close(&host->fabric->fid);
	fi_freeinfo(host->info);
}

/* Waits until @count operations have ended. */
static int host_wait(struct host *host, int count)
{
	struct fi_cq_msg_entry entry;
	ssize_t ret;

	while (count) {
		ret = fi_cq_read(host->cq, &entry, 1);
		if (ret == 1)
			count--;
		else if (ret != -FI_EAGAIN)
			return wrong("fi_cq_read", ret);
	}
	return 0;
}

/* Sends @from, which arrives in @to: the endpoint sends to itself. */
static int host_send(struct host *host, char *from, char *to, size_t len)
{
	struct fi_context2 context[2];
	ssize_t ret;

	memset(to, 0, len);
	do {
		ret = fi_recv(host->ep, to, len, NULL, FI_ADDR_UNSPEC,
			      &context[0]);
	} while (ret == -FI_EAGAIN);
	if (ret)
		return wrong("fi_recv", ret);
	do {
		fi_cq_read(host->cq, NULL, 0);
		ret = fi_send(host->ep, from, len, NULL, host->self,
			      &context[1]);
	} while (ret == -FI_EAGAIN);
	if (ret)
		return wrong("fi_send", ret);
	if (host_wait(host, 2))
		return 1;
	return memcmp(from, to, len) ? wrong("other data", len) : 0;
}

static char *map(size_t len, int fill)
{
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	memset(at, fill, len);
	return at;
}

/* Maps and unmaps memory all the time, in another thread. */
static void *churn(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		munmap(map(MAPPED, i), MAPPED);
	return arg;
}

static int host_child(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		munmap(map(MAPPED, 1), MAPPED);
		_exit(0);
	}
	return waitpid(pid, &status, 0) != pid || status ?
		       wrong("child", status) :
		       0;
}

static void host_rounds(struct host *host)
{
	char *to = map(GROWN, 0), *grown = NULL, *from;
	pthread_t thread;
	size_t len;
	int i;

	for (i = 0; i < ROUNDS && !host->wrong; i++) {
		if (pthread_create(&thread, NULL, churn, NULL)) {
			host->wrong += wrong("pthread_create", i);
			break;
		}
		from = map(MAPPED, i + 1);
		host->wrong += host_send(host, from, to, MAPPED);
		munmap(from, MAPPED);
		len = GROWN / ROUNDS * (i + 1);
		from = realloc(grown, len);
		if (!from)
			abort();
		grown = from;
		memset(grown, i + 2, len);
		host->wrong += host_send(host, grown, to, len);
		pthread_join(thread, NULL);
	}
	host->wrong += host_child();
	free(grown);
	munmap(to, GROWN);
}

int host_run(const char *provider)
{
	struct host host = { 0 };
	int ret;

	ret = host_open(&host, provider);
	if (ret)
		host.wrong += wrong("open", ret);
	else
		host_rounds(&host);
	host_close(&host);
	if (!host.wrong)
		printf("host: all sent\n");
	fflush(stdout);
	return host.wrong;
}

#ifndef HOST_LIBRARY
int main(int argc, char **argv)
{
	return host_run(argc > 1 ? argv[1] : "tcp;ofi_rxm;ofi_mrrc") != 0;
}
#endif
