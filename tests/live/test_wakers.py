#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that waits by futex, pipe, signal and timer have the waker that ended them, and the path of
wakeups before it."""

import json
import re

from harness import *

ROUNDS = 200

need_live()
daemon = Daemon("window.length=1s", "probe.offwake.enabled=yes")
program = Program("prog_wakers", ROUNDS).ready().go().done()
program.end()
daemon.cut("offwake")
snapshot = json.loads(
    daemon.ctl("snapshot", "offwake", "--json", "--window", "30s", "-p", program.pid).out
)
rows = snapshot["rows"]


def rows_of(comm, function):
    """Returns the thread's rows at that function. At its start and end a thread may wait elsewhere,
    for memory or for its end."""
    return [row for row in rows if row["comm"] == comm and function in frame_names(row)]


def context_counts(rows):
    counts = {}
    for row in rows:
        context = row["waker"]["path"][0]["context"]
        counts[context] = counts.get(context, 0) + row["count"]
    return counts


for comm, function, wakes in (
    ("by_futex", "wait_for_futex", "wake_by_futex"),
    ("by_pipe", "wait_for_pipe", "wake_by_pipe"),
    ("by_signal", "wait_for_signal", "wake_by_signal"),
):
    found = rows_of(comm, function)
    check(row_sum(found, "count") >= ROUNDS * 0.9, f"{comm}: {row_sum(found, 'count')} waits")
    check(set(context_counts(found)) == {"task"}, f"{comm}: woken by {context_counts(found)}")
    for row in found:
        link = row["waker"]["path"][0]
        check(
            link["comm"] == "wakes" and link["pid"] == program.pid, f"{comm}: the waker is {link}"
        )
        check(wakes in frame_names(row["waker"]), f"{comm}: {frame_names(row['waker'])}")
        leaf = frame_names(row["waker"], "kernel")[0]
        check(leaf == "try_to_wake_up", f"{comm}: the waker's kernel stack begins at {leaf}")

found = rows_of("by_timer", "wait_for_timer")
check(row_sum(found, "count") >= ROUNDS * 0.99, f"by_timer: {row_sum(found, 'count')} waits")
counts = context_counts(found)
# Some hosts hide init's threads from programs, and so the interrupts that arrive while they run.
unknown = counts.pop("unknown", 0)
check(set(counts) == {"timer"}, f"by_timer: woken by {counts}")
check(unknown <= ROUNDS * 0.05, f"by_timer: {unknown} wakers not seen")
for row in found:
    if row["waker"]["path"][0]["context"] == "unknown":
        continue
    check("user" not in row["waker"], "a timer has no user stack")
    check(row["waker"]["path"][0].keys() == {"context"},
          f"a timer has no name: {row['waker']['path']}")
    names = frame_names(row["waker"], "kernel")
    check(any("hrtimer" in name for name in names), f"by_timer: {names}")
    check(
        names and names[-1].startswith(("asm_", "sysvec_", "__irq", "common_")),
        f"by_timer: {row['count']} by {row['waker']}",
    )

found = rows_of("link4", "wait_for_pipe")
paths = {}
for row in found:
    path = tuple(link.get("comm", link["context"]) for link in row["waker"]["path"])
    paths[path] = paths.get(path, 0) + row["count"]
whole = paths.get(("link3", "link2", "link1", "timer"), 0)
check(sum(paths.values()) >= ROUNDS * 0.9, f"link4: {sum(paths.values())} waits")
check(whole >= sum(paths.values()) * 0.9, f"the path to link4: {paths}")

ours = ("--window", "30s", "--idle", "-n", "0", "-p", program.pid, "--comm", "link4")
text = " ".join(daemon.ctl("snapshot", "offwake", "--chain", *ours).out.split())
path = r"link4 waits <- link3 \([^)]*\) woke it <- link2 \([^)]*\) <- link1 \([^)]*\) <- timer"
check(re.search(path, text), f"--chain prints the path: {text[:600]}")
text = daemon.ctl("snapshot", "offwake", *ours).out
order = [text.find(word) for word in ("waker: link3", "wake_by_pipe", "--  ", "wait_for_pipe")]
check(order == sorted(order) and order[0] >= 0, f"the waker stands above the target: {order}")
line = daemon.ctl("snapshot", "offwake", "--folded", "-d", *ours).out.splitlines()[0]
check(
    re.match(
        r"link4;.*;wait_for_pipe;-;.*;--;try_to_wake_up;.*;-;wake_by_pipe;link_main;.*;link3 \d+$",
        line,
    ),
    f"the folded line: {line}",
)
check_nothing_lost(snapshot, "snapshot")
finish()
