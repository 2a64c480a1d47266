/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/proc_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/base.h"
#include "daemon/base/shared_text.h"

#define DELETED " (deleted)"

/*
 * Reads a number in the base `base`. The character `end` must follow the number, and is read, too.
 */
static bool take_number(const char **p, unsigned base, char end, uint64_t *out)
{
	uint64_t value = 0;
	const char *s = *p;

	for (;; s++) {
		unsigned digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			digit = (unsigned)(*s - 'a') + 10;
		else
			break;
		if (digit >= base || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (s == *p || *s != end)
		return false;
	*p = s + 1;
	*out = value;
	return true;
}

/*
 * Decodes a path of /proc/PID/maps in place. Leaves out " (deleted)" at its end, and replaces \012,
 * the only escape there, by a newline.
 */
static void path_decode(char *text, bool *is_deleted_out)
{
	size_t n = strlen(text);
	char *to = text;

	*is_deleted_out = n > strlen(DELETED) && !strcmp(text + n - strlen(DELETED), DELETED);
	if (*is_deleted_out)
		n -= strlen(DELETED);
	for (size_t i = 0; i < n;) {
		if (n - i >= 4 && !memcmp(text + i, "\\012", 4)) {
			*to++ = '\n';
			i += 4;
		} else {
			*to++ = text[i++];
		}
	}
	*to = '\0';
}

/*
 * Returns the path as a shared_text, of which the caller owns a reference: that of the mapping
 * before, `last`, if it has the same path. NULL when out of memory.
 */
static const char *path_share(const char *path, const struct proc_mapping *last)
{
	if (last && !strcmp(last->path, path))
		return shared_text_ref(last->path);
	return shared_text_new(path);
}

/* Parses what follows the flags of a line up to the inode, and moves *p behind that. */
static int place_parse(const char **p, struct proc_mapping *m)
{
	uint64_t major, minor;

	if (!take_number(p, 16, ' ', &m->pgoff) || !take_number(p, 16, ':', &major) ||
	    !take_number(p, 16, ' ', &minor))
		return -EBADMSG;
	/* A line without a path ends after the inode number; old kernels write no blank there. */
	if (!take_number(p, 10, ' ', &m->inode) && !take_number(p, 10, '\0', &m->inode))
		return -EBADMSG;
	m->dev = makedev((unsigned)major, (unsigned)minor);
	return 0;
}

/* Parses the addresses of a line, and moves *p to its flags, after which there is a blank. */
static int range_parse(const char **p, struct proc_mapping *m)
{
	if (!take_number(p, 16, '-', &m->start) || !take_number(p, 16, ' ', &m->end) ||
	    strnlen(*p, 5) < 5 || (*p)[4] != ' ' || m->start >= m->end)
		return -EBADMSG;
	return 0;
}

bool proc_maps_shared_parse(const char *line, struct proc_mapping *out)
{
	*out = (struct proc_mapping){ 0 };
	if (range_parse(&line, out) || line[3] != 's')
		return false;
	line += 5;
	return !place_parse(&line, out);
}

/*
 * Parses a line like "55f0-55f3 r-xp 00002000 fe:00 247134 /usr/bin/cat". Returns 1 if the mapping
 * is executable, 0 if not, or a negative errno. `last` is the mapping before, or NULL. Changes
 * the line.
 */
static int line_parse(char *line, const struct proc_mapping *last, struct proc_mapping *out)
{
	struct proc_mapping m = { 0 };
	const char *at = line;
	char *path;

	if (range_parse(&at, &m))
		return -EBADMSG;
	if (at[2] != 'x')
		return 0;
	at += 5;
	if (place_parse(&at, &m))
		return -EBADMSG;
	if (at[-1] == '\0')
		at--;
	path = line + (at - line) + strspn(at, " ");
	path_decode(path, &m.is_deleted);
	m.path = path_share(path, last);
	if (!m.path)
		return -ENOMEM;
	*out = m;
	return 1;
}

static int mapping_compare(const void *a, const void *b)
{
	const struct proc_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Removes one of two mappings that overlap. If a mapping changes while /proc/PID/maps is read, the
 * file may list it twice.
 */
static void drop_overlaps(struct proc_maps *m)
{
	size_t n = 0;

	qsort(m->items, m->n, sizeof(m->items[0]), mapping_compare);
	for (size_t i = 0; i < m->n; i++) {
		if (n && m->items[i].start < m->items[n - 1].end)
			shared_text_unref(m->items[i].path);
		else
			m->items[n++] = m->items[i];
	}
	m->n = n;
}

static int mappings_add(struct proc_maps *m, size_t *allocated, struct proc_mapping *item)
{
	if (m->n == *allocated) {
		size_t more = *allocated ? *allocated * 2 : 16;
		struct proc_mapping *items = reallocarray(m->items, more, sizeof(*items));

		if (!items)
			return -ENOMEM;
		m->items = items;
		*allocated = more;
	}
	m->items[m->n++] = *item;
	return 0;
}

/*
 * Adds the mapping of a line if it is executable. Returns its memory in bytes, 0 if it is not
 * executable, or a negative errno.
 */
static ssize_t line_add(struct proc_maps *m, size_t *allocated, char *line)
{
	struct proc_mapping item;
	int r = line_parse(line, m->n ? &m->items[m->n - 1] : NULL, &item);

	if (r <= 0)
		return r;
	r = mappings_add(m, allocated, &item);
	if (r < 0) {
		shared_text_unref(item.path);
		return r;
	}
	return (ssize_t)proc_mapping_bytes(m, m->n - 1);
}

int proc_maps_read(FILE *in, struct proc_maps *out)
{
	_cleanup_(proc_maps_fini) struct proc_maps m = { 0 };
	_cleanup_(freep) char *line = NULL;
	size_t line_size = 0, allocated = 0, bytes = 0, text = 0;
	ssize_t n;

	errno = 0;
	while ((n = getline(&line, &line_size, in)) > 0) {
		ssize_t r;

		text += (size_t)n;
		if (text > PROC_MAPS_TEXT_MAX) {
			m.is_truncated = true;
			break;
		}
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		r = line_add(&m, &allocated, line);
		if (r < 0)
			return (int)r;
		bytes += (size_t)r;
		if (r && bytes > PROC_MAPS_BYTES_MAX) {
			m.is_truncated = true;
			shared_text_unref(m.items[--m.n].path);
			break;
		}
	}
	if (n < 0 && !feof(in))
		return errno ? -errno : -EIO;
	if (m.n)
		drop_overlaps(&m);
	*out = m;
	m = (struct proc_maps){ 0 };
	return 0;
}

void proc_maps_fini(struct proc_maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		shared_text_unref(m->items[i].path);
	free(m->items);
	*m = (struct proc_maps){ 0 };
}

size_t proc_mapping_bytes(const struct proc_maps *m, size_t i)
{
	const char *path = m->items[i].path;

	return sizeof(m->items[i]) + (i && m->items[i - 1].path == path ? 0 : strlen(path) + 1);
}
