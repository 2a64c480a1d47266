/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/remote_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/major.h>
#include <linux/nsfs.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/host/loop_device.h"
#include "daemon/host/mountinfo.h"

/*
 * OWN: number of directories and files whose devices always count as local. MOUNTS_MAX: maximum
 * number of mounts of one process that are looked at, because users can mount very many in a
 * namespace of their own; the others count as remote. ROOTS_MOUNTS_MAX: the same for mounts that
 * only root can make.
 */
enum { OWN = 2, MOUNTS_MAX = 4096, ROOTS_MOUNTS_MAX = 100000, FDINFO_BYTES = 512 };

struct mount {
	int id;
	dev_t dev;
	bool is_local, is_overlay;
	char *point; /* path of the mount point */
};

struct mount_table {
	int fd;	       /* mountinfo; polling it tells whether the mounts have changed since the last
			  read */
	bool is_roots; /* only root can mount in this namespace */
	struct mount *v;
	size_t n, capacity;
};

struct remote_mounts {
	pthread_mutex_t lock;
	struct mount_table init, own; /* the mounts of process 1 and of stackd */
	dev_t own_devs[OWN];
	int memory_id; /* mount id of files that memfd_create() makes; -1: not known */
	dev_t memory_dev;
};

/*
 * True if the kernel serves this type of file system from disk or memory, and needs no program and
 * no other host for it.
 */
static bool type_is_local(const char *type)
{
	static const char *const types[] = {
		"bcachefs", "btrfs", "cramfs",	"devtmpfs", "erofs", "exfat",  "ext2",	   "ext3",
		"ext4",	    "f2fs",  "hfsplus", "iso9660",  "jffs2", "jfs",    "minix",	   "msdos",
		"nilfs2",   "ntfs3", "ramfs",	"reiserfs", "romfs", "rootfs", "squashfs", "tmpfs",
		"ubifs",    "udf",   "vfat",	"xfs",	    "zfs",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* True if a list of mount options, with commas between them, has this one. */
static bool has_option(const char *options, const char *option)
{
	const size_t n = strlen(option);
	const char *at = options;

	while (at && (strncmp(at, option, n) || (at[n] && at[n] != ','))) {
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return at != NULL;
}

/*
 * True for a file system in a file (a loop device) that was mounted on behalf of a user: udisks
 * lets those who are logged in do that, and mounts it as nosuid. The file may lie on any file
 * system, also on one that the user serves. Loop devices that packages such as snaps mount are not
 * nosuid.
 */
static bool is_loop_of_user(const struct mountinfo *mount)
{
	if (!has_option(mount->options, "nosuid"))
		return false;
	/* btrfs has device numbers of its own. */
	return mount->major == LOOP_MAJOR ||
	       !strncmp(mount->source, "/dev/loop", strlen("/dev/loop")) ||
	       (mount->major && loop_device_is_below("/sys", mount->major, mount->minor));
}

static void table_clear(struct mount_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->v[i].point);
	table->n = 0;
}

static void table_fini(struct mount_table *table)
{
	closep(&table->fd);
	table_clear(table);
	free(table->v);
	*table = (struct mount_table){ .fd = -1 };
}

/* Adds the mount of a line; ignores lines of another form. Returns 0 or -ENOMEM. */
static int line_add(struct mount_table *table, const char *line)
{
	_cleanup_(mountinfo_fini) struct mountinfo info;

	if (mountinfo_parse(line, &info))
		return 0;
	if (array_reserve(table->v, table->capacity, table->n + 1))
		return -ENOMEM;
	table->v[table->n++] = (struct mount){
		.id = info.id,
		.dev = makedev(info.major, info.minor),
		.is_local = type_is_local(info.type) && !is_loop_of_user(&info),
		.is_overlay = !strcmp(info.type, "overlay"),
		.point = TAKE(info.point),
	};
	return 0;
}

static int table_parse(struct mount_table *table, FILE *in)
{
	const size_t max = table->is_roots ? ROOTS_MOUNTS_MAX : MOUNTS_MAX;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	int r = 0;

	table_clear(table);
	while (!r && table->n < max && getline(&line, &size, in) > 0)
		r = line_add(table, line);
	if (r)
		table_clear(table);
	return r;
}

static int table_read(struct mount_table *table)
{
	_cleanup_(fclosep) FILE *in = NULL;
	int fd = fcntl(table->fd, F_DUPFD_CLOEXEC, 0);

	in = fd < 0 ? NULL : fdopen(fd, "re");
	if (!in) {
		closep(&fd);
		return -ENOMEM;
	}
	rewind(in);
	return table_parse(table, in);
}

/*
 * Reads the table again if something was mounted or unmounted since the last read. The
 * entry of a mount id is then right for every descriptor that was opened before this call.
 */
static void table_refresh(struct mount_table *table)
{
	struct pollfd change = { .fd = table->fd, .events = POLLPRI };

	if (table->fd < 0 || (table->n && poll(&change, 1, 0) == 0))
		return;
	if (table_read(table))
		table_clear(table);
}

static const struct mount *find_id(const struct mount_table *table, int id)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->v[i].id == id)
			return &table->v[i];
	return NULL;
}

