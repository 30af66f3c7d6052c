/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_exits: tests processes and threads that end in every way, with memory
 * registered and connections up; exit handlers that unmap registered memory;
 * and the provider unloaded while its monitor watches memory.
 */
#include "ft_mrrc.h"

#include <dlfcn.h>
#include <pthread.h>

/*
 * LeakSanitizer calls __lsan_is_turned_off(): objects that are left at the exit
 * are left on purpose.
 */
int __lsan_is_turned_off(void) __attribute__((visibility("default")));
int __lsan_is_turned_off(void)
{
	return 1;
}

#define LEN (16 * FT_PAGE)

static struct ft_pair pair;
static char *out, *in;
static uint64_t seed;

static void use(char *from, char *to, size_t len)
{
	ft_verify_pair(&pair.c, from, to, len, ++seed);
	ft_verify_pair(&pair.c, from, to, len, ++seed);
	ft_release_pair(&pair);
}

static void begin(void)
{
	struct ft_attr attr = FT_ATTR;

	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, LEN);
	in = malloc(LEN);
	FT_CHECK(in, "malloc");
	use(out, in, LEN);
}

/* ---- how a process ends ---- */

static void end_exit(void)
{
	exit(0);
}

static void unmap_all(void)
{
	munmap(out, LEN);
	free(in);
	free(malloc(LEN));
}

static void end_atexit(void)
{
	atexit(unmap_all);
	exit(0);
}

static void end_quick(void)
{
	at_quick_exit(unmap_all);
	quick_exit(0);
}

static void end_now(void)
{
	_exit(0);
}

static void end_exec(void)
{
	execlp("true", "true", (char *) NULL);
	_exit(3);
}

static void *exit_here(void *arg)
{
	exit(0);
	return NULL;
}

static void end_thread(void)
{
	pthread_t thread;

	FT_CHECK(!pthread_create(&thread, NULL, exit_here, NULL),
		 "pthread_create");
	pthread_join(thread, NULL);
	_exit(4);
}

/* Maps and unmaps memory while another thread calls exit() */
static void *churn(void *arg)
{
	for (;;)
		free(malloc(300 * 1024));
	return NULL;
}

static void end_busy(void)
{
	pthread_t thread;

	FT_CHECK(!pthread_create(&thread, NULL, churn, NULL), "pthread_create");
	usleep(2000);
	exit(0);
}

static void end_closed(void)
{
	ft_pair_close(&pair);
	unmap_all();
	exit(0);
}

static const struct ending {
	const char *name;
	void (*end)(void);
} endings[] = {
	{ "exit", end_exit },
	{ "exit, with a handler that unmaps", end_atexit },
	{ "quick_exit, with such a handler", end_quick },
	{ "_exit", end_now },
	{ "exec", end_exec },
	{ "exit of another thread", end_thread },
	{ "exit beside a busy thread", end_busy },
	{ "everything closed", end_closed },
};

static void run_ending(const void *arg)
{
	begin();
	((const struct ending *) arg)->end();
	_exit(5);
}

/* ---- threads whose stacks are buffers ---- */

static void *on_stack(void *arg)
{
	char buf[3 * FT_PAGE];

	use(buf, in, sizeof(buf));
	return NULL;
}

static void threads(unsigned rounds)
{
	pthread_attr_t attr;
	pthread_t thread;
	unsigned i;

	ft_stage("threads that end");
	pthread_attr_init(&attr);
	for (i = 0; i < rounds; i++) {
		/* use different sizes, so that libc does not keep the stacks */
		pthread_attr_setstacksize(&attr, (256 + i % 32 * 64) << 10);
		FT_CHECK(!pthread_create(&thread, &attr, on_stack, NULL),
			 "pthread_create");
		pthread_join(thread, NULL);
	}
	pthread_attr_destroy(&attr);
}

/*
 * The provider is unloaded, but stays mapped, since its hooks and threads stay.
 */
static void unload(void)
{
	const char *dir = getenv("FI_PROVIDER_PATH");
	char path[4096];
	void *lib;
	int i;

	ft_stage("dlclose");
	snprintf(path, sizeof(path), "%s/libmrrc-fi.so", dir ? dir : "");
	lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (!lib)
		/* libfabric loaded the provider from another directory */
		return;
	for (i = 0; i < 8; i++)
		dlclose(lib);
	lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	FT_CHECK(lib, "%s can be unloaded", path);
	use(out, in, LEN);
}

int main(int argc, char **argv)
{
	const struct ending *ending;
	unsigned i, rounds;

	ft_init(argc, argv);
	rounds = ft_iters(ft_core("verbs") ? 1 : ft_rdm() ? 2 : 3);
	for (i = 0; i < rounds * sizeof(endings) / sizeof(*endings); i++) {
		ending = &endings[i % (sizeof(endings) / sizeof(*endings))];
		ft_in_child(ending->name, run_ending, ending, NULL, 0);
	}
	begin();
	threads(20 * rounds);
	unload();
	ft_pair_close(&pair);
	unmap_all();
	return ft_done();
}
