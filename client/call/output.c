/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/pager.h"
#include "client/call/spool.h"
#include "common/base.h"
#include "common/write_error.h"

/*
 * Says once why writing failed with the errno r. The path is NULL for standard output. Says nothing
 * if the reader of a pipe, such as head, has exited.
 */
static void failure_say(const char *path, int r)
{
	static bool is_said;

	if (abs(r) != EPIPE && !is_said)
		print_message("%s: %s", path ? path : "standard output", write_error_text(r));
	is_said = true;
}

static enum exit_code fail(struct output *output, int r)
{
	failure_say(output->path, r);
	output_discard(output);
	return EXIT_CODE_IO;
}

static char *name_in_directory(const char *directory, const char *stem, const char *suffix,
			       int64_t now)
{
	time_t seconds = (time_t)(now / NS_PER_S);
	char when[32], *path = NULL;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(when, sizeof when, "%Y%m%dT%H%M%S", &tm);
	if (asprintf(&path, "%s%s-%s.%03dZ.%s", directory, stem, when,
		     (int)(now % NS_PER_S / NS_PER_MS), suffix) < 0)
		path = NULL;
	return must(path);
}

/*
 * Gives a new file, which mkostemp() has made with the mode 0600, the owner, group and mode of the
 * file `path`, as if that had been written to. What it may not have is left out: nobody gets to
 * read it who could not. If there is no such file, sets the mode of one that the shell's > makes.
 */
static int set_owner(int fd, const char *path)
{
	mode_t mask = umask(0), mode;
	struct stat before, now;

	umask(mask);
	if (stat(path, &before) < 0)
		return fchmod(fd, 0666 & ~mask);
	if (fstat(fd, &now) < 0)
		return -1;
	mode = before.st_mode & 0777;
	if (before.st_gid != now.st_gid && fchown(fd, (uid_t)-1, before.st_gid) < 0)
		mode &= ~(mode_t)0070;
	/* Then the file is one's own. */
	if (before.st_uid != now.st_uid && fchown(fd, before.st_uid, (gid_t)-1) < 0)
		mode |= 0600;
	return fchmod(fd, mode);
}

/* True if the target is where standard output goes, as /dev/stdout is. */
static bool is_standard(const char *target)
{
	struct stat st, out;

	return stat(target, &st) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
	       st.st_dev == out.st_dev && st.st_ino == out.st_ino;
}

/*
 * Opens a temporary file in the directory of the target, as rename() needs both on one file system.
 */
static enum exit_code open_temporary(struct output *output)
{
	int fd;

	if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0)
		output->temporary = NULL;
	must(output->temporary);
	fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd < 0) {
		int r = errno;

		free(TAKE(output->temporary));
		return fail(output, r);
	}
	if (set_owner(fd, output->path) < 0 || !(output->out = fdopen(fd, "w"))) {
		int r = errno;

		close(fd);
		return fail(output, r);
	}
	return EXIT_CODE_OK;
}

static enum exit_code open_in_place(struct output *output)
{
	output->out = fopen(output->path, "we");
	return output->out ? EXIT_CODE_OK : fail(output, errno);
}

enum exit_code output_open(struct output *output, const char *target, const char *stem,
			   const char *suffix, int64_t now)
{
	struct stat st;
	char *real;

	*output = (struct output){ .out = stdout };
	if (!target) {
		pager_open();
		return EXIT_CODE_OK;
	}
	/* It may be a file that is appended to, and not to be replaced. */
	if (is_standard(target))
		return EXIT_CODE_OK;
	output->out = NULL;
	if (target[strlen(target) - 1] == '/') {
		if (stat(target, &st) < 0 && errno == ENOENT) {
			print_message("--output %s: there is no such directory", target);
			return EXIT_CODE_IO;
		}
		output->path = name_in_directory(target, stem, suffix, now);
		return open_temporary(output);
	}
	/*
	 * A device or a pipe is opened and written directly, because rename() would replace it by a
	 * file. The link of a process to a pipe has no path that realpath() could find.
	 */
	if (stat(target, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		output->path = must(strdup(target));
		return open_in_place(output);
	}
	/*
	 * If the target is a symbolic link, the file that it points to is replaced, and has to
	 * exist.
	 */
	real = realpath(target, NULL);
	if (!real && lstat(target, &st) == 0) {
		print_message("%s is a symbolic link: %s", target, strerror(errno));
		return EXIT_CODE_IO;
	}
	output->path = real ? real : must(strdup(target));
	if (stat(output->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		print_message("%s is a directory; with a / at the end, a file is made in it",
			      target);
		output_discard(output);
		return EXIT_CODE_USAGE;
	}
	return open_temporary(output);
}

void output_be_patient(struct output *output)
{
	FILE *out;
	struct stat st;

	if (output->out != stdout || fstat(STDOUT_FILENO, &st) < 0 || S_ISREG(st.st_mode))
		return;
	out = fflush(stdout) == 0 ? spool_open(STDOUT_FILENO) : NULL;
	if (out)
		output->out = out;
}

/* Closes standard output, a device or a pipe. */
static enum exit_code close_in_place(struct output *output)
{
	bool is_spooled = output->out != stdout, is_paged;
	int r = stream_finish(output->out);

	/* Some file systems and devices report a failed write only when the file is closed. */
	if (fclose(TAKE(output->out)) != 0 && !r)
		r = -errno;
	is_paged = pager_is_open();
	/* The pager ends when both the stream and standard output behind it are closed. */
	if (is_paged && is_spooled)
		fclose(stdout);
	pager_wait();
	if (is_paged && r == -EPIPE) {
		/* Users leave a pager when they have seen what they wanted: the answer is whole. */
		pager_note_left();
		return EXIT_CODE_OK;
	}
	if (!r)
		return EXIT_CODE_OK;
	failure_say(output->path, r);
	return EXIT_CODE_IO;
}

int output_flush(FILE *out, const char *path)
{
	int r = stream_finish(out);

	if (!r)
		return 0;
	failure_say(path, r);
	return -EIO;
}

enum exit_code output_close(struct output *output)
{
	enum exit_code code;
	int r;

	if (!output->temporary) {
		code = close_in_place(output);
		free(TAKE(output->path));
		return code;
	}
	r = stream_finish(output->out);
	if (r < 0)
		return fail(output, r);
	if (fsync(fileno(output->out)) < 0 || fclose(TAKE(output->out)) != 0 ||
	    rename(output->temporary, output->path) < 0)
		return fail(output, errno);
	/* Print this only on a terminal: cron would send it as a mail each time. */
	if (isatty(STDERR_FILENO))
		print_message("wrote %s", output->path);
	free(TAKE(output->temporary));
	free(TAKE(output->path));
	return EXIT_CODE_OK;
}

void output_discard(struct output *output)
{
	if (output->out && output->out != stdout)
		fclose(output->out);
	if (pager_is_open()) {
		fclose(stdout);
		pager_wait();
	}
	output->out = NULL;
	if (output->temporary)
		unlink(output->temporary);
	free(TAKE(output->temporary));
	free(TAKE(output->path));
}
