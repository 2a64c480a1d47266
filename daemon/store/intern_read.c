/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/intern_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "daemon/base/key_index.h"
#include "daemon/store/intern.h"
#include "daemon/store/reader.h"
#include "daemon/window/stack_id.h"

struct loaded_frame {
	struct frame frame;
	int64_t number;
};

/* An ELF file; NULL: its row cannot be read. */
struct loaded_file {
	struct code_file *file;
	int64_t number;
};

struct loaded_stack {
	struct stack stack; /* stack.is_partial is true as long as not all frames were read */
	int64_t number;
};

/* The function of a frame that was read for a query. */
struct known_function {
	int64_t number; /* number of the frame's row */
	struct stack_function function;
};

/* The number of slots for known functions: a frame is read again if another one took its slot. */
enum { QUERY_FUNCTIONS = 1 << 15 };

/* When a query has loaded this many stacks, those that it no longer uses are freed. */
enum { QUERY_KEPT = 8192 };

struct loaded_process {
	struct process *process;
	int64_t number;
	UT_hash_handle hh; /* links this struct into the hash table that finds it by number */
	/* links this struct into the hash table that finds it by process */
	UT_hash_handle hh_process;
};

struct store_intern_reader {
	struct store_db *db;
	struct process_table *table;
	/* by the hashes of their numbers, see number_hash() */
	struct key_index frames;
	struct key_index files;
	struct key_index stacks;
	struct loaded_process *processes;
	struct loaded_process *numbers;
	/* number of frames of each stack that a query loads, beginning with the leaf */
	size_t query_frames;
	bool skips_frames;		  /* see store_intern_reader_skip_frames() */
	bool with_functions;		  /* the functions_id of each stack is wanted */
	struct known_function *functions; /* QUERY_FUNCTIONS slots; NULL: not needed so far */
	/* stacks_sweep() looks for unused stacks when this many stacks are loaded */
	size_t sweep_at;
	uint64_t *damaged;
};

static uint64_t number_hash(int64_t number)
{
	return key_index_hash(&number, sizeof(number));
}

int store_intern_reader_new(struct store_db *db, uint64_t *damaged,
			    struct store_intern_reader **out)
{
	struct store_intern_reader *interned = calloc(1, sizeof(*interned));
	int r;

	if (!interned)
		return -ENOMEM;
	interned->db = db;
	interned->damaged = damaged;
	r = process_table_new_stored(&interned->table);
	if (r) {
		store_intern_reader_free(interned);
		return r;
	}
	*out = interned;
	return 0;
}

static void frame_fini(struct frame *frame)
{
	free(frame->name);
	free(frame->module);
	code_file_unref(frame->code);
}

static void frame_free(struct loaded_frame *frame)
{
	frame_fini(&frame->frame);
	free(frame);
}

static void file_free(struct loaded_file *file)
{
	code_file_unref(file->file);
	free(file);
}

static void stack_free(struct loaded_stack *stack)
{
	free(stack->stack.frames);
	free(stack);
}

struct store_intern_reader *store_intern_reader_free(struct store_intern_reader *interned)
{
	struct loaded_process *process, *next_process;
	struct loaded_frame *frame;
	struct loaded_stack *stack;
	struct loaded_file *file;
	size_t at;

	if (!interned)
		return NULL;
	for (at = 0; (stack = key_index_next(&interned->stacks, &at));)
		stack_free(stack);
	for (at = 0; (frame = key_index_next(&interned->frames, &at));)
		frame_free(frame);
	for (at = 0; (file = key_index_next(&interned->files, &at));)
		file_free(file);
	key_index_fini(&interned->stacks);
	key_index_fini(&interned->frames);
	key_index_fini(&interned->files);
	HASH_ITER (hh, interned->processes, process, next_process) {
		HASH_DELETE(hh_process, interned->numbers, process);
		HASH_DEL(interned->processes, process);
		process_unref(process->process);
		free(process);
	}
	free(interned->functions);
	process_table_free(interned->table);
	free(interned);
	return NULL;
}

/*
 * Reads the row with this number. Returns 0 and a reader of its bytes in *out, which is valid until
 * *statement_out is reset; -EBADMSG if the row is missing or damaged; or another errno.
 */
