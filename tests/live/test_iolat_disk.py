# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows operations on a disk of the test's own: in each layer as many as the program made, and as
many requests as the kernel counted. The time of a slow disk and the time under a limit are charged
to these.
"""

import json
import os
import re
import subprocess
import sys
import time

import harness as h
from disks import Limited, Loop, Mounted, NullDisk, Slowed, Striped, may_miss, modprobe

h.need_live()

COUNT, SLOW_COUNT = 200, 20
MEGABYTES = 320  # the smallest size that xfs supports
SLOW_MS, NS_PER_MS = 20, 1_000_000
CLOCK_MONOTONIC_COARSE = 6  # its resolution is a tick of the kernel
IOPS = 20
SLOW_KINDS = (("direct_read", "pread64", 1), ("sync_write", "pwrite64", 2))
KINDS = {"read": ("pread64", COUNT * 10), "write": ("pwrite64", COUNT * 2),
         "sync": ("fdatasync", COUNT)}

# Functions of a module can be traced if it was loaded before the daemon started.
modprobe("ext4", "xfs")
disk = Loop(MEGABYTES)
daemon = h.Daemon("probe.iolat.top=syscall", "window.length=1s")
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
h.check(probe["state"] == "on", f"the probe is on: {probe.get('reason')}")
has_layers = any(word in probe["hook"] for word in ("fentry", "kprobe"))
# Some kernels call no function for fdatasync.
has_fdatasync = not any(re.match("vfs: .*fdatasync", blind) for blind in probe["blind"])


def recorded(path, count, *kind):
    """Returns the program's figures, and what was recorded since before its first operation."""
    program = h.Program("prog_io", path, count, *kind).ready()
    os.sync()
    # Other readers may use the disk between a cut and the reading of the kernel's counters.
    first, start, before = disk.stats(), daemon.cut("iolat"), disk.stats()
    program.go().done()
    os.sync()
    after, end, last = disk.stats(), daemon.cut("iolat"), disk.stats()
    program.end()

    def rows(*args):
        return daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end),
                               *args)["rows"]

    most = {op: last[op] - first[op] for op in after}
    return program, rows, {op: after[op] - before[op] for op in after}, most


def count_of(rows, layer, *ops):
    return sum(r["count"] for r in rows if r["io"]["layer"] == layer and r["io"]["op"] in ops)


def sum_of(rows, layer, op, field):
    return sum(r["io"].get(field, r.get(field)) for r in rows
               if r["io"]["layer"] == layer and r["io"]["op"] == op)


def check_operations(mounted, cache):
    """Checks that each layer has as many operations as the program made, and that layers within
    others take no longer."""
    disk.set_write_cache(cache)
    word = f"{mounted.kind} {'with' if cache else 'without'} a cache"
    program, rows, truth, most = recorded(mounted.file(), COUNT)
    own = rows("-p", program.pid, "--disk", disk.name)
    layers = ("vfs", "fs") if mounted.kind in re.split("[ ,]+", probe["hook"]) else ()
    h.check(layers or not has_layers, f"{mounted.kind} is seen: {probe['hook']}")
    for kind, (call, count) in KINDS.items():
        seen = count_of(own, "syscall", call)
        h.check(seen == count, f"{word}: {call}: {seen} of {count}")
        # with O_SYNC there is a sync within each write
        count = count if kind != "sync" else 2 * COUNT
        for layer in layers:
            seen = count_of(own, layer, kind)
            wanted = count if has_fdatasync or (layer, kind) != ("vfs", "sync") else COUNT
            h.check(seen == wanted, f"{word}: {layer} {kind}: {seen} of {wanted}")
    requests = rows("--layer", "block", "--disk", disk.name)
    # The kernel counts an empty flush as a write, whatever the disk receives.
    exact = ("read", "discard", "flush") if cache else ("read", "write", "discard", "flush")
    for op in exact:
        seen = count_of(requests, "block", op)
        h.check(truth[op] - may_miss(daemon, truth[op]) <= seen <= most[op],
                f"{word}: {op} requests: {seen}, /proc/diskstats {truth[op]} to {most[op]}")
    h.check(truth["flush"] > 0 if cache else truth["write"] >= 2 * COUNT, f"{word}: {truth}")
    if layers:
        # The sync is within the write; its time is not part of the write's own time.
        total = sum_of(own, "syscall", "pwrite64", "total_ns")
        parts = sum_of(own, "syscall", "pwrite64", "own_ns")
        parts += sum(sum_of(own, layer, "write", "own_ns") for layer in ("vfs", "fs"))
        inner = sum_of(own, "vfs", "sync", "total_ns")
        if has_fdatasync:
            inner -= sum_of(own, "syscall", "fdatasync", "total_ns")
            inner += sum_of(own, "syscall", "fdatasync", "own_ns")
        h.check_near(parts + inner, total, 0.01, f"{word}: parts of the writes and the syncs in them")


