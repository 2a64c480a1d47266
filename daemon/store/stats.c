/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

static void text_set(struct store *store, char *text, size_t size, const char *format, va_list ap)
{
	char now[STORE_TEXT_MAX];
	bool is_new;

	vsnprintf(now, sizeof(now), format, ap);
	pthread_mutex_lock(&store->lock);
	is_new = strcmp(text, now) != 0;
	snprintf(text, size, "%s", now);
	pthread_mutex_unlock(&store->lock);
	if (is_new)
		log_warning("%s", now);
}

void store_set_problem(struct store *store, enum store_problem problem, const char *format, ...)
{
	char *text = store->stats.problems[problem];
	va_list ap;

	if (!format) {
		pthread_mutex_lock(&store->lock);
		text[0] = '\0';
		pthread_mutex_unlock(&store->lock);
		return;
	}
	va_start(ap, format);
	text_set(store, text, sizeof(store->stats.problems[problem]), format, ap);
	va_end(ap);
}

void store_set_notice(struct store *store, enum store_notice_kind kind, const char *format, ...)
{
	struct store_notice *notice = &store->stats.notices[kind];
	va_list ap;

	/* Each is an event of its own, and logged: the same may happen again. */
	pthread_mutex_lock(&store->lock);
	notice->text[0] = '\0';
	notice->ns = clock_ns(CLOCK_REALTIME);
	pthread_mutex_unlock(&store->lock);
	va_start(ap, format);
	text_set(store, notice->text, sizeof(notice->text), format, ap);
	va_end(ap);
}

uint64_t store_file_bytes(const char *path, const char *suffix)
{
	char name[4200];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void store_count(struct store *store)
{
	int64_t windows = 0, id, oldest = INT64_MIN, newest = INT64_MIN;
	uint64_t bytes = store_file_bytes(store->path, "") + store_file_bytes(store->path, "-wal");

	store_db_number(&store->db, STATEMENT_WINDOW_COUNT, &windows);
	store_row_end(&store->db, STATEMENT_WINDOW_OLDEST, &id, &oldest);
	store_row_end(&store->db, STATEMENT_WINDOW_NEWEST, &id, &newest);
	pthread_mutex_lock(&store->lock);
	store->stats.windows = (uint64_t)windows;
	store->stats.oldest_ns = oldest;
	store->stats.newest_ns = newest;
	store->stats.bytes = bytes;
	pthread_mutex_unlock(&store->lock);
	store_tiers_count(store);
}

void store_stats(struct store *store, struct store_stats *out)
{
	pthread_mutex_lock(&store->lock);
	*out = store->stats;
	out->queued = store->queued;
	pthread_mutex_unlock(&store->lock);
}

void store_stats_read(struct store *store, struct store_reader *reader, struct store_stats *out)
{
	size_t i;

	store_stats(store, out);
	if (!reader || !store->is_read_only)
		return;
	store_reader_count(reader, out);
	if (store_reader_tiers(reader, store->tiers, store->n_tiers, out->tiers))
		return;
	out->n_tiers = store->n_tiers;
	for (i = 0; i < out->n_tiers; i++)
		out->tiers[i].max_bytes = store_room(store) * store->tiers[i].share / 100;
}
