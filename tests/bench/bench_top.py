#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the ten greatest rows of each 30 s of a busy host (compile jobs, 200 processes a second, a
disk writer) with those of a second stackd that has no budget, so that it records all waits: by
program and reason, for each of some budgets. Goal: within 10 % at the default."""

import collections
import contextlib
import time

from bench import arguments, load, percentile, table, verdict

args = arguments(__doc__, ranges=6, execs=200, jobs=3, budgets="4%,8%,16%")

import harness  # noqa: E402
import loads  # noqa: E402
import tools  # noqa: E402

RANGE, TOP = 30, 10
EXACT = ("budget.cpu=100%", "window.max_rows=0", "probe.offcpu.max_keys=200000")
WRITER = "while :; do dd if=/dev/zero of={0} bs=64k count=64 conv=fsync 2>/dev/null; done"


def rows_of(daemon, since, until):
    """Returns the share of the time by program and reason, without idle waits and stackd's own."""
    reply = daemon.ctl_json("snapshot", "offcpu", "-K", "-n", "0", "--since", f"@{since:.3f}",
                            "--until", f"@{until:.3f}")
    sums = collections.Counter()
    for row in reply["rows"]:
        file = row["process"].get("exe", "").rpartition("/")[2]
        if not row.get("idle") and not file.startswith("stackd"):
            sums[row["comm"], row.get("reason", row["state"])] += row["total_ns"]
    return {name: ns / reply["coverage"]["used_ns"] for name, ns in sums.items()}


def compare(ours, exact):
    """Returns how far off ours is for each of the greatest."""
    greatest = sorted(exact, key=lambda name: -exact[name])[:TOP]
    return [(abs(ours.get(name, 0) / exact[name] - 1), name) for name in greatest]


def measure(budget):
    """Returns a line of the table, and how many rows are off by over 10 %."""
    with contextlib.ExitStack() as stack:
        exact = harness.Daemon(*EXACT)
        stack.callback(exact.stop)
        ours = harness.Daemon(f"budget.cpu={budget}", "window.max_rows=500")
        stack.callback(ours.stop)
        time.sleep(60)
        off, below = [], 0
        for _ in range(args.ranges):
            since = time.time()
            time.sleep(RANGE)
            for daemon in (exact, ours):
                daemon.cut()
            off += compare(rows_of(ours, since, since + RANGE), rows_of(exact, since, since + RANGE))
            below = max(below, (ours.status().get("budget") or {}).get("sample_below_ns", 0))
        over = sum(1 for value, _ in off if value > 0.1)
        values = [value for value, _ in off]
        return [budget, f"{below / 1e6:.1f} ms", f"{percentile(values, 0.5):.1%}",
                f"{percentile(values, 0.9):.1%}", "{:.1%} {}".format(max(off)[0], " ".join(max(off)[1])),
                f"{over} of {len(off)}"], over


tools.warn_of_others()
with contextlib.ExitStack() as loaded:
    loaded.enter_context(loads.compiling(args.jobs))
    storm = [load(args, "storm"), args.execs, 86400, "/bin/true", "/usr/bin/id", "/bin/date"]
    loaded.enter_context(loads.process(storm))
    path = loaded.enter_context(loads.directory_of("nobody"))
    loaded.enter_context(loads.process(["sh", "-c", WRITER.format(f"{path}/file")]))
    lines = [measure(budget) for budget in args.budgets.split(",")]
table(["budget", "sampled below", "median off", "90 % off", "most", "over 10 %"],
      [line for line, _ in lines])
print(f"goal: within 10 % at {args.budgets.split(',')[0]}: {verdict(not lines[0][1])}")