static int row_get(struct store_intern_reader *interned, enum store_statement which, int64_t number,
		   sqlite3_stmt **statement_out, struct bytes_reader *out)
{
	sqlite3_stmt *statement;
	const uint8_t *data;
	size_t size;
	int r = store_db_first(interned->db, which, &statement, "i", number);

	if (r)
		return r == -ENOENT ? -EBADMSG : r;
	data = sqlite3_column_blob(statement, 0);
	size = (size_t)sqlite3_column_bytes(statement, 0);
	if (!data || sqlite3_column_int64(statement, 1) != store_sum(number, data, size)) {
		sqlite3_reset(statement);
		return -EBADMSG;
	}
	*statement_out = statement;
	*out = (struct bytes_reader){ .at = data, .end = data + size };
	return 0;
}

static int file_decode(struct bytes_reader *in, struct code_file **out)
{
	size_t size = (size_t)bytes_get_max(in, CODE_BUILD_ID_MAX), n, i;
	const uint8_t *build_id = bytes_get(in, size);
	struct code_segment segments[CODE_SEGMENTS_MAX];

	n = (size_t)bytes_get_max(in, CODE_SEGMENTS_MAX);
	for (i = 0; i < n; i++) {
		segments[i].address = bytes_get_u64(in);
		segments[i].offset = bytes_get_u64(in);
		segments[i].size = bytes_get_u64(in);
	}
	if (in->is_failed || !size)
		return -EBADMSG;
	*out = code_file_new(build_id, size, segments, n);
	return *out ? 0 : -ENOMEM;
}

/*
 * Returns the file with this row number, borrowed. NULL if it cannot be read, which is counted, or
 * when out of memory.
 */
static struct code_file *file_of(struct store_intern_reader *interned, int64_t number)
{
	uint64_t hash = number_hash(number);
	struct loaded_file *file = key_index_find(&interned->files, NULL, hash);
	sqlite3_stmt *statement;
	struct bytes_reader in;
	int r;

	if (file)
		return file->file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->number = number;
	r = row_get(interned, STATEMENT_FILE_GET, number, &statement, &in);
	if (!r) {
		r = file_decode(&in, &file->file);
		sqlite3_reset(statement);
	}
	*interned->damaged += r && r != -ENOMEM;
	if (key_index_add(&interned->files, file, hash)) {
		file_free(file);
		return NULL;
	}
	return file->file;
}

/* Frees the files that are in no loaded frame. Does nothing when out of memory. */
static void files_sweep(struct store_intern_reader *interned)
{
	struct key_index kept = {};
	struct loaded_file *file;
	size_t at = 0;

	if (key_index_reserve(&kept, interned->files.n))
		return;
	while ((file = key_index_next(&interned->files, &at))) {
		if (file->file && file->file->refs > 1)
			key_index_add(&kept, file, number_hash(file->number));
		else
			file_free(file);
	}
	key_index_fini(&interned->files);
	interned->files = kept;
}

/* Decodes a frame. Sets *file_out to the row number of its file; 0 if it has none. */
static int frame_decode(struct bytes_reader *in, struct frame *frame, int64_t *file_out)
{
	frame->kind = (enum frame_kind)bytes_get_max(in, FRAME_PSEUDO);
	frame->file_id = bytes_get_u64(in);
	frame->file_offset = bytes_get_u64(in);
	frame->name_offset = bytes_get_u64(in);
	frame->name = bytes_get_string(in);
	frame->module = bytes_get_string(in);
	*file_out = bytes_get_i64(in);
	return bytes_error(in);
}

/*
 * Reads a frame into *frame. A frame that cannot be read becomes the pseudo frame "[frame lost on
 * disk]".
 */
static int frame_read(struct store_intern_reader *interned, int64_t number, struct frame *frame)
{
	sqlite3_stmt *statement;
	struct bytes_reader in;
	int64_t file = 0;
	int r = row_get(interned, STATEMENT_FRAME_GET, number, &statement, &in);

	if (!r) {
		r = frame_decode(&in, frame, &file);
		sqlite3_reset(statement);
	}
	if (!r && file)
		frame->code = code_file_ref(file_of(interned, file));
	if (!r || r == -ENOMEM)
		return r;
	(*interned->damaged)++;
	frame_fini(frame);
	*frame = (struct frame){ .kind = FRAME_PSEUDO, .name = strdup("[frame lost on disk]") };
	return frame->name ? 0 : -ENOMEM;
}

static struct frame *frame_of(struct store_intern_reader *interned, int64_t number)
{
	uint64_t hash = number_hash(number);
	struct loaded_frame *frame = key_index_find(&interned->frames, NULL, hash);

