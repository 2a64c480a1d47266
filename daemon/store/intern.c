/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/base/hash_table.h"

/*
 * The maximum number of rows of one table that the cache has. A full cache is emptied; its rows are
 * in the database.
 */
enum { KNOWN_MAX = 16384 };

struct known {
	uint64_t key[2];
	int64_t number;
	UT_hash_handle hh;
};

struct store_intern {
	struct store_db *db;
	struct known *frames;
	struct known *stacks;
	struct known *processes;
	int64_t window;
	/*
	 * the rows in use, as a running collection finds them, see store_intern_mark(); NULL: no
	 * collection runs
	 */
	struct store_marks *marks;
	struct bytes frame_data; /* buffer for encoding one frame, reused for the next */
};

int64_t store_sum(int64_t number, const void *data, size_t size)
{
	return (int64_t)hash64(hash64(HASH64_SEED, &number, sizeof(number)), data, size);
}

int store_intern_new(struct store_db *db, struct store_intern **out)
{
	struct store_intern *intern = calloc(1, sizeof(*intern));

	if (!intern)
		return -ENOMEM;
	intern->db = db;
	*out = intern;
	return 0;
}

static void known_clear(struct known **set, const struct id_set *keep)
{
	struct known *known, *next;

	HASH_ITER (hh, *set, known, next) {
		if (keep && id_set_has(keep, known->number))
			continue;
		HASH_DEL(*set, known);
		free(known);
	}
}

void store_intern_forget_unmarked(struct store_intern *intern)
{
	known_clear(&intern->frames, &intern->marks->frames);
	known_clear(&intern->stacks, &intern->marks->stacks);
	known_clear(&intern->processes, &intern->marks->processes);
}

void store_intern_forget(struct store_intern *intern)
{
	known_clear(&intern->frames, NULL);
	known_clear(&intern->stacks, NULL);
	known_clear(&intern->processes, NULL);
}

void store_intern_mark(struct store_intern *intern, struct store_marks *marks)
{
	intern->marks = marks;
}

void store_marks_clear(struct store_marks *marks)
{
	id_set_clear(&marks->stacks);
	id_set_clear(&marks->frames);
	id_set_clear(&marks->processes);
	marks->is_failed = false;
}

/*
 * Returns the set of the rows in use of a table; NULL: no collection runs. `find` is the statement
 * that finds a row of this table.
 */
static struct id_set *marks_of(struct store_intern *intern, enum store_statement find)
{
	if (!intern->marks)
		return NULL;
	if (find == STATEMENT_FRAME_FIND)
		return &intern->marks->frames;
	return find == STATEMENT_STACK_FIND ? &intern->marks->stacks : &intern->marks->processes;
}

static void mark(struct store_intern *intern, enum store_statement find, int64_t number)
{
	struct id_set *marks = marks_of(intern, find);

	if (marks && id_set_add(marks, number))
		intern->marks->is_failed = true;
}

struct store_intern *store_intern_free(struct store_intern *intern)
{
	if (!intern)
		return NULL;
	store_intern_forget(intern);
	bytes_fini(&intern->frame_data);
	free(intern);
	return NULL;
}

static struct known *known_find(struct known **set, const uint64_t *key)
{
	struct known *known;

	HASH_FIND(hh, *set, key, sizeof(known->key), known);
	return known;
}

/*
 * Adds a row to the cache. Does nothing when out of memory: the row is found in the database, too.
 */
static void known_add(struct known **set, const uint64_t *key, int64_t number)
{
	struct known *known;

	if (HASH_COUNT(*set) >= KNOWN_MAX)
		known_clear(set, NULL);
	known = calloc(1, sizeof(*known));
	if (!known)
		return;
	memcpy(known->key, key, sizeof(known->key));
	known->number = number;
	HASH_ADD(hh, *set, key, sizeof(known->key), known);
	if (!HASH_HAS(known))
		free(known);
}

