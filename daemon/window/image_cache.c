/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/image_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "daemon/host/cgroup.h"
#include "daemon/host/procfs.h"

struct cached_image {
	uint64_t key[3];   /* start time, tid and exec generation of the thread */
	uint32_t image;	   /* index of the thread in window.images */
	UT_hash_handle hh; /* handle in the hash table image_cache.entries */
};

/* Returns a number that identifies a thread for its whole life and is the same in all sessions. */
static uint64_t thread_uid(const struct sample_key *key)
{
	return (key->start_boot_ns ^ (uint64_t)key->tid << 40) * UINT64_C(0x9e3779b97f4a7c15);
}

/*
 * Reads into `out` the present name of a process, from /proc. Leaves `out` as it is if the process
 * has exited.
 */
static void comm_read(const struct process_id *id, char *out)
{
	struct procfs_stat stat;
	_cleanup_(closep) int fd = procfs_open(id->pid, &stat);

	if (fd >= 0 && stat.start_ticks == procfs_ticks(id->start_boot_ns))
		memcpy(out, stat.comm, COMM_LEN);
}

static int image_fill(struct image_cache *cache, const struct sample_key *key, const char *comm,
		      struct window_image *image)
{
	struct process_id id = {
		.pid = (int32_t)key->tgid,
		.exec_gen = key->exec_gen,
		.start_boot_ns = key->leader_boot_ns,
	};

	image->uid = thread_uid(key);
	image->tid = (int32_t)key->tid;
	image->start_boot_ns = key->start_boot_ns;
	image->exec_gen = key->exec_gen;
	if (comm)
		memcpy(image->comm, comm, strnlen(comm, COMM_LEN - 1));
	else
		comm_read(&id, image->comm);
	/* Tid 0 is the idle task of each CPU. All idle tasks are shown as one thread. */
	if (!key->tid)
		strcpy(image->comm, "idle");
	image->process = process_table_see(cache->processes, &id, key->flags & SAMPLE_IS_KERNEL,
					   key->tid == key->tgid ? image->comm : NULL);
	return image->process ? 0 : -ENOMEM;
}

/*
 * Used instead of a cgroup's id: stands for all processes whose I/O the BPF programs counted
 * together.
 */
#define REST UINT64_MAX

static int made_up_fill(struct image_cache *cache, const struct process_info *info,
			struct window_image *image)
{
	image->uid = info->id.start_boot_ns * UINT64_C(0x9e3779b97f4a7c15);
	image->start_boot_ns = info->id.start_boot_ns;
	memcpy(image->comm, info->comm, sizeof(info->comm));
	image->process = process_table_see_as(cache->processes, info);
	return image->process ? 0 : -ENOMEM;
}

static int writer_fill(struct image_cache *cache, uint64_t cgroup, struct window_image *image)
{
	char path[CGROUP_PATH_MAX];
	struct process_info info = {
		.id = { .start_boot_ns = cgroup },
		.is_kernel = true,
		.comm = "writeback",
		.cgroup = path,
	};
	int r;

	if (cgroup == REST)
		return made_up_fill(cache,
				    &(const struct process_info){
					    .id = { .start_boot_ns = REST },
					    .comm = "others",
					    .cgroup = "/",
				    },
				    image);
	r = cgroup_path(cgroup, path, sizeof(path));
	return r ? r : made_up_fill(cache, &info, image);
}

/* Adds an entry to the cache. The entry maps this key to the last entry of window.images. */
static int cached_image_add(struct image_cache *cache, const struct window *window,
			    const uint64_t key[static 3])
{
	struct cached_image *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	memcpy(entry->key, key, sizeof(entry->key));
	entry->image = (uint32_t)window->n_images - 1;
	HASH_ADD(hh, cache->entries, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return 0;
	free(entry);
	return -ENOMEM;
}

/*
 * Returns the index in window.images of the entry with this key. If there is none, adds one. If
 * `writer` is not 0, the new entry is for the cgroup with this id, else for the thread in
 * sample_key. IMAGE_NONE on failure.
 */
static uint32_t image_get(struct image_cache *cache, struct window *window,
			  const uint64_t key[static 3], const struct sample_key *sample_key,
			  const char *comm, uint64_t writer)
{
	struct window_image *image;
	struct cached_image *entry;
	int r;

	HASH_FIND(hh, cache->entries, key, sizeof(entry->key), entry);
	if (entry)
		return entry->image;
	image = window_add_image(window);
	if (!image)
		return IMAGE_NONE;
	r = writer ? writer_fill(cache, writer, image) : image_fill(cache, sample_key, comm, image);
	if (!r && !cached_image_add(cache, window, key))
		return (uint32_t)window->n_images - 1;
	image->process = process_unref(image->process);
	window->n_images--;
	return IMAGE_NONE;
}

uint32_t image_cache_get(struct image_cache *cache, struct window *window,
			 const struct sample_key *sample_key, const char *comm)
{
	const uint64_t key[3] = { sample_key->start_boot_ns, sample_key->tid,
				  sample_key->exec_gen };

	return image_get(cache, window, key, sample_key, comm, 0);
}

uint32_t image_cache_get_writer(struct image_cache *cache, struct window *window, uint64_t cgroup)
{
	const uint64_t key[3] = { cgroup, 0, UINT64_MAX };

	return image_get(cache, window, key, NULL, NULL, cgroup);
}

uint32_t image_cache_get_rest(struct image_cache *cache, struct window *window)
{
	return image_cache_get_writer(cache, window, REST);
}

uint32_t image_cache_get_process(struct image_cache *cache, struct window *window,
				 const struct process_id *id, bool is_kernel, const char *comm)
{
	const struct sample_key key = {
		.start_boot_ns = id->start_boot_ns,
		.leader_boot_ns = id->start_boot_ns,
		.tid = (uint32_t)id->pid,
		.tgid = (uint32_t)id->pid,
		.exec_gen = id->exec_gen,
		.flags = is_kernel ? SAMPLE_IS_KERNEL : 0,
	};

	return image_cache_get(cache, window, &key, comm);
}

void image_cache_clear(struct image_cache *cache)
{
	struct cached_image *entry, *next;

	HASH_ITER (hh, cache->entries, entry, next) {
		HASH_DEL(cache->entries, entry);
		free(entry);
	}
}
