#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures a rotation: the time from the cut until the window is drained, with 10,000 keys in each
window. Meanwhile a second client calls the daemon again and again: the longest call shows how long
the loop was held."""

import threading
import time

from bench import arguments, percentile, table, verdict

args = arguments(__doc__, cuts=60, keys=10000)

import harness  # noqa: E402


class Prober(threading.Thread):
    """Times Varlink calls that need nothing but the loop thread."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.connection = harness.Connection(path)
        self.times, self.end = [], False

    def run(self):
        while not self.end:
            start = time.monotonic()
            self.connection.call("org.varlink.service.GetInfo")
            self.times.append((time.monotonic() - start) * 1000)
            time.sleep(0.002)


daemon = harness.Daemon("window.length=2s", "probe.offcpu.min_wait=1us")
program = harness.Program("prog_manystacks", args.keys, 1000000, 20).ready().go()
prober = Prober(daemon.socket)
prober.start()
cuts, seen = [], 0
while len(cuts) < args.cuts:
    time.sleep(0.2)
    windows = daemon.call("io.stackd.Windows", probe="offcpu")["windows"]
    if windows and windows[-1]["seq"] != seen:
        seen = windows[-1]["seq"]
        cuts.append((daemon.status()["cut_ns"] / 1e6, windows[-1]["rows"]))
status = daemon.status()
prober.end = True
prober.join()
program.kill()

# Other work on the host adds keys too, because every wait of 1 us counts: such cuts are left out.
full = [ms for ms, rows in cuts if args.keys <= rows <= args.keys * 3 // 2]
print(f"{len(cuts)} cuts, {len(full)} of them with {args.keys} to {args.keys * 3 // 2} keys; ms")
if not full:
    raise SystemExit(f"no window had {args.keys} keys; rows: {[rows for _, rows in cuts]}")
p99 = percentile(full, 0.99)


def row(name, values, goal):
    shown = percentile(values, 0.5), percentile(values, 0.99), max(values)
    return [name, *(f"{value:.2f}" for value in shown), goal]


table(
    ["", "median", "p99", "most", "goal"],
    [
        row("cut to drained", full, "p99 50"),
        row("a call to the loop", prober.times, "held 5"),
    ],
)
print(f"longest cut since the start: {status['cut_max_ns'] / 1e6:.1f} ms")
print(f"lost: {harness.lost_text(status)}")
print(f"rotation p99 {p99:.1f} ms, goal 50: {verdict(p99 <= 50)}")
print("(a call's time holds the client's own and the host's run-queue delay)")
daemon.stop()
