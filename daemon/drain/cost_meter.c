/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/cost_meter.h"

#include <pthread.h>
#include <stdatomic.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/host/helper_process.h"

/* If fewer runs were timed than this, the average of all runs since the start is used. */
enum { TIMED_LEAST = 32 };

/*
 * The time in ns that a run takes before it reads the clock first and after it reads the clock
 * last: to enter and leave the BPF program, and to find the counters of the CPU. With 470,000
 * switches a second, this number makes the sum equal to that of the kernel's statistics of BPF
 * programs.
 */
enum { ENTRY_NS = 45 };

uint64_t cost_of_programs(const struct cpu_counts *now, const struct cpu_counts *before)
{
	const uint64_t runs = now->runs - before->runs;
	uint64_t timed = now->timed - before->timed, timed_ns = now->timed_ns - before->timed_ns;
	uint64_t ns =
		now->walk_ns - before->walk_ns + now->call_ns - before->call_ns + runs * ENTRY_NS;

	if (timed < TIMED_LEAST) {
		timed = now->timed;
		timed_ns = now->timed_ns;
	}
	if (timed)
		ns += (uint64_t)((double)timed_ns / (double)timed * (double)runs);
	return ns;
}

void cost_meter_add(struct cost_meter *meter, const struct cost_programs *programs)
{
	atomic_fetch_add(&meter->bpf_ns, programs->ns);
	atomic_fetch_add(&meter->session_ns, programs->session_ns);
	atomic_fetch_add(&meter->walk_ns, programs->walk_ns);
	atomic_fetch_add(&meter->waits, programs->waits);
	atomic_fetch_add(&meter->sampled, programs->sampled);
	atomic_fetch_add(&meter->braked, programs->braked);
	if (programs->walks_at_ns)
		meter->walks_at_ns = programs->walks_at_ns;
}

void cost_meter_answers(struct cost_meter *meter)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock))
		return;
	meter->answers_from_ns = clock_ns(clock);
	meter->answers = clock;
}

void cost_meter_set(struct cost_meter *meter, uint64_t limit_ppm, uint32_t shed, bool is_beyond)
{
	meter->limit_ppm = limit_ppm;
	meter->shed = shed;
	meter->is_beyond = is_beyond;
}

uint64_t cost_meter_limit(const struct cost_meter *meter)
{
	return meter->limit_ppm;
}

uint32_t cost_meter_shed(const struct cost_meter *meter)
{
	return meter->shed;
}

bool cost_meter_is_beyond(const struct cost_meter *meter)
{
	return meter->is_beyond;
}

void cost_meter_read(const struct cost_meter *meter, struct cost_totals *out)
{
	const clockid_t answers = meter->answers;

	out->at_ns = clock_ns(CLOCK_MONOTONIC);
	out->answers_ns = answer_time_ns();
	if (answers)
		out->answers_ns += (uint64_t)(clock_ns(answers) - meter->answers_from_ns);
	out->children_ns = helper_process_children_ns();
	if (meter->workers_ns)
		out->children_ns += *meter->workers_ns;
	out->cpu_ns = (uint64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID) + out->children_ns;
	out->bpf = (struct cost_programs){
		.ns = meter->bpf_ns,
		.session_ns = meter->session_ns,
		.walk_ns = meter->walk_ns,
		.waits = meter->waits,
		.sampled = meter->sampled,
		.braked = meter->braked,
		.walks_at_ns = meter->walks_at_ns,
	};
}
