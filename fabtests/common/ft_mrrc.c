/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles the options, environment, checks and the deadline of a test.
 *
 * Every check that fails ends the process at once, without cleaning up: after
 * an error cleaning up may hang.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <stdarg.h>
#include <time.h>

struct ft_opts ft_opts = {
	.timeout = 120,
	.seed = 1,
};

uint32_t ft_fiversion = FI_VERSION(1, 17);

static const char *test_name = "?";
static char stage[160] = "starting";
static char prov_buf[128];

void ft_usage(const char *name)
{
	printf("Usage: %s [OPTION]...\n\n"
	       "  -p PROVIDER  provider, as \"tcp;ofi_mrrc\" (the default)\n"
	       "  -s ADDRESS   address of both sides (default 127.0.0.1;\n"
	       "               over verbs 10.0.0.1)\n"
	       "  -e msg|rdm   endpoints (default: rdm over ofi_rxm and net)\n"
	       "  -R           raw: without ofi_mrrc, registering by itself\n"
	       "  -I COUNT     iterations, instead of the test's own number\n"
	       "  -S SEED      for what is random (default 1)\n"
	       "  -t SECONDS   deadline (default 120)\n"
	       "  -v           say what is done\n"
	       "  -h           this text\n\n"
	       "Exit status: 0 passed, 1 failed, 2 wrong usage, %d skipped.\n",
	       name, FT_SKIP_RC);
}

void ft_parse_opt(const char *name, int op, char *arg)
{
	switch (op) {
	case 'p':
		ft_opts.prov = arg;
		return;
	case 's':
		ft_opts.addr = arg;
		return;
	case 'e':
		ft_opts.type = strcmp(arg, "rdm") ? FI_EP_MSG : FI_EP_RDM;
		return;
	case 'R':
		ft_opts.raw = true;
		return;
	case 'v':
		ft_opts.verbose = true;
		return;
	case 't':
		ft_opts.timeout = atoi(arg);
		return;
	case 'I':
		ft_opts.iters = (unsigned) strtoul(arg, NULL, 0);
		return;
	case 'S':
		ft_opts.seed = (unsigned) strtoul(arg, NULL, 0);
		return;
	case 'h':
		ft_usage(name);
		exit(0);
	default: /* getopt(3) has printed which option is wrong */
		fprintf(stderr, "Try '%s -h'.\n", name);
		exit(2);
	}
}

static double started;

static void on_alarm(int sig)
{
	double left =
		ft_opts.timeout * ft_load() - (ft_time_us() - started) / 1e6;
	char msg[256];
	int len;

	/* other programs may use the processors */
	if (left >= 1) {
		alarm((unsigned) left);
		return;
	}
	len = snprintf(msg, sizeof(msg), "FAIL: %s: deadline passed: %s\n",
		       test_name, stage);
	if (write(STDERR_FILENO, msg, (size_t) len) < 0)
		_exit(2);
	_exit(1);
}

/* "tcp;ofi_mrrc" -> "tcp" */
void ft_set_raw(void)
{
	char *tail;

	ft_opts.raw = true;
	if (ft_opts.prov == prov_buf)
		return;
	snprintf(prov_buf, sizeof(prov_buf), "%s", ft_opts.prov);
	tail = strstr(prov_buf, ";ofi_mrrc");
	if (tail)
		*tail = '\0';
	ft_opts.prov = prov_buf;
}

void ft_start(const char *name)
{
	const char *base = strrchr(name, '/');

	test_name = base ? base + 1 : name;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!ft_opts.prov)
		ft_opts.prov = "tcp;ofi_mrrc";
	if (!strstr(ft_opts.prov, "ofi_mrrc"))
		ft_opts.raw = true;
	if (ft_opts.raw)
		ft_set_raw();
	if (!ft_opts.addr)
		ft_opts.addr = ft_core("verbs") ? "10.0.0.1" : "127.0.0.1";
	/* cores without FI_MR_LOCAL need no registrations: force them */
	if (!ft_opts.raw && !ft_core("verbs"))
		setenv("FI_OFI_MRRC_REGISTER", "always", 0);

	/* tests count registrations: buffers must not be copied instead */
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "0", 0);

	/* a raw core's own cache may miss that memory was unmapped */
	if (ft_opts.raw)
		setenv("FI_MR_CACHE_MAX_COUNT", "0", 0);

	started = ft_time_us();
	signal(SIGALRM, on_alarm);
	signal(SIGPIPE, SIG_IGN);
	alarm((unsigned) ft_opts.timeout);
}

