/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <malloc.h>

#include "common/base.h"

/*
 * The places that a call needs before it is answered: one among the answers that are made and sent,
 * and one among the first steps of slow methods.
 */

/* Lets the calls that wait for a place try again, if there is room. */
static void places_wake(struct service *service)
{
	if (service->server && admission_has_room(&service->admission))
		server_wake(service->server);
}

int place_take(struct exchange *exchange, const char **limit_out)
{
	const struct method *method = exchange->method;
	struct service *service = exchange->service;
	struct place *place = &exchange->place;

	/* While it waits, other threads look at it. */
	if (place->state == PLACE_NONE) {
		place->uid = exchange->peer->uid;
		place->is_long = exchange->call->more && method->is_long &&
				 method->is_long(exchange->request);
	}
	if (admission_enter(&service->admission, place, &exchange->peer->is_pressed)) {
		places_wake(service);
		return 0;
	}
	if (!limit_out || !admission_is_overdue(&service->admission, place))
		return SERVER_WAIT;
	*limit_out = admission_refuse(&service->admission, place);
	return -EBUSY;
}

void place_leave(struct exchange *exchange)
{
	const struct place *place = &exchange->place;

	if (place->state == PLACE_NONE)
		return;
	/*
	 * Give the memory of a long answer back to the kernel: malloc() keeps free memory for the
	 * thread that had it, and another thread may make the next answer.
	 */
	if (place->state == PLACE_HELD && place->is_long)
		malloc_trim(0);
	admission_leave(&exchange->service->admission, &exchange->place);
	places_wake(exchange->service);
}

struct slow_call *slow_begin(struct slow_calls *slow, uid_t uid)
{
	struct slow_call *found = NULL;
	size_t i, mine = 0;

	pthread_mutex_lock(&slow->lock);
	for (i = 0; i < ARRAY_SIZE(slow->calls); i++) {
		struct slow_call *call = &slow->calls[i];

		mine += call->is_used && call->uid == uid;
		if (!call->is_used)
			found = call;
	}
	if (uid != 0 && mine >= SLOW_PER_USER)
		found = NULL;
	if (found)
		*found = (struct slow_call){ .is_used = true, .uid = uid };
	pthread_mutex_unlock(&slow->lock);
	return found;
}

void slow_end(struct slow_calls *slow, struct slow_call *call)
{
	pthread_mutex_lock(&slow->lock);
	call->is_used = false;
	pthread_mutex_unlock(&slow->lock);
}
