/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_realtime: tests two threads, one of real-time priority and one
 * without real-time priority, that read the same queue on the same processor.
 * If the real-time thread finds the other thread inside a read, the real-time
 * thread must let the other thread run. Otherwise the real-time thread would
 * spin until Linux stops it (sched(7)), after nearly a second of processor
 * time.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SPUN_US 500000

static struct ft_pair pair;
static atomic_bool ended;
static unsigned rounds;

static bool real_time(bool on)
{
	const struct sched_param param = { .sched_priority = on };

	return !sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* From now on, all threads use only the first available processor. */
static void pin(void)
{
	cpu_set_t set, one;
	int cpu;

	FT_CHECK(!sched_getaffinity(0, sizeof(set), &set), "%s",
		 strerror(errno));
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	FT_CHECK(!sched_setaffinity(0, sizeof(one), &one), "%s",
		 strerror(errno));
}

static void read_once(void)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(pair.c.cq[FT_RX], &entry, 1);

	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
}

static void *reader_main(void *arg)
{
	while (!atomic_load(&ended))
		read_once();
	return NULL;
}

static void *urgent_main(void *arg)
{
	const uint64_t begin = ft_now_us();
	uint64_t took;
	unsigned i;

	FT_CHECK(real_time(true), "%s", strerror(errno));
	for (i = 0; ft_round(i, rounds, begin); i++) {
		usleep(1 + ft_rand() % 500);
		took = ft_thread_us();
		read_once();
		took = ft_thread_us() - took;
		FT_CHECK(took < SPUN_US,
			 "round %u: a read took %" PRIu64
			 " us of the processor",
			 i, took);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	pthread_t reader, urgent;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("it is ofi_mrrc's lock that is looked at");
	if (!ft_core("tcp"))
		ft_skip("what a thread uses is not known where the machine is "
			"emulated");
	if (!real_time(true))
		ft_skip("no real-time priority: %s", strerror(errno));
	real_time(false);
	rounds = ft_iters(500);
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	pin();
	ft_stage("%u reads", rounds);
	FT_CHECK(!pthread_create(&reader, NULL, reader_main, NULL),
		 "pthread_create");
	FT_CHECK(!pthread_create(&urgent, NULL, urgent_main, NULL),
		 "pthread_create");
	pthread_join(urgent, NULL);
	atomic_store(&ended, true);
	pthread_join(reader, NULL);
	ft_check_idle(&pair.dom[1], "all read");
	ft_pair_close(&pair);
	return ft_done();
}
