#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of a frame of a user stack without frame pointers: a program sleeps at two depths, and the
difference in BPF run time a sleep is that of the frames between them. What a whole wait costs
beside offcputime is bench_switch's "stackd full"."""

from bench import arguments, spread, table, verdict

args = arguments(__doc__, rounds=5, sleeps=20000, cpu=1, kernel=1)

import harness  # noqa: E402
import tools  # noqa: E402

SHALLOW, DEEP = 10, 110


def measure(daemon, depth):
    """ns of BPF run time a sleep, by a session that sees the load only."""
    load = harness.Program(
        "", "-c", args.cpu, f"{harness.PROGS}/prog_unwind_o2", "recurse", depth, args.sleeps, 1,
        path="/usr/bin/taskset",
    ).ready()
    session = daemon.call(
        "io.stackd.Start", probe="offcpu",
        filter={"pids": [load.pid], "min_block_ns": 1000, "kernel_stacks": args.kernel > 0},
    )["session"]["id"]
    _, ns0 = hook_times()
    load.go().done()
    runs, ns1 = hook_times()
    load.end()
    daemon.call("io.stackd.Stop", session=session)
    return (ns1 - ns0) / args.sleeps


def hook_times():
    """(runs, ns) of the programs that take stacks."""
    hooks = ("on_sched_exit", "on_finish_switch")
    return tools.run_times(others, {i: p for i, p in tools.programs().items() if p.get("name") in hooks})


tools.warn_of_others()
others = tools.programs()
with tools.bpf_stats():
    with tools.Stackd("stackd", "probe.offcpu.enabled=no", "probe.oncpu.enabled=no") as stackd:
        times = {SHALLOW: [], DEEP: []}
        measure(stackd.daemon, SHALLOW)
        for _ in range(args.rounds):
            for depth, values in times.items():
                values.append(measure(stackd.daemon, depth))
print(f"{args.rounds} rounds of {args.sleeps} sleeps of 1 us on CPU {args.cpu}; BPF ns a sleep")
table(["frames of recursion", "least", "most"],
      [[depth, f"{min(v):.0f}", f"{max(v):.0f}"] for depth, v in times.items()])
frame = (min(times[DEEP]) - min(times[SHALLOW])) / (DEEP - SHALLOW)
print(f"shallow against shallow: {spread(times[SHALLOW]):.0f} ns")
print(f"{frame:.0f} ns a frame, goal 150: {verdict(frame <= 150)}")
