/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/send/sender.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/base.h"
#include "common/hash_table.h"
#include "fleet/base/schema.h"
#include "fleet/base/stack_hash.h"
#include "fleet/base/tsv.h"
#include "fleet/send/block.h"
#include "fleet/send/local.h"
#include "fleet/send/plan.h"

#define MINUTE_NS (60 * NS_PER_S)

/* A minute waits this long for its last window, if no later window is there. */
#define LATE_NS (30 * NS_PER_S)

/* The server keeps windows as recorded for 3 days: older ones would be sent again for ever. */
#define WINDOWS_NS (2 * 24 * 60 * MINUTE_NS)

/*
 * Windows of the daemon that begin before the time that is compared may be so long: what the server
 * has of them has to be known, or a part that is there would be called missing.
 */
#define LONGEST_NS (60 * MINUTE_NS)

/* An insert has at most this many bytes, and one more window. */
enum { BATCH_BYTES = 4 * 1024 * 1024 };

/* The ids of this many stacks that were sent are known; then stacks are sent again. */
enum { STACKS_MAX = 65536 };

/* What a boot is called whose id is not known. */
#define NO_BOOT "00000000-0000-0000-0000-000000000000"

/* A table that windows go into. */
enum tier { TIER_WINDOWS, TIER_MINUTES, TIER_UNITS, TIERS };

static const struct {
	const char *word; /* in the setting */
	const char *table;
	const char *columns;
} tiers[TIERS] = {
	[TIER_WINDOWS] = { "5s", "rows", block_columns },
	[TIER_MINUTES] = { "1min", "rows60", block_columns },
	[TIER_UNITS] = { "units", "units", block_unit_columns },
};

/* What goes into one table with the next insert, and for which stretches it is. */
struct batch {
	struct text rows;
	int64_t partition;
	uint64_t n_rows;
	struct plan_span *spans;
	size_t n_spans, capacity;
};

/* The id of a stack that was sent. */
struct sent {
	uint64_t id;
	UT_hash_handle hh;
};

struct sender {
	const struct fleet_config *config;
	const volatile sig_atomic_t *stop;
	struct clickhouse *clickhouse;
	bool has_tier[TIERS];
	bool is_compared;		 /* `known` is what the server has */
	int64_t compared_ns;		 /* when, on the monotonic clock */
	bool is_checked;		 /* the tables have the right version */
	struct plan_spans *known[TIERS]; /* of each probe */
	char boot[40];
	int64_t boot_ns; /* when this boot began */
	struct batch batches[TIERS];
	struct text stacks;
	struct sent *sent;
	int64_t sent_day; /* the day on which the first of these were sent */
	uint64_t attempt;
	int64_t lost_ns; /* the end of the last time of which windows were not sent, see plan.lost
			  */
	struct sender_stats stats;
};

static int fail(struct fleet_error *error, int r, const char *what, const char *text)
{
	snprintf(error->text, sizeof(error->text), "%.200s: %.300s", what,
		 text && text[0] ? text : strerror(-r));
	return r;
}

/* Reads the words of the setting [send] tiers. */
static int tiers_read(struct sender *sender, struct fleet_error *error)
{
	const struct fleet_words *words = &sender->config->tiers;

	for (size_t i = 0; i < words->n; i++) {
		enum tier tier = 0;

		while (tier < TIERS && strcmp(tiers[tier].word, words->v[i]) != 0)
			tier++;
		if (tier == TIERS)
			return fail(error, -EINVAL, "[send] tiers",
				    "the words are 5s, 1min and units");
		sender->has_tier[tier] = true;
	}
	return 0;
}

/* Checks the words of the setting [send] probes. */
static int probes_check(const struct fleet_words *words, struct fleet_error *error)
{
	for (size_t i = 0; i < words->n; i++) {
		if (strcmp(words->v[i], "offcpu") != 0 && strcmp(words->v[i], "oncpu") != 0)
			return fail(error, -EINVAL, "[send] probes",
				    "the words are offcpu and oncpu");
		for (size_t k = 0; k < i; k++)
			if (strcmp(words->v[i], words->v[k]) == 0)
				return fail(error, -EINVAL, "[send] probes",
					    "a word is there twice");
	}
	return 0;
}

