#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what a fork and exec costs the daemon: the CPU time of its threads while /bin/true is
started at two rates, and the share of user stacks that are whole. `perf record -a -g -F 49` runs in
the same storm, and so does another stackd, if --other names one: all see the same processes. The
time of perf is its CPU time until it has ended, as it does much of its work then."""

import glob
import os
import signal
import subprocess
import time

from bench import arguments, load, table

args = arguments(__doc__, seconds=15, rates="500,1000", other="", program="/bin/true")

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


class Daemon(harness.Daemon):
    """A stackd with its default settings, which may be of another version than stackctl."""

    def start(self, *rest, **kwargs):
        at = self.argv.index("window.max_rows=0")
        del self.argv[at - 1:at + 1]
        super().start(*rest, **kwargs)

    def _wait_ready(self):
        def ready():
            try:
                return self.status()
            except OSError:
                return None

        harness.wait_until(ready, "the daemon to answer")


class Stackd:
    def __init__(self, name, binary):
        self.name, self.daemon = name, Daemon(binary=binary)

    def begin(self):
        self.times = cpu_ns(self.daemon.process.pid)
        self.walks = self._walks()

    def end(self):
        now = cpu_ns(self.daemon.process.pid)
        self.used = {name: ns - self.times.get(name, 0) for name, ns in now.items()}
        stacks, whole = (after - before for before, after in zip(self.walks, self._walks()))
        self.whole = f"{whole / stacks:.1%} of {stacks}" if stacks else "-"

    def _walks(self):
        programs = self.daemon.status()["unwind"]["binaries"]
        return sum(p["stacks"] for p in programs), sum(p["whole"] for p in programs)


class Perf:
    name, whole = "perf record", "-"
    out = os.path.join(harness.make_temp_dir(), "perf.data")

    def begin(self):
        self.process = harness.spawn(
            ["perf", "record", "-q", "-a", "-g", "-F", "49", "-o", self.out],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        harness.wait_until(lambda: os.path.exists(self.out), "perf to record")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, code, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = code
        self.used = {"perf": round((usage.ru_utime + usage.ru_stime) * harness.NS_PER_S)}
        print(f"perf.data: {os.path.getsize(self.out) / 2**20:.1f} MiB")
        os.unlink(self.out)


tools.warn_of_others()
daemons = [Stackd("stackd", None)]
if args.other:
    daemons.append(Stackd("other", args.other))
subjects = [*daemons, *([Perf()] if harness.shutil.which("perf") else [])]
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
    forked, took = forks() - before, time.monotonic() - begun
    for subject in subjects:
        subject.end()
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
for subject in daemons:
    print(f"{subject.name}: lost {harness.lost_text(subject.daemon.status())}")
    subject.daemon.stop()
