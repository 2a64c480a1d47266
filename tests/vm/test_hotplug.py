#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU that goes takes its samples with it and nothing else; one that comes is sampled again."""

from harness import *

# An emulator keeps no rate: more and less is all that is asked.
need_live()
ONLINE = "/sys/devices/system/cpu/cpu1/online"
if not os.path.exists(ONLINE):
    skip("no second CPU that could go")


def set_online(is_online):
    with open(ONLINE, "w", encoding="ascii") as f:
        f.write("1" if is_online else "0")


def rate(session):
    """Samples a second of the session, of windows that began after now."""
    start = daemon.cut()
    time.sleep(patience(2))
    now = daemon.cut()
    reply = daemon.call("io.stackd.Snapshot", session=session, since_ns=start, until_ns=now, idle=True)
    check_nothing_lost(reply, f"the samples of {session}")
    return reply["totals"]["samples"] * NS_PER_S / used_ns(reply)


daemon = Daemon("window.length=500ms")
daemon.cut()
atexit.register(set_online, True)
session = daemon.ctl("start", "oncpu", "-F", "49", "--idle").out.strip()
both = rate(session)
check(both > 0, f"two CPUs: {both:.0f} samples a second")
set_online(False)
one = rate(session)
check(0 < one < both, f"one has gone: {one:.0f}")
probes = {p["name"]: p for p in daemon.status()["probes"]}
check(probes["oncpu"]["state"] == "on", f"the probe goes on: {probes['oncpu']}")
result = daemon.ctl("start", "oncpu", "-C", "1")
check(result.code == 1 and "there is no CPU 1; online are 0" in result.err, f"{result}")
set_online(True)
again = rate(session)
check(again > one, f"and has come back: {again:.0f}")
check(daemon.ctl("stop", session).code == 0, "the session is stopped")
check(daemon.process.poll() is None, "the daemon is there")
finish()
