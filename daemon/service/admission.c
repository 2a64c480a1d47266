/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/admission.h"

static const struct admission_limits no_limits = {
	.max_long = SIZE_MAX,
	.max_bytes = SIZE_MAX,
	.answer_bytes = 1,
	.max_per_user = SIZE_MAX,
	.max_wait_ns = INT64_MAX,
};

void admission_init(struct admission *admission)
{
	*admission = (struct admission){ .limits = no_limits, .slow_ns = PLACE_SLOW_NS };
	pthread_mutex_init(&admission->lock, NULL);
}

void admission_fini(struct admission *admission)
{
	pthread_mutex_destroy(&admission->lock);
}

void admission_set_limits(struct admission *admission, const struct admission_limits *limits)
{
	pthread_mutex_lock(&admission->lock);
	admission->limits = *limits;
	pthread_mutex_unlock(&admission->lock);
}

static void list_append(struct place **list, struct place *place)
{
	while (*list) {
		place->prev = *list;
		list = &(*list)->next;
	}
	*list = place;
}

static void list_remove(struct place **list, struct place *place)
{
	if (place->prev)
		place->prev->next = place->next;
	else
		*list = place->next;
	if (place->next)
		place->next->prev = place->prev;
	place->prev = place->next = NULL;
}

/* Returns how many places a user holds. */
static size_t held_by(const struct admission *admission, uid_t uid)
{
	const struct place *place;
	size_t n = 0;

	for (place = admission->held; place; place = place->next)
		n += place->uid == uid;
	return n;
}

/* True if the answers in being leave too little memory for another one. */
static bool is_full(const struct admission *admission, bool is_long)
{
	size_t room = admission->limits.max_bytes / admission->limits.answer_bytes;
	size_t n_held = admission->n_held, n_long = admission->n_long;

	/* At least one short answer and one long answer are possible. */
	if (!is_long)
		return n_held >= room && n_held > n_long;
	if (!n_long)
		return n_held >= room && n_held > 1;
	/* Long answers take minutes if the client is slow: room for a short one is left. */
	return n_held >= room || n_long + 1 >= room;
}

static enum place_obstacle obstacle_of(const struct admission *admission, const struct place *place)
{
	const struct admission_limits *limits = &admission->limits;

	if (place->uid != 0 && held_by(admission, place->uid) >= limits->max_per_user)
		return PLACE_NO_SHARE;
	if (place->is_long && admission->n_long >= limits->max_long)
		return PLACE_NO_LONG;
	return is_full(admission, place->is_long) ? PLACE_NO_BYTES : PLACE_FREE;
}

/*
 * True if a call that waits gets a place before this one: it can have one, and its user holds
 * fewer, or as many and it came earlier.
 */
static bool is_preceded(const struct admission *admission, const struct place *place)
{
	size_t n = held_by(admission, place->uid), of_other;
	const struct place *other;
	bool is_earlier = true;

	for (other = admission->waiting; other; other = other->next) {
		if (other == place) {
			is_earlier = false;
			continue;
		}
		of_other = held_by(admission, other->uid);
		if ((of_other < n || (of_other == n && is_earlier)) &&
		    obstacle_of(admission, other) == PLACE_FREE)
			return true;
	}
	return false;
}

/* Returns for how long the client has read replies, or has had one that it did not read. */
static int64_t reading_ns(const struct place *place, int64_t now_ns)
{
	return place->reading_ns + (place->made_ns ? now_ns - place->made_ns : 0);
}

/*
 * Marks the client that has read for longest among those that read slowly. Does nothing if one is
 * marked already.
 */
static void slow_mark(struct admission *admission)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), longest_ns = admission->slow_ns, ns;
	struct place *place, *slow = NULL;

	for (place = admission->held; place; place = place->next) {
		ns = reading_ns(place, now_ns);
		if (place->is_slow)
			return;
		if (ns < longest_ns || (double)place->sent * NS_PER_S >= (double)ns * PLACE_RATE)
			continue;
		longest_ns = ns;
		slow = place;
	}
	if (!slow)
		return;
	slow->is_slow = true;
	atomic_store(slow->pressed, true);
	admission->cut++;
}

