/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "daemon/broker.h"
#include "daemon/log.h"
#include "daemon/probe_unwind.h"
#include "proto/base.h"

#include "offcpu.skel.h"

/* As enum stack_hook in bpf/maps.bpf.h. */
enum { HOOK_SCHED_EXIT, HOOK_FINISH_SWITCH, HOOK_SWITCH_OUT, HOOK_N };

/* As in the setting. */
static const char *const hook_words[HOOK_N] = {
	[HOOK_SCHED_EXIT] = "sched_exit",
	[HOOK_FINISH_SWITCH] = "finish_switch",
	[HOOK_SWITCH_OUT] = "switch_out",
};

static const char *const hook_names[HOOK_N] = {
	[HOOK_SCHED_EXIT] = "tp_btf/sched_exit_tp",
	[HOOK_FINISH_SWITCH] = "kprobe/finish_task_switch",
	[HOOK_SWITCH_OUT] = "tp_btf/sched_switch",
};

enum { MAX_LINKS = 16 };

struct probe {
	struct broker *broker; /* borrowed, may be NULL */
	const struct probe_unwind *unwind; /* likewise */
	struct offcpu *skel;
	struct bpf_link *links[MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	int window_fds[2];
	struct thread *threads; /* the map's own memory */
	uint64_t max_threads;
	uint64_t max_keys;
	unsigned int hook;
	bool is_on;
	bool is_disabled;
	char reason[256];
};

/* libbpf's last warning: the one line that says what the kernel refused. */
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
	if (level == LIBBPF_WARN && !strstr(text, "BEGIN PROG LOAD LOG"))
		snprintf(libbpf_warning, sizeof(libbpf_warning), "%.255s", text);
	log_debug("%s", text);
	return 0;
}

static void probe_fail(struct probe *probe, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void probe_fail(struct probe *probe, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(probe->reason, sizeof(probe->reason), format, args);
	va_end(args);
}

static bool kernel_has_tracepoint(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	char type[64];
	bool has;

	if (libbpf_get_error(btf))
		return false;
	snprintf(type, sizeof(type), "btf_trace_%s", name);
	has = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	btf__free(btf);
	return has;
}

/* finish_task_switch is static: compilers rename it (.isra.0, .constprop.0). */
static int finish_switch_symbol(char *name, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], symbol[256], type;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x %c %255s", &type, symbol) != 2 || (type | 32) != 't')
			continue;
		if (strncmp(symbol, "finish_task_switch", 18) != 0 || strstr(symbol, ".cold"))
			continue;
		if (symbol[18] != '\0' && symbol[18] != '.')
			continue;
		snprintf(name, size, "%s", symbol);
		return 0;
	}
	return -ENOENT;
}

static uint64_t round_up_power_of_two(uint64_t v)
{
	uint64_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/* Sizes and switches, before load. */
static int skeleton_configure(struct probe *probe, const struct config *config)
{
	struct offcpu *skel = probe->skel;
	uint32_t ring = (uint32_t)round_up_power_of_two(config->offcpu_stack_ring);
	uint64_t seed;
	int r;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -errno;
	skel->rodata->hash_seed = seed;
	skel->rodata->min_wait_ns = (uint64_t)config->offcpu_min_wait_ns;
	skel->rodata->stack_hook = probe->hook;
	skel->rodata->ring_wake_bytes = ring / 4;
	skel->rodata->ring_stack_bytes = ring - ring / 4;
	r = probe->unwind ? probe_unwind_reuse(probe->unwind, skel->obj) : 0;
	if (r)
		return r;
	r = bpf_map__set_max_entries(skel->maps.ring, ring);
	if (r)
		return r;
	r = bpf_map__set_max_entries(skel->maps.threads, (uint32_t)probe->max_threads);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.slots, (uint32_t)probe->max_threads);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.free_slots, (uint32_t)probe->max_threads);
	if (r)
		return r;
	r = bpf_map__set_inner_map_fd(skel->maps.windows, probe->window_fds[0]);
	if (r)
		return r;
	bpf_program__set_autoload(skel->progs.on_sched_exit, probe->hook == HOOK_SCHED_EXIT);
	return bpf_program__set_autoload(skel->progs.on_finish_switch,
					 probe->hook == HOOK_FINISH_SWITCH);
}

static size_t threads_size(const struct probe *probe)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (probe->max_threads * sizeof(struct thread) + page - 1) & ~(page - 1);
}

/* The first is the template of the outer map too: libbpf 1.1 cannot resize an inner one. */
static int window_maps_create(struct probe *probe)
{
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(probe->window_fds); i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_HASH, "stackd_window", sizeof(struct wait_key),
				    sizeof(struct wait_sums), (uint32_t)probe->max_keys, NULL);
		if (fd < 0)
			return fd;
		probe->window_fds[i] = fd;
	}
	return 0;
}

