/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_prof: measures the cost of registering memory on a device
 * (fi_mrrc_prof(1)). fi_mrrc_prof links libfabric, and measures providers other
 * than ofi_mrrc.
 */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "prof/show.h"
#include "sim/trace.h"
#include "sim/write.h"

#define STATUS_INTERRUPTED 130

static int complain(const char *text)
{
	fprintf(stderr, "fi_mrrc_prof: %s\n", text);
	return EXIT_FAILURE;
}

static void on_signal(int number)
{
	prof_stop = 1;
}

/*
 * Catches signals, so that the tracer's settings are restored before the
 * program ends.
 */
static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int put_result(FILE *out, void *arg)
{
	const struct prof_result *result = arg;

	switch (result->options->format) {
	case PROF_CSV:
		return prof_show_csv(result, out);
	case PROF_JSON:
		return prof_show_json(result, out);
	default:
		return prof_show_table(result, out);
	}
}

static int put_model(FILE *out, void *arg)
{
	const struct prof_result *result = arg;

	return prof_model_put(result->device, result->model->best, out);
}

static int write_all(struct prof_result *result)
{
	const struct prof_options *options = result->options;
	char err[SIM_ERR_MAX];

	if (options->save && !result->model->best)
		return complain("--save: there is no model: pages of 4k and "
				"two sizes are needed");
	if (options->save &&
	    sim_write(options->save, put_model, result, err, sizeof(err)))
		return complain(err);
	if (sim_write(options->output, put_result, result, err, sizeof(err)))
		return complain(err);
	return EXIT_SUCCESS;
}

static int profile(const struct prof_options *options,
		   struct prof_device *device)
{
	struct prof_cells cells;
	struct prof_model model;
	struct prof_err err;
	struct prof_result result = {
		.options = options,
		.device = device,
		.cells = &cells,
		.model = &model,
	};
	int ret;

	ret = prof_cells_measure(options, device, &cells, &err);
	if (ret) {
		complain(err.text);
		return prof_stop ? STATUS_INTERRUPTED : EXIT_FAILURE;
	}
	prof_model_make(&cells, options->save, &model);
	ret = write_all(&result);
	prof_cells_free(&cells);
	return ret;
}

int main(int argc, char **argv)
{
	struct prof_options options;
	struct prof_device device;
	struct prof_err err;
	int ret;

	out_check_at_exit("fi_mrrc_prof");
	argp_program_version = PACKAGE_STRING;
	prof_options_parse(argc, argv, &options);
	prof_device_env();
	catch_signals();
	if (options.list) {
		ret = prof_device_list(&err) ? complain(err.text) :
					       EXIT_SUCCESS;
	} else if (prof_device_open(&options, &device, &err)) {
		ret = complain(err.text);
	} else {
		ret = profile(&options, &device);
		prof_device_close(&device);
	}
	prof_options_free(&options);
	return ret;
}
