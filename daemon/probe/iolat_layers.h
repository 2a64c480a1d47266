/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_IOLAT_LAYERS_H
#define STACKD_DAEMON_PROBE_IOLAT_LAYERS_H

/*
 * The layers of the I/O path that BPF programs cannot see on every kernel: the VFS, file systems
 * and io.max. Chooses which programs of iolat can be attached on this kernel, attaches them, and
 * describes what is attached and what cannot be seen. The probe owns the struct iolat_layers. Used
 * on the thread that opens the probe.
 */

#include "daemon/probe/internal.h"

/*
 * Chooses the programs for the layers. Called before the programs are loaded. 0; -ENOMEM; or
 * -EOPNOTSUPP with probe->reason set, if the settings demand a hook that this kernel does not
 * allow.
 */
int iolat_layers_new(struct probe *probe);
void iolat_layers_free(struct probe *probe);

/* True if the probe records system calls. */
bool iolat_layers_have_calls(const struct probe *probe);

/* True if the probe records system calls by fentry programs, not by tracepoints. */
bool iolat_layers_have_call_functions(const struct probe *probe);

/* True if the probe records functions of the VFS or of a file system. */
bool iolat_layers_have_functions(const struct probe *probe);

/*
 * Attaches the kprobes. Called after the BPF programs are loaded. Returns -EOPNOTSUPP if the kernel
 * refuses all kprobes and the settings demand kprobes; otherwise returns 0, even if the kernel
 * refuses kprobes.
 */
int iolat_layers_attach(struct probe *probe);

/*
 * Implement the members `hook` and `blind` of the struct probe_ops of iolat. Must be called only
 * while the probe is on.
 */
const char *iolat_layers_hook(const struct probe *probe);
void iolat_layers_blind(const struct probe *probe, struct probe_status *out);

#endif
