/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/source_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "daemon/symbol/source_lines_child.h"
#include "daemon/symbol/source_lines_helper.h"

/*
 * Maximum number of child processes for one answer to a client. When a child fails while it reads a
 * file, another child is started for the remaining files.
 */
enum { RUNS_MAX = 4 };

struct code_address {
	uint64_t key[2];	   /* number of the file, and ELF virtual address in it */
	struct code_address *next; /* the next address of the same file */
	const struct source_frame *frames;
	size_t n;
	UT_hash_handle hh;
};

struct file {
	uint64_t id;
	const char *path;
	size_t number; /* how many files were added before it */
	struct code_address *first, *last;
	uint32_t n;
	int fds[2];   /* descriptors of the file itself and of its separate debug file; -1: none */
	bool is_done; /* the file was read, or it cannot be read: no further child process is
			 started for it */
	bool has_lines;
	struct file *next;
};

struct source_lines {
	struct arena *arena;
	struct source_lines_opener opener;
	struct file *files, *last_file;
	size_t n_files;
	struct code_address *addresses;
	size_t left_out;    /* number of addresses left out, because an answer has a limit */
	const char *reason; /* why a child failed while it read the file `culprit`; NULL: no
			       child failed */
	const struct file *culprit; /* the file that was being read when a child failed; NULL: no
				       child failed */
};

int source_lines_new(struct arena *arena, const struct source_lines_opener *opener,
		     struct source_lines **out)
{
	struct source_lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->arena = arena;
	lines->opener = *opener;
	*out = lines;
	return 0;
}

struct source_lines *source_lines_free(struct source_lines *lines)
{
	if (!lines)
		return NULL;
	for (struct file *file = lines->files; file; file = file->next) {
		closep(&file->fds[0]);
		closep(&file->fds[1]);
	}
	HASH_CLEAR(hh, lines->addresses);
	free(lines);
	return NULL;
}

/*
 * Finds a file by its identity and path. Files with one build-id have the same identity, but one at
 * another path may be a changed copy, which must not answer for this file.
 */
static struct file *file_find(const struct source_lines *lines, uint64_t id, const char *path)
{
	struct file *file = lines->files;

	while (file && (file->id != id || strcmp(file->path, path) != 0))
		file = file->next;
	return file;
}

static struct file *file_add(struct source_lines *lines, uint64_t id, const char *path)
{
	struct file *file = arena_alloc(lines->arena, sizeof(*file));

	if (!file)
		return NULL;
	file->id = id;
	file->path = path;
	file->number = lines->n_files++;
	file->fds[0] = file->fds[1] = -1;
	if (lines->last_file)
		lines->last_file->next = file;
	else
		lines->files = file;
	lines->last_file = file;
	return file;
}

static struct code_address *address_find(const struct source_lines *lines, const struct file *file,
					 uint64_t address)
{
	uint64_t key[2] = { file->number, address };
	struct code_address *entry;

	HASH_FIND(hh, lines->addresses, key, sizeof(key), entry);
	return entry;
}

int source_lines_add(struct source_lines *lines, uint64_t file_id, const char *path,
		     uint64_t address)
{
	struct file *file = file_find(lines, file_id, path);
	struct code_address *entry;

	if (file && address_find(lines, file, address))
		return 0;
	if (HASH_COUNT(lines->addresses) >= LINES_CHILD_ADDRESSES_MAX ||
	    (!file && lines->n_files >= LINES_CHILD_FILES_MAX)) {
		lines->left_out++;
		return 0;
	}
	if (!file)
		file = file_add(lines, file_id, path);
	entry = arena_alloc(lines->arena, sizeof(*entry));
	if (!file || !entry)
		return -ENOMEM;
	entry->key[0] = file->number;
	entry->key[1] = address;
	HASH_ADD(hh, lines->addresses, key, sizeof(entry->key), entry);
	if (!HASH_HAS(entry))
		return -ENOMEM;
	if (file->last)
		file->last->next = entry;
	else
		file->first = entry;
	file->last = entry;
	file->n++;
	return 0;
}

