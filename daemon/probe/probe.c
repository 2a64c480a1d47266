/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/unwind_maps.h"

/* What is each kind's own. */
static const struct {
	int (*open_fn)(struct probe *probe);
	void (*close_fn)(struct probe *probe);
	void (*status_fn)(const struct probe *probe, struct probe_status *out);
} kinds[PROBE_KIND_N] = {
	[PROBE_OFFCPU] = { probe_offcpu_open, probe_offcpu_close, probe_offcpu_status },
	[PROBE_ONCPU] = { probe_oncpu_open, probe_oncpu_close, probe_oncpu_status },
	[PROBE_OFFWAKE] = { probe_offwake_open, probe_offwake_close, probe_offwake_status },
	[PROBE_STACKCOUNT] = { probe_stackcount_open, probe_stackcount_close,
			       probe_stackcount_status },
	[PROBE_STACKSNOOP] = { probe_stackcount_open, probe_stackcount_close,
			       probe_stackcount_status },
	[PROBE_IOLAT] = { probe_iolat_open, probe_iolat_close, probe_iolat_status },
};

/* Programs of bpf/follow.bpf.h. */
static const char *const followers[] = { "on_fork", "on_exec", "on_exit" };

/* libbpf's first warning: what the kernel refused. Those that follow are what came of it. */
static _Thread_local char libbpf_warning[256];

static int on_libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[512];
	size_t n;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	n = strcspn(text, "\n");
	text[n] = '\0';
	if (level == LIBBPF_WARN && !libbpf_warning[0] && !strstr(text, "BEGIN PROG LOAD LOG"))
		snprintf(libbpf_warning, sizeof(libbpf_warning), "%.255s", text);
	log_debug("%s", text);
	return 0;
}

const char *probe_warning(void)
{
	return libbpf_warning;
}

void probe_warning_clear(void)
{
	libbpf_warning[0] = '\0';
}

void probe_fail(struct probe *probe, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(probe->reason, sizeof(probe->reason), format, args);
	va_end(args);
}

int probe_map_fd(const struct probe *probe, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(probe->object, name);

	return map ? bpf_map__fd(map) : -ENOENT;
}

/* The first is the template of the outer map too: libbpf 1.1 cannot resize an inner one. */
static int window_maps_create(struct probe *probe, size_t key_size, size_t value_size)
{
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(probe->window_fds); i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_HASH, "stackd_window", (uint32_t)key_size,
				    (uint32_t)value_size, (uint32_t)probe->options.max_keys, NULL);
		if (fd < 0)
			return fd;
		probe->window_fds[i] = fd;
	}
	return 0;
}

static int map_resize(struct probe *probe, const char *name, uint64_t n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(probe->object, name);

	return map ? bpf_map__set_max_entries(map, (uint32_t)n) : -ENOENT;
}

/* A list that is empty is no map at all: the programs do not look at it. */
static int list_prepare(struct probe *probe, const char *name, const struct int_list *ids)
{
	struct bpf_map *map = bpf_object__find_map_by_name(probe->object, name);

	if (!map)
		return -ENOENT;
	if (!ids || !ids->n)
		return bpf_map__set_autocreate(map, false);
	return bpf_map__set_max_entries(map, (uint32_t)ids->n);
}

static struct bpf_program *follower(const struct probe *probe, size_t i)
{
	return bpf_object__find_program_by_name(probe->object, followers[i]);
}

static int followers_choose(struct probe *probe)
{
	size_t i;
	int r = 0;

	for (i = 0; probe->options.follows_processes && i < ARRAY_SIZE(followers) && !r; i++)
		r = bpf_program__set_autoload(follower(probe, i), true);
	return r;
}

int probe_prepare(struct probe *probe, size_t key_size, size_t value_size, uint32_t ring_bytes,
		  uint32_t n_seen)
{
	int r = window_maps_create(probe, key_size, value_size);

	if (!r)
		r = followers_choose(probe);
	if (!r && probe->options.unwind)
		r = probe_unwind_reuse(probe->options.unwind, probe->object);
	if (!r)
		r = map_resize(probe, "ring", ring_bytes);
	if (!r)
		r = map_resize(probe, "seen", n_seen);
	if (!r)
		r = list_prepare(probe, "filter_pids", probe->options.pids);
	if (!r)
		r = list_prepare(probe, "filter_tids", probe->options.tids);
	if (!r)
		r = bpf_map__set_inner_map_fd(
			bpf_object__find_map_by_name(probe->object, "windows"),
			probe->window_fds[0]);
	return r;
}

