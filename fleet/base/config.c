/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base.h"
#include "common/duration.h"
#include "common/utf8.h"
#include "daemon/config/config.h"
#include "daemon/config/ini.h"

#define MS     NS_PER_MS
#define SEC    NS_PER_S
#define MINUTE (60 * SEC)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The name that systemd gives to the credential with the password. */
#define CREDENTIAL "stackd-fleet.password"

enum { PASSWORD_MAX = 1024, WORDS_MAX = 256 };

enum key_type { KEY_TEXT, KEY_PATH, KEY_WORDS, KEY_COUNT, KEY_DURATION };

struct key {
	const char *section;
	const char *name;
	enum key_type type;
	size_t offset;
	const char *fallback; /* NULL: none */
	int64_t min, max;     /* of a number */
};

#define KEY(section, name, type, member, fallback, min, max)                                   \
	{                                                                                      \
		section, name, type, offsetof(struct fleet_config, member), fallback, min, max \
	}

static const struct key keys[] = {
	KEY("server", "url", KEY_WORDS, url, "http://127.0.0.1:8123", 0, 0),
	KEY("server", "database", KEY_TEXT, database, "stackd", 0, 0),
	KEY("server", "user", KEY_TEXT, user, NULL, 0, 0),
	KEY("server", "password_file", KEY_PATH, password_file, NULL, 0, 0),
	KEY("server", "ca_file", KEY_PATH, ca_file, NULL, 0, 0),
	KEY("server", "cert_file", KEY_PATH, cert_file, NULL, 0, 0),
	KEY("server", "key_file", KEY_PATH, key_file, NULL, 0, 0),
	KEY("server", "connect_timeout", KEY_DURATION, connect_timeout_ns, "5s", 10 * MS, MINUTE),
	KEY("server", "timeout", KEY_DURATION, timeout_ns, "1min", 100 * MS, HOUR),
	KEY("send", "host", KEY_TEXT, host, NULL, 0, 0),
	KEY("send", "socket", KEY_PATH, socket, "/run/stackd/stackd.sock", 0, 0),
	KEY("send", "lock_file", KEY_PATH, lock_file, "/run/stackd-fleet-send/lock", 0, 0),
	KEY("send", "probes", KEY_WORDS, probes, "offcpu oncpu", 0, 0),
	KEY("send", "tiers", KEY_WORDS, tiers, "5s 1min units", 0, 0),
	KEY("send", "labels", KEY_WORDS, labels, "", 0, 0),
	KEY("send", "share", KEY_COUNT, share, "97", 1, 100),
	KEY("send", "rows", KEY_COUNT, rows, "600", 1, 100000),
	KEY("send", "batch", KEY_DURATION, batch_ns, "1min", 100 * MS, 10 * MINUTE),
	KEY("send", "compare", KEY_DURATION, compare_ns, "5min", 100 * MS, DAY),
	KEY("send", "past", KEY_DURATION, past_ns, "2d", MINUTE, 30 * DAY),
	KEY("serve", "listen", KEY_PATH, listen, "/run/stackd-fleet/fleet.sock", 0, 0),
	KEY("serve", "group", KEY_TEXT, group, "stackd", 0, 0),
	KEY("serve", "shard_timeout", KEY_DURATION, shard_timeout_ns, "20s", 100 * MS, HOUR),
};

static int fail(struct fleet_error *error, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct fleet_error *error, int r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(error->text, sizeof(error->text), format, ap);
	va_end(ap);
	return r;
}

static void words_free(struct fleet_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->v[i]);
	free(words->v);
	*words = (struct fleet_words){ 0 };
}

/* Splits a text at its blanks. Returns 0, -E2BIG or -ENOMEM. */
static int words_parse(const char *text, struct fleet_words *out)
{
	static const char blanks[] = " \t";
	struct fleet_words words = { .v = calloc(WORDS_MAX, sizeof(*words.v)) };
	int r = words.v ? 0 : -ENOMEM;

	for (text += strspn(text, blanks); *text && r == 0; text += strspn(text, blanks)) {
		size_t n = strcspn(text, blanks);

		if (words.n == WORDS_MAX)
			r = -E2BIG;
		else if (!(words.v[words.n] = strndup(text, n)))
			r = -ENOMEM;
		else
			words.n++;
		text += n;
	}
	if (r < 0) {
		words_free(&words);
		return r;
	}
	words_free(out);
	*out = words;
	return 0;
}

static int text_parse(const struct key *key, const char *text, char **out)
{
	char *copy;

	if (key->type == KEY_PATH && text[0] != '/')
		return -EINVAL;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*out);
	*out = copy;
	return 0;
}

