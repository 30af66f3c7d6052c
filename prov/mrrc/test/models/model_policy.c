/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The policies by their definitions, without regard to speed (model.h). */
#include "config.h"
#include "test/models/model.h"

#include <math.h>
#include <string.h>

#define HISTORY_PERIOD 10240 /* period of the smallest sketch */

static bool is(const struct model *model, const char *name)
{
	return !strncmp(model->cache->policy->ops->name, name, strlen(name));
}

static size_t param(const struct model *model, int i)
{
	return model->cache->policy->param[i];
}

static void remove_at(struct model *model, unsigned i)
{
	memmove(&model->entry[i], &model->entry[i + 1],
		(--model->count - i) * sizeof(model->entry[0]));
}

/* Moves an entry to the newest place, and returns it there. */
static struct entry *renew(struct model *model, unsigned i)
{
	const struct entry e = model->entry[i];

	remove_at(model, i);
	model->entry[model->count] = e;
	return &model->entry[model->count++];
}

/* ---- gdsf ---- */

/* Rounds a value to four equal steps an octave. */
static double quantised(double value)
{
	int exponent;
	double fraction = 2 * frexp(value, &exponent) - 1;

	return ldexp(1 + floor(4 * fraction) / 4, exponent - 1);
}

static void gdsf_place(struct model *model, struct entry *e)
{
	const struct mrrc_cost *cost = &model->cache->cost;
	const size_t len = (size_t) e->pages * PAGE;

	e->value = quantised(
		e->uses *
		(mrrc_cost_reg(cost, len) + mrrc_cost_dereg(cost, len)) /
		e->pages);
	e->priority = model->floor + e->value;
	e->turn = ++model->turn;
}

static void gdsf_use(struct model *model, struct entry *e)
{
	unsigned i;

	e->uses++;
	if (param(model, 0)) {
		if (++model->added >= HISTORY_PERIOD) {
			for (i = 0; i < SPACE; i++)
				model->history[i] /= 2;
			model->added = 0;
		}
		if (model->history[e->first] < 255)
			model->history[e->first]++;
		e->uses = model->history[e->first];
	}
	gdsf_place(model, e);
}

/* Returns the first entry in turn with this value. */
static unsigned gdsf_head(const struct model *model, double value)
{
	unsigned best = model->count;
	unsigned i;

	for (i = 0; i < model->count; i++) {
		if (model->entry[i].value == value &&
		    (best == model->count ||
		     model->entry[i].turn < model->entry[best].turn))
			best = i;
	}
	return best;
}

/* In each class, held entries before the first unheld one are renewed. */
static void gdsf_rotate(struct model *model)
{
	unsigned head, i, left;

	for (i = 0; i < model->count; i++) {
		left = model->count;
		head = gdsf_head(model, model->entry[i].value);
		for (; left && mrrc_region_held(model->entry[head].region);
		     left--) {
			gdsf_place(model, &model->entry[head]);
			head = gdsf_head(model, model->entry[i].value);
		}
	}
}

static unsigned gdsf_victim(struct model *model)
{
	unsigned best = model->count;
	const struct entry *e;
	unsigned i;

	gdsf_rotate(model);
	for (i = 0; i < model->count; i++) {
		e = &model->entry[i];
		if (mrrc_region_held(e->region))
			continue;
		if (best == model->count ||
		    e->priority < model->entry[best].priority ||
		    (e->priority == model->entry[best].priority &&
		     (e->value < model->entry[best].value ||
		      (e->value == model->entry[best].value &&
		       e->turn < model->entry[best].turn))))
			best = i;
	}
	if (best < model->count && model->entry[best].priority > model->floor)
		model->floor = model->entry[best].priority;
	return best;
}

/* ---- mre ---- */

static unsigned part(unsigned count, size_t percent)
{
	const unsigned n = count * percent / 100;

	return n ? n : 1;
}

