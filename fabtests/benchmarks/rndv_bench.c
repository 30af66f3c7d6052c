/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rndv_bench: measures a ping-pong of plain buffers between two reliable
 * datagram endpoints of one thread. The buffers are so large that ofi_rxm makes
 * a rendezvous of each message and registers both of its ends. Prints the
 * median time of a message. bench.sh runs rndv_bench over each stack in turn.
 */
#include "ft_bench.h"

#define ITERS 20
#define LEN   (1UL << 20)

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i, iters, dry = 2;
	struct ft_pair pair;
	char *ping, *pong;
	double *times;
	bool hooked;

	/* the default of libfabric's cache */
	setenv("FI_MR_CACHE_MAX_COUNT", "1024", 0);
	ft_init(argc, argv);
	iters = ft_iters(ITERS);
	/* pass no descriptors over a raw core, either */
	hooked = ft_opts.raw;
	ft_opts.raw = false;
	attr.caps = FI_MSG | FI_TAGGED;
	times = calloc(iters, sizeof(*times));
	FT_CHECK(times, "no memory");
	memset(&pair, 0, sizeof(pair));
	ft_pair_open(&pair, &attr);
	ping = ft_map(NULL, LEN);
	pong = ft_map(NULL, LEN);
	for (i = 0; i < iters + dry; i++) {
		uint64_t start;

		ft_fill(ping, LEN, i);
		start = ft_now_us();
		ft_send_recv(&pair.c, ping, pong, LEN);
		ft_send_recv(&pair.s, pong, ping, LEN);
		if (i >= dry)
			times[i - dry] = (ft_now_us() - start) / 2.0;
		FT_CHECK_BUF(ping, LEN, i, "after a ping-pong");
	}
	printf("median %.1f\n", ft_median(times, iters));
	ft_opts.raw = hooked;
	ft_pair_close(&pair);
	free(times);
	return 0;
}
