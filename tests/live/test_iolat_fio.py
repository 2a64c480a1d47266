# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares a job of fio on a disk of its own: each layer has as many operations as fio counts, the
latencies differ by a bucket at most, and there are as many requests as the kernel counts.
"""

import json
import math
import os
import re
import shutil

import harness as h
from disks import Loop, Mounted, may_miss, modprobe

h.need_live()

IOS, MEGABYTES = 2000, 320
JOBS = {
    "read": ("randread", "pread64"),
    "write": ("randwrite", "pwrite64"),
}

if not shutil.which("fio"):
    h.skip("needs fio")
modprobe("ext4", "xfs")
disk = Loop(MEGABYTES)
daemon = h.Daemon("probe.iolat.top=syscall", "window.length=1s")
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
h.check(probe["state"] == "on", f"the probe is on: {probe.get('reason')}")


def fio(mounted, *args, engine="psync"):
    """Runs a job; returns fio's figures."""
    done = h.run(["fio", "--name=job", f"--filename={mounted.file()}", "--size=16M", "--bs=4k",
                  "--direct=1", f"--ioengine={engine}", "--thread", "--output-format=json",
                  "--percentile_list=50:90:99", *args], timeout=300)
    h.check(done.code == 0, str(done))
    return json.loads(done.out[done.out.index("{"):])["jobs"][0]


def is_within_a_bucket(ours, theirs):
    return abs(math.log2(max(ours, 1)) - math.log2(max(theirs, 1))) <= 1


def recorded(mounted, op, *args, engine="psync"):
    """Runs a job; returns fio's figures, a function that gives the rows recorded of it, and the
    least and the most of the kernel's count, because the file system also writes between a cut and
    a reading."""
    os.sync()
    first, start, before = disk.stats(), daemon.cut("iolat"), disk.stats()
    job = fio(mounted, f"--rw={JOBS[op][0]}", f"--number_ios={IOS}", *args, engine=engine)[op]
    os.sync()
    after, end, last = disk.stats(), daemon.cut("iolat"), disk.stats()

    def rows(*words):
        return daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end),
                               "--disk", disk.name, *words)["rows"]

    return job, rows, (after[op] - before[op], last[op] - first[op])


def layers_of(mounted):
    is_seen = mounted.kind in re.split("[ ,]+", probe["hook"])
    return ["syscall", "vfs", "fs"] if is_seen else ["syscall"]


def check_requests(word, job, rows, op, stats):
    seen = sum(r["count"] for r in rows("--layer", "block") if r["io"]["op"] == op)
    least, most = stats
    h.check(least - may_miss(daemon, least) <= seen <= most,
            f"{word} requests: {seen}, /proc/diskstats {least} to {most}")
    h.check(least >= job["total_ios"], f"{word}: {least} requests of {job['total_ios']}")


def check_job(mounted, op):
    call, word = JOBS[op][1], f"{mounted.kind} {op}"
    job, rows, stats = recorded(mounted, op)
    own = rows("--comm", "fio")
    for layer in layers_of(mounted):
        name = call if layer == "syscall" else op
        found = [r for r in own if r["io"]["layer"] == layer and r["io"]["op"] == name]
        seen = sum(r["count"] for r in found)
        h.check(seen == job["total_ios"], f"{word}, {layer}: {seen}, fio {job['total_ios']}")
        for percent in (50, 90, 99) if layer == "syscall" and found else ():
            ours = found[0]["io"][f"p{percent}_ns"]
            theirs = job["clat_ns"]["percentile"][f"{percent}.000000"]
            h.check(is_within_a_bucket(ours, theirs), f"{word}, p{percent}: {ours}, fio {theirs}")
    check_requests(word, job, rows, op, stats)


def check_async(mounted, op):
    """Checks asynchronous operations: they end after the call returns, so they are counted without
    a time rather than shown as fast."""
    word = f"{mounted.kind} {op}, asynchronous"
    job, rows, stats = recorded(mounted, op, "--iodepth=8", engine="libaio")
    check_requests(word, job, rows, op, stats)
    if "fs" in layers_of(mounted):
        own = [r for r in rows("--comm", "fio", "--layer", "fs") if r["io"]["op"] == op]
        counts = sum(r["count"] for r in own), sum(r["io"]["async"] for r in own)
        # If the disk is done before the file system returns, the operation has ended and has a
        # time.
        h.check(sum(counts) == job["total_ios"] and counts[0] < counts[1] / 10,
                f"{word}: {counts}, fio {job['total_ios']}")


def drop_caches():
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("1")


def check_uring(mounted, op, direct):
    """Checks that an operation of io_uring is one, and none fails: io_uring asks the file system without
    waiting, and again until it is done. Without the cache most end after the call returns, and none
    else: where the call is repeated, only the last one is the operation."""
    word = f"{mounted.kind} {op}, io_uring, direct={direct}"
    drop_caches()
    job, rows, _ = recorded(mounted, op, f"--direct={direct}", "--iodepth=8", engine="io_uring")
    own = [r for r in rows("--comm", "fio", "--layer", "fs") if r["io"]["op"] == op]
    seen = sum(r["count"] for r in own)
    failed, later = (sum(r["io"][key] for r in own) for key in ("errors", "async"))
    if "fs" in layers_of(mounted):
        h.check(seen + later == job["total_ios"] and not failed and (direct or not later),
                f"{word}: {seen}, {failed} failed, {later} asynchronous, fio {job['total_ios']}")


def check_refused(mounted):
    """Checks that a read fails if its program does not let it wait for the page."""
    drop_caches()
    start, refused = daemon.cut("iolat"), 0
    file = os.open(mounted.file(), os.O_RDONLY)
    for i in range(100):
        try:
            os.preadv(file, [bytearray(4096)], i * 40 * 4096, os.RWF_NOWAIT)
        except BlockingIOError:
            refused += 1
    os.close(file)
    rows = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until",
                           h.at(daemon.cut("iolat")), "--layer", "fs", "--op", "read", "-p",
                           os.getpid(), "--disk", disk.name)["rows"]
    if "fs" in layers_of(mounted):
        seen = sum(r["count"] for r in rows), sum(r["io"]["errors"] for r in rows)
        h.check(refused and seen == (100, refused),
                f"{mounted.kind}, RWF_NOWAIT: {refused} of 100 refused, seen {seen}")


# With a cache, the kernel would count an empty flush as a write.
disk.set_write_cache(False)
for kind in ("ext4", "xfs"):
    mounted = Mounted(disk, kind)
    h.check(mounted.is_there, f"{kind}: {mounted.error}")
    fio(mounted, "--rw=write", "--end_fsync=1")
    for op in JOBS:
        check_job(mounted, op)
    check_async(mounted, "read")
    for op in JOBS:
        for direct in (0, 1):
            check_uring(mounted, op, direct)
    check_refused(mounted)
    mounted.close()
h.finish()
