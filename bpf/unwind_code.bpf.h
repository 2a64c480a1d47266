/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_CODE_BPF_H
#define STACKD_BPF_UNWIND_CODE_BPF_H

/*
 * Finds what is mapped at an address in the kernel's own list of a process's mappings. Walks need
 * this for code that the daemon has not read from /proc yet: a program right after its exec, a
 * library that was just loaded. If the daemon knows the mapped file, this also finds the file's
 * unwind rows. The search takes no lock. (bpf_find_vma() (7c7e3d31e785, 5.17) takes one: in a BPF
 * program that runs with interrupts off, only its first call would succeed.) A mapping that changes
 * while it is read is not found.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "unwind_shared.h"

enum {
	UNWIND_NODE_WORDS = 32, /* 256 bytes, the size of a maple tree node (d4af56c5c7c6, 6.1) */
	UNWIND_NODE_LEVELS = 8, /* enough: even half-full, nodes of 8 levels hold all mappings */
	/* nodes whose enum maple_type is at most this are struct maple_range_64 */
	UNWIND_NODE_RANGE = 2,
	UNWIND_NODE_ARANGE = 3,
	UNWIND_NODE_PIVOTS = 15,
};

/* The results of a search for what is mapped at an address. */
enum unwind_code_found {
	UNWIND_CODE_NONE,  /* no code, or a mapping that cannot be reported to the daemon */
	UNWIND_CODE_NEW,   /* code, but of a file that the daemon does not know yet */
	UNWIND_CODE_FOUND, /* code: start, size, bias, table and is_generated have been set */
	UNWIND_CODE_SAME,  /* the mapping is the segment that the daemon has for this address */
};

/*
 * A search for what is mapped at an address. Input: mm, has_segments, and `segment`, which is the
 * segment that the daemon has at that address. Output if the result is UNWIND_CODE_FOUND: start,
 * size, bias, table, is_generated.
 */
struct unwind_search {
	__u64 node[UNWIND_NODE_WORDS];
	__u64 mm;
	struct unwind_segment segment; /* end is 0 if the daemon has no segment at the address */
	__u64 start, size, bias;
	__u32 table, is_generated;
	__u32 n_found;
	__u32 has_segments; /* 1: the daemon has stored segments for the process's mappings */
	struct unwind_mapping_found found[UNWIND_FOUND_MAX];
	/* for each member of found[]: address of its struct file in the kernel; 0: none */
	__u64 files[UNWIND_FOUND_MAX];
	__u64 file; /* address in the kernel of the struct file of the mapping that is being read */
	/*
	 * Memory for one use at a time. It is not on the BPF stack, as the limit of 512 bytes is
	 * for all callers together.
	 */
	struct unwind_code code;
};

/*
 * The code that the daemon knows: finds a struct unwind_code by the key by which the kernel
 * identifies the code. Only the daemon writes it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct unwind_code_key);
	__type(value, struct unwind_code);
} unwind_codes SEC(".maps");

#define UNWIND_WORD_OF(type, member) (bpf_core_field_offset(struct type, member) / 8)

/*
 * Returns the index of the slot of the node that covers the address. Those pivots of the node that
 * are in use ascend; the others are 0.
 */
static __always_inline __u32 unwind_slot(const struct unwind_search *s, bool is_arange, __u64 at)
{
	__u32 first = is_arange ? UNWIND_WORD_OF(maple_arange_64, pivot)
				: UNWIND_WORD_OF(maple_range_64, pivot);
	__u32 n = (is_arange ? bpf_core_field_size(((struct maple_arange_64 *)0)->pivot)
			     : bpf_core_field_size(((struct maple_range_64 *)0)->pivot)) /
		  8;
	__u64 below, slot = 0;
	__u32 i;

	/*
	 * The loop has no branches: at each level of the tree, each branch would double the paths
	 * that the verifier follows.
	 */
	for (i = 0; i < UNWIND_NODE_PIVOTS; i++) {
		below = s->node[(first + i) & (UNWIND_NODE_WORDS - 1)] - 1;
		slot += ((below - (at - 1)) >> 63) & ~(below >> 63) & (((__u64)i - n) >> 63);
	}
	return (__u32)slot;
}

/*
 * Returns the vm_area_struct at an address in user memory, as mtree_load() does; 0 if there is
 * none.
 */
static __always_inline __u64 unwind_vma(struct unwind_search *s, __u64 at)
{
	struct mm_struct *mm = (void *)s->mm;
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	__u32 level, kind, slots;

	for (level = 0; level < UNWIND_NODE_LEVELS; level++) {
		/*
		 * The root entry need not be a node (xa_is_internal()). But in a node that is no
		 * leaf, each slot leads to a node.
		 */
		if ((!level && (entry & 3) != 2) || entry <= 4096)
			return 0;
		kind = entry >> 3 & 15;
		if (!kind || kind > UNWIND_NODE_ARANGE ||
		    bpf_probe_read_kernel(s->node, sizeof(s->node), (void *)(entry & ~255ULL)))
			return 0;
		slots = kind == UNWIND_NODE_ARANGE ? UNWIND_WORD_OF(maple_arange_64, slot)
						   : UNWIND_WORD_OF(maple_range_64, slot);
		slots += unwind_slot(s, kind == UNWIND_NODE_ARANGE, at);
		entry = s->node[slots & (UNWIND_NODE_WORDS - 1)];
		if (kind < UNWIND_NODE_RANGE) /* a leaf */
			return entry;
	}
	return 0;
}

