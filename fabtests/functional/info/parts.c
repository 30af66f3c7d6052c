/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_parts: tests a provider that was built without the parts that
 * FT_WITHOUT lists (configure --disable-PART). The provider prints once that a
 * part is missing, to programs that use the part; fi_mrrc_feature() reports
 * missing parts, too. All other parts exist.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <fcntl.h>

static char output[65536];

static int call_alloc(struct ft_pair *pair)
{
	struct fid_domain *domain = pair->dom[0].domain;
	void *buf;
	int ret = fi_mr_alloc(domain, 64, FI_SEND, 0, &buf, NULL);

	if (!ret)
		FT_CALL(fi_mr_free(domain, buf));
	return ret;
}

static int call_cw(struct ft_pair *pair)
{
	struct fi_mrrc_cw *cw;

	return fi_cw_open(pair->c.ep, &cw);
}

static int call_files(struct ft_pair *pair)
{
	struct fid_mrrc_file *file;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ret;

	ret = fi_mrrc_file_open(pair->dom[0].domain, fd, 0, &file, NULL);
	if (!ret)
		FT_CALL(fi_close(&file->fid));
	close(fd);
	return ret;
}

static const struct part {
	const char *name;
	const char *feature;
	const char *variable, *value; /* a setting without effect, or NULL */
	int (*call)(struct ft_pair *pair);
} parts[] = {
	{ "alloc", "alloc", NULL, NULL, call_alloc },
	{ "alloc", "heap", "FI_OFI_MRRC_ALLOC_IDLE", "1", NULL },
	{ "cw", "cw", NULL, NULL, call_cw },
	{ "files", "file", NULL, NULL, call_files },
	{ "helper", "helper", "FI_OFI_MRRC_HELPER", "predict", NULL },
	{ "hooks", "hooks", "FI_OFI_MRRC_HOOKS", "1", NULL },
	{ "hooks", "hooks", "FI_OFI_MRRC_CODE_FILE", "/tmp/code", NULL },
	{ "node", "node", "FI_OFI_MRRC_NODE_MAX_SIZE", "1G", NULL },
	{ "record", "record", "FI_OFI_MRRC_TRACE", "/dev/null", NULL },
	{ "record", "record", "FI_OFI_MRRC_STATS_FILE", "/dev/null", NULL },
};

static bool left_out(const struct part *part)
{
	const char *list = getenv("FT_WITHOUT");
	char *copy = strdup(list ? list : ""), *word, *next = copy;
	bool found = false;

	while ((word = strsep(&next, " ")))
		found = found || !strcmp(word, part->name);
	free(copy);
	return found;
}

static void run_case(const void *arg)
{
	const struct part *part = arg;
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	int ret, i;

	if (part->variable)
		setenv(part->variable, part->value, 1);
	ft_pair_open(&pair, &attr);
	for (i = 0; part->call && i < 2; i++) {
		ret = part->call(&pair);
		FT_CHECK(ret == (left_out(part) ? -FI_ENOSYS : 0), "%s: %d",
			 part->name, ret);
	}
	ret = fi_mrrc_feature(&pair.dom[0].domain->fid, part->feature);
	FT_CHECK(ret == !left_out(part), "feature %s: %d", part->feature, ret);
	if (!strcmp(part->name, "hooks") && left_out(part)) {
		ft_stats(&pair.dom[0], &st);
		FT_CHECK(!strstr(st.monitor, "hooks"), "monitor %s",
			 st.monitor);
	}
	ft_pair_close(&pair);
}

/*
 * Checks the line about a part, which is printed once if the part was left out,
 * else not.
 */
static void check_said(const struct part *part)
{
	char line[128];
	char *said;

	snprintf(line, sizeof(line), "built without %s\n", part->name);
	said = strstr(output, line);
	if (!left_out(part))
		FT_CHECK(!said, "%s: %s", part->name, output);
	else
		FT_CHECK(said && !strstr(said + 1, line),
			 "%s: not one line\n%s", part->name, output);
}

int main(int argc, char **argv)
{
	const struct part *part;

	unsetenv("FI_LOG_LEVEL");
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("the core has no parts");
	for (part = parts; part < parts + sizeof(parts) / sizeof(*parts);
	     part++) {
		ft_in_child(part->name, run_case, part, output, sizeof(output));
		check_said(part);
	}
	return ft_done();
}
