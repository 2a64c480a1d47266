/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "common/probe_kind.h"
#include "common/text.h"
#include "daemon/session/filter_fields.h"
#include "fleet/base/config.h"
#include "fleet/base/tsv.h"
#include "fleet/serve/answer.h"
#include "fleet/serve/groups.h"
#include "fleet/serve/headers.h"
#include "fleet/serve/internal.h"

#define DEFAULT_WINDOW_NS (30 * NS_PER_S)

/* A range up to now ends with the newest window that was sent, if that is not older than this. */
#define NEWEST_NS (15 * 60 * NS_PER_S)

/* The longest condition for the last window of each host, which a query has three times. */
enum { LAST_BYTES = 40 * 1024 };

static int invalid(struct wire_error *error, const char *field, const char *message)
{
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field, "%s", message);
}

static int unsupported(struct wire_error *error, const char *what, const char *message)
{
	return wire_error_set(error, -EOPNOTSUPP, ERROR_NOT_SUPPORTED, what, "%s", message);
}

#define OF_HOST "; ask the host itself"

/* Refuses what the tables do not have. */
static int check_supported(const struct wire_snapshot_request *request, struct wire_error *error)
{
	const struct wire_filter *filter = request->filter;

	if (request->session)
		return unsupported(error, "session", "a fleet has no sessions" OF_HOST);
	if (request->open == 1)
		return unsupported(
			error, "open",
			"a fleet has windows that have ended, not what waits now" OF_HOST);
	if (request->lines == 1)
		return unsupported(error, "lines", "a fleet has no source lines" OF_HOST);
	if (request->build_ids == 1)
		return unsupported(error, "build_ids", "a fleet has no build-ids" OF_HOST);
	if (!filter)
		return 0;
	if (filter->tids.n)
		return unsupported(error, "tids", "a fleet has processes, no threads" OF_HOST);
	if (filter->functions.n || filter->not_functions.n || filter->callers.n)
		return unsupported(error, "functions",
				   "a fleet's rows cannot be selected by functions" OF_HOST);
	if (filter->min_block_ns != WIRE_ABSENT || filter->max_block_ns != WIRE_ABSENT)
		return unsupported(error, "min_block_ns",
				   "a fleet has sums of waits, not their lengths" OF_HOST);
	return 0;
}

static int parse_by(const char *by, struct groups_question *question, struct wire_error *error)
{
	question->by = GROUPS_BY_STACK;
	question->name = GROUP_BY_NONE;
	if (!by || strcmp(by, "stack") == 0)
		return 0;
	question->by = GROUPS_BY_PROCESS;
	if (strcmp(by, "process") == 0)
		return 0;
	question->by = GROUPS_BY_HOST;
	if (strcmp(by, "host") == 0)
		return 0;
	question->by = GROUPS_BY_LINE;
	if (strcmp(by, "line") == 0)
		return 0;
	if (strcmp(by, "thread") == 0)
		return unsupported(error, "by", "a fleet has processes, no threads" OF_HOST);
	question->by = GROUPS_BY_NAME;
	question->name = group_by_parse(by);
	return question->name
		       ? 0
		       : invalid(error, "by",
				 "rows are by stack, process, comm, cgroup, unit, container, "
				 "user, module, function, reason, line or host");
}

static int parse_order(const char *sort, struct groups_question *question, struct wire_error *error)
{
	question->order = GROUPS_BY_TOTAL;
	if (!sort || strcmp(sort, "total") == 0)
		return 0;
	question->order = GROUPS_BY_MAX;
	if (strcmp(sort, "max") == 0)
		return question->is_sampled ? invalid(error, "sort",
						      "oncpu has no waits, so none is the longest")
					    : 0;
	question->order = GROUPS_BY_COUNT;
	return strcmp(sort, "count") == 0
		       ? 0
		       : invalid(error, "sort", "the order is total, max or count");
}

/* Sets the probe of the question. Only these have rows in the tables. */
static int parse_probe(const char *name, enum probe_kind *kind_out, struct wire_error *error)
{
	if (!name)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_PARAMETER, "probe",
				      "no probe is given");
	if (!probe_kind_find(name, kind_out))
		return wire_error_set(error, -EINVAL, ERROR_UNKNOWN_PROBE, name,
				      "there is no probe %.40s", name);
	if (*kind_out != PROBE_OFFCPU && *kind_out != PROBE_ONCPU)
		return unsupported(error, "probe", "a fleet has offcpu and oncpu" OF_HOST);
	return 0;
}

/* True if the globs select one host by its name. */
static bool is_one_host(const struct wire_strs *globs)
{
	return globs->n == 1 && !strpbrk(globs->v[0], "*?[");
}