/* Slot 2 holds a map too, so that updating it again makes the kernel wait for running programs. */
static int window_maps_insert(struct probe *probe)
{
	int outer = bpf_map__fd(probe->skel->maps.windows);
	uint32_t slot;
	int r;

	for (slot = 0; slot < 3; slot++) {
		r = bpf_map_update_elem(outer, &slot, &probe->window_fds[slot & 1], 0);
		if (r)
			return r;
	}
	return 0;
}

/* All slots are free, the lowest on top, so that few pages are touched. */
static int threads_prepare(struct probe *probe)
{
	int free_fd = bpf_map__fd(probe->skel->maps.free_slots), r;
	uint32_t slot = (uint32_t)probe->max_threads;
	void *threads;

	while (slot-- > 0) {
		r = bpf_map_update_elem(free_fd, NULL, &slot, BPF_ANY);
		if (r)
			return r;
	}
	threads = mmap(NULL, threads_size(probe), PROT_READ | PROT_WRITE, MAP_SHARED,
	               bpf_map__fd(probe->skel->maps.threads), 0);
	if (threads == MAP_FAILED)
		return -errno;
	probe->threads = threads;
	return 0;
}

static int probe_link_add(struct probe *probe, struct bpf_link *link)
{
	long r = libbpf_get_error(link);

	if (!r)
		probe->links[probe->n_links++] = link;
	return (int)r;
}

static int probe_attach_one(struct probe *probe, struct bpf_program *program)
{
	return probe_link_add(probe, bpf_program__attach(program));
}

/* Not by libbpf's own attach, which opens the event itself and so is refused at paranoid level 3. */
static int probe_attach_kprobe(struct probe *probe, struct bpf_program *program, const char *symbol)
{
	const struct broker_kprobe kprobe = { .function = symbol };
	int fd, r = broker_open_kprobe(probe->broker, &kprobe, &fd);

	if (r == -EACCES || r == -EPERM)
		broker_refusal(libbpf_warning, sizeof(libbpf_warning));
	if (r)
		return r;
	r = probe_link_add(probe, bpf_program__attach_perf_event(program, fd));
	if (r)
		close(fd); /* else the link has it */
	return r;
}

/*
 * The order matters: sched_switch comes last, so that no wait is pending before the hook that
 * takes its stack is there, and threads are known to their wakers from the first switch on.
 */
static int probe_attach(struct probe *probe)
{
	struct offcpu *skel = probe->skel;
	struct bpf_program *programs[] = {
		skel->progs.on_fork,	   skel->progs.on_exec,	  skel->progs.on_exit,
		skel->progs.on_wakeup_new, skel->progs.on_waking, skel->progs.on_wakeup,
	};
	char symbol[256];
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		r = probe_attach_one(probe, programs[i]);
		if (r)
			return r;
	}
	if (probe->hook == HOOK_SCHED_EXIT) {
		r = probe_attach_one(probe, skel->progs.on_sched_exit);
	} else if (probe->hook == HOOK_FINISH_SWITCH) {
		r = finish_switch_symbol(symbol, sizeof(symbol));
		if (!r)
			r = probe_attach_kprobe(probe, skel->progs.on_finish_switch, symbol);
	}
	if (r)
		return r;
	r = probe_attach_one(probe, skel->progs.on_switch);
	if (r)
		return r;
	probe->iterator = bpf_program__attach_iter(skel->progs.on_task, NULL);
	r = (int)libbpf_get_error(probe->iterator);
	if (r)
		probe->iterator = NULL;
	return r;
}

static void probe_unload(struct probe *probe)
{
	size_t i;

	probe_detach(probe);
	if (probe->threads)
		munmap(probe->threads, threads_size(probe));
	probe->threads = NULL;
	for (i = 0; i < 2; i++) {
		closep(&probe->window_fds[i]);
		probe->window_fds[i] = -1;
	}
	offcpu__destroy(probe->skel);
	probe->skel = NULL;
}

static int probe_try(struct probe *probe, const struct config *config, unsigned int hook)
{
	int r;

	probe->hook = hook;
	libbpf_warning[0] = '\0';
	probe->skel = offcpu__open();
	if (!probe->skel)
		return -errno;
	r = window_maps_create(probe);
	if (!r)
		r = skeleton_configure(probe, config);
	if (!r)
		r = offcpu__load(probe->skel);
	if (!r)
		r = window_maps_insert(probe);
	if (!r)
		r = threads_prepare(probe);
	if (!r)
		r = probe_attach(probe);
	if (!r)
		return 0;
	probe_unload(probe);
	return r;
}

