# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the innermost functions of samples with those of perf, on a program that switches all
the time: what the kernel runs below __schedule is shown as sampled, and stackd's own programs are
named and apart from those of others.
"""

import atexit
import collections
import contextlib
import math
import os
import re
import signal
import subprocess
import threading

import harness as h

h.need_live()
perf = h.need_tool("perf")

# The leaf of samples outside the kernel: functions of libc have several names there.
USER = "(user)"
SECONDS = 6
HZ = 997

# Each switch takes stacks, so that the daemon's programs can be seen. Both sides of the pipe have one
# CPU, or what a wakeup does would depend on which CPUs other programs leave idle, and the two samplers,
# which do not begin and end at the same moment, would see different shares.
daemon = h.Daemon("window.length=1s", "probe.offcpu.min_wait=0")
cpu = min(os.sched_getaffinity(0))
load = h.spawn(["taskset", "-c", str(cpu), perf, "bench", "sched", "pipe", "-l", "1000000000"],
               stdout=subprocess.DEVNULL)
h.wait_until(lambda: h.children_of(load.pid), "the other side of the pipe")
pids = [load.pid, *h.children_of(load.pid)]


@atexit.register
def end_load():
    """Ends both sides: the second one would outlive the first."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def perf_leaves():
    """Returns how often perf saw each innermost function, and the samples with a BPF program. Its
    clocks are those of the CPUs: a clock of a thread is started at each switch, and one that is due
    by then ends as soon as interrupts are allowed, so that finish_task_switch has too many."""
    data = os.path.join(h.make_temp_dir(), "perf.data")
    h.run([perf, "record", "-q", "-F", str(HZ), "-e", "cpu-clock", "-g", "-o", data, "-a", "--",
           "sleep", str(SECONDS)])
    stacks = h.run([perf, "script", "-i", data, "-F", "ip,sym",
                    "--pid", ",".join(map(str, pids))]).out.strip().split("\n\n")
    frames = [re.findall(r"^\s*([0-9a-f]+) (\S+)", stack, re.M) for stack in stacks]
    frames = [stack for stack in frames if stack]
    # Addresses of the kernel have all 16 digits.
    leaves = collections.Counter(stack[0][1] if len(stack[0][0]) == 16 else USER for stack in frames)
    return leaves, len(frames), sum(
        any(name.startswith("bpf_prog_") for _, name in stack) for stack in frames)


theirs = []
peer = threading.Thread(target=lambda: theirs.extend(perf_leaves()))
peer.start()
reply = daemon.ctl_json("record", "oncpu", "-F", HZ, "--duration", f"{SECONDS}s",
                        "-p", ",".join(map(str, pids)))
peer.join()
by_perf, n_perf, bpf_perf = theirs

ours, total, bpf, own = collections.Counter(), 0, 0, 0
for row in reply["rows"]:
    kernel = row.get("kernel", {}).get("frames", [])
    ours[kernel[0].get("name", "?") if kernel else USER] += row["count"]
    total += row["count"]
    names = [frame.get("name") or "" for frame in kernel]
    bpf += row["count"] if any(name.startswith("bpf_prog_") for name in names) else 0
    own += row["count"] if any(f.get("module") == "bpf:stackd" for f in kernel) else 0

print(f"{total} samples, {n_perf} of perf; with a BPF program {bpf}, {bpf_perf}; of stackd {own}")
for name, count in by_perf.most_common(8):
    print(f"  {name:40} {ours[name] / total:6.1%} {count / n_perf:6.1%}")
h.check(min(total, n_perf) > 300, "both have samples")
# Two points, and three standard deviations of both shares: on a busy host there are fewer samples.
slack = 0.02 + 3 * math.sqrt(0.25 / total + 0.25 / n_perf)
large = {name for c, n in ((ours, total), (by_perf, n_perf)) for name in c if c[name] > n / 25}
# Programs of other tracers may be loaded during the test, and are named a few seconds later.
large = {name for name in large if not name.startswith(("?", "[unknown]", "bpf_prog_"))}
h.check(large, f"functions with more than 4 % of the samples: {', '.join(sorted(large))}")
for name in sorted(large):
    h.check_near(ours[name] / total, by_perf[name] / n_perf, 0, f"share of {name}", slack=slack)
h.check_near(bpf / total, bpf_perf / n_perf, 0, "share of samples with a BPF program", slack=slack)
h.check(own > total / 100, f"{own} samples of {total} have stackd's own programs")
frames = [frame for row in reply["rows"] for frame in row.get("kernel", {}).get("frames", [])]
h.check(all(frame.get("name") for frame in frames), "each frame of the kernel has a name")

by_module = daemon.ctl_json("snapshot", "oncpu", "--window", f"{2 * SECONDS}s", "--by", "module")
keys = [row.get("key") for row in by_module["rows"]]
h.check("bpf:stackd" in keys and "kernel" in keys, f"grouped by module: {keys}")
end_load()
daemon.stop()
h.finish()
