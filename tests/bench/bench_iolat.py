#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what iolat adds to a system call: reads of 4 KiB from the cache, getppid and `perf bench
syscall basic`, once as it is recorded by default and once with all layers, beside bpftrace with a
histogram of the read. Also a read in the file system beside fsdist, where programs may be attached
to functions, and the BPF run time of a request to the disk beside biolatency and a script that does
the same job. Goal: at most half of what the peers add.
"""

import os
import shutil
import tempfile

from bench import HERE, arguments, load, spread, table, verdict

args = arguments(__doc__, rounds=8, calls=1000000, requests=3000, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no")
FILE = os.path.join(tempfile.mkdtemp(dir="/var/tmp"), "file")


PERF = "/usr/bin/perf"  # on some machines another program of that name is in the path


def run(mode, count):
    """Returns the ns that a call takes."""
    if mode == "perf bench":
        out = harness.run(["taskset", "-c", str(args.cpu), PERF, "bench", "-f", "simple", "syscall",
                           "basic", "--loop", str(count)])
        return float(out.out) * 1e9 / count
    out = harness.run(["taskset", "-c", str(args.cpu), load(args, "ioloop"), mode, str(count), FILE])
    return float(out.out)


def tracers():
    found = [tools.Nothing(), tools.Stackd("stackd", *OTHERS),
             tools.Stackd("stackd, all layers", "probe.iolat.top=syscall", *OTHERS)]
    if shutil.which("bpftrace") and tools.mount_tracefs():
        found.append(tools.Peer("bpftrace", "bpftrace", os.path.join(HERE, "iolat.bt")))
    return found


def function_tracers():
    """Returns the tracers that record one layer alone, as fsdist does."""
    found = [tools.Nothing(), tools.Stackd("stackd, fs", "probe.iolat.top=fs", *OTHERS)]
    if tools.libbpf_tool("fsdist"):
        found.append(tools.Peer("fsdist -t ext4", tools.libbpf_tool("fsdist"), "-t", "ext4",
                                programs_least=8))
    return found


def has_functions():
    """True if the file system of the file is recorded through its functions."""
    kind = harness.run(["stat", "-f", "-c", "%T", os.path.dirname(FILE)]).out
    with tools.Stackd("stackd, fs", "probe.iolat.top=fs", *OTHERS) as tracer:
        probes = tracer.daemon.call("io.stackd.Probes")["probes"]
    hook = next(p["hook"] for p in probes if p["name"] == "iolat")
    print(f"file system: {kind.strip()}; {hook}")
    return kind.startswith("ext") and "ext4" in hook


def function_times():
    """Returns {tracer: (ns by the clock, ns of BPF)} of a cached read: the least of the rounds."""
    found = {}
    with tools.bpf_stats():
        for _ in range(args.rounds):
            for tracer in function_tracers():
                others = tools.programs()
                with tracer:
                    before = tools.run_times(others, tools.programs())
                    took = run("cached", args.calls)
                    after = tools.run_times(others, tools.programs())
                seen = took, (after[1] - before[1]) / args.calls
                found[tracer.name] = tuple(map(min, found.get(tracer.name, seen), seen))
    return found


def block_tracers():
    """Returns the tracers of requests. Only the script, or biolatency run in both ways, measures
    both of the times that stackd has."""
    found = [tools.Stackd("stackd", *OTHERS)]
    if shutil.which("biolatency"):
        found.append(tools.Peer("biolatency", "biolatency"))
        found.append(tools.Peer("biolatency -D -F", "biolatency", "-D", "-F"))
        found.append(tools.Peer("biolatency -D -F -Q", "biolatency", "-D", "-F", "-Q"))
    if shutil.which("bpftrace") and tools.mount_tracefs():
        found.append(tools.Peer("bpftrace", "bpftrace", os.path.join(HERE, "iolat_block.bt")))
    return found


def block_ns(tracer):
    """Returns the BPF run time of a request, of all programs that the tracer loads."""
    others = tools.programs()
    with tracer:
        before = tools.run_times(others, tools.programs())
        run("direct", args.requests)
        after = tools.run_times(others, tools.programs())
    return (after[1] - before[1]) / args.requests, (after[0] - before[0]) / args.requests


def block_times():
    """Returns {tracer: (ns, runs)} of a request: the least of the rounds."""
    found = {}
    with tools.bpf_stats():
        for _ in range(args.rounds):
            for tracer in block_tracers():
                seen = block_ns(tracer)
                found[tracer.name] = min(found.get(tracer.name, seen), seen)
    both = "biolatency -D -F", "biolatency -D -F -Q"
    if all(name in found for name in both):
        found["both of these"] = tuple(map(sum, zip(*(found[name] for name in both))))
    return found


tools.warn_of_others()
modes = ["cached", "getppid"] + (["perf bench"] if os.access(PERF, os.X_OK) else [])
times = {}
for _ in range(args.rounds):
    for tracer in tracers():
        with tracer:
            for mode in modes:
                times.setdefault((mode, tracer.name), []).append(run(mode, args.calls))
print(f"{args.rounds} rounds of {args.calls} calls on CPU {args.cpu}; ns a call, least")
for mode in modes:
    base = min(times[mode, "base"])
    names = [n for m, n in times if m == mode]
    table([mode, "least", "added"], [[n, f"{min(times[mode, n]):.0f}",
                                      f"{min(times[mode, n]) - base:.0f}"] for n in names])
    print(f"base against base: {spread(times[mode, 'base']):.0f} ns")
    for name in ("stackd", "stackd, all layers"):
        if "bpftrace" in names:
            ratio = (min(times[mode, name]) - base) / (min(times[mode, "bpftrace"]) - base)
            print(f"{name}: {ratio:.2f} of bpftrace's, goal 0.5: {verdict(ratio <= 0.5)}")
if has_functions():
    found = function_times()
    base = found["base"][0]
    table(["a read, fs", "added", "BPF"], [[n, f"{clock - base:.0f}", f"{ns:.0f}"]
                                           for n, (clock, ns) in found.items()])
    if "fsdist -t ext4" in found:
        own, peer = found["stackd, fs"], found["fsdist -t ext4"]
        added, ratio = (own[0] - base) / (peer[0] - base), own[1] / peer[1]
        print(f"stackd: {added:.2f} of fsdist's by the clock, {ratio:.2f} of its BPF run time, "
              f"goal 0.5: {verdict(ratio <= 0.5)}")
found = block_times()
own = found["stackd"][0]
table(["BPF a request", "ns", "runs", "stackd's part of it"],
      [[n, f"{ns:.0f}", f"{runs:.1f}", f"{own / ns:.2f}"] for n, (ns, runs) in found.items()])
for name in ("both of these", "bpftrace"):
    if name in found:
        ratio = own / found[name][0]
        print(f"block: {ratio:.2f} of {name}, goal 0.5: {verdict(ratio <= 0.5)}")
