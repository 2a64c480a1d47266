#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what offwake adds to a wait: `perf bench sched pipe` with both tasks on one CPU, where
each task ends the other's wait, in interleaved rounds of base, peers and stackd; the least of each
counts. No tool of libbpf-tools takes both stacks: wakeuptime takes only the waker's kernel stack. A
bpftrace script does the job of bcc's offwaketime, which itself needs kprobes and kernel headers.
Goal: at most what the script adds, with the same stacks of the same waits."""

import os
import re
import shutil

from bench import HERE, arguments, spread, table, verdict

args = arguments(__doc__, rounds=4, ops=100000, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no", "probe.offwake.enabled=yes")
WAITS = 2  # per op


def measure():
    """Returns the ns of a wait, with everything that happens between two waits."""
    argv = ["taskset", "-c", args.cpu, "perf", "bench", "sched", "pipe", "-l", args.ops]
    result = harness.run([str(a) for a in argv], timeout=300)
    return float(re.search(r"([\d.]+) usecs/op", result.out).group(1)) * 1000 / WAITS


def bpf_ns(tool):
    """Returns the BPF run time of a wait. It is measured apart, because to keep run times costs
    time."""
    with tools.bpf_stats():
        before = tools.programs()
        with tool:
            measure()
            _, ns0 = tools.run_times(before, tools.programs())
            measure()
            _, ns1 = tools.run_times(before, tools.programs())
    return (ns1 - ns0) / args.ops / WAITS


def subjects():
    found = [tools.Nothing()]
    if tools.libbpf_tool("wakeuptime"):
        found.append(tools.Peer("wakeuptime", tools.libbpf_tool("wakeuptime")))
    if shutil.which("bpftrace") and tools.mount_tracefs():
        argv = ("bpftrace", os.path.join(HERE, "offwake.bt"))
        found.append(tools.Peer("bpftrace", *argv, programs_least=2))
    found.append(tools.Stackd("offwake", *OTHERS))
    found.append(tools.Stackd("offwake full", *OTHERS, "probe.offwake.min_wait=1us"))
    return found


tools.warn_of_others()
found = subjects()
times = {subject.name: [] for subject in found}
measure()
for _ in range(args.rounds):
    for subject in found:
        with subject:
            measure()  # the daemon reads the program the first time it sees it
            times[subject.name].append(measure())

base, noise = min(times["base"]), spread(times["base"])
added = {name: min(values) - base for name, values in times.items()}
bpf = {subject.name: bpf_ns(subject) for subject in found[1:]}
rows = []
for name, values in times.items():
    cost = (f"{added[name]:+.0f}", f"{bpf[name]:.0f}") if name in bpf else ("-", "-")
    rows.append([name, f"{min(values):.0f}", f"{max(values):.0f}", *cost])
print(f"{args.rounds} rounds of {args.ops * WAITS} waits on CPU {args.cpu}; ns a wait")
table(["", "least", "most", "added", "BPF ns"], rows)
print(f"base against base: {noise:.0f} ns")
print("offwake: stacks only of waits of 100 us and more; all of these are shorter\n"
      "offwake full: all four stacks of each wait, those of programs to their root")
if "bpftrace" in added:
    for name in ("offwake", "offwake full"):
        ratio = bpf[name] / bpf["bpftrace"]
        print(f"{name}: {ratio:.2f} of bpftrace's BPF time, goal 1: {verdict(ratio <= 1)}")
        if added["bpftrace"] > 2 * noise:
            ratio = added[name] / added["bpftrace"]
            print(f"{name}: {ratio:.2f} of bpftrace's added time, goal 1: {verdict(ratio <= 1)}")
        else:
            print("the host is too busy for what is added to say more")
