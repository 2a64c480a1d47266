/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/unwind_maps.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"

enum { FALLBACK_WAIT_S = 1 };

/* Memory of one entry of a hash map, in bytes: the kernel's own data, the key and the value. */
enum {
	PROCESS_BYTES = 64 + 8 + sizeof(struct unwind_process),
	CODE_BYTES = 64 + sizeof(struct unwind_code_key) + sizeof(struct unwind_code),
};

enum shared_map { WORDS, TABLE, SEGMENT, VERSION, PROCESS, CODE, SHARED_MAPS };

static const struct {
	const char *name;
	uint32_t type, flags;
	uint32_t key_size, value_size;
} shared_maps[] = {
	[WORDS] = { "unwind_words", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 4, sizeof(uint64_t) },
	[TABLE] = { "unwind_tables", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 4,
		    sizeof(struct unwind_table) },
	[SEGMENT] = { "unwind_segments", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 4,
		      sizeof(struct unwind_segment) },
	[VERSION] = { "unwind_version", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, 4, sizeof(uint64_t) },
	[PROCESS] = { "unwind_processes", BPF_MAP_TYPE_HASH, 0, 4, sizeof(struct unwind_process) },
	[CODE] = { "unwind_codes", BPF_MAP_TYPE_HASH, BPF_F_NO_PREALLOC,
		   sizeof(struct unwind_code_key), sizeof(struct unwind_code) },
};

struct unwind_maps {
	int fds[SHARED_MAPS];
	uint32_t n[SHARED_MAPS];
	void *memory_of[PROCESS];
	struct unwind_memory memory;
};

static int process_put(void *userdata, const struct unwind_process *process, bool is_new_only)
{
	const struct unwind_maps *maps = userdata;

	return bpf_map_update_elem(maps->fds[PROCESS], &process->tgid, process,
				   is_new_only ? BPF_NOEXIST : BPF_ANY);
}

static bool process_get(void *userdata, uint32_t tgid, struct unwind_process *out)
{
	const struct unwind_maps *maps = userdata;

	return !bpf_map_lookup_elem(maps->fds[PROCESS], &tgid, out);
}

static void process_drop(void *userdata, uint32_t tgid)
{
	const struct unwind_maps *maps = userdata;

	bpf_map_delete_elem(maps->fds[PROCESS], &tgid);
}

static int code_put(void *userdata, const struct unwind_code_key *key,
		    const struct unwind_code *code)
{
	const struct unwind_maps *maps = userdata;

	return bpf_map_update_elem(maps->fds[CODE], key, code, BPF_ANY);
}

static void code_drop(void *userdata, const struct unwind_code_key *key)
{
	const struct unwind_maps *maps = userdata;

	bpf_map_delete_elem(maps->fds[CODE], key);
}

/*
 * Waits until no BPF program uses data any more that it read before this call. The programs run
 * under RCU, and the system call membarrier waits for an RCU grace period. A kernel with nohz_full
 * refuses membarrier: then waits for a second, because no program runs for that long. Programs that
 * may sleep are not waited for: they compare the version before and after they walk a stack, and
 * repeat the walk if it has changed.
 */
static void programs_wait(void *userdata)
{
	const struct unwind_maps *maps = userdata;

	__atomic_add_fetch((uint64_t *)maps->memory_of[VERSION], 1, __ATOMIC_SEQ_CST);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		sleep(FALLBACK_WAIT_S);
}

/*
 * Maps n words of the BPF map unwind_words into the daemon's memory, beginning with word number
 * `first`. NULL on error.
 */
static uint64_t *words_map(void *userdata, uint32_t first, uint32_t n)
{
	const struct unwind_maps *maps = userdata;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), start = first * sizeof(uint64_t);
	size_t slack = start % page;
	char *memory = mmap(NULL, slack + n * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
			    maps->fds[WORDS], (off_t)(start - slack));

	return memory == MAP_FAILED ? NULL : (uint64_t *)(void *)(memory + slack);
}

static void words_unmap(void *userdata, uint64_t *words, uint32_t first, uint32_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), slack = first * sizeof(uint64_t) % page;

	munmap((char *)words - slack, slack + n * sizeof(uint64_t));
}

static size_t size_of(const struct unwind_maps *maps, enum shared_map map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)maps->n[map] * shared_maps[map].value_size + page - 1) & ~(page - 1);
}

