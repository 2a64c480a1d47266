/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/openwait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "common/base.h"
#include "daemon/probe/internal.h"
#include "daemon/probe/kernel_btf.h"
#include "daemon/probe/libbpf_log.h"
#include "daemon/probe/own_programs.h"
#include "daemon/probe/unwind_maps.h"

#include "openwait.skel.h"

/* The stacks of waits that have lasted this long are read before those of shorter waits. */
#define OLD_NS (2 * NS_PER_S)

struct probe_openwait {
	struct openwait *skel;
	struct bpf_link *link;
};

/*
 * True if the program uses this map. The program includes a BPF header that also declares maps of
 * other programs; maps that are not used are not created.
 */
static bool map_is_used(const char *name)
{
	static const char *const used[] = { "threads", "slots", "ring", "seen", "seen_adding" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(used); i++)
		if (strcmp(used[i], name) == 0)
			return true;
	return false;
}

static int maps_share(struct probe_openwait *openwait, const struct probe *probe)
{
	struct bpf_map *map;
	const char *name;
	int r = 0;

	bpf_object__for_each_map(map, openwait->skel->obj)
	{
		name = bpf_map__name(map);
		if (map_is_used(name))
			r = bpf_map__reuse_fd(map, probe_map_fd(probe, name));
		else if (!bpf_map__is_internal(map) && !unwind_maps_has(name))
			r = bpf_map__set_autocreate(map, false);
		if (r)
			return r;
	}
	return unwind_maps_reuse(probe->options.unwind, openwait->skel->obj);
}

static void skeleton_configure(struct openwait *skel, const struct probe *probe)
{
	uint32_t ring = bpf_map__max_entries(bpf_object__find_map_by_name(probe->object, "ring"));

	skel->rodata->hash_seed = probe->options.hash_seed;
	kernel_btf_hold();
	skel->rodata->has_user_path = probe_has_user_path();
	kernel_btf_release();
	skel->rodata->ring_wake_bytes = ring / 4;
	skel->rodata->ring_stack_bytes = ring - ring / 4;
}

static int openwait_load(struct probe_openwait *openwait, const struct probe *probe)
{
	int r;

	openwait->skel = openwait__open();
	if (!openwait->skel)
		return -errno;
	skeleton_configure(openwait->skel, probe);
	r = maps_share(openwait, probe);
	if (r)
		return r;
	r = openwait__load(openwait->skel);
	if (r)
		return r;
	own_programs_add(openwait->skel->obj);
	if (!openwait->skel->bss)
		return -ENOMEM; /* libbpf reports success even if it could not map variables */
	openwait->link = bpf_program__attach_iter(openwait->skel->progs.on_open_wait, NULL);
	r = (int)libbpf_get_error(openwait->link);
	if (r)
		openwait->link = NULL;
	return r;
}

int probe_openwait_open(const struct probe *probe, struct probe_openwait **out,
			char reason[static OPENWAIT_REASON])
{
	struct probe_openwait *openwait = calloc(1, sizeof(*openwait));
	int r;

	if (!openwait)
		return -ENOMEM;
	if (!probe->options.unwind) {
		snprintf(reason, OPENWAIT_REASON, "there are no tables for user stacks");
		free(openwait);
		return -EOPNOTSUPP;
	}
	libbpf_log_clear();
	r = openwait_load(openwait, probe);
	if (r) {
		snprintf(reason, OPENWAIT_REASON, "iter.s/task: %s",
			 libbpf_log_warning()[0] ? libbpf_log_warning() : strerror(-r));
		probe_openwait_close(openwait);
		return r;
	}
	*out = openwait;
	return 0;
}

struct probe_openwait *probe_openwait_close(struct probe_openwait *openwait)
{
	if (!openwait)
		return NULL;
	if (openwait->link)
		bpf_link__destroy(openwait->link);
	if (openwait->skel)
		own_programs_remove(openwait->skel->obj);
	openwait__destroy(openwait->skel);
	free(openwait);
	return NULL;
}

static int tasks_visit(struct probe_openwait *openwait, uint64_t min_ns)
{
	_cleanup_(closep) int fd = bpf_iter_create(bpf_link__fd(openwait->link));
	char buffer[64];
	ssize_t n;

	if (fd < 0)
		return fd;
	openwait->skel->bss->pass_min_ns = min_ns;
	do {
		n = read(fd, buffer, sizeof(buffer));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

/*
 * Visits all threads twice: the first visit reads only the stacks of waits that have lasted for
 * OLD_NS or more. In a single visit, short waits could use up the limit max_looks before a long
 * wait is reached.
 */
int64_t probe_openwait_run(struct probe_openwait *openwait, const struct openwait_pass *pass)
{
	struct openwait__bss *shared = openwait->skel->bss;
	int r = 0;

	shared->cut.epoch = pass->epoch;
	shared->cut.lost_epoch = pass->lost_epoch;
	shared->pass_max_looks = pass->max_looks;
	shared->pass_looks = 0;
	if (pass->min_ns < OLD_NS)
		r = tasks_visit(openwait, OLD_NS);
	if (!r && shared->pass_looks < pass->max_looks)
		r = tasks_visit(openwait, pass->min_ns);
	return r ? r : (int64_t)shared->pass_looks;
}

/*
 * Reads the counts without a lock. Only the BPF program changes them, so the worst case is that one
 * event is missing in a count.
 */
void probe_openwait_counts(const struct probe_openwait *openwait, struct openwait_counts *out,
			   uint64_t lost_out[LOST_N], uint32_t *reading_tgid_out)
{
	const struct openwait__bss *shared = openwait->skel->bss;

	memcpy(out, &shared->counts, sizeof(*out));
	memcpy(lost_out, shared->lost, sizeof(shared->lost));
	*reading_tgid_out = *(const volatile uint32_t *)&shared->reading_tgid;
}

void probe_openwait_program(const struct probe_openwait *openwait, struct probe_program *out)
{
	probe_program_read(openwait->skel->progs.on_open_wait, out);
	/* Use constants instead of libbpf's strings, because *out may outlive the session. */
	out->name = "on_open_wait";
	out->hook = "iter.s/task";
}
