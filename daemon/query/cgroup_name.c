/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/query/group_name.h"

enum { ID_DIGITS = 64, ID_SHOWN = 12 };

/* A part of a cgroup's path, between two slashes. */
struct part {
	const char *text;
	size_t n;
};

static bool part_ends_with(const struct part *part, const char *suffix)
{
	size_t n = strlen(suffix);

	return part->n > n && memcmp(part->text + part->n - n, suffix, n) == 0;
}

static bool part_starts_with(const struct part *part, const char *prefix)
{
	size_t n = strlen(prefix);

	return part->n > n && memcmp(part->text, prefix, n) == 0;
}

static bool part_is(const struct part *part, const char *text)
{
	return part->n == strlen(text) && memcmp(part->text, text, part->n) == 0;
}

/* Removes `prefix` from the beginning of the part. Returns false if it does not begin with it. */
static bool part_cut_prefix(struct part *part, const char *prefix)
{
	if (!part_starts_with(part, prefix))
		return false;
	part->text += strlen(prefix);
	part->n -= strlen(prefix);
	return true;
}

static void part_cut_suffix(struct part *part, const char *suffix)
{
	if (part_ends_with(part, suffix))
		part->n -= strlen(suffix);
}

/*
 * True if the part is the name of a container's cgroup that has the container's id of 64
 * hexadecimal digits, such as docker-ID.scope or ID alone. Leaves only the digits that are shown.
 * The cgroup of a container's monitor (libpod-conmon-ID.scope) is outside the container.
 */
static bool part_cut_id(struct part *part)
{
	size_t i;

	part_cut_suffix(part, ".scope");
	if (memmem(part->text, part->n, "conmon-", 7) || part->n < ID_DIGITS ||
	    (part->n > ID_DIGITS && part->text[part->n - ID_DIGITS - 1] != '-' &&
	     part->text[part->n - ID_DIGITS - 1] != ':'))
		return false;
	part->text += part->n - ID_DIGITS;
	for (i = 0; i < ID_DIGITS; i++)
		if (!memchr("0123456789abcdef", part->text[i], 16))
			return false;
	part->n = ID_SHOWN;
	return true;
}

/* True for the directories in which LXC has the cgroups of its containers. */
static bool is_parent_of_containers(const struct part *part)
{
	return part_is(part, "lxc") || part_is(part, "lxc.payload");
}

/*
 * True if the part is the cgroup of a container, of which `parent` is the part before. Leaves only
 * the container's name, or the beginning of its id.
 */
static bool part_cut_container(struct part *part, const struct part *parent)
{
	struct part id = *part;

	if (part_cut_id(&id)) {
		*part = id;
		return true;
	}
	if (part_cut_prefix(part, "lxc.payload.") || is_parent_of_containers(parent))
		return true;
	if (part_ends_with(part, ".service") && part_cut_prefix(part, "systemd-nspawn@")) {
		part_cut_suffix(part, ".service");
		return true;
	}
	if (part_ends_with(part, ".scope") && part_cut_prefix(part, "machine-")) {
		part_cut_suffix(part, ".scope");
		return true;
	}
	return false;
}

static bool part_cut_unit(struct part *part, const struct part *parent)
{
	return part_ends_with(part, ".service") || part_ends_with(part, ".scope");
}

/* The slice of a logged-in user is named after the user's id: user-1000.slice. */
static bool part_cut_user(struct part *part, const struct part *parent)
{
	if (!part_ends_with(part, ".slice") || !part_cut_prefix(part, "user-"))
		return false;
	part_cut_suffix(part, ".slice");
	return true;
}

/*
 * Sets *out to the innermost part of the path that `cut` accepts, and to what `cut` leaves of it.
 * Returns false if there is none.
 */
static bool innermost(const char *cgroup, bool (*cut)(struct part *part, const struct part *parent),
		      struct part *out)
{
	struct part parent = { "", 0 }, part, name;
	bool is_found = false;
	const char *at = cgroup;

	while (*at) {
		part = (struct part){ at, strcspn(at, "/") };
		name = part;
		if (part.n && cut(&name, &parent) && name.n) {
			*out = name;
			is_found = true;
		}
		if (part.n)
			parent = part;
		at += part.n + (at[part.n] == '/');
	}
	return is_found;
}

bool group_by_is_of_cgroup(enum group_by by)
{
	return by == GROUP_BY_CGROUP || by == GROUP_BY_UNIT || by == GROUP_BY_CONTAINER ||
	       by == GROUP_BY_USER;
}

void group_cgroup_name(enum group_by by, const char *cgroup,
		       char name_out[static GROUP_CGROUP_NAME_MAX])
{
	struct part part = {};
	bool is_found;

	if (!cgroup || by == GROUP_BY_CGROUP) {
		snprintf(name_out, GROUP_CGROUP_NAME_MAX, "%s", cgroup ? cgroup : "[unknown]");
		return;
	}
	is_found = innermost(cgroup,
			     by == GROUP_BY_UNIT	? part_cut_unit
			     : by == GROUP_BY_CONTAINER ? part_cut_container
							: part_cut_user,
			     &part);
	if (is_found && by == GROUP_BY_USER)
		snprintf(name_out, GROUP_CGROUP_NAME_MAX, "user %.*s", (int)part.n, part.text);
	else if (is_found)
		snprintf(name_out, GROUP_CGROUP_NAME_MAX, "%.*s", (int)part.n, part.text);
	else
		snprintf(name_out, GROUP_CGROUP_NAME_MAX, "%s",
			 by == GROUP_BY_UNIT	    ? "[no unit]"
			 : by == GROUP_BY_CONTAINER ? "[no container]"
						    : "[no login session]");
}
