/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads statistics segments (stat/segment.h). Every field is checked before
 * use.
 */
#include "config.h"
#include "stat/segment.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "sys/observe/stats_shm.h"

/* Size of the head in the first version. */
#define HEAD_MIN offsetof(struct mrrc_stats_shm_head, asks_at)
/* Size of the head that has the reason why lookups ask, but no `lacks`. */
#define HEAD_ASKS  offsetof(struct mrrc_stats_shm_head, lacks_at)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* Do @count bytes from @offset lie behind the head and in the segment? */
static bool is_inside(const struct mrrc_stats_shm_head *head, uint64_t offset,
		      uint64_t count)
{
	return offset >= head->head_size && offset <= head->size &&
	       count <= head->size - offset;
}

static bool is_sound(const struct mrrc_stats_shm_head *head, size_t size)
{
	return head->head_size >= HEAD_MIN && head->size <= size &&
	       head->head_size <= head->size && head->pid > 0 &&
	       head->pid <= INT_MAX && head->counters <= STAT_COUNTERS_MAX &&
	       head->values % sizeof(uint64_t) == 0 &&
	       is_inside(head, head->values,
			 head->counters * sizeof(uint64_t)) &&
	       is_inside(head, head->names, head->names_size);
}

/*
 * Reads a string field; returns false if the string has no end, or is not
 * printable.
 */
static bool get_string(const char *from, size_t size, char *to)
{
	const size_t len = strnlen(from, size);
	size_t i;

	if (len == size)
		return false;
	for (i = 0; i < len; i++) {
		if (from[i] < ' ' || from[i] > '~')
			return false;
	}
	memcpy(to, from, len + 1);
	return true;
}

static bool has_name(const struct stat_segment *segment, const char *name)
{
	size_t i;

	for (i = 0; i < segment->counters; i++) {
		if (!strcmp(segment->counter[i].name, name))
			return true;
	}
	return false;
}

/* Adds one counter to @segment; moves @names on. */
static bool get_counter(const char *value, const char **names, size_t *left,
			struct stat_segment *segment)
{
	struct stat_counter *counter = &segment->counter[segment->counters];
	const size_t len = strnlen(*names, *left);

	if (!len || len == *left || len >= sizeof(counter->name))
		return false;
	memcpy(counter->name, *names, len + 1);
	if (strspn(counter->name, NAME_CHARS) != len ||
	    has_name(segment, counter->name))
		return false;
	memcpy(&counter->value, value, sizeof(counter->value));
	segment->counters++;
	*names += len + 1;
	*left -= len + 1;
	return true;
}

static bool get_counters(const struct mrrc_stats_shm_head *head,
			 const char *data, struct stat_segment *segment)
{
	const char *names = data + head->names;
	const char *value = data + head->values;
	size_t left = head->names_size;
	size_t i;

	segment->counters = 0;
	for (i = 0; i < head->counters; i++) {
		if (!get_counter(value + i * sizeof(uint64_t), &names, &left,
				 segment))
			return false;
	}
	return true;
}

static bool get_lacks(const struct mrrc_stats_shm_head *head,
		      struct stat_segment *segment)
{
	if (!segment->says_lacks)
		return true;
	segment->registers = head->registers;
	return head->lacks_at <= 1 &&
	       get_string(head->lacks[head->lacks_at], sizeof(head->lacks[0]),
			  segment->lacks);
}

int stat_segment_parse(const void *data, size_t size,
		       struct stat_segment *segment)
{
	struct mrrc_stats_shm_head head;

	if (!size)
		return -EAGAIN;
	if (size < HEAD_MIN)
		return -EPROTO;
	memcpy(&head, data, HEAD_MIN);
	if (!head.magic)
		return -EAGAIN;
	if (head.magic != MRRC_STATS_SHM_MAGIC)
		return -EPROTO;
	if (head.version != MRRC_STATS_SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (!is_sound(&head, size))
		return -EPROTO;
	segment->says_asks = head.head_size >= HEAD_ASKS;
	segment->says_lacks = head.head_size >= sizeof(head);
	segment->asks[0] = segment->lacks[0] = '\0';
	segment->registers = true;
	memcpy(&head, data,
	       segment->says_lacks ? sizeof(head) :
	       segment->says_asks  ? HEAD_ASKS :
				     HEAD_MIN);
	segment->pid = head.pid;
	segment->opened = head.opened;
	segment->max_bytes = head.max_bytes;
	segment->max_regions = head.max_regions;
	if (!get_string(head.provider, sizeof(head.provider),
			segment->provider) ||
	    !get_string(head.policy, sizeof(head.policy), segment->policy) ||
	    !get_string(head.monitor, sizeof(head.monitor), segment->monitor) ||
	    (segment->says_asks &&
	     (head.asks_at > 1 ||
	      !get_string(head.asks[head.asks_at], sizeof(head.asks[0]),
			  segment->asks))) ||
	    !get_lacks(&head, segment) || !get_counters(&head, data, segment))
		return -EPROTO;
	return 0;
}

uint64_t stat_segment_value(const struct stat_segment *segment,
			    const char *name)
{
	size_t i;

	for (i = 0; i < segment->counters; i++) {
		if (!strcmp(segment->counter[i].name, name))
			return segment->counter[i].value;
	}
	return 0;
}
