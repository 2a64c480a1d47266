/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "bpf/layout.h"
#include "bpf/sample.h"
#include "common/base.h"
#include "common/note_words.h"
#include "daemon/broker/broker.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/libbpf_log.h"
#include "daemon/probe/own_programs.h"
#include "daemon/probe/unwind_maps.h"

/* Names of the BPF programs in bpf/follow_progs.bpf.h, which follow processes. */
static const char *const followers[] = { "on_fork", "on_exec", "on_exit", "on_move" };

void probe_fail(struct probe *probe, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(probe->reason, sizeof(probe->reason), format, args);
	va_end(args);
	probe->is_explained = true;
}

void probe_fail_if_refused(struct probe *probe, int r)
{
	char text[256];

	if (r != -EACCES && r != -EPERM)
		return;
	broker_refusal(probe->options.broker, text, sizeof(text));
	probe_fail(probe, "%s", text);
}

int probe_map_fd(const struct probe *probe, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(probe->object, name);

	return map ? bpf_map__fd(map) : -ENOENT;
}

/*
 * Creates the two maps of windows: programs write to one map while the daemon reads the other. A
 * third map, "windows", contains both. libbpf needs a template for the maps in it, and gets the
 * first of the two maps, because libbpf 1.1 cannot resize a template that it makes itself.
 */
static int window_maps_create(struct probe *probe, const struct probe_sizes *sizes)
{
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(probe->window_fds); i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_HASH, "stackd_window", (uint32_t)sizes->key,
				    (uint32_t)sizes->value, (uint32_t)probe->max_keys, NULL);
		if (fd < 0)
			return fd;
		probe->window_fds[i] = fd;
	}
	return 0;
}

static int map_resize(struct probe *probe, const char *name, uint32_t n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(probe->object, name);

	return map ? bpf_map__set_max_entries(map, n) : -ENOENT;
}

/*
 * Prepares a map for the ids in the session's filter: gives it one entry per id. If there are no
 * ids, leaves the map out, because the programs do not read it then.
 */
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

int probe_choose_move(struct probe *probe)
{
	struct bpf_program *program = bpf_object__find_program_by_name(probe->object, "on_move");
	bool is_loaded = probe->options.follows_processes &&
			 kernel_btf_has("btf_trace_cgroup_attach_task", BTF_KIND_TYPEDEF);

	return bpf_program__set_autoload(program, is_loaded);
}

static int followers_choose(struct probe *probe)
{
	size_t i;
	int r = 0;

	if (!probe->options.follows_processes)
		return 0;
	for (i = 0; i < ARRAY_SIZE(followers) && !r; i++)
		r = bpf_program__set_autoload(follower(probe, i), true);
	return r ? r : probe_choose_move(probe);
}

/*
 * From 6.5 to 6.7, the two paths are the other way round than since 6.8: the file's f_path is the
 * path in the overlay, and the member of struct backing_file behind the file is the path in the
 * layer (real_path).
 */
bool probe_has_user_path(void)
{
	return kernel_btf_has("backing_file", BTF_KIND_STRUCT) &&
	       !kernel_btf_has_member("backing_file", "real_path");
}

int probe_prepare(struct probe *probe, const struct probe_sizes *sizes)
{
	int r = window_maps_create(probe, sizes);

	if (r)
		return r;
	r = followers_choose(probe);
	if (r)
		return r;
	if (probe->options.unwind) {
		r = unwind_maps_reuse(probe->options.unwind, probe->object);
		if (r)
			return r;
	}
	r = map_resize(probe, "ring", sizes->ring_bytes);
	if (r)
		return r;
	r = map_resize(probe, "seen", sizes->n_seen);
	if (r)
		return r;
	r = list_prepare(probe, "filter_pids", probe->options.pids);
	if (r)
		return r;
	r = list_prepare(probe, "filter_tids", probe->options.tids);
	if (r)
		return r;
	return bpf_map__set_inner_map_fd(bpf_object__find_map_by_name(probe->object, "windows"),
					 probe->window_fds[0]);
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

/*
 * Puts the two maps of windows into slots 0 and 1 of the map of maps. Also fills its slot 2, which
 * no BPF program reads: a later update of this slot makes the kernel wait for running programs.
 * Then puts the ids of the session's filter into their maps.
 */
static int maps_fill(struct probe *probe)
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
		if (bpf_program__autoload(follower(probe, i)))
			r = probe_attach_one(probe, follower(probe, i));
	return r;
}

int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint)
{
	return probe_link_add(probe, bpf_program__attach_raw_tracepoint(program, tracepoint));
}

/*
 * The perf event of the kprobe is opened by the broker process. libbpf would open it in this
 * process, which the kernel refuses if kernel.perf_event_paranoid is 3.
 */
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	char refusal[256];
	int fd, r = broker_open_kprobe(probe->options.broker, kprobe, &fd);

	if (r == -EACCES || r == -EPERM) {
		broker_refusal(probe->options.broker, refusal, sizeof(refusal));
		libbpf_log_set_warning(refusal);
	}
	if (r)
		return r;
	r = probe_link_add(probe, bpf_program__attach_perf_event_opts(program, fd, &opts));
	if (r)
		close(fd); /* on success, the link owns the fd */
	return r;
}

