/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/write_error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stream_finish(FILE *out)
{
	if (fflush(out) == 0 && !ferror(out))
		return 0;
	/*
	 * A write that failed inside printf() leaves no errno, as other calls came after it. The
	 * output is of no use any more: one more byte fails for the same reason.
	 */
	errno = 0;
	if (fputc('\n', out) != EOF && fflush(out) == 0)
		return -EIO;
	return errno ? -errno : -EIO;
}

int stdout_finish(const char *program)
{
	int r = stream_finish(stdout);

	if (r)
		fprintf(stderr, "%s: standard output: %s\n", program, write_error_text(r));
	return r;
}

const char *write_error_text(int r)
{
	return abs(r) == EFBIG
		       ? "File too large (the limit on the size of a file: ulimit -f, LimitFSIZE=)"
		       : strerror(abs(r));
}
