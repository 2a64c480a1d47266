/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KINDS_H
#define STACKD_DAEMON_PROBE_KINDS_H

/*
 * The list of all kinds of probes. Each row has the kind, the name of its operations
 * (probe_NAME_ops in NAME.c of this folder, see internal.h), and the name of the builder of its
 * windows (build_NAME in build_NAME.c of daemon/window/), which the drain uses. Constant; any
 * thread.
 */

#define PROBE_KINDS(ROW)                           \
	ROW(PROBE_OFFCPU, offcpu, offcpu)          \
	ROW(PROBE_ONCPU, oncpu, samples)           \
	ROW(PROBE_OFFWAKE, offwake, offwake)       \
	ROW(PROBE_STACKCOUNT, stackcount, samples) \
	ROW(PROBE_STACKSNOOP, stackcount, samples) \
	ROW(PROBE_IOLAT, iolat, iolat)

#define PROBE_OPS_DECLARE(kind, name, builder) extern const struct probe_ops probe_##name##_ops;
#define PROBE_OPS_ROW(kind, name, builder)     [kind] = &probe_##name##_ops,

struct probe_ops;

PROBE_KINDS(PROBE_OPS_DECLARE)

#endif
