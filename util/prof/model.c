/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines and settings (model.h).
 */
#include "config.h"
#include "prof/model.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define SAMPLES_MAX 64
#define BOUNCE_MAX  16 /* maximum pages that the provider copies */
/* us of a deregistration that justifies a helper thread */
#define HELPER_US   5
#define HELPER_SIZE ((size_t) 64 << 10)
#define BLOCK_SIZE  ((size_t) 2 << 20)
#define PAGES_GAIN  .9 /* maximum share of the default pages' time */

/* ---- lines ---- */

/*
 * Returns the nanoseconds to copy @size bytes in pages of 4 KiB, or 0 if the
 * time is not known. The provider copies no buffer of more than BOUNCE_MAX
 * pages.
 */
static double copy_ns(const struct prof_cells *cells, size_t size)
{
	const struct prof_cell *cell =
		prof_cell_find(cells, MRRC_PAGES_4K, true, size);

	return cell && prof_has(cell, PROF_COPY) &&
			       size <= BOUNCE_MAX * PROF_PAGE ?
		       cell->least[PROF_COPY] * 1e3 :
		       0;
}

static bool fit_one(const struct prof_cells *cells, enum mrrc_pages kind,
		    bool touched, struct prof_fit *fit)
{
	struct mrrc_cost_sample sample[SAMPLES_MAX];
	const struct prof_cell *cell;
	size_t count = 0, i;

	for (i = 0; i < cells->count && count < SAMPLES_MAX; i++) {
		cell = &cells->cell[i];
		if (cell->kind != kind || cell->touched != touched ||
		    !prof_has(cell, PROF_REGISTER))
			continue;
		sample[count++] = (struct mrrc_cost_sample){
			.pages = cell->size / PROF_PAGE,
			.reg = cell->least[PROF_REGISTER] * 1e3,
			.dereg = cell->least[PROF_DEREGISTER] * 1e3,
			.copy = copy_ns(cells, cell->size),
		};
	}
	*fit = (struct prof_fit){
		.kind = kind,
		.touched = touched,
		.sizes = count,
	};
	return !mrrc_cost_fit(sample, count, PROF_PAGE, &fit->cost) &&
	       !mrrc_cost_error(sample, count, &fit->cost, &fit->error);
}

static void fit_all(const struct prof_cells *cells, struct prof_model *model)
{
	int kind, touched;

	for (kind = 0; kind < MRRC_PAGES_CNT; kind++) {
		for (touched = 1; touched >= 0; touched--) {
			if (!fit_one(cells, kind, touched,
				     &model->fit[model->fits]))
				continue;
			if (kind == MRRC_PAGES_4K && touched)
				model->best = &model->fit[model->fits];
			model->fits++;
		}
	}
}

/* ---- settings ---- */

static struct prof_setting *setting(struct prof_model *model, const char *name)
{
	struct prof_setting *next = &model->setting[model->settings++];

	next->name = name;
	return next;
}

static void set_cost(struct prof_model *model, const char *file)
{
	struct prof_setting *set = setting(model, "FI_OFI_MRRC_COST");
	const struct mrrc_cost_error *error = &model->best->error;

	if (file)
		snprintf(set->value, sizeof(set->value), "file:%s", file);
	else
		prof_model_text(&model->best->cost, set->value,
				sizeof(set->value));
	snprintf(set->why, sizeof(set->why), "R^2 %.4f and %.4f", error->reg_r2,
		 error->dereg_r2);
}

/* Sets the size at which one copy costs as much as one registration. */
static void set_bounce(struct prof_model *model)
{
	const struct mrrc_cost *cost = &model->best->cost;
	const double page = cost->copy_page - cost->reg_page - cost->dereg_page;
	const double once = cost->reg + cost->dereg - cost->copy;
	struct prof_setting *set = setting(model, "FI_OFI_MRRC_BOUNCE_SIZE");
	size_t pages = BOUNCE_MAX;

	if (page > 0 && once / page < BOUNCE_MAX)
		pages = once > 0 ? (size_t) (once / page) : 0;
	snprintf(set->value, sizeof(set->value), pages ? "%zuK" : "%zu",
		 pages * PROF_PAGE / 1024);
	snprintf(set->why, sizeof(set->why),
		 "copying a page takes %.2f us, "
		 "registering and deregistering it %.2f",
		 mrrc_cost_copy(cost, PROF_PAGE) / 1e3,
		 (mrrc_cost_reg(cost, PROF_PAGE) +
		  mrrc_cost_dereg(cost, PROF_PAGE)) /
			 1e3);
}

