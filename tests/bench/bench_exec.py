#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what a fork and exec costs the daemon: the CPU time of its threads while /bin/true is
started at two rates, and the share of user stacks that are whole. `perf record -a -g -F 49` runs in
the same storm, and so does another stackd, if --other names one: all see the same processes."""

import glob
import os
import subprocess
import tempfile
import time

from bench import arguments, load, table

args = arguments(__doc__, seconds=15, rates="500,1000", other="", program="/bin/true", perf=1)

import harness  # noqa: E402
import tools  # noqa: E402

GOAL_US = 60


def cpu_ns(pid):
    """Returns {name of thread: CPU time in ns} of a process."""
    times = {}
    for path in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(f"{path}/comm", encoding="ascii") as f:
                name = f.read().strip()
            with open(f"{path}/schedstat", encoding="ascii") as f:
                times[name] = times.get(name, 0) + int(f.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has ended
    return times


def forks():
    with open("/proc/stat", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("processes "))


class Subject:
    """A process whose CPU time is measured."""

    def __init__(self, name, pid, daemon=None):
        self.name, self.pid, self.daemon = name, pid, daemon

    def begin(self):
        self.times = cpu_ns(self.pid)
        self.walks = self._walks()

    def end(self):
        now = cpu_ns(self.pid)
        self.used = {name: ns - self.times.get(name, 0) for name, ns in now.items()}
        stacks, whole = (after - before for before, after in zip(self.walks, self._walks()))
        self.whole = f"{whole / stacks:.1%}" if stacks else "-"
        self.stacks = stacks

    def _walks(self):
        if not self.daemon:
            return 0, 0
        programs = self.daemon.status()["unwind"]["binaries"]
        return sum(p["stacks"] for p in programs), sum(p["whole"] for p in programs)


def start():
    """Starts what is measured; returns its subjects."""
    subjects = []
    for name, binary in (("stackd", None), ("other", args.other)):
        if binary == "":
            continue
        daemon = harness.Daemon(binary=binary)
        subjects.append(Subject(name, daemon.process.pid, daemon))
    if args.perf and harness.shutil.which("perf"):
        out = os.path.join(tempfile.mkdtemp(dir=subjects[0].daemon.dir), "perf.data")
        perf = harness.spawn(
            ["perf", "record", "-q", "-a", "-g", "-F", "49", "-o", out],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        subjects.append(Subject("perf record", perf.pid))
    return subjects


tools.warn_of_others()
subjects = start()
storm = load(args, "storm")
# The programs and libraries become known.
harness.run([storm, "50", "2", args.program])
time.sleep(5)
for rate in args.rates.split(","):
    for subject in subjects:
        subject.begin()
    before, begun = forks(), time.monotonic()
    started = int(harness.run([storm, rate, str(args.seconds), args.program], timeout=120).out)
    time.sleep(1)
    for subject in subjects:
        subject.end()
    forked, took = forks() - before, time.monotonic() - begun
    print(f"\n{started} starts of {args.program} in {took:.1f} s ({rate} a second wanted), {forked} "
          "forks of the whole host")
    rows = []
    for subject in subjects:
        total = sum(subject.used.values())
        most = sorted(subject.used.items(), key=lambda item: -item[1])[:6]
        rows.append(
            [
                subject.name,
                f"{total / 1e6:.0f}",
                f"{total / forked / 1e3:.0f}",
                f"{total / took / 1e7:.1f}",
                subject.whole,
                " ".join(f"{name} {ns / forked / 1e3:.0f}" for name, ns in most),
            ]
        )
    table(["", "CPU ms", "us a fork", "% of a CPU", "whole", "us a fork by thread"], rows)
print(f"\ngoal: at most {GOAL_US} us of the daemon a fork and exec")
for subject in subjects:
    if subject.daemon:
        print(f"{subject.name}: lost {harness.lost_text(subject.daemon.status())}")
        subject.daemon.stop()
