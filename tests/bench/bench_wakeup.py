#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the delay of a wakeup: a ping-pong of two threads, each pinned to a CPU; interleaved
rounds of base, peers and stackd, medians of each round's median."""

import re
import statistics

from bench import arguments, load, median_spread, table, verdict

args = arguments(__doc__, rounds=10, trips=50000)

import harness  # noqa: E402
import tools  # noqa: E402


def measure(kind):
    """Returns the nanoseconds of a wakeup: half a round trip."""
    result = harness.run([load(args, "pingpong"), kind, str(args.trips), "0", "1"], timeout=300)
    return int(re.search(r"median_ns=(\d+)", result.out).group(1)) / 2


tools.warn_of_others()
subjects = [tools.Nothing(), *tools.peers(), *tools.ours()]
kinds = ["futex", "pipe"]
times = {(kind, s.name): [] for kind in kinds for s in subjects}
for kind in kinds:
    measure(kind)
for _ in range(args.rounds):
    for subject in subjects:
        with subject:
            for kind in kinds:
                times[kind, subject.name].append(measure(kind))

print(f"{args.rounds} rounds of {args.trips} round trips between CPU 0 and 1; ns a wakeup")
rows = []
verdicts = []
for kind in kinds:
    base = statistics.median(times[kind, "base"])
    noise = median_spread(times[kind, "base"])
    for subject in subjects:
        values = times[kind, subject.name]
        median = statistics.median(values)
        share = (median - base) / base
        rows.append(
            [
                f"{kind} {subject.name}",
                f"{median:.0f}",
                f"{min(values):.0f}",
                f"{max(values):.0f}",
                f"{share:+.1%}",
            ]
        )
        if subject.name == "stackd":
            reached = share <= 0.05 or median - base <= noise
            verdicts.append(
                f"{kind}: stackd {share:+.1%}, base against base {noise:.0f} ns "
                f"({noise / base:.1%}), goal 5 % or the spread: {verdict(reached)}"
            )
table(["", "median", "least", "most", "of base"], rows)
print("\n".join(verdicts))
