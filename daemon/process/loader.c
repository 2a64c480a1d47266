/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/thread.h"
#include "daemon/process/internal.h"

/*
 * Number of threads. Files of one owner are read one after the other, and so are perf maps: a user
 * with a slow file of each kind leaves one thread to all others.
 */
enum { THREADS = 3 };

/* Stands in for the owner of all perf maps. No owner of files has it, see parser_owner_key(). */
#define PERF_OWNER UINT64_C(0)

struct job {
	/* One of both is set, a reference. */
	struct module *module;
	struct process *process;
	uint64_t owner;
	int64_t begun_ns;     /* time of CLOCK_MONOTONIC at which a thread took it; 0: none has */
	unsigned int waiters; /* number of those who wait for it; the last one frees it */
	bool is_late;	      /* somebody has waited for it in vain: nobody waits again */
	bool is_missed;	      /* somebody had to do without it */
	bool is_done;
	struct symtab *symtab; /* a reference, if is_done is true and the module has symbols */
	struct job *next;
};

struct loader {
	struct module_registry *registry;
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	pthread_t threads[THREADS];
	size_t n_threads;
	bool is_stopping;
	struct job *jobs; /* those that are not done, the oldest first */
	struct loader_stats stats;
};

static void job_free(struct loader *loader, struct job *job)
{
	if (job->symtab)
		module_registry_put_symbols(loader->registry, job->symtab);
	module_unref(job->module);
	process_unref(job->process);
	free(job);
}

/* Returns the job of this owner that a thread works on; NULL: there is none. Needs the lock. */
static const struct job *owner_busy(const struct loader *loader, uint64_t owner)
{
	for (const struct job *job = loader->jobs; job; job = job->next)
		if (job->begun_ns && job->owner == owner)
			return job;
	return NULL;
}

/* Returns the oldest job whose owner has no other that is worked on. Needs the lock. */
static struct job *job_next(const struct loader *loader)
{
	for (struct job *job = loader->jobs; job; job = job->next)
		if (!job->begun_ns && !owner_busy(loader, job->owner))
			return job;
	return NULL;
}

static void job_remove(struct loader *loader, const struct job *job)
{
	struct job **p = &loader->jobs;

	while (*p != job)
		p = &(*p)->next;
	*p = job->next;
}

/* Carries out a job, without the lock. */
static void job_run(struct job *job)
{
	if (job->module)
		job->symtab = module_get_symbols(job->module);
	else
		process_read_perf(job->process);
}

/* Takes a job and carries it out. Called with the lock held; releases it meanwhile. */
static void job_serve(struct loader *loader, struct job *job)
{
	bool is_awaited;

	job->begun_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&loader->lock);
	job_run(job);
	pthread_mutex_lock(&loader->lock);
	job_remove(loader, job);
	job->is_done = true;
	is_awaited = job->waiters > 0;
	pthread_cond_broadcast(&loader->done);
	/* The next job of its owner may be for a thread that found none. */
	pthread_cond_broadcast(&loader->wake);
	if (is_awaited)
		return;
	pthread_mutex_unlock(&loader->lock);
	job_free(loader, job);
	pthread_mutex_lock(&loader->lock);
}

static void *loader_run(void *data)
{
	struct activity activity = {
		.thread = "stackd-symbols",
		.work = "reading symbols",
		.kind = ACTIVITY_OTHER,
	};
	struct loader *loader = data;
	struct job *job;

	activity_watch(&activity);
	pthread_mutex_lock(&loader->lock);
	while (!loader->is_stopping) {
		job = job_next(loader);
		if (!job) {
			pthread_cond_wait(&loader->wake, &loader->lock);
			continue;
		}
		activity_begin(&activity);
		job_serve(loader, job);
		activity_end(&activity);
	}
	pthread_mutex_unlock(&loader->lock);
	activity_unwatch(&activity);
	return NULL;
}

/*
 * Returns the job for the module, or for the process; adds one if there is none. NULL if there is
 * no room for it. Needs the lock.
 */
