// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_vforks COUNT FILE: starts FILE COUNT times by vfork() and COUNT times by posix_spawn(), and
 * waits for each to end. The child wakes the program in its exec, in run_child or in the function
 * that posix_spawn() has for its child. Prints the pids: "vfork pid=N", "spawn pid=N".
 */
#include <spawn.h>
#include <sys/wait.h>

#include "prog.h"

extern char **environ;

/* The child of vfork() uses the parent's stack, so it must not return from its function. */
static NAMED void run_child(char **argv)
{
	execve(argv[0], argv, environ);
	_exit(127);
}

static NAMED pid_t start_by_vfork(char **argv)
{
	pid_t pid = vfork();

	if (!pid)
		run_child(argv);
	return pid;
}

static NAMED pid_t start_by_spawn(char **argv)
{
	pid_t pid;

	need(!posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), argv[0]);
	return pid;
}

static void end_child(pid_t pid, const char *how)
{
	int status;

	need(pid > 0 && waitpid(pid, &status, 0) == pid && !status, how);
	printf("%s pid=%d\n", how, (int)pid);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 30);
	char *child[] = { argc > 2 ? argv[2] : "/bin/true", NULL };

	wait_for_start();
	for (long i = 0; i < count; i++) {
		end_child(start_by_vfork(child), "vfork");
		end_child(start_by_spawn(child), "spawn");
	}
	wait_for_end();
	return 0;
}
