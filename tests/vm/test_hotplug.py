#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""When a CPU goes offline, only its samples stop; when it is online again, it is sampled again."""

from harness import *

# An emulator does not keep the sampling rate, so the test asks only whether a CPU has samples.
need_live()
ONLINE = "/sys/devices/system/cpu/cpu1/online"
if not os.path.exists(ONLINE):
    skip("no second CPU that could go")


def set_online(is_online):
    with open(ONLINE, "w", encoding="ascii") as f:
        f.write("1" if is_online else "0")


def samples(cpu, since):
    """Returns the samples of the session of a CPU in windows that ended after since, None without any."""
    try:
        reply = daemon.call("io.stackd.Snapshot", session=sessions[cpu], since_ns=since, idle=True)
    except VarlinkError as e:
        if e.name != "io.stackd.NoData":
            raise
        return None
    check_nothing_lost(reply, f"the samples of CPU {cpu}")
    return reply["totals"]["samples"]


def check_samples(text, has_second):
    """Checks that the first CPU has samples, and the second one if it is online, too."""
    start = daemon.cut()
    wait_until(lambda: (samples(0, start) or 0) > 100, "samples of the first CPU")
    if has_second:
        wait_until(lambda: samples(1, start), "samples of the second CPU")
        check(True, f"{text}: samples of both CPUs")
    else:
        # By now, the window in which the second CPU went offline has ended.
        start = daemon.cut()
        wait_until(lambda: samples(0, start), "samples of the first CPU")
        wait_until(lambda: samples(1, start) is not None, "a window of the second CPU")
        check(samples(1, start) == 0, f"{text}: samples of the first CPU only")
    probes = {p["name"]: p for p in daemon.status()["probes"]}
    check(probes["oncpu"]["state"] == "on", f"{text}: the probe is on: {probes['oncpu']['state']}")


daemon = Daemon("window.length=500ms")
daemon.cut()
atexit.register(set_online, True)
sessions = {
    cpu: daemon.ctl("start", "oncpu", "-F", "49", "--idle", "-C", cpu).out.strip() for cpu in (0, 1)
}
check_samples("two CPUs", True)
for turn in ("once", "twice"):
    set_online(False)
    check_samples(f"the second has gone {turn}", False)
    result = daemon.ctl("start", "oncpu", "-C", "1")
    check(result.code == 1 and "there is no CPU 1; online are 0" in result.err, f"{result}")
    set_online(True)
    check_samples(f"it has come back {turn}", True)
for session in sessions.values():
    check(daemon.ctl("stop", session).code == 0, f"session {session} is stopped")
check(daemon.process.poll() is None, "the daemon is there")
finish()