for kind in ("ext4", "xfs"):
    mounted = Mounted(disk, kind)
    if not mounted.is_there:
        h.leave_out(f"no {kind}: {mounted.error}")
        continue
    for cache in (True, False):
        check_operations(mounted, cache)
    mounted.close()

# Time under a control group's limit is charged neither to the device nor to its queue.
def check_held(limited):
    program = h.Program("prog_io", disk.path, SLOW_COUNT * 2, "direct_read").ready()
    limited.take(program.pid)
    limited.set(f"riops={IOPS}")
    start = daemon.cut("iolat")
    program.go().done()
    end = daemon.cut("iolat")
    own = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "-p",
                          program.pid, "--disk", disk.name)["rows"]
    took = program.value("direct_read")["ns"]
    h.check(took > h.NS_PER_S, f"the limit held it back: {took} ns")
    seen = {p: sum_of(own, "syscall", "pread64", f"{p}_ns")
            for p in ("throttled", "queue", "device", "other")}
    # A slow machine spends time on more than waiting.
    asleep = sum(seen.values())
    h.check(asleep > took / 2, f"most of its time it slept: {asleep} of {took} ns")
    h.check_near(seen["throttled"], asleep, 0.1, f"held back by the limit: {seen}")
    held = sum(r["total_ns"] for r in own if r["io"]["layer"] == "throttled")
    h.check_near(held, seen["throttled"], 0.1, "the layer has the same time")
    program.end()


# Writes past the cache, each in a thread of its own. A line "OFFSET SIZE" begins a write, or a sync
# if SIZE is 0, and is answered with the thread's id. An empty line waits for all of them and is
# answered with the sum of their times in ns.
WRITER = """
import mmap, os, sys, threading, time
file, memory = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT), mmap.mmap(-1, 4 << 20)
threads, took = [], []
def write(offset, size):
    print(threading.get_native_id(), flush=True)
    start = time.monotonic_ns()
    os.pwrite(file, memoryview(memory)[:size], offset) if size else os.fsync(file)
    took.append(time.monotonic_ns() - start)
for line in sys.stdin:
    if line.strip():
        threads.append(threading.Thread(target=write, args=map(int, line.split())))
        threads[-1].start()
        continue
    while threads:
        threads.pop().join()
    print(sum(took), flush=True)
    took.clear()
"""
PIECE, LARGEST_KIB, LARGE, PIECES = 4096, 64, 1 << 20, 16
LARGE_ONES = [(i * LARGE, LARGE) for i in range(2)]


class Writer:
    def __init__(self, limited, path):
        self.process = subprocess.Popen([sys.executable, "-c", WRITER, path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        limited.take(self.pid)

    def tell(self, line):
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def begin(self, offset, size):
        """Starts a write, and returns when it waits for the disk or has ended: a limit lets the
        first pass."""
        path = f"/proc/{self.pid}/task/{self.tell(f'{offset} {size}')}/stat"

        def waits():
            try:
                with open(path, encoding="ascii") as file:
                    return file.read().rsplit(")", 1)[1].split()[0] == "D"
            except (FileNotFoundError, ProcessLookupError):
                return True

        h.wait_until(waits, "a write to be held back")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def check_owners(rows, pid, text):
    others = {r["process"]["comm"]: r["count"] for r in rows if r["process"]["pid"] != pid}
    h.check(not others, f"{text}: no requests are charged to other processes: {others}")


def check_written(writer, limited, limit, pieces, release=None, own_share=0.1):
    """Makes writes at these offsets and of these sizes and checks what is recorded: the limit holds
    them back for all but own_share of their time, and all requests are the writer's."""
    limited.set(limit)
    start, before = daemon.cut("iolat"), limited.disk.stats()
    for offset, size in pieces:
        writer.begin(offset, size)
    if release:
        time.sleep(1)  # long compared with the time that a slow machine takes to release them
        limited.set(release)
    took = int(writer.tell(""))
    end, after = daemon.cut("iolat"), limited.disk.stats()
    limited.set("rbps=max wbps=max riops=max wiops=max")
    rows = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end),
                           "--disk", limited.disk.name)["rows"]
    blocks = [r for r in rows if r["io"]["layer"] == "block"]
    # The kernel makes a flush for all writers.
    check_owners([r for r in blocks if r["io"]["op"] == "write"], writer.pid, limit)
    seen = {op: count_of(blocks, "block", op) for op in ("write", "flush")}
    # A device that takes bios does not count flushes, and counts a bio that it splits once.
    made = {op: after[op] - before[op] for op in seen}
    written = sum(r["io"]["bytes"] for r in blocks)
    h.check(written == sum(size for _, size in pieces), f"{limit}: {written} bytes")
    own = [r for r in rows if r["process"]["pid"] == writer.pid]
    held = sum(r["total_ns"] for r in own if r["io"]["layer"] == "throttled")
    in_calls = (sum_of(own, "syscall", "pwrite64", "throttled_ns") +
                sum_of(own, "syscall", "fsync", "throttled_ns"))
    h.check(took - own_share * took <= held <= took,
            f"{limit}: held back for {held} ns of the {took} that the writes took")
    h.check_near(in_calls, held, 0.1, f"{limit}: the system calls have the same time")
    return {"seen": seen, "made": made, "held": count_of(own, "throttled", "write", "flush"),
            "merges": sum(r["io"].get("merges", 0) for r in blocks)}


