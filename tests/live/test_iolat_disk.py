# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations on a disk of their own: in each layer as many as the program made, and requests as many
as the kernel counted; what a slow disk took, and what a limit held back, is charged to these.
"""

import contextlib
import json
import os
import re
import time

import harness as h
from disks import Loop, Mounted, Slowed, may_miss, modprobe

h.need_live()

COUNT, SLOW_COUNT = 200, 20
MEGABYTES = 320  # no xfs is smaller
SLOW_MS, NS_PER_MS = 20, 1_000_000
CLOCK_MONOTONIC_COARSE = 6  # its resolution is a tick of the kernel's
IOPS = 20
SLOW_KINDS = (("direct_read", "pread64", 1), ("sync_write", "pwrite64", 2))
KINDS = {"read": ("pread64", COUNT * 10), "write": ("pwrite64", COUNT * 2),
         "sync": ("fdatasync", COUNT)}

# Functions of a module are seen where it is there before the daemon.
modprobe("ext4", "xfs")
disk = Loop(MEGABYTES)
daemon = h.Daemon("probe.iolat.top=syscall", "window.length=1s")
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
h.check(probe["state"] == "on", f"the probe is on: {probe.get('reason')}")
has_layers = any(word in probe["hook"] for word in ("fentry", "kprobe"))
# Some kernels call no function for that.
has_fdatasync = not any(re.match("vfs: .*fdatasync", blind) for blind in probe["blind"])


def recorded(path, count, *kind):
    """The program's figures, and what was recorded from before its first operation on."""
    program = h.Program("prog_io", path, count, *kind).ready()
    os.sync()
    # Somebody else may look at the disk, too, between a cut and a look at the kernel's counters.
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
    """In each layer as many as the program made, and the times of layers within each other."""
    disk.set_write_cache(cache)
    word = f"{mounted.kind} {'with' if cache else 'without'} a cache"
    program, rows, truth, most = recorded(mounted.file(), COUNT)
    own = rows("-p", program.pid, "--disk", disk.name)
    layers = ("vfs", "fs") if mounted.kind in re.split("[ ,]+", probe["hook"]) else ()
    h.check(layers or not has_layers, f"{mounted.kind} is seen: {probe['hook']}")
    for kind, (call, count) in KINDS.items():
        seen = count_of(own, "syscall", call)
        h.check(seen == count, f"{word}: {call}: {seen} of {count}")
        count = count if kind != "sync" else 2 * COUNT  # O_SYNC: within a write there is one too
        for layer in layers:
            seen = count_of(own, layer, kind)
            wanted = count if has_fdatasync or (layer, kind) != ("vfs", "sync") else COUNT
            h.check(seen == wanted, f"{word}: {layer} {kind}: {seen} of {wanted}")
    requests = rows("--layer", "block", "--disk", disk.name)
    # An empty flush is a write to the kernel, besides what the disk is told.
    exact = ("read", "discard", "flush") if cache else ("read", "write", "discard", "flush")
    for op in exact:
        seen = count_of(requests, "block", op)
        h.check(truth[op] - may_miss(daemon, truth[op]) <= seen <= most[op],
                f"{word}: {op} requests: {seen}, /proc/diskstats {truth[op]} to {most[op]}")
    h.check(truth["flush"] > 0 if cache else truth["write"] >= 2 * COUNT, f"{word}: {truth}")
    if layers:
        # The sync is within the write, and its time is not the write's own.
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
        print(f"no {kind}: {mounted.error}")
        continue
    for cache in (True, False):
        check_operations(mounted, cache)
    mounted.close()

# A control group's limit: neither the device nor its queue.
control = f"/sys/fs/cgroup/stackd-test-{os.getpid()}"
try:
    with open("/sys/fs/cgroup/cgroup.subtree_control", "r+", encoding="ascii") as file:
        file.write("+io")
    os.mkdir(control)
    with open(f"{control}/io.max", "w", encoding="ascii") as file:
        file.write(f"{disk.number()} riops={IOPS}")
except OSError as e:
    print(f"no limit can be set: {e}")
    control = None