/* Puts the call into the queue. */
static void place_queue(struct admission *admission, struct place *place, atomic_bool *pressed)
{
	place->pressed = pressed;
	place->state = PLACE_WAITING;
	place->since_ns = clock_ns(CLOCK_MONOTONIC);
	list_append(&admission->waiting, place);
}

static void place_hold(struct admission *admission, struct place *place)
{
	list_remove(&admission->waiting, place);
	list_append(&admission->held, place);
	place->state = PLACE_HELD;
	admission->n_held++;
	admission->n_long += place->is_long;
}

bool admission_enter(struct admission *admission, struct place *place, atomic_bool *pressed)
{
	bool is_new = place->state == PLACE_NONE, is_held;

	pthread_mutex_lock(&admission->lock);
	if (is_new)
		place_queue(admission, place, pressed);
	place->obstacle = obstacle_of(admission, place);
	is_held = place->obstacle == PLACE_FREE && !is_preceded(admission, place);
	if (is_held) {
		place_hold(admission, place);
	} else {
		if (place->obstacle == PLACE_FREE)
			place->obstacle = PLACE_NO_BYTES;
		if (place->obstacle != PLACE_NO_SHARE)
			slow_mark(admission);
		admission->waited[place->obstacle] += is_new;
	}
	pthread_mutex_unlock(&admission->lock);
	return is_held;
}

bool admission_is_overdue(struct admission *admission, const struct place *place)
{
	bool is_overdue;

	pthread_mutex_lock(&admission->lock);
	is_overdue = clock_ns(CLOCK_MONOTONIC) - place->since_ns > admission->limits.max_wait_ns;
	pthread_mutex_unlock(&admission->lock);
	return is_overdue;
}

void admission_leave(struct admission *admission, struct place *place)
{
	if (place->state == PLACE_NONE)
		return;
	pthread_mutex_lock(&admission->lock);
	if (place->state == PLACE_HELD) {
		list_remove(&admission->held, place);
		admission->n_held--;
		admission->n_long -= place->is_long;
	} else {
		list_remove(&admission->waiting, place);
	}
	atomic_store(place->pressed, false);
	pthread_mutex_unlock(&admission->lock);
	*place = (struct place){};
}

const char *admission_refuse(struct admission *admission, struct place *place)
{
	static const char *const names[PLACE_OBSTACLES] = {
		[PLACE_FREE] = "query.max_answers",
		[PLACE_NO_BYTES] = "query.max_answers",
		[PLACE_NO_LONG] = "query.max_streams",
		[PLACE_NO_SHARE] = "query.max_per_user",
	};
	const char *name = names[place->obstacle];

	pthread_mutex_lock(&admission->lock);
	admission->refused++;
	if (place->obstacle != PLACE_NO_SHARE) {
		admission->starved++;
		admission->starved_ns = clock_ns(CLOCK_MONOTONIC);
		admission->starved_by = name;
	}
	pthread_mutex_unlock(&admission->lock);
	admission_leave(admission, place);
	return name;
}

bool admission_has_room(struct admission *admission)
{
	const struct place *place;

	pthread_mutex_lock(&admission->lock);
	for (place = admission->waiting; place; place = place->next)
		if (obstacle_of(admission, place) == PLACE_FREE)
			break;
	pthread_mutex_unlock(&admission->lock);
	return place != NULL;
}

bool admission_reply_begin(struct admission *admission, struct place *place)
{
	bool is_slow;

	if (place->state != PLACE_HELD)
		return true;
	pthread_mutex_lock(&admission->lock);
	place->reading_ns = reading_ns(place, clock_ns(CLOCK_MONOTONIC));
	place->made_ns = 0;
	is_slow = place->is_slow;
	pthread_mutex_unlock(&admission->lock);
	return !is_slow;
}

void admission_reply_end(struct admission *admission, struct place *place, size_t bytes)
{
	if (place->state != PLACE_HELD)
		return;
	pthread_mutex_lock(&admission->lock);
	place->made_ns = clock_ns(CLOCK_MONOTONIC);
	place->sent += bytes;
	pthread_mutex_unlock(&admission->lock);
}
