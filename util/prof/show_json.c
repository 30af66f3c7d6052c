/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results as JSON (show.h).
 */
#include "config.h"
#include "prof/show.h"

#include <errno.h>
#include <jansson.h>
#include <sys/utsname.h>

static void set_text(json_t *to, const char *key, const char *text)
{
	json_t *value = json_string(text);

	/* JSON allows only UTF-8 */
	json_object_set_new(to, key, value ? value : json_string("?"));
}

/* Sets a number, unless the number was not measured. */
static void set_real(json_t *to, const char *key, double value)
{
	if (isfinite(value))
		json_object_set_new(to, key, json_real(value));
}

static json_t *json_cells(const struct prof_cells *cells)
{
	json_t *array = json_array(), *object;
	const struct prof_cell *cell;
	size_t i;
	int id;

	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		object = json_object();
		set_text(object, "pages", prof_pages_name(cell->kind));
		set_text(object, "state", prof_state_name(cell->touched));
		json_object_set_new(object, "bytes",
				    json_integer((json_int_t) cell->size));
		json_object_set_new(object, "rounds",
				    json_integer(cell->rounds));
		for (id = 0; id < PROF_VALUE_CNT; id++)
			set_real(object, prof_value_names[id], cell->value[id]);
		set_real(object, "least_register_us",
			 cell->least[PROF_REGISTER]);
		set_real(object, "least_deregister_us",
			 cell->least[PROF_DEREGISTER]);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_fit(const struct prof_fit *fit)
{
	json_t *object = json_object();

	set_text(object, "pages", prof_pages_name(fit->kind));
	set_text(object, "state", prof_state_name(fit->touched));
	json_object_set_new(object, "sizes",
			    json_integer((json_int_t) fit->sizes));
	set_real(object, "reg_page", fit->cost.reg_page);
	set_real(object, "reg", fit->cost.reg);
	set_real(object, "dereg_page", fit->cost.dereg_page);
	set_real(object, "dereg", fit->cost.dereg);
	set_real(object, "register_r2", fit->error.reg_r2);
	set_real(object, "register_worst", fit->error.reg_worst);
	set_real(object, "deregister_r2", fit->error.dereg_r2);
	set_real(object, "deregister_worst", fit->error.dereg_worst);
	return object;
}

static json_t *json_model(const struct prof_model *model)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < model->fits; i++)
		json_array_append_new(array, json_fit(&model->fit[i]));
	return array;
}

static json_t *json_settings(const struct prof_model *model)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; i < model->settings; i++)
		set_text(object, model->setting[i].name,
			 model->setting[i].value);
	return object;
}

int prof_show_json(const struct prof_result *result, FILE *out)
{
	const struct prof_cells *cells = result->cells;
	const struct prof_fit *best = result->model->best;
	struct utsname name = { 0 };
	json_t *root = json_object();
	char text[160];
	int ret;

	uname(&name);
	set_text(root, "provider", prof_device_provider(result->device));
	set_text(root, "domain", prof_device_name(result->device));
	set_text(root, "kernel", name.release);
	if (*cells->untraced)
		set_text(root, "not_traced", cells->untraced);
	if (*cells->no_bandwidth)
		set_text(root, "no_bandwidth", cells->no_bandwidth);
	json_object_set_new(root, "cells", json_cells(cells));
	json_object_set_new(root, "fits", json_model(result->model));
	if (best) {
		prof_model_text(&best->cost, text, sizeof(text));
		set_text(root, "model", text);
	}
	if (json_object_set_new(root, "settings",
				json_settings(result->model))) {
		json_decref(root);
		return -ENOMEM;
	}
	errno = 0;
	ret = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(root);
	fputc('\n', out);
	if (ret || fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
