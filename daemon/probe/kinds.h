/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KINDS_H
#define STACKD_DAEMON_PROBE_KINDS_H

/*
 * The kinds of probes, and the ops of each (internal.h). Each row is a kind and the start of the
 * name of its ops, probe_NAME_ops, which the file of that name defines. Constant; any thread.
 */

#define PROBE_KINDS(ROW)                  \
	ROW(PROBE_OFFCPU, offcpu)         \
	ROW(PROBE_ONCPU, oncpu)           \
	ROW(PROBE_OFFWAKE, offwake)       \
	ROW(PROBE_STACKCOUNT, stackcount) \
	ROW(PROBE_STACKSNOOP, stackcount) \
	ROW(PROBE_IOLAT, iolat)

#define PROBE_OPS_DECLARE(kind, name) extern const struct probe_ops probe_##name##_ops;
#define PROBE_OPS_ROW(kind, name)     [kind] = &probe_##name##_ops,

struct probe_ops;

PROBE_KINDS(PROBE_OPS_DECLARE)

#endif
