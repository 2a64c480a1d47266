# SPDX-License-Identifier: GPL-2.0-or-later
"""What stackd loads into the kernel goes: a session's programs and maps when it is stopped or its client
is killed, and all of them when the daemon ends, by a signal that it handles or by one that it cannot.
"""

import ctypes
import os
import re
import signal

import harness as h

h.need_live()

# linux/bpf.h; the number of the system call is x86-64's.
SYS_BPF = 321
GET_FD_BY_ID = {"prog_id": 13, "map_id": 14, "link_id": 30}

SESSIONS = (
    ("offcpu",),
    ("oncpu",),
    ("offwake",),
    ("iolat",),
    ("stackcount", "t:sched:sched_switch"),
    ("stackcount", "u:c:getaddrinfo"),
)


def exists(kind, number):
    """True if the kernel has an object of this kind and id."""
    libc = ctypes.CDLL(None, use_errno=True)
    attr = ctypes.create_string_buffer(number.to_bytes(4, "little"), 128)
    fd = libc.syscall(SYS_BPF, GET_FD_BY_ID[kind], attr, 128)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def objects_of(pid):
    """Returns the (kind, id) of all objects of BPF that a process has open."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii", errors="replace") as f:
                text = f.read()
        except FileNotFoundError:
            continue
        found |= {(kind, int(number))
                  for kind, number in re.findall(r"^(prog_id|map_id|link_id):\s*(\d+)$", text, re.M)}
    return found


def check_goes_with(end, text):
    """Starts a daemon and ends it; all that it had in the kernel must go."""
    daemon = h.Daemon("window.length=500ms")
    daemon.started_objects()
    objects = objects_of(daemon.process.pid)
    kinds = sorted({kind for kind, _ in objects})
    h.check(len(kinds) == 3 and all(exists(*one) for one in objects), f"{len(objects)} objects: {kinds}")
    end(daemon)
    h.wait_until(lambda: daemon.process.poll() is not None, f"the daemon to end: {text}")
    h.wait_until(lambda: not any(exists(*one) for one in objects), f"them to go: {text}")
    h.check(True, f"all {len(objects)} have gone: {text}")


daemon = h.Daemon("window.length=500ms", "window.min_length=100ms")
before = daemon.started_objects()
for words in SESSIONS:
    started = daemon.ctl("start", *words, "-p", os.getpid())
    h.check(started.code == 0, f"start {words}: {started}")
    held = daemon.kernel_objects()
    h.check(sum(held.values()) > sum(before.values()), f"{words}: it has objects: {held}")
    h.check(daemon.ctl("stop", started.out.strip()).code == 0, f"stop {words}")
    h.wait_until(lambda: daemon.kernel_objects() == before, f"what {words} had to go")
    h.check(True, f"{words}: as before: {before}")

client = h.spawn([h.STACKCTL, "-S", daemon.socket, "record", "oncpu", "--for", "10min"])
h.wait_until(lambda: daemon.kernel_objects() != before, "a recording to begin")
client.kill()
h.wait_until(lambda: daemon.kernel_objects() == before, "its objects to go with its client")
h.check(daemon.stop() == 0, "the daemon ends")

check_goes_with(lambda ended: ended.process.terminate(), "SIGTERM")
check_goes_with(lambda ended: ended.process.send_signal(signal.SIGKILL), "SIGKILL")
h.finish()
