/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/streams.h"

void streams_init(struct streams *streams)
{
	*streams = (struct streams){ .max = STREAMS_DEFAULT, .slow_ns = STREAM_SLOW_NS };
	pthread_mutex_init(&streams->lock, NULL);
}

void streams_fini(struct streams *streams)
{
	pthread_mutex_destroy(&streams->lock);
}

void streams_set_max(struct streams *streams, size_t max)
{
	pthread_mutex_lock(&streams->lock);
	streams->max = max;
	pthread_mutex_unlock(&streams->lock);
}

static void list_append(struct stream_place **list, struct stream_place *place)
{
	while (*list) {
		place->prev = *list;
		list = &(*list)->next;
	}
	*list = place;
}

static void list_remove(struct stream_place **list, struct stream_place *place)
{
	if (place->prev)
		place->prev->next = place->next;
	else
		*list = place->next;
	if (place->next)
		place->next->prev = place->prev;
	place->prev = place->next = NULL;
}

/* Returns for how long the client has read replies, or has had one that it did not read. */
static int64_t reading_ns(const struct stream_place *place, int64_t now_ns)
{
	return place->reading_ns + (place->made_ns ? now_ns - place->made_ns : 0);
}

/*
 * Marks the client that has read for longest among those that read slowly. Does nothing if one is
 * marked already.
 */
static void slow_mark(struct streams *streams)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), longest_ns = streams->slow_ns, ns;
	struct stream_place *place, *slow = NULL;

	for (place = streams->held; place; place = place->next) {
		ns = reading_ns(place, now_ns);
		if (place->is_slow)
			return;
		if (ns < longest_ns || (double)place->sent * NS_PER_S >= (double)ns * STREAM_RATE)
			continue;
		longest_ns = ns;
		slow = place;
	}
	if (!slow)
		return;
	slow->is_slow = true;
	atomic_store(slow->pressed, true);
	streams->cut++;
}

bool streams_enter(struct streams *streams, struct stream_place *place, atomic_bool *pressed)
{
	bool is_first, has_room;

	pthread_mutex_lock(&streams->lock);
	has_room = streams->n_held < streams->max;
	if (place->state == STREAM_NONE) {
		place->pressed = pressed;
		place->state = STREAM_WAITING;
		list_append(&streams->waiting, place);
		streams->waited += place->prev || !has_room;
	}
	is_first = place == streams->waiting;
	if (is_first && has_room) {
		list_remove(&streams->waiting, place);
		list_append(&streams->held, place);
		place->state = STREAM_HELD;
		streams->n_held++;
	} else if (is_first) {
		slow_mark(streams);
	}
	pthread_mutex_unlock(&streams->lock);
	return place->state == STREAM_HELD;
}

void streams_leave(struct streams *streams, struct stream_place *place)
{
	if (place->state == STREAM_NONE)
		return;
	pthread_mutex_lock(&streams->lock);
	if (place->state == STREAM_HELD) {
		list_remove(&streams->held, place);
		streams->n_held--;
	} else {
		list_remove(&streams->waiting, place);
	}
	atomic_store(place->pressed, false);
	pthread_mutex_unlock(&streams->lock);
	*place = (struct stream_place){};
}

bool streams_have_room(struct streams *streams)
{
	bool has_room;

	pthread_mutex_lock(&streams->lock);
	has_room = streams->waiting && streams->n_held < streams->max;
	pthread_mutex_unlock(&streams->lock);
	return has_room;
}

bool streams_reply_begin(struct streams *streams, struct stream_place *place)
{
	bool is_slow;

	if (place->state == STREAM_NONE)
		return true;
	pthread_mutex_lock(&streams->lock);
	place->reading_ns = reading_ns(place, clock_ns(CLOCK_MONOTONIC));
	place->made_ns = 0;
	is_slow = place->is_slow;
	pthread_mutex_unlock(&streams->lock);
	return !is_slow;
}

void streams_reply_end(struct streams *streams, struct stream_place *place, size_t bytes)
{
	if (place->state == STREAM_NONE)
		return;
	pthread_mutex_lock(&streams->lock);
	place->made_ns = clock_ns(CLOCK_MONOTONIC);
	place->sent += bytes;
	pthread_mutex_unlock(&streams->lock);
}
