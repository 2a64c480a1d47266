/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/perf_event.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"

/* As many as Linux can be built for. */
enum { MAX_CPUS = 8192, MAX_OFFSET = 1 << 20 };

/* As the kernel's own format of it says: /sys/bus/event_source/devices/uprobe/format. */
enum { COUNTER_SHIFT = 32 };

static int type_read(const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	int type;

	return f && fscanf(f, "%d", &type) == 1 ? type : -1;
}

void perf_types_read(struct perf_types *out)
{
	out->kprobe = type_read("/sys/bus/event_source/devices/kprobe/type");
	out->uprobe = type_read("/sys/bus/event_source/devices/uprobe/type");
}

/* A symbol's characters, its end inside the field, and nothing behind it. */
static bool is_symbol(const char name[static BROKER_MAX_SYMBOL])
{
	const size_t len = strnlen(name, BROKER_MAX_SYMBOL);
	size_t i;

	if (len == 0 || len == BROKER_MAX_SYMBOL)
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.$", name[i]))
			return false;
	for (; i < BROKER_MAX_SYMBOL; i++)
		if (name[i])
			return false;
	return true;
}

static bool is_empty(const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (text[i])
			return false;
	return true;
}

/* Absolute, its end inside the field, and nothing behind it. */
static bool is_path(const char path[static BROKER_MAX_PATH])
{
	const size_t len = strnlen(path, BROKER_MAX_PATH);

	return path[0] == '/' && is_empty(path + len, BROKER_MAX_PATH - len) &&
	       len < BROKER_MAX_PATH;
}

static bool is_good(const struct perf_request *q)
{
	const bool is_kprobe = q->kind == PERF_KPROBE;
	const bool is_plain = !q->clock && !q->cpu && !q->frequency_hz && !q->period;

	if (q->kind > PERF_UPROBE || q->cpu >= MAX_CPUS)
		return false;
	if (q->kind == PERF_UPROBE)
		return is_plain && is_path(q->path) && !q->is_return && q->offset <= INT64_MAX &&
		       is_empty(q->function, sizeof(q->function));
	if (q->counter || !is_empty(q->path, sizeof(q->path)))
		return false;
	if (is_kprobe)
		return is_plain && is_symbol(q->function) && q->is_return <= 1 &&
		       q->offset < MAX_OFFSET && !(q->is_return && q->offset);
	if (!is_empty(q->function, sizeof(q->function)) || q->is_return || q->offset)
		return false;
	return q->clock < BROKER_CLOCK_N && !q->frequency_hz != !q->period &&
	       q->frequency_hz <= BROKER_MAX_FREQUENCY_HZ &&
	       (!q->period || (q->period >= BROKER_MIN_PERIOD && q->period <= BROKER_MAX_PERIOD));
}

int perf_request_check(const struct perf_request *request)
{
	return is_good(request) ? 0 : -EINVAL;
}

/* A descriptor, or a negative errno. */
static int event_open(struct perf_event_attr *attr, int cpu)
{
	long fd;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static int sampling_open(const struct perf_request *request)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = request->frequency_hz > 0,
		.sample_freq = request->frequency_hz + request->period, /* one is 0 */
	};

	if (request->clock == BROKER_CYCLES) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
	}
	return event_open(&attr, (int)request->cpu);
}

/* 33ea4b24277b (4.17). In every process, whatever CPU it is given: so libbpf does it too. */
static int kprobe_open(const struct perf_request *request, int type)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)type,
		.config = request->is_return,
		.kprobe_func = (uintptr_t)request->function,
		.probe_offset = request->offset,
	};

	return type < 0 ? -EOPNOTSUPP : event_open(&attr, 0);
}

/*
 * e12f03d7031a (4.17). By the file, wherever it is mapped; the kernel raises the counter in there
 * for as long (a6ca88b241d5, 4.20).
 */
static int uprobe_open(const struct perf_request *request, int type)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)type,
		.config = (uint64_t)request->counter << COUNTER_SHIFT,
		.uprobe_path = (uintptr_t)request->path,
		.probe_offset = request->offset,
	};

	return type < 0 ? -EOPNOTSUPP : event_open(&attr, 0);
}

int perf_request_open(const struct perf_request *request, const struct perf_types *types,
		      int *fd_out)
{
	int fd;

	switch (request->kind) {
	case PERF_SAMPLING:
		fd = sampling_open(request);
		break;
	case PERF_KPROBE:
		fd = kprobe_open(request, types->kprobe);
		break;
	default:
		fd = uprobe_open(request, types->uprobe);
		break;
	}
	if (fd < 0)
		return fd;
	*fd_out = fd;
	return 0;
}