	if (frame)
		return &frame->frame;
	frame = calloc(1, sizeof(*frame));
	if (!frame)
		return NULL;
	frame->number = number;
	if (frame_read(interned, number, &frame->frame) ||
	    key_index_add(&interned->frames, frame, hash)) {
		frame_free(frame);
		return NULL;
	}
	return &frame->frame;
}

/* Decodes the part of a stack's row that precedes the row numbers of its frames. */
static int stack_head(struct bytes_reader *in, struct stack *stack)
{
	stack->flags = (unsigned int)bytes_get_max(in, UINT32_MAX);
	stack->is_idle = bytes_get_max(in, 1) != 0;
	stack->id = bytes_get_u64(in);
	stack->raw_id = stack->place_id = bytes_get_u64(in);
	stack->n_frames = (size_t)bytes_get_max(in, bytes_left(in));
	return bytes_error(in);
}

/*
 * Decodes a stack without loading its frames. Sets *numbers_out to an array of the frames' row
 * numbers, which the caller frees.
 */
static int stack_decode(struct bytes_reader *in, struct stack *stack, int64_t **numbers_out)
{
	uint64_t last = 0;
	size_t i;

	if (stack_head(in, stack))
		return -EBADMSG;
	*numbers_out = calloc(stack->n_frames + 1, sizeof(**numbers_out));
	if (!*numbers_out)
		return -ENOMEM;
	for (i = 0; i < stack->n_frames; i++) {
		last += (uint64_t)bytes_get_i64(in);
		(*numbers_out)[i] = (int64_t)last;
	}
	return bytes_error(in);
}

/*
 * Makes *stack the substitute for a stack that cannot be read: it has one pseudo frame and an id
 * that no other stack has.
 */
static int stack_lost(struct store_intern_reader *interned, int64_t number, struct stack *stack)
{
	(*interned->damaged)++;
	free(stack->frames);
	*stack = (struct stack){ .refs = stack->refs, .flags = STACK_IS_LOST, .n_frames = 1 };
	stack->id = stack->raw_id = stack->place_id = (uint64_t)number << 32 | UINT32_MAX;
	stack->functions_id = stack->id;
	stack->frames = calloc(1, sizeof(*stack->frames));
	if (!stack->frames)
		return -ENOMEM;
	stack->frames[0] = frame_of(interned, INT64_MIN);
	return stack->frames[0] ? 0 : -ENOMEM;
}

/*
 * Loads the first n frames of the stack, beginning with the leaf. numbers[] has their row numbers.
 */
static int stack_frames(struct store_intern_reader *interned, struct stack *stack,
			const int64_t *numbers, size_t n)
{
	size_t i;

	free(stack->frames);
	stack->n_raw = 0;
	stack->frames = calloc(n + 1, sizeof(*stack->frames));
	if (!stack->frames)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		stack->frames[i] = frame_of(interned, numbers[i]);
		if (!stack->frames[i])
			return -ENOMEM;
	}
	stack->is_partial = n < stack->n_frames;
	stack->is_resolved = !stack->is_partial;
	stack->n_raw = stack->is_partial ? n : 0;
	if (stack->is_partial)
		return 0;
	stack->functions_id = stack_functions_id_of(stack->frames, stack->n_frames);
	return 0;
}

/* Sets *out to the function of a frame. Reads the frame unless its slot still has the function. */
static int function_get(struct store_intern_reader *interned, int64_t number,
			struct stack_function *out)
{
	struct known_function *known;
	struct frame frame = {};
	int r;

	if (!interned->functions)
		interned->functions = calloc(QUERY_FUNCTIONS, sizeof(*interned->functions));
	if (!interned->functions)
		return -ENOMEM;
	known = &interned->functions[number_hash(number) % QUERY_FUNCTIONS];
	if (known->number != number || !number) {
		r = frame_read(interned, number, &frame);
		if (r)
			return r;
		known->number = number;
		known->function = stack_function_of(&frame);
		frame_fini(&frame);
	}
	*out = known->function;
	return 0;
}

/*
 * Sets the functions_id of a stack without loading its frames: a query that groups stacks by their
 * functions shows only few of them. numbers[] has the row numbers of the frames.
 */
static int stack_functions_read(struct store_intern_reader *interned, struct stack *stack,
				const int64_t *numbers)
{
	uint64_t state = stack_functions_begin();
	struct stack_function function;
	size_t i;
	int r;

	for (i = 0; i < stack->n_frames; i++) {
		r = function_get(interned, numbers[i], &function);
		if (r)
			return r;
		state = stack_functions_add(state, &function);
	}
	stack->functions_id = stack_functions_end(state);
	return 0;
}

