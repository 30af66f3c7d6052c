/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests parts of fi_mrrc_prof: the tracer's lines, medians, fitted lines and
 * the resulting settings, and the printed and saved results.
 */
#include "config.h"
#include "test/case.h"

#include <jansson.h>

#include "prof/graph.h"
#include "prof/show.h"

/* ---- the tracer ---- */

static const struct {
	const char *line;
	bool is;
	enum prof_func func;
	double us;
} lines[] = {
	{ " 1)               |  __x64_sys_ioctl() {\n", false, 0, 0 },
	{ " 1)               |    ib_umem_get [ib_uverbs]() {\n", false, 0, 0 },
	{ " 1) + 23.456 us   |      pin_user_pages_fast();\n", true,
	  PROF_FUNC_PIN, 23.456 },
	{ " 0)   0.812 us    |      pin_user_pages();\n", true, PROF_FUNC_PIN,
	  .812 },
	{ " 1) ! 123.456 us  |    } /* ib_umem_get [ib_uverbs] */\n", true,
	  PROF_FUNC_UMEM, 123.456 },
	{ " 1) # 1234.567 us |  } /* __x64_sys_ioctl */\n", true,
	  PROF_FUNC_CALL, 1234.567 },
	{ " 1) $ 4000000 us  |  } /* ib_umem_release [ib_uverbs] */\n", true,
	  PROF_FUNC_RELEASE, 4e6 },
	{ " 1)   1.5 us      |  ib_umem_release [ib_uverbs]();\n", true,
	  PROF_FUNC_RELEASE, 1.5 },
	/* without a name, of another function, without a time */
	{ " 1) + 23.456 us   |  }\n", false, 0, 0 },
	{ " 1) + 23.456 us   |  ib_umem_get_peer();\n", false, 0, 0 },
	{ " 1) + 23.456 us   |  ib_umem();\n", false, 0, 0 },
	{ " 1)               |  ib_umem_get();\n", false, 0, 0 },
	{ " 1) + us   |  ib_umem_get();\n", false, 0, 0 },
	{ " 1)  bash-12  =>  fio-34\n", false, 0, 0 },
	{ "# tracer: function_graph\n", false, 0, 0 },
	{ "#     |     |   |  12 us  ib_umem_get();\n", false, 0, 0 },
	{ "|\n", false, 0, 0 },
	{ "", false, 0, 0 },
	{ " us | } /* ", false, 0, 0 },
};

/* ---- cells ---- */

static struct prof_cells cells;

static struct prof_cell *cell(enum mrrc_pages kind, bool touched, size_t size)
{
	struct prof_cell *next = &cells.cell[cells.count++];

	next->kind = kind;
	next->touched = touched;
	next->size = size;
	return next;
}

static void put(struct prof_cell *to, enum prof_value id, double value)
{
	ck_assert_int_eq(prof_cell_add(to, id, value), 0);
}

/* Sets times on a line, all but one of them with a disturbance. */
static void measured(enum mrrc_pages kind, bool touched, double page_us,
		     double us)
{
	struct prof_cell *to;
	double pages;
	size_t size;
	int i;

	for (size = PROF_PAGE; size <= (4 << 20); size *= 4) {
		to = cell(kind, touched, size);
		pages = (double) (size / PROF_PAGE);
		for (i = 0; i < 5; i++) {
			put(to, PROF_REGISTER, page_us * pages + us + i);
			put(to, PROF_DEREGISTER, .25 * pages + 8 + i);
			if (touched)
				put(to, PROF_COPY, 2 * pages + i);
			else
				put(to, PROF_MAP, 3);
		}
	}
}

static void settle(void)
{
	size_t i;

	for (i = 0; i < cells.count; i++)
		prof_cell_settle(&cells.cell[i]);
}

static void setup(void)
{
	cells = (struct prof_cells){ .cell = calloc(64,
						    sizeof(struct prof_cell)) };
	ck_assert_ptr_nonnull(cells.cell);
}

static void teardown(void)
{
	prof_cells_free(&cells);
}

