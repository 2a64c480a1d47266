# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks that a test makes for itself: one in a file in memory, one that is slower than another by a
given time, and others; and file systems on them.
"""

import atexit
import contextlib
import fcntl
import os
import struct
import tempfile

import harness as h

SECTOR = 512

# include/uapi/linux/dm-ioctl.h
DM_SIZE, DM_CREATE, DM_REMOVE, DM_RESUME, DM_LOAD = 312, 3, 4, 6, 9

# include/uapi/linux/loop.h
LOOP_CONFIGURE, LOOP_CTL_GET_FREE, LO_FLAGS_AUTOCLEAR = 0x4C0A, 0x4C82, 4


def _ioctl(number):
    return 3 << 30 | DM_SIZE << 16 | 0xFD << 8 | number


def _mapper(number, name, targets=0, data=b""):
    head = struct.pack("<3I2IIiIIIQ128s129s7x", 4, 0, 0, DM_SIZE + len(data), DM_SIZE, targets,
                       0, 0, 0, 0, 0, name.encode(), b"")
    reply = bytearray(head + data)
    with open("/dev/mapper/control", "r+b", buffering=0) as control:
        fcntl.ioctl(control, _ioctl(number), reply)
    return struct.unpack_from("<Q", reply, 40)[0]


def modprobe(*names):
    """Loads kernel modules, where the drivers are modules."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            h.run(["modprobe", name])


class Disk:
    """A block device: it has a path, and a name in /proc/diskstats."""

    def number(self):
        device = os.stat(self.path).st_rdev
        return f"{os.major(device)}:{os.minor(device)}"

    def stats(self):
        """Returns the kernel's counters of the requests that have ended."""
        with open("/proc/diskstats", encoding="ascii") as file:
            fields = next(line.split() for line in file if line.split()[2] == self.name)
        reads, writes, discards, flushes = (int(fields[i]) for i in (3, 7, 14, 18))
        return {"read": reads, "write": writes, "discard": discards, "flush": flushes}


class Loop(Disk):
    """A disk of some MiB in memory that takes requests; skips the test where there can be none. The kernel
    removes it with the test's descriptor, however the test ends."""

    def __init__(self, megabytes):
        modprobe("loop")
        memory = os.memfd_create("disk")
        os.truncate(memory, megabytes << 20)
        config = struct.pack("=I56xI240x", memory, LO_FLAGS_AUTOCLEAR)
        try:
            with open("/dev/loop-control", "rb") as control:
                number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
            self.name = f"loop{number}"
            self.path = f"/dev/{self.name}"
            self.device = os.open(self.path, os.O_RDWR)
            fcntl.ioctl(self.device, LOOP_CONFIGURE, config)
        except OSError as e:
            h.skip(f"no loop device can be made: {e}")
        os.close(memory)
        self.sectors = (megabytes << 20) // SECTOR
        atexit.register(os.close, self.device)

    def set_write_cache(self, is_on):
        """Switches the write cache. Without one, nothing is ever flushed."""
        path = f"/sys/block/{self.name}/queue/write_cache"
        with open(path, "w", encoding="ascii") as file:
            file.write("write back" if is_on else "write through")


# These options keep the file system from writing by itself in the background.
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
}
MOUNT = {"ext4": "noatime,commit=600", "xfs": "noatime"}


class Mounted:
    """A new file system on a disk; is_there says whether there can be one of that kind."""

    def __init__(self, disk, kind):
        self.path, self.kind = tempfile.mkdtemp(), kind
        atexit.register(self.close)
        modprobe(kind)
        try:
            made = h.run([*MKFS[kind], disk.path])
        except FileNotFoundError as e:
            self.error = str(e)
            self.is_there = False
            return
        if not made.code:
            made = h.run(["mount", "-t", kind, "-o", MOUNT[kind], disk.path, self.path])
        self.error, self.is_there = str(made), made.code == 0

    def file(self):
        return os.path.join(self.path, "file")

    def close(self):
        if os.path.ismount(self.path):
            h.run(["umount", self.path])
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


