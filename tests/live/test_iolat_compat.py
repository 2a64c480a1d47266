# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows IOStackBreakdown with each of its options, while a program on a disk of its own makes a
known number of operations: the output is in the original's layout, with exactly these numbers.
"""

import re
import signal
import subprocess

import harness as h
from disks import Loop, Mounted, modprobe

h.need_live()

COUNT = 100
ROW = re.compile(r"^ *(\d+) -> (\d+) *: (\d+) *\|([* ]{40})\|$", re.M)
OPERATION = re.compile(r"^operation = (\w+)\n +(\w+) +: count     distribution\n((?:.*\|\n)+)", re.M)
TOTAL = re.compile(r"^(\w+) total: (\d+) ns$", re.M)

modprobe("ext4")
disk = Loop(64)
mounted = Mounted(disk, "ext4")
if not mounted.is_there:
    h.skip(mounted.error)
disk.set_write_cache(False)
daemon = h.Daemon("probe.iolat.top=syscall", "window.length=1s", "control.max_sessions=16")
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
has_layers = any(word in probe["hook"] for word in ("fentry", "kprobe"))
has_fdatasync = not any(re.match("vfs: .*fdatasync", blind) for blind in probe["blind"])
program = h.Program("prog_io", mounted.file(), COUNT).ready()
PID = ("-p", program.pid)
DISK = ("-d", disk.name)
OWN = {"r": 10 * COUNT, "w": 2 * COUNT, "s": COUNT}

CALLS = {f"sysc_{k}": n for k, n in OWN.items()}

# Words, the header's middle, and how many operations of each kind; None: as the kernel counts.
USES = {
    "default": ((*PID, *DISK), "syscall", CALLS),
    # The count includes the writes of the program's own output at the end.
    "pid": (("-T", "syscall", *PID), "syscall", {**CALLS, "sysc_w": OWN["w"] + 1}),
    "disk": (("-T", "syscall", *DISK), "syscall", CALLS),
    "ms": (("-m", *PID, *DISK), "syscall", CALLS),
    "blk": (("-T", "blk", *DISK), "blk", {"bio_op": None}),
    "queued": (("-T", "blk", "-Q", *DISK), "blk", {"bio_op": None}),
}
if has_layers:
    USES["vfs"] = (("-T", "vfs", *DISK), "vfs",
                   {"vfs_r": 10 * COUNT, "vfs_w": 2 * COUNT, "vfs_f": (1 + has_fdatasync) * COUNT})
    USES["ext4"] = (("-T", "ext4", *PID, *DISK), "ext4",
                    {"extread": 10 * COUNT, "extwrite": 2 * COUNT, "extfsync": 2 * COUNT})
else:
    h.leave_out(f"no vfs and ext4: {probe['blind']}")


def begin(words):
    return subprocess.Popen(
        [h.STACKCTL, "-S", daemon.socket, "IOStackBreakdown", *[str(w) for w in words]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


h.run(["sync"])
# The header says that it records now.
running = {name: begin(use[0]) for name, use in USES.items()}
heads = {name: process.stdout.readline() for name, process in running.items()}
before = disk.stats()
program.go().done()
h.run(["sync"])
after = disk.stats()
requests = sum(after[op] - before[op] for op in ("read", "write", "discard", "flush"))
totals = {}
for name, process in running.items():
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=h.HANG_SECONDS)
    words, layer, counts = USES[name]
    h.check(process.returncode == 0, f"{name}: {process.returncode}: {err}")
    who = f" of PID {program.pid}" if "-p" in words else ""
    h.check(heads[name] == f"Tracing I/O latency of {layer}{who}... Hit Ctrl-C to end.\n",
            f"{name}: the header is {heads[name]!r}")
    h.check(re.search(r"^\d\d:\d\d:\d\d$", out, re.M), f"{name}: a time of day: {out[:200]!r}")
    seen = {}
    for operation, unit, body in OPERATION.findall(out):
        rows = ROW.findall(body)
        h.check(len(rows) == body.count("\n"), f"{name}: rows of a histogram: {body!r}")
        h.check(unit == ("msecs" if "-m" in words else "nsecs"), f"{name}: {unit}")
        seen[operation] = sum(int(row[2]) for row in rows)
    wanted = {k: n if n is not None else requests for k, n in counts.items()}
    h.check(seen == wanted, f"{name}: {seen}, not {wanted} {err}")
    sums = [(word, int(ns)) for word, ns in TOTAL.findall(out)]
    h.check({word for word, _ in sums} == set(wanted), f"{name}: totals {sums}")
    h.check([ns for _, ns in sums] == sorted(ns for _, ns in sums),
            f"{name}: the least comes first: {sums}")
    totals[name] = dict(sums)
program.end()

# These are the same operations, with and without the time before the driver received them.
h.check(totals["queued"]["bio_op"] > totals["blk"]["bio_op"], f"longer with the queue: {totals}")
h.check(totals["ms"].keys() == totals["disk"].keys(), "there are the same operations in ms")
for words, text in (
    (("-d", "nonesuch"), "no such disk 'nonesuch'"),
    (("-T", "roof"), "syscall, vfs, ext4 or blk"),
):
    refused = daemon.ctl("IOStackBreakdown", *words, "1")
    h.check(refused.code in (1, 2) and text in refused.err, str(refused))
h.finish()