TEST_CASE(prof, setup, teardown);

TEST(test_lines)
{
	enum prof_func func;
	double us;
	size_t i;
	bool is;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		is = prof_graph_line(lines[i].line, &func, &us);
		ck_assert_msg(is == lines[i].is, "%s", lines[i].line);
		if (is)
			ck_assert_msg(func == lines[i].func &&
					      us == lines[i].us,
				      "%s: %d %g", lines[i].line, func, us);
	}
}

TEST(test_settle)
{
	struct prof_cell *to = cell(MRRC_PAGES_4K, true, PROF_PAGE);

	put(to, PROF_REGISTER, 9);
	put(to, PROF_REGISTER, 2);
	put(to, PROF_REGISTER, 4);
	put(to, PROF_DEREGISTER, 9);
	put(to, PROF_DEREGISTER, 3);
	settle();
	ck_assert_double_eq(to->value[PROF_REGISTER], 4);
	ck_assert_double_eq(to->least[PROF_REGISTER], 2);
	ck_assert_double_eq(to->value[PROF_DEREGISTER], 6);
	ck_assert_uint_eq(to->rounds, 3);
	ck_assert(!prof_has(to, PROF_MLOCK));
	ck_assert_ptr_eq(prof_cell_find(&cells, MRRC_PAGES_4K, true, PROF_PAGE),
			 to);
	ck_assert_ptr_null(
		prof_cell_find(&cells, MRRC_PAGES_4K, false, PROF_PAGE));
}

static const char *value_of(const struct prof_model *model, const char *name)
{
	size_t i;

	for (i = 0; i < model->settings; i++) {
		if (!strcmp(model->setting[i].name, name))
			return model->setting[i].value;
	}
	return "";
}

static void near(double is, double want)
{
	ck_assert_msg(fabs(is - want) <= .01 * want, "%g instead of %g", is,
		      want);
}

TEST(test_model)
{
	struct prof_model model;

	measured(MRRC_PAGES_4K, true, .5, 10);
	measured(MRRC_PAGES_4K, false, 10, 20);
	measured(MRRC_PAGES_THP, true, .1, 10);
	measured(MRRC_PAGES_THP, false, 8, 20);
	measured(MRRC_PAGES_2M, false, 1, 20);
	settle();
	prof_model_make(&cells, NULL, &model);
	ck_assert_uint_eq(model.fits, 5);
	ck_assert_ptr_nonnull(model.best);
	ck_assert(model.best->touched && model.best->kind == MRRC_PAGES_4K);
	near(model.best->cost.reg_page, 500);
	near(model.best->cost.reg, 10000);
	near(model.best->cost.dereg_page, 250);
	near(model.best->cost.dereg, 8000);
	near(model.best->cost.copy_page, 2000);
	near(model.best->error.reg_r2, 1);
	ck_assert_double_lt(model.best->error.reg_worst, .001);
	/* 18 us at 1.25 us a page less */
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_BOUNCE_SIZE"), "56K");
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_HELPER"), "always");
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_ALLOC_PAGES"), "2m");
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_COST"),
			 "reg_page=500.00:reg=10000.00:dereg_page=250.00:"
			 "dereg=8000.00:copy_page=2000.00:copy=0.00");
	prof_model_make(&cells, "/x/y", &model);
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_COST"), "file:/x/y");
}

/* If copies save little, only small buffers are copied; no block has a kind. */
TEST(test_small_bounce)
{
	struct prof_model model;

	measured(MRRC_PAGES_4K, true, .01, .02);
	settle();
	prof_model_make(&cells, NULL, &model);
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_BOUNCE_SIZE"), "16K");
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_ALLOC_PAGES"), "");
}

/*
 * If no copy was measured, the profiler advises no FI_OFI_MRRC_BOUNCE_SIZE.
 */
