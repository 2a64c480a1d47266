/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/clickhouse.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "fleet/base/gzip.h"
#include "fleet/base/tsv.h"

enum {
	LINE_MAX_BYTES = 16 * 1024 * 1024, /* of one row of an answer */
	EXCERPT_MAX = 4096,		   /* of the text of an error */
	SETTINGS_MAX = 1024,		   /* of all settings in the address of a call */
	FIRST_OF_PARALLEL_INPUT = 20001,   /* the first version that parses an insert in pieces */
	FIRST_OF_ASYNC_INSERT = 21011,	   /* the first version that can answer before it inserts */
};

struct clickhouse {
	CURL *curl;
	char *url;
	char *database;
	char settings[SETTINGS_MAX]; /* "&name=value" for each */
	struct curl_slist *headers;
	char curl_error[CURL_ERROR_SIZE];
	int version; /* 0: not asked for yet */
};

/* The state while an answer arrives. */
struct reply {
	CURL *curl;
	clickhouse_row_fn row; /* NULL: the answer has no rows */
	void *user;
	struct text line;    /* the beginning of a row whose end has not arrived yet */
	struct text excerpt; /* the text of an error */
	int result;	     /* what ended the answer; 0: nothing did */
};

static bool is_word(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

static int fail(struct clickhouse_error *error, int r, const char *text)
{
	snprintf(error->text, sizeof(error->text), "%s", text);
	return r;
}

/* Sets the options that are the same in all calls. */
static int set_up(struct clickhouse *clickhouse, const struct clickhouse_address *address)
{
	CURL *curl = clickhouse->curl;
	CURLcode code = CURLE_OK;

#define SET(option, value)                                                \
	do {                                                              \
		if (code == CURLE_OK)                                     \
			code = curl_easy_setopt(curl, (option), (value)); \
	} while (0)
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_ERRORBUFFER, clickhouse->curl_error);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(address->connect_timeout_ns / NS_PER_MS));
	SET(CURLOPT_TIMEOUT_MS, (long)(address->timeout_ns / NS_PER_MS));
	SET(CURLOPT_USERAGENT, "stackd-fleet");
	/* Without the first header, libcurl waits for a second before it sends an insert. */
	SET(CURLOPT_HTTPHEADER, clickhouse->headers);
	if (address->user)
		SET(CURLOPT_USERNAME, address->user);
	if (address->password)
		SET(CURLOPT_PASSWORD, address->password);
	if (address->ca_file)
		SET(CURLOPT_CAINFO, address->ca_file);
	if (address->cert_file)
		SET(CURLOPT_SSLCERT, address->cert_file);
	if (address->key_file)
		SET(CURLOPT_SSLKEY, address->key_file);
#undef SET
	return code == CURLE_OK ? 0 : -EINVAL;
}

int clickhouse_new(const struct clickhouse_address *address, struct clickhouse **out,
		   struct clickhouse_error *error)
{
	_cleanup_(clickhouse_freep) struct clickhouse *clickhouse = NULL;
	size_t n = strlen(address->url);

