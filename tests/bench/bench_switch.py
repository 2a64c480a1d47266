#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of a context switch: `perf bench sched pipe` with both tasks on one CPU, so
that no cost is hidden on another CPU; interleaved rounds of base, peers and stackd, the least of
each."""

import re

from bench import arguments, spread, table, verdict

args = arguments(__doc__, rounds=8, ops=100000, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402


def measure():
    """Returns the microseconds of an op: a round trip of two switches."""
    argv = ["taskset", "-c", args.cpu, "perf", "bench", "sched", "pipe", "-l", args.ops]
    result = harness.run([str(a) for a in argv], timeout=300)
    return float(re.search(r"([\d.]+) usecs/op", result.out).group(1))


def bpf_us(tool):
    """Returns the BPF run time of an op in us, and the runs. It is measured apart, because to keep
    run times costs time."""
    with tools.bpf_stats():
        before = tools.programs()
        with tool:
            runs0, ns0 = tools.run_times(before, tools.programs())
            measure()
            runs1, ns1 = tools.run_times(before, tools.programs())
    return (ns1 - ns0) / 1000 / args.ops, (runs1 - runs0) / args.ops


tools.warn_of_others()
subjects = [tools.Nothing(), *tools.peers(), *tools.ours()]
times = {subject.name: [] for subject in subjects}
measure()
for _ in range(args.rounds):
    for subject in subjects:
        with subject:
            measure()  # the daemon reads the program the first time it sees it
            times[subject.name].append(measure())

base = min(times["base"])
noise = spread(times["base"])
added = {name: min(values) - base for name, values in times.items()}
rows = []
for subject in subjects:
    name = subject.name
    bpf = "-" if name == "base" else "{:.3f} us, {:.1f} runs".format(*bpf_us(subject))
    rows.append(
        [
            name,
            f"{min(times[name]):.3f}",
            f"{max(times[name]):.3f}",
            "-" if name == "base" else f"{added[name]:+.3f}",
            bpf,
            f"{added[name] / added['offcputime']:.3f}" if "offcputime" in added else "-",
        ]
    )
print(f"{args.rounds} rounds of {args.ops} ops on CPU {args.cpu}; us an op (two switches)")
table(["", "least", "most", "added", "BPF time an op", "of offcputime"], rows)
print(f"base against base: {noise:.3f} us")
if "offcputime" in added:
    for name, goal in (("stackd", 1 / 8), ("stackd full", 1.0)):
        ratio = added[name] / added["offcputime"]
        reached = verdict(ratio <= goal)
        print(f"{name}: {ratio:.3f} of offcputime's added time, goal {goal}: {reached}")
else:
    print("offcputime (libbpf-tools) is not installed: no ratio")
