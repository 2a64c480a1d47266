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
#include <sys/un.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base.h"
#include "common/utf8.h"
#include "daemon/config/config.h"
#include "daemon/config/ini.h"
#include "daemon/config/keys.h"
#include "daemon/config/value.h"

#define MS     NS_PER_MS
#define SEC    NS_PER_S
#define MINUTE (60 * SEC)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The name that systemd gives to the credential with the password. */
#define CREDENTIAL "stackd-fleet.password"

enum { PASSWORD_MAX = 1024, WORDS_MAX = 256 };

/* A setting without a default is NULL if it is not set. */
#define TEXT(section_, key_, member, fallback_)                                               \
	{                                                                                     \
		.section = section_, .key = key_, .type = CONFIG_TEXT, .fallback = fallback_, \
		.offset = offsetof(struct fleet_config, member)                               \
	}
#define PATH(section_, key_, member, most, fallback_)                                           \
	{                                                                                       \
		.section = section_, .key = key_, .type = CONFIG_PATH, .min = 2, .max = (most), \
		.fallback = fallback_, .offset = offsetof(struct fleet_config, member)          \
	}
#define WORDS(section_, key_, member, fallback_)                                         \
	{                                                                                \
		.section = section_, .key = key_, .type = CONFIG_LIST, .max = WORDS_MAX, \
		.fallback = fallback_, .offset = offsetof(struct fleet_config, member.v) \
	}
#define NUMBER(type_, section_, key_, member, fallback_, least, most)                     \
	{                                                                                 \
		.section = section_, .key = key_, .type = CONFIG_##type_, .min = (least), \
		.max = (most), .fallback = fallback_,                                     \
		.offset = offsetof(struct fleet_config, member)                           \
	}

enum { SOCKET_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

static const struct config_key keys[] = {
	WORDS("server", "url", url, "http://127.0.0.1:8123"),
	TEXT("server", "database", database, "stackd"),
	TEXT("server", "user", user, NULL),
	PATH("server", "password_file", password_file, PATH_MAX - 1, NULL),
	PATH("server", "ca_file", ca_file, PATH_MAX - 1, NULL),
	PATH("server", "cert_file", cert_file, PATH_MAX - 1, NULL),
	PATH("server", "key_file", key_file, PATH_MAX - 1, NULL),
	NUMBER(DURATION, "server", "connect_timeout", connect_timeout_ns, "5s", 10 * MS, MINUTE),
	NUMBER(DURATION, "server", "timeout", timeout_ns, "1min", 100 * MS, HOUR),
	TEXT("send", "host", host, NULL),
	PATH("send", "socket", socket, SOCKET_MAX, "/run/stackd/stackd.sock"),
	PATH("send", "lock_file", lock_file, PATH_MAX - 1, "/run/stackd-fleet-send/lock"),
	WORDS("send", "probes", probes, "offcpu oncpu"),
	WORDS("send", "tiers", tiers, "5s 1min units"),
	WORDS("send", "labels", labels, ""),
	NUMBER(COUNT, "send", "share", share, "97", 1, 100),
	NUMBER(COUNT, "send", "rows", rows, "600", 1, 100000),
	NUMBER(DURATION, "send", "batch", batch_ns, "1min", 100 * MS, 10 * MINUTE),
	NUMBER(DURATION, "send", "compare", compare_ns, "5min", 100 * MS, DAY),
	NUMBER(DURATION, "send", "past", past_ns, "2d", MINUTE, 30 * DAY),
	PATH("serve", "listen", listen, SOCKET_MAX, "/run/stackd-fleet/fleet.sock"),
	TEXT("serve", "group", group, "stackd"),
	NUMBER(DURATION, "serve", "shard_timeout", shard_timeout_ns, "20s", 100 * MS, HOUR),
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

static const struct config_key *key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].key, name) == 0)
			return &keys[i];
	return NULL;
}

/* Sets one value. `where` says where it was found. Lists are not repeated: an address may have a
 * password. */
static int assign(struct fleet_config *config, const char *where, const char *section,
		  const char *name, const char *value, struct fleet_error *error)
{
	const struct config_key *key = key_find(section, name);
	bool is_list = key && key->type == CONFIG_LIST;
	char why[256];
	int r;

	if (!key)
		return fail(error, -EINVAL,
			    "%s: [%s] %s: unknown; stackd-fleet(1) lists the settings", where,
			    section, name);
	r = config_value_parse(key, value, config, why, sizeof(why));
	if (r == 0)
		return 0;
	return fail(error, r, "%s: [%s] %s%s%s: %s", where, section, name, is_list ? "" : " = ",
		    is_list ? "" : value, r == -ENOMEM ? "out of memory" : why);
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

static int set_defaults(struct fleet_config *config)
{
	char host[HOST_NAME_MAX + 1] = "", why[256];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!keys[i].fallback)
			continue;
		r = config_value_parse(&keys[i], keys[i].fallback, config, why, sizeof(why));
		if (r < 0)
			return r;
	}
	if (gethostname(host, sizeof(host) - 1) < 0)
		return -errno;
	config->host = strdup(host);
	return config->host ? 0 : -ENOMEM;
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

/* Counts the words of the settings that are lists. */
static void count_words(struct fleet_config *config)
{
	struct fleet_words *const lists[] = { &config->url, &config->probes, &config->tiers,
					      &config->labels };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (lists[i]->v[lists[i]->n])
			lists[i]->n++;
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
	r = set_defaults(config);
	if (r < 0)
		return fail(error, r, "cannot set the defaults: %s", strerror(-r));
	r = read_file(config, path, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = override(config, overrides[i], error);
		if (r < 0)
			return r;
	}
	count_words(config);
	r = url_check(&config->url, error);
	if (r < 0)
		return r;
	r = find_password(config, error);
	if (r < 0)
		return r;
	*out = TAKE(config);
	return 0;
}

void fleet_config_freep(struct fleet_config **out)
{
	struct fleet_config *config = *out;

	if (!config)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		config_value_clear(&keys[i], config);
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

/* True if a setting without a default is not set. */
static bool is_unset(const struct config_key *key, const struct fleet_config *config)
{
	return !key->fallback && !*(char *const *)((const char *)config + key->offset);
}

void fleet_config_dump(const struct fleet_config *config, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(section, keys[i].section) != 0)
			fprintf(out, "%s[%s]\n", i > 0 ? "\n" : "", keys[i].section);
		section = keys[i].section;
		fprintf(out, "%s%s = ", is_unset(&keys[i], config) ? "#" : "", keys[i].key);
		if (!is_unset(&keys[i], config))
			config_value_print(&keys[i], config, out);
		fputc('\n', out);
	}
}