static int map_open(struct unwind_maps *maps, enum shared_map map)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = shared_maps[map].flags);
	void *memory;

	maps->fds[map] = bpf_map_create(shared_maps[map].type, shared_maps[map].name,
					shared_maps[map].key_size, shared_maps[map].value_size,
					maps->n[map], &options);
	if (maps->fds[map] < 0)
		return maps->fds[map];
	if (map >= PROCESS || map == WORDS)
		return 0;
	memory = mmap(NULL, size_of(maps, map), PROT_READ | PROT_WRITE, MAP_SHARED, maps->fds[map],
		      0);
	if (memory == MAP_FAILED)
		return -errno;
	maps->memory_of[map] = memory;
	return 0;
}

/*
 * Divides max_memory (bytes) among the maps: an eighth for the mappings of processes, an eighth for
 * processes, a little for unwind tables and code, and the rest for the rows of unwind tables.
 */
static void maps_size(struct unwind_maps *maps, uint64_t max_memory)
{
	uint64_t part = max_memory / 8;

	maps->n[SEGMENT] = (uint32_t)(part / sizeof(struct unwind_segment));
	maps->n[PROCESS] = (uint32_t)(part / PROCESS_BYTES);
	maps->n[VERSION] = 1;
	maps->n[TABLE] = (uint32_t)(part / 16 / sizeof(struct unwind_table));
	maps->n[WORDS] =
		(uint32_t)((max_memory - 2 * part - part / 4 - part / 16) / sizeof(uint64_t));
	maps->n[CODE] = (uint32_t)(part / 4 / CODE_BYTES);
}

int unwind_maps_open(uint64_t max_memory, struct unwind_maps **out)
{
	struct unwind_maps *maps = calloc(1, sizeof(*maps));
	int r = 0;

	if (!maps)
		return -ENOMEM;
	maps_size(maps, max_memory);
	for (unsigned int i = 0; i < SHARED_MAPS; i++)
		maps->fds[i] = -1;
	for (unsigned int i = 0; i < SHARED_MAPS && !r; i++)
		r = map_open(maps, i);
	if (r) {
		unwind_maps_close(maps);
		return r;
	}
	maps->memory = (struct unwind_memory){
		.map = words_map,
		.unmap = words_unmap,
		.n_words = maps->n[WORDS],
		.tables = maps->memory_of[TABLE],
		.n_tables = maps->n[TABLE],
		.segments = maps->memory_of[SEGMENT],
		.n_segments = maps->n[SEGMENT],
		.put = process_put,
		.get = process_get,
		.drop = process_drop,
		.n_codes = maps->n[CODE],
		.put_code = code_put,
		.drop_code = code_drop,
		.wait = programs_wait,
		.userdata = maps,
	};
	*out = maps;
	return 0;
}

struct unwind_maps *unwind_maps_close(struct unwind_maps *maps)
{
	if (!maps)
		return NULL;
	for (unsigned int i = 0; i < SHARED_MAPS; i++) {
		if (i < PROCESS && maps->memory_of[i])
			munmap(maps->memory_of[i], size_of(maps, i));
		closep(&maps->fds[i]);
	}
	free(maps);
	return NULL;
}

const struct unwind_memory *unwind_maps_memory(const struct unwind_maps *maps)
{
	return &maps->memory;
}

bool unwind_maps_has(const char *name)
{
	for (unsigned int i = 0; i < SHARED_MAPS; i++)
		if (strcmp(shared_maps[i].name, name) == 0)
			return true;
	return false;
}

int unwind_maps_reuse(const struct unwind_maps *maps, struct bpf_object *object)
{
	struct bpf_map *map;
	int r = 0;

	for (unsigned int i = 0; i < SHARED_MAPS && !r; i++) {
		map = bpf_object__find_map_by_name(object, shared_maps[i].name);
		r = map ? bpf_map__reuse_fd(map, maps->fds[i]) : 0;
	}
	return r;
}

uint64_t unwind_maps_bytes(const struct unwind_maps *maps)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PROCESS; i++)
		sum += (uint64_t)maps->n[i] * shared_maps[i].value_size;
	return sum + (uint64_t)maps->n[PROCESS] * PROCESS_BYTES +
	       (uint64_t)maps->n[CODE] * CODE_BYTES;
}
