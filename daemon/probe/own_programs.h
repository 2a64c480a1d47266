/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_OWN_PROGRAMS_H
#define STACKD_DAEMON_PROBE_OWN_PROGRAMS_H

/* Tells daemon/symbol/own_bpf.h where the kernel has put the programs of a BPF object. */

#include <bpf/libbpf.h>

/*
 * Adds the programs of an object that was loaded. A program that the kernel does not describe is
 * left out: its frames then look like those of another tracer.
 */
void own_programs_add(struct bpf_object *object);

/* Removes them. Call it before the object is closed. */
void own_programs_remove(struct bpf_object *object);

#endif
