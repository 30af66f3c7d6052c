/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables and CSV (show.h).
 */
#include "config.h"
#include "prof/show.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

static int finish(FILE *out)
{
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

/* Makes "16M" of 16777216. */
static const char *size_text(size_t bytes, char buf[24])
{
	static const char unit[] = " KMGT";
	unsigned i = 0;

	while (bytes && !(bytes % 1024) && i < 4) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, 24, i ? "%zu%c" : "%zu", bytes, unit[i]);
	return buf;
}

/* Prints a time, or "-" if it was not measured. */
static void put_us(double us, int width, FILE *out)
{
	if (isnan(us))
		fprintf(out, " %*s", width, "-");
	else
		fprintf(out, " %*.*f", width,
			us < 100   ? 2 :
			us < 10000 ? 1 :
				     0,
			us);
}

static void put_percent(double part, double whole, FILE *out)
{
	if (isnan(part) || isnan(whole))
		fprintf(out, " %9s", "-");
	else
		fprintf(out, " %8.1f%%", 100 * part / whole);
}

static void put_cell_name(const struct prof_cell *cell, FILE *out)
{
	char buf[24];

	fprintf(out, "  %-5s %-8s %6s", prof_pages_name(cell->kind),
		prof_state_name(cell->touched), size_text(cell->size, buf));
}

static void put_pages_size(const struct prof_cell *cell, FILE *out)
{
	char buf[24];

	fprintf(out, "  %-5s %6s", prof_pages_name(cell->kind),
		size_text(cell->size, buf));
}

static void put_head(const struct prof_result *result, FILE *out)
{
	const struct prof_cells *cells = result->cells;
	struct utsname name = { 0 };
	int kind;

	uname(&name);
	fprintf(out, "%s, %s; Linux %s. Times are microseconds, medians.\n",
		prof_device_provider(result->device),
		prof_device_name(result->device), name.release);
	for (kind = 0; kind < MRRC_PAGES_CNT; kind++) {
		if (cells->lacking[kind])
			fprintf(out, "No pages of %s: %s.\n",
				prof_pages_name(kind),
				kind == MRRC_PAGES_THP ?
					"transparent huge pages are off" :
					"too few pages are reserved "
					"(/sys/kernel/mm/hugepages)");
	}
}

static void put_registration(const struct prof_cells *cells, FILE *out)
{
	const struct prof_cell *cell;
	size_t i;

	fprintf(out,
		"\nRegistration\n  %-5s %-8s %6s %6s %10s %10s %10s %10s "
		"%10s %10s\n",
		"pages", "state", "bytes", "rounds", "map", "register",
		"deregister", "populate", "mlock", "copy");
	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		put_cell_name(cell, out);
		fprintf(out, " %6u", cell->rounds);
		put_us(cell->value[PROF_MAP], 10, out);
		put_us(cell->value[PROF_REGISTER], 10, out);
		put_us(cell->value[PROF_DEREGISTER], 10, out);
		put_us(cell->value[PROF_POPULATE], 10, out);
		put_us(cell->value[PROF_MLOCK], 10, out);
		put_us(cell->value[PROF_COPY], 10, out);
		fputc('\n', out);
	}
}

/*
 * Can registering be compared with populating? If registering takes less time
 * than populating, registering does not populate the pages. Before Linux 5.14
 * the time of populating is not known.
 */
static bool is_comparable(const struct prof_cells *cells)
{
	const struct prof_cell *cell;
	size_t i;

	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		if (!cell->touched && cell->value[PROF_REGISTER] <=
					      cell->value[PROF_POPULATE] / 4)
			return false;
	}
	return true;
}

/* Prints times of registering compared with other work on the same pages. */
static void put_compared(const struct prof_cells *cells, FILE *out)
{
	const struct prof_cell *cell, *touched;
	double whole, present;
	size_t i;

	fputs("\nOf the registration of absent pages, by comparison\n", out);
	if (!is_comparable(cells)) {
		fputs("  nothing: it takes less than making the pages\n", out);
		return;
	}
	fprintf(out, "  %-5s %6s %9s %9s %9s   %s\n", "pages", "bytes",
		"populate", "present", "sum", "mlock/present");
	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		if (cell->touched)
			continue;
		touched = prof_cell_find(cells, cell->kind, true, cell->size);
		whole = cell->value[PROF_REGISTER];
		present = touched->value[PROF_REGISTER];
		put_pages_size(cell, out);
		put_percent(cell->value[PROF_POPULATE], whole, out);
		put_percent(present, whole, out);
		put_percent(cell->value[PROF_POPULATE] + present, whole, out);
		put_percent(touched->value[PROF_MLOCK], present, out);
		fputc('\n', out);
	}
}