static __always_inline __s64 unwind_mtime(struct inode *inode)
{
	struct inode___6_1 *of_6_1 = (void *)inode;
	struct inode___6_7 *of_6_7 = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec))
		return BPF_CORE_READ(inode, i_mtime_sec) * 1000000000LL +
		       BPF_CORE_READ(inode, i_mtime_nsec);
	if (bpf_core_field_exists(of_6_7->__i_mtime))
		return BPF_CORE_READ(of_6_7, __i_mtime.tv_sec) * 1000000000LL +
		       BPF_CORE_READ(of_6_7, __i_mtime.tv_nsec);
	return BPF_CORE_READ(of_6_1, i_mtime.tv_sec) * 1000000000LL +
	       BPF_CORE_READ(of_6_1, i_mtime.tv_nsec);
}

static __always_inline void unwind_key_file(struct unwind_code_key *key, struct file *file,
					    __u64 offset)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	key->inode = BPF_CORE_READ(inode, i_ino);
	key->size = (__u64)BPF_CORE_READ(inode, i_size);
	key->mtime_ns = unwind_mtime(inode);
	key->offset = offset;
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->generation = BPF_CORE_READ(inode, i_generation);
}

/*
 * Describes in *f the executable mapping at an address. False if there is none that can be
 * described.
 */
static __always_inline bool unwind_vma_read(struct unwind_search *s, __u64 at,
					    struct unwind_mapping_found *f)
{
	struct vm_area_struct *vma = (void *)unwind_vma(s, at);
	struct mm_struct *mm = (void *)s->mm;
	struct file *file;

	if (!vma)
		return false;
	f->start = BPF_CORE_READ(vma, vm_start);
	f->end = BPF_CORE_READ(vma, vm_end);
	if (at - f->start >= f->end - f->start || !(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return false;
	file = BPF_CORE_READ(vma, vm_file);
	s->file = (__u64)file;
	if (file)
		unwind_key_file(&f->key, file, BPF_CORE_READ(vma, vm_pgoff) << 12);
	else if ((__u64)BPF_CORE_READ(mm, context.vdso) == f->start)
		f->key.size = f->end - f->start;
	else if (BPF_CORE_READ(vma, vm_ops))
		return false; /* a mapping of the kernel's own, like [uprobes] */
	/* Before 6.15 (3104138517fc) the kernel may have freed and reused the vma by now. */
	return BPF_CORE_READ(vma, vm_file) == file && BPF_CORE_READ(vma, vm_start) == f->start &&
	       BPF_CORE_READ(vma, vm_mm) == mm;
}

/*
 * Adds *f, a mapping that the walk has found, to s->found[], the list of mappings to be sent to the
 * daemon. Returns false if the walk has to end here. This is so if the list is full, and the daemon
 * has segments (its copy of the process's mappings): the daemon names the functions of this stack
 * by the segments and the list only, so it could not name a function in *f. A later walk finds *f
 * again. If the list is full but the daemon has no segments, returns true: the daemon can then look
 * for *f in /proc.
 */
static __always_inline bool unwind_found_add(struct unwind_search *s,
					     const struct unwind_mapping_found *f)
{
	__u32 i;

	for (i = 0; i < UNWIND_FOUND_MAX; i++)
		if (i < s->n_found && s->found[i].start == f->start)
			return true;
	i = s->n_found;
	if (i >= UNWIND_FOUND_MAX)
		return !s->has_segments;
	s->found[i] = *f;
	s->files[i] = s->file;
	s->n_found = i + 1;
	return true;
}

/*
 * True if the found mapping is that of s->segment: the same file, unchanged, at the same address.
 */
static __always_inline bool unwind_is_segment(const struct unwind_search *s,
					      const struct unwind_mapping_found *f)
{
	if (!s->segment.end)
		return false;
	if (s->segment.is_generated && !f->key.inode && !f->key.size)
		return true;
	return s->segment.state == unwind_state_of(f->key.inode, f->key.size, f->key.mtime_ns,
						   f->start - f->key.offset);
}

/*
 * Returns what is mapped at an address, an enum unwind_code_found. A global function, so that the
 * verifier checks it only once.
 */
__noinline int unwind_code_find(struct unwind_search *s, __u64 at)
{
	struct unwind_mapping_found f = {};
	struct unwind_code *entry, *code;

	if (!s || !s->mm || !bpf_core_field_exists(struct mm_struct, mm_mt) ||
	    !unwind_vma_read(s, at, &f))
		return UNWIND_CODE_NONE;
	if (unwind_is_segment(s, &f))
		return UNWIND_CODE_SAME;
	s->start = f.start;
	s->size = f.end - f.start;
	if (!f.key.inode && !f.key.size) {
		if (!unwind_found_add(s, &f))
			return UNWIND_CODE_NONE;
		s->is_generated = 1;
		s->bias = s->table = 0;
		return UNWIND_CODE_FOUND;
	}
	entry = bpf_map_lookup_elem(&unwind_codes, &f.key);
	code = &s->code;
	if (entry)
		*code = *entry;
	if (!entry || code->check != unwind_code_check(&f.key, code))
		return unwind_found_add(s, &f) ? UNWIND_CODE_NEW : UNWIND_CODE_NONE;
	s->is_generated = code->is_generated;
	s->table = code->table;
	s->bias = f.start - code->from_base;
	/*
	 * For a file of an overlay, /proc shows another inode than the kernel has here, so compare
	 * table and bias instead.
	 */
	if (s->segment.end && s->table == s->segment.table && s->bias == s->segment.bias &&
	    s->is_generated == s->segment.is_generated)
		return UNWIND_CODE_SAME;
	return unwind_found_add(s, &f) ? UNWIND_CODE_FOUND : UNWIND_CODE_NONE;
}

#endif
