# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares samples with the program's own clock, /proc and arithmetic: the share of time of a
function, the CPU time of a process, the CPUs, and the number of samples in all.
"""

import math
import os
import threading
import time

import harness as h

h.need_live()

TICK = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))
SECONDS = 8


def cpu_ns(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10**9 // TICK


class Account:
    """The CPU time that /proc gives for a process, read all the time."""

    def __init__(self, pid):
        self.pid, self.points, self.is_over = pid, [], threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while not self.is_over.wait(0.02):
            self.points.append((time.time_ns(), cpu_ns(self.pid)))

    def between(self, start, end):
        points = list(self.points)
        at = [min(points, key=lambda p, t=t: abs(p[0] - t))[1] for t in (start, end)]
        return at[1] - at[0]


def spread_ns(reply, cpu_ns):
    """Returns by how much samples may miss this CPU time, in a process that shares its CPU with others:
    which of the samples hit it is chance then. It is four standard deviations."""
    n, share = h.used_ns(reply) / reply["period_ns"], min(cpu_ns / h.used_ns(reply), 1)
    return 4 * math.sqrt(n * share * (1 - share)) * reply["period_ns"]


def in_function(reply, name, pid=None):
    rows = [r for r in h.rows_with(reply, name) if pid in (None, r["process"]["pid"])]
    return sum(r["count"] for r in rows)


daemon = h.Daemon("window.length=1s")
daemon.cut()
shares = h.Program("prog_shares", CPUS[-1]).ready()
pid = shares.pid

# A session records all processes, and the process's own account is read in the middle of it.
account = Account(pid)
reply = daemon.ctl_json("record", "oncpu", "-F", 999, "--duration", f"{SECONDS}s", "--idle")
h.check_nothing_lost(reply, "record")
large, small = in_function(reply, "three_quarters", pid), in_function(reply, "one_quarter", pid)
h.check_near(large / max(small, 1), 3, 0.05, f"three to one ({large} and {small} samples)")
own = [r for r in reply["rows"] if r["process"]["pid"] == pid]
length = h.used_ns(reply)
total = h.row_sum(own)
used = reply["coverage"]["used"]
spent = account.between(used["start"]["ns"], used["end"]["ns"])
h.check_near(total, spent, 0.05, "the CPU time is that of /proc/PID/stat",
             slack=2 * 10**9 // TICK + spread_ns(reply, spent))
h.check(all(r["total_ns"] == r["count"] * reply["period_ns"] for r in own),
        "each sample stands for a period")
expected = length / 10**9 * 999 * len(CPUS)
h.check_near(reply["totals"]["samples"], expected, 0.02,
             "samples are frequency x CPUs x seconds, with idle ones")
idle = [r for r in reply["rows"] if r["process"]["pid"] == 0]
h.check(all(r["idle"] for r in idle), "idle CPUs are marked so")

# The data that is always recorded says the same, in less detail.
always = daemon.ctl_json("snapshot", "oncpu", "--window", f"{SECONDS}s", "-p", pid)
samples = always["totals"]["samples"]
used = always["coverage"]["used"]
spent = account.between(used["start"]["ns"], used["end"]["ns"])
account.is_over.set()
h.check_near(always["totals"]["on_cpu_ns"], spent, 0.10, f"always on ({samples} samples)",
             slack=spread_ns(always, spent))
h.check(not any(r["idle"] for r in always["rows"]), "idle CPUs are not in the always-on data")

# Samples at several addresses of the same functions are one row, and several rows with addresses.
def functions_of(row):
    return (row["idle"], *(tuple(h.frame_names(row, side)) for side in ("kernel", "user")))


def busiest(addresses):
    question = {"probe": "oncpu", "since_ns": used["start"]["ns"], "until_ns": used["end"]["ns"],
                "filter": {"pids": [pid]}, "addresses": addresses}
    return daemon.call("io.stackd.Snapshot", **question)["rows"]


one_row, apart = busiest(False), busiest(True)
names = [functions_of(row) for row in one_row]
h.check(len(set(names)) == len(names) and len(apart) > len(names),
        f"{len(set(names))} stacks of functions, {len(names)} rows, {len(apart)} by address")
h.check(h.row_sum(one_row, "count") == h.row_sum(apart, "count") == samples,
        f"{samples} samples in each")

# A session of one CPU does not see a program that runs on another.
elsewhere = h.Program("prog_shares", CPUS[0]).ready()
reply = daemon.ctl_json("record", "oncpu", "-F", 499, "--duration", "2s", "-C", CPUS[-1], "--idle")
pids = {r["process"]["pid"] for r in reply["rows"]}
h.check(pid in pids and (elsewhere.pid not in pids or len(CPUS) == 1), "-C: only that CPU")
h.check_near(reply["totals"]["samples"], h.used_ns(reply) / 10**9 * 499, 0.02, "-C: its samples")

# A session by period, of one process, with user frames alone.
reply = daemon.ctl_json("record", "oncpu", "--count", "2000000", "--duration", "2s", "-p", pid, "-U")
h.check(reply["period_ns"] == 2_000_000, "--count: the period is kept")
h.check({r["process"]["pid"] for r in reply["rows"]} == {pid}, "-p: only that process")
h.check(not any("kernel" in r for r in reply["rows"]), "-U: no kernel frames")

# A session by cycles, where the hardware counts them; the answer names the event used.
reply = daemon.ctl_json("record", "oncpu", "--event", "cycles", "-F", 999, "--duration", "3s", "-p", pid)
has_cycles = os.path.exists("/sys/bus/event_source/devices/cpu/events/cpu-cycles")
hook = "perf_event/cycles" if has_cycles else "perf_event/cpu-clock"
h.check(reply["hook"] == hook, f"by {reply['hook']}; the machine has {hook}")
large, small = in_function(reply, "three_quarters", pid), in_function(reply, "one_quarter", pid)
h.check_near(large / max(small, 1), 3, 0.15, f"three to one ({large} and {small} samples)")
result = daemon.ctl("start", "oncpu", "--event", "cycles", "--count", "1000000")
h.check(result.code == 1 and "a period is in time" in result.err, f"cycles and a period: {result}")
result = daemon.ctl("start", "offcpu", "--event", "cycles")
h.check(result.code == 1 and "samples nothing" in result.err, f"waits by an event: {result}")
text = daemon.ctl("record", "oncpu", "-F", 499, "--duration", "1s", "-p", pid)
h.check("three_quarters" in text.out and "samples" in text.out, f"text: {text}")
folded = daemon.ctl("record", "oncpu", "-F", 499, "--duration", "3s", "-p", pid, "-f")
stacks = h.parse_folded(folded.out)
part = h.folded_sum(stacks, "main", "three_quarters", "spin_until")
h.check_near(part / sum(stacks.values()), 0.75, 0.1, "folded: the share of the function")

for program in (shares, elsewhere):
    h.check(program.end() == 0, "the program ended well")
daemon.stop()

# Without offcpu, oncpu has to find execs and exits by itself.
daemon = h.Daemon("window.length=1s", "probe.offcpu.enabled=no")
daemon.ctl("status")
alone = h.Program("prog_shares").ready()
spent = -cpu_ns(alone.pid)
reply = daemon.ctl_json("record", "oncpu", "-F", 499, "--duration", "2s", "--comm", "prog_shares")
spent += cpu_ns(alone.pid)
found = in_function(reply, "three_quarters", alone.pid)
h.check(found > 0.3 * spent / reply["period_ns"] > 0,
        f"without offcpu: the function, {found} samples in {spent} ns of CPU time")
h.check(alone.end() == 0, "it ended")
state = next(p for p in daemon.status()["probes"] if p["name"] == "offcpu")["state"]
h.check(state == "off", f"offcpu is {state}")
waits = daemon.ctl("record", "offcpu", "--duration", "1s", "-u", "-n", "1")
h.check(waits.code == 0 and "threads" in waits.out, f"a session of waits all the same: {waits}")
h.finish()