static int question_init(struct snapshot *snapshot, struct wire_error *error)
{
	const struct wire_snapshot_request *request = snapshot->request;
	struct groups_question *question = &snapshot->question;
	enum probe_kind kind;
	int r = check_supported(request, error);

	if (r)
		return r;
	r = parse_probe(request->probe, &kind, error);
	if (r)
		return r;
	if (request->filter) {
		snapshot->filter = *request->filter;
		snapshot->hosts = request->filter->hosts;
	}
	/* The daemon's rules for filters know no hosts. */
	snapshot->filter.hosts = (struct wire_strs){};
	if (request->top != WIRE_ABSENT && request->top < 0)
		return invalid(error, "top", "a negative number of rows; 0 means all");
	if (snapshot->hosts.n > FILTER_LIST_MAX)
		return invalid(error, "hosts", "at most 32 patterns");
	question->is_sampled = kind == PROBE_ONCPU;
	question->is_one_host = is_one_host(&snapshot->hosts);
	if (request->filter) {
		r = filter_fields_check(&snapshot->filter, kind, FILTER_OF_QUERY, error);
		if (r)
			return r;
		r = filter_init(&question->filter, &snapshot->filter, error);
		if (r)
			return r;
	}
	r = parse_by(request->by, question, error);
	if (r)
		return r;
	if (question->name == GROUP_BY_REASON && question->is_sampled)
		return invalid(error, "by", "oncpu has no waits that have a reason");
	r = parse_order(request->sort, question, error);
	if (r)
		return r;
	question->folds_own = request->fold_own == 1 && !filter_selects_threads(&question->filter);
	question->has_idle_last = request->idle == WIRE_BOOL_ABSENT;
	snapshot->with_idle = request->idle == WIRE_BOOL_ABSENT
				      ? filter_selects_threads(&question->filter)
				      : request->idle == 1;
	return 0;
}

/* Returns the table to ask if this one has nothing: a host may send to only one of them. */
static const char *other_table(const char *table)
{
	return strcmp(table, "rows") == 0 ? "rows60" : "rows";
}

/*
 * Chooses the table of the windows by the length of the range, or of the part of it in which
 * something was sent: minutes lack the last one, which has not ended, and of a short past that is
 * much. But a host that sends minutes alone must not get lost: minutes are asked of all then.
 */
static int table_choose(struct snapshot *snapshot)
{
	struct header_question *range = &snapshot->range;
	bool is_one = snapshot->question.is_one_host;
	struct wire_span sent = {};
	bool is_alone = false;
	int r;

	range->table = headers_table(range->until - range->since, is_one);
	if (strcmp(range->table, "rows") == 0)
		return 0;
	r = headers_ends(snapshot->answer->shards, snapshot->answer->config, range, &sent);
	if (r || !sent.until_ns ||
	    strcmp(headers_table(range->until - sent.since_ns, is_one), "rows") != 0)
		return r;
	r = headers_are_alone(snapshot->answer->shards, snapshot->answer->config, range, "rows",
			      &is_alone);
	if (!r && !is_alone)
		range->table = "rows";
	return r;
}

/*
 * Ends a range up to now with the newest window that was sent: senders are some time behind. A
 * range that has only a length keeps it.
 */
static int range_align(struct snapshot *snapshot, bool is_length)
{
	struct header_question *range = &snapshot->range;
	struct header_question lately = *range;
	struct wire_span sent = {};
	int64_t newest;
	int r;

	lately.since = range->until - NEWEST_NS;
	r = headers_ends(snapshot->answer->shards, snapshot->answer->config, &lately, &sent);
	if (r)
		return r;
	if (!sent.until_ns) {
		lately.table = other_table(lately.table);
		r = headers_ends(snapshot->answer->shards, snapshot->answer->config, &lately,
				 &sent);
		if (r)
			return r;
	}
	newest = sent.until_ns;
	if (!newest || newest >= range->until || (!is_length && newest <= range->since))
		return 0;
	if (is_length)
		range->since -= range->until - newest;
	snapshot->behind_ns = range->until - newest;
	range->until = newest;
	return 0;
}

static int invalid_time(struct wire_error *error, const char *field, const char *message)
{
	return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, field, "%s: %s", field, message);
}

static int range_check(int64_t since, int64_t until, struct wire_error *error)
{
	if (since < 0 || until < 0)
		return invalid_time(error, since < 0 ? "since_ns" : "until_ns",
				    "a negative time: nanoseconds since 1970 are wanted");
	return since < until ? 0 : invalid_time(error, "since_ns", "must be before until_ns");
}

