/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kokkos_bench: a View's contents to a peer, as in levy2020, figure 7:
 *
 *	registered	a View of fi_mrrc::KokkosSpace
 *	host		a View of HostSpace, registered where it lies
 *	serial		a View of HostSpace, copied to memory of fi_mr_alloc
 *
 * Timed: making the View, registering or copying, and the write until it has
 * completed; not: filling the View, and undoing it all. The three take turns.
 * Registrations are real ones (levy_bench.c). Prints "kokkos SIZE registered
 * host serial", microseconds of one trial.
 */
#include <chrono>

#include <rdma/fi_mrrc_kokkos.hpp>

extern "C" {
#include "ft_bench.h"
}

using Space = fi_mrrc::KokkosSpace;
using Clock = std::chrono::steady_clock;

static const size_t min_size = 128, max_size = 2 << 20;
static const size_t max_bytes = 48 << 20; /* written of a size */
static struct ft_pair pair;
static struct fid_domain *domain;
static struct fid_mr *target_mr;
static uint64_t target;

class Stopwatch
{
      public:
	void start()
	{
		begin_ = Clock::now();
	}
	void stop()
	{
		std::chrono::duration<double, std::micro> took =
			Clock::now() - begin_;
		us_ += took.count();
	}
	double us() const
	{
		return us_;
	}

      private:
	Clock::time_point begin_;
	double us_ = 0;
};

static void send(void *buf, size_t len, void *desc)
{
	struct ft_comp comp;

	FT_POST(&pair.c, fi_write(pair.c.ep, buf, len, desc, 0, target,
				  fi_mr_key(target_mr), buf));
	ft_wait(&pair.c, FT_TX, &comp);
}

template <class View> static void fill(const View &view)
{
	for (size_t i = 0; i < view.extent(0); i += 512)
		view(i) = 1;
}

static double registered(size_t len)
{
	Stopwatch watch;

	watch.start();
	Kokkos::View<char *, Space> view(
		Kokkos::view_alloc(Kokkos::WithoutInitializing, "registered",
				   Space(domain, FI_REMOTE_WRITE)),
		len);
	watch.stop();
	fill(view);
	watch.start();
	send(view.data(), len, fi_mrrc::query(domain, view.data()).desc);
	watch.stop();
	return watch.us();
}

static double host(size_t len)
{
	static uint64_t key = 1 << 20;
	struct fid_mr *mr;
	Stopwatch watch;

	watch.start();
	Kokkos::View<char *, Kokkos::HostSpace> view(
		Kokkos::view_alloc(Kokkos::WithoutInitializing, "host"), len);
	watch.stop();
	fill(view);
	watch.start();
	FT_CALL(fi_mr_reg(domain, view.data(), len, FI_WRITE | FI_REMOTE_WRITE,
			  0, key++, 0, &mr, nullptr));
	send(view.data(), len, fi_mr_desc(mr));
	watch.stop();
	FT_CALL(fi_close(&mr->fid));
	return watch.us();
}

static double serial(size_t len)
{
	Stopwatch watch;
	struct fid_mr *mr;
	void *buf;

	watch.start();
	Kokkos::View<char *, Kokkos::HostSpace> view(
		Kokkos::view_alloc(Kokkos::WithoutInitializing, "serial"), len);
	watch.stop();
	fill(view);
	watch.start();
	FT_CALL(fi_mr_alloc(domain, len, FI_REMOTE_WRITE, 0, &buf, &mr));
	std::memcpy(buf, view.data(), len);
	send(buf, len, fi_mr_desc(mr));
	watch.stop();
	FT_CALL(fi_mr_free(domain, buf));
	return watch.us();
}

static void measure(size_t len, unsigned trials)
{
	static double (*const ways[3])(size_t) = { registered, host, serial };
	double us[3];

	/* of large ones fewer */
	if (trials * len > max_bytes)
		trials = max_bytes / len;
	for (unsigned i = 0; i < trials + 5; i++) {
		/* all orders, so that no side gains by its place */
		for (unsigned n = 0; n < 3; n++) {
			unsigned way = (i + (i / 3 % 2 ? 3 - n : n)) % 3;

			us[way] = ways[way](len);
		}
		/* the first ones bring the memory */
		if (i >= 5)
			std::printf("kokkos %zu %.3f %.3f %.3f\n", len, us[0],
				    us[1], us[2]);
	}
}

int main(int argc, char **argv)
{
	struct ft_attr attr = {};
	static char peer[max_size];
	unsigned trials = 1000;
	int op;

	attr.caps = FI_MSG | FI_RMA;
	attr.format = FI_CQ_FORMAT_DATA;
	attr.wait_obj = FI_WAIT_NONE;
	ft_opts.timeout = 1800;
	while ((op = getopt(argc, argv, "n:" FT_OPTS)) != -1) {
		if (op == 'n')
			trials = (unsigned) std::atoi(optarg);
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	ft_start(argv[0]);
	ft_pair_open(&pair, &attr);
	domain = pair.c.dom->domain;
	target_mr = ft_reg(pair.s.dom, peer, max_size, FI_REMOTE_WRITE);
	target = ft_raddr(pair.s.dom, peer);
	Kokkos::initialize();
	for (size_t len = min_size; len <= max_size; len *= 2) {
		ft_stage("%zu bytes", len);
		measure(len, trials);
	}
	Kokkos::finalize();
	FT_CALL(fi_close(&target_mr->fid));
	ft_pair_close(&pair);
	return 0;
}
