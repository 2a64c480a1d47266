#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that threads which a control group has frozen are said to be frozen and are not idle, also
where they were in a wait for work; the same threads are idle before and afterwards. Control groups
of both versions are looked at, where the host has them."""

import contextlib

from harness import *

IDLE = ("import select, sys\nprint('ready', flush=True)\n"
        "while True: select.epoll().poll(0.05)\n")
FROZEN = "its cgroup or the system to be thawed"


class Group:
    """A control group that can be frozen. None of its processes runs when it is removed."""

    def __init__(self, root, name, freeze, thaw):
        self.path = os.path.join(root, f"stackd-test-{os.getpid()}")
        self.name, self.texts = name, {True: freeze, False: thaw}
        os.mkdir(self.path)
        atexit.register(self.remove)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
            f.write(str(text))

    def freeze(self, is_frozen):
        self.write(self.name, self.texts[is_frozen])

    def remove(self):
        with contextlib.suppress(OSError):
            self.freeze(False)
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


def groups():
    """Returns a group of each version of control groups, with the state of its frozen threads."""
    found = []
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(os.path.join(root, "cgroup.procs")):
            found.append((Group(root, "cgroup.freeze", "1", "0"), "version 2", "S"))
    if os.path.exists("/sys/fs/cgroup/freezer/cgroup.procs"):
        group = Group("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED")
        found.append((group, "version 1", "D"))
    return found


def open_rows(daemon, process, *options):
    daemon.cut()
    return daemon.ctl_json("stuck", "-p", process.pid, *options)["rows"]


def check_group(daemon, group, label, state):
    process = subprocess.Popen([sys.executable, "-c", IDLE], stdout=subprocess.PIPE)
    atexit.register(stop_process, process)
    process.stdout.readline()
    group.write("cgroup.procs", process.pid)

    def waits():
        return [r["idle"] for r in open_rows(daemon, process, "--idle") if r["state"] == "S"]

    wait_until(lambda: waits() == [True], f"{label}: an idle wait")
    group.freeze(True)

    def frozen():
        rows = open_rows(daemon, process, "--idle")
        is_old = rows and max(r["max_ns"] for r in rows) > 1_000_000_000
        return rows if is_old and rows[0]["kernel"]["frames"] else None

    rows = wait_until(frozen, f"{label}: a wait of a second")
    states = [r["state"] for r in rows]
    check(states == [state], f"{label}: {states} is {state}")
    check(not any(r["idle"] for r in rows), f"{label}: frozen threads are not idle")
    text = daemon.ctl("stuck", "-p", process.pid).out
    check(FROZEN in text, f"{label}: it says what for: {text}")
    check(len(daemon.ctl_json("stuck", "-p", process.pid, "--state", state)["rows"]) == 1,
          f"{label}: --state {state} finds it")
    group.freeze(False)
    wait_until(lambda: waits() == [True], f"{label}: an idle wait after it was thawed")
    stop_process(process)


need_live()
tested = groups()
if not tested:
    skip("no control group can be frozen here")
daemon = Daemon("window.length=1s")
for group, label, state in tested:
    check_group(daemon, group, label, state)
check(daemon.stop() == 0, "the daemon stops")
finish()
