# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations on a disk of their own: in each layer as many as the program made, and requests as many
as the kernel counted.
"""

import contextlib
import os
import tempfile

import harness as h
from disks import Loop

h.need_live()

COUNT = 200
KINDS = {"read": ("pread64", COUNT * 10), "write": ("pwrite64", COUNT * 2),
         "sync": ("fdatasync", COUNT)}

disk = Loop(64)
mount = tempfile.mkdtemp(dir="/dev/shm")
made = h.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", disk.path])
made = made if made.code else h.run(["mount", "-o", "noatime,commit=600", disk.path, mount])
if made.code:
    h.skip(str(made))
daemon = h.Daemon("probe.iolat.enabled=yes", "window.length=1s")


def iolat():
    return next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")


def missed():
    """A completion in an interrupt of one that is being recorded: the kernel runs no program."""
    return sum(p["missed"] for p in iolat()["programs"])


probe = iolat()
h.check(probe["state"] == "on", f"the probe is on: {probe.get('reason')}")
has_layers = any(word in probe["hook"] for word in ("fentry", "kprobe"))


def at(ns):
    return f"@{ns // h.NS_PER_S}.{ns % h.NS_PER_S:09}"


def recorded(path, count, *kind):
    """The program's figures, and what was recorded from before its first operation on."""
    program = h.Program("prog_io", path, count, *kind).ready()
    os.sync()
    start, before = daemon.cut("iolat"), disk.stats()
    program.go().done()
    os.sync()
    after, end = disk.stats(), daemon.cut("iolat")
    program.end()

    def rows(*args):
        return daemon.ctl_json("snapshot", "iolat", "--since", at(start), "--until", at(end),
                               *args)["rows"]

    return program, rows, {op: after[op] - before[op] for op in after}


def count_of(rows, layer, *ops):
    return sum(r["count"] for r in rows if r["io"]["layer"] == layer and r["io"]["op"] in ops)


def sum_of(rows, layer, op, field):
    return sum(r["io"].get(field, r.get(field)) for r in rows
               if r["io"]["layer"] == layer and r["io"]["op"] == op)


for cache in (True, False):
    disk.set_write_cache(cache)
    word = "with a cache" if cache else "without a cache"
    missed_before = missed()
    program, rows, truth = recorded(os.path.join(mount, "file"), COUNT)
    not_run = missed() - missed_before
    own = rows("-p", program.pid, "--disk", disk.name)
    for kind, (call, count) in KINDS.items():
        seen = count_of(own, "syscall", call)
        h.check(seen == count, f"{word}: {call}: {seen} of {count}")
        count = count if kind != "sync" else 2 * COUNT  # O_SYNC: within a write there is one too
        for layer in ("vfs", "fs") if has_layers else ():
            seen = count_of(own, layer, kind)
            h.check(seen == count, f"{word}: {layer} {kind}: {seen} of {count}")
    requests = rows("--layer", "block", "--disk", disk.name)
    # An empty flush is a write to the kernel, besides what the disk is told.
    exact = ("read", "discard", "flush") if cache else ("read", "write", "discard", "flush")
    for op in exact:
        seen = count_of(requests, "block", op)
        h.check(truth[op] - not_run <= seen <= truth[op],
                f"{word}: {op} requests: {seen}, /proc/diskstats {truth[op]}, not run {not_run}")
    h.check(truth["flush"] > 0 if cache else truth["write"] >= 2 * COUNT, f"{word}: {truth}")
    if has_layers:
        # The sync is within the write, and its time is not the write's own.
        total = sum_of(own, "syscall", "pwrite64", "total_ns")
        parts = sum_of(own, "syscall", "pwrite64", "own_ns")
        parts += sum(sum_of(own, layer, "write", "own_ns") for layer in ("vfs", "fs"))
        inner = sum_of(own, "vfs", "sync", "total_ns")
        inner -= sum_of(own, "syscall", "fdatasync", "total_ns")
        inner += sum_of(own, "syscall", "fdatasync", "own_ns")
        h.check_near(parts + inner, total, 0.01, f"{word}: parts of the writes and the syncs in them")
h.run(["umount", mount])
with contextlib.suppress(OSError):
    os.rmdir(mount)

h.finish()
