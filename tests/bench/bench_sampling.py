#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the estimates for sampled waits to the exact counters beside them: `perf bench sched pipe`,
a seeded mixture of waits by its own log, pgbench, and nginx under load, in windows of one second.
An error is in standard deviations as the rule gives them, at most sqrt(limit * time): none may be over
4.5 of them, their mean over 4 / sqrt(n), nor their squares over 1 by more than 4 * sqrt(2 / n).
Then a million waits over the limit, each of which must have its stacks, and a million waits of 50
us, of which the function's time must be right within 2 %. Servers run on the loopback only, as
nobody and postgres."""

import math
import shutil
import time

from bench import arguments, table, verdict

args = arguments(__doc__, windows=20, limit=500, waits=1000000)

import harness  # noqa: E402
import loads  # noqa: E402

LIMIT_NS = args.limit * 1000


def spread_of(errors):
    """Returns (mean, spread, worst, whether they are as the rule promises)."""
    n = len(errors)
    mean = sum(errors) / n
    square = sum(e * e for e in errors) / n
    worst = max(abs(e) for e in errors)
    good = (worst < 4.5 and abs(mean) < 4 / math.sqrt(n) and
            square < 1 + 4 * math.sqrt(2 / n))
    return mean, math.sqrt(square), worst, good


def line(name, errors, exact_ns, waits):
    if len(errors) < 2:
        return [name, len(errors), "-", "-", "-", "-", "-", "no waits"]
    mean, spread, worst, good = spread_of(errors)
    return [name, len(errors), f"{waits:,}", f"{exact_ns / 1e9:.2f} s", f"{mean:+.2f}",
            f"{spread:.2f}", f"{worst:.2f}", verdict(good)]


def windows_of(daemon, since, *who):
    """Returns the totals of each window since then, of the threads that the options select."""
    daemon.cut()
    replies = daemon.ctl_json("snapshot", "offcpu", "--since", f"@{since:.3f}", "--each", "window",
                              "-n", "1", *who)
    return [reply["totals"] for reply in replies if reply.get("sample_below_ns")]


def measure(daemon, name, load, *who):
    """Runs a load for some windows; returns a line of the table."""
    with load():
        time.sleep(2)
        since = time.time()
        time.sleep(args.windows + 1)
        totals = windows_of(daemon, since, *who)
    totals = [t for t in totals if t.get("short_ns", 0) > 20 * LIMIT_NS]
    errors = [(t.get("sampled_ns", 0) - t["short_ns"]) / math.sqrt(LIMIT_NS * t["short_ns"])
              for t in totals]
    return line(name, errors, sum(t["short_ns"] for t in totals),
                sum(t["short_waits"] for t in totals))


def mixture(daemon):
    """Each run of a seeded mixture, by its own log."""
    errors, exact, waits = [], 0, 0
    for seed in range(args.windows):
        program = harness.Program("prog_mixture", seed, 4000, seed % 2, args.limit)
        program.ready().go().done()
        program.end()
        snapshot = daemon.snapshot("--window", "1h", "-n", "0", "-p", program.pid)
        for name in ("wait_5us", "wait_20us", "wait_50us", "wait_100us"):
            truth = program.value(name)
            rows = [row for row in harness.rows_with(snapshot, name)]
            sampled = sum(row.get("sampled_ns") or 0 for row in rows)
            variance = truth["short_ns"] * LIMIT_NS - truth["squares_us2"] * 1e6
            errors.append((sampled - truth["short_ns"]) / math.sqrt(variance))
            exact += truth["short_ns"]
            waits += truth["count"]
    return line("mixture, by its log", errors, exact, waits)


def wait_rows(daemon, name):
    """Runs the waits of one function; returns what it says of itself, and its rows."""
    program = harness.Program("prog_mixture", 1, args.waits, 1, args.limit, name)
    program.ready().go().done()
    truth = program.value(name)
    program.end()
    snapshot = daemon.snapshot("--window", "1h", "-n", "0", "-p", program.pid)
    lost = harness.lost_sum(snapshot)
    return truth, [row for row in harness.rows_with(snapshot, name)], lost


def long_waits():
    """All waits are over the limit. What has no name, or no kernel frames, is missing."""
    daemon = harness.Daemon("probe.offcpu.min_wait=1us", "probe.offcpu.sample_below=2us")
    truth, rows, lost = wait_rows(daemon, "wait_5us")
    daemon.stop()
    whole = [row for row in rows if (row.get("kernel") or {}).get("frames")]
    count = sum(row["count"] - (row.get("sampled") or 0) for row in whole)
    return [["waits of 5 us, over the limit of 2 us", f"{truth['count']:,}",
             f"{count:,} with stacks", f"{lost} lost", verdict(count >= truth["count"])]]


def short_waits(daemon):
    truth, rows, lost = wait_rows(daemon, "wait_50us")
    time_ns = harness.row_sum(rows)
    off = time_ns / truth["ns"] - 1
    return [[f"waits of 50 us, under the limit of {args.limit} us", f"{truth['count']:,}",
             f"{time_ns / 1e9:.3f} s of {truth['ns'] / 1e9:.3f} s", f"{off:+.2%}",
             verdict(abs(off) < 0.02 and not lost)]]


daemon = harness.Daemon(f"probe.offcpu.sample_below={args.limit}us", "window.length=1s",
                        "window.min_length=100ms", "probe.iolat.enabled=no")
rows = []
if shutil.which("perf"):
    rows.append(measure(daemon, "perf bench sched pipe", loads.pipe, "--comm", "sched-pipe"))
rows.append(mixture(daemon))
if loads.has_pgbench():
    rows.append(measure(daemon, "pgbench, server", loads.pgbench, "--comm", "postgres"))
if loads.has_nginx():
    rows.append(measure(daemon, "nginx", loads.nginx, "--comm", "nginx"))
print(f"estimates of waits under {args.limit} us, errors in standard deviations by the rule:")
table(["load", "windows", "short waits", "their time", "mean", "spread", "worst", ""], rows)
print()
table(["function", "waits", "found", "", ""], [*long_waits(), *short_waits(daemon)])
daemon.stop()
