/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_OWN_BPF_H
#define STACKD_DAEMON_SYMBOL_OWN_BPF_H

/*
 * Knows where in the kernel's memory the BPF programs are that this process has loaded, so that
 * samples show what they cost, apart from the programs of other tracers. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The module of frames in the BPF programs of this process. Those of others are in "bpf". */
#define OWN_BPF_MODULE "bpf:stackd"

/* A function of a BPF program, at the addresses from start up to end. */
struct own_bpf_function {
	uint64_t start;
	uint64_t end;
};

/* Adds the functions of a program that was loaded. 0, or -ENOMEM. */
int own_bpf_add(uint32_t program_id, const struct own_bpf_function *functions, size_t n);

/*
 * Removes the functions of a program that is about to be unloaded. They are found for another ten
 * seconds, because stacks that were taken before may still wait for their names.
 */
void own_bpf_remove(uint32_t program_id);

/* True if a function that was added contains the address. */
bool own_bpf_has(uint64_t address);

/* Returns a number that changes with each program that is added. */
uint64_t own_bpf_generation(void);

#endif
