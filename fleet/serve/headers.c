/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/headers.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/base.h"
#include "common/duration.h"
#include "common/text.h"
#include "fleet/base/config.h"
#include "fleet/base/tsv.h"
#include "fleet/serve/shards.h"

/* The most gaps that an answer has, as in the daemon. */
enum { GAPS_MAX = 1024 };

/* Ranges up to these lengths are answered from windows as they were recorded, others by minutes. */
#define RECORDED_OF_ALL_NS (10 * 60 * NS_PER_S)
#define RECORDED_OF_ONE_NS (6 * 3600 * NS_PER_S)

/* A shorter time between two windows is no gap, as in the daemon: clocks drift. */
#define DRIFT_NS NS_PER_MS

/* A window that ended this long ago may not have been sent yet. */
#define LATE_NS (5 * 60 * NS_PER_S)

/* A host that sent something this long before the range is expected in it. */
#define EXPECTED_S (24 * 3600)

/* A clock that is ahead by less is not worth a word. */
#define AHEAD_S 10

/* The headers that have come. */
struct reading {
	struct arena *arena;
	const struct wire_strs *globs;
	struct header *v;
	size_t n, capacity;
	struct wire_span ends;
};

int64_t headers_host_ahead(const struct header_host *host, int64_t now)
{
	return host->seen > now + AHEAD_S * NS_PER_S ? host->seen - now : 0;
}

bool headers_host_matches(const struct wire_strs *globs, const char *name)
{
	size_t i;

	for (i = 0; i < globs->n; i++)
		if (strcmp(globs->v[i], name) == 0 || fnmatch(globs->v[i], name, 0) == 0)
			return true;
	return globs->n == 0;
}

const char *headers_table(int64_t length_ns, bool is_one_host)
{
	return length_ns <= (is_one_host ? RECORDED_OF_ONE_NS : RECORDED_OF_ALL_NS) ? "rows"
										    : "rows60";
}

/* The columns of a header, in the order in which header_read() takes them. */
static const char columns[] =
	"host, toString(boot), start, end, attempt, kind, reason, h_hook, h_seq, h_rows, h_of_rows, "
	"h_min_wait_ns, h_sample_below_ns, h_period_ns, h_processes, h_threads, h_cpus, h_on_cpu_ns, "
	"h_samples, h_runnable_ns, h_throttled_ns, h_blocked_ns, h_waits, h_short_waits, h_short_ns, "
	"h_sampled_ns, h_open_waits, h_unseen, h_unseen_ns, h_idle_threads, h_lost, h_lost_n";

/* The same columns if one header stands for all windows of a host. */
static const char sums[] =
	"host, toString(any(boot)), min(start), max(end), 0, 0, '', '', uniqExact(start), 0, 0, "
	"0, 0, max(end - start), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
	"emptyArrayString(), emptyArrayUInt64()";

enum { FIELDS = 32, FIELD_NUMBERS = 8, N_NUMBERS = 22 };

/* Reads a number that has to fit into the wire's. */
static int read_number(const char *field, int64_t *out)
{
	uint64_t value;
	int r = tsv_uint(field, &value);

	if (r || value > INT64_MAX)
		return -EINVAL;
	*out = (int64_t)value;
	return 0;
}

static int read_numbers(char **fields, struct header *header)
{
	struct wire_totals *totals = &header->totals;
	int64_t *const numbers[N_NUMBERS] = {
		&header->seq,
		&header->rows,
		&header->of_rows,
		&header->min_wait_ns,
		&header->sample_below_ns,
		&header->period_ns,
		&totals->processes,
		&totals->threads,
		&totals->cpus,
		&totals->on_cpu_ns,
		&totals->samples,
		&totals->runnable_ns,
		&totals->throttled_ns,
		&totals->blocked_ns,
		&totals->waits,
		&totals->short_waits,
		&totals->short_ns,
		&totals->sampled_ns,
		&totals->open_waits,
		&totals->unseen,
		&totals->unseen_ns,
		&header->idle_threads,
	};
	int r;

	for (size_t i = 0; i < N_NUMBERS; i++) {
		r = read_number(fields[FIELD_NUMBERS + i], numbers[i]);
		if (r)
			return r;
	}
	return 0;
}