/* Sets the range of the question to that of a slice. */
static void range_set_slice(struct snapshot *snapshot)
{
	const struct fleet_question *asked = snapshot->asked;

	snapshot->range = (struct header_question){
		.probe = snapshot->request->probe,
		.table = asked->table,
		.since = asked->slice->range.since_ns,
		.until = asked->slice->range.until_ns,
		.globs = &snapshot->hosts,
		.middles = &asked->slice->middles,
	};
}

/* Sets the range of the question from the request, as the daemon does. */
static int range_init(struct snapshot *snapshot, struct wire_error *error)
{
	const struct wire_snapshot_request *request = snapshot->request;
	size_t n = snapshot->asked->range;
	int64_t since = request->since_ns, until = request->until_ns, length = DEFAULT_WINDOW_NS;
	bool is_to_now, is_length;
	int r;

	if (request->ranges.n) {
		since = request->ranges.v[n].since_ns;
		until = request->ranges.v[n].until_ns;
	}
	if (request->window_ns != WIRE_ABSENT) {
		if (since != WIRE_ABSENT || until != WIRE_ABSENT)
			return invalid_time(error, "window_ns",
					    "either a length up to now, or since and until");
		if (request->window_ns <= 0)
			return invalid_time(error, "window_ns", "must be more than 0");
		length = request->window_ns;
	}
	if (since != WIRE_ABSENT && since > snapshot->now)
		return invalid_time(error, "since_ns", "is in the future");
	is_to_now = until == WIRE_ABSENT || until >= snapshot->now;
	is_length = since == WIRE_ABSENT;
	until = is_to_now ? snapshot->now : until;
	since = !is_length ? since : until > length ? until - length : 0;
	r = range_check(since, until, error);
	if (r)
		return r;
	snapshot->range = (struct header_question){
		.probe = request->probe,
		.since = since,
		.until = until,
		.globs = &snapshot->hosts,
	};
	r = table_choose(snapshot);
	return r || !is_to_now ? r : range_align(snapshot, is_length);
}

/* Leaves out a first and a last window of which less than half is in the time of the waits. */
static void follow_waits(struct snapshot *snapshot)
{
	if (!snapshot->asked->is_of_overview || !snapshot->question.is_sampled)
		return;
	snapshot->middles = (struct wire_span){ snapshot->range.since, snapshot->range.until };
	snapshot->range.middles = &snapshot->middles;
}

/* Reads the headers from the table that suits the range; from the other one if that has none. */
static int read_headers(struct snapshot *snapshot)
{
	struct header_question *range = &snapshot->range;
	struct fleet_answer *answer = snapshot->answer;
	int r;

	r = headers_read(answer->shards, answer->config, range, answer->arena, &snapshot->headers);
	if (r || snapshot->headers.n_windows || snapshot->asked->slice)
		return r;
	range->table = other_table(range->table);
	return headers_read(answer->shards, answer->config, range, answer->arena,
			    &snapshot->headers);
}

/* Appends the names of the hosts that have windows, for IN. */
static void put_hosts(struct text *sql, const struct headers *headers)
{
	size_t i, n = 0;

	for (i = 0; i < headers->n_hosts; i++) {
		if (headers->hosts[i].last < 0)
			continue;
		text_put_str(sql, n++ ? ", " : "");
		sql_put_text(sql, headers->hosts[i].name);
	}
}

/* Appends a condition that leaves out the windows that were sent before. */
static void put_doubles(struct text *sql, const struct headers *headers)
{
	size_t i, n = 0;

	if (!headers->n_double)
		return;
	text_put_str(sql, " AND (host, start, attempt) NOT IN (");
	for (i = 0; i < headers->n; i++) {
		if (!headers->v[i].is_double)
			continue;
		text_put_str(sql, n++ ? ", (" : "(");
		sql_put_text(sql, headers->v[i].host);
		text_put_str(sql, ", ");
		text_put_int(sql, headers->v[i].start);
		text_put_str(sql, ", ");
		tsv_put_uint(sql, headers->v[i].attempt);
		text_put_str(sql, ")");
	}
	text_put_str(sql, ")");
}

/* Appends a condition for the rows of the last window of each host. */
static void put_last(struct text *sql, const struct headers *headers)
{
	size_t i, n = 0;

	text_put_str(sql, "(host, start) IN (");
	for (i = 0; i < headers->n_hosts; i++) {
		if (headers->hosts[i].last < 0)
			continue;
		text_put_str(sql, n++ ? ", (" : "(");
		sql_put_text(sql, headers->hosts[i].name);
		text_put_str(sql, ", ");
		text_put_int(sql, headers->hosts[i].last);
		text_put_str(sql, ")");
	}
	text_put_str(sql, ")");
}

