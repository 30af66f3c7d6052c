/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_kinds: tests buffers in every kind of memory, whose pages are then
 * replaced in the ways that the kind of memory allows. Memory whose changes the
 * kernel does not report must not be kept registered; data is right in any
 * case.
 */
#include "ft_mrrc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/utsname.h>

#define LEN  (8 * FT_PAGE)
#define HUGE (2UL << 20)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

struct kind {
	const char *name;
	/* Makes memory of this kind; returns NULL if the machine has none. */
	char *(*make)(size_t *len);
	/*
	 * Puts other pages at the same address. Returns false if the address
	 * has no memory of the test any more: another thread may have mapped
	 * memory there, and nothing is left to unmap.
	 */
	bool (*change)(char *p, size_t len);
	void (*end)(char *p, size_t len);
	bool kept; /* whether registrations are kept */
};

static uint64_t seed;
static int file = -1;

static void use(struct ft_pair *pair, char *p, size_t len, char *other)
{
	ft_verify_pair(&pair->c, p, other, len, ++seed);
	ft_verify_pair(&pair->s, other, p, len, ++seed);
	ft_verify_pair(&pair->c, p, other, len, ++seed);
	ft_release_pair(pair);
}

/* ---- anonymous ---- */

static char *make_anon(size_t *len)
{
	return ft_map(NULL, *len);
}

static void end_map(char *p, size_t len)
{
	ft_unmap(p, len);
}

static bool by_free(char *p, size_t len)
{
	FT_CHECK(!madvise(p, len, MADV_FREE), "MADV_FREE: %s", strerror(errno));
	return true;
}

/* The pages are moved away, and the mapping stays. */
static bool by_dontunmap(char *p, size_t len)
{
	char *to = mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	if (to == MAP_FAILED)
		return true; /* Linux before 5.7 */
	ft_unmap(to, len);
	return true;
}

static bool by_remap(char *p, size_t len)
{
	ft_unmap(p, len);
	return ft_map_hole(p, len);
}

/* ---- huge ---- */

static char *map_huge(char *at)
{
	char *p = mmap(at, HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			       (at ? MAP_FIXED : 0),
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static char *make_huge(size_t *len)
{
	char *p = map_huge(NULL);

	*len = HUGE;
	return p;
}

static bool by_huge(char *p, size_t len)
{
	return map_huge(p);
}

/* Makes memory that begins and ends within a huge page. */
static char *make_thp(size_t *len)
{
	char *p = ft_map(NULL, 4 * HUGE);
	char *at = (char *) (((uintptr_t) p + HUGE - 1) & ~(HUGE - 1));

	if (madvise(at, 3 * HUGE, MADV_HUGEPAGE)) {
		ft_unmap(p, 4 * HUGE);
		return NULL;
	}
	memset(at, 1, 3 * HUGE);
	/* unmap the memory that is not used */
	if (at > p)
		ft_unmap(p, (size_t) (at - p));
	ft_unmap(at + 3 * HUGE, (size_t) (p + HUGE - at));
	*len = 2 * HUGE + FT_PAGE;
	return at + HUGE - 3 * FT_PAGE;
}

/* Replaces one page of the first huge page, and all of the next huge page. */
static bool by_part(char *p, size_t len)
{
	ft_map(p + FT_PAGE, FT_PAGE);
	ft_map(p + 3 * FT_PAGE, HUGE);
	return true;
}

static void end_thp(char *p, size_t len)
{
	ft_unmap(p - HUGE + 3 * FT_PAGE, 3 * HUGE);
}

/* ---- files ---- */

static char *map_file(int fd, int flags, size_t len)
{
	char *p;

	FT_CHECK(fd >= 0, "no file: %s", strerror(errno));
	file = fd;
	FT_CHECK(!ftruncate(fd, (off_t) len), "ftruncate: %s", strerror(errno));
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED) {
		/* the file system does not support the flags */
		close(fd);
		return NULL;
	}
	memset(p, 1, len);
	return p;
}

static int disk_file(void)
{
	char path[] = "/var/tmp/ft_mrrc_XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0)
		unlink(path);
	return fd;
}

static char *make_memfd_private(size_t *len)
{
	return map_file(memfd_create("ft_mrrc", 0), MAP_PRIVATE, *len);
}

static char *make_memfd_shared(size_t *len)
{
	return map_file(memfd_create("ft_mrrc", 0), MAP_SHARED, *len);
}

static char *make_file_private(size_t *len)
{
	return map_file(disk_file(), MAP_PRIVATE, *len);
}

static char *make_file_shared(size_t *len)
{
	return map_file(disk_file(), MAP_SHARED, *len);
}

static bool by_truncate(char *p, size_t len)
{
	FT_CHECK(!ftruncate(file, 0) && !ftruncate(file, (off_t) len),
		 "ftruncate: %s", strerror(errno));
	return true;
}

static bool by_punch(char *p, size_t len)
{
	FT_CHECK(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			    (off_t) len) ||
			 errno == EOPNOTSUPP,
		 "PUNCH_HOLE: %s", strerror(errno));
	return true;
}

static bool by_remove(char *p, size_t len)
{
	FT_CHECK(!madvise(p, len, MADV_REMOVE) || errno == EOPNOTSUPP,
		 "MADV_REMOVE: %s", strerror(errno));
	return true;
}

static void end_file(char *p, size_t len)
{
	ft_unmap(p, len);
	close(file);
}

/* ---- System V ---- */

static int segment;

