/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens /dev/null as fd, which is closed, while all lower descriptors are open. */
static void null_open(int fd)
{
	int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

	/* Without /dev, a directory can be neither read nor written to. */
	if (open("/dev/null", flags) < 0 && open("/", O_PATH) < 0)
		_exit(EXIT_FAILURE);
}

void inherited_settle(void)
{
	sigset_t none;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			null_open(fd);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void inherited_leave(int first_fd)
{
	close_range((unsigned int)first_fd, ~0U, 0);
	umask(umask(0) & ~(mode_t)S_IRWXU);
}
