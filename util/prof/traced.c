/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Times of cells while the kernel is traced: see measure.h, graph.h.
 */
#include "config.h"
#include "prof/measure.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS_TRACED	  9
#define ROUNDS_TRACED_MIN 3 /* rounds of one batch */
#define BATCH		  4
#define SHARE_TRACED	  .2 /* share of the time available */

/*
 * Forgets the values of the fastest call so far, when a faster call replaces
 * that call.
 */
static void forget(struct prof_cell *cell, enum prof_value first,
		   enum prof_value last)
{
	int id;

	for (id = (int) first; id <= (int) last; id++)
		cell->times[id].count = 0;
}

/*
 * Adds the tracer's times of a registration that took @took us in all. The cell
 * keeps the times of the fastest registration only, which was disturbed least.
 */
static int add_reg(struct prof_measure *m, struct prof_cell *cell,
		   const struct prof_call *call, double took)
{
	const struct prof_times *seen = &cell->times[PROF_TRACED];
	int ret;

	if (seen->count && seen->us[0] <= took)
		return 0;
	forget(cell, PROF_TRACED, PROF_DEVICE);
	ret = prof_add(m, cell, PROF_TRACED, took);
	if (!ret)
		ret = prof_add(m, cell, PROF_PIN, call->us[PROF_FUNC_PIN]);
	if (!ret)
		ret = prof_add(m, cell, PROF_TRANSLATE,
			       call->us[PROF_FUNC_UMEM] -
				       call->us[PROF_FUNC_PIN]);
	if (!ret)
		ret = prof_add(m, cell, PROF_DEVICE,
			       call->us[PROF_FUNC_CALL] -
				       call->us[PROF_FUNC_UMEM]);
	return ret;
}

static int add_dereg(struct prof_measure *m, struct prof_cell *cell,
		     const struct prof_call *call)
{
	const struct prof_times *unpin = &cell->times[PROF_UNPIN];
	const struct prof_times *rest = &cell->times[PROF_UNDEVICE];
	int ret;

	if (unpin->count &&
	    unpin->us[0] + rest->us[0] <= call->us[PROF_FUNC_CALL])
		return 0;
	forget(cell, PROF_UNPIN, PROF_UNDEVICE);
	ret = prof_add(m, cell, PROF_UNPIN, call->us[PROF_FUNC_RELEASE]);
	return ret ? ret :
		     prof_add(m, cell, PROF_UNDEVICE,
			      call->us[PROF_FUNC_CALL] -
				      call->us[PROF_FUNC_RELEASE]);
}

/*
 * Adds the calls of a batch, which must be one call for registering and one for
 * deregistering each buffer; a batch with other calls is dropped. The first two
 * calls of the batch are left out, since the tracer is not warmed up yet.
 */
static int add_calls(struct prof_measure *m, struct prof_cell *cell,
		     const double *took)
{
	const struct prof_graph *graph = m->graph;
	const struct prof_call *call;
	unsigned i;
	int ret = 0;

	if (graph->calls != 2 * BATCH)
		return 0;
	for (i = 2; i < graph->calls && !ret; i += 2) {
		call = &graph->call[i];
		if (call[0].us[PROF_FUNC_UMEM] <= 0 ||
		    call[1].us[PROF_FUNC_RELEASE] <= 0)
			return 0;
		ret = add_reg(m, cell, &call[0], took[i / 2]);
		if (!ret)
			ret = add_dereg(m, cell, &call[1]);
	}
	return ret;
}

static int traced_reg(struct prof_measure *m, struct prof_cell *cell,
		      double *took)
{
	char *buf = prof_touched_at(m, cell);
	size_t mapped = 0;
	double dereg;
	int ret = 0;

	if (!cell->touched)
		ret = prof_map_absent(m, cell, &buf, &mapped);
	if (ret)
		return ret;
	ret = prof_reg_once(m, buf, cell->size, took, &dereg);
	if (!cell->touched)
		mrrc_pages_unmap(buf, mapped);
	return ret;
}

static int traced_once(struct prof_measure *m, struct prof_cell *cell)
{
	double took[BATCH];
	int ret, stopped, i;

	ret = prof_graph_start(m->graph);
	if (ret)
		return prof_fail(m->err, ret, "tracing: %s", strerror(-ret));
	for (i = 0; i < BATCH && !ret; i++)
		ret = traced_reg(m, cell, &took[i]);
	stopped = prof_graph_stop(m->graph);
	if (ret)
		return ret;
	return stopped ? prof_fail(m->err, stopped, "tracing: %s",
				   strerror(-stopped)) :
			 add_calls(m, cell, took);
}

int prof_traced(struct prof_measure *m)
{
	struct prof_cells *cells = m->cells;
	struct prof_graph graph = { 0 };
	int ret;

	if (!m->options->trace) {
		snprintf(cells->untraced, sizeof(cells->untraced), "--skip");
		return 0;
	}
	if (prof_graph_open(&graph, cells->untraced, sizeof(cells->untraced)))
		return 0;
	m->graph = &graph;
	ret = prof_rounds(m, "traced", ROUNDS_TRACED_MIN, ROUNDS_TRACED,
			  SHARE_TRACED, traced_once);
	prof_graph_close(&graph);
	if (!ret && !cells->cell[0].times[PROF_TRACED].count)
		snprintf(cells->untraced, sizeof(cells->untraced),
			 "%s registers without the kernel",
			 prof_device_provider(m->device));
	return ret;
}