static struct job *job_get(struct loader *loader, struct module *module, struct process *process,
			   uint64_t owner)
{
	struct job **p = &loader->jobs, *job;
	size_t n = 0, n_of_owner = 0;

	for (; (job = *p); p = &job->next) {
		if (job->module == module && job->process == process)
			return job;
		n++;
		n_of_owner += job->owner == owner;
	}
	if (n == LOADER_QUEUE_MAX || n_of_owner == LOADER_OWNER_MAX) {
		loader->stats.dropped++;
		return NULL;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->module = module ? module_ref(module) : NULL;
	job->process = process ? process_ref(process) : NULL;
	job->owner = owner;
	*p = job;
	pthread_cond_signal(&loader->wake);
	return job;
}

/*
 * True if it makes no sense to wait for a job: somebody has done so in vain, or a file of its owner
 * has been read for so long that others may take as long. Needs the lock.
 */
static bool is_hopeless(const struct loader *loader, const struct job *job, int64_t now)
{
	const struct job *busy = owner_busy(loader, job->owner);

	return job->is_late || (busy && now - busy->begun_ns >= SYMBOLS_WAIT_NS);
}

/*
 * Waits for a job. Returns whether it is done in time: then the caller is still one of its waiters.
 * Needs the lock.
 */
static bool job_await(struct loader *loader, struct job *job, int64_t until_ns)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (until_ns > now && !is_hopeless(loader, job, now)) {
		job->waiters++;
		while (!job->is_done && !thread_wait_until(&loader->done, &loader->lock, until_ns))
			;
		if (job->is_done)
			return true;
		job->waiters--;
		job->is_late = true;
	}
	loader->stats.late += !job->is_missed;
	job->is_missed = true;
	return false;
}

/* Stops waiting for a job that is done. */
static void job_leave(struct loader *loader, struct job *job)
{
	bool is_last;

	pthread_mutex_lock(&loader->lock);
	is_last = !--job->waiters;
	pthread_mutex_unlock(&loader->lock);
	if (is_last)
		job_free(loader, job);
}

/*
 * Does the job for the module or the process. Returns it if it is done in time, for job_leave(),
 * else NULL.
 */
static struct job *job_do(struct loader *loader, struct module *module, struct process *process,
			  uint64_t owner, int64_t until_ns)
{
	struct job *job;

	pthread_mutex_lock(&loader->lock);
	job = job_get(loader, module, process, owner);
	if (job && !job_await(loader, job, until_ns))
		job = NULL;
	pthread_mutex_unlock(&loader->lock);
	return job;
}

struct symtab *loader_symbols(struct loader *loader, struct module *module, int64_t until_ns)
{
	struct symtab *symtab;
	bool is_missing;
	struct job *job;

	if (!module_symbols_are_due(module))
		return NULL;
	job = job_do(loader, module, NULL, module_owner_key(module), until_ns);
	if (!job)
		return NULL;
	/* The job's reference keeps the table from being evicted until the caller has its own. */
	symtab = module_loaded_symbols(module, &is_missing);
	job_leave(loader, job);
	return symtab;
}

void loader_perf_map(struct loader *loader, struct process *process, int64_t until_ns)
{
	struct job *job = job_do(loader, NULL, process, PERF_OWNER, until_ns);

	if (job)
		job_leave(loader, job);
}

void loader_stats(struct loader *loader, struct loader_stats *out)
{
	pthread_mutex_lock(&loader->lock);
	*out = loader->stats;
	pthread_mutex_unlock(&loader->lock);
}

static int threads_start(struct loader *loader)
{
	for (; loader->n_threads < THREADS; loader->n_threads++) {
		int r = thread_start(&loader->threads[loader->n_threads], "stackd-symbols",
				     loader_run, loader);

		if (r)
			return r;
	}
	return 0;
}

int loader_new(struct module_registry *registry, struct loader **out)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int r;

	if (!loader)
		return -ENOMEM;
	pthread_mutex_init(&loader->lock, NULL);
	pthread_cond_init(&loader->wake, NULL);
	pthread_cond_init(&loader->done, NULL);
	loader->registry = registry;
	r = threads_start(loader);
	if (r < 0) {
		loader_free(loader);
		return r;
	}
	*out = loader;
	return 0;
}

struct loader *loader_free(struct loader *loader)
{
	struct job *job;

	if (!loader)
		return NULL;
	pthread_mutex_lock(&loader->lock);
	loader->is_stopping = true;
	pthread_cond_broadcast(&loader->wake);
	pthread_mutex_unlock(&loader->lock);
	for (size_t i = 0; i < loader->n_threads; i++)
		pthread_join(loader->threads[i], NULL);
	while ((job = loader->jobs)) {
		loader->jobs = job->next;
		job_free(loader, job);
	}
	pthread_cond_destroy(&loader->wake);
	pthread_cond_destroy(&loader->done);
	pthread_mutex_destroy(&loader->lock);
	free(loader);
	return NULL;
}
