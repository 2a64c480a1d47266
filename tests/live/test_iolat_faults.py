# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows faults of disks and file systems while their operations are recorded: a disk that is
removed with requests in flight, a file system's module that is unloaded, more requests at a time
than today's disks take, and errors of a device that has no requests.
"""

import contextlib
import mmap
import os
import subprocess
import time

import harness as h
from disks import Loop, Mounted, NullDisk, may_miss, modprobe

h.need_live()
h.need_tool("fio")


class FullDisk:
    """A full disk in memory: it holds one page, so data that does not compress cannot be written.
    It takes bios. Where there can be none, path is None, and error says why."""

    CONTROL = "/sys/class/zram-control"

    def __init__(self, megabytes):
        self.path = self.number = None
        modprobe("zram")
        try:
            with open(f"{self.CONTROL}/hot_add", encoding="ascii") as file:
                self.number = int(file.read())
            self.name = f"zram{self.number}"
            for name, value in (("disksize", megabytes << 20), ("mem_limit", mmap.PAGESIZE)):
                with open(f"/sys/block/{self.name}/{name}", "w", encoding="ascii") as file:
                    file.write(str(value))
        except OSError as e:
            self.close()
            self.error = str(e)
            return
        self.path = f"/dev/{self.name}"
        h.wait_until(lambda: os.path.exists(self.path), self.path)

    def write(self, count):
        """Makes `count` writes; returns how many of them failed."""
        errors, page = 0, mmap.mmap(-1, mmap.PAGESIZE)  # aligned, as O_DIRECT requires
        file = os.open(self.path, os.O_WRONLY | os.O_DIRECT)
        for i in range(count):
            page[:] = os.urandom(mmap.PAGESIZE)
            try:
                os.pwrite(file, page, i * mmap.PAGESIZE)
            except OSError:
                errors += 1
        os.close(file)
        return errors

    def close(self):
        if self.number is not None:
            with contextlib.suppress(OSError), open(f"{self.CONTROL}/hot_remove", "w",
                                                    encoding="ascii") as file:
                file.write(str(self.number))


def fio(path, seconds, depth):
    return ["fio", "--name=job", f"--filename={path}", "--size=32M", "--bs=4k", "--direct=1",
            "--ioengine=libaio", f"--iodepth={depth}", "--rw=randread", "--time_based",
            f"--runtime={seconds}", "--numjobs=2", "--group_reporting"]


def blocks(start, end, name):
    result = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "--disk",
                             name, "--layer", "block")
    return sum(r["count"] for r in result["rows"] if r["io"]["op"] == "read"), result["lost"]


modprobe("xfs")
disk = Loop(320)
mounted = Mounted(disk, "xfs")
if mounted.is_there:
    mounted.close()
daemon = h.Daemon("probe.iolat.top=syscall", "window.length=1s")

# At the disk's highest rate no request is left out, and none is counted twice.
start, before = daemon.cut("iolat"), disk.stats()
done = h.run(fio(disk.path, 5, 64), timeout=h.HANG_SECONDS)
h.check(done.code == 0, str(done)[-300:])
after, end = disk.stats(), daemon.cut("iolat")
stats = after["read"] - before["read"]
seen, lost = blocks(start, end, disk.name)
missed = sum(entry["count"] for entry in lost)
h.check(stats - missed - may_miss(daemon, stats) <= seen <= stats + 200
        and missed < 0.01 * stats + 100,
        f"{stats / 5:.0f} requests a second: {seen}, /proc/diskstats {stats}; {lost}")

# A module is unloaded while its functions are traced.
if os.path.exists("/sys/module/xfs/refcnt"):
    mounted = Mounted(disk, "xfs")
    with open(mounted.file(), "wb") as file:
        file.write(bytes(4096))
    mounted.close()
    gone = h.run(["rmmod", "xfs"])
    h.check(gone.code == 0 and not os.path.exists("/sys/module/xfs"), f"xfs is unloaded: {gone}")
    probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
    h.check(probe["state"] == "on", "without it, the probe is on")
    mounted = Mounted(disk, "xfs")
    with open(mounted.file(), "wb") as file:
        file.write(bytes(4096))
    mounted.close()
    h.check(daemon.ctl("snapshot", "iolat").code == 0, "the probe goes on when it is loaded again")
else:
    h.leave_out("xfs is no module here")

# A disk is removed with requests in flight: ended requests are counted, and the operations that
# made them end too.
null = NullDisk(2_000_000)
if null.path:
    start = daemon.cut("iolat")
    job = subprocess.Popen(fio(null.path, 60, 16), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)

    def has_begun():
        with open(f"/sys/block/{null.name}/stat", encoding="ascii") as file:
            return int(file.read().split()[0]) > 100

    h.wait_until(has_begun, "requests")
    null.set("power", 0)
    job.communicate(timeout=h.HANG_SECONDS)
    null.close()
    end = daemon.cut("iolat")
    h.check(not os.path.exists(f"/sys/block/{null.name}"), "the disk is gone")
    reply = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end),
                            "--layer", "block")
    names = {r["io"].get("device") for r in reply["rows"] if r["io"]["op"] == "read"}
    h.check(any(n and (n == null.name or ":" in n) for n in names),
            f"its requests are there, by name or by number: {names}")
    time.sleep(2)
    after = daemon.ctl_json("snapshot", "iolat", "--window", "1s")["rows"]
    still = [r["io"] for r in after if r["io"].get("open") and r["io"].get("device") == null.name]
    h.check(not still, f"nothing of it is open: {still}")
else:
    h.leave_out(f"no disk can be taken away: {null.error}")

# Errors of a device that has no requests are those of its bios.
WRITES = 50
full = FullDisk(8)
if full.path:
    start = daemon.cut("iolat")
    failed = full.write(WRITES)
    end = daemon.cut("iolat")
    rows = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "-p",
                           os.getpid(), "--disk", full.name, "--layer", "block")["rows"]
    full.close()
    h.check(failed > WRITES // 2, f"writes failed: {failed} of {WRITES}")
    seen = [(r["io"]["op"], r["count"], r["io"]["errors"]) for r in rows]
    h.check(seen == [("write", WRITES, failed)], f"(op, count, errors) of bios: {seen}")
else:
    h.leave_out(f"no disk can be full: {full.error}")
h.finish()