static int number_parse(const struct key *key, const char *text, int64_t *out)
{
	int64_t value;
	char *end;
	int r = 0;

	if (key->type == KEY_DURATION) {
		r = duration_parse(text, NS_PER_S, &value);
	} else {
		errno = 0;
		value = strtoll(text, &end, 10);
		r = errno || end == text || *end ? -EINVAL : 0;
	}
	if (r < 0 || value < key->min || value > key->max)
		return -EINVAL;
	*out = value;
	return 0;
}

static int key_set(const struct key *key, const char *text, struct fleet_config *config)
{
	char *member = (char *)config + key->offset;

	switch (key->type) {
	case KEY_TEXT:
	case KEY_PATH:
		return text_parse(key, text, (char **)member);
	case KEY_WORDS:
		return words_parse(text, (struct fleet_words *)member);
	case KEY_COUNT:
	case KEY_DURATION:
	default:
		return number_parse(key, text, (int64_t *)member);
	}
}

/* Describes the values that a key may have. */
static void key_explain(const struct key *key, char text[static 128])
{
	char min[DURATION_TEXT_MAX], max[DURATION_TEXT_MAX];

	switch (key->type) {
	case KEY_PATH:
		snprintf(text, 128, "must be an absolute path");
		break;
	case KEY_COUNT:
		snprintf(text, 128, "must be a number between %lld and %lld", (long long)key->min,
			 (long long)key->max);
		break;
	case KEY_DURATION:
		duration_format(key->min, min);
		duration_format(key->max, max);
		snprintf(text, 128, "must be between %s and %s", min, max);
		break;
	case KEY_WORDS:
		snprintf(text, 128, "must have at most %d words", WORDS_MAX);
		break;
	case KEY_TEXT:
	default:
		snprintf(text, 128, "cannot be taken");
		break;
	}
}

static const struct key *key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* Sets one value. `where` says where it was found. Lists are not repeated: an address may have a
 * password. */
static int assign(struct fleet_config *config, const char *where, const char *section,
		  const char *name, const char *value, struct fleet_error *error)
{
	const struct key *key = key_find(section, name);
	char why[128];
	int r;

	if (!key)
		return fail(error, -EINVAL,
			    "%s: [%s] %s: unknown; stackd-fleet(1) lists the settings", where,
			    section, name);
	r = key_set(key, value, config);
	if (r == 0)
		return 0;
	key_explain(key, why);
	return fail(error, r, "%s: [%s] %s%s%s: %s", where, section, name,
		    key->type == KEY_WORDS ? "" : " = ", key->type == KEY_WORDS ? "" : value,
		    r == -ENOMEM ? "out of memory" : why);
}

static int on_assignment(void *user, const char *path, unsigned int line, const char *section,
			 const char *key, const char *value, struct config_error *error)
{
	struct fleet_error fault;
	char where[PATH_MAX + 16];
	int r;

	snprintf(where, sizeof(where), "%s:%u", path, line);
	r = assign(user, where, section, key, value, &fault);
	if (r < 0)
		snprintf(error->text, sizeof(error->text), "%s", fault.text);
	return r;
}

static int read_file(struct fleet_config *config, const char *path, struct fleet_error *error)
{
	struct config_error fault = { 0 };
	int r = config_file_read(path ? path : STACKD_FLEET_CONFIG_FILE, on_assignment, config,
				 &fault);

	if (r == -ENOENT && !path)
		return 0;
	return r < 0 ? fail(error, r, "%s", fault.text) : 0;
}

static int override(struct fleet_config *config, const char *text, struct fleet_error *error)
{
	const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
	_cleanup_(freep) char *section = NULL;
	_cleanup_(freep) char *name = NULL;

	if (!dot || !equals || dot > equals)
		return fail(error, -EINVAL, "-o %s: must be SECTION.KEY=VALUE", text);
	section = strndup(text, (size_t)(dot - text));
	name = strndup(dot + 1, (size_t)(equals - dot - 1));
	if (!section || !name)
		return fail(error, -ENOMEM, "out of memory");
	return assign(config, "-o", section, name, equals + 1, error);
}

static int set_defaults(struct fleet_config *config, struct fleet_error *error)
{
	char host[HOST_NAME_MAX + 1] = "";
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++)
		if (keys[i].fallback)
			r = key_set(&keys[i], keys[i].fallback, config);
	if (r == 0 && gethostname(host, sizeof(host) - 1) < 0)
		r = -errno;
	if (r == 0 && !(config->host = strdup(host)))
		r = -ENOMEM;
	return r < 0 ? fail(error, r, "cannot set the defaults: %s", strerror(-r)) : 0;
}

/*
 * Reads a password from a file, up to the end of its first line. A file that all users of the host
 * may read is refused, unless it is one of systemd's credentials.
 */
