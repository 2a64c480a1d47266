#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Removing the package keeps its settings and recordings. Purging it leaves nothing."""

from system import *

LEFT = ("/etc/stackd", "/var/lib/stackd", "/run/stackd", "/usr/bin/stackd", "/usr/bin/stackctl")


def left():
    return [path for path in LEFT if os.path.exists(path)]


done = run(["dpkg", "--remove", "stackd"])
check(done.code == 0, f"removed: {done}")
check(state_of() == "inactive" and state_of("stackd.socket") == "inactive", "and stopped")
check("/etc/stackd" in left() and "/usr/bin/stackd" not in left(), f"of it is left: {left()}")
done = run(["dpkg", "--purge", "stackd"])
check(done.code == 0, f"purged: {done}")
check(not left(), f"of it is left: {left()}")
units = run(["find", "/etc/systemd", "/lib/systemd", "/usr/lib/systemd", "/var/lib/systemd",
             "-name", "stackd*"]).out.split()
check(not units, f"of its units are left: {units}")
finish()
