# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what the host takes from a test: the CPU time of all processes that are not the test's, and what
the hypervisor took. It costs nothing while nobody asks, and a test's own load, however high, is no noise."""

import os
import time

# Readings are at least so far apart, since the kernel counts in ticks of 4 to 10 ms.
APART_SECONDS = 1

# Where others used less than this share of all CPUs, the host is quiet: the kernel's own threads, meson and
# the rounding of ticks are as much.
QUIET = 0.05

# The most by which others stretch a time or shrink a count: of ten threads that want one CPU, each has a tenth.
# What is off by more has another cause, so that nothing where something was expected fails on any host.
MOST = 10

# The same for two accounts of one time: noise changes what is at the edges, and leaves fewer samples to chance. A
# factor of two in one of them has another cause.
MOST_APART = 1.5

TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Returns {pid: (parent, ticks)} of all processes; the ticks are of the process and of those of its children that
    it has waited for."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return found


class Noise:
    """The noise from now on. The processes in `roots`, and all below them, are the test's."""

    def __init__(self):
        self.roots = {os.getpid()}
        self.ours = set()  # the pids of the roots and of all that were seen below them
        self.own = self.sum = 0  # ticks: so far; of all that live, at the last reading
        self.last = self.read()
        self.others = self.steal = 0.0

    def own_ticks(self):
        """Returns the ticks of the roots and of all below them so far. One whose parent has ended is still the
        test's; what it had is gone with it if init waits for it, so the sum of those that live may fall."""
        found = processes()
        known, self.ours = self.ours | self.roots, set()
        for pid in found:
            above = pid
            while above in found and above not in known:
                above = found[above][0]
            if above in known:
                self.ours.add(pid)
        before, self.sum = self.sum, sum(found[pid][1] for pid in self.ours)
        self.own += max(0, self.sum - before)
        return self.own

    def read(self):
        """Returns (seconds, busy ticks of others, stolen ticks)."""
        own = self.own_ticks()
        with open("/proc/stat", encoding="ascii") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
        return time.monotonic(), user + nice + system + irq + softirq - own, steal

    def note(self):
        """Takes a reading, and keeps the worst stretch between two. What a test measures is mostly as long."""
        if time.monotonic() - self.last[0] < APART_SECONDS:
            return
        now = self.read()
        ticks = (now[0] - self.last[0]) * TICKS * os.cpu_count()
        others, steal = (min(1.0, max(0.0, b - a) / ticks) for a, b in zip(self.last[1:], now[1:]))
        if others + steal > self.share():
            self.others, self.steal = others, steal
        self.last = now

    def share(self):
        """Returns the share of all CPUs that was taken."""
        return self.others + self.steal

    def factor(self):
        """Returns by which factor this may have stretched a time, or shrunk a count: all of it may have been on the
        one CPU that the test needed."""
        taken = self.share() * os.cpu_count() if self.share() >= QUIET else 0
        return 1 / max(1 - taken, 1 / MOST)

    def words(self):
        return f"others used {self.others:.0%} of the CPUs, steal {self.steal:.0%}".replace("%", " %")