static int read_password(const char *path, bool is_credential, char **out,
			 struct fleet_error *error)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char text[PASSWORD_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(error, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(error, -EINVAL, "%s: is no regular file", path);
	if (!is_credential && st.st_mode & S_IRWXO)
		return fail(error, -EPERM, "%s: all users may read or write it; chmod o= it", path);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return fail(error, -errno, "%s: %s", path, strerror(errno));
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	if (!utf8_skip_mark(text)[0])
		return fail(error, -EINVAL, "%s: has no password in its first line", path);
	*out = strdup(utf8_skip_mark(text));
	explicit_bzero(text, sizeof(text));
	return *out ? 0 : fail(error, -ENOMEM, "out of memory");
}

/* Reads the password from the file that the settings name or, without one, from the credential. */
static int find_password(struct fleet_config *config, struct fleet_error *error)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");
	char path[PATH_MAX];

	if (config->password_file)
		return read_password(config->password_file, false, &config->password, error);
	if (!directory)
		return 0;
	if (snprintf(path, sizeof(path), "%s/" CREDENTIAL, directory) >= (int)sizeof(path))
		return fail(error, -ENAMETOOLONG, "$CREDENTIALS_DIRECTORY is too long");
	if (access(path, F_OK) < 0)
		return 0;
	return read_password(path, true, &config->password, error);
}

/* Refuses addresses with a user or parameters: they get into messages, and so would a password. */
static int url_check(const struct fleet_words *url, struct fleet_error *error)
{
	if (url->n == 0)
		return fail(error, -EINVAL, "[server] url: must name a server");
	for (size_t i = 0; i < url->n; i++)
		if (strpbrk(url->v[i], "?#@"))
			return fail(error, -EINVAL,
				    "[server] url: may have neither a user nor parameters; user "
				    "and password_file are settings of their own");
	return 0;
}

int fleet_config_load(const char *path, char *const *overrides, size_t n, struct fleet_config **out,
		      struct fleet_error *error)
{
	_cleanup_(fleet_config_freep) struct fleet_config *config = calloc(1, sizeof(*config));
	int r;

	if (!config)
		return fail(error, -ENOMEM, "out of memory");
	r = set_defaults(config, error);
	if (r == 0)
		r = read_file(config, path, error);
	for (size_t i = 0; i < n && r == 0; i++)
		r = override(config, overrides[i], error);
	if (r == 0)
		r = url_check(&config->url, error);
	if (r == 0 && !config->host[0])
		r = fail(error, -EINVAL, "[send] host: must not be empty");
	if (r == 0)
		r = find_password(config, error);
	if (r == 0)
		*out = TAKE(config);
	return r;
}

void fleet_config_freep(struct fleet_config **out)
{
	struct fleet_config *config = *out;

	if (!config)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		char *member = (char *)config + keys[i].offset;

		if (keys[i].type == KEY_WORDS)
			words_free((struct fleet_words *)member);
		else if (keys[i].type == KEY_TEXT || keys[i].type == KEY_PATH)
			free(*(char **)member);
	}
	if (config->password)
		explicit_bzero(config->password, strlen(config->password));
	free(config->password);
	free(config);
}

struct clickhouse_address fleet_config_address(const struct fleet_config *config, size_t shard)
{
	return (struct clickhouse_address){
		.url = config->url.v[shard],
		.database = config->database,
		.user = config->user,
		.password = config->password,
		.ca_file = config->ca_file,
		.cert_file = config->cert_file,
		.key_file = config->key_file,
		.connect_timeout_ns = config->connect_timeout_ns,
		.timeout_ns = config->timeout_ns,
	};
}

static void key_dump(const struct key *key, const struct fleet_config *config, FILE *out)
{
	const char *member = (const char *)config + key->offset;
	const struct fleet_words *words = (const struct fleet_words *)member;
	const char *text = *(char *const *)member;

	switch (key->type) {
	case KEY_TEXT:
	case KEY_PATH:
		fprintf(out, "%s%s = %s\n", text ? "" : "#", key->name, text ? text : "");
		break;
	case KEY_WORDS:
		fprintf(out, "%s =", key->name);
		for (size_t i = 0; i < words->n; i++)
			fprintf(out, " %s", words->v[i]);
		fputc('\n', out);
		break;
	case KEY_DURATION:
		fprintf(out, "%s = %lldms\n", key->name,
			(long long)(*(const int64_t *)member / NS_PER_MS));
		break;
	case KEY_COUNT:
	default:
		fprintf(out, "%s = %lld\n", key->name, (long long)*(const int64_t *)member);
		break;
	}
}

void fleet_config_dump(const struct fleet_config *config, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(section, keys[i].section) != 0)
			fprintf(out, "%s[%s]\n", i > 0 ? "\n" : "", keys[i].section);
		section = keys[i].section;
		key_dump(&keys[i], config, out);
	}
}