static void skeleton_destroy(struct probe *probe)
{
	if (!probe->skeleton)
		return;
	own_programs_remove(probe->object);
	bpf_object__destroy_skeleton(probe->skeleton->skeleton);
	free(probe->skeleton);
	probe->skeleton = NULL;
	probe->object = NULL;
}

void probe_unload(struct probe *probe)
{
	size_t i;

	probe_detach(probe);
	for (i = 0; i < ARRAY_SIZE(probe->window_fds); i++) {
		closep(&probe->window_fds[i]);
		probe->window_fds[i] = -1;
	}
	if (probe->ops->close)
		probe->ops->close(probe);
	skeleton_destroy(probe);
	probe->cut = NULL;
}

static int load_and_attach(struct probe *probe)
{
	const struct probe_ops *ops = probe->ops;
	int r = ops->open(&probe->skeleton);

	if (r)
		return r;
	probe->object = probe->skeleton->obj;
	r = ops->configure(probe);
	if (r)
		return r;
	r = bpf_object__load_skeleton(probe->skeleton->skeleton);
	if (r)
		return r;
	own_programs_add(probe->object);
	probe->cut = ops->cut(probe->skeleton);
	if (!probe->cut)
		return -ENOMEM; /* libbpf reports success even if it could not map variables */
	if (probe->options.cgroups)
		memcpy(probe->cut->cgroups, probe->options.cgroups, sizeof(probe->cut->cgroups));
	r = maps_fill(probe);
	return r ? r : ops->attach(probe);
}

int probe_try(struct probe *probe)
{
	int r;

	libbpf_log_clear();
	probe->is_explained = false;
	r = load_and_attach(probe);
	if (!r)
		return 0;
	if (!probe->is_explained)
		probe_fail(probe, "%s: %s", probe->ops->hook(probe),
			   libbpf_log_warning()[0] ? libbpf_log_warning() : strerror(-r));
	probe_unload(probe);
	return r;
}

/*
 * Tests by creating a map whether this process may use BPF: of all the steps that open a probe,
 * this one needs the fewest privileges.
 */
int probe_check(char *reason, size_t size)
{
	int fd;

	libbpf_log_setup();
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

void probe_detach(struct probe *probe)
{
	if (probe->ops->detach)
		probe->ops->detach(probe);
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
	if (probe->is_on && probe->ops->refresh)
		probe->ops->refresh(probe);
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
	out->hook = probe->ops->hook(probe);
	if (probe->ops->blind)
		probe->ops->blind(probe, out);
	bpf_object__for_each_program(program, probe->object)
	{
		if (bpf_program__autoload(program) && out->n_programs < PROBE_MAX_PROGRAMS)
			probe_program_read(program, &out->programs[out->n_programs++]);
	}
}

const char *probe_status_above(const struct probe_status *status)
{
	for (size_t i = 0; i < status->n_blind; i++)
		if (strncmp(status->blind[i], ABOVE, strlen(ABOVE)) == 0)
			return status->blind[i];
	return NULL;
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

/* Returns how many bytes the kernel charges for a map: the value "memlock" in its fdinfo file. */
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
		if (bpf_map__autocreate(map) && !unwind_maps_has(bpf_map__name(map)))
			sum += map_bytes(bpf_map__fd(map));
	}
	return sum + map_bytes(probe->window_fds[0]) + map_bytes(probe->window_fds[1]);
}

struct cut *probe_cut(const struct probe *probe)
{
	return probe->cut;
}

/* Returns the length from which on all waits or operations are recorded if nothing is sampled. */
static uint64_t sample_least(const struct probe *probe)
{
	return probe->ops->sample_least ? probe->ops->sample_least(probe)
					: (uint64_t)probe->options.min_wait_ns;
}

void probe_set_sample_below(struct probe *probe, uint64_t below_ns)
{
	const uint64_t least = sample_least(probe);
	const bool is_possible =
		probe->ops->sample_least ? least > 0 : probe->ops->sample_below != NULL;

	if (below_ns && below_ns < least)
		below_ns = least;
	if (below_ns > SAMPLE_BELOW_MAX)
		below_ns = least < SAMPLE_BELOW_MAX ? SAMPLE_BELOW_MAX : 0;
	probe->sample_below_ns = is_possible ? below_ns : 0;
}

uint64_t probe_sample_below(const struct probe *probe)
{
	return probe->sample_below_ns;
}

void probe_set_brake(struct probe *probe, uint32_t share)
{
	probe->brake_share = share < BRAKE_SHARE_ALL ? share : BRAKE_SHARE_ALL;
}

uint32_t probe_brake(const struct probe *probe)
{
	return probe->brake_share;
}

void probe_set_shed(struct probe *probe, uint32_t flags, uint32_t sample_every)
{
	probe->shed = flags;
	probe->sample_every = sample_every;
}

void probe_pass_shed(const struct probe *probe, struct cut *cut)
{
	__atomic_store_n(&cut->shed, probe->shed, __ATOMIC_RELAXED);
	__atomic_store_n(&cut->sample_every, probe->sample_every, __ATOMIC_RELAXED);
}

uint64_t probe_brake_below(const struct probe *probe, uint32_t steps, uint64_t below_ns)
{
	return brake_below(steps, below_ns, sample_least(probe));
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
