# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares latencies of I/O with the truth: numbers and times of operations with those of a program
that counts its own, requests with /proc/diskstats, and layers with each other.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

import harness as h
from disks import check_nothing_lost, may_miss

h.need_live()

COUNT = 200
DIRECTORY = os.environ.get("IOLAT_DIR", "/var/tmp")
HOOK = os.environ.get("IOLAT_HOOK", "auto")
# Each trap of a kprobe takes time.
READS = 100_000 if HOOK != "auto" or h.EVENTS_ONLY else 1_000_000
KPROBES = "/sys/bus/event_source/devices/kprobe/type"


def disk_of(path):
    """Returns the whole disk that a file is on, or None where there is none."""
    number = os.stat(path).st_dev
    link = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if not os.path.exists(link):
        return None
    place = os.path.realpath(link)
    if os.path.exists(os.path.join(place, "partition")):
        place = os.path.dirname(place)
    return os.path.basename(place)


def diskstats(disk):
    with open("/proc/diskstats", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if fields[2] == disk:
                return {"read": int(fields[3]), "flush": int(fields[18])}
    return None


def select(rows, layer, *ops, **io):
    return [r for r in rows if r["io"]["layer"] == layer and r["io"]["op"] in ops
            and all(r["io"].get(k) == v for k, v in io.items())]


def count_of(rows):
    return sum(r["count"] for r in rows)


daemon = h.Daemon("probe.iolat.top=syscall", f"probe.iolat.hook={HOOK}", "window.length=1s",
                  "probe.iolat.slow=20ms")
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
h.check(probe["state"] == "on", f"the probe is on: {probe.get('reason')}")
has_layers = any(word in probe["hook"] for word in ("fentry", "kprobe"))
# Some kernels call no function for fdatasync.
has_fdatasync = not any(re.match("vfs: .*fdatasync", blind) for blind in probe["blind"])
h.check(HOOK in ("auto", *probe["hook"].split()), f"the hook is {probe['hook']}, wanted {HOOK}")
h.check(has_layers or any("VFS" in b for b in probe["blind"]),
        f"blind spots are reported: {probe['hook']}, {probe['blind']}")

directory = tempfile.mkdtemp(dir=DIRECTORY)
disk = disk_of(directory)
program = h.Program("prog_io", os.path.join(directory, "file"), COUNT).ready()
# Others may use the disk between a cut and the reading of the kernel's counters.
first = diskstats(disk) if disk else None
start = daemon.cut("iolat")
since = h.at(start)[1:]
before = diskstats(disk) if disk else None
program.go().done()
after = diskstats(disk) if disk else None
end = daemon.cut("iolat")
last = diskstats(disk) if disk else None


def snapshot(*args):
    return daemon.ctl_json("snapshot", "iolat", "--since", f"@{since}", *args)


def is_whole():
    result = daemon.ctl("snapshot", "iolat", "--since", f"@{since}", "-p", program.pid,
                        "--format", "json")
    # exit code 4: no operation has ended yet
    rows = json.loads(result.out)["rows"] if result.code != 4 else []
    return count_of(select(rows, "syscall", "fdatasync")) >= COUNT


# A window is not cut if the last cut was only just before.
h.wait_until(is_whole, "the last window")
reply = snapshot("-p", program.pid)
check_nothing_lost(daemon, reply, "operations")
rows = reply["rows"]
calls = {name: program.value(name) for name in
         ("direct_read", "direct_write", "cached_read", "sync_write", "fdatasync", "warm")}
reads = select(rows, "syscall", "pread64")
h.check(count_of(reads) == COUNT * 10, f"reads: {count_of(reads)} of {COUNT * 10}")
writes = select(rows, "syscall", "pwrite64")
h.check(count_of(writes) == COUNT * 2, f"writes: {count_of(writes)} of {COUNT * 2}")
syncs = select(rows, "syscall", "fdatasync")
h.check(count_of(syncs) == COUNT, f"syncs: {count_of(syncs)} of {COUNT}")
for name, found, own in (
    ("reads", reads, ("direct_read", "cached_read", "warm")),
    ("writes", writes, ("direct_write", "sync_write")),
    ("syncs", syncs, ("fdatasync",)),
):
    total, seen = h.row_sum(found), sum(calls[w]["ns"] for w in own)
    h.check(total <= seen, f"{name}: {total} ns, no more than the {seen} the program saw")
    h.estimate_least(total, seen // 3, f"{name}: {total} ns, most of the {seen} the program saw")
    for row in found:
        io = row["io"]
        parts = sum(io[p + "_ns"] for p in
                    ("cpu", "runnable", "device", "queue", "throttled", "other"))
        h.check_sum(parts, row["total_ns"], 0.01, f"{name}: parts of the time", 1000)
        h.check(sum(row["buckets"]) == row["count"], f"{name}: buckets add up")
        h.check(row["max_tid"] == program.pid, f"{name}: the thread of the longest: {row['max_tid']}")
        h.check(io["p50_ns"] <= io["p90_ns"] <= io["p99_ns"] <= row["max_ns"],
                f"{name}: percentiles in order")
h.check(sum(r["io"]["bytes"] for r in reads) == COUNT * 10 * 4096, "bytes read")

# Direct reads sleep while the device works for them.
if disk:
    requests = select(rows, "block", "read", device=disk)
    # A host may hide from BPF the threads in which requests end.
    h.check(count_of(requests) > 0, f"requests: {count_of(requests)}")
    h.estimate_least(count_of(requests), COUNT, f"requests: {count_of(requests)} of {COUNT}")
    for row in requests:
        device = h.row_sum(select(rows, "device", "read", device=disk))
        queue = h.row_sum(select(rows, "queue", "read", device=disk))
        h.check(device + queue == row["total_ns"], "a request is its queue and its device")
        # The requests were made one after the other.
        h.check(row["total_ns"] <= end - start,
                f"they took {row['total_ns']} ns of {end - start}")
    asleep = sum(r["io"]["device_ns"] for r in reads)
    device = h.row_sum(select(rows, "device", "read", device=disk))
    h.check(asleep > 0, f"reads slept {asleep} ns")
    h.estimate_most(asleep, device * 1.05, f"reads slept {asleep} ns of the device's {device}")
    everybody = snapshot("--until", h.at(end), "--layer", "block", "--disk", disk)["rows"]
    for op in ("read", "flush"):
        seen, stats, most = (count_of(select(everybody, "block", op)), after[op] - before[op],
                             last[op] - first[op])
        h.check(seen <= most, f"{op} requests: {seen}, /proc/diskstats at most {most}")
        h.estimate_least(seen, stats - may_miss(daemon, stats),
                         f"{op} requests: {seen}, /proc/diskstats {stats} to {most}")

# Layers: an operation within another takes no longer, and own times add up to the whole.
if has_layers:
    for op, names in (("read", ("pread64",)), ("write", ("pwrite64",)), ("sync", ("fdatasync",))):
        upper = select(rows, "syscall", *names)
        middle, lower = select(rows, "vfs", op), select(rows, "fs", op)
        wanted = count_of(upper) if op != "sync" else COUNT * (2 if has_fdatasync else 1)
        h.check(op == "read" or count_of(lower) > 0, f"{op}: the file system's layer is recorded")
        h.check(count_of(middle) in (0, wanted) or op != "sync",
                f"{op}: {count_of(middle)} in the VFS, {wanted} from programs")
    files = [r for r in rows if r["io"]["layer"] in ("syscall", "vfs", "fs")
             and r["io"]["op"] in ("pread64", "pwrite64", "fdatasync", "read", "write", "sync")
             and r["io"].get("filesystem") not in ("pipe",)]
    whole = h.row_sum([r for r in files if r["io"]["layer"] == "syscall"])
    own = sum(r["io"]["own_ns"] for r in files)
    h.check_sum(own, whole, 0.01, f"own times of all layers {own}, the calls {whole}")

# Rows by process include other processes; the names in the filter are checked.
others = snapshot("--by", "process", "--layer", "syscall")["rows"]
h.check(len({r["process"]["pid"] for r in others}) > 1, "other processes are there")
refused = daemon.ctl("snapshot", "iolat", "--disk", "nonesuch")
h.check(refused.code == 1 and "no such disk 'nonesuch'" in refused.err, str(refused))
for bad in (("--layer", "roof"), ("--op", "dance"), ("--by", "thread")):
    refused = daemon.ctl("snapshot", "iolat", *bad)
    h.check(refused.code == 1, str(refused))
text = daemon.ctl("snapshot", "iolat", "-p", program.pid, "--since", f"@{since}")
h.check(text.code == 0 and "pread64" in text.out, "text")
tree = daemon.ctl("snapshot", "iolat", "-p", program.pid, "--since", f"@{since}", "--breakdown")
h.check(tree.code == 0 and "by what the thread did" in tree.out, "breakdown")

# The same operations as a map over time.
heat = daemon.ctl("snapshot", "iolat", "-p", program.pid, "--since", f"@{since}", "--over-time",
                  "-n", "0")
h.check(heat.code == 0 and "syscall read" in heat.out and "a column is" in heat.out, str(heat))
for bad in (("offcpu", "--over-time"), ("iolat", "--over-time", "--by", "process")):
    refused = daemon.ctl("snapshot", *bad)
    h.check(refused.code in (1, 2), str(refused))
program.end()

# No operation is counted twice or left out where one window follows another.
halves = [h.Program("prog_io", os.path.join(directory, name), 100, "cached_read", READS // 200)
          for name in ("one", "other")]
pids = [str(half.ready().pid) for half in halves]
start = daemon.cut("iolat")
for half in halves:
    half.go().done()
    end = daemon.cut("iolat")
    half.end()


def read_of(*args):
    reply = daemon.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "-p",
                            ",".join(pids), "--op", "pread64", *args)
    check_nothing_lost(daemon, reply, "operations")
    return select(reply["rows"], "syscall", "pread64", "read")


for args in ((), ("--over-time",)):
    found, word = read_of(*args), " ".join(("reads", *args))
    h.check(count_of(found) == READS, f"{word}: {count_of(found)} of {READS}")
    buckets = sum(sum(r["buckets"]) for r in found)
    h.check(buckets == READS, f"{word}: {buckets} of {READS} in buckets")
windows = [r["window"]["ns"] for r in found]
h.check(len(set(windows)) == len(windows) > 1, f"a row for each of several windows: {windows}")
h.check(windows == sorted(windows), f"in their order: {windows}")
h.check(not any("device" in r["io"] for r in found), "on any device")

# An operation that has not ended is shown with its age, until its thread ends.
reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE)


def open_reads():
    reply = daemon.ctl_json("snapshot", "iolat", "-p", reader.pid, "--op", "read", "--by",
                            "process")
    return [r["io"] for r in select(reply["rows"], "syscall", "read") if r["io"].get("open")]


def open_read():
    with contextlib.suppress(AssertionError):
        return open_reads()
    return []


h.wait_until(open_read, "an open read")
first = open_reads()[0]
h.check(first["open"] == 1 and first["oldest_tid"] == reader.pid, f"one read is open: {first}")
h.check(first["oldest_ns"] >= h.NS_PER_S, f"its age: {first}")
h.wait_until(lambda: open_reads()[0]["oldest_ns"] > first["oldest_ns"], "it grows older")
text = daemon.ctl("snapshot", "iolat", "-p", reader.pid)
h.check("1 has not ended; the oldest began" in text.out, str(text))
reader.kill()
reader.wait()
daemon.cut("iolat")
result = daemon.ctl("snapshot", "iolat", "-p", reader.pid, "--format", "json")
h.check(result.code in (0, 4), f"no process, or ended operations only: {result}")
gone = json.loads(result.out)["rows"] if result.code == 0 else []
still = [r["io"] for r in gone if r["io"].get("open")]
h.check(not still, f"it ended with its thread: {still}")

# After a restart the same operations are read from disk. Windows that a query cut short are on disk
# as one with their neighbours, so the range is that of all windows.
def reads_of_all():
    rows = daemon.ctl_json("snapshot", "iolat", "--since", f"@{float(since) - 60:.3f}", "-p", program.pid)["rows"]
    return count_of(select(rows, "syscall", "pread64"))


count = reads_of_all()
h.check(count >= count_of(reads), f"reads in all windows: {count}")
daemon.stop()
daemon.start()
again = reads_of_all()
h.check(again == count, f"the same from disk: {again} of {count}")
daemon.stop()

# With the default settings it records requests, and what file systems did to make them, but not the
# layers that would slow down every reader of a pipe; a note says so.
directory = tempfile.mkdtemp(dir=DIRECTORY)
plain = h.Daemon("window.length=1s", f"probe.iolat.hook={HOOK}")
program = h.Program("prog_io", os.path.join(directory, "file"), COUNT).ready()
start = plain.cut("iolat")
program.go().done()
end = plain.cut("iolat")
reply = plain.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end), "-p",
                       program.pid)