/* Opens all files, and marks those that cannot be opened as done. */
static void files_open(struct source_lines *lines)
{
	struct file *file;

	for (file = lines->files; file; file = file->next)
		file->is_done = lines->opener.open_file(lines->opener.userdata, file->id,
							file->path, SOURCE_LINES_FD_MIN,
							&file->fds[0], &file->fds[1]) != 0;
}

static size_t files_left(const struct source_lines *lines)
{
	struct file *file;
	size_t n = 0;

	for (file = lines->files; file; file = file->next)
		n += !file->is_done;
	return n;
}

/*
 * Makes a request to the child for the n files that are not done yet, and stores the descriptors of
 * these files in the array `fds`. The caller frees the request. NULL when out of memory.
 */
static void *request_make(const struct source_lines *lines,
			  const struct source_lines_helper *helper, size_t n, int *fds,
			  size_t *size_out)
{
	size_t files_size = n * sizeof(struct lines_child_file), i = 0;
	size_t size = sizeof(struct lines_child_head) + files_size +
		      HASH_COUNT(lines->addresses) * sizeof(uint64_t);
	char *data = calloc(1, size);
	struct lines_child_head *head = (void *)data;
	struct lines_child_file *files = (void *)(head + 1);
	uint64_t *addresses = (void *)(data + sizeof(*head) + files_size), *at = addresses;
	struct file *file;

	if (!data)
		return NULL;
	source_lines_helper_limits(helper, head);
	head->n_files = (uint32_t)n;
	for (file = lines->files; file; file = file->next) {
		if (file->is_done)
			continue;
		files[i] = (struct lines_child_file){
			.n = file->n,
			.has_file = true,
			.has_debug = file->fds[1] >= 0,
		};
		fds[2 * i] = file->fds[0];
		fds[2 * i + 1] = file->fds[1];
		i++;
		for (const struct code_address *entry = file->first; entry; entry = entry->next)
			*at++ = entry->key[1];
	}
	*size_out = (size_t)((char *)at - data);
	return data;
}

/*
 * The part of a child's reply that has not been parsed yet. All sizes in the reply are checked,
 * because a hostile file may have taken control of the child.
 */
struct reader {
	const char *at;
	size_t left;
};

static bool reader_get(struct reader *reader, void *to, size_t n)
{
	if (reader->left < n)
		return false;
	memcpy(to, reader->at, n);
	reader->at += n;
	reader->left -= n;
	return true;
}

/*
 * Copies the next n bytes of the reply as a string to the arena; *out is NULL if n is 0. False when
 * the reply has fewer than n bytes left, or when out of memory.
 */
static bool reader_text(struct reader *reader, struct arena *arena, size_t n, const char **out)
{
	*out = NULL;
	if (reader->left < n)
		return false;
	if (n) {
		*out = arena_strndup(arena, reader->at, n);
		if (!*out)
			return false;
	}
	reader->at += n;
	reader->left -= n;
	return true;
}

static bool address_read(struct source_lines *lines, struct reader *reader,
			 struct code_address *entry)
{
	struct lines_child_address head;
	struct lines_child_frame frame;
	struct source_frame *frames;
	uint32_t i;

	if (!reader_get(reader, &head, sizeof(head)) || head.frames > LINES_CHILD_DEPTH_MAX)
		return false;
	frames = arena_array(lines->arena, head.frames + 1, sizeof(*frames));
	if (!frames)
		return false;
	for (i = 0; i < head.frames; i++) {
		if (!reader_get(reader, &frame, sizeof(frame)) ||
		    !reader_text(reader, lines->arena, frame.name_size, &frames[i].name) ||
		    !reader_text(reader, lines->arena, frame.file_size, &frames[i].file))
			return false;
		frames[i].line = frame.line;
	}
	entry->frames = frames;
	entry->n = head.frames;
	return true;
}

static bool file_read(struct source_lines *lines, struct reader *reader, struct file *file)
{
	struct code_address *entry;
	uint32_t has_lines;

	if (!reader_get(reader, &has_lines, sizeof(has_lines)))
		return false;
	for (entry = file->first; entry; entry = entry->next)
		if (!address_read(lines, reader, entry))
			return false;
	file->has_lines = has_lines;
	file->is_done = true;
	return true;
}

