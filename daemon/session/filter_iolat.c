/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/session/filter.h"

static bool disk_exists(const char *disk)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/block/%s", disk);
	return !strchr(disk, '/') && disk[0] != '.' && access(path, F_OK) == 0;
}

int filter_io_check(const struct wire_filter *wire, struct wire_error *error)
{
	if (wire->layer && io_layer_parse(wire->layer) < 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "layer",
				      "%.40s is no layer: syscall, vfs, fs, block, throttled, "
				      "queue or device",
				      wire->layer);
	if (wire->op && !io_op_exists(wire->op))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "op",
				      "%.40s is no operation: read, write, sync, open, flush, "
				      "discard, submit, other, or a system call of these",
				      wire->op);
	if (wire->disk && (strlen(wire->disk) >= WINDOW_DEVICE_LEN || !disk_exists(wire->disk)))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "disk",
				      "no such disk '%.40s'", wire->disk);
	return 0;
}

static bool wire_has_io(const struct wire_filter *wire, const struct window_io *io)
{
	if (!wire)
		return true;
	if (wire->layer && io_layer_parse(wire->layer) != (int)io->layer)
		return false;
	if (wire->op && !io_op_is(wire->op, io->op, io->call))
		return false;
	return !wire->disk || io_device_is(io->device, wire->disk);
}

bool filter_has_io(const struct filter *filter, const struct window_io *io)
{
	return wire_has_io(filter->wire, io) && (!filter->base || filter_has_io(filter->base, io));
}