static int list_fill(struct probe *probe, const char *name, const struct int_list *ids)
{
	uint8_t one = 1;
	uint32_t id;
	size_t i;
	int r;

	for (i = 0; ids && i < ids->n; i++) {
		id = (uint32_t)ids->v[i];
		r = bpf_map_update_elem(probe_map_fd(probe, name), &id, &one, BPF_ANY);
		if (r)
			return r;
	}
	return 0;
}

/* Slot 2 holds a map too, so that updating it again makes the kernel wait for running programs. */
int probe_finish(struct probe *probe)
{
	int outer = probe_map_fd(probe, "windows"), r;
	uint32_t slot;

	for (slot = 0; slot < 3; slot++) {
		r = bpf_map_update_elem(outer, &slot, &probe->window_fds[slot & 1], 0);
		if (r)
			return r;
	}
	r = list_fill(probe, "filter_pids", probe->options.pids);
	return r ? r : list_fill(probe, "filter_tids", probe->options.tids);
}

static int probe_link_add(struct probe *probe, struct bpf_link *link)
{
	long r = libbpf_get_error(link);

	if (r)
		return (int)r;
	if (probe->n_links == ARRAY_SIZE(probe->links)) {
		bpf_link__destroy(link);
		return -E2BIG;
	}
	probe->links[probe->n_links++] = link;
	return 0;
}

int probe_attach_one(struct probe *probe, struct bpf_program *program)
{
	return probe_link_add(probe, bpf_program__attach(program));
}

int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n)
{
	size_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++)
		r = probe_attach_one(probe, programs[i]);
	return r;
}

int probe_follow(struct probe *probe)
{
	size_t i;
	int r = 0;

	for (i = 0; probe->options.follows_processes && i < ARRAY_SIZE(followers) && !r; i++)
		r = probe_attach_one(probe, follower(probe, i));
	return r;
}

int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint)
{
	return probe_link_add(probe, bpf_program__attach_raw_tracepoint(program, tracepoint));
}

/* Not by libbpf's own attach, which opens the event itself and so is refused at paranoid level 3.
 */
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	int fd, r = broker_open_kprobe(probe->options.broker, kprobe, &fd);

	if (r == -EACCES || r == -EPERM)
		broker_refusal(libbpf_warning, sizeof(libbpf_warning));
	if (r)
		return r;
	r = probe_link_add(probe, bpf_program__attach_perf_event_opts(program, fd, &opts));
	if (r)
		close(fd); /* else the link has it */
	return r;
}

void probe_unload(struct probe *probe)
{
	size_t i;

	probe_detach(probe);
	for (i = 0; i < ARRAY_SIZE(probe->window_fds); i++) {
		closep(&probe->window_fds[i]);
		probe->window_fds[i] = -1;
	}
	kinds[probe->options.kind].close_fn(probe);
	probe->object = NULL;
	probe->cut = NULL;
}

static void libbpf_setup(void)
{
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(on_libbpf_print);
}

/* A map is the least of it. */
int probe_check(char *reason, size_t size)
{
	int fd;

	libbpf_setup();
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "stackd_try", 4, 4, 1, NULL);

	if (fd < 0 && (fd == -EPERM || fd == -EACCES)) {
		snprintf(reason, size,
			 "no privilege for BPF: run as root, or with CAP_BPF and CAP_PERFMON "
			 "(systemctl start stackd)");
		return -EPERM;
	}
	closep(&fd);
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	snprintf(reason, size,
		 "the kernel has no type information at /sys/kernel/btf/vmlinux: a kernel with "
		 "CONFIG_DEBUG_INFO_BTF=y is needed (Debian's are)");
	return -EOPNOTSUPP;
}

