/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/spool.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base.h"

enum { PATIENCE_MS = 2000 };

struct spool {
	int fd;
	int error;  /* errno of the first write that failed; later ones fail with it, too */
	FILE *rest; /* temporary file with what the reader did not take; NULL: it took everything */
};

/*
 * Waits until the descriptor can be written. Returns 1 if it can, 0 after timeout_ms, or a negative
 * errno if its reader has gone.
 */
static int wait_writable(int fd, int timeout_ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	int n = poll(&poller, 1, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return poller.revents & POLLERR ? -EPIPE : n > 0 ? 1 : 0;
}

/*
 * Writes as much as the reader takes, and sets *done to its length. Writes no more than PIPE_BUF
 * bytes at once: a pipe that can be written takes them without blocking.
 */
static int write_some(int fd, const char *data, size_t n, size_t *done)
{
	*done = 0;
	while (*done < n) {
		size_t size = n - *done < PIPE_BUF ? n - *done : PIPE_BUF;
		int r = wait_writable(fd, PATIENCE_MS);
		ssize_t written;

		if (r <= 0)
			return r;
		written = write(fd, data + *done, size);
		if (written < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		*done += written > 0 ? (size_t)written : 0;
	}
	return 0;
}

static int write_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, data, n);

		if (written < 0 && errno == EAGAIN)
			wait_writable(fd, -1);
		else if (written < 0 && errno != EINTR)
			return -errno;
		data += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}

/* Writes to the reader until it is slow, and then to the temporary file. */
static int spool_write(struct spool *spool, const char *data, size_t n)
{
	size_t done = 0;
	int r;

	if (spool->error)
		return -spool->error;
	r = spool->rest ? wait_writable(spool->fd, 0) : write_some(spool->fd, data, n, &done);
	if (r < 0 || done == n)
		return r;
	if (!spool->rest)
		spool->rest = tmpfile();
	/* Without room for a temporary file, the reader decides how long this takes. */
	if (!spool->rest)
		return write_all(spool->fd, data + done, n - done);
	return fwrite(data + done, 1, n - done, spool->rest) < n - done ? -errno : 0;
}

/* Writes for fopencookie(), which wants the number of bytes, or 0 with errno set on failure. */
static ssize_t on_write(void *cookie, const char *data, size_t n)
{
	struct spool *spool = cookie;
	int r = spool_write(spool, data, n);

	if (r >= 0)
		return (ssize_t)n;
	errno = spool->error = -r;
	return 0;
}

/* Writes what is in the temporary file to the reader, however long it takes. */
static int rest_write(const struct spool *spool)
{
	char buffer[65536];
	size_t n;
	int r;

	if (fflush(spool->rest) != 0)
		return -errno;
	rewind(spool->rest);
	while ((n = fread(buffer, 1, sizeof(buffer), spool->rest)) > 0) {
		r = write_all(spool->fd, buffer, n);
		if (r < 0)
			return r;
	}
	return ferror(spool->rest) ? -EIO : 0;
}

static int on_close(void *cookie)
{
	struct spool *spool = cookie;
	int r = spool->rest ? rest_write(spool) : 0;

	fclosep(&spool->rest);
	free(spool);
	errno = -r;
	return r < 0 ? -1 : 0;
}

FILE *spool_open(int fd)
{
	const cookie_io_functions_t functions = { .write = on_write, .close = on_close };
	struct spool *spool = calloc(1, sizeof(*spool));
	FILE *out;

	if (!spool)
		return NULL;
	spool->fd = fd;
	out = fopencookie(spool, "w", functions);
	if (!out)
		free(spool);
	return out;
}
