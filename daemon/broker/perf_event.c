/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/perf_event.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"

/*
 * Limits of the fields: Linux supports at most MAX_CPUS CPUs, and no function is as long as
 * MAX_OFFSET bytes.
 */
enum { MAX_CPUS = 8192, MAX_OFFSET = 1 << 20 };

/*
 * For a uprobe, the offset of the USDT semaphore begins at this bit of perf_event_attr.config. The
 * kernel shows the bit in /sys/bus/event_source/devices/uprobe/format.
 */
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

/* True if all bytes of the field are 0. */
static bool is_empty(const char *field, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (field[i])
			return false;
	return true;
}

/* True if the text is not empty, ends inside its field, and only NUL bytes follow its end. */
static bool is_text(const char *field, size_t size)
{
	const size_t len = strnlen(field, size);

	return len > 0 && len < size && is_empty(field + len, size - len);
}

static bool is_symbol(const char name[static BROKER_MAX_SYMBOL])
{
	size_t i;

	if (!is_text(name, BROKER_MAX_SYMBOL))
		return false;
	for (i = 0; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.$", name[i]))
			return false;
	return true;
}

static bool is_absolute_path(const char path[static BROKER_MAX_PATH])
{
	return is_text(path, BROKER_MAX_PATH) && path[0] == '/';
}

/* True if all fields that only sampling events use are 0. */
static bool has_no_sampling(const struct perf_request *q)
{
	return q->clock == 0 && q->cpu == 0 && q->frequency_hz == 0 && q->period == 0;
}

/* True if all fields that only kprobes use are 0. */
static bool has_no_function(const struct perf_request *q)
{
	return is_empty(q->function, sizeof(q->function)) && q->is_return == 0;
}

/* True if all fields that only uprobes use are 0. */
static bool has_no_file(const struct perf_request *q)
{
	return is_empty(q->path, sizeof(q->path)) && q->counter == 0;
}

static bool sampling_is_good(const struct perf_request *q)
{
	if (!has_no_function(q) || !has_no_file(q) || q->offset != 0)
		return false;
	if (q->clock >= BROKER_CLOCK_N || q->cpu >= MAX_CPUS)
		return false;
	if (q->period == 0)
		return q->frequency_hz >= 1 && q->frequency_hz <= BROKER_MAX_FREQUENCY_HZ;
	return q->frequency_hz == 0 && q->period >= BROKER_MIN_PERIOD &&
	       q->period <= BROKER_MAX_PERIOD;
}

static bool kprobe_is_good(const struct perf_request *q)
{
	if (!has_no_sampling(q) || !has_no_file(q))
		return false;
	if (!is_symbol(q->function) || q->is_return > 1)
		return false;
	return q->is_return ? q->offset == 0 : q->offset < MAX_OFFSET;
}

static bool uprobe_is_good(const struct perf_request *q)
{
	if (!has_no_sampling(q) || !has_no_function(q))
		return false;
	return is_absolute_path(q->path) && q->offset <= INT64_MAX;
}

int perf_request_check(const struct perf_request *request)
{
	bool is_good = false;

	switch (request->kind) {
	case PERF_SAMPLING:
		is_good = sampling_is_good(request);
		break;
	case PERF_KPROBE:
		is_good = kprobe_is_good(request);
		break;
	case PERF_UPROBE:
		is_good = uprobe_is_good(request);
		break;
	}
	return is_good ? 0 : -EINVAL;
}

/*
 * Opens an event on the CPU with the number `cpu`. The event is disabled at first. Returns its
 * descriptor or a negative errno.
 */
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
		/*
		 * sample_freq and sample_period are one field (a union); one of the two summands is
		 * 0
		 */
		.sample_freq = request->frequency_hz + request->period,
	};

	if (request->clock == BROKER_CYCLES) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
	}
	return event_open(&attr, (int)request->cpu);
}

/*
 * Opens a kprobe (Linux 4.17, commit 33ea4b24277b). The kernel needs a CPU number, but the probe
 * acts on all CPUs; libbpf also passes 0.
 */
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
 * Opens a uprobe (Linux 4.17, commit e12f03d7031a). It acts in every process that maps the file.
 * While it is open, the kernel keeps the USDT semaphore in the file raised (Linux 4.20, commit
 * a6ca88b241d5).
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
