/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors with names of endpoints with conditional writes: the core
 * gets plain addresses, and struct mrrc_cw_av keeps their names. See cw.h,
 * name.c. Every address vector keeps names, since names may be inserted before
 * an endpoint opts in to conditional writes.
 *
 * Threading: any; the lock of struct mrrc_cw_av guards the names, and the
 * endpoints' tables of links (rdm.c). No call of the core is made under that
 * lock.
 */
#include "config.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"
#include "fi/obj/obj.h"
#include "fi/secret.h"

static void cw_av_unlink(struct mrrc_cw_av *names, struct cw_av_entry *entry)
{
	mrrc_cw_map_remove(&names->by_addr, &entry->by_addr);
	mrrc_cw_map_remove(&names->by_name, &entry->by_name);
}

/* ---- inserting ----------------------------------------------------------- */

/*
 * Notes that the core's address addr has this name from now on. *old: the name
 * that no address has any more, or zero
 */
static int cw_av_note(struct mrrc_av *av, fi_addr_t addr,
		      const struct mrrc_cw_name *name, struct mrrc_cw_name *old)
{
	struct cw_av_entry *entry, *fresh = calloc(1, sizeof(*fresh));

	memset(old, 0, sizeof(*old));
	if (!fresh)
		return -FI_ENOMEM;
	mrrc_mutex_lock(&av->cw->lock);
	entry = mrrc_cw_av_entry(av, addr);
	if (entry && !mrrc_cw_name_same(&entry->name, name)) {
		*old = entry->name;
		mrrc_cw_map_remove(&av->cw->by_name, &entry->by_name);
	} else if (!entry) {
		entry = fresh;
		fresh = NULL;
		mrrc_cw_map_add(&av->cw->by_addr, &entry->by_addr, addr);
	}
	if (!entry->uses++ || old->sa.sa_family) {
		entry->name = *name;
		mrrc_cw_map_add(&av->cw->by_name, &entry->by_name,
				mrrc_cw_name_key(name));
		mrrc_cw_rdm_meet(av, name);
	}
	if (old->sa.sa_family && mrrc_cw_av_knows(av, old))
		memset(old, 0, sizeof(*old));
	mrrc_mutex_unlock(&av->cw->lock);
	free(fresh);
	return 0;
}

/* Notes the names of the count addresses at addr that the core accepted */
static void cw_av_note_all(struct mrrc_av *av, const char *addr, size_t count,
			   const fi_addr_t *fi_addr)
{
	struct mrrc_cw_name name, old;
	size_t i;

	for (i = 0; i < count; i++) {
		if (mrrc_cw_name_read(addr, &name) &&
		    fi_addr[i] != FI_ADDR_NOTAVAIL) {
			if (cw_av_note(av, fi_addr[i], &name, &old))
				MRRC_WARN(AV,
					  "no memory for the name of %s: "
					  "conditional writes with this peer "
					  "fail\n",
					  mrrc_cw_addr_text(&name).text);
			if (old.sa.sa_family)
				mrrc_cw_rdm_forget(av, &old);
		}
		addr += mrrc_cw_addr_len((const struct sockaddr *) addr);
	}
}

/* Bytes of the addresses; 0: no address has a mark */
static size_t cw_av_span(const char *addr, size_t count)
{
	const char *pos = addr;
	bool any = false;

	while (count--) {
		if (!mrrc_cw_addr_port((void *) pos))
			return 0;
		any |= mrrc_cw_name_read(pos, NULL);
		pos += mrrc_cw_addr_len((const struct sockaddr *) pos);
	}
	return any ? pos - addr : 0;
}

static int cw_av_insert(struct mrrc_av *av, const char *addr, size_t span,
			size_t count, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	fi_addr_t *own = malloc(count * sizeof(*own));
	char *plain = malloc(span), *pos = plain;
	int ret = -FI_ENOMEM;
	size_t i;

	if (!own || !plain)
		goto out;
	memcpy(plain, addr, span);
	for (i = 0; i < count; i++) {
		mrrc_cw_name_strip(pos);
		pos += mrrc_cw_addr_len((struct sockaddr *) pos);
		own[i] = fi_addr && (flags & FI_AV_USER_ID) ? fi_addr[i] :
							      FI_ADDR_NOTAVAIL;
	}
	/*
	 * With FI_EVENT, too, own[] is complete on return: cores with addresses
	 * of these formats use libfabric's common address vector, whose
	 * fi_av_insert() inserts the addresses before it writes the event and
	 * returns.
	 */
	ret = fi_av_insert(av->core, plain, count, own, flags, context);
	if (ret < 0)
		goto out;
	cw_av_note_all(av, addr, count, own);
	if (fi_addr)
		memcpy(fi_addr, own, count * sizeof(*own));
out:
	free(plain);
	free(own);
	return ret;
}

static int cw_av_ops_insert(struct fid_av *av_fid, const void *addr,
			    size_t count, fi_addr_t *fi_addr, uint64_t flags,
			    void *context)
{
	struct mrrc_av *av = container_of(av_fid, struct mrrc_av, av);
	size_t span = av->cw->inet && addr ? cw_av_span(addr, count) : 0;

	return span ? cw_av_insert(av, addr, span, count, fi_addr, flags,
				   context) :
		      fi_av_insert(av->core, addr, count, fi_addr, flags,
				   context);
}

