#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of a frame of a user stack without frame pointers: a program sleeps at two depths, and the
difference in BPF run time a sleep is that of the frames between them; once where each stack is
another one than the last, and has to be walked, and once where they are all the same. Then what
rows of some files take. What a whole wait costs beside offcputime is bench_switch's "stackd
full"."""

import os
import re

from bench import arguments, spread, table, verdict

args = arguments(__doc__, rounds=5, sleeps=20000, cpu=1, kernel=1)

import harness  # noqa: E402
import tools  # noqa: E402

SHALLOW, DEEP = 10, 110
PLACES = {"walked": "turns", "the same again": "recurse"}
FILES = ("/usr/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/git", "/usr/bin/node",
         "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")


def measure(daemon, place, depth):
    """ns of BPF run time a sleep, by a session that sees the load only."""
    load = harness.Program(
        "", "-c", args.cpu, f"{harness.PROGS}/prog_unwind_o2", place, depth, args.sleeps, 1,
        path="/usr/bin/taskset",
    ).ready()
    session = daemon.call(
        "io.stackd.Start", probe="offcpu",
        filter={"pids": [load.pid], "min_block_ns": 1000, "kernel_stacks": args.kernel > 0},
    )["session"]["id"]
    _, ns0 = hook_times()
    load.go().done()
    _, ns1 = hook_times()
    load.end()
    daemon.call("io.stackd.Stop", session=session)
    return (ns1 - ns0) / args.sleeps


def hook_times():
    """(runs, ns) of the programs that take stacks."""
    hooks = ("on_sched_exit", "on_finish_switch")
    return tools.run_times(others, {i: p for i, p in tools.programs().items() if p.get("name") in hooks})


def rows_of(path):
    """[rows, bytes, ms] of a file, read in a process of its own."""
    done = harness.run([os.path.join(args.build, "tests", "unit", "unwind_dump"), path], timeout=60)
    found = re.search(r"(\d+) rows.* (\d+) bytes, (\d+) us", done.err)
    return int(found[1]), int(found[2]), int(found[3]) / 1000


tools.warn_of_others()
others = tools.programs()
times = {(name, depth): [] for name in PLACES for depth in (SHALLOW, DEEP)}
with tools.bpf_stats():
    with tools.Stackd("stackd", "probe.offcpu.enabled=no", "probe.oncpu.enabled=no") as stackd:
        measure(stackd.daemon, "turns", SHALLOW)
        for _ in range(args.rounds):
            for (name, depth), values in times.items():
                values.append(measure(stackd.daemon, PLACES[name], depth))
print(f"{args.rounds} rounds of {args.sleeps} sleeps of 1 us on CPU {args.cpu}; BPF ns a sleep")
table(["frames of recursion", "least", "most"],
      [[f"{depth}, {name}", f"{min(v):.0f}", f"{max(v):.0f}"] for (name, depth), v in times.items()])
for name in PLACES:
    shallow, deep = times[name, SHALLOW], times[name, DEEP]
    frame = (min(deep) - min(shallow)) / (DEEP - SHALLOW)
    print(f"{name}: shallow against shallow {spread(shallow):.0f} ns")
    print(f"{name}: {frame:.0f} ns a frame, goal 150: {verdict(frame <= 150)}")
rows = []
for path in filter(os.path.exists, FILES):
    n, size, ms = rows_of(path)
    rows.append([os.path.basename(path), n, f"{size / 1024:.0f}", f"{n * 2**20 / size:.0f}", f"{ms:.1f}"])
table(["file", "rows", "KiB", "rows a MiB", "ms to read"], rows)
