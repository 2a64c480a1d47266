# SPDX-License-Identifier: GPL-2.0-or-later
"""A daemon whose calls fail on request; tests/fault/fault_preload.c describes the shared control
file."""

import mmap
import os
import struct
import subprocess

FAULT = os.environ.get("FAULT", "libfault.so")

BPF, BPF_MAP, ACCEPT, MEMORY, WRITE, SYNC = range(1, 7)
FOREVER = 1 << 62

_CONTROL = struct.Struct("=15q16s")  # kind first last error hits pins, calls by kind, two clocks, hang


class Faults:
    """The control file; environment() returns the daemon's environment."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "faults")
        with open(self.path, "wb") as f:
            f.write(bytes(_CONTROL.size))
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), _CONTROL.size)

    def environment(self):
        return {**os.environ, "LD_PRELOAD": FAULT, "FAULT_FILE": self.path}

    def _set(self, index, value):
        struct.pack_into("=q", self.map, index * 8, value)

    def _get(self, index):
        return struct.unpack_from("=q", self.map, index * 8)[0]

    def reset(self):
        self.map[:] = bytes(_CONTROL.size)

    def arm(self, kind, error, first, times=1):
        """Makes the call `first` of a kind fail, counted from the daemon's start, and those after
        it."""
        self._set(0, 0)
        for index, value in enumerate((first, first + times - 1, error, 0), 1):
            self._set(index, value)
        self._set(0, kind)

    def arm_from_now(self, kind, error, times=FOREVER):
        self.arm(kind, error, self.calls(kind) + 1, times)

    def disarm(self):
        self._set(0, 0)

    def set_clock(self, real=0, boot=0):
        """Sets what is added, in ns, to the time since the epoch and to the time since boot."""
        self._set(14, boot)
        self._set(13, real)

    def hang(self, thread):
        """Makes threads of this name hang as soon as they open a file; "" ends that."""
        struct.pack_into("=16s", self.map, 120, thread.encode())

    def hits(self):
        return self._get(4)

    def pins(self):
        return self._get(5)

    def calls(self, kind):
        return self._get(6 + kind)


def start(faults, argv, log_path):
    with open(log_path, "wb") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=faults.environment())
