#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what the daemon costs at 10,000 switches a second with the default config: user CPU, RSS
and the memory of its BPF maps."""

import subprocess
import time

from bench import arguments, load, table, verdict

args = arguments(__doc__, seconds=30, sleeps=5000)

import harness  # noqa: E402
import tools  # noqa: E402


def switches():
    with open("/proc/stat", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("ctxt "))


tools.warn_of_others()
daemon = harness.Daemon()
argv = [load(args, "paced"), str(args.sleeps), str(args.seconds + 10)]
paced = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
time.sleep(5)
before, start, count = daemon.status(), time.monotonic(), switches()
with tools.bpf_stats():
    time.sleep(args.seconds)
    after, took, count = daemon.status(), time.monotonic() - start, switches() - count
harness.stop_process(paced)

user = (after["user_ns"] - before["user_ns"]) / took / 1e7
system = (after["system_ns"] - before["system_ns"]) / took / 1e7
rss, maps = after["rss_bytes"] / 2**20, after["map_bytes"] / 2**20
bpf_ns = sum(p["run_ns"] for probe in after["probes"] for p in probe["programs"])
bpf_ns -= sum(p["run_ns"] for probe in before["probes"] for p in probe["programs"])
print(f"{count / took:.0f} switches a second for {took:.0f} s, default config")
table(
    ["", "measured", "goal", ""],
    [
        ["user CPU, % of one", f"{user:.2f}", "1", verdict(user <= 1)],
        ["system CPU, % of one", f"{system:.2f}", "-", ""],
        ["BPF programs, % of one", f"{bpf_ns / took / 1e7:.2f}", "-", ""],
        ["RSS, MiB", f"{rss:.1f}", "64", verdict(rss <= 64)],
        ["BPF maps, MiB", f"{maps:.1f}", "48", verdict(maps <= 48)],
    ],
)
print(f"lost: {harness.lost_text(after)}")
daemon.stop()