static const struct mount *find_dev(const struct mount_table *table, dev_t dev)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->v[i].dev == dev)
			return &table->v[i];
	return NULL;
}

/* Returns the mount that is on top at this mount point: the one that was mounted last. */
static const struct mount *find_point(const struct mount_table *table, const char *path)
{
	for (size_t i = table->n; i-- > 0;)
		if (!strcmp(table->v[i].point, path))
			return &table->v[i];
	return NULL;
}

/* Returns the mount id of a descriptor; -1 if it cannot be read. Does not ask the file system. */
static int mount_id_of(int fd)
{
	char path[40], text[FDINFO_BYTES];
	const char *at;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	closep(&info);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strstr(text, "mnt_id:");
	return at ? (int)strtol(at + strlen("mnt_id:"), NULL, 10) : -1;
}

/*
 * Finds out the mount id and the device of files in memory, whose file system is mounted nowhere.
 * Programs such as runc run from such a file.
 */
static void memory_learn(struct remote_mounts *mounts)
{
	_cleanup_(closep) int fd = memfd_create("stackd", MFD_CLOEXEC);
	struct stat st;

	mounts->memory_id = -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	mounts->memory_id = mount_id_of(fd);
	mounts->memory_dev = st.st_dev;
}

struct remote_mounts *remote_mounts_new(void)
{
	static const char *const own[OWN] = { "/", "/proc/self/exe" };
	struct remote_mounts *mounts = calloc(1, sizeof(*mounts));
	struct stat st;

	if (!mounts)
		return NULL;
	pthread_mutex_init(&mounts->lock, NULL);
	for (size_t i = 0; i < OWN; i++)
		if (stat(own[i], &st) == 0)
			mounts->own_devs[i] = st.st_dev;
	memory_learn(mounts);
	mounts->init.fd = open("/proc/1/mountinfo", O_RDONLY | O_CLOEXEC);
	mounts->own.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	mounts->init.is_roots = mounts->own.is_roots = true;
	return mounts;
}

struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts)
{
	if (!mounts)
		return NULL;
	table_fini(&mounts->init);
	table_fini(&mounts->own);
	pthread_mutex_destroy(&mounts->lock);
	free(mounts);
	return NULL;
}

struct mount_view mount_view_of(struct remote_mounts *mounts, int proc_fd)
{
	return (struct mount_view){ .mounts = mounts, .proc_fd = proc_fd };
}

void mount_view_fini(struct mount_view *view)
{
	if (!view->table)
		return;
	table_fini(view->table);
	free(view->table);
	view->table = NULL;
}

/*
 * True if only root can mount something in the mount namespace of the process: the namespace
 * belongs to the same user namespace as stackd.
 */
