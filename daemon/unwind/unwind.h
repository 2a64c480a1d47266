/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_UNWIND_H
#define STACKD_DAEMON_UNWIND_UNWIND_H

/*
 * What the walk of user stacks in the kernel needs to know: in come files with their rows and the
 * mappings of processes, out they go into memory shared with the programs. Owned by the recorder;
 * any thread. What programs may still be reading is not written over before they have ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/file_state.h"
#include "daemon/unwind/rows.h"

struct unwind;
struct unwind_file;
struct address_space;
struct unwind_process;
struct unwind_segment;
struct unwind_table;
struct unwind_code;
struct unwind_code_key;

/* Memory the programs read, and the map of processes, which only the probe room can write. */
struct unwind_memory {
	uint32_t n_words;
	/* Words from first on, for a moment: mapped for good they would be memory of the daemon. */
	uint64_t *(*map)(void *userdata, uint32_t first, uint32_t n); /* NULL: out of memory */
	void (*unmap)(void *userdata, uint64_t *words, uint32_t first, uint32_t n);
	struct unwind_table *tables;
	uint32_t n_tables;
	struct unwind_segment *segments;
	uint32_t n_segments;
	/* Puts an entry, unless is_new_only and there is one: -EEXIST. Negative errno. */
	int (*put)(void *userdata, const struct unwind_process *process, bool is_new_only);
	/* False where there is none. */
	bool (*get)(void *userdata, uint32_t tgid, struct unwind_process *out);
	void (*drop)(void *userdata, uint32_t tgid);
	/* Code by what the kernel knows it by, so many at most. Negative errno. */
	uint32_t n_codes;
	int (*put_code)(void *userdata, const struct unwind_code_key *key,
			const struct unwind_code *code);
	void (*drop_code)(void *userdata, const struct unwind_code_key *key);
	/* Returns when every program that runs now has ended; may take some 10 ms. */
	void (*wait)(void *userdata);
	void *userdata;
};

struct unwind_stats {
	uint64_t max_bytes, bytes; /* of rows */
	uint64_t rows;
	size_t tables;	     /* loaded */
	uint64_t evictions;  /* tables, and parts of them, dropped to make room */
	uint64_t no_room;    /* how often there was none */
	uint64_t unreadable; /* files whose information could not be read */
	uint64_t max_segments, segments, segments_full;
	uint64_t processes_full;
	uint64_t load_ns, loads; /* time it took to read and compile them */
};

/* A process as in process.h; is_exact false: start to the tick and generation not known. */
struct unwind_owner {
	uint32_t pid;
	uint32_t exec_gen;
	uint64_t start_boot_ns;
	bool is_exact;
};

/* One mapping, of a file's code or of code made at run time (file NULL). */
struct unwind_mapping {
	uint64_t start, end;
	uint64_t address; /* ELF virtual address of start */
	struct unwind_file *file;
	bool is_generated;
	uint64_t state; /* unwind_state_of(); 0 where it is not known: taken for true */
};

/* The memory stays the caller's and must outlive it. */
int unwind_new(const struct unwind_memory *memory, struct unwind **out);
struct unwind *unwind_free(struct unwind *unwind);
void unwind_stats(struct unwind *unwind, struct unwind_stats *out);
/* Of one file's rows at most. */
size_t unwind_max_words(const struct unwind *unwind);

/* Notes what was walked through since the last time; now and then, or all looks used alike. */
void unwind_notice(struct unwind *unwind);

/*
 * Gets the file of a key, known already or new; NULL when there are too many. A file that nobody
 * has keeps its rows until the room is needed, for programs are started again and again.
 */
struct unwind_file *unwind_file_get(struct unwind *unwind, const struct file_state *state,
				    uint64_t base);
void unwind_file_put(struct unwind_file *file);

/*
 * A walk has ended there, at this ELF virtual address: its rows may take the place of those of live
 * processes, too. Until then they are loaded where there is room.
 */
void unwind_file_need(struct unwind_file *file, uint64_t address);
bool unwind_file_is_needed(struct unwind_file *file);

/* Whether its rows should be read: some are missed, and were not found missing lately. */
bool unwind_file_is_wanted(struct unwind_file *file);

/*
 * Takes rows that were compiled in took_ns, making room if need be: files nobody has go first, then
 * parts never walked through, then those not walked through for longest. Where there is not enough
 * it is the parts that walks have missed. error (negative): why there are no rows.
 */
void unwind_file_load(struct unwind_file *file, const struct unwind_rows *rows, int error,
		      int64_t took_ns);

/*
 * Walks find the file's rows (NULL: its code was made at run time) by what the kernel knows its
 * code by, also in processes of which nothing is known yet. address: ELF virtual address of the
 * offset. The oldest is forgotten for one too many, and all of a file when its number is given
 * away.
 */
void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address);

/* The mappings of an image; sorted. Owned by the caller. NULL when there is no room. */
struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n);
/* What stacks say they were walked by; never 0, and never that of another one. */
uint64_t address_space_generation(const struct address_space *run);
/* Walks by processes that still have it end at their first frame. */
struct address_space *address_space_free(struct address_space *run);

/* The process has these mappings now; the run must live until it has others or is dropped. */
void unwind_process_set(struct address_space *run, const struct unwind_owner *owner);
void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner);

#endif
