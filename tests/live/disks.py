# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks of a test's own, in files in memory."""

import atexit
import contextlib
import os
import tempfile

import harness as h

SECTOR = 512


def _modprobe(*names):
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            h.run(["modprobe", name])


class Loop:
    """So many MiB in memory, as a disk that takes requests; skips where there can be none."""

    def __init__(self, megabytes):
        _modprobe("loop")
        directory = tempfile.mkdtemp(dir="/dev/shm")
        self.file = os.path.join(directory, "disk")
        with open(self.file, "wb") as file:
            file.truncate(megabytes << 20)
        try:
            done = h.run(["losetup", "--find", "--show", self.file])
        except FileNotFoundError as e:
            h.skip(str(e))
        if done.code:
            h.skip(f"no loop device can be made: {done.err.strip()}")
        self.path = done.out.strip()
        self.name = os.path.basename(self.path)
        self.sectors = (megabytes << 20) // SECTOR
        atexit.register(self.close)

    def close(self):
        h.run(["losetup", "--detach", self.path])
        with contextlib.suppress(OSError):
            os.unlink(self.file)
            os.rmdir(os.path.dirname(self.file))

    def number(self):
        device = os.stat(self.path).st_rdev
        return f"{os.major(device)}:{os.minor(device)}"

    def set_write_cache(self, is_on):
        """Without one, nothing is ever flushed."""
        path = f"/sys/block/{self.name}/queue/write_cache"
        with open(path, "w", encoding="ascii") as file:
            file.write("write back" if is_on else "write through")

    def stats(self):
        """As the kernel counts the requests that have ended."""
        with open("/proc/diskstats", encoding="ascii") as file:
            fields = next(line.split() for line in file if line.split()[2] == self.name)
        reads, writes, discards, flushes = (int(fields[i]) for i in (3, 7, 14, 18))
        return {"read": reads, "write": writes, "discard": discards, "flush": flushes}
