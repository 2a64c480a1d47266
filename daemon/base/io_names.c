/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/io_names.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "common/io_words.h"

static const struct {
	const char *name;
	uint32_t number;
	uint8_t op;
	uint8_t file;
} calls[] = {
#define X(name, op, file) { #name, SYS_##name, IO_OP_##op, IO_FILE_##file },
	IO_CALL_WORDS(X)
#undef X
};

static const char *const layers[IO_LAYERS] = {
#define X(layer, word) [IO_LAYER_##layer] = word,
	IO_LAYER_WORDS(X)
#undef X
};

static const char *const ops[IO_OPS] = {
#define X(op, word) [IO_OP_##op] = word,
	IO_OP_WORDS(X)
#undef X
};

/* Magic numbers of file systems, from include/uapi/linux/magic.h or from the file system itself. */
static const struct {
	uint32_t magic;
	const char *name;
} magics[] = {
	{ 0xef53, "ext4" },	     { 0x58465342, "xfs" },
	{ 0x9123683e, "btrfs" },     { 0xf2f52010, "f2fs" },
	{ 0x4d44, "vfat" },	     { 0x2011bab0, "exfat" },
	{ 0x7366746e, "ntfs3" },     { 0xca451a4e, "bcachefs" },
	{ 0x2fc12fc1, "zfs" },	     { 0x73717368, "squashfs" },
	{ 0xe0f5e1e2, "erofs" },     { 0x9660, "iso9660" },
	{ IO_MAGIC_BLOCK, "disk" },  { 0x6969, "nfs" },
	{ 0xff534d42, "cifs" },	     { 0xfe534d42, "smb2" },
	{ 0x00c36400, "ceph" },	     { 0x01021997, "9p" },
	{ 0x65735546, "fuse" },	     { 0x794c7630, "overlay" },
	{ 0x01021994, "tmpfs" },     { 0x858458f6, "ramfs" },
	{ 0x958458f6, "hugetlbfs" }, { 0x50495045, "pipe" },
	{ 0x534f434b, "socket" },    { 0x09041934, "anon_inode" },
	{ 0x9fa0, "proc" },	     { 0x62656572, "sysfs" },
	{ 0x63677270, "cgroup2" },   { 0x27e0eb, "cgroup" },
	{ 0x1cd1, "devpts" },	     { 0x64626720, "debugfs" },
	{ 0x74726163, "tracefs" },   { 0x6e736673, "nsfs" },
	{ 0x19800202, "mqueue" },    { IO_MAGIC_CHARACTER, "char" },
};

void io_calls_fill(uint8_t *out, size_t n)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number < n)
			out[calls[i].number] = calls[i].op | calls[i].file;
}

const char *io_call_name(uint32_t call)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number + 1 == call)
			return calls[i].name;
	return NULL;
}

const char *io_layer_name(uint32_t layer)
{
	return layer < IO_LAYERS ? layers[layer] : NULL;
}

const char *io_op_name(uint32_t op)
{
	return op < IO_OPS ? ops[op] : NULL;
}

int io_layer_parse(const char *text)
{
	int i;

	for (i = 0; i < IO_LAYERS; i++)
		if (strcmp(text, layers[i]) == 0)
			return i;
	return -ENOENT;
}

bool io_op_is(const char *text, uint32_t op, uint32_t call)
{
	const char *name = io_op_name(op), *call_name = io_call_name(call);

	return (name && strcmp(text, name) == 0) || (call_name && strcmp(text, call_name) == 0);
}

bool io_op_exists(const char *text)
{
	size_t i;

	for (i = 0; i < IO_OPS; i++)
		if (ops[i] && strcmp(text, ops[i]) == 0)
			return true;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (strcmp(text, calls[i].name) == 0)
			return true;
	return false;
}

const char *io_magic_name(uint32_t magic)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(magics); i++)
		if (magics[i].magic == magic)
			return magics[i].name;
	return NULL;
}

bool io_device_is(const char *device, const char *disk)
{
	size_t n = strlen(disk);

	if (n == 0 || strncmp(device, disk, n) != 0)
		return false;
	device += n;
	if (*device == '\0')
		return true;
	/*
	 * If the name of the disk ends in a digit, a p precedes the number of the partition, as in
	 * nvme0n1p2.
	 */
	if (isdigit((unsigned char)disk[n - 1]) && *device++ != 'p')
		return false;
	return *device && strspn(device, "0123456789") == strlen(device);
}