layers = {r["io"]["layer"] for r in reply["rows"]}
h.check(not layers & {"syscall", "vfs"}, f"layers that are recorded always: {layers}")
h.check(not disk or {"block", "queue", "device"} <= layers, f"those of requests are: {layers}")
followed = next(p for p in plain.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
if any(word in followed["hook"] for word in ("fentry", "kprobe")):
    syncs = count_of(select(reply["rows"], "fs", "sync"))
    h.check(not disk or syncs == 2 * COUNT, f"syncs of the file system: {syncs} of {2 * COUNT}")
if disk:
    requests = count_of(select(reply["rows"], "block", "read", device=disk))
    h.check(requests > 0, f"requests: {requests}")
    h.estimate_least(requests, COUNT, f"requests: {requests} of {COUNT}")
h.check(any("I/O above " in note for note in reply["notes"]),
        f"a note says so: {reply['notes']}")
lost = plain.ctl_json("snapshot", "iolat", "--since", h.at(start), "--until", h.at(end))["lost"]
said = {loss["reason"]: loss["count"] for loss in plain.status()["lost"]}
h.check(all(said.get(loss["reason"], 0) >= loss["count"] for loss in lost),
        f"status names what an answer names as lost: {lost}, {said}")
problems = [text for text in plain.status()["problems"] if "iolat" in text and h.UNSEEN not in text]
h.check(not problems, f"status finds no problem in that: {problems}")
program.end()
plain.stop()

# The second best hook gives the same figures, where there is a better one.
if HOOK == "auto" and "fentry" in probe["hook"] and os.path.exists(KPROBES):
    other = subprocess.run([sys.executable, __file__], env={**os.environ, "IOLAT_HOOK": "kprobe"})
    h.check(other.returncode == 0, "by kprobe")
h.finish()