def check_changed(limited):
    """Checks that writes which are held back, and then split or merged, are still charged to their
    writer."""
    queue = f"/sys/block/{disk.name}/queue"
    writer = Writer(limited, disk.path)
    with open(f"{queue}/max_sectors_kb", "r+", encoding="ascii") as file:
        before = file.read()
        file.seek(0)
        file.write(str(LARGEST_KIB))
    parts = sum(size >> 10 for _, size in LARGE_ONES) // LARGEST_KIB
    by_bytes = check_written(writer, limited, f"wbps={LARGE}", LARGE_ONES)
    by_number = check_written(writer, limited, f"wiops={IOPS}", LARGE_ONES)
    for found in (by_bytes, by_number):
        h.check(found["seen"] == found["made"] == {"write": parts, "flush": 0},
                f"large ones became {parts}: {found}")
        h.check(found["held"] >= 2, f"the limit held each back: {found}")
    with open(f"{queue}/max_sectors_kb", "w", encoding="ascii") as file:
        file.write(before)
    with open(f"{queue}/nomerges", "w", encoding="ascii") as file:
        file.write("0")
    small = [(i * PIECE, PIECE) for i in range(PIECES)]
    for word, pieces in (("up", small), ("down", small[::-1])):
        found = check_written(writer, limited, "wiops=2", pieces, "wiops=max", 0.3)
        h.check(found["seen"] == found["made"], f"{word}: as many as the kernel counts: {found}")
        h.check(found["merges"] + found["seen"]["write"] == PIECES,
                f"{word}: {PIECES} pieces, some merged: {found}")
        h.check(found["merges"] > 0 or word == "down", f"{word}: some are merged: {found}")
    disk.set_write_cache(True)
    synced = check_written(writer, limited, "wiops=2", [(0, 0)] * 4)
    h.check(synced["held"] >= 3, f"syncs: {synced}")
    disk.set_write_cache(False)
    writer.end()
    # No later operation is mistaken for one of theirs.
    start = daemon.cut("iolat")
    program = h.Program("prog_io", disk.path, COUNT, "direct_write").ready().go().done()
    end = daemon.cut("iolat")
    program.end()
    rows = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "--disk",
                           disk.name)["rows"]
    h.check(not count_of(rows, "throttled", "read", "write"), "without a limit nothing is held back")
    check_owners([r for r in rows if r["io"]["layer"] == "block"], program.pid, "without a limit")
    print(f"by bytes {by_bytes}, by number {by_number}, together {found}, synced {synced}")


def check_changed_above():
    """Checks the same on a device without requests, which splits the operations it gets."""
    striped = Striped(disk, LARGEST_KIB)
    if not striped.path:
        h.leave_out(f"no device can be striped: {striped.error}")
        return
    limited = Limited(striped)
    writer = Writer(limited, striped.path)
    found = check_written(writer, limited, f"wiops={IOPS}", LARGE_ONES)
    h.check(found["held"] >= 2, f"the limit held each back: {found}")
    print(f"above: {found}")
    writer.end()
    limited.close()
    striped.close()


if any("io.max" in text for text in probe["blind"]):
    h.leave_out("io.max: not seen here, as the probe says")
else:
    limited = Limited(disk)
    if limited.is_there:
        check_held(limited)
        check_changed(limited)
    else:
        h.leave_out(f"no limit can be set: {limited.error}")
    limited.close()
    if limited.is_there:
        check_changed_above()

# Written-back data is charged to the group that wrote it, wherever the kernel knows the group.
WRITERS = f"/stackd-test-writers-{os.getpid()}"
BYTES = 4 << 20