if control and not any("io.max" in text for text in probe["blind"]):
    program = h.Program("prog_io", disk.path, SLOW_COUNT * 2, "direct_read").ready()
    with open(f"{control}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(program.pid))
    start = daemon.cut("iolat")
    program.go().done()
    end = daemon.cut("iolat")
    own = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "-p",
                          program.pid, "--disk", disk.name)["rows"]
    took = program.value("direct_read")["ns"]
    h.check(took > h.NS_PER_S, f"it was held back: {took} ns")
    seen = {p: sum_of(own, "syscall", "pread64", f"{p}_ns")
            for p in ("throttled", "queue", "device", "other")}
    # A slow machine has more to do than to wait.
    asleep = sum(seen.values())
    h.check(asleep > took / 2, f"most of its time it slept: {asleep} of {took} ns")
    h.check_near(seen["throttled"], asleep, 0.1, f"held back by the limit: {seen}")
    held = sum(r["total_ns"] for r in own if r["io"]["layer"] == "throttled")
    h.check_near(held, seen["throttled"], 0.1, "as its own layer")
    program.end()
if control:
    with contextlib.suppress(OSError):
        os.rmdir(control)

# What the kernel writes back is its group's who wrote it, wherever the kernel knows that.
WRITERS = f"/stackd-test-writers-{os.getpid()}"
BYTES = 4 << 20


def written_back(mounted):
    """{name of the process: bytes} of that group's requests, once all is on the disk."""
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
        h.check(row["process"]["cgroup"] == WRITERS, f"of that group: {row['process']}")
        name = row["process"]["comm"]
        found[name] = found.get(name, 0) + row["io"]["bytes"]
    os.rmdir(path)
    return found


try:
    with open("/sys/fs/cgroup/cgroup.subtree_control", "r+", encoding="ascii") as file:
        file.write("+io +memory")
except OSError as e:
    print(f"no account of writers can be kept: {e}")
else:
    mounted = Mounted(disk, "ext4")
    if mounted.is_there:
        os.sync()
        found = written_back(mounted)
        h.check(BYTES <= found.get("writeback", 0) < 2 * BYTES,
                f"{BYTES} were written back for the group: {found}")
    mounted.close()

# A device that takes so much longer, by what is between it and the disk. That counts in the kernel's
# ticks: the one that has begun is one of them, or one is waited for besides, as its timers do.
disk.set_write_cache(True)  # so that a sync is a write and a flush
slow = Slowed(disk, SLOW_MS)
TICK_NS = round(time.clock_getres(CLOCK_MONOTONIC_COARSE) * h.NS_PER_S)
least = SLOW_COUNT * (-(-SLOW_MS * NS_PER_MS // TICK_NS) - 1) * TICK_NS
if not slow.path:
    print(f"no device can be slowed: {slow.error}")
for kind, call, times in SLOW_KINDS if slow.path else ():
    program, rows, *_ = recorded(slow.path, SLOW_COUNT, kind)
    took, wanted = program.value(kind)["ns"], times * least
    h.check(took >= wanted, f"{kind}: the operations took {took} ns, {wanted} at least")
    own = rows("-p", program.pid, "--disk", slow.name)
    device = sum_of(own, "syscall", call, "device_ns")
    h.check(wanted <= device <= took, f"{kind}: the device's part: {device}, {wanted} to {took}")
    total = sum_of(own, "syscall", call, "total_ns")
    # What a slow machine does itself is no wait.
    asleep = total - sum_of(own, "syscall", call, "cpu_ns") - sum_of(own, "syscall", call,
                                                                     "runnable_ns")
    h.check(device > 0.9 * asleep, f"{kind}: {device} of {asleep} ns asleep, {total} in all")
    queue = sum_of(own, "syscall", call, "queue_ns") + sum_of(own, "syscall", call, "throttled_ns")
    h.check(queue < 0.01 * total, f"{kind}: not before it: {queue} ns")
    if has_layers and times > 1:
        seen = count_of(own, "vfs", "sync"), sum_of(own, "vfs", "sync", "device_ns")
        h.check(seen[0] == SLOW_COUNT, f"{kind}: the syncs within: {seen}")
        h.check_near(seen[1], device, 0.1, f"{kind}: the device's part of the sync")
h.finish()