int sender_new(const struct fleet_config *config, const volatile sig_atomic_t *stop,
	       struct sender **out, struct fleet_error *error)
{
	size_t shard = clickhouse_shard_of(config->host, config->url.n);
	const struct clickhouse_address address = fleet_config_address(config, shard);
	_cleanup_(sender_freep) struct sender *sender = calloc(1, sizeof(*sender));
	struct clickhouse_error fault = { 0 };
	int r;

	if (!sender)
		return fail(error, -ENOMEM, "stackd-fleet", NULL);
	sender->config = config;
	sender->stop = stop;
	sender->attempt = (uint64_t)clock_ns(CLOCK_REALTIME);
	text_init(&sender->stacks, SIZE_MAX);
	for (enum tier tier = 0; tier < TIERS; tier++) {
		text_init(&sender->batches[tier].rows, SIZE_MAX);
		sender->known[tier] = calloc(config->probes.n + 1, sizeof(*sender->known[tier]));
		if (!sender->known[tier])
			return fail(error, -ENOMEM, "stackd-fleet", NULL);
	}
	r = tiers_read(sender, error);
	if (r < 0)
		return r;
	r = probes_check(&config->probes, error);
	if (r < 0)
		return r;
	r = clickhouse_new(&address, &sender->clickhouse, &fault);
	if (r < 0)
		return fail(error, r, address.url, fault.text);
	*out = TAKE(sender);
	return 0;
}

/* Forgets which stacks were sent. */
static void sent_clear(struct sender *sender)
{
	struct sent *sent, *next;

	HASH_ITER (hh, sender->sent, sent, next) {
		HASH_DEL(sender->sent, sent);
		free(sent);
	}
}

void sender_freep(struct sender **out)
{
	struct sender *sender = *out;

	if (!sender)
		return;
	for (enum tier tier = 0; tier < TIERS; tier++) {
		for (size_t i = 0; sender->known[tier] && i < sender->config->probes.n; i++)
			free(sender->known[tier][i].v);
		free(sender->known[tier]);
		text_fini(&sender->batches[tier].rows);
		free(sender->batches[tier].spans);
	}
	sent_clear(sender);
	text_fini(&sender->stacks);
	clickhouse_free(sender->clickhouse);
	free(sender);
}

const struct sender_stats *sender_stats(const struct sender *sender)
{
	return &sender->stats;
}

/* Fails with what the server said. */
static int server_fail(const struct sender *sender, int r, const struct clickhouse_error *fault,
		       struct fleet_error *error)
{
	const struct fleet_config *config = sender->config;

	return fail(error, r, config->url.v[clickhouse_shard_of(config->host, config->url.n)],
		    fault->text);
}

/* Appends a span to a list that is ordered by start, and stays so. */
static int span_add(struct plan_spans *spans, int64_t start, int64_t end)
{
	int r = array_reserve(spans->v, spans->capacity, spans->n + 1);
	size_t i = spans->n;

	if (r < 0)
		return r;
	while (i > 0 && spans->v[i - 1].start_ns > start)
		i--;
	memmove(&spans->v[i + 1], &spans->v[i], (spans->n - i) * sizeof(*spans->v));
	spans->v[i] = (struct plan_span){ start, end };
	spans->n++;
	return 0;
}

static int on_span(void *user, char **fields, size_t n)
{
	uint64_t start, end;

	if (n != 2 || tsv_uint(fields[0], &start) < 0 || tsv_uint(fields[1], &end) < 0 ||
	    start >= INT64_MAX || end >= INT64_MAX)
		return -EPROTO;
	return span_add(user, (int64_t)start, (int64_t)end);
}

/* Asks the server for the headers and gaps of one probe in one table. */
static int known_read(struct sender *sender, enum tier tier, size_t probe, int64_t since,
		      struct fleet_error *error)
{
	struct plan_spans *known = &sender->known[tier][probe];
	struct clickhouse_error fault = { 0 };
	_cleanup_(text_fini) struct text sql = {};
	int r;