TEST(test_no_copy)
{
	struct prof_model model;
	size_t i;

	measured(MRRC_PAGES_4K, true, .5, 10);
	for (i = 0; i < cells.count; i++)
		cells.cell[i].times[PROF_COPY].count = 0;
	settle();
	prof_model_make(&cells, NULL, &model);
	ck_assert_ptr_nonnull(model.best);
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_BOUNCE_SIZE"), "");
	ck_assert_str_ne(value_of(&model, "FI_OFI_MRRC_HELPER"), "");
}

/* The fastest pages, although others are nearly as fast. */
TEST(test_fastest_pages)
{
	struct prof_model model;

	measured(MRRC_PAGES_THP, false, 8, 20);
	measured(MRRC_PAGES_2M, false, 1.05, 20);
	measured(MRRC_PAGES_1G, false, 1, 20);
	settle();
	prof_model_make(&cells, NULL, &model);
	ck_assert_str_eq(value_of(&model, "FI_OFI_MRRC_ALLOC_PAGES"), "1g");
}

TEST(test_no_model)
{
	struct prof_model model;

	put(cell(MRRC_PAGES_4K, true, PROF_PAGE), PROF_REGISTER, 1);
	settle();
	prof_model_make(&cells, NULL, &model);
	ck_assert_uint_eq(model.fits, 0);
	ck_assert_uint_eq(model.settings, 0);
	ck_assert_ptr_null(model.best);
}

/* ---- printing ---- */

static struct fi_fabric_attr fabric_attr;
static struct fi_domain_attr domain_attr;
static struct fi_info info = {
	.fabric_attr = &fabric_attr,
	.domain_attr = &domain_attr,
};
static const struct prof_device device = { .info = &info };

TEST(test_saved)
{
	struct prof_model model;
	struct mrrc_cost cost;
	char *text = NULL;
	size_t len;
	FILE *file;

	measured(MRRC_PAGES_4K, true, .5, 10);
	settle();
	prof_model_make(&cells, NULL, &model);
	file = open_memstream(&text, &len);
	ck_assert_int_eq(prof_model_put(&device, model.best, file), 0);
	fclose(file);
	ck_assert_int_eq(mrrc_cost_parse_file(text, &cost), 0);
	near(cost.reg_page, 500);
	near(cost.copy_page, 2000);
	free(text);
}

TEST(test_shown)
{
	static const struct prof_options options = { .format = PROF_TABLE };
	struct prof_result result = {
		.options = &options,
		.device = &device,
		.cells = &cells,
	};
	struct prof_model model;
	json_error_t error;
	char *text = NULL;
	json_t *root;
	FILE *file;
	size_t len;

	measured(MRRC_PAGES_4K, true, .5, 10);
	measured(MRRC_PAGES_4K, false, 5, 10);
	settle();
	strcpy(cells.untraced, "why \"not\"");
	cells.lacking[MRRC_PAGES_2M] = true;
	prof_model_make(&cells, NULL, &model);
	result.model = &model;
	file = open_memstream(&text, &len);
	ck_assert_int_eq(prof_show_json(&result, file), 0);
	fclose(file);
	root = json_loads(text, 0, &error);
	ck_assert_msg(root != NULL, "%s", error.text);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "cells")),
			  cells.count);
	ck_assert_str_eq(json_string_value(json_object_get(root, "not_traced")),
			 cells.untraced);
	json_decref(root);
	free(text);
	text = NULL;
	file = open_memstream(&text, &len);
	ck_assert_int_eq(prof_show_table(&result, file), 0);
	fclose(file);
	ck_assert_ptr_nonnull(strstr(text, "No pages of 2m"));
	ck_assert_ptr_nonnull(strstr(text, "not traced: why"));
	/* the time of populating is not known here */
	ck_assert_ptr_null(strstr(text, "it takes less than making the pages"));
	ck_assert_ptr_null(strstr(text, "nan"));
	free(text);
	file = fopen("/dev/full", "w");
	if (file) {
		ck_assert_int_eq(prof_show_csv(&result, file), -ENOSPC);
		fclose(file);
	}
}

int main(void)
{
	fabric_attr.prov_name = (char *) "verbs";
	domain_attr.name = (char *) "rxe0";
	return run_cases(CK_FORK_GETENV);
}
