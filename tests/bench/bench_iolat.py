#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of iolat a system call: reads of 4 KiB from the cache, which are followed, and getppid, which
is not, beside bpftrace with a histogram of the same call; and BPF run time a request to the disk
beside biolatency. Goal: at most half of theirs."""

import os
import shutil
import tempfile

from bench import HERE, arguments, load, spread, table, verdict

args = arguments(__doc__, rounds=8, calls=1000000, requests=3000, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no")
FILE = os.path.join(tempfile.mkdtemp(dir="/var/tmp"), "file")


def run(mode, count):
    """ns a call."""
    out = harness.run(["taskset", "-c", str(args.cpu), load(args, "ioloop"), mode, str(count), FILE])
    return float(out.out)


def tracers():
    found = [tools.Nothing(), tools.Stackd("stackd", "probe.iolat.enabled=yes", *OTHERS)]
    if shutil.which("bpftrace") and tools.mount_tracefs():
        found.append(tools.Peer("bpftrace", "bpftrace", os.path.join(HERE, "iolat.bt")))
    return found


def run_times():
    """BPF run time a request, by tracer."""
    found = {}
    peers = [tools.Stackd("stackd", "probe.iolat.enabled=yes", *OTHERS)]
    if shutil.which("biolatency"):
        peers.append(tools.Peer("biolatency", "biolatency"))
        peers.append(tools.Peer("biolatency -Q", "biolatency", "-Q"))
    with tools.bpf_stats():
        for tracer in peers:
            others = tools.programs()
            with tracer:
                before = block_ns(others)
                run("direct", args.requests)
                found[tracer.name] = (block_ns(others) - before) / args.requests
    return found


def block_ns(others):
    programs = {i: p for i, p in tools.programs().items()
                if "request" in p.get("name", "") or "bio" in p.get("name", "")
                or "block" in p.get("name", "")}
    return tools.run_times(others, programs)[1]


tools.warn_of_others()
times = {}
for _ in range(args.rounds):
    for tracer in tracers():
        with tracer:
            for mode in ("cached", "getppid"):
                times.setdefault((mode, tracer.name), []).append(run(mode, args.calls))
print(f"{args.rounds} rounds of {args.calls} calls on CPU {args.cpu}; ns a call, least")
for mode in ("cached", "getppid"):
    base = min(times[mode, "base"])
    names = [n for m, n in times if m == mode]
    table([mode, "least", "added"], [[n, f"{min(times[mode, n]):.0f}",
                                      f"{min(times[mode, n]) - base:.0f}"] for n in names])
    print(f"base against base: {spread(times[mode, 'base']):.0f} ns")
    if "bpftrace" in names:
        ratio = (min(times[mode, "stackd"]) - base) / (min(times[mode, "bpftrace"]) - base)
        print(f"{ratio:.2f} of bpftrace's, goal 0.5: {verdict(ratio <= 0.5)}")
found = run_times()
table(["BPF ns a request", "ns"], [[n, f"{v:.0f}"] for n, v in found.items()])
