/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/openwait_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"

/*
 * If reading the memory of one process takes longer than this, the process is reported in
 * openwait_stats.held_up_by.
 */
#define HELD_UP_NS NS_PER_S

/*
 * The owner and the reader's thread share this struct to pass requests and results. Each of the two
 * has a reference, because the thread may hang and outlive the owner.
 */
struct openwait_reader {
	_Atomic unsigned int refs;
	const struct openwait_ops *ops;
	void *userdata;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	struct openwait_pass pass;
	uint64_t asked; /* number of passes requested so far */
	uint64_t begun; /* number of passes that had been requested when the latest pass began */
	uint64_t ended; /* number of passes that had been requested when the latest ended pass began
			 */
	int64_t began_ns; /* time at which the last pass began */
	bool is_stopping;
	bool is_gone; /* true if the thread has nothing more to do */
	struct openwait_stats stats;
};

static void reader_unref(struct openwait_reader *reader)
{
	if (atomic_fetch_sub(&reader->refs, 1) != 1)
		return;
	reader->ops->free(reader->userdata);
	pthread_cond_destroy(&reader->changed);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

/* Loads the BPF program. Called with the lock held; releases it while the program is loaded. */
static void reader_open(struct openwait_reader *reader)
{
	char reason[OPENWAIT_REASON] = "";
	int r;

	reader->stats.state = OPENWAIT_LOADING;
	pthread_mutex_unlock(&reader->lock);
	r = reader->ops->open(reader->userdata, reason);
	if (r)
		log_notice("the user stacks of waits that go on cannot be read: %s", reason);
	pthread_mutex_lock(&reader->lock);
	reader->stats.state = r ? OPENWAIT_FAILED : OPENWAIT_ON;
	memcpy(reader->stats.reason, reason, sizeof(reason));
	pthread_cond_broadcast(&reader->changed);
}

/*
 * Runs one pass: visits all threads and reads the user stacks of waits that have not ended. Called
 * with the lock held; releases it while the BPF program runs.
 */
static void reader_pass(struct openwait_reader *reader)
{
	struct openwait_pass pass = reader->pass;
	int64_t took, looks;

	reader->begun = reader->asked;
	reader->began_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&reader->lock);
	looks = reader->ops->run(reader->userdata, &pass);
	if (looks < 0)
		log_err((int)looks, "read the user stacks of waits that go on");
	pthread_mutex_lock(&reader->lock);
	took = clock_ns(CLOCK_MONOTONIC) - reader->began_ns;
	reader->ended = reader->begun;
	reader->stats.passes++;
	if (took > reader->stats.pass_max_ns)
		reader->stats.pass_max_ns = took;
	if (looks > 0 && (uint64_t)looks > reader->stats.max_looks)
		reader->stats.max_looks = (uint64_t)looks;
}

static void *reader_run(void *data)
{
	struct openwait_reader *reader = data;

	pthread_mutex_lock(&reader->lock);
	/*
	 * Load the program only at the first request: while the daemon starts, the kernel needs the
	 * CPU to verify the other programs.
	 */
	while (!reader->is_stopping && !reader->asked)
		pthread_cond_wait(&reader->changed, &reader->lock);
	if (!reader->is_stopping)
		reader_open(reader);
	while (!reader->is_stopping) {
		if (reader->ended == reader->asked)
			pthread_cond_wait(&reader->changed, &reader->lock);
		else if (reader->stats.state == OPENWAIT_ON)
			reader_pass(reader);
		else
			reader->ended = reader->asked;
		pthread_cond_broadcast(&reader->changed);
	}
	reader->is_gone = true;
	pthread_cond_broadcast(&reader->changed);
	pthread_mutex_unlock(&reader->lock);
	reader_unref(reader);
	return NULL;
}

int openwait_reader_start(const struct openwait_ops *ops, void *userdata,
			  struct openwait_reader **out)
{
	struct openwait_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader) {
		ops->free(userdata);
		return -ENOMEM;
	}
	reader->refs = 2;
	reader->ops = ops;
	reader->userdata = userdata;
	pthread_mutex_init(&reader->lock, NULL);
	pthread_cond_init(&reader->changed, NULL);
	r = thread_start(&reader->thread, "openwait", reader_run, reader);
	if (r) {
		reader_unref(reader);
		reader_unref(reader);
		return r;
	}
	*out = reader;
	return 0;
}

/* Waits, with the lock held, until the condition is true or timeout_ns have passed. */
#define WAIT_UNTIL(reader, condition, timeout_ns)                                     \
	do {                                                                          \
		int64_t end_ = clock_ns(CLOCK_MONOTONIC) + (timeout_ns);              \
                                                                                      \
		while (!(condition) &&                                                \
		       !thread_wait_until(&(reader)->changed, &(reader)->lock, end_)) \
			;                                                             \
	} while (0)

struct openwait_reader *openwait_reader_stop(struct openwait_reader *reader, int64_t timeout_ns)
{
	bool is_gone;

	if (!reader)
		return NULL;
	pthread_mutex_lock(&reader->lock);
	reader->is_stopping = true;
	pthread_cond_broadcast(&reader->changed);
	/*
	 * Wait until loading has ended: it uses the probe, which the caller closes next. Loading
	 * never hangs.
	 */
	while (reader->stats.state == OPENWAIT_LOADING)
		pthread_cond_wait(&reader->changed, &reader->lock);
	WAIT_UNTIL(reader, reader->is_gone, timeout_ns);
	is_gone = reader->is_gone;
	pthread_mutex_unlock(&reader->lock);
	if (is_gone) {
		pthread_join(reader->thread, NULL);
	} else {
		log_warning("the thread that reads open stacks hangs in a process: left behind");
		pthread_detach(reader->thread);
	}
	reader_unref(reader);
	return NULL;
}

bool openwait_reader_pass(struct openwait_reader *reader, const struct openwait_pass *pass,
			  int64_t timeout_ns)
{
	uint64_t number;
	bool has_ended;

	pthread_mutex_lock(&reader->lock);
	reader->pass = *pass;
	number = ++reader->asked;
	pthread_cond_broadcast(&reader->changed);
	/*
	 * Do not wait if the present pass over all threads has been running for long: the pass for
	 * this caller begins after it, and could not end in time either.
	 */
	if (reader->begun != reader->ended &&
	    clock_ns(CLOCK_MONOTONIC) - reader->began_ns > HELD_UP_NS)
		timeout_ns = 0;
	if (timeout_ns > 0)
		WAIT_UNTIL(reader, reader->ended >= number, timeout_ns);
	has_ended = reader->ended >= number;
	reader->stats.late += timeout_ns > 0 && !has_ended;
	pthread_mutex_unlock(&reader->lock);
	return has_ended;
}

void openwait_reader_stats(struct openwait_reader *reader, struct openwait_stats *out)
{
	uint32_t reading = 0;
	int64_t took;

	if (!reader) {
		*out = (struct openwait_stats){ .state = OPENWAIT_OFF };
		return;
	}
	pthread_mutex_lock(&reader->lock);
	if (reader->stats.state == OPENWAIT_ON) {
		reader->ops->counts(reader->userdata, &reader->stats.counts, reader->stats.lost,
				    &reading);
		reader->ops->program(reader->userdata, &reader->stats.program);
	}
	*out = reader->stats;
	if (reader->begun != reader->ended) {
		took = clock_ns(CLOCK_MONOTONIC) - reader->began_ns;
		if (took > out->pass_max_ns)
			out->pass_max_ns = took;
		out->held_up_by = took > HELD_UP_NS ? reading : 0;
	}
	pthread_mutex_unlock(&reader->lock);
}
