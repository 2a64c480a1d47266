/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_FILE_BPF_H
#define STACKD_BPF_IO_FILE_BPF_H

/*
 * Finds the device and the file system of a file, given its descriptor, inode or struct file. If
 * IO_IS_PLAIN is defined, as for kernels before 6.2, each load from kernel memory is a helper call.
 */

#include "io_kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "io_shared.h"

#ifndef IO_IS_PLAIN
/*
 * Turns a number into a pointer that a program may read through. This costs nothing at run time. A
 * read through a bad pointer returns 0. Since 6.2 (a35b9af4ec2c).
 */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

#define CAST(type, address) \
	((struct type *)bpf_rdonly_cast((void *)(address), bpf_core_type_id_kernel(struct type)))
#endif

/* Says where a file is: the number of its block device, and the magic number of its file system. */
struct io_file {
	__u32 dev;
	__u32 magic;
};

#define IO_FILE_OF_INODE(inode, target)                                                      \
	do {                                                                                 \
		struct super_block *_sb = (inode)->i_sb;                                     \
		__u32 _type = (inode)->i_mode & S_IFMT_MASK;                                 \
                                                                                             \
		if (_type == S_IFCHR_BITS || _type == S_IFBLK_BITS) {                        \
			(target)->dev = (inode)->i_rdev;                                     \
			(target)->magic =                                                    \
				_type == S_IFCHR_BITS ? IO_MAGIC_CHARACTER : IO_MAGIC_BLOCK; \
		} else if (_sb) {                                                            \
			(target)->dev = _sb->s_bdev ? _sb->s_dev : 0;                        \
			(target)->magic = (__u32)_sb->s_magic;                               \
		}                                                                            \
	} while (0)

/* Sets *target to the file's device and file system, without bpf_rdonly_cast(). */
static __always_inline void io_file_read(struct file *file, struct io_file *target)
{
	struct inode *inode;
	struct super_block *sb;
	__u32 type;

	inode = BPF_CORE_READ(file, f_inode);
	type = BPF_CORE_READ(inode, i_mode) & S_IFMT_MASK;
	if (type == S_IFCHR_BITS || type == S_IFBLK_BITS) {
		target->dev = BPF_CORE_READ(inode, i_rdev);
		target->magic = type == S_IFCHR_BITS ? IO_MAGIC_CHARACTER : IO_MAGIC_BLOCK;
		return;
	}
	sb = BPF_CORE_READ(inode, i_sb);
	target->dev = BPF_CORE_READ(sb, s_bdev) ? BPF_CORE_READ(sb, s_dev) : 0;
	target->magic = (__u32)BPF_CORE_READ(sb, s_magic);
}

/*
 * Sets *target to the device and file system of the file to which descriptor fd refers now. If the
 * process has closed fd and opened another file as fd since the system call began, this is not the
 * file of the call.
 */
static __always_inline void io_file_of_descriptor(struct task_struct *task, __u64 fd,
						  struct io_file *target)
{
	struct files_struct *files = ((struct task_struct___io *)task)->files;
	struct fdtable *fdt;

	if (!files)
		return;
	fdt = files->fdt;
	if (!fdt || fd >= fdt->max_fds)
		return;
#ifdef IO_IS_PLAIN
	struct file *file = NULL, **array = fdt->fd;

	bpf_probe_read_kernel(&file, sizeof(file), array + fd);
	io_file_read(file, target);
#else
	struct list_head *at = CAST(list_head, (__u64)fdt->fd + 8 * fd);
	struct file *file = CAST(file, at->next);
	struct inode *inode = file->f_inode;

	if (inode)
		IO_FILE_OF_INODE(inode, target);
#endif
}

/*
 * Sets *target for the file that a system call works on. `file`, an enum io_call_file, says where
 * the file's descriptor is: in an argument of the call, or in its result.
 */
static __always_inline void io_file_of_call(struct task_struct *task, struct pt_regs___kernel *regs,
					    __u8 file, long ret, struct io_file *target)
{
	if (file == IO_FILE_FIRST)
		io_file_of_descriptor(task, (__u32)regs->di, target);
	else if (file == IO_FILE_OUT)
		io_file_of_descriptor(task, (__u32)regs->dx, target);
	else if (file == IO_FILE_RESULT && ret >= 0)
		io_file_of_descriptor(task, (__u64)ret, target);
}

#endif