static char *make_shm(size_t *len)
{
	char *p;

	segment = shmget(IPC_PRIVATE, *len, IPC_CREAT | 0600);
	if (segment < 0)
		return NULL;
	p = shmat(segment, NULL, 0);
	return p == (char *) -1 ? NULL : p;
}

/* Attaches another segment at the address of the first one. */
static bool by_shmdt(char *p, size_t len)
{
	FT_CHECK(!shmdt(p), "shmdt: %s", strerror(errno));
	shmctl(segment, IPC_RMID, NULL);
	segment = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	if (segment >= 0 && shmat(segment, p, 0) == p)
		return true;
	shmctl(segment, IPC_RMID, NULL);
	return false;
}

static void end_shm(char *p, size_t len)
{
	shmdt(p);
	shmctl(segment, IPC_RMID, NULL);
}

static const struct kind kinds[] = {
	{ "anonymous, unmapped", make_anon, by_remap, end_map, true },
	{ "anonymous, MADV_FREE", make_anon, by_free, end_map, true },
	{ "anonymous, DONTUNMAP", make_anon, by_dontunmap, end_map, true },
	{ "huge pages, MAP_FIXED", make_huge, by_huge, end_map, true },
	{ "transparent huge pages, in part", make_thp, by_part, end_thp, true },
	{ "memfd, private, truncated", make_memfd_private, by_truncate,
	  end_file, false },
	{ "memfd, shared, truncated", make_memfd_shared, by_truncate, end_file,
	  false },
	{ "memfd, shared, PUNCH_HOLE", make_memfd_shared, by_punch, end_file,
	  false },
	{ "memfd, shared, MADV_REMOVE", make_memfd_shared, by_remove, end_file,
	  false },
	{ "file, private, truncated", make_file_private, by_truncate, end_file,
	  false },
	{ "file, shared, truncated", make_file_shared, by_truncate, end_file,
	  false },
	{ "file, shared, PUNCH_HOLE", make_file_shared, by_punch, end_file,
	  false },
	{ "System V, detached", make_shm, by_shmdt, end_shm, false },
};

/*
 * Is the kind known to the provider? Before Linux 6.11 private mappings of
 * files cannot be told from anonymous memory: see fi_mrrc_monitor(7).
 */
static bool told(const struct kind *kind)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (kind->make != make_memfd_private && kind->make != make_file_private)
		return true;
	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	return major > 6 || (major == 6 && minor >= 11);
}

/*
 * Checks that kept registrations are dropped. munmap() returns when the monitor
 * has read the event of the unmap.
 */
static void check_dropped(struct ft_pair *pair, const char *name,
			  uint64_t before)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_stats st;

	do
		ft_stats(&pair->dom[1], &st);
	while (st.invalidations == before && ft_limit_us() < end);
	FT_CHECK(st.invalidations > before, "%s: nothing was dropped", name);
}

static void run(struct ft_pair *pair, const struct kind *kind, char *other)
{
	struct fi_mrrc_stats before, after;
	size_t len = LEN;
	char *p;

	ft_stage("%s", kind->name);
	p = kind->make(&len);
	if (!p) {
		printf("note: %s: not on this machine\n", kind->name);
		return;
	}
	/* other is registered already: new registrations are p's */
	ft_stats(&pair->dom[1], &before);
	use(pair, p, LEN, other);
	ft_stats(&pair->dom[1], &after);
	if (ft_caches(&pair->dom[1]) && told(kind)) {
		FT_CHECK(kind->kept == (after.uncached == before.uncached),
			 "%s: %" PRIu64 " registered for one operation",
			 kind->name, after.uncached - before.uncached);
		FT_CHECK(!kind->kept || after.hits > before.hits, "%s: no hits",
			 kind->name);
	}
	if (told(kind)) {
		if (!kind->change(p, len))
			return;
		if (kind->kept && ft_caches(&pair->dom[1]))
			check_dropped(pair, kind->name, after.invalidations);
		use(pair, p, len, other);
	}
	kind->end(p, len);
}

/*
 * Sends data of a loaded library, then unloads the library, and maps other
 * memory in the library's place.
 */
static void library(struct ft_pair *pair, char *other)
{
	/* a part of libc that no other code loads here */
	void *lib = dlopen("libthread_db.so.1", RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	char *p;

	ft_stage("an unloaded library");
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		printf("note: no library to unload: %s\n", dlerror());
		return;
	}
	p = (char *) map->l_addr;
	ft_send_recv(&pair->c, p, other, FT_PAGE);
	FT_CHECK(!memcmp(p, other, FT_PAGE), "the library differs");
	ft_send_recv(&pair->c, p, other, FT_PAGE);
	ft_release_pair(pair);
	dlclose(lib);
	if (!ft_map_hole(p, FT_PAGE))
		return;
	use(pair, p, FT_PAGE, other);
	ft_unmap(p, FT_PAGE);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	unsigned i, k, rounds;
	char *other;

	ft_init(argc, argv);
	ft_rxm_copies_little();
	rounds = ft_iters(ft_core("verbs") ? 3 : 20);
	ft_pair_open(&pair, &attr);
	other = ft_map(NULL, 3 * HUGE);
	use(&pair, other, LEN / 2, other + LEN / 2);
	use(&pair, other, LEN / 2, other + LEN / 2);
	use(&pair, other, HUGE, other + HUGE);
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			run(&pair, &kinds[k], other);
		library(&pair, other);
	}
	ft_check_idle(&pair.dom[0], "at the end");
	ft_check_idle(&pair.dom[1], "at the end");
	ft_unmap(other, 3 * HUGE);
	ft_pair_close(&pair);
	return ft_done();
}
