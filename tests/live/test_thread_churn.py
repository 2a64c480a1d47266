#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows 50,000 threads that come and go: none is left behind in the daemon's tables, none is
lost."""

from harness import *

THREADS = 50_000
SPARE = 200  # threads that other programs on the host may have started meanwhile


def threads_used(daemon):
    limits = {limit["name"]: limit for limit in daemon.status()["limits"]}
    name = next((n for n in limits if "threads" in n), None)
    if not check(name, f"status has a limit of threads: {sorted(limits)}"):
        finish()
    return limits[name]


need_live()
daemon = Daemon("window.length=1s")
daemon.cut()
before = threads_used(daemon)
program = Program("prog_churn", THREADS).ready()
start = daemon.cut()
program.go().done()
end = daemon.cut()
program.end()
totals = daemon.call(
    "io.stackd.Snapshot",
    probe="offcpu",
    since_ns=start,
    until_ns=end,
    filter={"pids": [program.pid]},
    idle=True,
)["totals"]
check(totals["threads"] == THREADS + 1, f"{totals['threads']} threads of {THREADS} and main")
check(totals["processes"] == 1, f"{totals['processes']} process")
check(totals["waits"] >= THREADS, f"{totals['waits']} waits")
check(totals["on_cpu_ns"] >= THREADS * 1000, f"{totals['on_cpu_ns'] // THREADS} ns on CPU each")
daemon.cut()
after = threads_used(daemon)
check(
    after["used"] <= before["used"] + SPARE,
    f"threads held: {before['used']} before, {after['used']} after",
)
check(after["hits"] == 0, f"the limit of {after['value']} was reached {after['hits']} times")
check_nothing_lost(daemon.status(), "status")
finish()