static void mre_resort(struct model *model)
{
	const unsigned n = part(model->count, param(model, 0));
	const double r = model->entry[0].factor;
	struct entry e;
	unsigned i, k;

	for (i = 0; i < n; i++) {
		if (is(model, "mre-fig4") || model->entry[i].factor == 0)
			model->entry[i].factor =
				r + 1.0 / model->entry[i].pages;
	}
	for (i = 1; i < n; i++) {
		e = model->entry[i];
		for (k = i; k && model->entry[k - 1].factor > e.factor; k--)
			model->entry[k] = model->entry[k - 1];
		model->entry[k] = e;
	}
	model->segment = part(model->count, param(model, 1));
}

/* ---- gdl ---- */

static void gdl_judge(struct model *model, struct entry *e)
{
	e->used = false;
	e->priority = e->floor + mrrc_reuse_value(&model->learned, e->uses,
						  e->here, e->weight);
}

static void gdl_place(struct model *model, struct entry *e)
{
	e->aside = false;
	e->last = model->now;
	e->floor = model->floor;
	gdl_judge(model, e);
}

/* The shadow cache gets no hint here, and finds the same ranges. */
static void gdl_compare(struct model *model, const struct entry *e,
			unsigned first, unsigned end, bool fresh)
{
	const uintptr_t start =
		(uintptr_t) first * PAGE + ((uintptr_t) e->access << 60);
	uint32_t hint = 4095;

	if (param(model, 0) && first < end)
		mrrc_shadow_use(&model->lru, start,
				(size_t) (end - first) * PAGE, fresh, &hint);
}

static void gdl_enter(struct model *model, struct entry *e)
{
	struct mrrc_ghost ghost = { 0 };

	model->now += e->pages;
	if (mrrc_ghosts_take(&model->ghosts, e->first + 1, &ghost))
		mrrc_reuse_again(&model->learned, ghost.uses,
				 model->now - ghost.last);
	e->uses = ghost.uses < MRRC_REUSE_USES ? ghost.uses + 1 :
						 MRRC_REUSE_USES;
	e->weight = mrrc_reuse_weight(&model->cache->cost,
				      (size_t) e->pages * PAGE);
	mrrc_reuse_enter(&model->learned, e->uses);
	gdl_place(model, e);
	gdl_compare(model, e, e->first, e->first + e->pages, true);
	model->named = NULL;
}

static void gdl_touch(struct model *model, struct entry *e)
{
	unsigned first, end;

	mrrc_reuse_again(&model->learned, e->uses, model->now - e->last);
	e->uses += e->uses < MRRC_REUSE_USES;
	e->here++;
	mrrc_reuse_enter(&model->learned, e->uses);
	if (e->aside) {
		gdl_place(model, e);
	} else {
		e->used = true;
		e->last = model->now;
		e->floor = model->floor;
	}
	first = e->first > model->first ? e->first : model->first;
	end = e->first + e->pages;
	if (end > model->first + model->pages)
		end = model->first + model->pages;
	gdl_compare(model, e, first, end, false);
}

static void gdl_drop(struct model *model, const struct entry *e)
{
	const uintptr_t start =
		(uintptr_t) e->first * PAGE + ((uintptr_t) e->access << 60);

	mrrc_ghosts_put(&model->ghosts, &(struct mrrc_ghost){
						e->first + 1,
						e->last,
						e->uses,
					});
	if (e->region == model->named) {
		mrrc_reuse_leave(&model->learned, model->now - e->last);
		if (param(model, 0))
			mrrc_shadow_evict(&model->lru, start,
					  (size_t) e->pages * PAGE);
		if (model->by_estimate && e->priority > model->floor)
			model->floor = e->priority;
	} else if (param(model, 0)) {
		mrrc_shadow_forget(&model->lru, start,
				   (size_t) e->pages * PAGE);
	}
	model->named = NULL;
}