/* Writes the query. Returns 0, -EMSGSIZE if it is too long for a server, or -ENOMEM. */
static int put_groups_query(struct snapshot *snapshot, struct text *sql)
{
	const struct headers *headers = &snapshot->headers;
	_cleanup_(text_fini) struct text last = {};

	text_init(&last, SIZE_MAX);
	put_last(&last, headers);
	text_put(&last, "", 1);
	if (last.error)
		return last.error;
	/* With many hosts, the condition would be too long: a note says what is not counted. */
	snapshot->lacks_open = last.len > LAST_BYTES;
	groups_put_select(sql, &snapshot->question, snapshot->lacks_open ? "0" : last.data);
	text_put_str(sql, " FROM ");
	text_put_str(sql, snapshot->answer->config->database);
	text_put_str(sql, ".");
	text_put_str(sql, snapshot->range.table);
	text_put_str(sql, " WHERE kind IN (1, 2, 3) AND ");
	headers_put_range(sql, &snapshot->range);
	headers_put_middles(sql, &snapshot->range);
	if (snapshot->hosts.n) {
		text_put_str(sql, " AND host IN (");
		put_hosts(sql, headers);
		text_put_str(sql, ")");
	}
	put_doubles(sql, headers);
	groups_put_filter(sql, &snapshot->question);
	groups_put_group_by(sql, &snapshot->question);
	text_put(sql, "", 1);
	return sql->error;
}

static int on_group(void *user, size_t shard, char **fields, size_t n)
{
	struct groups *parts = user;

	return groups_add(&parts[shard], fields, n);
}

/* Merges the groups of the shards that have answered. */
static int merge_groups(struct snapshot *snapshot, struct groups *parts)
{
	struct shards *shards = snapshot->answer->shards;
	size_t i;
	int r = 0;

	for (i = 0; i < shards_n(shards); i++) {
		if (!r && !shards_failure(shards, i))
			r = groups_merge(&snapshot->groups, &parts[i]);
		groups_fini(&parts[i]);
	}
	return r;
}

static int read_groups(struct snapshot *snapshot)
{
	struct fleet_answer *answer = snapshot->answer;
	_cleanup_(text_fini) struct text sql = {};
	size_t i, n = shards_n(answer->shards), n_all = 0;
	struct groups *parts = arena_array(answer->arena, n + 1, sizeof(*parts));
	int r, merged;

	if (!parts)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		parts[i] = (struct groups){
			.question = &snapshot->question,
			.arena = answer->arena,
			.n_all = &n_all,
		};
	text_init(&sql, QUERY_BYTES);
	r = put_groups_query(snapshot, &sql);
	if (!r)
		r = shards_ask(answer->shards, sql.data, on_group, parts);
	merged = merge_groups(snapshot, parts);
	if (!r)
		r = merged;
	/* A shard may have failed since it sent its headers. */
	return r ? r
		 : headers_settle(&snapshot->headers, answer->shards, &snapshot->range,
				  answer->arena);
}

/* Fills *error with why there is no window in the range. */
static int no_data(const struct snapshot *snapshot, struct wire_error *error)
{
	const struct headers *headers = &snapshot->headers;
	struct shards *shards = snapshot->answer->shards;
	char ahead[DURATION_TEXT_MAX];
	size_t i;

	for (i = 0; i < shards_n(shards); i++)
		if (shards_failure(shards, i))
			return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range", "%s",
					      shards_failure(shards, i));
	if (!headers->n_hosts && snapshot->hosts.n)
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "filter",
				      "no host of this name has sent anything in a day before the "
				      "range, or since");
	for (i = 0; i < headers->n_hosts; i++) {
		if (!headers_host_ahead(&headers->hosts[i], snapshot->now))
			continue;
		duration_format(headers_host_ahead(&headers->hosts[i], snapshot->now), ahead);
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "no window of the range was sent; the clock of %s is, or "
				      "was, ahead by %s",
				      headers->hosts[i].name, ahead);
	}
	return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
			      "no window of %s in the range was sent by any of %zu hosts",
			      snapshot->range.probe, headers->n_hosts);
}

/* Says what is too much for one answer. */
static int too_much(struct snapshot *snapshot, enum fleet_limit limit, struct wire_error *error)
{
	return fleet_limit_refuse(snapshot->answer->limits, limit, "range", error);
}