	free(known->v);
	*known = (struct plan_spans){ 0 };
	text_init(&sql, SIZE_MAX);
	text_put_str(&sql, "SELECT start, end FROM ");
	text_put_str(&sql, tiers[tier].table);
	text_put_str(&sql, " WHERE kind IN (0, 4) AND probe = ");
	sql_put_text(&sql, sender->config->probes.v[probe]);
	text_put_str(&sql, " AND host = ");
	sql_put_text(&sql, sender->config->host);
	text_put_str(&sql, " AND end > ");
	text_put_int(&sql, since);
	text_put_str(&sql, " ORDER BY start");
	text_put(&sql, "", 1);
	r = sql.error ? sql.error
		      : clickhouse_query(sender->clickhouse, sql.data, on_span, known, &fault);
	return r < 0 ? server_fail(sender, r, &fault, error) : 0;
}

/* Posts rows to a table. */
static int insert(struct sender *sender, const char *table, const char *columns,
		  const struct text *rows, struct fleet_error *error)
{
	struct clickhouse_error fault = { 0 };
	_cleanup_(text_fini) struct text into = {};
	int r;

	text_init(&into, SIZE_MAX);
	text_put_str(&into, table);
	text_put_str(&into, " (");
	text_put_str(&into, columns);
	text_put(&into, ")", 2);
	r = rows->error ? rows->error : into.error;
	r = r < 0 ? r : clickhouse_insert(sender->clickhouse, into.data, rows, &fault);
	return r < 0 ? server_fail(sender, r, &fault, error) : 0;
}

/* Writes what is known about this host. */
static int host_insert(struct sender *sender, const struct wire_status_reply *status,
		       struct fleet_error *error)
{
	const struct fleet_config *config = sender->config;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const char *const texts[] = { config->host, sender->boot, status->kernel, status->version };
	_cleanup_(text_fini) struct text row = {};

	text_init(&row, SIZE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		tsv_put(&row, texts[i]);
		text_put(&row, "\t", 1);
	}
	text_put_int(&row, cpus > 0 ? cpus : 0);
	text_put(&row, "\t", 1);
	text_put_int(&row, status->window_ns);
	text_put(&row, "\t", 1);
	tsv_put_strings(&row, &(struct wire_strs){ (const char *const *)config->probes.v,
						   config->probes.n });
	for (int is_value = 0; is_value < 2; is_value++) {
		text_put_str(&row, "\t[");
		for (size_t i = 0; i < config->labels.n; i++) {
			const char *label = config->labels.v[i], *equals = strchr(label, '=');
			_cleanup_(freep) char *name =
				strndup(label, equals ? (size_t)(equals - label) : strlen(label));

			text_put_str(&row, i > 0 ? "," : "");
			tsv_put_quoted(&row, is_value ? (equals ? equals + 1 : "") : name);
		}
		text_put_str(&row, "]");
	}
	text_put(&row, "\t", 1);
	text_put_int(&row, clock_ns(CLOCK_REALTIME) / NS_PER_S);
	text_put(&row, "\n", 1);
	return insert(sender, "hosts", block_host_columns, &row, error);
}

/* Asks the server what it has, and tells it about this host. */
static int compare(struct sender *sender, int64_t since, const struct wire_status_reply *status,
		   struct fleet_error *error)
{
	struct clickhouse_error fault = { 0 };
	int r;