static void put_traced(const struct prof_cells *cells, FILE *out)
{
	const struct prof_cell *cell;
	size_t i;

	fputs("\nOf the registration, by the kernel's functions\n", out);
	if (*cells->untraced) {
		fprintf(out, "  not traced: %s\n", cells->untraced);
		return;
	}
	fprintf(out, "  %-5s %-8s %6s %10s %9s %9s %9s %9s   %10s %9s %9s\n",
		"pages", "state", "bytes", "traced", "pin", "translate",
		"device", "outside", "untraced", "unpin", "undevice");
	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		put_cell_name(cell, out);
		put_us(cell->value[PROF_TRACED], 10, out);
		put_percent(cell->value[PROF_PIN], cell->value[PROF_TRACED],
			    out);
		put_percent(cell->value[PROF_TRANSLATE],
			    cell->value[PROF_TRACED], out);
		put_percent(cell->value[PROF_DEVICE], cell->value[PROF_TRACED],
			    out);
		put_percent(cell->value[PROF_TRACED] - cell->value[PROF_PIN] -
				    cell->value[PROF_TRANSLATE] -
				    cell->value[PROF_DEVICE],
			    cell->value[PROF_TRACED], out);
		fputs("  ", out);
		put_us(cell->value[PROF_REGISTER], 10, out);
		put_us(cell->value[PROF_UNPIN], 9, out);
		put_us(cell->value[PROF_UNDEVICE], 9, out);
		fputc('\n', out);
	}
}

static void put_bandwidth(const struct prof_cells *cells, FILE *out)
{
	const struct prof_cell *cell;
	char buf[24];
	size_t i;

	fputs("\nBandwidth, MB/s\n", out);
	if (*cells->no_bandwidth) {
		fprintf(out, "  not measured: %s\n", cells->no_bandwidth);
		return;
	}
	fprintf(out, "  %6s %14s %14s %8s\n", "bytes", "registering",
		"registered", "factor");
	for (i = 0; i < cells->count; i++) {
		cell = &cells->cell[i];
		if (prof_has(cell, PROF_GIVEN))
			fprintf(out, "  %6s %14.1f %14.1f %8.2f\n",
				size_text(cell->size, buf),
				cell->value[PROF_REGISTERING],
				cell->value[PROF_GIVEN],
				cell->value[PROF_GIVEN] /
					cell->value[PROF_REGISTERING]);
	}
}

static void put_model(const struct prof_model *model, FILE *out)
{
	const struct prof_fit *fit;
	size_t i;

	fprintf(out,
		"\nModel: registering p pages of 4 KiB takes reg_page "
		"* p + reg ns\n  %-5s %-8s %9s %9s %7s %6s "
		"%10s %9s %7s %6s\n",
		"pages", "state", "reg_page", "reg", "R^2", "worst",
		"dereg_page", "dereg", "R^2", "worst");
	for (i = 0; i < model->fits; i++) {
		fit = &model->fit[i];
		fprintf(out,
			"  %-5s %-8s %9.2f %9.0f %7.4f %5.0f%% %10.2f "
			"%9.0f %7.4f %5.0f%%\n",
			prof_pages_name(fit->kind),
			prof_state_name(fit->touched), fit->cost.reg_page,
			fit->cost.reg, fit->error.reg_r2,
			100 * fit->error.reg_worst, fit->cost.dereg_page,
			fit->cost.dereg, fit->error.dereg_r2,
			100 * fit->error.dereg_worst);
	}
	if (!model->fits)
		fputs("  none: two sizes are needed\n", out);
	if (model->best && model->best->cost.copy_page > 0)
		fprintf(out, "  copying p pages: %.0f * p + %.0f ns\n",
			model->best->cost.copy_page, model->best->cost.copy);
}

static void put_settings(const struct prof_model *model, FILE *out)
{
	size_t i;

	fputs("\nSettings\n", out);
	for (i = 0; i < model->settings; i++)
		fprintf(out, "  %s=%s\n    # %s\n", model->setting[i].name,
			model->setting[i].value, model->setting[i].why);
	if (!model->settings)
		fputs("  none: pages of 4k and two sizes are needed\n", out);
}

int prof_show_table(const struct prof_result *result, FILE *out)
{
	errno = 0;
	put_head(result, out);
	put_registration(result->cells, out);
	put_compared(result->cells, out);
	put_traced(result->cells, out);
	put_bandwidth(result->cells, out);
	put_model(result->model, out);
	put_settings(result->model, out);
	return finish(out);
}

int prof_show_csv(const struct prof_result *result, FILE *out)
{
	const struct prof_cell *cell;
	size_t i;
	int id;

	errno = 0;
	fputs("pages,state,bytes,rounds", out);
	for (id = 0; id < PROF_VALUE_CNT; id++)
		fprintf(out, ",%s", prof_value_names[id]);
	fputs(",least_register_us,least_deregister_us\n", out);
	for (i = 0; i < result->cells->count; i++) {
		cell = &result->cells->cell[i];
		fprintf(out, "%s,%s,%zu,%u", prof_pages_name(cell->kind),
			prof_state_name(cell->touched), cell->size,
			cell->rounds);
		for (id = 0; id < PROF_VALUE_CNT; id++) {
			fputc(',', out);
			if (prof_has(cell, id))
				fprintf(out, "%.3f", cell->value[id]);
		}
		fprintf(out, ",%.3f,%.3f\n", cell->least[PROF_REGISTER],
			cell->least[PROF_DEREGISTER]);
	}
	return finish(out);
}