static int row_heal(struct store_intern *intern, enum store_statement heal_statement,
		    int64_t number, const struct bytes *data)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(intern->db, heal_statement, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, number);
	sqlite3_bind_int64(statement, 2, store_sum(number, data->data, data->n));
	sqlite3_bind_blob(statement, 3, data->data, (int)data->n, SQLITE_STATIC);
	return store_db_exec(intern->db, statement);
}

/*
 * Checks whether the row that was found by the hash of `data` holds that data. Returns 0 if it
 * does; -EBADMSG if the row's checksum is wrong: the row is damaged and may be overwritten;
 * -EUCLEAN if the checksum is right but the row holds other data: the index is damaged, and the row
 * must not be changed.
 */
static int row_judge(sqlite3_stmt *row, int64_t number, const struct bytes *data)
{
	const void *found = sqlite3_column_blob(row, 3);
	size_t size = (size_t)sqlite3_column_bytes(row, 3);
	bool is_sound = sqlite3_column_int64(row, 2) == store_sum(number, found, size);

	if (size != data->n || memcmp(found, data->data, size) != 0)
		return is_sound ? -EUCLEAN : -EBADMSG;
	return is_sound ? 0 : -EBADMSG;
}

/*
 * Finds the row with this hash. If the row is damaged, overwrites it with `data`. Returns -ENOENT
 * if there is no such row. `find` is the statement of a table that finds a row, such as
 * STATEMENT_FRAME_FIND. In the enum, the next two statements add a row to this table and repair a
 * row of it.
 */
static int row_find(struct store_intern *intern, enum store_statement find,
		    const struct bytes *data, int64_t hash, int64_t *number_out)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(intern->db, find, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, hash);
	r = store_db_step(intern->db, statement);
	if (r <= 0)
		return r ? r : -ENOENT;
	*number_out = sqlite3_column_int64(statement, 0);
	r = row_judge(statement, *number_out, data);
	sqlite3_reset(statement);
	return r == -EBADMSG ? row_heal(intern, find + 2, *number_out, data) : r;
}

static int row_add(struct store_intern *intern, enum store_statement find, const struct bytes *data,
		   int64_t hash, int64_t *number_out)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(intern->db, find + 1, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, hash);
	sqlite3_bind_int64(statement, 2, intern->window);
	sqlite3_bind_blob(statement, 3, data->data, (int)data->n, SQLITE_STATIC);
	r = store_db_exec(intern->db, statement);
	if (r)
		return r;
	*number_out = sqlite3_last_insert_rowid(intern->db->handle);
	/* Set the checksum: it covers the row's number, which the insert has just assigned. */
	return row_heal(intern, find + 2, *number_out, data);
}

/*
 * Sets *out to the number of the row that holds `data`, and caches the number. Adds the row if
 * there is none.
 */
static int row_number(struct store_intern *intern, enum store_statement find, struct known **set,
		      const uint64_t *key, const struct bytes *data, int64_t *out)
{
	int64_t hash = (int64_t)hash64(HASH64_SEED, data->data, data->n);
	int r;

	if (data->is_failed)
		return -ENOMEM;
	r = row_find(intern, find, data, hash, out);
	if (r == -ENOENT)
		r = row_add(intern, find, data, hash, out);
	if (r)
		return r;
	mark(intern, find, *out);
	known_add(set, key, *out);
	return 0;
}

static bool is_known(struct store_intern *intern, enum store_statement find, struct known **set,
		     const uint64_t *key, int64_t *out)
{
	struct known *known = known_find(set, key);

	if (!known)
		return false;
	*out = known->number;
	mark(intern, find, known->number);
	return true;
}

static int frame_number(struct store_intern *intern, const struct frame *frame, int64_t *out)
{
	struct bytes *data = &intern->frame_data;
	uint64_t key[2];

	data->n = 0;
	bytes_put_u64(data, frame->kind);
	bytes_put_u64(data, frame->file_id);
	bytes_put_u64(data, frame->file_offset);
	bytes_put_u64(data, frame->name_offset);
	bytes_put_string(data, frame->name);
	bytes_put_string(data, frame->module);
	key[0] = hash64(HASH64_SEED, data->data, data->n);
	key[1] = data->n;
	if (is_known(intern, STATEMENT_FRAME_FIND, &intern->frames, key, out))
		return 0;
	return row_number(intern, STATEMENT_FRAME_FIND, &intern->frames, key, data, out);
}

