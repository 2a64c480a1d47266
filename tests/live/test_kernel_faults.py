#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows what happens when resources are missing: the kernel refuses a map, a program or a link
half-way, or descriptors or memory run out. The daemon ends at once with a reason, or turns the
probe off with one, or goes on; what it had made until then is gone, and nothing was pinned."""

import errno
import resource

import fault
from harness import *

STARTS = 5 if EVENTS_ONLY else 32  # each makes another one of the hundreds of calls of a start fail
SHARED_MAPS = 6  # the unwind tables, which all probes share, also those that are started later


def bpf_fds(pid):
    """Returns the maps, programs and links that the daemon holds."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return [name for name in found if name.startswith("anon_inode:bpf")]


def check_refused_start(label, daemon):
    lines = [line for line in daemon.log().splitlines() if "error" in line]
    code = daemon.process.returncode
    check(code in (1, 77) and len(lines) == 1, f"{label}: exit {code}, says {lines}")


def check_started(label, daemon):
    status = daemon.status()
    off = [probe for probe in status["probes"] if probe["state"] == "failed"]
    for probe in off:
        text = f"{label}: {probe['name']} is off: {probe.get('reason')}"
        check(probe.get("reason") and status["problems"], text)
    if all(probe["state"] != "on" for probe in status["probes"]):
        left = bpf_fds(daemon.process.pid)
        is_clean = left == ["anon_inode:bpf-map"] * len(left) and len(left) <= SHARED_MAPS
        check(is_clean, f"{label}: nothing of a probe's own is left in the kernel: {left}")
    check(daemon.stop() == 0, f"{label}: {len(off)} probes off, ends with 0")


def start_with_fault(daemon, faults, kind, error, nth):
    """Starts the daemon with the nth call of a kind failing; false if the start made fewer
    calls."""
    label = f"call {nth} fails with {errno.errorcode[error]}"
    faults.reset()
    faults.arm(kind, error, nth)
    daemon.process = fault.start(faults, daemon.argv, daemon.log_path)

    def settled():
        return daemon.process.poll() is not None or daemon.ctl("status").code == 0

    check_until(settled, f"{label}: an end or an answer", daemon.log)
    hits = faults.hits()
    if daemon.process.poll() is not None:
        check_refused_start(label, daemon)
    else:
        check_started(label, daemon)
    stop_process(daemon.process)
    check(faults.pins() == 0, f"{label}: nothing was pinned")
    return hits > 0


def count_calls(daemon, faults):
    """Returns how many calls a start makes."""
    faults.reset()
    daemon.process = fault.start(faults, daemon.argv, daemon.log_path)
    wait_until(lambda: daemon.ctl("status").code == 0, "an answer")
    calls = faults.calls(fault.BPF)
    check(daemon.stop() == 0, f"{calls} calls are made at a start")
    return calls


def check_starts(daemon, faults):
    """Makes calls from the first to the last of a start fail, each in a start of its own."""
    calls = count_calls(daemon, faults)
    chosen = range(1, calls + 1, max(1, calls // STARTS))
    hits = sum(start_with_fault(daemon, faults, fault.BPF, errno.ENOMEM, nth) for nth in chosen)
    check(hits > 0 and len(chosen) > 16, f"{hits} of {len(chosen)} calls failed")
    estimate_least(hits, 0.9 * len(chosen), f"these are most: {hits} of {len(chosen)}")
    for other in chosen[::4]:
        start_with_fault(daemon, faults, fault.BPF, errno.EPERM, other)
    for other in (1, 10, 1000):
        start_with_fault(daemon, faults, fault.BPF_MAP, errno.ENOMEM, other)


def check_descriptors(daemon):
    """Opens as many connections as there are descriptors, and more."""
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    limit = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 4
    with Connection(daemon.socket) as known:
        known.call("io.stackd.Status")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        waiting = [Connection(daemon.socket) for _ in range(20)]
        spent, started = cpu_seconds(pid), time.monotonic()
        while time.monotonic() - started < 3:
            known.call("io.stackd.Probes")
            subject_sleep(0.1)
        spent = cpu_seconds(pid) - spent
        estimate_most(spent, 1, f"20 connections without descriptors cost {spent:.2f} s of 3 s")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        for connection in waiting:
            connection.call("io.stackd.Probes")
            connection.socket.close()
    hits = {limit["name"]: limit["hits"] for limit in daemon.status()["limits"]}
    check(hits["descriptors"] > 0, f"it is counted: {hits['descriptors']}")


def check_drain(daemon, faults):
    """Makes the maps unreadable for some cuts."""
    faults.arm_from_now(fault.BPF_MAP, errno.ENOMEM)
    wait_until(lambda: faults.hits() > 0, "reads to be refused")
    check(daemon.ctl("status").code == 0, "maps that cannot be read: it answers")
    faults.disarm()
    daemon.cut()
    check(daemon.snapshot()["rows"], "it records again")


def check_memory(daemon, faults):
    """Makes one allocation at a time fail, in any thread, while clients ask questions."""
    refused = 0
    for nth in range(1, 20 if EVENTS_ONLY else 120):
        faults.arm(fault.MEMORY, errno.ENOMEM, faults.calls(fault.MEMORY) + nth)
        result = daemon.ctl("snapshot", "offcpu", "--window", "5s")
        refused += result.code != 0
        if not check(daemon.process.poll() is None, f"allocation {nth}: exit {result.code}"):
            return
    faults.disarm()
    check(daemon.ctl("status").code == 0, f"{refused} questions had no answer, the next one has")


need_live()
if not os.path.exists(fault.FAULT):
    skip(f"needs {fault.FAULT}")
daemon = Daemon(start=False)
faults = fault.Faults(daemon.dir)
check_starts(daemon, faults)
faults.reset()
daemon.argv += ["-o", "window.length=1s"]
daemon.start(env=faults.environment())
daemon.cut()
check_descriptors(daemon)
check_drain(daemon, faults)
check_memory(daemon, faults)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}: {daemon.log()[-300:]}")
finish()
