/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"

#define LOCK_SUFFIX	".lock"
#define LOCK_TIMEOUT_NS (10 * NS_PER_S)

enum { BACKLOG = 128, SOCKET_MODE = 0660, LOCK_RETRY_US = 1000 };

/* Greatest size in bytes of an entry of the group database. */
enum { GROUP_MAX = 64 << 20 };

static int address_make(const char *path, struct sockaddr_un *address)
{
	size_t len = strlen(path);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (len == 0 || len >= sizeof(address->sun_path)) {
		log_error("cannot listen on '%s': a socket's path has 1 to %zu bytes, this has %zu",
			  path, sizeof(address->sun_path) - 1, len);
		return len == 0 ? -EINVAL : -ENAMETOOLONG;
	}
	memcpy(address->sun_path, path, len);
	return 0;
}

/*
 * Returns 1 if a process accepts connections at the address, 0 if none does, or a negative errno.
 */
static int is_answered(const struct sockaddr_un *address)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 1;
	if (errno == EAGAIN) /* a process listens, but its queue of connections is full */
		return 1;
	if (errno == ECONNREFUSED || errno == ENOENT)
		return 0;
	return -errno;
}

static int stale_remove(const struct sockaddr_un *address)
{
	const char *path = address->sun_path;
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : log_err(-errno, "cannot examine %s", path);
	if (!S_ISSOCK(st.st_mode)) {
		log_error("cannot listen on %s: it exists and is not a socket", path);
		return -EEXIST;
	}
	r = is_answered(address);
	if (r < 0)
		return log_err(r, "cannot tell whether %s is in use", path);
	if (r > 0) {
		log_error("cannot listen on %s: another daemon answers there", path);
		return -EADDRINUSE;
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return log_err(-errno, "cannot remove the stale socket %s", path);
	log_info("removed the stale socket %s", path);
	return 0;
}

int server_group_find(const char *name, gid_t *gid_out)
{
	_cleanup_(freep) char *buffer = NULL;
	struct group entry, *found = NULL;
	size_t size = 4096;
	char *grown;
	int r = ERANGE;

	/*
	 * The buffer must be large enough for the names of all members, although only the number of
	 * the group is used.
	 */
	while (r == ERANGE && size <= GROUP_MAX) {
		grown = realloc(buffer, size);
		if (!grown)
			return -ENOMEM;
		buffer = grown;
		r = getgrnam_r(name, &entry, buffer, size, &found);
		size *= 4;
	}
	if (found)
		*gid_out = found->gr_gid;
	return found ? 0 : r ? -r : -ENOENT;
}

/* Changes the group of the socket. Only logs a failure, since root can still use the socket. */
static void group_set(const char *path, const char *group)
{
	gid_t gid;
	int r = server_group_find(group, &gid);

	if (r == -ENOENT) {
		log_notice("there is no group '%s', so only root can use %s", group, path);
		return;
	}
	if (r) {
		log_err(r, "cannot find the group '%s', so only root can use %s", group, path);
		return;
	}
	if (lchown(path, (uid_t)-1, gid) < 0)
		log_warning("cannot give %s to the group '%s': %s", path, group,
			    strerrordesc_np(errno));
}

/* True if `path` still names the file that is open as fd. */
static bool is_at(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/*
 * Opens and locks the file `lock`, which is next to the socket. The lock is held until any stale
 * socket is removed and the new one is bound. Otherwise, of two daemons that start at once, one
 * might remove the socket of the other. The holder of the lock removes the file before it unlocks
 * it. So if the file that was locked is not at its path any more, the loop tries again.
 */
static int lock_take(const char *lock, int *fd_out)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + LOCK_TIMEOUT_NS;
	int fd, r;

	for (;;) {
		fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return log_err(-errno, "cannot listen, because %s cannot be created", lock);
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (r == 0 && is_at(fd, lock)) {
			*fd_out = fd;
			return 0;
		}
		close(fd);
		if (r < 0 && r != -EWOULDBLOCK)
			return log_err(r, "cannot listen, because %s cannot be locked", lock);
		if (clock_ns(CLOCK_MONOTONIC) > until)
			return log_err(-EBUSY,
				       "cannot listen, because another process has locked %s",
				       lock);
		usleep(LOCK_RETRY_US);
	}
}

static int listen_locked(const struct sockaddr_un *address, const char *group, int *fd_out)
{
	const char *path = address->sun_path;
	_cleanup_(closep) int fd = -1;
	int r;

	r = stale_remove(address);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return log_err(-errno, "cannot create a socket");
	/* Set the mode before bind(), so that there is no moment at which other users can
	 * connect. */
	if (fchmod(fd, SOCKET_MODE) < 0)
		return log_err(-errno, "cannot set the mode of a socket");
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return log_err(-errno, "cannot bind %s", path);
	if (group)
		group_set(path, group);
	/* Set the mode again, because bind() has applied the umask to it. */
	if (chmod(path, SOCKET_MODE) < 0 || listen(fd, BACKLOG) < 0) {
		r = log_err(-errno, "cannot listen on %s", path);
		unlink(path);
		return r;
	}
	*fd_out = fd;
	fd = -1;
	return 0;
}

int server_socket_listen(const char *path, const char *group, int *fd_out)
{
	char lock[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(LOCK_SUFFIX)];
	struct sockaddr_un address;
	int r, lock_fd = -1;

	r = address_make(path, &address);
	if (r < 0)
		return r;
	snprintf(lock, sizeof(lock), "%s%s", path, LOCK_SUFFIX);
	r = lock_take(lock, &lock_fd);
	if (r < 0)
		return r;
	r = listen_locked(&address, group, fd_out);
	unlink(lock);
	close(lock_fd);
	return r;
}

static int socket_option(int fd, int option, int expected)
{
	socklen_t len = sizeof(int);
	int value = 0;

	if (getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0)
		return -errno;
	return value == expected ? 0 : -EINVAL;
}

int server_socket_check(int fd)
{
	int r = socket_option(fd, SO_DOMAIN, AF_UNIX);

	if (r == 0)
		r = socket_option(fd, SO_TYPE, SOCK_STREAM);
	if (r == 0)
		r = socket_option(fd, SO_ACCEPTCONN, 1);
	return r;
}

static int groups_get(int fd, struct server_peer *peer)
{
	_cleanup_(freep) gid_t *groups = NULL;
	socklen_t len = 0;

	peer->groups = NULL;
	peer->n_groups = 0;
	/* The first call fails with ERANGE and sets len to the size that is needed. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || len == 0)
		return 0;
	if (errno != ERANGE)
		return -errno;
	groups = malloc(len);
	if (!groups)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return -errno;
	peer->groups = TAKE(groups);
	peer->n_groups = len / sizeof(gid_t);
	return 0;
}

int server_peer_get(int fd, struct server_peer *out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	r = groups_get(fd, out);
	if (r < 0)
		return r;
	out->pid = cred.pid;
	out->uid = cred.uid;
	out->gid = cred.gid;
	return 0;
}

void server_peer_fini(struct server_peer *peer)
{
	free(peer->groups);
	peer->groups = NULL;
	peer->n_groups = 0;
}

bool server_peer_in_group(const struct server_peer *peer, gid_t gid)
{
	if (peer->gid == gid)
		return true;
	for (size_t i = 0; i < peer->n_groups; i++)
		if (peer->groups[i] == gid)
			return true;
	return false;
}
