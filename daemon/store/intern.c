/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/store/row_cache.h"

struct store_intern {
	struct store_db *db;
	struct row_cache frames;
	struct row_cache files;
	struct row_cache stacks;
	struct row_cache processes;
	int64_t at_ns;	    /* its middle */
	unsigned int tiers; /* the tier of this window, as in struct id_set */
	/*
	 * the rows in use, as a running collection finds them, see store_intern_mark(); NULL: no
	 * collection runs
	 */
	struct store_marks *marks;
	struct bytes frame_data; /* buffer for encoding one frame, reused for the next */
	struct bytes file_data;
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

void store_intern_forget_unmarked(struct store_intern *intern)
{
	row_cache_keep(&intern->frames, &intern->marks->frames);
	row_cache_keep(&intern->files, &intern->marks->files);
	row_cache_keep(&intern->stacks, &intern->marks->stacks);
	row_cache_keep(&intern->processes, &intern->marks->processes);
}

void store_intern_forget(struct store_intern *intern)
{
	row_cache_clear(&intern->frames);
	row_cache_clear(&intern->files);
	row_cache_clear(&intern->stacks);
	row_cache_clear(&intern->processes);
}

void store_intern_mark(struct store_intern *intern, struct store_marks *marks)
{
	intern->marks = marks;
}

void store_marks_clear(struct store_marks *marks)
{
	id_set_clear(&marks->stacks);
	id_set_clear(&marks->frames);
	id_set_clear(&marks->files);
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
	if (find == STATEMENT_FILE_FIND)
		return &intern->marks->files;
	return find == STATEMENT_STACK_FIND ? &intern->marks->stacks : &intern->marks->processes;
}

static void mark(struct store_intern *intern, enum store_statement find, int64_t number)
{
	struct id_set *marks = marks_of(intern, find);

	if (marks && id_set_add(marks, number, intern->tiers))
		intern->marks->is_failed = true;
}

struct store_intern *store_intern_free(struct store_intern *intern)
{
	if (!intern)
		return NULL;
	store_intern_forget(intern);
	bytes_fini(&intern->frame_data);
	bytes_fini(&intern->file_data);
	free(intern);
	return NULL;
}

static int row_heal(struct store_intern *intern, enum store_statement heal_statement,
		    int64_t number, const struct bytes *data)
{
	return store_db_change(intern->db, heal_statement, "iib", number,
			       store_sum(number, data->data, data->n), data->data, data->n);
}

/*
 * Checks whether the row that was found by the hash of `data` holds that data. Returns 0 if it
 * does; -EBADMSG if the row's checksum is wrong: the row is damaged and may be overwritten;
 * -EUCLEAN if the checksum is right but the row holds other data: the index is damaged, and the row
 * must not be changed.
 */
static int row_judge(sqlite3_stmt *row, int64_t number, const struct bytes *data)
{
	const void *found = sqlite3_column_blob(row, 2);
	size_t size = (size_t)sqlite3_column_bytes(row, 2);
	bool is_sound = sqlite3_column_int64(row, 1) == store_sum(number, found, size);

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
	int r = store_db_first(intern->db, find, &statement, "i", hash);

	if (r)
		return r;
	*number_out = sqlite3_column_int64(statement, 0);
	r = row_judge(statement, *number_out, data);
	sqlite3_reset(statement);
	return r == -EBADMSG ? row_heal(intern, find + 2, *number_out, data) : r;
}

static int row_add(struct store_intern *intern, enum store_statement find, const struct bytes *data,
		   int64_t hash, int64_t *number_out)
{
	int r = store_db_change(intern->db, find + 1, "ib", hash, data->data, data->n);

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
static int row_number(struct store_intern *intern, enum store_statement find,
		      struct row_cache *cache, const struct row_key *key, const struct bytes *data,
		      int64_t *out)
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
	row_cache_add(cache, key, *out);
	return 0;
}

static bool is_known(struct store_intern *intern, enum store_statement find,
		     const struct row_cache *cache, const struct row_key *key, int64_t *out)
{
	int64_t number = row_cache_find(cache, key);

	if (!number)
		return false;
	*out = number;
	mark(intern, find, number);
	return true;
}

static int file_number(struct store_intern *intern, const struct code_file *file, int64_t *out)
{
	struct bytes *data = &intern->file_data;
	struct row_key key = { file->hash, file->build_id_size };

	if (is_known(intern, STATEMENT_FILE_FIND, &intern->files, &key, out))
		return 0;
	data->n = 0;
	bytes_put_u64(data, file->build_id_size);
	bytes_put(data, file->build_id, file->build_id_size);
	bytes_put_u64(data, file->n_segments);
	for (size_t i = 0; i < file->n_segments; i++) {
		bytes_put_u64(data, file->segments[i].address);
		bytes_put_u64(data, file->segments[i].offset);
		bytes_put_u64(data, file->segments[i].size);
	}
	return row_number(intern, STATEMENT_FILE_FIND, &intern->files, &key, data, out);
}

static int frame_number(struct store_intern *intern, const struct frame *frame, int64_t *out)
{
	struct bytes *data = &intern->frame_data;
	struct row_key key;
	int64_t file = 0;
	int r;

	/* Also marks the file as in use, if a collection runs. */
	if (frame->code) {
		r = file_number(intern, frame->code, &file);
		if (r)
			return r;
	}
	data->n = 0;
	bytes_put_u64(data, frame->kind);
	bytes_put_u64(data, frame->file_id);
	bytes_put_u64(data, frame->file_offset);
	bytes_put_u64(data, frame->name_offset);
	bytes_put_string(data, frame->name);
	bytes_put_string(data, frame->module);
	bytes_put_i64(data, file);
	key = (struct row_key){ hash64(HASH64_SEED, data->data, data->n), data->n };
	if (is_known(intern, STATEMENT_FRAME_FIND, &intern->frames, &key, out))
		return 0;
	return row_number(intern, STATEMENT_FRAME_FIND, &intern->frames, &key, data, out);
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

int64_t store_frame_file(struct bytes_reader *in)
{
	uint64_t size;
	int64_t file;

	bytes_get_u64(in); /* kind */
	bytes_get_u64(in); /* file_id */
	bytes_get_u64(in); /* file_offset */
	bytes_get_u64(in); /* name_offset */
	for (int i = 0; i < 2; i++) {
		size = bytes_get_max(in, bytes_left(in)); /* name, then module */
		if (size)
			bytes_get(in, (size_t)size - 1);
	}
	file = bytes_get_i64(in);
	return in->is_failed ? 0 : file;
}

static int stack_number(void *userdata, struct stack *stack, int64_t *out)
{
	struct row_key key = { stack->raw_id, (uint64_t)stack->names_version << 32 |
						      (uint64_t)stack->flags << 1 |
						      stack->is_idle };
	struct store_intern *intern = userdata;
	_cleanup_(bytes_fini) struct bytes data = {};
	int64_t number = row_cache_find(&intern->stacks, &key);
	int r;

	/*
	 * If the stack is marked as in use, its frames need not be marked here: they are marked
	 * already, or will be when the collection of unused rows reads the table of stacks.
	 */
	if (number && (!intern->marks || id_set_has(&intern->marks->stacks, number))) {
		mark(intern, STATEMENT_STACK_FIND, number);
		*out = number;
		return 0;
	}
	r = stack_encode(intern, stack, &data);
	if (r)
		return r;
	if (is_known(intern, STATEMENT_STACK_FIND, &intern->stacks, &key, out))
		return 0;
	return row_number(intern, STATEMENT_STACK_FIND, &intern->stacks, &key, &data, out);
}

static int process_number(void *userdata, struct process *process, int64_t *out)
{
	_cleanup_(bytes_fini) struct bytes data = {};
	struct store_intern *intern = userdata;
	struct process_info info;
	struct row_key key;

	process_info_at(process, intern->at_ns, &info);
	bytes_put_i64(&data, info.id.pid);
	bytes_put_u64(&data, info.id.exec_gen);
	bytes_put_u64(&data, info.id.start_boot_ns);
	bytes_put_i64(&data, info.start_real_ns);
	bytes_put_u64(&data, info.is_kernel);
	bytes_put_string(&data, info.comm);
	bytes_put_string(&data, info.exe);
	bytes_put_string(&data, info.cgroup);
	bytes_put_u64(&data, info.is_folded);
	if (data.is_failed)
		return -ENOMEM;
	key = (struct row_key){ hash64(HASH64_SEED, data.data, data.n), data.n };
	if (is_known(intern, STATEMENT_PROCESS_FIND, &intern->processes, &key, out))
		return 0;
	return row_number(intern, STATEMENT_PROCESS_FIND, &intern->processes, &key, &data, out);
}

struct store_names store_intern_names(struct store_intern *intern, const struct window *window,
				      size_t tier)
{
	intern->at_ns = window_middle_ns(window);
	intern->tiers = 1U << tier;
	return (struct store_names){
		.stack_number = stack_number,
		.process_number = process_number,
		.userdata = intern,
	};
}
