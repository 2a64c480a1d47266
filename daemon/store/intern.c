/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/base/hash_table.h"

/*
 * The most rows of one table that the cache has. A full cache is emptied; its rows are in the
 * database.
 */
enum { KNOWN_MAX = 16384 };

struct known {
	uint64_t key[2];
	int64_t number;
	int64_t seen;
	UT_hash_handle hh;
};

struct store_intern {
	struct store_db *db;
	struct known *frames;
	struct known *stacks;
	struct known *processes;
	int64_t window, touch;
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

static void known_clear(struct known **set, int64_t before)
{
	struct known *known, *next;

	HASH_ITER (hh, *set, known, next) {
		if (known->seen >= before)
			continue;
		HASH_DEL(*set, known);
		free(known);
	}
}

void store_intern_forget_before(struct store_intern *intern, int64_t window, int64_t frames)
{
	known_clear(&intern->frames, frames);
	known_clear(&intern->stacks, window);
	known_clear(&intern->processes, window);
}

void store_intern_forget(struct store_intern *intern)
{
	store_intern_forget_before(intern, INT64_MAX, INT64_MAX);
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
static void known_add(struct known **set, const uint64_t *key, int64_t number, int64_t seen)
{
	struct known *known;

	if (HASH_COUNT(*set) >= KNOWN_MAX)
		known_clear(set, INT64_MAX);
	known = calloc(1, sizeof(*known));
	if (!known)
		return;
	memcpy(known->key, key, sizeof(known->key));
	known->number = number;
	known->seen = seen;
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
 * if there is no such row. `find` is the statement that finds a row of the table. The statements
 * with the next three numbers add a row, repair a row, and set the `seen` of a row.
 */
static int row_find(struct store_intern *intern, enum store_statement find,
		    const struct bytes *data, int64_t hash, int64_t *number_out, int64_t *seen_out)
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
	*seen_out = sqlite3_column_int64(statement, 1);
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

static int row_touch(struct store_intern *intern, enum store_statement find, int64_t number,
		     int64_t *seen)
{
	sqlite3_stmt *statement;
	int r;

	if (intern->window - *seen < intern->touch)
		return 0;
	statement = store_db_statement(intern->db, find + 3, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, number);
	sqlite3_bind_int64(statement, 2, intern->window);
	*seen = intern->window;
	return store_db_exec(intern->db, statement);
}

/*
 * Sets *out to the number of the row that holds `data`, and caches the number. Adds the row if
 * there is none. If the `seen` of the row is too old, sets it to the number of the window that is
 * being written.
 */
static int row_number(struct store_intern *intern, enum store_statement find, struct known **set,
		      const uint64_t *key, const struct bytes *data, int64_t *out)
{
	int64_t hash = (int64_t)hash64(HASH64_SEED, data->data, data->n);
	int64_t seen = intern->window;
	int r;

	if (data->is_failed)
		return -ENOMEM;
	r = row_find(intern, find, data, hash, out, &seen);
	if (r == -ENOENT)
		r = row_add(intern, find, data, hash, out);
	if (!r)
		r = row_touch(intern, find, *out, &seen);
	if (!r)
		known_add(set, key, *out, seen);
	return r;
}

static bool is_known(struct store_intern *intern, enum store_statement find, struct known **set,
		     const uint64_t *key, int64_t *out, int *r)
{
	struct known *known = known_find(set, key);

	*r = 0;
	if (!known)
		return false;
	*out = known->number;
	*r = row_touch(intern, find, known->number, &known->seen);
	return true;
}

static int frame_number(struct store_intern *intern, const struct frame *frame, int64_t *out)
{
	struct bytes *data = &intern->frame_data;
	uint64_t key[2];
	int r;

	data->n = 0;
	bytes_put_u64(data, frame->kind);
	bytes_put_u64(data, frame->file_id);
	bytes_put_u64(data, frame->file_offset);
	bytes_put_u64(data, frame->name_offset);
	bytes_put_string(data, frame->name);
	bytes_put_string(data, frame->module);
	key[0] = hash64(HASH64_SEED, data->data, data->n);
	key[1] = data->n;
	if (is_known(intern, STATEMENT_FRAME_FIND, &intern->frames, key, out, &r))
		return r;
	return row_number(intern, STATEMENT_FRAME_FIND, &intern->frames, key, data, out);
}

/*
 * Encodes a stack as the row numbers of its frames. Adds the rows of new frames. If the `seen` of
 * another frame's row is too old, sets it to the number of the window that is being written.
 */
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

static int stack_number(void *userdata, struct stack *stack, int64_t *out)
{
	uint64_t key[2] = { stack->raw_id, (uint64_t)stack->flags << 1 | stack->is_idle };
	struct store_intern *intern = userdata;
	_cleanup_(bytes_fini) struct bytes data = {};
	struct known *known = known_find(&intern->stacks, key);
	int r;

	if (known && intern->window - known->seen < intern->touch) {
		*out = known->number;
		return 0;
	}
	r = stack_encode(intern, stack, &data);
	if (r)
		return r;
	if (is_known(intern, STATEMENT_STACK_FIND, &intern->stacks, key, out, &r))
		return r;
	return row_number(intern, STATEMENT_STACK_FIND, &intern->stacks, key, &data, out);
}

static int process_number(void *userdata, struct process *process, int64_t *out)
{
	_cleanup_(bytes_fini) struct bytes data = {};
	struct store_intern *intern = userdata;
	struct process_info info;
	uint64_t key[2];
	int r;

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
	 * Add this byte only for an entry that stands for several processes (is_folded): the data
	 * of all other processes, and the hash by which their rows are found, stay as they were.
	 */
	if (info.is_folded)
		bytes_put_u64(&data, info.is_folded);
	if (data.is_failed)
		return -ENOMEM;
	key[0] = hash64(HASH64_SEED, data.data, data.n);
	key[1] = data.n;
	if (is_known(intern, STATEMENT_PROCESS_FIND, &intern->processes, key, out, &r))
		return r;
	return row_number(intern, STATEMENT_PROCESS_FIND, &intern->processes, key, &data, out);
}

int64_t store_intern_window(const struct store_intern *intern)
{
	return intern->window;
}

struct store_names store_intern_names(struct store_intern *intern, int64_t window, int64_t touch)
{
	intern->window = window;
	intern->touch = touch;
	return (struct store_names){
		.stack_number = stack_number,
		.process_number = process_number,
		.userdata = intern,
	};
}
