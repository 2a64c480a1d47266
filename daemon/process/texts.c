/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/process/internal.h"

/*
 * The paths of programs and cgroups, which process.exe and process.cgroup point to. The table has
 * each of them once, however many processes have it.
 */

struct process_text {
	UT_hash_handle hh; /* links the string into the hash table process_table.texts */
	size_t refs;
	char text[];
};

/*
 * A string to which process.exe or process.cgroup pointed earlier. It is kept as long as the
 * process is referenced, because a caller may still use it.
 */
struct old_text {
	struct old_text *next; /* next in the list process.old_texts, which has the newest first */
	const char *text;
	/*
	 * time of CLOCK_MONOTONIC until which it was the process's control group; 0: it was an exe,
	 * or was found to be wrong
	 */
	int64_t until_ns;
};

/*
 * A name that the process had before. The newest are kept, at most COMMS_MAX of a process. A new
 * name is seen at the next cut, or later if the main thread sleeps: it counts from the time when
 * the old one was last seen, so that a process that gives itself a name when it starts has that
 * name.
 */
struct old_comm {
	struct old_comm *next; /* next in the list process.old_comms, which has the newest first */
	int64_t seen_ns;       /* time of CLOCK_MONOTONIC when the process was last seen with it */
	int64_t replaced_ns;   /* time when it was first seen with another one */
	char comm[16];
};

enum { COMMS_MAX = 64 };

/* Returns the hash of a string in process_table.texts. The default one is for keys of whole words.
 */
static unsigned int text_hash(const char *value, size_t n)
{
	return (unsigned int)hash64(HASH64_SEED, value, n);
}

/* Returns the table's copy of the string and adds a reference to it; NULL when out of memory. */
static const char *text_get(struct process_table *table, const char *value)
{
	size_t n = strlen(value);
	unsigned int hash = text_hash(value, n);
	struct process_text *text;

	HASH_FIND_BYHASHVALUE(hh, table->texts, value, n, hash, text);
	if (!text) {
		text = calloc(1, sizeof(*text) + n + 1);
		if (!text)
			return NULL;
		memcpy(text->text, value, n + 1);
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->texts, text->text, n, hash, text);
		if (!HASH_HAS(text)) {
			free(text);
			return NULL;
		}
	}
	text->refs++;
	return text->text;
}

static void text_put(struct process_table *table, const char *value)
{
	struct process_text *text =
		(struct process_text *)((uintptr_t)value - offsetof(struct process_text, text));

	if (--text->refs)
		return;
	HASH_DELETE(hh, table->texts, text);
	free(text);
}

/*
 * Drops the reference to a string that the process no longer points to, later if a caller may still
 * use the string. When out of memory, the string stays as long as the table.
 */
static void text_retire(struct process *process, const char *value, int64_t until_ns)
{
	struct old_text *old;

	if (!process->refs) {
		text_put(process->table, value);
		return;
	}
	old = malloc(sizeof(*old));
	if (!old)
		return;
	*old = (struct old_text){ process->old_texts, value, until_ns };
	process->old_texts = old;
	process->n_moves += until_ns > 0;
}

/*
 * Sets *field to a copy of `value`. Keeps the string from before as one that was right until
 * until_ns.
 */
static void text_set(struct process *process, const char **field, const char *value,
		     int64_t until_ns)
{
	const char *before = *field, *after = NULL;

	if (before == value || (before && value && !strcmp(before, value)))
		return;
	if (value) {
		after = text_get(process->table, value);
		if (!after)
			return;
	}
	*field = after;
	if (before)
		text_retire(process, before, until_ns);
}

void process_set_text(struct process *process, const char **field, const char *value)
{
	text_set(process, field, value, 0);
}

/*
 * Forgets the control group that the process left first, if that was before before_ns: no caller
 * can still use the string. What process_cgroup_at() returns for that time is NULL then.
 */
static bool oldest_move_drop(struct process *process, int64_t before_ns)
{
	struct old_text **oldest = NULL, *old;

	for (struct old_text **at = &process->old_texts; *at; at = &(*at)->next)
		if ((*at)->until_ns)
			oldest = at;
	if (!oldest || (*oldest)->until_ns > before_ns)
		return false;
	old = *oldest;
	*oldest = old->next;
	process->moves_from_ns = old->until_ns;
	process->n_moves--;
	text_put(process->table, old->text);
	free(old);
	return true;
}

void process_move(struct process *process, const char *cgroup)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (process->n_moves >= PROCESS_MOVES_MAX &&
	    !oldest_move_drop(process, now - PROCESS_MOVES_NS)) {
		process->table->moves_full++;
		process_set_text(process, &process->cgroup, NULL);
		return;
	}
	text_set(process, &process->cgroup, cgroup, now);
}

const char *process_cgroup_at(const struct process *process, int64_t at_ns)
{
	const char *cgroup = process->cgroup;

	if (at_ns < process->moves_from_ns)
		return NULL;
	for (const struct old_text *old = process->old_texts; old; old = old->next)
		if (old->until_ns > at_ns)
			cgroup = old->text;
	return cgroup;
}

void process_drop_old_texts(struct process *process)
{
	struct old_text *old;

	while ((old = process->old_texts)) {
		process->old_texts = old->next;
		text_put(process->table, old->text);
		free(old);
	}
	process->n_moves = 0;
}

void process_old_comms_free(struct old_comm **list)
{
	struct old_comm *old;

	while ((old = *list)) {
		*list = old->next;
		free(old);
	}
}

void process_name(struct process *process, const char *comm)
{
	struct old_comm *old = process->comm[0] ? malloc(sizeof(*old)) : NULL, **at;
	size_t n = 1;

	if (old) {
		*old = (struct old_comm){
			.next = process->old_comms,
			.seen_ns = process->comm_ns,
			.replaced_ns = clock_ns(CLOCK_MONOTONIC),
		};
		memcpy(old->comm, process->comm, sizeof(old->comm));
		process->old_comms = old;
	}
	snprintf(process->comm, sizeof(process->comm), "%.15s", comm);
	for (at = &process->old_comms; *at && n <= COMMS_MAX; n++)
		at = &(*at)->next;
	process_old_comms_free(at);
}

void process_unname(struct process *process, int64_t since_ns)
{
	struct old_comm *old = process->old_comms;

	if (!old || old->replaced_ns <= since_ns)
		return;
	memcpy(process->comm, old->comm, sizeof(process->comm));
	process->old_comms = old->next;
	free(old);
}

const char *process_comm_at(const struct process *process, int64_t at_ns)
{
	const char *comm = process->comm;

	for (const struct old_comm *old = process->old_comms; old; old = old->next)
		if (old->seen_ns >= at_ns)
			comm = old->comm;
	return comm;
}

void process_texts_free(struct process_table *table)
{
	struct process_text *text, *next;

	HASH_ITER (hh, table->texts, text, next) {
		HASH_DELETE(hh, table->texts, text);
		free(text);
	}
}