/* What a hook needs, before it is tried; NULL where it may work. */
static const char *hook_missing(unsigned int hook)
{
	char symbol[256];

	if (hook == HOOK_SCHED_EXIT && !kernel_has_tracepoint("sched_exit_tp"))
		return "the kernel has no sched_exit_tp (6.18)";
	if (hook == HOOK_FINISH_SWITCH && finish_switch_symbol(symbol, sizeof(symbol)))
		return "the kernel has no finish_task_switch to probe";
	return NULL;
}

/* The best hook first, or the one that is set. The reason kept is why the one above was refused. */
static int probe_climb(struct probe *probe, const struct config *config)
{
	bool is_auto = strcmp(config->offcpu_hook, "auto") == 0;
	const char *missing;
	unsigned int hook;
	int r = -ENOENT;

	for (hook = 0; hook < HOOK_N; hook++) {
		if (!is_auto && strcmp(config->offcpu_hook, hook_words[hook]) != 0)
			continue;
		missing = hook_missing(hook);
		if (missing) {
			probe_fail(probe, "%s", missing);
			continue;
		}
		r = probe_try(probe, config, hook);
		if (!r)
			return 0;
		probe_fail(probe, "%s: %s", hook_names[hook],
		           libbpf_warning[0] ? libbpf_warning : strerror(-r));
	}
	return r;
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

int probe_open(const struct config *config, struct broker *broker,
	       const struct probe_unwind *unwind, struct probe **out, char *reason, size_t size)
{
	struct probe *probe;
	int r;

	libbpf_setup();
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->broker = broker;
	probe->unwind = unwind;
	probe->window_fds[0] = probe->window_fds[1] = -1;
	probe->max_threads = config->offcpu_max_threads;
	probe->max_keys = config->offcpu_max_keys;
	probe->is_disabled = !config->offcpu_enabled;
	if (probe->is_disabled) {
		probe_fail(probe, "[probe.offcpu] enabled = no");
	} else {
		r = probe_climb(probe, config);
		probe->is_on = r == 0;
		if (r == -EPERM || r == -EACCES) {
			snprintf(reason, size, "the kernel refuses BPF tracing: %s", probe->reason);
			free(probe);
			return -EPERM;
		}
	}
	*out = probe;
	return 0;
}

void probe_detach(struct probe *probe)
{
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

static void program_status(const struct bpf_program *program, struct probe_program *out)
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
		.is_disabled = probe->is_disabled,
		.reason = probe->reason[0] ? probe->reason : NULL,
	};
	if (!probe->is_on)
		return;
	out->hook = hook_names[probe->hook];
	if (probe->hook == HOOK_SWITCH_OUT)
		out->blind[out->n_blind++] = "switches that sched_switch does not show";
	bpf_object__for_each_program(program,
				     probe->skel->obj) if (bpf_program__autoload(program) &&
							   out->n_programs < PROBE_MAX_PROGRAMS)
		program_status(program, &out->programs[out->n_programs++]);
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
	bpf_object__for_each_map(map, probe->skel->obj) sum += map_bytes(bpf_map__fd(map));
	return sum + map_bytes(probe->window_fds[0]) + map_bytes(probe->window_fds[1]);
}

struct cut *probe_cut(const struct probe *probe)
{
	return &probe->skel->bss->cut;
}

struct thread *probe_threads(const struct probe *probe)
{
	return probe->threads;
}

int probe_cpus_fd(const struct probe *probe)
{
	return bpf_map__fd(probe->skel->maps.cpus);
}

int probe_ring_fd(const struct probe *probe)
{
	return bpf_map__fd(probe->skel->maps.ring);
}

int probe_outer_fd(const struct probe *probe)
{
	return bpf_map__fd(probe->skel->maps.windows);
}

int probe_window_fd(const struct probe *probe, unsigned int slot)
{
	return probe->window_fds[slot & 1];
}

uint64_t probe_max_threads(const struct probe *probe)
{
	return probe->max_threads;
}

uint64_t probe_max_keys(const struct probe *probe)
{
	return probe->max_keys;
}

void probe_drop_thread(const struct probe *probe, struct thread *thread)
{
	uint32_t slot = thread->slot;
	uint64_t task = thread->task;

	if (bpf_map_delete_elem(bpf_map__fd(probe->skel->maps.slots), &task))
		return;
	thread->task = 0;
	thread->uid = 0;
	bpf_map_update_elem(bpf_map__fd(probe->skel->maps.free_slots), NULL, &slot, BPF_ANY);
}

int probe_iterate(const struct probe *probe)
{
	int fd;

	if (!probe->iterator)
		return -ENOENT;
	fd = bpf_iter_create(bpf_link__fd(probe->iterator));
	return fd < 0 ? -errno : fd;
}