class Limited:
    """A control group with limits of its own for a disk; is_there says whether there can be one."""

    def __init__(self, disk):
        self.path = f"/sys/fs/cgroup/stackd-test-{os.getpid()}"
        self.disk, self.error, self.is_there = disk, None, False
        atexit.register(self.close)
        try:
            with open("/sys/fs/cgroup/cgroup.subtree_control", "r+", encoding="ascii") as file:
                file.write("+io")
            os.mkdir(self.path)
            self.set("riops=max")
            self.is_there = True
        except OSError as e:
            self.error = str(e)

    def _write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(text)

    def set(self, limits):
        """Sets limits in the form of io.max, such as "riops=20"; other limits stay."""
        self._write("io.max", f"{self.disk.number()} {limits}")

    def take(self, pid):
        self._write("cgroup.procs", str(pid))

    def close(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


class Mapped(Disk):
    """A device-mapper disk over another. Where there can be none, path is None, and error says
    why."""

    def __init__(self, disk, target, parameters):
        modprobe("dm_mod")
        self.mapper_name = f"stackd-test-{os.getpid()}"
        parameters = parameters.encode() + b"\0"
        parameters += bytes(-len(parameters) % 8)
        table = struct.pack("<QQiI16s", 0, disk.sectors, 0, 40 + len(parameters), target.encode())
        try:
            device = _mapper(DM_CREATE, self.mapper_name)
            atexit.register(self.close)
            _mapper(DM_LOAD, self.mapper_name, 1, table + parameters)
            _mapper(DM_RESUME, self.mapper_name)
        except OSError as e:
            self.path, self.error = None, str(e)
            return
        self.name = f"dm-{os.minor(device)}"
        self.path = f"/dev/{self.name}"
        h.wait_until(lambda: os.path.exists(self.path), self.path)

    def close(self):
        with contextlib.suppress(OSError):
            _mapper(DM_REMOVE, self.mapper_name)


class Slowed(Mapped):
    """A disk on which each operation takes `ms` longer."""

    def __init__(self, disk, ms):
        modprobe("dm_delay")
        super().__init__(disk, "delay", f"{disk.path} 0 {ms}")


class Striped(Mapped):
    """A disk that splits operations larger than `kib`. It works on bios, without requests of its
    own."""

    def __init__(self, disk, kib):
        super().__init__(disk, "striped", f"1 {(kib << 10) // SECTOR} {disk.path} 0")


class NullDisk:
    """A disk that takes requests and ends each after a given time, without storing data; it can be
    removed."""

    CONFIG, NAME = "/sys/kernel/config/nullb", "stackdtest"

    def __init__(self, delay_ns, has_cache=False):
        self.path = None
        modprobe("null_blk")
        h.run(["mount", "-t", "configfs", "none", "/sys/kernel/config"])
        self.config = os.path.join(self.CONFIG, self.NAME)
        try:
            os.mkdir(self.config)
            for name, value in (("size", 256), ("memory_backed", int(has_cache)),
                                ("cache_size", int(has_cache)), ("irqmode", 2),
                                ("completion_nsec", delay_ns), ("power", 1)):
                self.set(name, value)
            with open(f"{self.config}/index", encoding="ascii") as file:
                self.name = f"nullb{file.read().strip()}"
        except OSError as e:
            self.error = str(e)
            return
        # Before 6.7 the kernel named the disk by its index; since then, by the name of its
        # directory.
        names = [n for n in (self.NAME, self.name) if os.path.exists(f"/sys/block/{n}")]
        self.name, self.error = names[0], ""
        self.path = f"/dev/{self.name}"

    def set(self, name, value):
        with open(f"{self.config}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def close(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.config)


def _hides_tasks(daemon):
    probes = daemon.call("io.stackd.Probes")["probes"]
    return any("hides" in blind for p in probes for blind in p["blind"])


def may_miss(daemon, count):
    """Returns how many requests may be missed. No program sees a request that ends in an interrupt
    of a task that the host hides from BPF, namely its init: a few of a thousand requests there,
    none elsewhere."""
    return count // 100 + 1 if _hides_tasks(daemon) else 0


def without_hidden(daemon, reply):
    """Returns the reply without the losses that hidden tasks explain. The daemon notices that a
    host hides tasks when one of them next runs."""
    if all(lost["reason"] != h.UNSEEN for lost in reply["lost"]):
        return reply
    with contextlib.suppress(TimeoutError):
        h.wait_until(lambda: _hides_tasks(daemon), "hidden tasks")
    if _hides_tasks(daemon):
        reply = dict(reply, lost=[lost for lost in reply["lost"] if lost["reason"] != h.UNSEEN])
    return reply


def check_nothing_lost(daemon, reply, text):
    h.check_nothing_lost(without_hidden(daemon, reply), text)
