/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/term.h"
#include "common/base.h"

/* The maximum numbers of words in $PAGER, and of its bytes. */
enum { WORDS_MAX = 16, COMMAND_MAX = 512 };

static struct {
	bool is_allowed;
	pid_t pid; /* 0: no pager runs */
	bool was_left;
} pager;

void pager_allow(void)
{
	pager.is_allowed = true;
}

bool pager_is_open(void)
{
	return pager.pid > 0;
}

bool pager_was_left(void)
{
	return pager.was_left;
}

void pager_note_left(void)
{
	pager.was_left = true;
}

/* True if the user may do here what root may do only because sudo allows this command. */
static bool is_under_sudo(void)
{
	return getenv("SUDO_UID") != NULL;
}

/* Returns the command of the pager; "" if there is to be none, NULL if none is named. */
static const char *pager_command(void)
{
	const char *command = getenv("SYSTEMD_PAGER");

	if (!command)
		command = getenv("PAGER");
	return command && strcmp(command, "cat") == 0 ? "" : command;
}

/* Replaces the process by a command of words with spaces between. Returns only if that fails. */
static void run_command(const char *command)
{
	char text[COMMAND_MAX], *words[WORDS_MAX + 1], *rest = text, *word;
	size_t n = 0;

	if (strlen(command) >= sizeof(text))
		return;
	memcpy(text, command, strlen(command) + 1);
	while (n < WORDS_MAX && (word = strsep(&rest, " \t")))
		if (word[0])
			words[n++] = word;
	words[n] = NULL;
	if (n > 0)
		execvp(words[0], words);
}

/* Runs the pager in the child process. Closes `failed` by executing, or writes a byte to it. */
static _Noreturn void run_pager(int in, int failed)
{
	const char *command = pager_command(), *less = getenv("SYSTEMD_LESS");

	/* It ends with stackctl, which ignores signals that others do not expect to be ignored. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setenv("LESS", less ? less : "FRSXMK", 1);
	setenv("LESSCHARSET", "utf-8", 1);
	if (dup2(in, STDIN_FILENO) >= 0) {
		if (is_under_sudo())
			setenv("LESSSECURE", "1", 1);
		else if (command)
			run_command(command);
		run_command("less");
		if (!is_under_sudo())
			run_command("more");
	}
	if (write(failed, "", 1) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

/* True if the child process has executed a pager: then it has closed its end of the pipe. */
static bool has_executed(int failed)
{
	char byte;
	ssize_t n;

	do
		n = read(failed, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

/* Makes standard output a pipe to the pager that runs. Waits for it if that fails. */
static void attach(int out)
{
	term_keep_stdout();
	if (dup2(out, STDOUT_FILENO) >= 0)
		return;
	close(out);
	pager_wait();
}

void pager_open(void)
{
	const char *command = pager_command();
	int data[2] = { -1, -1 }, failed[2] = { -1, -1 };
	pid_t pid = -1;

	if (!pager.is_allowed || pager.pid || !term_has_escapes(STDOUT_FILENO) ||
	    (command && !command[0]))
		return;
	if (pipe2(data, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0) {
		fflush(stdout);
		pid = fork();
	}
	if (pid == 0)
		run_pager(data[0], failed[1]);
	closep(&data[0]);
	closep(&failed[1]);
	if (pid > 0 && has_executed(failed[0])) {
		pager.pid = pid;
		attach(data[1]);
	} else if (pid > 0) {
		waitpid(pid, NULL, 0);
	}
	closep(&failed[0]);
	closep(&data[1]);
}

void pager_wait(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;

	if (!pager.pid)
		return;
	/* Ctrl-C is a key of the pager now. */
	sigaction(SIGINT, &ignore, &before);
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &before, NULL);
	pager.pid = 0;
}