static int read_lost(char **fields, struct arena *arena, struct wire_losts *out)
{
	struct wire_strs reasons;
	struct int_list counts;
	struct wire_lost *lost;
	size_t i;
	int r = tsv_strings(fields[FIELDS - 2], arena, &reasons);

	if (r)
		return r;
	r = tsv_ints(fields[FIELDS - 1], arena, &counts);
	if (r)
		return r;
	if (reasons.n != counts.n)
		return -EINVAL;
	lost = arena_array(arena, reasons.n + 1, sizeof(*lost));
	if (!lost)
		return -ENOMEM;
	for (i = 0; i < reasons.n; i++)
		lost[i] = (struct wire_lost){ .reason = reasons.v[i], .count = counts.v[i] };
	*out = (struct wire_losts){ .v = lost, .n = reasons.n };
	return 0;
}

/* Copies a field that is a text to the arena. */
static const char *keep(struct arena *arena, char *field)
{
	return arena_strdup(arena, tsv_text(field));
}

static int header_read(struct arena *arena, char **fields, struct header *header)
{
	int64_t kind;
	int r = read_number(fields[2], &header->start);

	if (r)
		return r;
	r = read_number(fields[3], &header->end);
	if (r)
		return r;
	r = tsv_uint(fields[4], &header->attempt);
	if (r)
		return r;
	r = read_number(fields[5], &kind);
	if (r)
		return r;
	r = read_numbers(fields, header);
	if (r)
		return r;
	r = read_lost(fields, arena, &header->lost);
	if (r)
		return r;
	header->is_gap = kind != 0;
	header->host = keep(arena, fields[0]);
	header->boot = keep(arena, fields[1]);
	header->reason = keep(arena, fields[6]);
	header->hook = keep(arena, fields[7]);
	if (!header->host || !header->boot || !header->reason || !header->hook)
		return -ENOMEM;
	return header->end > header->start ? 0 : -EINVAL;
}

/* Adds a header. One host that sends nonsense must not keep the others from being shown. */
static int on_header(void *user, size_t shard, char **fields, size_t n)
{
	struct reading *reading = user;
	struct header header = { .shard = shard };
	int r = n == FIELDS ? header_read(reading->arena, fields, &header) : -EPROTO;

	if (r)
		return r == -EINVAL ? 0 : r;
	if (!headers_host_matches(reading->globs, header.host))
		return 0;
	if (reading->n == HEADERS_MAX)
		return -E2BIG;
	r = array_reserve(reading->v, reading->capacity, reading->n + 1);
	if (r)
		return r;
	reading->v[reading->n++] = header;
	return 0;
}

static void put_day(struct text *sql, int64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm tm;
	char day[32];

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "toDate('%Y-%m-%d')", &tm);
	text_put_str(sql, day);
}

void headers_put_range(struct text *sql, const struct header_question *question)
{
	const int64_t day = 24 * 3600 * NS_PER_S;

	text_put_str(sql, "probe = ");
	sql_put_text(sql, question->probe);
	text_put_str(sql, " AND start < ");
	text_put_int(sql, question->until);
	text_put_str(sql, " AND end > ");
	text_put_int(sql, question->since);
	text_put_str(sql, " AND day >= ");
	put_day(sql, question->since > day ? question->since - day : 0);
	text_put_str(sql, " AND day <= ");
	put_day(sql, question->until < INT64_MAX - day ? question->until + day : question->until);
}

void headers_put_middles(struct text *sql, const struct header_question *question)
{
	if (!question->middles)
		return;
	text_put_str(sql, " AND start + intDiv(end - start, 2) >= ");
	text_put_int(sql, question->middles->since_ns);
	text_put_str(sql, " AND start + intDiv(end - start, 2) < ");
	text_put_int(sql, question->middles->until_ns);
}

/* True if a window belongs to another slice than the one that the question is about. */
static bool is_outside(const struct header_question *question, const struct header *header)
{
	int64_t middle = header_middle(header);

	return question->middles &&
	       (middle < question->middles->since_ns || middle >= question->middles->until_ns);
}