/* Reads the stack for stack_read(), with an error if the stack cannot be read. */
static int stack_load(struct store_intern_reader *interned, int64_t number, size_t max_frames,
		      bool with_functions, struct stack *stack)
{
	bool with_numbers = max_frames || with_functions;
	_cleanup_(freep) int64_t *numbers = NULL;
	sqlite3_stmt *statement;
	struct bytes_reader in;
	int r = row_get(interned, STATEMENT_STACK_GET, number, &statement, &in);

	if (r)
		return r;
	r = with_numbers ? stack_decode(&in, stack, &numbers) : stack_head(&in, stack);
	stack->is_partial = true;
	sqlite3_reset(statement);
	if (r)
		return r;
	if (max_frames)
		return stack_frames(interned, stack, numbers,
				    stack->n_frames < max_frames ? stack->n_frames : max_frames);
	return with_functions ? stack_functions_read(interned, stack, numbers) : 0;
}

/*
 * Reads a stack and at most max_frames of its frames. If max_frames is 0, the stack still has its
 * ids, which is enough to compare it with other stacks; but functions_id only if with_functions is
 * true.
 */
static int stack_read(struct store_intern_reader *interned, int64_t number, size_t max_frames,
		      bool with_functions, struct stack *stack)
{
	int r = stack_load(interned, number, max_frames, with_functions, stack);

	if (!r || r == -ENOMEM)
		return r;
	r = stack_lost(interned, number, stack);
	stack->is_resolved = true;
	return r;
}

static struct stack *stack_get(struct store_intern_reader *interned, int64_t number,
			       size_t max_frames, bool with_functions)
{
	uint64_t hash = number_hash(number);
	struct loaded_stack *stack = key_index_find(&interned->stacks, NULL, hash);

	if (stack && with_functions && stack->stack.is_partial && !stack->stack.functions_id &&
	    stack_read(interned, number, max_frames, true, &stack->stack))
		return NULL;
	if (stack)
		return &stack->stack;
	stack = calloc(1, sizeof(*stack));
	if (!stack)
		return NULL;
	stack->number = number;
	stack->stack.refs = 1;
	if (stack_read(interned, number, max_frames, with_functions, &stack->stack) ||
	    key_index_add(&interned->stacks, stack, hash)) {
		stack_free(stack);
		return NULL;
	}
	return &stack->stack;
}

static struct stack *stack_of(void *userdata, int64_t number)
{
	struct store_intern_reader *interned = userdata;

	return stack_get(interned, number, interned->skips_frames ? 0 : SIZE_MAX,
			 interned->with_functions);
}

void store_intern_reader_skip_frames(struct store_intern_reader *interned)
{
	interned->skips_frames = true;
}

/* Frees the frames that are in no loaded stack. Does nothing when out of memory. */
static void frames_sweep(struct store_intern_reader *interned)
{
	struct key_index kept = {};
	struct loaded_stack *stack;
	struct loaded_frame *frame;
	size_t i, n, at;

	if (key_index_reserve(&kept, interned->frames.n))
		return;
	for (at = 0; (frame = key_index_next(&interned->frames, &at));)
		frame->frame.refs = 0;
	for (at = 0; (stack = key_index_next(&interned->stacks, &at));) {
		n = stack->stack.is_partial ? stack->stack.n_raw : stack->stack.n_frames;
		for (i = 0; i < n; i++)
			stack->stack.frames[i]->refs = 1;
	}
	for (at = 0; (frame = key_index_next(&interned->frames, &at));) {
		if (frame->frame.refs)
			key_index_add(&kept, frame, number_hash(frame->number));
		else
			frame_free(frame);
	}
	key_index_fini(&interned->frames);
	interned->frames = kept;
	files_sweep(interned);
}

/*
 * Frees the stacks to which neither a window nor the caller of the query refers. Does nothing
 * before the number of stacks has reached sweep_at: twice the number that the previous sweep left,
 * plus QUERY_KEPT. Does nothing when out of memory, either.
 */
static void stacks_sweep(struct store_intern_reader *interned)
{
	struct key_index kept = {};
	struct loaded_stack *stack;
	size_t at = 0;

	if (interned->stacks.n < interned->sweep_at || key_index_reserve(&kept, interned->stacks.n))
		return;
	while ((stack = key_index_next(&interned->stacks, &at))) {
		if (stack->stack.refs > 1)
			key_index_add(&kept, stack, number_hash(stack->number));
		else
			stack_free(stack);
	}
	key_index_fini(&interned->stacks);
	interned->stacks = kept;
	interned->sweep_at = 2 * kept.n + QUERY_KEPT;
	frames_sweep(interned);
}

