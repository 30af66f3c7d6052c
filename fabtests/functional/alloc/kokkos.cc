/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_kokkos: Views in registered memory, by rdma/fi_mrrc_kokkos.hpp, are
 * made, copied, resized and dropped, and a peer gets their contents.
 */
#include <numeric>
#include <vector>

#include <rdma/fi_mrrc_kokkos.hpp>

extern "C" {
#include "ft_mrrc.h"
}

using Space = fi_mrrc::KokkosSpace;
using View = Kokkos::View<double *, Space>;
using Host = Kokkos::View<double *, Kokkos::HostSpace>;

static struct ft_pair pair;

static uint64_t live(void)
{
	struct fi_mr_heap_stats stats = {};

	stats.size = sizeof(stats);
	FT_CALL(fi_mr_alloc_stats_read(pair.c.dom->domain, &stats));
	return stats.live;
}

static bool registered(const void *addr)
{
	struct fi_mr_query_attr attr = {};

	attr.size = sizeof(attr);
	return !fi_mr_query(pair.c.dom->domain, addr, &attr);
}

/* Without a domain no View is made, and the error says what to do. */
static void without_default(void)
{
	bool thrown = false;

	ft_stage("no default space");
	try {
		View view("nowhere", 10);
	} catch (const fi_mrrc::error &e) {
		thrown = strstr(e.what(), "set_default");
	}
	FT_CHECK(thrown, "a View without a domain was made");
}

static void views(void)
{
	const Space space(pair.c.dom->domain, FI_REMOTE_READ);
	const size_t n = 1000;
	double sum = 0;

	ft_stage("views");
	View view(Kokkos::view_alloc("named", space), n);
	FT_CHECK(registered(view.data()), "a View is not registered");
	FT_CHECK((uintptr_t) view.data() % Kokkos::Impl::MEMORY_ALIGNMENT == 0,
		 "a View is at %p", (void *) view.data());
	FT_CHECK(view.label() == "named", "label %s", view.label().c_str());
	FT_CHECK(view(n - 1) == 0, "a View is not zero at first");
	Kokkos::parallel_for(
		n, KOKKOS_LAMBDA(int i) { view(i) = i; });
	Kokkos::parallel_reduce(
		n, KOKKOS_LAMBDA(int i, double &part) { part += view(i); },
		sum);
	FT_CHECK(sum == n * (n - 1) / 2, "sum %f", sum);

	/*
	 * registered memory is host memory, but not all host memory is
	 * registered
	 */
	Host host = view;
	FT_CHECK(host.data() == view.data(), "a copy");
	static_assert(!Kokkos::Impl::MemorySpaceAccess<
			      Space, Kokkos::HostSpace>::assignable,
		      "host memory is not registered");
	FT_CHECK(Kokkos::create_mirror_view(view).data() == view.data(),
		 "the mirror of host memory is that memory");

	Host copy("copy", n);
	Kokkos::deep_copy(copy, view);
	Kokkos::deep_copy(view, 0.0);
	FT_CHECK(copy(999) == 999 && view(999) == 0, "deep_copy to the host");
	Kokkos::deep_copy(view, copy);
	FT_CHECK(view(999) == 999, "deep_copy from the host");
	View other(Kokkos::view_alloc("other", space), n);
	Kokkos::deep_copy(other, view);
	FT_CHECK(other(500) == 500, "deep_copy");

	/* both views' memory lives as long as a view of it does */
	auto part = Kokkos::subview(other, std::make_pair(10, 20));
	other = View();
	FT_CHECK(part(0) == 10 && live() == 2, "%" PRIu64 " live", live());
}

static void default_space(void)
{
	ft_stage("default space");
	Space::set_default(Space(pair.c.dom->domain));
	View view("by default", 3000);
	FT_CHECK(registered(view.data()), "a View is not registered");
	view(2999) = 5;
	Kokkos::resize(view, 100000);
	FT_CHECK(view(2999) == 5 && registered(&view(99999)), "resize");
	Kokkos::View<int **, Kokkos::LayoutRight, Space> matrix("m", 30, 40);
	matrix(29, 39) = 1;
	FT_CHECK(live() == 2, "%" PRIu64 " live", live());
}

/* No descriptor is given at either end: both Views are in registered memory. */
static void over_the_network(void)
{
	const size_t n = 40000, bytes = n * sizeof(double);
	std::vector<double> got(n);

	ft_stage("network");
	View view(Kokkos::view_alloc("sent", Space(pair.c.dom->domain)), n);
	for (size_t i = 0; i < n; i++)
		view(i) = i * 0.5;
	ft_send_recv(&pair.c, view.data(), got.data(), bytes);
	FT_CHECK(!memcmp(view.data(), got.data(), bytes), "other contents");
}

int main(int argc, char **argv)
{
	struct ft_attr attr = {};

	attr.caps = FI_MSG | FI_RMA;
	attr.format = FI_CQ_FORMAT_DATA;
	attr.wait_obj = FI_WAIT_NONE;
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has fi_mr_alloc");
	ft_pair_open(&pair, &attr);
	Kokkos::initialize();
	without_default();
	views();
	default_space();
	over_the_network();
	FT_CHECK(!live(), "%" PRIu64 " live", live());
	Kokkos::finalize();
	ft_pair_close(&pair);
	return ft_done();
}