/* True if what is missing is said in the answer, as others follow it. */
static bool is_one_of_several(const struct fleet_question *asked)
{
	return asked->slice || asked->request->ranges.n;
}

/*
 * True if the answer ends with an error because the filter selects no thread, as that of a host.
 * The samples of an overview are then just none, and so are its waits if there are samples.
 */
static bool lacks_threads(const struct snapshot *snapshot)
{
	return !snapshot->groups.has_threads &&
	       filter_selects_threads(&snapshot->question.filter) &&
	       !is_one_of_several(snapshot->asked) && !snapshot->asked->may_lack_threads &&
	       !snapshot->range.middles;
}

static int snapshot_read(struct snapshot *snapshot, struct wire_error *error)
{
	int r = read_headers(snapshot);

	if (!r && !snapshot->headers.n_windows)
		return no_data(snapshot, error);
	if (r)
		return r == -E2BIG ? too_much(snapshot, FLEET_HEADERS, error) : r;
	if (snapshot->hosts.n && snapshot->headers.n_hosts > HOSTS_MAX)
		return too_much(snapshot, FLEET_HOSTS, error);
	if (snapshot->headers.n_double > TWICE_MAX)
		return too_much(snapshot, FLEET_TWICE, error);
	r = read_groups(snapshot);
	if (r == -E2BIG || r == -EMSGSIZE)
		return too_much(snapshot, r == -E2BIG ? FLEET_GROUPS : FLEET_QUERY, error);
	if (!r && !snapshot->headers.n_windows)
		return no_data(snapshot, error);
	if (!r && lacks_threads(snapshot))
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "filter",
				      "nothing that the filter selects was sent of the range%s",
				      snapshot_lacks_processes(snapshot)
					      ? "; small rows were sent as sums of several "
						"processes, which have neither pids nor names"
					      : "");
	return r;
}

/* An answer to one of several ranges says what is missing, in place of an error. */
static int range_is_missing(struct snapshot *snapshot, struct wire_error *error)
{
	struct wire_snapshot_reply *reply = &snapshot->answer->reply.snapshot;

	reply->missing = arena_strdup(snapshot->answer->arena, error->message);
	wire_error_clear(error);
	snapshot->headers.n_windows = 0;
	return reply->missing ? 0 : -ENOMEM;
}

/* Prepares the question that a request asks. */
static int snapshot_init(struct snapshot *snapshot, struct fleet_answer *answer,
			 const struct fleet_question *asked, struct wire_error *error)
{
	int r;

	*snapshot = (struct snapshot){
		.answer = answer,
		.asked = asked,
		.request = asked->request,
		.now = clock_ns(CLOCK_REALTIME),
		.question.filter.max_ns = INT64_MAX,
	};
	r = question_init(snapshot, error);
	snapshot->groups = (struct groups){
		.question = &snapshot->question,
		.arena = answer->arena,
	};
	if (r)
		return r;
	if (asked->slice)
		range_set_slice(snapshot);
	else
		r = range_init(snapshot, error);
	if (!r)
		follow_waits(snapshot);
	return r;
}

int fleet_snapshot(struct fleet_answer *answer, const struct fleet_question *question,
		   struct wire_error *error)
{
	struct snapshot snapshot;
	int r = snapshot_init(&snapshot, answer, question, error);

	if (!r)
		r = snapshot_read(&snapshot, error);
	if (r == -ENODATA && is_one_of_several(question) && error->code == ERROR_NO_DATA)
		r = range_is_missing(&snapshot, error);
	if (!r)
		r = snapshot_reply_make(&snapshot);
	groups_fini(&snapshot.groups);
	return r;
}

int fleet_slices(struct fleet_answer *answer, const struct wire_snapshot_request *request,
		 struct fleet_slices *out, struct wire_error *error)
{
	const struct fleet_question asked = { .request = request };
	struct snapshot snapshot;
	int r;

	*out = (struct fleet_slices){};
	if (request->ranges.n)
		return invalid_time(error, "each_ns", "not with ranges");
	if (request->each_ns < 0)
		return invalid_time(error, "each_ns", "must not be negative");
	r = snapshot_init(&snapshot, answer, &asked, error);
	if (!r)
		r = read_headers(&snapshot);
	if (r == -E2BIG)
		return too_much(&snapshot, FLEET_HEADERS, error);
	if (r)
		return r;
	if (!snapshot.headers.n_windows)
		return no_data(&snapshot, error);
	r = fleet_slices_make(&snapshot.headers, &snapshot.range, request->each_ns, out);
	return r == -E2BIG ? fleet_limit_refuse(answer->limits, FLEET_SLICES, "each_ns", error) : r;
}