/* Compares two headers for qsort(): by host, start, and the insert that counts first. */
static int by_host(const void *x, const void *y)
{
	const struct header *a = x, *b = y;

	return strcmp(a->host, b->host)
		?: (a->start > b->start) - (a->start < b->start)
		?: a->is_gap - b->is_gap
		?: (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

/*
 * Marks the windows that overlap an earlier one of the same host: they were sent twice, or by two
 * senders.
 */
static void find_doubles(struct headers *headers, const struct header_question *question)
{
	const struct header *last = NULL;
	size_t i;

	for (i = 0; i < headers->n; i++) {
		struct header *header = &headers->v[i];

		if (header->is_gap)
			continue;
		header->is_outside = is_outside(question, header);
		if (last && strcmp(last->host, header->host) == 0 &&
		    header->start < last->end - DRIFT_NS) {
			header->is_double = true;
			headers->n_double += !header->is_outside;
			continue;
		}
		headers->n_windows += !header->is_outside;
		last = header;
	}
}

/* Lists the hosts: those that have headers, and those that are expected. Returns 0 or -ENOMEM. */
static int find_hosts(struct headers *headers, struct arena *arena)
{
	const struct header *expected = headers->expected;
	size_t i = 0, k = 0, n = 0, most = headers->n + headers->n_expected + 1;
	struct header_host *hosts = arena_array(arena, most, sizeof(*hosts));

	if (!hosts)
		return -ENOMEM;
	while (i < headers->n || k < headers->n_expected) {
		const char *a = i < headers->n ? headers->v[i].host : NULL;
		const char *b = k < headers->n_expected ? expected[k].host : NULL;
		const char *name = !b || (a && strcmp(a, b) <= 0) ? a : b;
		struct header_host *host = &hosts[n++];

		*host = (struct header_host){ .name = name, .first = i, .last = -1 };
		for (; i < headers->n && strcmp(headers->v[i].host, name) == 0; i++)
			if (header_counts(&headers->v[i]))
				host->last = headers->v[i].start;
		host->n = i - host->first;
		for (; k < headers->n_expected && strcmp(expected[k].host, name) == 0; k++)
			if (expected[k].end > host->seen)
				host->seen = expected[k].end;
	}
	headers->hosts = hosts;
	headers->n_hosts = n;
	return 0;
}

static int on_host(void *user, size_t shard, char **fields, size_t n)
{
	struct reading *reading = user;
	struct header header = { .shard = shard };
	int r = n == 2 ? array_reserve(reading->v, reading->capacity, reading->n + 1) : -EPROTO;

	if (r)
		return r;
	if (reading->n == HEADERS_MAX)
		return -E2BIG;
	r = read_number(fields[1], &header.end);
	if (r)
		return r;
	header.host = keep(reading->arena, fields[0]);
	if (!header.host)
		return -ENOMEM;
	if (headers_host_matches(reading->globs, header.host))
		reading->v[reading->n++] = header;
	return 0;
}

/* Reads which hosts sent something not long before the range or since, and their clocks. */
static int read_hosts(struct shards *shards, const struct fleet_config *config,
		      const struct header_question *question, struct reading *out)
{
	_cleanup_(text_fini) struct text sql = {};

	text_init(&sql, SIZE_MAX);
	text_put_str(&sql, "SELECT host, max(toUInt64(seen)) * 1000000000 FROM ");
	text_put_str(&sql, config->database);
	text_put_str(&sql, ".hosts WHERE toUInt64(seen) >= ");
	text_put_int(&sql, question->since / NS_PER_S > EXPECTED_S
				   ? question->since / NS_PER_S - EXPECTED_S
				   : 0);
	text_put_str(&sql, " GROUP BY host");
	text_put(&sql, "", 1);
	return sql.error ? sql.error : shards_ask(shards, sql.data, on_host, out);
}

/* Reads the headers of the range. The caller frees out->v. */
static int read_headers(struct shards *shards, const struct fleet_config *config,
			const struct header_question *question, struct reading *out)
{
	_cleanup_(text_fini) struct text sql = {};

	text_init(&sql, SIZE_MAX);
	text_put_str(&sql, "SELECT ");
	text_put_str(&sql, question->is_summed ? sums : columns);
	text_put_str(&sql, " FROM ");
	text_put_str(&sql, config->database);
	text_put_str(&sql, ".");
	text_put_str(&sql, question->table);
	text_put_str(&sql,
		     question->is_summed ? " WHERE kind = 0 AND " : " WHERE kind IN (0, 4) AND ");
	headers_put_range(&sql, question);
	text_put_str(&sql, question->is_summed ? " GROUP BY host" : "");
	text_put(&sql, "", 1);
	return sql.error ? sql.error : shards_ask(shards, sql.data, on_header, out);
}

/* Drops what came from shards that have failed. Returns the number of headers that are left. */
static size_t drop_failed(struct header *v, size_t n, const struct shards *shards)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (!shards_failure(shards, v[i].shard))
			v[kept++] = v[i];
	return kept;
}

int headers_settle(struct headers *headers, const struct shards *shards,
		   const struct header_question *question, struct arena *arena)
{
	size_t i;

	headers->n = drop_failed(headers->v, headers->n, shards);
	headers->n_expected = drop_failed(headers->expected, headers->n_expected, shards);
	headers->n_windows = headers->n_double = 0;
	for (i = 0; i < headers->n; i++)
		headers->v[i].is_double = false;
	find_doubles(headers, question);
	return find_hosts(headers, arena);
}

static void reading_fini(struct reading *reading)
{
	free(reading->v);
}

/* Copies the headers to the arena, sorted. Returns NULL when out of memory. */
static struct header *reading_take(const struct reading *reading, struct arena *arena)
{
	struct header *v = arena_array(arena, reading->n + 1, sizeof(*v));

	if (!v || !reading->n)
		return v;
	memcpy(v, reading->v, reading->n * sizeof(*v));
	qsort(v, reading->n, sizeof(*v), by_host);
	return v;
}

int headers_read(struct shards *shards, const struct fleet_config *config,
		 const struct header_question *question, struct arena *arena, struct headers *out)
{
	_cleanup_(reading_fini) struct reading reading = { .arena = arena,
							   .globs = question->globs };
	_cleanup_(reading_fini) struct reading expected = reading;
	int r = read_headers(shards, config, question, &reading);

	if (r)
		return r;
	r = read_hosts(shards, config, question, &expected);
	if (r)
		return r;
	*out = (struct headers){
		.v = reading_take(&reading, arena),
		.n = reading.n,
		.expected = reading_take(&expected, arena),
		.n_expected = expected.n,
	};
	return out->v && out->expected ? headers_settle(out, shards, question, arena) : -ENOMEM;
}

static int on_ends(void *user, size_t shard, char **fields, size_t n)
{
	struct reading *reading = user;
	struct wire_span *ends = &reading->ends;
	int64_t start, end;
	int r = n == 3 ? read_number(fields[1], &start) : -EPROTO;

	if (!r)
		r = read_number(fields[2], &end);
	if (r || !headers_host_matches(reading->globs, tsv_text(fields[0])))
		return r == -EINVAL ? 0 : r;
	if (!ends->until_ns || start < ends->since_ns)
		ends->since_ns = start;
	if (end > ends->until_ns)
		ends->until_ns = end;
	return 0;
}

/*
 * Finds when the oldest window of the range begins and the newest one ends, 0 if there is none.
 * skips_ahead: not of hosts whose clock is, or was, ahead.
 */
static int ends_ask(struct shards *shards, const struct fleet_config *config,
		    const struct header_question *question, bool skips_ahead, struct wire_span *out)
{
	struct reading reading = { .globs = question->globs };
	_cleanup_(text_fini) struct text sql = {};
	int r;

	text_init(&sql, SIZE_MAX);
	text_put_str(&sql, "SELECT host, min(start), max(end) FROM ");
	text_put_str(&sql, config->database);
	text_put_str(&sql, ".");
	text_put_str(&sql, question->table);
	text_put_str(&sql, " WHERE kind = 0 AND ");
	headers_put_range(&sql, question);
	text_put_str(&sql, " AND end <= ");
	text_put_int(&sql, question->until);
	if (skips_ahead) {
		text_put_str(&sql, " AND host NOT IN (SELECT host FROM ");
		text_put_str(&sql, config->database);
		text_put_str(&sql, ".hosts WHERE toUInt64(seen) > ");
		text_put_int(&sql, question->until / NS_PER_S + AHEAD_S);
		text_put_str(&sql, ")");
	}
	text_put_str(&sql, " GROUP BY host");
	text_put(&sql, "", 1);
	r = sql.error ? sql.error : shards_ask(shards, sql.data, on_ends, &reading);
	if (r)
		return r;
	*out = reading.ends;
	return 0;
}

int headers_ends(struct shards *shards, const struct fleet_config *config,
		 const struct header_question *question, struct wire_span *out)
{
	/* One whose clock is ahead always has a window that ends now, though the others do not. */
	int r = ends_ask(shards, config, question, true, out);

	return r || out->until_ns ? r : ends_ask(shards, config, question, false, out);
}

/* Appends which hosts have windows in the range in a table. */
static void put_hosts_of(struct text *sql, const struct fleet_config *config,
			 const struct header_question *question, const char *table)
{
	text_put_str(sql, "SELECT host FROM ");
	text_put_str(sql, config->database);
	text_put_str(sql, ".");
	text_put_str(sql, table);
	text_put_str(sql, " WHERE kind = 0 AND ");
	headers_put_range(sql, question);
}

static int on_alone(void *user, size_t shard, char **fields, size_t n)
{
	struct reading *reading = user;

	if (n != 1)
		return -EPROTO;
	reading->n += headers_host_matches(reading->globs, tsv_text(fields[0]));
	return 0;
}

int headers_are_alone(struct shards *shards, const struct fleet_config *config,
		      const struct header_question *question, const char *other, bool *out)
{
	struct reading reading = { .globs = question->globs };
	_cleanup_(text_fini) struct text sql = {};
	int r;

	text_init(&sql, SIZE_MAX);
	put_hosts_of(&sql, config, question, question->table);
	text_put_str(&sql, " AND host NOT IN (");
	put_hosts_of(&sql, config, question, other);
	text_put_str(&sql, ") GROUP BY host");
	text_put(&sql, "", 1);
	r = sql.error ? sql.error : shards_ask(shards, sql.data, on_alone, &reading);
	*out = reading.n > 0;
	return r;
}

/* The gaps that were found so far, and the time that is covered. */
struct coverage {
	struct arena *arena;
	const struct header_question *question;
	struct wire_gap *gaps;
	size_t n, capacity;
	size_t n_unlisted;  /* gaps that did not fit */
	int64_t covered_ns; /* of all hosts together */
	int64_t used_start, used_end;
	int error;
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/*
 * Adds a gap of a host; of a shard if `host` is NULL. If the list is full, the last one is made to
 * stand for the new one, too: see gaps_join().
 */
static void gap_add(struct coverage *coverage, const char *host, int64_t start, int64_t end,
		    const char *reason)
{
	struct wire_gap *gap;

	start = clamp(start, coverage->question->since, coverage->question->until);
	end = clamp(end, coverage->question->since, coverage->question->until);
	if (end <= start + DRIFT_NS || coverage->error)
		return;
	if (coverage->n == GAPS_MAX) {
		gap = &coverage->gaps[GAPS_MAX - 1];
		gap->start = start < gap->start ? start : gap->start;
		gap->end = end > gap->end ? end : gap->end;
		coverage->n_unlisted++;
		return;
	}
	coverage->error = array_reserve(coverage->gaps, coverage->capacity, coverage->n + 1);
	if (coverage->error)
		return;
	gap = &coverage->gaps[coverage->n++];
	*gap = (struct wire_gap){ .start = start, .end = end };
	gap->reason =
		host && reason ? arena_printf(coverage->arena, "%s: %s", host, reason) : reason;
	if (!gap->reason)
		coverage->error = -ENOMEM;
}

/* Says in the last gap of a full list that it stands for those that did not fit, too. */
static void gaps_join(struct coverage *coverage)
{
	struct wire_gap *last = &coverage->gaps[coverage->n - 1];

	if (coverage->n_unlisted == 0)
		return;
	last->reason = arena_printf(coverage->arena,
				    "%zu gaps of several hosts, with windows between them: more "
				    "than are listed",
				    coverage->n_unlisted + 1);
	if (!last->reason)
		coverage->error = -ENOMEM;
}

/*
 * Returns why a host has no window from `start` to `end`; `now` is the present. NULL when out of
 * memory.
 */
static const char *gap_reason(struct arena *arena, const struct headers *headers,
			      const struct header_host *host, int64_t start, int64_t end,
			      int64_t now)
{
	int64_t ahead = headers_host_ahead(host, now);
	const char *reason = "it was not sent";
	char text[DURATION_TEXT_MAX];
	size_t i;

	for (i = host->first; i < host->first + host->n; i++) {
		const struct header *header = &headers->v[i];

		if (header->is_gap && header->start < end && header->end > start &&
		    header->reason[0])
			return header->reason;
	}
	if (host->last < 0)
		reason = "it has sent no window of this time";
	else if (start > host->last && now - end < LATE_NS)
		reason = "not sent yet";
	if (!ahead)
		return reason;
	duration_format(ahead, text);
	return arena_printf(arena, "%s; its clock is, or was, ahead by %s", reason, text);
}

/* Adds the windows and the gaps of one host. */
static void host_cover(struct coverage *coverage, const struct headers *headers,
		       const struct header_host *host, int64_t now)
{
	int64_t at = coverage->question->since, until = coverage->question->until;
	size_t i;

	for (i = host->first; i < host->first + host->n; i++) {
		const struct header *header = &headers->v[i];

		if (header->is_gap || header->is_double)
			continue;
		if (header->start > at + DRIFT_NS)
			gap_add(coverage, host->name, at, header->start,
				gap_reason(coverage->arena, headers, host, at, header->start, now));
		if (!coverage->question->middles)
			coverage->covered_ns +=
				clamp(header->end, at, until) - clamp(header->start, at, until);
		else if (!header->is_outside)
			coverage->covered_ns += header->end - header->start;
		if (!header->is_outside && header->start < coverage->used_start)
			coverage->used_start = header->start;
		if (!header->is_outside && header->end > coverage->used_end)
			coverage->used_end = header->end;
		if (header->end > at)
			at = header->end;
	}
	if (until > at + DRIFT_NS)
		gap_add(coverage, host->name, at, until,
			gap_reason(coverage->arena, headers, host, at, until, now));
}

static int gap_order(const void *x, const void *y)
{
	const struct wire_gap *a = x, *b = y;

	return (a->start > b->start) - (a->start < b->start) ?: strcmp(a->reason, b->reason);
}

static int window_order(const void *x, const void *y)
{
	const struct header *const *a = x, *const *b = y;

	return ((*a)->start > (*b)->start) - ((*a)->start < (*b)->start);
}

/* Returns how much time the windows of all hosts cover together; -ENOMEM when out of memory. */
static int64_t used_ns(const struct headers *headers)
{
	_cleanup_(freep) const struct header **order = calloc(headers->n + 1, sizeof(*order));
	int64_t end = INT64_MIN, sum = 0;
	size_t i, n = 0;

	if (!order)
		return -ENOMEM;
	for (i = 0; i < headers->n; i++)
		if (header_counts(&headers->v[i]))
			order[n++] = &headers->v[i];
	if (n)
		qsort(order, n, sizeof(*order), window_order);
	for (i = 0; i < n; i++) {
		int64_t start = order[i]->start > end ? order[i]->start : end;

		if (order[i]->end > start)
			sum += order[i]->end - start;
		if (order[i]->end > end)
			end = order[i]->end;
	}
	return sum;
}

/* Copies the gaps to the arena, in the order of time. Returns 0 or -ENOMEM. */
static int gaps_take(const struct coverage *coverage, struct wire_gaps *out)
{
	struct wire_gap *gaps = arena_array(coverage->arena, coverage->n + 1, sizeof(*gaps));

	if (!gaps || coverage->error)
		return -ENOMEM;
	if (coverage->n) {
		memcpy(gaps, coverage->gaps, coverage->n * sizeof(*gaps));
		qsort(gaps, coverage->n, sizeof(*gaps), gap_order);
	}
	*out = (struct wire_gaps){ .v = gaps, .n = coverage->n };
	return 0;
}

int headers_coverage(const struct headers *headers, const struct shards *shards,
		     const struct header_question *question, int64_t now, struct arena *arena,
		     struct wire_coverage *out)
{
	struct coverage coverage = {
		.arena = arena,
		.question = question,
		.used_start = INT64_MAX,
		.used_end = INT64_MIN,
	};
	int64_t used = used_ns(headers);
	size_t i;
	int r;

	for (i = 0; i < shards_n(shards); i++)
		if (shards_failure(shards, i))
			gap_add(&coverage, NULL, question->since, question->until,
				arena_printf(arena, "%s; its hosts are missing",
					     shards_failure(shards, i)));
	for (i = 0; i < headers->n_hosts; i++)
		host_cover(&coverage, headers, &headers->hosts[i], now);
	if (coverage.n > 0)
		gaps_join(&coverage);
	*out = (struct wire_coverage){
		.asked = { question->since, question->until },
		.used = { question->since, question->until },
		.asked_ns = question->until - question->since,
		.used_ns = used,
		.windows = (int64_t)headers->n_windows,
	};
	if (headers->n_windows)
		out->used = (struct wire_range){ coverage.used_start, coverage.used_end };
	if (headers->n_hosts)
		out->covered_ns = coverage.covered_ns / (int64_t)headers->n_hosts;
	r = used < 0 ? (int)used : gaps_take(&coverage, &out->gaps);
	free(coverage.gaps);
	return r;
}
