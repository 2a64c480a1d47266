#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows which user may do what on the socket: its mode and group, a member by a supplementary
group, other users, kernel addresses for root alone, and a socket that the service manager
passes."""

import grp
import stat

from harness import *

NOBODY = 65534
GROUP = "daemon"  # a group that every Debian has


def check_mode(daemon):
    st = os.stat(daemon.socket)
    check(stat.S_IMODE(st.st_mode) == 0o660, f"mode {stat.S_IMODE(st.st_mode):o} is 660")
    check(st.st_uid == 0, f"owner {st.st_uid} is root")
    check(st.st_gid == grp.getgrnam(GROUP).gr_gid, f"group {st.st_gid} is {GROUP}")


def as_nobody(daemon, groups, *args):
    """Runs stackctl as another user, in these groups besides its own."""
    keep = f"--groups={groups}" if groups else "--clear-groups"
    stackctl = os.path.join(daemon.dir, "stackctl")
    if not os.path.exists(stackctl):
        shutil.copy(STACKCTL, stackctl)
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", keep]
    return run([*drop, stackctl, "-S", daemon.socket, *args])


def kernel_addresses(text):
    rows = json.loads(text)["rows"]
    frames = [f for row in rows for f in (row.get("kernel") or {}).get("frames", [])]
    frames = [f for f in frames if f["kind"] == "kernel"]
    return len(frames), [f["address"] for f in frames if f.get("address")]


def check_classes(daemon):
    os.chmod(daemon.dir, 0o755)
    result = as_nobody(daemon, None, "status")
    check(result.code == 3 and GROUP in result.err, f"outside the group: {result}")
    # This is as if the mode had been loosened by accident: the daemon checks the group itself.
    os.chmod(daemon.socket, 0o666)
    result = as_nobody(daemon, None, "status")
    check(result.code == 3 and f"adduser USER {GROUP}" in result.err, f"and mode 666: {result}")
    os.chmod(daemon.socket, 0o660)
    result = as_nobody(daemon, GROUP, "status")
    check(result.code == 0, f"inside the group: {result}")


def check_kernel_addresses(daemon):
    args = ["snapshot", "offcpu", "--idle", "--format", "json"]
    frames, addresses = kernel_addresses(daemon.ctl(*args).out)
    check(frames and len(addresses) == frames, f"root: {len(addresses)} addresses, {frames} frames")
    frames, addresses = kernel_addresses(as_nobody(daemon, GROUP, *args).out)
    check(frames and not addresses, f"a member: {len(addresses)} addresses, {frames} frames")


class Passed(Daemon):
    """A stackd whose socket another process has made, as with stackd.socket."""

    def __init__(self, *overrides):
        super().__init__(*overrides, start=False)
        self.passed = os.path.join(self.dir, "passed.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.passed)
            listener.listen()
            self.start(
                prefix=["sh", "-c", 'exec 3<&"$0" && LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"',
                        str(listener.fileno())],
                socket=self.passed,
                pass_fds=[listener.fileno()],
            )


def check_passed():
    daemon = Passed()
    own = os.path.join(daemon.dir, "stackd.sock")
    check(daemon.ctl("status").code == 0, "a passed socket is served")
    check(not os.path.exists(own), "[control] socket is ignored")
    check("[control] socket is ignored" in daemon.log(), "and the log says so")
    check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
    check(os.path.exists(daemon.passed), "the daemon does not remove a passed socket")


need_live()
need_tool("setpriv")
daemon = Daemon("window.length=1s", f"control.group={GROUP}")
daemon.cut()
check_mode(daemon)
check_classes(daemon)
check_kernel_addresses(daemon)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
check_passed()
finish()
