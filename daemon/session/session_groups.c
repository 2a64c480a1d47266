/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/host/cgroup.h"
#include "daemon/probe/probe.h"
#include "daemon/session/internal.h"
#include "proto/wire_error.h"

/*
 * The control groups that a session's filter names. BPF programs know a control group by the inode
 * number of its directory.
 */

/* A search for the cgroups of a unit. */
struct unit_search {
	const char *name;
	struct filter_cgroup found; /* the first one */
	size_t n;		    /* how many there are */
	char path[2][2048];	    /* of the first two */
};

static uint32_t path_depth(const char *path)
{
	uint32_t depth = 0;

	for (; *path; path++)
		if (*path != '/' && (path[1] == '/' || path[1] == '\0'))
			depth++;
	return depth;
}

static int cgroup_find(const char *mount, const char *path, struct filter_cgroup *out)
{
	char full[2048], procs[2112];
	struct stat st;

	snprintf(full, sizeof(full), "%s/%s", mount, path);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", full);
	if (strstr(path, "..") || access(procs, F_OK) < 0 || stat(full, &st) < 0)
		return -ENOENT;
	*out = (struct filter_cgroup){ .id = st.st_ino, .level = path_depth(path) };
	return 0;
}

/*
 * Finds the cgroups with the name of the unit below the directory `path`, which is `depth` levels
 * below the root.
 */
static void unit_search(struct unit_search *search, const char *path, uint32_t depth)
{
	DIR *dir = depth < CGROUP_DEPTH_MAX ? opendir(path) : NULL;
	struct dirent *entry;
	char below[2048];
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%.1700s/%s", path, entry->d_name);
		if (strcmp(entry->d_name, search->name) != 0) {
			unit_search(search, below, depth + 1);
			continue;
		}
		if (stat(below, &st) < 0)
			continue;
		if (!search->n)
			search->found =
				(struct filter_cgroup){ .id = st.st_ino, .level = depth + 1 };
		if (search->n < ARRAY_SIZE(search->path))
			memcpy(search->path[search->n], below, sizeof(below));
		search->n++;
	}
	if (dir)
		closedir(dir);
}

/* Finds the cgroup of the filter's unit. A session records one cgroup. */
static int unit_find(struct session *session, const char *mount, struct wire_error *error)
{
	const char *unit = session->filter.wire->unit, *paths[2];
	struct unit_search search = {};
	char name[256];

	snprintf(name, sizeof(name), "%s%s", unit, strchr(unit, '.') ? "" : ".service");
	search.name = name;
	unit_search(&search, mount, 0);
	if (!search.n)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "unit",
				      "there is no cgroup of a unit %.200s now", name);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		paths[i] = search.path[i] + (search.n > i ? strlen(mount) : 0);
	if (search.n > 1)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "unit",
				      "%zu cgroups are named %.200s, such as %.300s and %.300s: a "
				      "session records one; choose it by cgroup",
				      search.n, name, paths[0], paths[1]);
	session->cgroups[1] = search.found;
	session->cgroup_paths[1] = arena_strdup(session->arena, paths[0]);
	return session->cgroup_paths[1] ? 0 : -ENOMEM;
}

int session_find_groups(struct session *session, struct wire_error *error)
{
	const struct wire_filter *wire = session->filter.wire;
	char mount[512];

	if (!wire->cgroup && !wire->unit)
		return 0;
	if (cgroup_mount(mount, sizeof(mount)))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER,
				      wire->cgroup ? "cgroup" : "unit",
				      "this host has no unified cgroup hierarchy (cgroup2)");
	if (wire->cgroup && cgroup_find(mount, wire->cgroup, &session->cgroups[0]))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "cgroup",
				      "%.200s is no cgroup below %s", wire->cgroup, mount);
	session->cgroup_paths[0] = wire->cgroup;
	return wire->unit ? unit_find(session, mount, error) : 0;
}

/* Has the session's BPF programs record another cgroup from now on. */
static void group_set(struct session *session, size_t i, const struct filter_cgroup *group)
{
	struct filter_cgroup *used = &probe_cut(session->probe)->cgroups[i];

	session->cgroups[i] = *group;
	__atomic_store_n(&used->level, group->level, __ATOMIC_RELAXED);
	__atomic_store_n(&used->id, group->id, __ATOMIC_RELAXED);
	log_info("session %" PRIu64 " records the cgroup %s, which was made anew", session->info.id,
		 session->cgroup_paths[i]);
}

void session_follow_groups(struct session *session)
{
	struct filter_cgroup now;
	char mount[512];

	pthread_rwlock_rdlock(&session->lock);
	for (size_t i = 0; session->drain && i < FILTER_CGROUPS; i++) {
		if (session->cgroup_paths[i] && !cgroup_mount(mount, sizeof(mount)) &&
		    !cgroup_find(mount, session->cgroup_paths[i], &now) &&
		    now.id != session->cgroups[i].id)
			group_set(session, i, &now);
	}
	pthread_rwlock_unlock(&session->lock);
}