/* Encodes a stack as the row numbers of its frames. Adds the rows of new frames. */
static int stack_encode(struct store_intern *intern, const struct stack *stack, struct bytes *data)
{
	int64_t number, last = 0;
	size_t i;
	int r;

	bytes_put_u64(data, stack->flags);
	bytes_put_u64(data, stack->is_idle);
	bytes_put_u64(data, stack->id);
	bytes_put_u64(data, stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id);
	bytes_put_u64(data, stack->n_frames);
	for (i = 0; i < stack->n_frames; i++) {
		r = frame_number(intern, stack->frames[i], &number);
		if (r)
			return r;
		bytes_put_i64(data, number - last);
		last = number;
	}
	return 0;
}

size_t store_stack_frames(struct bytes_reader *in)
{
	bytes_get_u64(in); /* flags */
	bytes_get_u64(in); /* is_idle */
	bytes_get_u64(in); /* id */
	bytes_get_u64(in); /* raw_id or place_id, see stack_encode() */
	return (size_t)bytes_get_max(in, bytes_left(in));
}

static int stack_number(void *userdata, struct stack *stack, int64_t *out)
{
	uint64_t key[2] = { stack->raw_id, (uint64_t)stack->flags << 1 | stack->is_idle };
	struct store_intern *intern = userdata;
	_cleanup_(bytes_fini) struct bytes data = {};
	struct known *known = known_find(&intern->stacks, key);
	int r;

	/*
	 * If the stack is marked as in use, its frames need not be marked here: they are marked
	 * already, or will be when the collection of unused rows reads the table of stacks.
	 */
	if (known && (!intern->marks || id_set_has(&intern->marks->stacks, known->number))) {
		*out = known->number;
		return 0;
	}
	r = stack_encode(intern, stack, &data);
	if (r)
		return r;
	if (is_known(intern, STATEMENT_STACK_FIND, &intern->stacks, key, out))
		return 0;
	return row_number(intern, STATEMENT_STACK_FIND, &intern->stacks, key, &data, out);
}

static int process_number(void *userdata, struct process *process, int64_t *out)
{
	_cleanup_(bytes_fini) struct bytes data = {};
	struct store_intern *intern = userdata;
	struct process_info info;
	uint64_t key[2];

	process_info(process, &info);
	bytes_put_i64(&data, info.id.pid);
	bytes_put_u64(&data, info.id.exec_gen);
	bytes_put_u64(&data, info.id.start_boot_ns);
	bytes_put_i64(&data, info.start_real_ns);
	bytes_put_u64(&data, info.is_kernel);
	bytes_put_string(&data, info.comm);
	bytes_put_string(&data, info.exe);
	bytes_put_string(&data, info.cgroup);
	/*
	 * Add this byte only for an entry that stands for several processes (is_folded). The data
	 * of all other processes thus stays the same as in earlier versions of stackd, and so does
	 * the hash by which their rows are found.
	 */
	if (info.is_folded)
		bytes_put_u64(&data, info.is_folded);
	if (data.is_failed)
		return -ENOMEM;
	key[0] = hash64(HASH64_SEED, data.data, data.n);
	key[1] = data.n;
	if (is_known(intern, STATEMENT_PROCESS_FIND, &intern->processes, key, out))
		return 0;
	return row_number(intern, STATEMENT_PROCESS_FIND, &intern->processes, key, &data, out);
}

struct store_names store_intern_names(struct store_intern *intern, int64_t window)
{
	intern->window = window;
	return (struct store_names){
		.stack_number = stack_number,
		.process_number = process_number,
		.userdata = intern,
	};
}
