/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "common/base.h"
#include "daemon/config/ini.h"
#include "daemon/config/keys.h"
#include "daemon/config/value.h"

/* The maximum number of bytes of a name or a value that an error message quotes. */
#define QUOTE_MAX 48

/*
 * Says where the value of one key was set: in a file, whose path is `path`; by option -o
 * (is_override); or nowhere if it is the default. `path` is NULL unless a file set the value.
 */
struct config_origin {
	char *path;
	unsigned int line;
	bool is_override;
};

static int fail_memory(struct config_error *error)
{
	snprintf(error->text, sizeof(error->text), "out of memory");
	return -ENOMEM;
}

/*
 * Copies `text` for use in a message: truncates the copy, and replaces bytes that control a
 * terminal.
 */
static void quote(const char *text, char out[static QUOTE_MAX + 4])
{
	size_t i;

	for (i = 0; text[i] && i < QUOTE_MAX; i++)
		out[i] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
	strcpy(out + i, text[i] ? "..." : "");
}

/*
 * One assignment of a value to a key. `path` and `line` say where it is in a file; `path` is NULL
 * if the assignment is from an option -o.
 */
struct assignment {
	const char *path;
	unsigned int line;
	const char *section;
	const char *key;
	const char *value;
};

static int fail_assignment(const struct assignment *a, const char *why, bool show_value,
			   struct config_error *error)
{
	char section[QUOTE_MAX + 4], key[QUOTE_MAX + 4], value[QUOTE_MAX + 4];

	quote(a->section, section);
	quote(a->key, key);
	quote(a->value, value);
	if (!show_value)
		value[0] = '\0';
	if (a->path)
		snprintf(error->text, sizeof(error->text), "%.128s:%u: [%s] %s%s%s: %s", a->path,
			 a->line, section, key, show_value ? " = " : "", value, why);
	else
		snprintf(error->text, sizeof(error->text), "-o %s.%s%s%s: %s", section, key,
			 show_value ? "=" : "", value, why);
	return -EINVAL;
}

static int origin_set(struct config_origin *origin, const struct assignment *a)
{
	char *path = a->path ? strdup(a->path) : NULL;

	if (a->path && !path)
		return -ENOMEM;
	free(origin->path);
	*origin = (struct config_origin){ path, a->line, !a->path };
	return 0;
}

static int config_assign(struct config *config, const struct assignment *a,
			 struct config_error *error)
{
	int i = config_key_find(a->section, a->key), r;
	char why[256];

	if (i < 0) {
		config_key_explain(a->section, a->key, why, sizeof(why));
		return fail_assignment(a, why, false, error);
	}
	r = config_value_parse(&config_keys[i], a->value, config, why, sizeof(why));
	if (r == -EINVAL)
		return fail_assignment(a, why, true, error);
	if (r < 0 || origin_set(&config->origins[i], a) < 0)
		return fail_memory(error);
	return 0;
}

static int on_file_assignment(void *user, const char *path, unsigned int line, const char *section,
			      const char *key, const char *value, struct config_error *error)
{
	const struct assignment a = { path, line, section, key, value };

	return config_assign(user, &a, error);
}

/*
 * Applies an option "section.key=value". Splits it at the last dot before '=', because a section
 * may have dots in its name and a key has none.
 */
static int assign_override(struct config *config, const char *text, struct config_error *error)
{
	_cleanup_(freep) char *copy = strdup(text);
	struct assignment a = { .section = copy };
	char *equals, *dot, shown[QUOTE_MAX + 4];

	if (!copy)
		return fail_memory(error);
	equals = strchr(copy, '=');
	if (equals)
		*equals = '\0';
	dot = strrchr(copy, '.');
	if (!equals || !dot || dot == copy || !dot[1]) {
		quote(text, shown);
		snprintf(error->text, sizeof(error->text),
			 "-o %s: must be section.key=value, like window.length=5s", shown);
		return -EINVAL;
	}
	*dot = '\0';
	a.key = dot + 1;
	a.value = equals + 1;
	return config_assign(config, &a, error);
}

static int is_conf(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/*
 * Compares the names of two files byte by byte, so that their order does not depend on the locale.
 */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dropin(struct config *config, const char *dir, const char *name,
		       struct config_error *error)
{
	_cleanup_(freep) char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return fail_memory(error);
	}
	return config_file_read(path, on_file_assignment, config, error);
}

static int load_dir(struct config *config, const char *dir, struct config_error *error)
{
	struct dirent **entries;
	int n, r = 0;

	if (!dir)
		return 0;
	n = scandir(dir, &entries, is_conf, by_name);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		r = -errno;
		snprintf(error->text, sizeof(error->text), "%.256s: %s", dir, strerror(errno));
		return r;
	}
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = load_dropin(config, dir, entries[i]->d_name, error);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int load_file(struct config *config, const struct config_paths *paths,
		     struct config_error *error)
{
	int r = paths->file ? config_file_read(paths->file, on_file_assignment, config, error) : 0;