/* Returns the entry of least worth, the lowest of them; or the oldest entry. */
static unsigned gdl_least(struct model *model)
{
	const struct entry *e, *b;
	unsigned oldest = model->count;
	unsigned best = model->count;
	unsigned i;

	for (i = 0; i < model->count; i++) {
		e = &model->entry[i];
		if (e->aside)
			continue;
		if (oldest == model->count)
			oldest = i;
		b = &model->entry[best];
		if (best == model->count || e->priority < b->priority ||
		    (e->priority == b->priority &&
		     (e->first < b->first ||
		      (e->first == b->first && e->access < b->access))))
			best = i;
	}
	if (best == model->count)
		return best;
	if (model->entry[best].used) {
		gdl_judge(model, &model->entry[best]);
		return gdl_least(model);
	}
	model->by_estimate =
		!param(model, 0) ||
		mrrc_shadow_affords(&model->lru,
				    (size_t) model->entry[best].pages * PAGE);
	return model->by_estimate ? best : oldest;
}

/* Examines the next @left entries aside; unheld ones return, as used now. */
static bool gdl_bring_back(struct model *model, unsigned left)
{
	bool any = false;
	unsigned i, next;

	while (left--) {
		next = model->count;
		for (i = 0; i < model->count; i++) {
			if (model->entry[i].aside &&
			    (next == model->count ||
			     model->entry[i].turn < model->entry[next].turn))
				next = i;
		}
		if (next == model->count)
			break;
		model->entry[next].turn = ++model->turn;
		if (mrrc_region_held(model->entry[next].region))
			continue;
		gdl_place(model, renew(model, next));
		any = true;
	}
	return any;
}

static unsigned gdl_victim(struct model *model)
{
	unsigned best;

	gdl_bring_back(model, 4);
	do {
		while ((best = gdl_least(model)) < model->count &&
		       mrrc_region_held(model->entry[best].region)) {
			model->entry[best].aside = true;
			model->entry[best].turn = ++model->turn;
		}
	} while (best == model->count && gdl_bring_back(model, model->count));
	model->named = best < model->count ? model->entry[best].region : NULL;
	return best;
}

void model_request(struct model *model, unsigned first, unsigned pages)
{
	if (!is(model, "gdl"))
		return;
	mrrc_reuse_request(&model->learned);
	model->first = first;
	model->pages = pages;
}

/* ---- all policies ---- */

void model_open(struct model *model, const struct mrrc_cache *cache)
{
	memset(model, 0, sizeof(*model));
	model->cache = cache;
	mrrc_reuse_init(&model->learned);
	check(!mrrc_ghosts_init(&model->ghosts, 8192));
	check(!mrrc_shadow_init(&model->lru, &cache->cost, cache->max_bytes,
				cache->max_regions));
}

void model_close(struct model *model)
{
	mrrc_shadow_fini(&model->lru);
	mrrc_ghosts_fini(&model->ghosts);
}

void model_drop(struct model *model, unsigned i)
{
	if (is(model, "gdl"))
		gdl_drop(model, &model->entry[i]);
	remove_at(model, i);
}

void model_enter(struct model *model, struct mrrc_region *region)
{
	struct entry *e = &model->entry[model->count++];

	*e = (struct entry){
		.region = region,
		.first = region->start / PAGE,
		.pages = region->len / PAGE,
		.access = region->access,
	};
	if (is(model, "gdsf"))
		gdsf_use(model, e);
	else if (is(model, "gdl"))
		gdl_enter(model, e);
}

void model_touch(struct model *model, struct mrrc_region *region)
{
	struct entry *e;
	unsigned i = 0;

	while (model->entry[i].region != region)
		i++;
	e = renew(model, i);
	e->factor = 0;
	if (is(model, "gdsf"))
		gdsf_use(model, e);
	else if (is(model, "gdl"))
		gdl_touch(model, e);
}

unsigned model_victim(struct model *model)
{
	unsigned tries;

	if (!model->count)
		return 0;
	if (is(model, "gdsf"))
		return gdsf_victim(model);
	if (is(model, "gdl"))
		return gdl_victim(model);
	if (is(model, "mre") && !model->segment)
		mre_resort(model);
	for (tries = model->count; tries; tries--) {
		if (!mrrc_region_held(model->entry[0].region)) {
			if (is(model, "mre"))
				model->segment--;
			return 0;
		}
		renew(model, 0)->factor = 0;
	}
	return model->count;
}

bool model_more(const struct model *model, unsigned gone)
{
	return is(model, "mre") ? model->segment != 0 :
				  gone < model->cache->policy->batch;
}