/*
 * Parses the reply for each file that is not done yet. Returns NULL if the reply is complete, else
 * the first file whose part of the reply is missing or broken.
 */
static struct file *reply_parse(struct source_lines *lines, struct reader *reader)
{
	struct file *file;

	for (file = lines->files; file; file = file->next)
		if (!file->is_done && !file_read(lines, reader, file))
			return file;
	return NULL;
}

/*
 * Runs a child for all files that are not done yet. Returns -EAGAIN if the child failed at one of
 * them. That file is then marked as done, so that the caller can run another child for the other
 * files.
 */
static int lines_ask(struct source_lines *lines, struct source_lines_helper *helper,
		     int64_t until_ns)
{
	_cleanup_(freep) void *data = NULL, *reply = NULL;
	int fds[2 * LINES_CHILD_FILES_MAX], r;
	size_t n = files_left(lines), size = 0;
	struct source_lines_request request;
	struct file *culprit;
	struct reader reader;
	const char *reason;

	data = request_make(lines, helper, n, fds, &size);
	if (!data)
		return -ENOMEM;
	request = (struct source_lines_request){ data, size, fds, 2 * n };
	r = source_lines_helper_run(helper, &request, until_ns, &reply, &size, &reason);
	reader = (struct reader){ reply, size };
	culprit = reply_parse(lines, &reader);
	if (!culprit)
		return 0;
	lines->reason = r ? reason : "the debug information that was read is broken";
	lines->culprit = culprit;
	culprit->is_done = true;
	/* The child's reply for this file is incomplete, so do not show any frames from it. */
	for (struct code_address *entry = culprit->first; entry; entry = entry->next)
		entry->n = 0;
	return r == -ETIMEDOUT || r == -EBUSY ? 0 : -EAGAIN;
}

int source_lines_run(struct source_lines *lines, struct source_lines_helper *helper)
{
	int64_t until = source_lines_helper_deadline(helper);
	int i, r = -EAGAIN;

	files_open(lines);
	for (i = 0; i < RUNS_MAX && r == -EAGAIN && files_left(lines); i++)
		r = lines_ask(lines, helper, until);
	return r == -ENOMEM ? r : 0;
}

const struct source_frame *source_lines_find(const struct source_lines *lines, uint64_t file_id,
					     const char *path, uint64_t address, size_t *n_out)
{
	const struct file *file = file_find(lines, file_id, path);
	const struct code_address *entry = file ? address_find(lines, file, address) : NULL;

	*n_out = entry ? entry->n : 0;
	return *n_out ? entry->frames : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Makes a sentence that names the first few files that have no source lines; "" if all have source
 * lines. NULL when out of memory.
 */
static const char *files_note(const struct source_lines *lines)
{
	enum { NAMED = 4 };
	const char *names = "";
	struct file *file;
	size_t n = 0;

	for (file = lines->files; file; file = file->next)
		if (!file->has_lines && file != lines->culprit && n++ < NAMED && names)
			names = arena_printf(lines->arena, "%s%s%s", names, n > 1 ? ", " : "",
					     base_name(file->path));
	if (!n)
		return "";
	return names ? arena_printf(lines->arena,
				    "no source lines for %s%s: no debug information was found, or "
				    "the file is gone",
				    names, n > NAMED ? " and others" : "")
		     : NULL;
}

int source_lines_notes(const struct source_lines *lines, const char **notes, size_t *n_out)
{
	size_t n = 0, i;

	if (lines->reason)
		notes[n++] = arena_printf(lines->arena, "no source lines for %s: %s",
					  base_name(lines->culprit->path), lines->reason);
	notes[n] = files_note(lines);
	if (!notes[n] || notes[n][0])
		n++;
	if (lines->left_out)
		notes[n++] = arena_printf(lines->arena,
					  "no source lines for %zu frames: too many to ask at once",
					  lines->left_out);
	for (i = 0; i < n; i++)
		if (!notes[i])
			return -ENOMEM;
	*n_out = n;
	return 0;
}
