/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_CODE_BPF_H
#define STACKD_BPF_UNWIND_CODE_BPF_H

/*
 * What is mapped at an address, as the kernel has it, for walks through what the daemon has not
 * told of yet: an image that an exec has just made, a library that was just loaded. In go memory
 * and address of the current task, out come the mapping and, where the daemon knows its file, whose
 * rows it has. No lock is taken: bpf_find_vma() (7c7e3d31e785, 5.17) needs the memory's lock, and
 * with interrupts off one call is all a program gets. A mapping that is torn or gone is not found.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "unwind_shared.h"

enum {
	UNWIND_NODE_WORDS = 32, /* of the maple tree (d4af56c5c7c6, 6.1): 256 bytes, so aligned */
	UNWIND_NODE_LEVELS = 8, /* of half-full nodes: more mappings than may be */
	UNWIND_NODE_RANGE = 2,	/* enum maple_type: up to this one struct maple_range_64 */
	UNWIND_NODE_ARANGE = 3,
	UNWIND_NODE_PIVOTS = 15,
};

/* In: mm. Out, where code was found: start, size, bias, table, is_generated. */
struct unwind_search {
	__u64 node[UNWIND_NODE_WORDS];
	__u64 mm;
	__u64 start, size, bias;
	__u32 table, is_generated;
	__u32 n_found, pad;
	struct unwind_mapping_found found[UNWIND_FOUND_MAX];
};

/* By what the kernel knows code by. Size is the daemon's, who alone writes: nothing is allocated
 * here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct unwind_code_key);
	__type(value, struct unwind_code);
} unwind_codes SEC(".maps");

#define UNWIND_WORD_OF(type, member) (bpf_core_field_offset(struct type, member) / 8)

/* Which slot to go on in. Pivots grow, and what is behind the last one is 0. */
static __always_inline __u32 unwind_slot(const struct unwind_search *s, bool is_arange, __u64 at)
{
	__u32 first = is_arange ? UNWIND_WORD_OF(maple_arange_64, pivot)
				: UNWIND_WORD_OF(maple_range_64, pivot);
	__u32 n = (is_arange ? bpf_core_field_size(((struct maple_arange_64 *)0)->pivot)
			     : bpf_core_field_size(((struct maple_range_64 *)0)->pivot)) /
		  8;
	__u64 below, slot = 0;
	__u32 i;

	/* Without branches: each of them would be two paths for the verifier, at every level. */
	for (i = 0; i < UNWIND_NODE_PIVOTS; i++) {
		below = s->node[(first + i) & (UNWIND_NODE_WORDS - 1)] - 1;
		slot += ((below - (at - 1)) >> 63) & ~(below >> 63) & (((__u64)i - n) >> 63);
	}
	return (__u32)slot;
}

/* The mapping at an address or above, as mtree_load() finds it; 0 where there is none. */
static __always_inline __u64 unwind_vma(struct unwind_search *s, __u64 at)
{
	struct mm_struct *mm = (void *)s->mm;
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	__u32 level, kind, slots;

	for (level = 0; level < UNWIND_NODE_LEVELS; level++) {
		/* xa_is_internal(): a node is the root, or a slot of one that is no leaf. */
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

/* False where at is in no executable mapping, or none that could be told. */
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
	if (file)
		unwind_key_file(&f->key, file, BPF_CORE_READ(vma, vm_pgoff) << 12);
	else if ((__u64)BPF_CORE_READ(mm, context.vdso) == f->start)
		f->key.size = f->end - f->start;
	else if (BPF_CORE_READ(vma, vm_ops))
		return false; /* the kernel's own: [uprobes] */
	/* Before 6.15 (3104138517fc) another process may have it by now, half written over. */
	return BPF_CORE_READ(vma, vm_file) == file && BPF_CORE_READ(vma, vm_start) == f->start &&
	       BPF_CORE_READ(vma, vm_mm) == mm;
}

/* For the daemon, which may then tell of it. One too many is found again by the next walk. */
static __always_inline void unwind_found_add(struct unwind_search *s,
					     const struct unwind_mapping_found *f)
{
	__u32 i;

	for (i = 0; i < UNWIND_FOUND_MAX; i++)
		if (i < s->n_found && s->found[i].start == f->start)
			return;
	i = s->n_found;
	if (i >= UNWIND_FOUND_MAX)
		return;
	s->found[i] = *f;
	s->n_found = i + 1;
}

/* Global, so that it is verified once. Whether at is in code that the daemon knows. */
__noinline int unwind_code_find(struct unwind_search *s, __u64 at)
{
	struct unwind_mapping_found f = {};
	struct unwind_code *entry, code;

	if (!s || !s->mm || !bpf_core_field_exists(struct mm_struct, mm_mt) ||
	    !unwind_vma_read(s, at, &f))
		return 0;
	unwind_found_add(s, &f);
	s->start = f.start;
	s->size = f.end - f.start;
	if (!f.key.inode && !f.key.size) {
		s->is_generated = 1;
		s->bias = s->table = 0;
		return 1;
	}
	entry = bpf_map_lookup_elem(&unwind_codes, &f.key);
	if (!entry)
		return 0;
	code = *entry;
	if (code.check != unwind_code_check(&f.key, &code))
		return 0;
	s->is_generated = code.is_generated;
	s->table = code.table;
	s->bias = f.start - code.from_base;
	return 1;
}

#endif