static bool is_roots_namespace(int proc_fd)
{
	_cleanup_(closep) int mounts_fd = openat(proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int owner_fd = -1;
	struct stat owner, own;

	if (mounts_fd >= 0)
		owner_fd = ioctl(mounts_fd, NS_GET_USERNS);
	return owner_fd >= 0 && fstat(owner_fd, &owner) == 0 &&
	       stat("/proc/self/ns/user", &own) == 0 && owner.st_dev == own.st_dev &&
	       owner.st_ino == own.st_ino;
}

/* Returns the table of the view's process, read or read again if need be; NULL if it has none. */
static const struct mount_table *view_table(struct mount_view *view)
{
	if (!view->table && view->proc_fd >= 0) {
		view->table = calloc(1, sizeof(*view->table));
		if (!view->table)
			return NULL;
		view->table->fd = openat(view->proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
		view->table->is_roots = is_roots_namespace(view->proc_fd);
	}
	if (view->table)
		table_refresh(view->table);
	return view->table;
}

int mount_view_read(struct mount_view *view, FILE *in, bool is_roots)
{
	mount_view_fini(view);
	view->table = calloc(1, sizeof(*view->table));
	if (!view->table)
		return -ENOMEM;
	view->table->fd = -1;
	view->table->is_roots = is_roots;
	return table_parse(view->table, in);
}

static bool is_own_dev(const struct remote_mounts *mounts, dev_t dev)
{
	for (size_t i = 0; i < OWN; i++)
		if (mounts->own_devs[i] == dev)
			return true;
	return false;
}

enum place { LOCAL, REMOTE, UNKNOWN };

/*
 * Judges a mount that was found in a table. An overlay in a namespace in which others than root can
 * mount is UNKNOWN.
 */
static enum place mount_place(const struct remote_mounts *mounts, const struct mount *mount,
			      bool is_roots)
{
	if (!mount)
		return UNKNOWN;
	if (mount->is_local || is_own_dev(mounts, mount->dev))
		return LOCAL;
	if (!mount->is_overlay)
		return REMOTE;
	return is_roots ? LOCAL : UNKNOWN;
}

typedef const struct mount *find_fn(const struct mount_table *table, int id, dev_t dev);

static const struct mount *by_id(const struct mount_table *table, int id, dev_t dev)
{
	return find_id(table, id);
}

static const struct mount *by_dev(const struct mount_table *table, int id, dev_t dev)
{
	return find_dev(table, dev);
}

/* Looks in the tables of process 1 and of stackd. */
static enum place roots_place(struct remote_mounts *mounts, find_fn *find, int id, dev_t dev)
{
	enum place place;

	pthread_mutex_lock(&mounts->lock);
	table_refresh(&mounts->init);
	place = mount_place(mounts, find(&mounts->init, id, dev), true);
	if (place == UNKNOWN) {
		table_refresh(&mounts->own);
		place = mount_place(mounts, find(&mounts->own, id, dev), true);
	}
	pthread_mutex_unlock(&mounts->lock);
	return place;
}

/*
 * Looks in the table of the view's process. A user namespace can see an overlay that root has
 * mounted for it, as for a container: its device is in root's tables, too.
 */
static enum place view_place(struct mount_view *view, find_fn *find, int id, dev_t dev)
{
	const struct mount_table *table = view_table(view);
	const struct mount *mount = table ? find(table, id, dev) : NULL;
	enum place place = mount_place(view->mounts, mount, table && table->is_roots);

	if (place == UNKNOWN && mount)
		place = roots_place(view->mounts, by_dev, -1, mount->dev);
	return place;
}

bool mount_view_is_remote(struct mount_view *view, int fd)
{
	struct remote_mounts *mounts = view->mounts;
	enum place place;
	int id;

	if (!mounts)
		return false;
	id = mount_id_of(fd);
	if (id < 0)
		return true;
	if (id == mounts->memory_id)
		return false;
	place = roots_place(mounts, by_id, id, 0);
	if (place == UNKNOWN)
		place = view_place(view, by_id, id, 0);
	return place != LOCAL;
}

bool mount_view_is_remote_dev(struct mount_view *view, dev_t dev)
{
	struct remote_mounts *mounts = view->mounts;
	enum place place;

	if (!mounts || is_own_dev(mounts, dev) ||
	    (mounts->memory_id >= 0 && dev == mounts->memory_dev))
		return false;
	place = roots_place(mounts, by_dev, -1, dev);
	if (place == UNKNOWN)
		place = view_place(view, by_dev, -1, dev);
	return place != LOCAL;
}

bool mount_view_is_remote_point(struct mount_view *view, const char *path)
{
	struct remote_mounts *mounts = view->mounts;
	const struct mount_table *table;
	const struct mount *mount;
	enum place place;

	if (!mounts)
		return false;
	if (view->proc_fd >= 0 || view->table) {
		table = view_table(view);
		mount = table ? find_point(table, path) : NULL;
		place = mount_place(mounts, mount, table && table->is_roots);
		if (place == UNKNOWN && mount)
			place = roots_place(mounts, by_dev, -1, mount->dev);
		return place != LOCAL;
	}
	pthread_mutex_lock(&mounts->lock);
	table_refresh(&mounts->own);
	place = mount_place(mounts, find_point(&mounts->own, path), true);
	pthread_mutex_unlock(&mounts->lock);
	return place != LOCAL;
}