	if (strncmp(address->url, "http://", 7) != 0 && strncmp(address->url, "https://", 8) != 0)
		return fail(error, -EINVAL, "the address must begin with http:// or https://");
	if (strpbrk(address->url, "?#@ "))
		return fail(error, -EINVAL, "the address may have neither a user nor parameters");
	if (!is_word(address->database) || !address->database[0])
		return fail(error, -EINVAL,
			    "the name of the database must be of letters, digits and underscores");
	clickhouse = calloc(1, sizeof(*clickhouse));
	if (!clickhouse || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fail(error, -ENOMEM, "out of memory");
	while (n > 0 && address->url[n - 1] == '/')
		n--;
	clickhouse->url = strndup(address->url, n);
	clickhouse->database = strdup(address->database);
	clickhouse->curl = curl_easy_init();
	clickhouse->headers = curl_slist_append(NULL, "Expect:");
	if (!clickhouse->url || !clickhouse->database || !clickhouse->curl || !clickhouse->headers)
		return fail(error, -ENOMEM, "out of memory");
	if (set_up(clickhouse, address) < 0)
		return fail(error, -EINVAL, "libcurl does not take these settings");
	*out = TAKE(clickhouse);
	return 0;
}

struct clickhouse *clickhouse_free(struct clickhouse *clickhouse)
{
	if (!clickhouse)
		return NULL;
	curl_easy_cleanup(clickhouse->curl);
	curl_slist_free_all(clickhouse->headers);
	free(clickhouse->url);
	free(clickhouse->database);
	free(clickhouse);
	return NULL;
}

void clickhouse_freep(struct clickhouse **clickhouse)
{
	clickhouse_free(*clickhouse);
}

int clickhouse_set(struct clickhouse *clickhouse, const char *name, const char *value)
{
	size_t len = strlen(clickhouse->settings);

	if (!is_word(name) || !is_word(value))
		return -EINVAL;
	if (len + strlen(name) + strlen(value) + 3 > sizeof(clickhouse->settings))
		return -ENOMEM;
	snprintf(clickhouse->settings + len, sizeof(clickhouse->settings) - len, "&%s=%s", name,
		 value);
	return 0;
}

void clickhouse_set_timeout(struct clickhouse *clickhouse, int64_t ns)
{
	/* 0 would be none. */
	long ms = ns < NS_PER_MS ? 1 : (long)(ns / NS_PER_MS);

	curl_easy_setopt(clickhouse->curl, CURLOPT_TIMEOUT_MS, ms);
}

/* Hands the line in reply->line to the handler, and empties it. */
static int line_end(struct reply *reply)
{
	char *fields[CLICKHOUSE_MAX_FIELDS];
	size_t n;

	text_put(&reply->line, "", 1);
	if (reply->line.error < 0)
		return reply->line.error;
	n = tsv_split(reply->line.data, fields, ARRAY_SIZE(fields));
	if (n > ARRAY_SIZE(fields))
		return -EPROTO;
	reply->result = reply->row(reply->user, fields, n);
	text_reset(&reply->line);
	return reply->result;
}

/* Takes bytes of an answer, as libcurl wants it: any other result than n ends the call. */
static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct reply *reply = user;
	size_t left = n;
	long status = 0;

	curl_easy_getinfo(reply->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 || !reply->row) {
		left = EXCERPT_MAX - reply->excerpt.len;
		text_put(&reply->excerpt, data, n < left ? n : left);
		return n;
	}
	while (left > 0 && reply->result == 0) {
		const char *end = memchr(data, '\n', left);
		size_t taken = end ? (size_t)(end - data) : left;

		text_put(&reply->line, data, taken);
		if (reply->line.error < 0)
			reply->result = reply->line.error;
		else if (end)
			reply->result = line_end(reply);
		taken += end ? 1 : 0;
		data += taken;
		left -= taken;
	}
	return reply->result == 0 ? n : 0;
}

/* Copies a text of the server, with "?" in place of control characters, up to the end of its line.
 */
static void copy_line(const char *from, size_t n, struct clickhouse_error *error)
{
	size_t i;

	for (i = 0; i < n && i < sizeof(error->text) - 1 && from[i] != '\n'; i++)
		error->text[i] = iscntrl((unsigned char)from[i]) ? '?' : from[i];
	error->text[i] = '\0';
}

/* True if the code of an error of ClickHouse says that the user is not let in or may not do this.
 */