def written_back(mounted):
    """Writes in that group; returns {process name: bytes} of its requests, once all is on the
    disk."""
    path, command = f"/sys/fs/cgroup{WRITERS}", 'echo $$ > "$0/cgroup.procs" && exec dd "$@"'
    os.mkdir(path)
    start = daemon.cut("iolat")
    done = h.run(["sh", "-c", command, path, "if=/dev/zero", f"of={mounted.file()}", "bs=64k",
                  f"count={BYTES >> 16}"])
    os.sync()
    end = daemon.cut("iolat")
    h.check(done.code == 0, str(done))
    found = {}
    result = daemon.ctl("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "--layer",
                        "block", "--op", "write", "--disk", disk.name, "--by", "process",
                        "--cgroup", WRITERS, "--format", "json")
    for row in json.loads(result.out)["rows"] if result.code == 0 else ():
        h.check(row["process"]["cgroup"] == WRITERS, f"charged to that group: {row['process']}")
        name = row["process"]["comm"]
        found[name] = found.get(name, 0) + row["io"]["bytes"]
    os.rmdir(path)
    return found


try:
    with open("/sys/fs/cgroup/cgroup.subtree_control", "r+", encoding="ascii") as file:
        file.write("+io +memory")
except OSError as e:
    h.leave_out(f"no account of writers can be kept: {e}")
else:
    mounted = Mounted(disk, "ext4")
    if mounted.is_there:
        os.sync()
        found = written_back(mounted)
        h.check(BYTES <= found.get("writeback", 0) < 2 * BYTES,
                f"{BYTES} were written back for the group: {found}")
    mounted.close()

# A device that delays each operation, by a layer between it and the disk. That layer counts in the
# kernel's ticks: the current tick counts as one, or one more is waited for, as kernel timers do.
disk.set_write_cache(True)  # so that a sync is a write and a flush
slow = Slowed(disk, SLOW_MS)
TICK_NS = round(time.clock_getres(CLOCK_MONOTONIC_COARSE) * h.NS_PER_S)
least = SLOW_COUNT * (-(-SLOW_MS * NS_PER_MS // TICK_NS) - 1) * TICK_NS
if not slow.path:
    h.leave_out(f"no device can be slowed: {slow.error}")
for kind, call, times in SLOW_KINDS if slow.path else ():
    program, rows, *_ = recorded(slow.path, SLOW_COUNT, kind)
    took, wanted = program.value(kind)["ns"], times * least
    h.check(took >= wanted, f"{kind}: the operations took {took} ns, {wanted} at least")
    own = rows("-p", program.pid, "--disk", slow.name)
    device = sum_of(own, "syscall", call, "device_ns")
    h.check(wanted <= device <= took, f"{kind}: time in the device: {device}, {wanted} to {took}")
    total = sum_of(own, "syscall", call, "total_ns")
    # Time that a slow machine spends on CPU work is no wait.
    asleep = total - sum_of(own, "syscall", call, "cpu_ns") - sum_of(own, "syscall", call,
                                                                     "runnable_ns")
    h.check(device > 0.9 * asleep, f"{kind}: {device} of {asleep} ns asleep, {total} in all")
    queue = sum_of(own, "syscall", call, "queue_ns") + sum_of(own, "syscall", call, "throttled_ns")
    h.check(queue < 0.01 * total, f"{kind}: little time is spent before the device: {queue} ns")
    if has_layers and times > 1:
        seen = count_of(own, "vfs", "sync"), sum_of(own, "vfs", "sync", "device_ns")
        h.check(seen[0] == SLOW_COUNT, f"{kind}: the syncs within: {seen}")
        h.check_near(seen[1], device, 0.1, f"{kind}: the device's part of the sync")
# The kernel makes a flush for all threads that wait for it; each of them waits for the device.
FLUSHES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
for _ in range(int(sys.argv[2])):
    os.fsync(file)
"""
null = NullDisk(SLOW_MS * NS_PER_MS, has_cache=True)
if null.path:
    start = daemon.cut("iolat")
    done = h.run([sys.executable, "-c", FLUSHES, null.path, str(SLOW_COUNT)])
    end = daemon.cut("iolat")
    h.check(done.code == 0, str(done))
    rows = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "--disk",
                           null.name)["rows"]
    h.check(count_of(rows, "syscall", "fsync") == SLOW_COUNT, "each sync is there")
    device, other = (sum_of(rows, "syscall", "fsync", part) for part in ("device_ns", "other_ns"))
    h.check(device >= SLOW_COUNT * SLOW_MS * NS_PER_MS * 0.9 and other < device / 10,
            f"flushes are the device's: {device}, other {other}")
    null.close()
else:
    h.leave_out(f"no disk that flushes: {null.error}")
h.finish()
