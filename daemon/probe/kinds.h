/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KINDS_H
#define STACKD_DAEMON_PROBE_KINDS_H

/*
 * The list of all kinds of probes. Each line has three items: the kind; the NAME of its struct
 * probe_NAME_ops, which is in NAME.c of this folder; and the NAME of its struct build_NAME, which
 * is in build_NAME.c of daemon/window/ and builds the windows of this kind for the drain. Constant;
 * any thread.
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