static double block_us(const struct prof_cells *cells, enum mrrc_pages kind,
		       size_t size)
{
	const struct prof_cell *cell = prof_cell_find(cells, kind, false, size);

	if (!cell || !prof_has(cell, PROF_REGISTER))
		return NAN;
	return cell->value[PROF_MAP] + cell->value[PROF_REGISTER];
}

/*
 * Chooses the kind of pages that is fastest for blocks of the largest measured
 * size; the setting auto takes thp for blocks of this size.
 */
static void set_pages(const struct prof_cells *cells, struct prof_model *model)
{
	struct prof_setting *set;
	enum mrrc_pages kind, best = MRRC_PAGES_THP;
	double thp, least, us;
	size_t size = 0, i;

	for (i = 0; i < cells->count; i++) {
		if (cells->cell[i].size > size)
			size = cells->cell[i].size;
	}
	thp = least = block_us(cells, MRRC_PAGES_THP, size);
	if (size < BLOCK_SIZE || isnan(thp))
		return;
	for (kind = 0; kind < MRRC_PAGES_CNT; kind++) {
		us = block_us(cells, kind, size);
		if (us < PAGES_GAIN * thp && us < least) {
			least = us;
			best = kind;
		}
	}
	set = setting(model, "FI_OFI_MRRC_ALLOC_PAGES");
	snprintf(set->value, sizeof(set->value), "%s",
		 best == MRRC_PAGES_THP ? "auto" : prof_pages_name(best));
	snprintf(set->why, sizeof(set->why),
		 "a block of %zu KiB takes %.0f us "
		 "in pages of %s",
		 size / 1024, least, prof_pages_name(best));
}

static void set_helper(struct prof_model *model)
{
	const double us =
		mrrc_cost_dereg(&model->best->cost, HELPER_SIZE) / 1e3;
	struct prof_setting *set = setting(model, "FI_OFI_MRRC_HELPER");

	snprintf(set->value, sizeof(set->value), "%s",
		 us >= HELPER_US ? "always" : "auto");
	snprintf(set->why, sizeof(set->why),
		 "deregistering 64 KiB takes %.2f "
		 "us",
		 us);
}

void prof_model_make(const struct prof_cells *cells, const char *file,
		     struct prof_model *model)
{
	*model = (struct prof_model){ 0 };
	fit_all(cells, model);
	if (model->best) {
		set_cost(model, file);
		if (model->best->cost.copy_page > 0) /* known */
			set_bounce(model);
		set_helper(model);
	}
	set_pages(cells, model);
}

/* ---- the file ---- */

void prof_model_text(const struct mrrc_cost *cost, char *text, size_t size)
{
	snprintf(text, size,
		 "reg_page=%.2f:reg=%.2f:dereg_page=%.2f:dereg=%.2f:"
		 "copy_page=%.2f:copy=%.2f",
		 cost->reg_page, cost->reg, cost->dereg_page, cost->dereg,
		 cost->copy_page, cost->copy);
}

int prof_model_put(const struct prof_device *device, const struct prof_fit *fit,
		   FILE *file)
{
	struct utsname name = { 0 };
	char text[160], day[32] = "";
	const time_t now = time(NULL);
	struct tm tm;

	errno = 0;
	uname(&name);
	if (gmtime_r(&now, &tm))
		strftime(day, sizeof(day), "%Y-%m-%d", &tm);
	prof_model_text(&fit->cost, text, sizeof(text));
	fprintf(file,
		"# fi_mrrc_prof: %s, %s; Linux %s, %s\n"
		"# ns of p pages of 4 KiB: registration reg_page * p + reg\n"
		"# R^2 %.4f and %.4f, %zu sizes\n%s\n",
		prof_device_provider(device), prof_device_name(device),
		name.release, day, fit->error.reg_r2, fit->error.dereg_r2,
		fit->sizes, text);
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}
