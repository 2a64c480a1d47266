/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <utlist.h>

#include "common/base.h"
#include "daemon/module/internal.h"

/*
 * Modules without references. A program that is started again and again, such as a compiler, may
 * have no process for a while. Its module is then kept, so that its symbols, its unwind rows and
 * the keys of its code need not be read again. Its file is closed.
 */

/*
 * The maximum number of modules without references that are kept. If there are more, the module
 * that has been unused for the longest time is dropped.
 */
#define UNUSED_MAX 256

void module_use(struct module *module)
{
	if (!module->refs++)
		module_unused_remove(module);
}

void module_unused_remove(struct module *module)
{
	if (!module->unused_ns)
		return;
	module->unused_ns = 0;
	module->registry->n_unused--;
	DL_DELETE2(module->registry->unused, module, unused_prev, unused_next);
}

struct module *module_leave(struct module *module)
{
	struct module_registry *registry = module->registry;

	/*
	 * Keep the module only if it has a file, and the daemon has closed the file. The daemon
	 * closes a file when the last process that maps it has ended. So a file that is still open
	 * was never mapped by a process that the daemon followed. The vdso has no file.
	 */
	if (module->fd >= 0 || !module->state.inode)
		return module;
	module->unused_ns = clock_ns(CLOCK_MONOTONIC);
	registry->n_unused++;
	DL_APPEND2(registry->unused, module, unused_prev, unused_next);
	return registry->n_unused > UNUSED_MAX ? registry->unused : NULL;
}

struct module *module_unused_before(struct module_registry *registry, int64_t time_ns)
{
	struct module *longest = registry->unused;

	return longest && longest->unused_ns < time_ns ? longest : NULL;
}
