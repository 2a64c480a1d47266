# SPDX-License-Identifier: GPL-2.0-or-later
"""A control group with a CPU quota, for either version of control groups."""

import atexit
import contextlib
import os

import harness as h

V1 = "/sys/fs/cgroup/cpu"
V2 = "/sys/fs/cgroup"


def _write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


class Quota:
    """A group with `quota` ns of CPU time in each period; skips the test without a CPU
    controller."""

    def __init__(self, quota_ns, period_ns=100_000_000):
        self.is_v1 = os.path.exists(f"{V1}/cpu.cfs_quota_us")
        self.path = os.path.join(V1 if self.is_v1 else V2, f"stackd-test-{os.getpid()}")
        quota, period = quota_ns // 1000, period_ns // 1000
        try:
            if not self.is_v1:
                _write(f"{V2}/cgroup.subtree_control", "+cpu")
            os.mkdir(self.path)
            atexit.register(self.remove)
            if self.is_v1:
                _write(f"{self.path}/cpu.cfs_period_us", period)
                _write(f"{self.path}/cpu.cfs_quota_us", quota)
            else:
                _write(f"{self.path}/cpu.max", f"{quota} {period}")
        except OSError as e:
            h.skip(f"no control group with a CPU quota can be made: {e}")

    def add(self, pid):
        _write(f"{self.path}/cgroup.procs", pid)

    def throttled_ns(self):
        """Returns the kernel's count of the time that the group was throttled, summed over the
        CPUs."""
        with open(f"{self.path}/cpu.stat", encoding="ascii") as f:
            stat = dict(line.split() for line in f)
        return int(stat["throttled_time"] if self.is_v1 else stat["throttled_usec"] + "000")

    def remove(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
