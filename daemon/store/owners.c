/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "common/hash_table.h"

/* Bits in the entry of a process. */
enum { OWNER_IS_KERNEL = 1, OWNER_IS_FOLDED = 2, OWNER_BITS = 3 };

/*
 * The strings of the section that is being encoded. Each string is written only once, in the order
 * in which the strings were first used.
 */
struct texts {
	const char **v;
	size_t n, capacity;
	bool is_failed;
};

/* Returns 1 plus the index of the text, which is added if it is new; 0 for NULL. */
static size_t text_place(struct texts *texts, const char *text)
{
	size_t i;

	if (!text)
		return 0;
	/*
	 * Search backwards: a window has few different strings, and the next process often has the
	 * string that was added last.
	 */
	for (i = texts->n; i-- > 0;)
		if (strcmp(texts->v[i], text) == 0)
			return i + 1;
	if (array_reserve(texts->v, texts->capacity, texts->n + 1)) {
		texts->is_failed = true;
		return 0;
	}
	texts->v[texts->n++] = text;
	return texts->n;
}

static void owner_encode(const struct process_info *info, uint64_t start, int32_t last_pid,
			 struct texts *texts, struct bytes *out)
{
	char comm[COMM_LEN + 1] = "";

	memcpy(comm, info->comm, COMM_LEN);
	bytes_put_i64(out, (int64_t)info->id.pid - last_pid);
	bytes_put_i64(out, (int64_t)(info->id.start_boot_ns - start));
	bytes_put_string(out, comm);
	bytes_put_u64(out, text_place(texts, info->cgroup));
	bytes_put_u64(out, (info->is_kernel ? OWNER_IS_KERNEL : 0) |
				   (info->is_folded ? OWNER_IS_FOLDED : 0));
}

void store_owners_encode(const struct store_table *processes, const struct window *window,
			 struct bytes *out)
{
	_cleanup_(bytes_fini) struct bytes owners = {};
	struct texts texts = {};
	struct process_info info;
	int32_t last_pid = 0;
	size_t i, n = 0;

	/*
	 * The processes are in the table in the order in which window->images first refers to them.
	 */
	for (i = 0; i < window->n_images && n < processes->n; i++) {
		if (window->images[i].process != processes->items[n])
			continue;
		process_info_at(processes->items[n++], window_middle_ns(window), &info);
		owner_encode(&info, window->images[i].start_boot_ns, last_pid, &texts, &owners);
		last_pid = info.id.pid;
	}
	bytes_put_u64(out, texts.n);
	for (i = 0; i < texts.n; i++)
		bytes_put_string(out, texts.v[i]);
	bytes_put(out, owners.data, owners.n);
	out->is_failed |= owners.is_failed || texts.is_failed;
	free(texts.v);
}

int store_owners_number(struct bytes_reader *in, struct window *window)
{
	uint64_t n = bytes_get_max(in, bytes_left(in)), last = 0;
	size_t i;

	if (in->is_failed || window->owners)
		return -EBADMSG;
	window->owners = calloc((size_t)n + 1, sizeof(*window->owners));
	if (!window->owners)
		return -ENOMEM;
	window->n_owners = (size_t)n;
	for (i = 0; i < n; i++) {
		last += (uint64_t)bytes_get_i64(in);
		window->owners[i].number = (int64_t)last;
	}
	return bytes_error(in);
}

static int texts_decode(struct bytes_reader *in, struct window *window)
{
	uint64_t n = bytes_get_max(in, bytes_left(in));

	if (in->is_failed || window->owner_texts)
		return -EBADMSG;
	window->owner_texts = calloc((size_t)n + 1, sizeof(char *));
	if (!window->owner_texts)
		return -ENOMEM;
	for (; window->n_owner_texts < n && !in->is_failed; window->n_owner_texts++)
		window->owner_texts[window->n_owner_texts] = bytes_get_string(in);
	return bytes_error(in);
}

static void comm_copy(struct bytes_reader *in, char *comm)
{
	uint64_t n = bytes_get_max(in, COMM_LEN);
	const uint8_t *at = n ? bytes_get(in, (size_t)n - 1) : NULL;

	if (at)
		memcpy(comm, at, (size_t)n - 1);
}

int store_owners_decode(struct bytes_reader *in, struct window *window)
{
	int64_t pid = 0;
	size_t i, place;
	uint64_t bits;
	int r = texts_decode(in, window);

	for (i = 0; !r && i < window->n_owners; i++) {
		struct window_owner *owner = &window->owners[i];

		pid = (int64_t)((uint64_t)pid + (uint64_t)bytes_get_i64(in));
		in->is_failed |= pid != (int32_t)pid;
		owner->id.pid = (int32_t)pid;
		owner->id.start_boot_ns = (uint64_t)bytes_get_i64(in);
		comm_copy(in, owner->comm);
		place = (size_t)bytes_get_max(in, window->n_owner_texts);
		owner->cgroup = place ? window->owner_texts[place - 1] : NULL;
		bits = bytes_get_max(in, OWNER_BITS);
		owner->is_kernel = bits & OWNER_IS_KERNEL;
		owner->is_folded = bits & OWNER_IS_FOLDED;
		r = bytes_error(in);
	}
	return r;
}

void store_owners_settle(struct window *window)
{
	size_t i;

	/*
	 * A window_owner does not use id.exec_gen. Until the end of this function, this member
	 * holds an index instead: that of the process's first thread in window->images. The loop
	 * runs backwards, so that the first thread is stored last.
	 */
	for (i = window->n_images; i-- > 0;)
		window->owners[window->images[i].owner].id.exec_gen = (uint32_t)i;
	for (i = 0; i < window->n_owners; i++) {
		struct window_owner *owner = &window->owners[i];

		if (owner->id.exec_gen < window->n_images &&
		    window->images[owner->id.exec_gen].owner == i)
			owner->id.start_boot_ns += window->images[owner->id.exec_gen].start_boot_ns;
		owner->id.exec_gen = 0;
	}
}