void ft_init(int argc, char **argv)
{
	int op;

	while ((op = getopt(argc, argv, FT_OPTS)) != -1)
		ft_parse_opt(argv[0], op, optarg);
	ft_start(argv[0]);
}

int ft_done(void)
{
	alarm(0);
	printf("PASS: %s over %s\n", test_name, ft_opts.prov);
	return 0;
}

bool ft_core(const char *name)
{
	size_t len = strlen(name);

	return !strncmp(ft_opts.prov, name, len) &&
	       (!ft_opts.prov[len] || ft_opts.prov[len] == ';');
}

bool ft_rxm(void)
{
	return strstr(ft_opts.prov, "ofi_rxm") != NULL;
}

size_t ft_rxm_copies_little(void)
{
	if (!ft_rxm() || !ft_core("verbs"))
		return 0;
	setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 1);
	setenv("FI_OFI_RXM_SAR_LIMIT", "0", 1);
	return 1024;
}

enum fi_ep_type ft_ep_type(void)
{
	if (ft_opts.type)
		return ft_opts.type;
	return ft_rxm() || ft_core("net") ? FI_EP_RDM : FI_EP_MSG;
}

bool ft_rdm(void)
{
	return ft_ep_type() == FI_EP_RDM;
}

enum fi_cq_format ft_cq_format(void)
{
	return ft_core("verbs") && !ft_rdm() ? FI_CQ_FORMAT_DATA :
					       FI_CQ_FORMAT_TAGGED;
}

/* FT_PERCENT: percentage of rounds, for test runs that are started often. */
unsigned ft_iters(unsigned dflt)
{
	const char *percent = getenv("FT_PERCENT");
	unsigned n = dflt;

	if (ft_opts.iters)
		return ft_opts.iters;
	if (percent)
		n = dflt * strtoul(percent, NULL, 10) / 100;
	return n ? n : 1;
}

unsigned ft_races(unsigned dflt)
{
	return ft_iters(ft_core("verbs") ? dflt / 10 : dflt);
}

void ft_stage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(stage, sizeof(stage), fmt, ap);
	va_end(ap);
	if (ft_opts.verbose)
		printf("%s: %s\n", test_name, stage);
}

void ft_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "FAIL: %s over %s: %s:%d: ", test_name, ft_opts.prov,
		base ? base + 1 : file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n  while: %s\n", stage);
	_exit(1);
}

void ft_skip(const char *fmt, ...)
{
	va_list ap;

	printf("SKIP: %s: ", test_name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(FT_SKIP_RC);
}

void ft_log(const char *fmt, ...)
{
	va_list ap;

	if (!ft_opts.verbose)
		return;
	printf("%s: ", test_name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

double ft_time_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec * 1e6 + (double) ts.tv_nsec / 1e3;
}

uint64_t ft_now_us(void)
{
	return (uint64_t) ft_time_us();
}

uint64_t ft_clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * UINT64_C(1000000) + ts.tv_nsec / 1000;
}

uint64_t ft_cpu_us(void)
{
	return ft_clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t ft_thread_us(void)
{
	return ft_clock_us(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t ft_rand(void)
{
	static uint64_t threads;
	static __thread uint64_t x;

	if (!x) {
		x = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) << 32;
		x = (x + ft_opts.seed) * 0x9e3779b97f4a7c15ULL;
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x * 0x2545f4914f6cdd1dULL >> 8;
}
