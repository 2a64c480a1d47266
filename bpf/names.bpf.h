/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_NAMES_BPF_H
#define STACKD_BPF_NAMES_BPF_H

/*
 * Sends the paths of files and of control groups, as they are at the time of an event: the daemon
 * could read them from /proc only later, when the process may be gone and the file may have another
 * name. A path is identified by a hash; like a stack, it is sent once per window.
 */

#include "stack.bpf.h"
#include "unwind.bpf.h"

#include <bpf/bpf_core_read.h>

enum {
	NAME_LEVELS = 64,	/* maximum number of levels (directories and mounts) above a file */
	NAME_GROUP_LEVELS = 32, /* maximum number of levels above a control group */
	/* start values of hashes: of a file's path, and of a control group's path */
	NAME_OF_PATH = 1,
	NAME_OF_GROUP = 2,
};

/*
 * Number of the control group at the root of those that the daemon sees; 0: the daemon sees none.
 */
const volatile __u64 cgroup_root = 0;

/*
 * 1: for a mapped file of an overlay, the kernel stores the path in the overlay directly behind the
 * struct file (struct backing_file, since 6.8), see name_start_file().
 */
const volatile __u8 has_user_path = 0;

/* Some BPF programs include this header, but call none of its functions. */
#define __maybe_unused __attribute__((unused))

static __always_inline void name_begin(struct name_walk *p, __u64 of, bool has_text)
{
	p->id = hash_mix(hash_seed, of);
	p->n = 0;
	p->is_whole = 0;
	p->has_text = has_text;
}

/* Appends a component with its NUL. False if there is no room. */
static __always_inline bool name_append(struct name_walk *p, const void *from)
{
	__u32 at = p->n & (NAME_BYTES - 1);
	long n;

	if (!p->has_text)
		return true;
	if (p->n >= NAME_BYTES)
		return false;
	n = bpf_probe_read_kernel_str(p->text + at, NAME_COMPONENT, from);
	if (n <= 0)
		return false;
	p->n = at + (__u32)n;
	return true;
}

/* True if no process can see the mount. */
static __always_inline bool is_hidden(const struct mount *mount)
{
	return (__u64)BPF_CORE_READ(mount, mnt_ns) >= -4096ULL;
}

/*
 * Goes one step up a path, as prepend_path() of the kernel does: to the directory above, or from
 * the root of a mount to the place where it is mounted.
 */
static long name_path_step(__u32 i, void *context)
{
	struct name_walk *p = *(struct name_walk **)context;
	struct dentry *dentry = (void *)p->at, *above;
	struct mount *mount = (void *)p->mount, *below;

	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		below = BPF_CORE_READ(mount, mnt_parent);
		if (below == mount) {
			p->is_whole = !is_hidden(mount);
			return 1;
		}
		p->at = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		p->mount = (__u64)below;
		return 0;
	}
	/*
	 * d_name.hash_len: the kernel's hash of the name of this component and of the directory
	 * above it.
	 */
	p->id = hash_mix(p->id, BPF_CORE_READ(dentry, d_name.hash_len));
	if (!name_append(p, BPF_CORE_READ(dentry, d_name.name)))
		return 1;
	above = BPF_CORE_READ(dentry, d_parent);
	/* A file that is in no directory, such as one of memfd_create(), has a name nonetheless. */
	p->is_whole = above == dentry;
	p->at = (__u64)above;
	return p->is_whole;
}

/*
 * Goes up to the parent of a control group; stops at the root of the groups that the daemon sees.
 */
static long name_group_step(__u32 i, void *context)
{
	struct name_walk *p = *(struct name_walk **)context;
	struct kernfs_node *node = (void *)p->at;
	struct kernfs_node___6_15 *of_6_15 = (void *)node;

	if (!node)
		return 1;
	if (BPF_CORE_READ(node, id) == cgroup_root) {
		p->is_whole = 1;
		return 1;
	}
	if (!name_append(p, BPF_CORE_READ(node, name)))
		return 1;
	if (bpf_core_field_exists(of_6_15->__parent))
		p->at = (__u64)BPF_CORE_READ(of_6_15, __parent);
	else
		p->at = (__u64)BPF_CORE_READ(node, parent);
	return 0;
}

/*
 * Reserves room in the ring for a path and claims the path, so that only one program sends it in
 * this window; then submits or discards the record. STACK_SEND() of stack.bpf.h does the same.
 */
