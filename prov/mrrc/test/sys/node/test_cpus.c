/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/node/cpus: quotas of control groups, idle time, affinity. */
#include "config.h"
#include "test/case.h"

#include <sched.h>
#include <sys/stat.h>

#include "test/fakes/fault.h"
#include "sys/node/cpus.h"

#define SECOND UINT64_C(1000000000)

static char root[64];

static void put(const char *name, const char *text)
{
	char path[256], *at;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (at = strchr(path + strlen(root) + 1, '/'); at;
	     at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void setup(void)
{
	snprintf(root, sizeof(root), "/tmp/test_cpus.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[128];

	fault_clock(0);
	snprintf(command, sizeof(command), "rm -r %s", root);
	ck_assert_int_eq(system(command), 0);
}

static void quota_is(double quota)
{
	ck_assert_double_eq_tol(mrrc_cpus_quota(root), quota, 1e-9);
}

TEST_CASE(cpus, setup, teardown);

TEST(test_v2)
{
	quota_is(0);
	put("proc/self/cgroup", "0::/a/b\n");
	quota_is(0);
	put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	quota_is(0);
	put("sys/fs/cgroup/a/cpu.max", "350000 100000\n");
	quota_is(3.5);
	put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	quota_is(1.5);
	put("sys/fs/cgroup/cpu.max", "50000 100000\n");
	quota_is(.5);
}

TEST(test_v1)
{
	put("proc/self/cgroup", "5:cpuset:/c\n4:cpu,cpuacct:/d\n0::/\n");
	put("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n");
	quota_is(0);
	put("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "200000\n");
	quota_is(2);
	put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "100000\n");
	put("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
	quota_is(2);
}

TEST(test_odd)
{
	put("proc/self/cgroup", "");
	quota_is(0);
	put("proc/self/cgroup", "0:\n:::\n\n0::/a");
	put("sys/fs/cgroup/a/cpu.max", "100000");
	quota_is(0);
	put("sys/fs/cgroup/a/cpu.max", "x y\n");
	quota_is(0);
	put("sys/fs/cgroup/a/cpu.max", "100000 0\n");
	quota_is(0);
}

TEST(test_idle)
{
	char path[128];
	cpu_set_t set;

	snprintf(path, sizeof(path), "%s/stat", root);
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	CPU_SET(12, &set);
	ck_assert_uint_eq(mrrc_cpus_idle(path, &set), 0);
	put("stat", "cpu  9 9 9 9 9 9\ncpu0 1 2 3 400 5 6\n"
		    "cpu1 1 2 3 40 50 6\ncpu12 7 7 7 1000 7 7\nintr 5\n");
	ck_assert_uint_eq(mrrc_cpus_idle(path, &set), 1097);
	put("stat", "cpu\ncpu1");
	ck_assert_uint_eq(mrrc_cpus_idle(path, &set), 0);
}

/* Files are read no more often than necessary. */
TEST(test_look_less)
{
	struct mrrc_cpus cpus = { 0 };

	fault_clock(SECOND);
	mrrc_cpus_look(&cpus, false);
	ck_assert_double_lt(cpus.idle, 0);
	ck_assert_uint_eq(cpus.when, 0);
	ck_assert_uint_eq(cpus.quota_when, SECOND);
	fault_clock(2 * SECOND - 1);
	mrrc_cpus_look(&cpus, true);
	ck_assert_uint_eq(cpus.quota_when, SECOND);
	fault_clock(2 * SECOND);
	mrrc_cpus_look(&cpus, true);
	ck_assert_uint_eq(cpus.quota_when, 2 * SECOND);
}