	if (!sender->is_checked) {
		r = schema_check(sender->clickhouse, sender->config->database, &fault);
		if (r < 0)
			return server_fail(sender, r, &fault, error);
		sender->is_checked = true;
	}
	for (enum tier tier = 0; tier < TIERS; tier++)
		for (size_t i = 0; sender->has_tier[tier] && i < sender->config->probes.n; i++) {
			r = known_read(sender, tier, i, since - LONGEST_NS, error);
			if (r < 0)
				return r;
		}
	r = host_insert(sender, status, error);
	if (r < 0)
		return r;
	sender->is_compared = true;
	sender->compared_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static void batch_clear(struct batch *batch)
{
	text_reset(&batch->rows);
	batch->n_spans = 0;
	batch->n_rows = 0;
}

/*
 * Sends the stacks that are waiting, then the rows of one table, which refer to them. After a
 * failure, pending_drop() has to be called.
 */
static int flush(struct sender *sender, enum tier tier, size_t probe, struct fleet_error *error)
{
	struct batch *batch = &sender->batches[tier];
	int r;

	if (sender->stacks.len > 0) {
		r = insert(sender, "stacks", block_stack_columns, &sender->stacks, error);
		if (r < 0)
			return r;
		sender->stats.bytes += sender->stacks.len;
		text_reset(&sender->stacks);
	}
	if (batch->n_spans == 0)
		return 0;
	r = insert(sender, tiers[tier].table, tiers[tier].columns, &batch->rows, error);
	if (r < 0)
		return r;
	sender->stats.bytes += batch->rows.len;
	for (size_t i = 0; i < batch->n_spans; i++) {
		r = span_add(&sender->known[tier][probe], batch->spans[i].start_ns,
			     batch->spans[i].end_ns);
		if (r < 0)
			return r;
	}
	sender->stats.rows += batch->n_rows;
	batch_clear(batch);
	return 0;
}

/* Forgets what waits to be sent, and which stacks were sent. */
static void pending_drop(struct sender *sender)
{
	for (enum tier tier = 0; tier < TIERS; tier++)
		batch_clear(&sender->batches[tier]);
	text_reset(&sender->stacks);
	sent_clear(sender);
}

/* Returns the number of the partition of a table that a time is in. */
static int64_t partition_of(enum tier tier, int64_t ns)
{
	return tier == TIER_WINDOWS   ? block_day(ns)
	       : tier == TIER_MINUTES ? block_week(ns)
				      : block_month(ns);
}

/*
 * Makes room in the batch of a table for a stretch, and notes that it is in the batch: flushes what
 * is there if that is in another partition, or large, or if many stacks wait.
 */
static int batch_take(struct sender *sender, enum tier tier, size_t probe, int64_t start,
		      int64_t end, struct fleet_error *error)
{
	struct batch *batch = &sender->batches[tier];
	int64_t partition = partition_of(tier, start);
	int r;

	if ((batch->n_spans > 0 &&
	     (batch->partition != partition || batch->rows.len >= BATCH_BYTES)) ||
	    sender->stacks.len >= BATCH_BYTES) {
		r = flush(sender, tier, probe, error);
		if (r < 0)
			return r;
	}
	r = array_reserve(batch->spans, batch->capacity, batch->n_spans + 1);
	if (r < 0)
		return r;
	batch->partition = partition;
	batch->spans[batch->n_spans++] = (struct plan_span){ start, end };
	return 0;
}

/* Adds a stack to those that will be sent, unless it was sent. */
static int stack_take(struct sender *sender, const struct wire_stack *stack)
{
	struct sent *sent;
	uint64_t id;

	if (!stack)
		return 0;
	id = stack_hash(stack);
	if (!id)
		return -ENOMEM;
	HASH_FIND(hh, sender->sent, &id, sizeof(id), sent);
	if (sent)
		return 0;
	if (HASH_COUNT(sender->sent) >= STACKS_MAX)
		sent_clear(sender);
	sent = calloc(1, sizeof(*sent));
	if (!sent)
		return -ENOMEM;
	sent->id = id;
	HASH_ADD(hh, sender->sent, id, sizeof(sent->id), sent);
	if (!HASH_HAS(sent)) {
		free(sent);
		return -ENOMEM;
	}
	sender->stats.stacks++;
	return block_put_stack(stack, id, block_day(clock_ns(CLOCK_REALTIME)), &sender->stacks);
}

static int stacks_take(struct sender *sender, const struct fleet_rows *rows)
{
	int64_t day = block_day(clock_ns(CLOCK_REALTIME));
	int r;

	/* A stack in use is sent each day, so that the server does not remove it as an old one. */
	if (day != sender->sent_day)
		sent_clear(sender);
	sender->sent_day = day;
	for (size_t i = 0; i < rows->n; i++) {
		r = stack_take(sender, rows->v[i].wire.kernel);
		if (r < 0)
			return r;
		r = stack_take(sender, rows->v[i].wire.user);
		if (r < 0)
			return r;
	}
	return 0;
}

/* True if the answer is about the stretch that was asked for, and nothing else. */
static bool is_exact(const struct wire_snapshot_reply *reply, const struct plan_item *item)
{
	return reply->coverage.used.start == item->start_ns &&
	       reply->coverage.used.end == item->end_ns;
}

static struct block_key key_of(struct sender *sender, size_t probe, const struct plan_item *item)
{
	return (struct block_key){
		.start_ns = item->start_ns,
		.end_ns = item->end_ns,
		.host = sender->config->host,
		.boot = item->start_ns >= sender->boot_ns ? sender->boot : NO_BOOT,
		.probe = sender->config->probes.v[probe],
		.attempt = ++sender->attempt,
		.seq = (uint64_t)item->seq,
	};
}

/* Puts the rows of an answer into the batch of one table. */
static int rows_put(struct sender *sender, enum tier tier, const struct block_key *key,
		    const struct wire_snapshot_reply *reply, const struct fleet_rows *rows,
		    struct arena *arena)
{
	struct batch *batch = &sender->batches[tier];
	struct fleet_rows units;
	int r;

