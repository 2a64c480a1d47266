/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/own_programs.h"

#include <stdint.h>

#include <bpf/bpf.h>

#include "daemon/symbol/own_bpf.h"

/* Maximum number of functions of a program that are read, with its subprograms. */
enum { FUNCTIONS_MAX = 64 };

static void program_add(int fd)
{
	struct own_bpf_function functions[FUNCTIONS_MAX];
	uint64_t starts[FUNCTIONS_MAX] = {};
	uint32_t lengths[FUNCTIONS_MAX] = {}, size, i, n = 0;
	struct bpf_prog_info info = {
		.jited_ksyms = (uintptr_t)starts,
		.nr_jited_ksyms = FUNCTIONS_MAX,
		.jited_func_lens = (uintptr_t)lengths,
		.nr_jited_func_lens = FUNCTIONS_MAX,
	};

	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	/* The addresses are 0 for a process that may not see the kernel's addresses. */
	for (i = 0; i < FUNCTIONS_MAX && i < info.nr_jited_ksyms; i++)
		if (starts[i] && lengths[i])
			functions[n++] =
				(struct own_bpf_function){ starts[i], starts[i] + lengths[i] };
	if (n)
		own_bpf_add(info.id, functions, n);
}

void own_programs_add(struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__fd(program) >= 0)
			program_add(bpf_program__fd(program));
	}
}

void own_programs_remove(struct bpf_object *object)
{
	struct bpf_prog_info info;
	struct bpf_program *program;
	uint32_t size;

	bpf_object__for_each_program(program, object)
	{
		info = (struct bpf_prog_info){};
		size = sizeof(info);
		if (bpf_program__fd(program) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			own_bpf_remove(info.id);
	}
}