/* Returns a stack with as many frames as the query wants. The caller owns the reference. */
static struct stack *stack_of_query(void *userdata, int64_t number)
{
	struct store_intern_reader *interned = userdata;

	return stack_ref(
		stack_get(interned, number, interned->query_frames, interned->with_functions));
}

int store_intern_reader_fill(struct store_intern_reader *interned, struct stack *stack)
{
	struct loaded_stack *loaded = (struct loaded_stack *)stack;

	if (!stack->is_partial)
		return 0;
	return stack_read(interned, loaded->number, SIZE_MAX, false, stack);
}

static int process_decode(struct bytes_reader *in, struct process_info *info, char **comm,
			  char **exe, char **cgroup)
{
	info->id.pid = (int32_t)bytes_get_i64(in);
	info->id.exec_gen = (uint32_t)bytes_get_max(in, UINT32_MAX);
	info->id.start_boot_ns = bytes_get_u64(in);
	info->start_real_ns = bytes_get_i64(in);
	info->is_kernel = bytes_get_max(in, 1) != 0;
	*comm = bytes_get_string(in);
	info->exe = *exe = bytes_get_string(in);
	info->cgroup = *cgroup = bytes_get_string(in);
	info->is_folded = bytes_get_max(in, 1) != 0;
	if (in->is_failed)
		return bytes_error(in);
	if (*comm)
		memcpy(info->comm, *comm, strnlen(*comm, sizeof(info->comm) - 1));
	return 0;
}

/* Reads a process. One that cannot be read is named [lost on disk] and has pid 0. */
static struct process *process_read(struct store_intern_reader *interned, int64_t number)
{
	_cleanup_(freep) char *comm = NULL, *exe = NULL, *cgroup = NULL;
	struct process_info info = {};
	sqlite3_stmt *statement;
	struct bytes_reader in;
	int r = row_get(interned, STATEMENT_PROCESS_GET, number, &statement, &in);

	if (!r) {
		r = process_decode(&in, &info, &comm, &exe, &cgroup);
		sqlite3_reset(statement);
	}
	if (r && r != -ENOMEM) {
		(*interned->damaged)++;
		info = (struct process_info){ .comm = "[lost on disk]" };
	}
	return r == -ENOMEM ? NULL : process_table_add_stored(interned->table, &info);
}

static struct process *process_of(void *userdata, int64_t number)
{
	struct store_intern_reader *interned = userdata;
	struct loaded_process *process;

	HASH_FIND(hh, interned->processes, &number, sizeof(number), process);
	if (process)
		return process->process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->number = number;
	process->process = process_read(interned, number);
	if (!process->process) {
		free(process);
		return NULL;
	}
	HASH_ADD(hh, interned->processes, number, sizeof(process->number), process);
	if (HASH_HAS(process))
		HASH_ADD(hh_process, interned->numbers, process, sizeof(process->process), process);
	if (!HASH_HAS(process) || !process->hh_process.tbl) {
		if (HASH_HAS(process))
			HASH_DEL(interned->processes, process);
		process_unref(process->process);
		free(process);
		return NULL;
	}
	return process->process;
}

static int stack_number(void *userdata, struct stack *stack, int64_t *out)
{
	*out = ((const struct loaded_stack *)stack)->number;
	return 0;
}

static int process_number(void *userdata, struct process *process, int64_t *out)
{
	struct store_intern_reader *interned = userdata;
	struct loaded_process *known;

	HASH_FIND(hh_process, interned->numbers, &process, sizeof(process), known);
	if (!known)
		return -ENOENT;
	*out = known->number;
	return 0;
}

struct store_names store_intern_reader_names(struct store_intern_reader *interned,
					     bool with_functions)
{
	interned->with_functions = with_functions;
	return (struct store_names){
		.stack_number = stack_number,
		.process_number = process_number,
		.stack = stack_of,
		.process = process_of,
		.is_lending = true,
		.userdata = interned,
	};
}

struct store_names store_intern_reader_query_names(struct store_intern_reader *interned,
						   const struct store_query *query)
{
	stacks_sweep(interned);
	interned->query_frames = query->max_frames;
	interned->with_functions = query->with_functions;
	return (struct store_names){
		.stack = stack_of_query,
		.is_query = true,
		.userdata = interned,
	};
}

struct process *store_intern_reader_process(struct store_intern_reader *interned, int64_t number)
{
	return process_of(interned, number);
}