int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size)
{
	struct probe *probe;
	int r = 0;

	libbpf_setup();
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->options = *options;
	probe->window_fds[0] = probe->window_fds[1] = -1;
	if (options->is_disabled) {
		if (probe_kind_has_calls(options->kind))
			probe_fail(probe, "on demand: stackctl record %s 'vfs_*'",
				   probe_kind_name(options->kind));
		else
			probe_fail(probe,
				   "[probe.%s] enabled = no; for a while: stackctl record %s",
				   probe_kind_name(options->kind), probe_kind_name(options->kind));
		*out = probe;
		return 0;
	}
	probe_types_hold();
	r = kinds[options->kind].open_fn(probe);
	probe_types_release();
	probe->is_on = r == 0;
	if (options->kind == PROBE_OFFCPU && (r == -EPERM || r == -EACCES)) {
		snprintf(reason, size, "the kernel refuses BPF tracing: %s", probe->reason);
		free(probe);
		return -EPERM;
	}
	*out = probe;
	return 0;
}

void probe_detach(struct probe *probe)
{
	if (probe->options.kind == PROBE_ONCPU)
		probe_oncpu_detach(probe);
	if (probe_kind_has_calls(probe->options.kind))
		probe_stackcount_detach(probe);
	while (probe->n_links > 0)
		bpf_link__destroy(probe->links[--probe->n_links]);
	if (probe->iterator)
		bpf_link__destroy(probe->iterator);
	probe->iterator = NULL;
}

struct probe *probe_close(struct probe *probe)
{
	if (!probe)
		return NULL;
	probe_unload(probe);
	free(probe);
	return NULL;
}

bool probe_is_on(const struct probe *probe)
{
	return probe->is_on;
}

enum probe_kind probe_kind(const struct probe *probe)
{
	return probe->options.kind;
}

void probe_refresh(struct probe *probe)
{
	if (probe->is_on && probe->options.kind == PROBE_ONCPU)
		probe_oncpu_refresh(probe);
}

void probe_program_read(const struct bpf_program *program, struct probe_program *out)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	out->name = bpf_program__name(program);
	out->hook = bpf_program__section_name(program);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return;
	out->runs = info.run_cnt;
	out->run_ns = info.run_time_ns;
	out->missed = info.recursion_misses;
	out->verified_insns = info.verified_insns;
}

void probe_status(const struct probe *probe, struct probe_status *out)
{
	struct bpf_program *program;

	*out = (struct probe_status){
		.is_on = probe->is_on,
		.is_disabled = probe->options.is_disabled,
		.reason = probe->reason[0] ? probe->reason : NULL,
	};
	if (!probe->is_on)
		return;
	kinds[probe->options.kind].status_fn(probe, out);
	bpf_object__for_each_program(program, probe->object)
	{
		if (bpf_program__autoload(program) && out->n_programs < PROBE_MAX_PROGRAMS)
			probe_program_read(program, &out->programs[out->n_programs++]);
	}
}

uint64_t probe_missed(const struct probe *probe)
{
	struct probe_status status;
	uint64_t sum = 0;
	size_t i;

	probe_status(probe, &status);
	for (i = 0; i < status.n_programs; i++)
		sum += status.programs[i].missed;
	return sum;
}

/* "memlock:" of fdinfo is what the kernel charges for a map. */
static uint64_t map_bytes(int fd)
{
	_cleanup_(fclosep) FILE *f = NULL;
	unsigned long long bytes = 0;
	char path[64], line[128];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	return bytes;
}

uint64_t probe_map_bytes(const struct probe *probe)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	if (!probe->is_on)
		return 0;
	bpf_object__for_each_map(map, probe->object)
	{
		if (bpf_map__autocreate(map) && !probe_unwind_has(bpf_map__name(map)))
			sum += map_bytes(bpf_map__fd(map));
	}
	return sum + map_bytes(probe->window_fds[0]) + map_bytes(probe->window_fds[1]);
}

struct cut *probe_cut(const struct probe *probe)
{
	return probe->cut;
}

int probe_cpus_fd(const struct probe *probe)
{
	return probe_map_fd(probe, "cpus");
}

int probe_ring_fd(const struct probe *probe)
{
	return probe_map_fd(probe, "ring");
}

int probe_outer_fd(const struct probe *probe)
{
	return probe_map_fd(probe, "windows");
}

int probe_window_fd(const struct probe *probe, unsigned int slot)
{
	return probe->window_fds[slot & 1];
}

struct call_pace *probe_pace(const struct probe *probe)
{
	return probe->pace;
}

size_t probe_functions(const struct probe *probe)
{
	return probe->n_functions;
}

uint64_t probe_period_ns(const struct probe *probe)
{
	return probe->options.period_ns;
}
