/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "common/base.h"
#include "daemon/base/thread.h"

/* TURNS: of all users together. TURNS_A_USER: of one user other than root. */
enum { TURNS = 2, TURNS_A_USER = TURNS - 1 };

/* A query that waits for its turn looks this often whether its client has hung up. */
#define GONE_CHECK_NS (200 * NS_PER_MS)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uid_t users[TURNS]; /* whose queries read windows now */
	unsigned int n;
} turns = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {}, 0 };

static bool is_free(uid_t uid)
{
	unsigned int of_user = 0;

	for (unsigned int i = 0; i < turns.n; i++)
		of_user += turns.users[i] == uid;
	return turns.n < TURNS && (uid == 0 || of_user < TURNS_A_USER);
}

int turn_wait(const struct query_peer *peer)
{
	int r = 0;

	pthread_mutex_lock(&turns.lock);
	while (!is_free(peer->uid) && !r) {
		thread_wait_until(&turns.changed, &turns.lock,
				  clock_ns(CLOCK_MONOTONIC) + GONE_CHECK_NS);
		if (peer->is_gone && atomic_load(peer->is_gone))
			r = -ECANCELED;
	}
	if (!r)
		turns.users[turns.n++] = peer->uid;
	pthread_mutex_unlock(&turns.lock);
	return r;
}

void turn_end(const struct query_peer *peer)
{
	unsigned int i = 0;

	pthread_mutex_lock(&turns.lock);
	while (turns.users[i] != peer->uid)
		i++;
	turns.users[i] = turns.users[--turns.n];
	/* All that wait look, as some of them may be of users that cannot have this turn. */
	pthread_cond_broadcast(&turns.changed);
	pthread_mutex_unlock(&turns.lock);
}
