#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of a frame of a user stack without frame pointers. A program sleeps at two
depths, and the difference in BPF run time of a sleep is that of the frames between them: once where
each stack differs from the last one and has to be walked, and once where all are the same. Then it
measures what a whole wait costs in BPF programs, beside offcputime, and the size and the reading
time of the unwind rows of some files. bench_switch's "stackd full" measures the same cost in
time."""

import os
import re

from bench import arguments, spread, table, verdict

args = arguments(__doc__, rounds=4, sleeps=20000, cpu=1, kernel=1)

import harness  # noqa: E402
import tools  # noqa: E402

SHALLOW, DEEP = 10, 110
PLACES = {"walked": "turns", "the same again": "recurse"}
FILES = ("/usr/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/git", "/usr/bin/node",
         "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")


def sleeper(place, depth):
    return harness.Program(
        "", "-c", args.cpu, f"{harness.PROGS}/prog_unwind_o2", place, depth, args.sleeps, 1,
        path="/usr/bin/taskset",
    ).ready()


def run_ns(load, before, names=None):
    """Returns the BPF run time of a sleep in ns, of programs that were loaded after `before`."""

    def now():
        found = tools.programs().items()
        return tools.run_times(before, {i: p for i, p in found if not names or p.get("name") in names})[1]

    ns = now()
    load.go().done()
    ns = now() - ns
    load.end()
    return ns / args.sleeps


def measure(daemon, place, depth, names):
    """Returns the run time in a session that records the load only."""
    load = sleeper(place, depth)
    before = set(tools.programs())
    kernel = () if args.kernel else ("-U",)
    started = daemon.ctl("start", "offcpu", "-p", load.pid, "-m", 1, *kernel)
    if started.code:
        raise RuntimeError(str(started))
    ns = run_ns(load, before, names)
    daemon.ctl("stop", started.out.strip())
    return ns


def measure_peer(place, depth):
    load = sleeper(place, depth)
    before = set(tools.programs())
    with tools.Peer("offcputime", tools.libbpf_tool("offcputime"), "-p", str(load.pid), "1000"):
        return run_ns(load, before)


def rows_of(path):
    """Returns [rows, bytes, ms] of a file, which a process of its own reads."""
    done = harness.run([os.path.join(args.build, "tests", "unit", "unwind_dump"), path], timeout=60)
    found = re.search(r"(\d+) rows.* (\d+) bytes, (\d+) us", done.err)
    return int(found[1]), int(found[2]), int(found[3]) / 1000


WALKS = ("on_sched_exit", "on_finish_switch")  # the programs that take stacks
DEPTHS = (SHALLOW, DEEP)
tools.warn_of_others()
times = {(name, depth): [] for name in PLACES for depth in DEPTHS}
waits = {(name, depth): [] for name in ("stackd", "offcputime") for depth in DEPTHS}
if not tools.libbpf_tool("offcputime"):
    waits = {key: values for key, values in waits.items() if key[0] == "stackd"}
with tools.bpf_stats():
    with tools.Stackd("stackd", "probe.offcpu.enabled=no", "probe.oncpu.enabled=no") as stackd:
        measure(stackd.daemon, "turns", SHALLOW, WALKS)
        for _ in range(args.rounds):
            for (name, depth), values in times.items():
                values.append(measure(stackd.daemon, PLACES[name], depth, WALKS))
            for (name, depth), values in waits.items():
                values.append(measure(stackd.daemon, "recurse", depth, None) if name == "stackd"
                              else measure_peer("recurse", depth))
print(f"{args.rounds} rounds of {args.sleeps} sleeps of 1 us on CPU {args.cpu}; BPF ns a sleep")
table(["frames of recursion", "least", "most"],
      [[f"{depth}, {name}", f"{min(v):.0f}", f"{max(v):.0f}"] for (name, depth), v in times.items()])
for name in PLACES:
    shallow, deep = times[name, SHALLOW], times[name, DEEP]
    frame = (min(deep) - min(shallow)) / (DEEP - SHALLOW)
    print(f"{name}: shallow against shallow {spread(shallow):.0f} ns")
    print(f"{name}: {frame:.0f} ns a frame, goal 150: {verdict(frame <= 150)}")
print("\nall programs of a session of one process, a wait; offcputime's user stacks end in libc")
table(["frames of recursion", "least", "most"],
      [[f"{depth}, {name}", f"{min(v):.0f}", f"{max(v):.0f}"] for (name, depth), v in waits.items()])
for depth in DEPTHS if len(waits) > len(DEPTHS) else ():
    ratio = min(waits["stackd", depth]) / min(waits["offcputime", depth])
    print(f"{depth} frames: {ratio:.2f} of offcputime's time a wait, goal 1: {verdict(ratio <= 1)}")
print()
rows = []
for path in filter(os.path.exists, FILES):
    n, size, ms = rows_of(path)
    rows.append([os.path.basename(path), n, f"{size / 1024:.0f}", f"{n * 2**20 / size:.0f}", f"{ms:.1f}"])
table(["file", "rows", "KiB", "rows a MiB", "ms to read"], rows)
