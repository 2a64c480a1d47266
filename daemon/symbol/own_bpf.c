/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/own_bpf.h"

#include <pthread.h>

#include "common/array.h"
#include "common/base.h"

#define REMOVED_FOR_NS (10 * NS_PER_S)

struct entry {
	struct own_bpf_function function;
	uint32_t program_id;
	int64_t removed_ns; /* time at which own_bpf_remove() was called; 0: not called yet */
};

/* There is one table, because there is one kernel, and each program is loaded for the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t n_entries, capacity;
static uint64_t generation;

static bool is_over(const struct entry *entry)
{
	return entry->removed_ns && clock_ns(CLOCK_MONOTONIC) - entry->removed_ns > REMOVED_FOR_NS;
}

static bool overlaps(const struct entry *entry, const struct own_bpf_function *functions, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (entry->function.start < functions[i].end &&
		    functions[i].start < entry->function.end)
			return true;
	return false;
}

/*
 * Drops the entries of programs that were removed, if their time is over or if the kernel has put
 * other functions in their place. Called with the lock held.
 */
static void entries_sweep(const struct own_bpf_function *functions, size_t n)
{
	size_t i, left = 0;

	for (i = 0; i < n_entries; i++)
		if (!is_over(&entries[i]) &&
		    !(entries[i].removed_ns && overlaps(&entries[i], functions, n)))
			entries[left++] = entries[i];
	n_entries = left;
}

int own_bpf_add(uint32_t program_id, const struct own_bpf_function *functions, size_t n)
{
	int r;

	pthread_mutex_lock(&lock);
	entries_sweep(functions, n);
	r = array_reserve(entries, capacity, n_entries + n);
	for (size_t i = 0; !r && i < n; i++)
		entries[n_entries++] = (struct entry){ functions[i], program_id, 0 };
	generation++;
	pthread_mutex_unlock(&lock);
	return r;
}

void own_bpf_remove(uint32_t program_id)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_entries; i++)
		if (entries[i].program_id == program_id && !entries[i].removed_ns)
			entries[i].removed_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&lock);
}

bool own_bpf_has(uint64_t address)
{
	bool has = false;
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_entries && !has; i++)
		has = address >= entries[i].function.start && address < entries[i].function.end &&
		      !is_over(&entries[i]);
	pthread_mutex_unlock(&lock);
	return has;
}

uint64_t own_bpf_generation(void)
{
	uint64_t value;

	pthread_mutex_lock(&lock);
	value = generation;
	pthread_mutex_unlock(&lock);
	return value;
}