#define NAME_SEND(room)                                                 \
	do {                                                            \
		struct record_name *r;                                  \
                                                                        \
		r = bpf_ringbuf_reserve(&ring, sizeof(*r) + (room), 0); \
		if (!r)                                                 \
			return false;                                   \
		if (!stack_claim(cpu, p->id, cut.epoch)) {              \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);       \
			return true;                                    \
		}                                                       \
		r->head.type = RECORD_NAME;                             \
		r->head.size = sizeof(*r) + (room);                     \
		r->id = p->id;                                          \
		r->n = p->n;                                            \
		r->pad = 0;                                             \
		bpf_probe_read_kernel(r->text, (room), p->text);        \
		bpf_ringbuf_submit(r, ring_flags());                    \
		return true;                                            \
	} while (0)

static __noinline bool name_send(struct cpu *cpu, struct name_walk *p)
{
	if (!cpu || !p)
		return false;
	if (p->n <= NAME_SHORT)
		NAME_SEND(NAME_SHORT);
	NAME_SEND(NAME_BYTES + NAME_COMPONENT);
}

static __always_inline bool name_is_sent(__u64 id)
{
	__u64 *sent = bpf_map_lookup_elem(&seen, &id);

	return sent && *sent == cut.epoch;
}

static __always_inline void name_start(struct name_walk *p, const struct path *path)
{
	p->first = (__u64)BPF_CORE_READ(path, dentry);
	p->first_mount = (__u64)BPF_CORE_READ(path, mnt) - bpf_core_field_offset(struct mount, mnt);
}

/*
 * Sets where the walk up a file's path begins. A program in an overlay is mapped from a file of one
 * of the layers: f_path is then the path in that layer, which is mounted where no process can see
 * it. Since 6.8 the path in the overlay lies directly behind the struct file, as the second member
 * of struct backing_file. BPF programs must not refer to struct backing_file by name: if the kernel
 * lacks it, libbpf searches all kernel modules for it, which needs CAP_SYS_ADMIN.
 */
static __always_inline void name_start_file(struct name_walk *p, struct file *file)
{
	struct dentry *dentry;

	name_start(p, &file->f_path);
	dentry = (void *)p->first;
	if (has_user_path && is_hidden((void *)p->first_mount) &&
	    BPF_CORE_READ(dentry, d_parent) != dentry)
		name_start(p, (void *)file + bpf_core_type_size(struct file));
}

static __always_inline bool name_walk_path(struct name_walk *p, bool has_text)
{
	name_begin(p, NAME_OF_PATH, has_text);
	p->at = p->first;
	p->mount = p->first_mount;
	bpf_loop(NAME_LEVELS, name_path_step, &p, 0);
	return p->is_whole;
}

/*
 * Returns the id of the path of a file, and sends the path unless it was sent in this window. 0:
 * the path is too long or could not be sent, so the daemon has to read it.
 */
static __noinline __u64 name_file(struct cpu *cpu, struct name_walk *p, struct file *file)
{
	if (!cpu || !p || !file)
		return 0;
	name_start_file(p, file);
	if (!name_walk_path(p, false))
		return 0;
	if (name_is_sent(p->id))
		return p->id;
	if (!name_walk_path(p, true) || !name_send(cpu, p))
		return 0;
	return p->id;
}

/* Returns the id of the path of a task's control group; NAME_NONE if the daemon sees no groups. */
static __always_inline __u64 name_group_id(struct task_struct *task)
{
	if (!cgroup_root)
		return NAME_NONE;
	return hash_mix(hash_mix(hash_seed, NAME_OF_GROUP),
			BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id));
}

/*
 * Returns the id of the path of a task's control group, like name_group_id(), and sends the path if
 * it was not sent yet. Returns 0 if that fails.
 */
static __maybe_unused __noinline __u64 name_group(struct cpu *cpu, struct name_walk *p,
						  struct task_struct *task)
{
	__u64 id;

	if (!cpu || !p || !task)
		return 0;
	id = name_group_id(task);
	if (id == NAME_NONE || name_is_sent(id))
		return id;
	name_begin(p, NAME_OF_GROUP, true);
	p->id = id;
	p->at = (__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	bpf_loop(NAME_GROUP_LEVELS, name_group_step, &p, 0);
	return p->is_whole && name_send(cpu, p) ? id : 0;
}

#endif
