#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the promise of [budget] cpu over an hour (--minutes) of compile jobs, a database and 200
short-lived processes a second: CPU time of stackd's processes by /proc, and run time of its BPF
programs by the kernel's statistics, which are on meanwhile. Goal: together within the budget, 4 %
of a CPU where there are two, and equal to what `stackctl status` says within 10 %. CPU time of the
answers to this script is in it."""

import contextlib
import os
import time

from bench import arguments, load, table, verdict

args = arguments(__doc__, minutes=60, execs=200, jobs=2, rate=300, budget="1%")

import harness  # noqa: E402
import loads  # noqa: E402
import tools  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
# What the harness changes for tests is as in the default settings here.
DEFAULTS = ("window.max_rows=500", "query.max_memory=16M", f"budget.cpu={args.budget}")


def stat_of(pid):
    """Returns (parent, CPU seconds of the process and of its children that have ended)."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[1]), sum(int(v) for v in fields[11:15]) / TICK


def process_seconds(pid):
    """Returns the CPU time of a process and of its children."""
    total = stat_of(pid)[1]
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            parent, seconds = stat_of(int(name))
            if parent == pid:
                total += seconds
    return total


class Account:
    """CPU times of stackd by the kernel, and by stackd."""

    def __init__(self, daemon):
        programs = tools.programs_of(daemon.process.pid)
        self.at = time.monotonic()
        self.threads = process_seconds(daemon.process.pid)
        self.bpf = tools.run_times({}, programs)[1] / 1e9
        status = daemon.status()
        self.said_threads = (status["user_ns"] + status["system_ns"]) / 1e9
        self.said_bpf = (status.get("bpf_ns") or 0) / 1e9
        self.budget = status.get("budget") or {}
        self.allowed = (status.get("budget_ns") or 0) / 1e9

    def minus(self, other):
        length = self.at - other.at
        return {name: (getattr(self, name) - getattr(other, name)) / length * 100
                for name in ("threads", "bpf", "said_threads", "said_bpf")}


def show(name, shares, account):
    kernel = shares["threads"] + shares["bpf"]
    said = shares["said_threads"] + shares["said_bpf"]
    below = account.budget.get("sample_below_ns")
    return [name, f"{shares['threads']:.2f} %", f"{shares['bpf']:.2f} %", f"{kernel:.2f} %",
            f"{said:.2f} %", f"{said / kernel - 1:+.1%}" if kernel else "-",
            f"{below / 1000:.0f} us" if below else "all"]


def run(daemon):
    first = last = Account(daemon)
    rows = []
    for minute in range(args.minutes):
        time.sleep(60)
        now = Account(daemon)
        rows.append(show(f"minute {minute + 1}", now.minus(last), now))
        print("  ".join(rows[-1]), flush=True)
        last = now
    return first, last


tools.warn_of_others()
with tools.bpf_stats(), contextlib.ExitStack() as stack:
    stack.enter_context(loads.compiling(args.jobs))
    if loads.has_pgbench():
        stack.enter_context(loads.pgbench("-R", args.rate))
    storm = [load(args, "storm"), args.execs, args.minutes * 60 + 60, "/bin/true"]
    stack.enter_context(loads.process(storm))
    daemon = harness.Daemon(*DEFAULTS)
    time.sleep(10)
    first, last = run(daemon)
    shares = last.minus(first)
    print()
    table(["", "threads", "BPF", "together", "status says", "off", "sampled below"],
          [show("all", shares, last)])
    kernel = shares["threads"] + shares["bpf"]
    said = shares["said_threads"] + shares["said_bpf"]
    allowed = last.allowed * 100
    print(f"goal: at most {allowed:.1f} % of a CPU: {verdict(kernel <= allowed)}")
    print(f"goal: status within 10 %: {verdict(abs(said / kernel - 1) <= 0.1)}")
    daemon.stop()
