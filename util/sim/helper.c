/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Computes the registered bytes over time (helper.h).
 *
 * Events are processed in the order of time; at equal times timers (of each
 * process's helper thread, or of each buffer) come first, then ends of
 * operations, then requests. A helper thread executes one step at a time, which
 * takes the time of the cost model. Memory counts as registered during its
 * registration and deregistration.
 */
#include "config.h"
#include "sim/helper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/helper/schedule.h"

/* ns that a helper thread needs to handle a region in a queue */
#define QUEUE_NS   500
#define NS_MAX	   1e18 /* limit of times in ns: 31 years */
#define SIGNATURES 4096 /* of each process */

struct buffer {
	struct mrrc_scheduled item; /* PREDICT */
	struct mrrc_deadline timer; /* TIMEOUT, OFFLINE */
	bool timed;
	bool registered; /* or being registered */
	uint32_t proc;
	uint32_t first, end; /* parts */
	uint32_t holds;
	uint32_t next; /* request; or SIM_NEVER */
};

struct process {
	struct mrrc_predict predict;
	struct mrrc_schedule schedule;
	struct mrrc_deadline timer; /* timer of the process's thread */
	bool timed;
	enum mrrc_step step; /* the thread's present step */
	struct buffer *at;
	uint32_t end; /* end of at's parts when the step began */
};

struct state {
	const struct sim_helper_run *run;
	const struct sim_future *future;
	struct sim_helper_result *result;
	struct buffer *buffer;
	struct mrrc_predict_context *context; /* by thread */
	struct process *process;
	uint32_t *pins;		      /* number of pins of each part */
	bool *known;		      /* parts requested before */
	struct mrrc_deadlines timers; /* processes' or buffers' */
	uint64_t now;		      /* ns from the first request */
	uint64_t pinned;
	double area;
	size_t points;
};

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- memory -------------------------------------------------------------- */

static uint64_t part_bytes(const struct state *state, uint32_t from,
			   uint32_t to)
{
	const uint64_t *start = state->future->part;

	return (start[to] - start[from]) * state->future->page;
}

static void pin(struct state *state, uint32_t first, uint32_t end)
{
	uint32_t part;

	for (part = first; part < end; part++) {
		if (!state->pins[part]++)
			state->pinned += part_bytes(state, part, part + 1);
	}
	if (state->pinned > state->result->peak_bytes)
		state->result->peak_bytes = state->pinned;
}

static void unpin(struct state *state, uint32_t first, uint32_t end)
{
	uint32_t part;

	for (part = first; part < end; part++) {
		if (!--state->pins[part])
			state->pinned -= part_bytes(state, part, part + 1);
	}
}

static void advance(struct state *state, uint64_t to)
{
	uint64_t at;

	if (to <= state->now)
		return;
	while (state->points < SIM_SERIES_TIME) {
		at = state->run->timeline->end_ns / SIM_SERIES_TIME *
		     state->points;
		if (at >= to)
			break;
		state->result->bytes[state->points++] = state->pinned;
	}
	state->area += (double) state->pinned * (double) (to - state->now);
	state->now = to;
}

static size_t buffer_len(const struct state *state, const struct buffer *buffer)
{
	return part_bytes(state, buffer->first, buffer->end);
}

/* Limits a time, so that sums do not wrap. */
static uint64_t bounded(double ns)
{
	return ns < NS_MAX ? (uint64_t) ns : (uint64_t) NS_MAX;
}

static uint64_t reg_ns(const struct state *state, const struct buffer *buffer)
{
	return bounded(
		mrrc_cost_reg(state->run->cost, buffer_len(state, buffer)));
}

static uint64_t dereg_ns(const struct state *state, const struct buffer *buffer)
{
	return bounded(
		mrrc_cost_dereg(state->run->cost, buffer_len(state, buffer)));
}

static void set_timer(struct state *state, struct mrrc_deadline *timer,
		      bool *timed, uint64_t due)
{
	if (*timed)
		mrrc_deadlines_remove(&state->timers, timer);
	*timed = due != UINT64_MAX;
	timer->due = due;
	if (*timed)
		mrrc_deadlines_add(&state->timers, timer);
}

static struct buffer *buffer_of(struct mrrc_scheduled *item)
{
	return (struct buffer *) ((char *) item -
				  offsetof(struct buffer, item));
}

/* ---- a helper thread ----------------------------------------------------- */

static void thread_begin(struct state *state, struct process *process)
{
	struct mrrc_scheduled *item = NULL;
	uint64_t due = UINT64_MAX;

	if (process->step != MRRC_STEP_NONE)
		return;
	process->step =
		mrrc_schedule_next(&process->schedule, state->now, &item, &due);
	if (process->step != MRRC_STEP_NONE) {
		process->at = buffer_of(item);
		process->end = process->at->end;
	}
	if (process->step == MRRC_STEP_REGISTER) {
		process->at->registered = true;
		pin(state, process->at->first, process->at->end);
		state->result->registrations++;
		due = state->now + QUEUE_NS + reg_ns(state, process->at);
	} else if (process->step == MRRC_STEP_DEREGISTER) {
		process->at->registered = false;
		due = state->now + QUEUE_NS + dereg_ns(state, process->at);
	}
	set_timer(state, &process->timer, &process->timed, due);
}

static void thread_wakes(struct state *state, struct process *process)
{
	if (process->step == MRRC_STEP_REGISTER)
		mrrc_schedule_registered(&process->schedule,
					 &process->at->item);
	else if (process->step == MRRC_STEP_DEREGISTER)
		unpin(state, process->at->first, process->end);
	process->step = MRRC_STEP_NONE;
	thread_begin(state, process);
}

/* ---- buffers without a thread -------------------------------------------- */

/*
 * Handles the timer of a buffer: deregisters the buffer after its last use, or
 * registers it just before the next use.
 */
static void buffer_wakes(struct state *state, struct buffer *buffer)
{
	uint64_t due = UINT64_MAX;

	if (buffer->registered) {
		unpin(state, buffer->first, buffer->end);
		if (state->run->kind == SIM_HELPER_OFFLINE &&
		    buffer->next != SIM_NEVER)
			due = sim_timeline_ns(state->run->timeline,
					      buffer->next) -
			      reg_ns(state, buffer);
	} else {
		if (buffer->end < state->future->end[buffer->next])
			buffer->end = state->future->end[buffer->next];
		pin(state, buffer->first, buffer->end);
		state->result->registrations++;
	}
	buffer->registered = !buffer->registered;
	set_timer(state, &buffer->timer, &buffer->timed, due);
}

/* Sets when to deregister a buffer that no operation uses any more. */
static uint64_t buffer_leaves(const struct state *state,
			      const struct buffer *buffer)
{
	const uint64_t out = state->now + dereg_ns(state, buffer);

	if (state->run->kind == SIM_HELPER_TIMEOUT)
		return out + state->run->idle_us * 1000;
	if (state->run->kind == SIM_HELPER_OFFLINE &&
	    (buffer->next == SIM_NEVER ||
	     sim_timeline_ns(state->run->timeline, buffer->next) >=
		     out + reg_ns(state, buffer)))
		return out;
	return UINT64_MAX;
}

/* ---- events -------------------------------------------------------------- */

static void on_timer(struct state *state, struct mrrc_deadline *timer)
{
	if (state->run->kind == SIM_HELPER_PREDICT)
		thread_wakes(state, (struct process *) ((char *) timer -
							offsetof(struct process,
								 timer)));
	else
		buffer_wakes(state, (struct buffer *) ((char *) timer -
						       offsetof(struct buffer,
								timer)));
}

static void on_end(struct state *state, struct buffer *buffer)
{
	struct process *process = &state->process[buffer->proc];

	buffer->holds--;
	if (state->run->kind == SIM_HELPER_PREDICT) {
		mrrc_schedule_done(&process->schedule, &buffer->item);
		thread_begin(state, process);
	} else if (!buffer->holds) {
		set_timer(state, &buffer->timer, &buffer->timed,
			  buffer_leaves(state, buffer));
	}
}

/*
 * Stores in *there whether all parts of a request are registered, and in *known
 * whether all parts were requested before.
 */
static void look_up(struct state *state, uint32_t i, bool *there, bool *known)
{
	uint32_t part;

	*there = *known = true;
	for (part = state->future->first[i]; part < state->future->end[i];
	     part++) {
		*there &= state->pins[part] > 0;
		*known &= state->known[part];
		state->known[part] = true;
	}
}

/*
 * Reports a use to the helper's schedule. Returns true while the buffer is
 * being registered.
 */
static bool use_scheduled(struct state *state, uint32_t i,
			  struct buffer *buffer)
{
	struct process *process = &state->process[buffer->proc];
	const struct sim_req *req = &state->future->trace->req[i];
	const bool coming = buffer->item.state == MRRC_SCHEDULED_COMING;
	struct mrrc_signature signature;

	mrrc_predict_sign(&state->context[state->run->timeline->thread[i]],
			  req->site, req->addr, req->len, &signature);
	buffer->item.len = buffer_len(state, buffer);
	mrrc_schedule_use(&process->schedule, &buffer->item, &signature,
			  state->now);
	return coming;
}

static void on_request(struct state *state, uint32_t i)
{
	struct buffer *buffer = &state->buffer[state->run->timeline->buffer[i]];
	const uint32_t end = state->future->end[i];
	bool there, known;

	look_up(state, i, &there, &known);
	if (end > buffer->end) {
		if (buffer->registered)
			pin(state, buffer->end, end);
		buffer->end = end;
	}
	buffer->next = state->run->timeline->next[i];
	if (state->run->kind == SIM_HELPER_PREDICT)
		there &= !use_scheduled(state, i, buffer);
	else
		set_timer(state, &buffer->timer, &buffer->timed, UINT64_MAX);
	if (!buffer->registered)
		pin(state, buffer->first, buffer->end);
	buffer->registered = true;
	buffer->holds++;
	state->result->first += !known;
	state->result->late += known && !there;
	state->result->registrations += !there;
	if (!state->future->trace->req[i].held)
		on_end(state, buffer);
}

static void run_events(struct state *state)
{
	const struct sim_timeline *timeline = state->run->timeline;
	const struct sim_ending *ending = timeline->ending;
	const struct sim_ending *last = ending + timeline->endings;
	struct mrrc_deadline *timer;
	uint64_t to;
	uint32_t i = 0;

	while (i < state->future->trace->count) {
		to = sim_timeline_ns(timeline, i);
		if (ending < last)
			to = min(to, ending->ns);
		timer = mrrc_deadlines_first(&state->timers);
		if (timer && timer->due <= to) {
			advance(state, timer->due);
			on_timer(state, timer);
			continue;
		}
		advance(state, to);
		if (ending < last && ending->ns == to)
			on_end(state,
			       &state->buffer
					[timeline->buffer[ending++->request]]);
		else
			on_request(state, i++);
	}
}

/* ---- set-up -------------------------------------------------------------- */

static int open_threads(struct state *state)
{
	const size_t procs = state->future->trace->procs;
	struct process *process;
	int ret;

	for (process = state->process; process < state->process + procs;
	     process++) {
		ret = mrrc_predict_init(&process->predict, SIGNATURES);
		if (ret)
			return ret;
		mrrc_schedule_init(&process->schedule, &process->predict,
				   state->run->cost, QUEUE_NS);
	}
	return 0;
}

static void open_buffers(struct state *state)
{
	const struct sim_timeline *timeline = state->run->timeline;
	struct buffer *buffer = state->buffer;
	uint64_t due;
	uint32_t i;

	for (i = 0; i < timeline->buffers; i++, buffer++) {
		buffer->next = timeline->first[i];
		buffer->proc = state->future->trace->req[buffer->next].proc;
		buffer->first = state->future->first[buffer->next];
		buffer->end = state->future->end[buffer->next];
		if (state->run->kind != SIM_HELPER_OFFLINE)
			continue;
		due = sim_timeline_ns(timeline, buffer->next);
		set_timer(state, &buffer->timer, &buffer->timed,
			  due - min(due, reg_ns(state, buffer)));
	}
}

static int open_state(struct state *state)
{
	const struct sim_timeline *timeline = state->run->timeline;
	const size_t parts = state->future->parts;

	state->buffer = calloc(timeline->buffers, sizeof(*state->buffer));
	state->context = calloc(timeline->threads, sizeof(*state->context));
	state->pins = calloc(parts, sizeof(uint32_t));
	state->known = calloc(parts, sizeof(bool));
	state->process =
		calloc(state->future->trace->procs, sizeof(*state->process));
	mrrc_deadlines_init(&state->timers);
	if (!state->buffer || !state->context || !state->pins ||
	    !state->known || !state->process)
		return -ENOMEM;
	open_buffers(state);
	return state->run->kind == SIM_HELPER_PREDICT ? open_threads(state) : 0;
}

static void close_state(struct state *state)
{
	uint32_t i;

	for (i = 0; state->process && i < state->future->trace->procs; i++)
		mrrc_predict_fini(&state->process[i].predict);
	free(state->process);
	free(state->known);
	free(state->pins);
	free(state->context);
	free(state->buffer);
}

/* ---- results ------------------------------------------------------------- */

static void sum_up(struct state *state)
{
	struct sim_helper_result *result = state->result;
	const struct mrrc_schedule_stats *stats;
	uint32_t i;

	while (state->points < SIM_SERIES_TIME)
		result->bytes[state->points++] = state->pinned;
	result->requests = state->future->trace->count;
	result->mean_bytes = state->now ? state->area / state->now :
					  state->pinned;
	for (i = 0; i < state->future->trace->procs; i++) {
		stats = &state->process[i].schedule.stats;
		result->predicted += stats->predicted;
		result->within_5 += stats->within_5;
		result->within_05 += stats->within_05;
	}
}

int sim_helper_run(const struct sim_helper_run *run,
		   struct sim_helper_result *result)
{
	struct state state = {
		.run = run,
		.future = run->timeline->future,
		.result = result,
	};
	int ret;

	*result = (struct sim_helper_result){ 0 };
	ret = open_state(&state);
	if (!ret) {
		run_events(&state);
		sum_up(&state);
	}
	close_state(&state);
	return ret;
}

double sim_helper_late(const struct sim_helper_result *result)
{
	const uint64_t known = result->requests - result->first;

	return known ? (double) result->late / known : 0;
}

/* Searches by halves, as a longer timeout makes fewer requests late. */
int sim_helper_equal(const struct sim_helper_run *run, uint64_t late,
		     uint64_t *idle_us)
{
	struct sim_helper_run timeout = *run;
	struct sim_helper_result result;
	uint64_t lo = 0, hi = run->timeline->end_ns / 1000 + 1, mid;
	int ret;

	timeout.kind = SIM_HELPER_TIMEOUT;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		timeout.idle_us = mid;
		ret = sim_helper_run(&timeout, &result);
		if (ret)
			return ret;
		if (result.late <= late)
			hi = mid;
		else
			lo = mid + 1;
	}
	*idle_us = hi;
	return 0;
}
