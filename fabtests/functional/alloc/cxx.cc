/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cxx: tests containers in registered memory, by rdma/fi_mrrc.hpp. This
 * test does not use fabtests/common, which is C.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_mrrc.hpp>

static const char *provider = "tcp;ofi_mrrc";

#define CHECK(cond)                                                           \
	do {                                                                  \
		if (!(cond)) {                                                \
			std::printf("FAIL: fi_mrrc_cxx over %s: %s:%d: %s\n", \
				    provider, __FILE__, __LINE__, #cond);     \
			std::exit(1);                                         \
		}                                                             \
	} while (0)

static struct fi_mr_heap_stats stats_of(fid_domain *domain)
{
	struct fi_mr_heap_stats stats {
	};

	stats.size = sizeof(stats);
	CHECK(!fi_mr_alloc_stats_read(domain, &stats));
	return stats;
}

static void resources(fid_domain *domain)
{
	fi_mrrc::memory_resource memory(domain, FI_REMOTE_READ);
	fi_mrrc::memory_resource same(domain, FI_REMOTE_READ);
	std::pmr::vector<double> data(&memory);
	std::pmr::map<int, std::pmr::string> names(&memory);

	CHECK(memory == same);
	CHECK(memory != fi_mrrc::memory_resource(domain));
	CHECK(memory != fi_mrrc::memory_resource(domain, FI_REMOTE_READ,
						 FI_MR_ALLOC_ISOLATED));
	CHECK(memory != *std::pmr::get_default_resource());
	for (int i = 0; i < 100000; i++)
		data.push_back(i);
	for (int i = 0; i < 1000; i++)
		names[i] = std::string(i % 100 + 1, 'x');
	for (int i = 0; i < 100000; i++)
		CHECK(data[i] == i);
	auto where = fi_mrrc::query(domain, &data[50000]);
	CHECK(where.base == data.data() && where.mr);
	CHECK(where.access == FI_REMOTE_READ);
	CHECK(fi_mrrc::query(domain, names[99].data()).mr);

	void *aligned = memory.allocate(100, 4096);
	CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
	same.deallocate(aligned, 100, 4096);
	void *nothing = memory.allocate(0);
	CHECK(nothing);
	memory.deallocate(nothing, 0);

	/* rights of 0 mean no access by peers, not no heap */
	fi_mrrc::memory_resource zeroed(domain, 0, FI_MR_ALLOC_ZERO);
	auto bytes = static_cast<char *>(zeroed.allocate(1000));
	CHECK(!bytes[0] && !bytes[999]);
	CHECK(!fi_mrrc::query(domain, bytes).access);
	zeroed.deallocate(bytes, 1000);
}

static void allocators(fid_domain *domain)
{
	using fi_mrrc::allocator;
	allocator<int> ints(domain);
	std::vector<int, allocator<int>> a(1000, 7, ints), b(ints);
	std::list<std::string, allocator<std::string>> words{
		allocator<std::string>(ints)
	};

	b = a;
	b.resize(100000, 8);
	a.swap(b);
	CHECK(a.size() == 100000 && a[0] == 7 && a[99999] == 8);
	for (int i = 0; i < 1000; i++)
		words.emplace_back("word");
	CHECK(words.size() == 1000);
	auto shared = std::allocate_shared<int>(ints, 5);
	CHECK(*shared == 5 && fi_mrrc::query(domain, shared.get()).mr);
	try {
		ints.allocate(SIZE_MAX / 2);
		CHECK(!"so much memory");
	} catch (const std::bad_alloc &) {
	}
	/* the number of bytes is valid, but more than any machine has */
	for (int bits = 46; bits < 62; bits++) {
		try {
			ints.allocate(std::size_t(1) << bits);
			CHECK(!"so much memory");
		} catch (const std::bad_alloc &) {
		}
	}
}

/*
 * Memory moves to another vector only if both vectors' allocators give the same
 * rights.
 */
static void moves(fid_domain *domain)
{
	using fi_mrrc::allocator;
	using vector = std::vector<char, allocator<char>>;
	allocator<char> local(domain), remote(domain, FI_REMOTE_WRITE);
	vector from(1000, 'm', local), to(local), written(remote);

	auto data = from.data();
	to = std::move(from);
	CHECK(to.data() == data && to.size() == 1000);
	written = std::move(to);
	CHECK(written.data() != data && written.back() == 'm');
	CHECK(fi_mrrc::query(domain, written.data()).access == FI_REMOTE_WRITE);
	from = std::move(written);
	CHECK(from.size() == 1000 &&
	      !fi_mrrc::query(domain, from.data()).access);
}

static void heaps(fid_domain *domain)
{
	fi_mr_heap_attr attr{};
	fid_mr_heap *heap;

	attr.size = sizeof(attr);
	attr.max_bytes = 4 << 20;
	CHECK(!fi_mr_heap_open(domain, &attr, &heap, nullptr));
	{
		fi_mrrc::memory_resource memory(heap), own(domain);
		std::pmr::vector<char> some(1 << 20, 'a', &memory);
		std::pmr::vector<char> kept(&own);

		CHECK(memory == fi_mrrc::memory_resource(heap));
		CHECK(memory != own);
		kept = std::pmr::vector<char>(1000, 'k', &memory);

		try {
			std::pmr::vector<char> more(8 << 20, 'b', &memory);
			CHECK(!"more than the limit");
		} catch (const std::bad_alloc &) {
		}
		CHECK(some.back() == 'a');
		some = std::pmr::vector<char>(&memory);
		CHECK(!fi_mr_heap_close(heap));
		CHECK(kept.size() == 1000 && kept.back() == 'k');
	}
	try {
		fi_mrrc::query(domain, &attr);
		CHECK(!"the stack is allocated");
	} catch (const fi_mrrc::error &e) {
		CHECK(e.code() == -FI_ENOENT && *e.what());
	}
}

int main(int argc, char **argv)
{
	fi_info *hints = fi_allocinfo(), *info;
	fid_fabric *fabric;
	fid_domain *domain;
	const char *type = "msg";
	bool raw = false;

	/* the other tests' options, most of them without meaning here */
	for (int op; (op = getopt(argc, argv, "p:s:e:Rvt:I:S:h")) != -1;) {
		if (op == 'p')
			provider = optarg;
		if (op == 'e')
			type = optarg;
		if (op == 'R')
			raw = true;
	}
	if (raw && !std::getenv("FI_HOOK")) {
		std::printf("SKIP: fi_mrrc_cxx: no such memory over a raw "
			    "core\n");
		return 77;
	}
	hints->ep_attr->type = std::strstr(provider, "rxm") ||
					       std::strstr(provider, "net") ||
					       !std::strcmp(type, "rdm") ?
				       FI_EP_RDM :
				       FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info)) {
		std::printf("SKIP: fi_mrrc_cxx: no %s\n", provider);
		return 77;
	}
	CHECK(!fi_fabric(info->fabric_attr, &fabric, nullptr));
	CHECK(!fi_domain(fabric, info, &domain, nullptr));
	resources(domain);
	allocators(domain);
	moves(domain);
	heaps(domain);
	CHECK(stats_of(domain).live == 0);
	CHECK(stats_of(domain).mistakes == 0);
	CHECK(!fi_close(&domain->fid));
	CHECK(!fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	std::printf("PASS: fi_mrrc_cxx over %s\n", provider);
	return 0;
}
