/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names that an address vector knows: see av.c.
 */
#include "config.h"
#include "fi/cw/rdm.h"

struct cw_av_entry *mrrc_cw_av_entry(struct mrrc_av *av, fi_addr_t addr)
{
	struct mrrc_cw_node *node = mrrc_cw_map_first(&av->cw->by_addr, addr);

	return node ? container_of(node, struct cw_av_entry, by_addr) : NULL;
}

bool mrrc_cw_av_name(struct mrrc_av *av, fi_addr_t addr,
		     struct mrrc_cw_name *name)
{
	struct cw_av_entry *entry = mrrc_cw_av_entry(av, addr);

	if (entry)
		*name = entry->name;
	return entry;
}

bool mrrc_cw_av_knows(struct mrrc_av *av, const struct mrrc_cw_name *name)
{
	struct mrrc_cw_node *first, *node;

	first = mrrc_cw_map_first(&av->cw->by_name, mrrc_cw_name_key(name));
	for (node = first; node;) {
		if (mrrc_cw_name_same(name,
				      &container_of(node, struct cw_av_entry,
						    by_name)
					       ->name))
			return true;
		node = node->next != first ? node->next : NULL;
	}
	return false;
}