	if (r != -ENOENT || paths->is_file_needed)
		return r;
	error->text[0] = '\0';
	return 0;
}

static int load_files(struct config *config, const struct config_paths *paths,
		      struct config_error *error)
{
	int r = load_dir(config, paths->vendor_dir, error);

	if (r < 0)
		return r;
	r = load_file(config, paths, error);
	if (r < 0)
		return r;
	return load_dir(config, paths->dropin_dir, error);
}

/* Writes "FILE:LINE", "-o" or "default" to `text`. */
static void origin_print(const struct config_origin *origin, char *text, size_t size)
{
	if (origin->path)
		snprintf(text, size, "%s:%u", origin->path, origin->line);
	else
		snprintf(text, size, "%s", origin->is_override ? "-o" : "default");
}

/*
 * `shorter` and `longer` are names of settings in the section [window]. Returns -EINVAL if the
 * first has a greater value than the second. The error message names both settings and the places
 * where they were set.
 */
static int check_order(const struct config *config, const char *shorter, const char *longer,
		       int64_t shorter_ns, int64_t longer_ns, struct config_error *error)
{
	char from_a[128], from_b[128];

	if (shorter_ns <= longer_ns)
		return 0;
	origin_print(&config->origins[config_key_find("window", shorter)], from_a, sizeof(from_a));
	origin_print(&config->origins[config_key_find("window", longer)], from_b, sizeof(from_b));
	snprintf(error->text, sizeof(error->text),
		 "%s: [window] %s = %" PRId64 "ms: must not be longer than %s = %" PRId64 "ms (%s)",
		 from_a, shorter, shorter_ns / NS_PER_MS, longer, longer_ns / NS_PER_MS, from_b);
	return -EINVAL;
}

static int check_window_lengths(const struct config *config, struct config_error *error)
{
	int r = check_order(config, "min_length", "length", config->window_min_length_ns,
			    config->window_length_ns, error);

	if (r < 0)
		return r;
	return check_order(config, "length", "keep", config->window_length_ns,
			   config->window_keep_ns, error);
}

static int load_defaults(struct config **config_out, struct config_error *error)
{
	_cleanup_(config_freep) struct config *config = calloc(1, sizeof(*config));
	char why[256];

	if (!config)
		return fail_memory(error);
	config->origins = calloc(config_n_keys, sizeof(*config->origins));
	if (!config->origins)
		return fail_memory(error);
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		int r = config_value_parse(key, key->fallback, config, why, sizeof(why));

		if (r < 0) {
			snprintf(error->text, sizeof(error->text), "default of [%s] %s: %s",
				 key->section, key->key, r == -EINVAL ? why : strerror(-r));
			return r;
		}
	}
	*config_out = TAKE(config);
	return 0;
}

int config_load_from(const struct config_paths *paths, char *const *overrides, size_t n_overrides,
		     struct config **config_out, struct config_error *error)
{
	_cleanup_(config_freep) struct config *config = NULL;
	int r = load_defaults(&config, error);

	if (r < 0)
		return r;
	r = load_files(config, paths, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_overrides; i++) {
		r = assign_override(config, overrides[i], error);
		if (r < 0)
			return r;
	}
	r = check_window_lengths(config, error);
	if (r < 0)
		return r;
	*config_out = TAKE(config);
	return 0;
}

int config_load(const char *path, char *const *overrides, size_t n_overrides,
		struct config **config_out, struct config_error *error)
{
	struct config_paths paths = {
		.vendor_dir = STACKD_VENDOR_CONFIG_DIR,
		.file = path ? path : STACKD_CONFIG_FILE,
		.dropin_dir = STACKD_CONFIG_DIR,
		.is_file_needed = path != NULL,
	};
	_cleanup_(freep) char *dropin_dir = NULL;

	if (path) {
		if (asprintf(&dropin_dir, "%s.d", path) < 0) {
			dropin_dir = NULL;
			return fail_memory(error);
		}
		paths.dropin_dir = dropin_dir;
	}
	return config_load_from(&paths, overrides, n_overrides, config_out, error);
}

void config_dump(const struct config *config, FILE *out)
{
	const char *section = "";
	char origin[4096];

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (strcmp(section, key->section) != 0)
			fprintf(out, "%s[%s]\n", i ? "\n" : "", key->section);
		section = key->section;
		origin_print(&config->origins[i], origin, sizeof(origin));
		for (char *p = origin; *p; p++)
			if (iscntrl((unsigned char)*p))
				*p = '?';
		fprintf(out, "# %s\n%s = ", origin, key->key);
		config_value_print(key, config, out);
		fputc('\n', out);
	}
}

struct config *config_free(struct config *config)
{
	if (!config)
		return NULL;
	for (size_t i = 0; i < config_n_keys; i++) {
		config_value_clear(&config_keys[i], config);
		if (config->origins)
			free(config->origins[i].path);
	}
	free(config->origins);
	free(config);
	return NULL;
}

void config_freep(struct config **config)
{
	*config = config_free(*config);
}