static bool is_denied(int code)
{
	static const int codes[] = { 164, 192, 193, 194, 195, 291, 392, 497, 516 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

/* Returns the number that n bytes, which have no NUL at their end, begin with; 0 if there is none.
 */
static int read_code(const char *data, size_t n)
{
	int code = 0;

	for (size_t i = 0; i < n && i < 6 && isdigit((unsigned char)data[i]); i++)
		code = 10 * code + (data[i] - '0');
	return code;
}

/* Turns the text of a refusal, "Code: 60, e.displayText() = ...", into an error. */
static int refused(const struct reply *reply, long status, struct clickhouse_error *error)
{
	static const char mark[] = "Code: ";
	const char *data = reply->excerpt.data;
	size_t len = reply->excerpt.len;

	if (len > sizeof(mark) && strncmp(data, mark, sizeof(mark) - 1) == 0) {
		error->code = read_code(data + sizeof(mark) - 1, len - (sizeof(mark) - 1));
		copy_line(data, len, error);
		return is_denied(error->code) ? -EACCES : -EREMOTEIO;
	}
	snprintf(error->text, sizeof(error->text), "the server answers with HTTP status %ld",
		 status);
	return status == 401 || status == 403 ? -EACCES : -EPROTO;
}

/* Turns a failure of libcurl into an error. */
static int broken(const struct clickhouse *clickhouse, CURLcode code,
		  struct clickhouse_error *error)
{
	const char *text =
		clickhouse->curl_error[0] ? clickhouse->curl_error : curl_easy_strerror(code);

	copy_line(text, strlen(text), error);
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
		return -ECONNRESET;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EPROTO;
	default:
		return -ECONNREFUSED;
	}
}

/* Writes the address of a call. `statement` goes into it if the body has something else. */
static int write_url(struct clickhouse *clickhouse, const char *statement, bool has_database,
		     struct text *out)
{
	_cleanup_(freep) char *none = NULL;
	char *escaped = NULL;

	text_put_str(out, clickhouse->url);
	text_put_str(out, "/?wait_end_of_query=1");
	if (has_database) {
		text_put_str(out, "&database=");
		text_put_str(out, clickhouse->database);
	}
	text_put_str(out, clickhouse->settings);
	if (statement) {
		if (clickhouse->version >= FIRST_OF_PARALLEL_INPUT)
			text_put_str(out, "&input_format_parallel_parsing=0");
		if (clickhouse->version >= FIRST_OF_ASYNC_INSERT)
			text_put_str(out, "&async_insert=0");
		escaped = curl_easy_escape(clickhouse->curl, statement, 0);
		if (!escaped)
			return -ENOMEM;
		text_put_str(out, "&query=");
		text_put_str(out, escaped);
		curl_free(escaped);
	}
	text_put(out, "", 1);
	return out->error;
}

/* Posts a body, and takes the answer. */
static int post(struct clickhouse *clickhouse, const char *url, const char *body, size_t len,
		struct reply *reply, struct clickhouse_error *error)
{
	CURL *curl = clickhouse->curl;
	long status = 0;
	CURLcode code;

	*error = (struct clickhouse_error){ 0 };
	clickhouse->curl_error[0] = '\0';
	if (curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK)
		return fail(error, -ENOMEM, "out of memory");
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (reply->result < 0)
		return fail(error, reply->result, "the answer could not be taken");
	if (code != CURLE_OK)
		return broken(clickhouse, code, error);
	if (status != 200)
		return refused(reply, status, error);
	if (reply->line.len > 0)
		return fail(error, -EPROTO, "the answer ends in the middle of a row");
	return 0;
}

static int call(struct clickhouse *clickhouse, const char *statement, bool has_database,
		const char *body, size_t len, clickhouse_row_fn row, void *user,
		struct clickhouse_error *error)
{
	struct reply reply = { .curl = clickhouse->curl, .row = row, .user = user };
	_cleanup_(text_fini) struct text url = {};
	int r;

	text_init(&url, SIZE_MAX);
	text_init(&reply.line, LINE_MAX_BYTES);
	text_init(&reply.excerpt, EXCERPT_MAX);
	r = write_url(clickhouse, statement, has_database, &url);
	r = r < 0 ? fail(error, r, "out of memory")
		  : post(clickhouse, url.data, body, len, &reply, error);
	text_fini(&reply.excerpt);
	text_fini(&reply.line);
	return r;
}

int clickhouse_query(struct clickhouse *clickhouse, const char *sql, clickhouse_row_fn row,
		     void *user, struct clickhouse_error *error)
{
	return call(clickhouse, NULL, true, sql, strlen(sql), row, user, error);
}

int clickhouse_run(struct clickhouse *clickhouse, const char *sql, struct clickhouse_error *error)
{
	/* The database is not named: the statement may be the one that makes it. */
	return call(clickhouse, NULL, false, sql, strlen(sql), NULL, NULL, error);
}

/* Posts the rows of an insert, compressed. */
static int insert(struct clickhouse *clickhouse, const char *statement, const struct text *rows,
		  struct clickhouse_error *error)
{
	struct curl_slist *headers, *last;
	_cleanup_(freep) char *packed = NULL;
	size_t len;
	int r = gzip_pack(rows->data, rows->len, &packed, &len);

	if (r < 0)
		return fail(error, r, "out of memory");
	headers = curl_slist_append(NULL, "Expect:");
	last = headers ? curl_slist_append(headers, "Content-Encoding: gzip") : NULL;
	if (!last) {
		curl_slist_free_all(headers);
		return fail(error, -ENOMEM, "out of memory");
	}
	curl_easy_setopt(clickhouse->curl, CURLOPT_HTTPHEADER, headers);
	/*
	 * If a connection that was used before breaks, libcurl sends the request once more by
	 * itself: rows that had arrived would be there twice.
	 */
	curl_easy_setopt(clickhouse->curl, CURLOPT_FRESH_CONNECT, 1L);
	r = call(clickhouse, statement, true, packed, len, NULL, NULL, error);
	curl_easy_setopt(clickhouse->curl, CURLOPT_FRESH_CONNECT, 0L);
	curl_easy_setopt(clickhouse->curl, CURLOPT_HTTPHEADER, clickhouse->headers);
	curl_slist_free_all(headers);
	return r;
}

int clickhouse_insert(struct clickhouse *clickhouse, const char *into, const struct text *rows,
		      struct clickhouse_error *error)
{
	_cleanup_(text_fini) struct text statement = {};
	int version, r;

	/* The version says which settings keep an insert in one piece. */
	r = clickhouse_version(clickhouse, &version, error);
	if (r < 0)
		return r;
	text_init(&statement, SIZE_MAX);
	text_put_str(&statement, "INSERT INTO ");
	text_put_str(&statement, into);
	text_put_str(&statement, " FORMAT TabSeparated");
	text_put(&statement, "", 1);
	if (statement.error < 0)
		return fail(error, statement.error, "out of memory");
	return insert(clickhouse, statement.data, rows, error);
}

static int on_version(void *user, char **fields, size_t n)
{
	int *version = user, major, minor;

	if (n != 1 || sscanf(fields[0], "%d.%d", &major, &minor) != 2 || major < 1 || major > 999 ||
	    minor < 0 || minor > 999)
		return -EPROTO;
	*version = major * 1000 + minor;
	return 0;
}

int clickhouse_version(struct clickhouse *clickhouse, int *version_out,
		       struct clickhouse_error *error)
{
	static const char sql[] = "SELECT version()";
	int version = 0, r;

	if (clickhouse->version == 0) {
		r = call(clickhouse, NULL, false, sql, sizeof(sql) - 1, on_version, &version,
			 error);
		if (r < 0)
			return r;
		if (version == 0)
			return fail(error, -EPROTO, "the server does not say its version");
		clickhouse->version = version;
	}
	*version_out = clickhouse->version;
	return 0;
}

size_t clickhouse_shard_of(const char *host, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *host; host++)
		hash = (hash ^ (unsigned char)*host) * UINT64_C(0x100000001b3);
	return n > 0 ? (size_t)(hash % n) : 0;
}