	batch->n_rows += rows->n;
	if (tier == TIER_UNITS) {
		r = fold_units(rows, arena, &units);
		return r < 0 ? r : block_put_units(key, reply, &units, &batch->rows);
	}
	r = stacks_take(sender, rows);
	return r < 0 ? r : block_put(key, reply, rows, &batch->rows);
}

/* Puts an answer into the batches of those tables that lack it. */
static int answer_put(struct sender *sender, size_t probe, const struct plan_item *item,
		      const bool wanted[TIERS], const struct wire_snapshot_reply *reply,
		      struct arena *arena, struct fleet_error *error)
{
	const struct fleet_config *config = sender->config;
	const struct block_key key = key_of(sender, probe, item);
	struct fleet_rows rows;
	int r = fold_rows(&reply->rows, config->share, config->rows, arena, &rows);

	sender->stats.windows++;
	if (r < 0)
		return r;
	for (enum tier tier = 0; tier < TIERS; tier++) {
		if (!wanted[tier])
			continue;
		r = batch_take(sender, tier, probe, item->start_ns, item->end_ns, error);
		if (r < 0)
			return r;
		r = rows_put(sender, tier, &key, reply, &rows, arena);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Sends one stretch. Pauses as long as the daemon worked, so that others get answers, too. */
static int item_send(struct sender *sender, size_t probe, const struct plan_item *item,
		     const bool wanted[TIERS], struct fleet_error *error)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	int64_t began = clock_ns(CLOCK_MONOTONIC), took;
	struct local_error fault = { 0 };
	struct wire_snapshot_reply reply;
	int r;

	if (!arena)
		return fail(error, -ENOMEM, "stackd-fleet", NULL);
	r = local_snapshot(sender->config->socket, sender->config->probes.v[probe], item->start_ns,
			   item->end_ns, arena, &reply, &fault);
	took = clock_ns(CLOCK_MONOTONIC) - began;
	/* What was merged or removed since it was listed is seen at the next round. */
	if (r == -ENODATA || (r == 0 && !is_exact(&reply, item)))
		return 0;
	if (r < 0)
		return fail(error, r, "the daemon", fault.text);
	r = answer_put(sender, probe, item, wanted, &reply, arena, error);
	if (r < 0)
		return error->text[0] ? r : fail(error, r, "stackd-fleet", NULL);
	usleep((useconds_t)((took < NS_PER_S / 2 ? took : NS_PER_S / 2) / NS_PER_US));
	return 0;
}

/* Sends a gap to the tables that lack it. Units have none: they are as complete as rows60. */
static int gap_send(struct sender *sender, size_t probe, const struct plan_item *item,
		    const bool wanted[TIERS], struct fleet_error *error)
{
	const struct block_key key = key_of(sender, probe, item);
	int r;

	for (enum tier tier = 0; tier < TIER_UNITS; tier++) {
		if (!wanted[tier])
			continue;
		sender->stats.gaps++;
		r = batch_take(sender, tier, probe, item->start_ns, item->end_ns, error);
		if (r < 0)
			return r;
		r = block_put_gap(&key, item->reason, &sender->batches[tier].rows);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Takes the earliest item of the plans, and says which tables want it. */
static bool plans_next(const struct plan plans[TIERS], size_t at[TIERS], struct plan_item *out,
		       bool wanted[TIERS])
{
	const struct plan_item *first = NULL;

	for (enum tier tier = 0; tier < TIERS; tier++)
		if (at[tier] < plans[tier].n &&
		    (!first || plans[tier].v[at[tier]].start_ns < first->start_ns))
			first = &plans[tier].v[at[tier]];
	if (!first)
		return false;
	*out = *first;
	for (enum tier tier = 0; tier < TIERS; tier++) {
		const struct plan_item *item = &plans[tier].v[at[tier]];

		wanted[tier] = at[tier] < plans[tier].n && item->start_ns == out->start_ns &&
			       item->end_ns == out->end_ns && !item->reason == !out->reason;
		at[tier] += wanted[tier];
	}
	return true;
}

/* Sends what the plans have, in the order of time. */
static int plans_send(struct sender *sender, size_t probe, const struct plan plans[TIERS],
		      struct fleet_error *error)
{
	size_t at[TIERS] = { 0 };
	struct plan_item item;
	bool wanted[TIERS];
	int r;

	while (plans_next(plans, at, &item, wanted)) {
		if (*sender->stop)
			return fail(error, -EINTR, "stackd-fleet", NULL);
		r = item.reason ? gap_send(sender, probe, &item, wanted, error)
				: item_send(sender, probe, &item, wanted, error);
		if (r < 0)
			return r;
	}
	for (enum tier tier = 0; tier < TIERS; tier++) {
		r = flush(sender, tier, probe, error);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Notes since when windows are not sent, once for each step of the clock. */
static void lost_note(struct sender *sender, const struct plan_span *lost)
{
	if (lost->end_ns <= sender->lost_ns)
		return;
	if (lost->start_ns >= sender->lost_ns)
		sender->stats.lost_since_ns = lost->start_ns;
	sender->lost_ns = lost->end_ns;
}

/* Compares the daemon's windows of a probe with those of the server, and sends what is missing. */
static int probe_send(struct sender *sender, size_t probe, int64_t since, struct fleet_error *error)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	const char *name = sender->config->probes.v[probe];
	int64_t until = clock_ns(CLOCK_REALTIME) - LATE_NS;
	struct plan plans[TIERS] = { 0 };
	struct wire_windows_reply windows;
	struct local_error fault = { 0 };
	int r;

	if (!arena)
		return fail(error, -ENOMEM, "stackd-fleet", NULL);
	r = local_windows(sender->config->socket, name, since, arena, &windows, &fault);
	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return fail(error, r, "the daemon", fault.text);
	for (enum tier tier = 0; tier < TIERS; tier++) {
		if (!sender->has_tier[tier])
			continue;
		r = plan_make(&windows, &sender->known[tier][probe],
			      tier == TIER_WINDOWS ? 0 : MINUTE_NS, until, arena, &plans[tier]);
		if (r < 0)
			return fail(error, r, "stackd-fleet", NULL);
	}
	for (enum tier tier = 0; tier < TIERS; tier++)
		lost_note(sender, &plans[tier].lost);
	plan_limit(&plans[TIER_WINDOWS], until - WINDOWS_NS);
	r = plans_send(sender, probe, plans, error);
	if (r < 0)
		pending_drop(sender);
	return r;
}

int sender_round(struct sender *sender, struct fleet_error *error)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	const struct fleet_config *config = sender->config;
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct wire_status_reply status;
	struct local_error fault = { 0 };
	int r;

	error->text[0] = '\0';
	if (!arena)
		return fail(error, -ENOMEM, "stackd-fleet", NULL);
	r = local_status(config->socket, arena, &status, &fault);
	if (r < 0)
		return fail(error, r, "the daemon", fault.text);
	snprintf(sender->boot, sizeof(sender->boot), "%s", status.boot_id);
	sender->boot_ns = now - clock_ns(CLOCK_BOOTTIME);
	if (!sender->is_compared ||
	    clock_ns(CLOCK_MONOTONIC) - sender->compared_ns >= config->compare_ns)
		r = compare(sender, now - config->past_ns, &status, error);
	for (size_t i = 0; i < config->probes.n && r == 0; i++)
		r = probe_send(sender, i, now - config->past_ns, error);
	if (r < 0)
		sender->is_compared = false;
	return r;
}
