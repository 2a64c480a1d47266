#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that [probe.NAME] enabled switches this probe and no other: with each of them alone, its windows
are there, and the others are off and have none."""

from harness import *

PROBES = ("offcpu", "oncpu", "offwake", "iolat")


def states(daemon):
    return {p["name"]: p["state"] for p in daemon.status()["probes"] if p["name"] in PROBES}


def has_windows(daemon, probe):
    try:
        return bool(daemon.call("io.stackd.Windows", probe=probe)["windows"])
    except VarlinkError:
        return False


def check_alone(probe):
    settings = [f"probe.{name}.enabled={'yes' if name == probe else 'no'}" for name in PROBES]
    daemon = Daemon("window.length=500ms", *settings)
    wanted = {name: "on" if name == probe else "off" for name in PROBES}
    check(states(daemon) == wanted, f"{probe} alone: {states(daemon)}")
    wait_until(lambda: has_windows(daemon, probe), f"windows of {probe}")
    others = [name for name in PROBES if name != probe and has_windows(daemon, name)]
    check(not others, f"{probe} alone: no other has windows: {others}")
    check(daemon.stop() == 0, f"{probe} alone: the daemon stops")


need_live()
for name in PROBES:
    check_alone(name)
finish()
