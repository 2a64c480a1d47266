# SPDX-License-Identifier: GPL-2.0-or-later
"""Storms of waits, and a daemon whose budget a reload changes, for tests of the budget."""

import math
import signal

from harness import *


class Storms(Program):
    """Threads that nap for nap_us again and again, as long as a storm lasts."""

    def __init__(self, threads, nap_us):
        super().__init__("prog_naps", threads, nap_us)
        self.ready()

    def begin(self, seconds):
        self.lines.clear()
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def switches(self):
        """Waits for the end of the storm; returns how often each thread was switched."""
        self.done()
        return {values["tid"]: values["switches"] for values in self.values("napped")}


def daemon_with_file(text, *overrides):
    """Starts a daemon whose budget is in its file, so that a reload changes it."""
    # Windows of the whole host stay in memory: the store joins short ones, and answers are in whole windows.
    daemon = Daemon("window.max_memory=256M", *overrides, start=False)
    at = daemon.argv.index("budget.cpu=off")
    del daemon.argv[at - 1 : at + 1]
    write_budget(daemon, text)
    daemon.start()
    return daemon


def write_budget(daemon, text, burst=1):
    with open(daemon.config, "w", encoding="utf-8") as f:
        f.write(f"[budget]\ncpu = {text}\nburst = {burst}\n")


def set_budget(daemon, text, limit, burst=1):
    """Reloads with this budget, and waits until it is that share of a CPU; None: no limit."""

    def is_set():
        now = daemon.status().get("budget_ns")
        if now is None or limit is None:
            return now == limit and budget_of(daemon) == {}
        return abs(now / NS_PER_S - limit) < 0.01

    write_budget(daemon, text, burst)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(is_set, "the reload")


def budget_of(daemon):
    """Returns what status says of the budget; nothing before the first measurement."""
    return daemon.status().get("budget") or {}


def check_sums(daemon, snapshot, switches, span):
    """No sum has lost an event, and all of each thread's time is there."""
    totals = snapshot["totals"]
    off_cpu = totals["blocked_ns"] + totals["runnable_ns"]
    check_nothing_lost(snapshot, "storm")
    check_sum(row_sum(snapshot["rows"]), off_cpu, 0.0001, "the rows add up to the exact total",
               slack=1_000_000)
    length = span["until_ns"] - span["since_ns"]
    for tid, count in switches.items():
        mine = daemon.call("io.stackd.Snapshot", probe="offcpu", top=1, filter={"tids": [tid]},
                           **span)["totals"]
        parts = mine["on_cpu_ns"] + mine["blocked_ns"] + mine["runnable_ns"]
        check_near(parts, length, 0.001, f"thread {tid}: all of its time is there")
        # The waits for the storm and after it are in the range, too.
        check(0 <= mine["waits"] - count <= 8, f"thread {tid}: {mine['waits']} waits of {count}")


def check_estimate(snapshot, least=0.3):
    """The naps' row stands for nearly all of the threads' sleep; at least this part of the naps was
    sampled."""
    below = snapshot["sample_below_ns"]
    naps = [row for row in rows_with(snapshot, "nap")]
    exact = snapshot["totals"]["blocked_ns"] + snapshot["totals"]["runnable_ns"]
    sampled = sum(row.get("sampled_ns") or 0 for row in naps)
    sigma = math.sqrt(max(sampled, 1) * below)
    check(sampled > least * row_sum(naps), f"most of the naps were sampled: {sampled} ns")
    # The wait between storms has a row of its own.
    other = row_sum([row for row in rows_with(snapshot, "pthread_barrier_wait")])
    check(abs(row_sum(naps) + other - exact) < 5 * sigma + 0.02 * exact,
          f"naps: {row_sum(naps)} ns, others {other}, of {exact}; sigma {sigma:.0f}")