/* ---- the rest ------------------------------------------------------------ */

static int cw_av_ops_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			    size_t count, uint64_t flags)
{
	struct mrrc_av *av = container_of(av_fid, struct mrrc_av, av);
	struct cw_av_entry *entry;
	struct mrrc_cw_name name;
	bool gone;
	size_t i;
	int ret;

	ret = fi_av_remove(av->core, fi_addr, count, flags);
	for (i = 0; !ret && i < count; i++) {
		mrrc_mutex_lock(&av->cw->lock);
		entry = mrrc_cw_av_entry(av, fi_addr[i]);
		if (entry && --entry->uses)
			entry = NULL;
		if (entry)
			cw_av_unlink(av->cw, entry);
		gone = entry && !mrrc_cw_av_knows(av, &entry->name);
		mrrc_mutex_unlock(&av->cw->lock);
		if (gone) {
			name = entry->name;
			mrrc_cw_rdm_forget(av, &name);
		}
		free(entry);
	}
	return ret;
}

static int cw_av_ops_lookup(struct fid_av *av_fid, fi_addr_t fi_addr,
			    void *addr, size_t *addrlen)
{
	struct mrrc_av *av = container_of(av_fid, struct mrrc_av, av);
	struct mrrc_cw_name name;
	bool found;
	size_t len;

	mrrc_mutex_lock(&av->cw->lock);
	found = mrrc_cw_av_name(av, fi_addr, &name);
	mrrc_mutex_unlock(&av->cw->lock);
	if (!found)
		return fi_av_lookup(av->core, fi_addr, addr, addrlen);
	len = mrrc_cw_addr_len(&name.sa);
	memcpy(addr, &name, len < *addrlen ? len : *addrlen);
	*addrlen = len;
	return 0;
}

static const char *cw_av_ops_straddr(struct fid_av *av_fid, const void *addr,
				     char *buf, size_t *len)
{
	struct mrrc_av *av = container_of(av_fid, struct mrrc_av, av);
	struct mrrc_cw_name name;

	if (av->cw->inet && mrrc_cw_name_read(addr, &name)) {
		mrrc_cw_name_strip(&name);
		addr = &name;
	}
	return fi_av_straddr(av->core, addr, buf, len);
}

/* ---- opening and closing ------------------------------------------------- */

static void cw_av_free(struct mrrc_cw_av *names)
{
	struct cw_av_entry *entry;
	size_t i;

	for (i = 0; i <= names->by_addr.mask; i++) {
		while (names->by_addr.bucket[i]) {
			entry = container_of(names->by_addr.bucket[i],
					     struct cw_av_entry, by_addr);
			cw_av_unlink(names, entry);
			free(entry);
		}
	}
	mrrc_cw_map_fini(&names->by_addr);
	mrrc_cw_map_fini(&names->by_name);
	mrrc_mutex_fini(&names->lock);
	free(names);
}

static int cw_av_close(struct fid *fid)
{
	struct mrrc_cw_av *names =
		container_of(fid, struct mrrc_av, av.fid)->cw;
	int ret = mrrc_av_fid_ops.close(fid);

	if (!ret)
		cw_av_free(names);
	return ret;
}

static struct mrrc_cw_av *cw_av_new(uint32_t addr_format)
{
	struct mrrc_cw_av *names = malloc(sizeof(*names));
	struct mrrc_secret secret;

	if (!names)
		return NULL;
	names->inet = addr_format == FI_SOCKADDR_IN ||
		      addr_format == FI_SOCKADDR_IN6 ||
		      addr_format == FI_SOCKADDR;
	mrrc_mutex_init(&names->lock, MRRC_RANK_CW_AV);
	mrrc_secret_make(&secret);
	mrrc_cw_map_init(&names->by_addr, NULL);
	mrrc_cw_map_init(&names->by_name, &secret);
	LIST_INIT(&names->rdms);
	return names;
}

static struct fi_ops cw_av_fid_ops;
static struct fi_ops_av cw_av_ops;

static int cw_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		      struct fid_av **av_fid, void *context)
{
	struct mrrc_av *av;
	int ret;

	ret = mrrc_av_open(domain, attr, av_fid, context);
	if (ret)
		return ret;
	av = container_of(*av_fid, struct mrrc_av, av);
	av->cw = cw_av_new(mrrc_domain_of(domain)->addr_format);
	if (!av->cw) {
		fi_close(&av->av.fid);
		return -FI_ENOMEM;
	}
	av->av.fid.ops = &cw_av_fid_ops;
	av->av.ops = &cw_av_ops;
	return 0;
}

void mrrc_cw_av_init(void)
{
	cw_av_fid_ops = mrrc_av_fid_ops;
	cw_av_fid_ops.close = cw_av_close;
	cw_av_ops = mrrc_av_ops;
	cw_av_ops.insert = cw_av_ops_insert;
	cw_av_ops.remove = cw_av_ops_remove;
	cw_av_ops.lookup = cw_av_ops_lookup;
	cw_av_ops.straddr = cw_av_ops_straddr;
	mrrc_domain_ops.av_open = cw_av_open;
}
