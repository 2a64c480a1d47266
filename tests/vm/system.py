# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers for tests of the installed service: what systemd and the journal know about it, and calls
over its socket."""

from harness import *

UNIT = "stackd.service"
SOCKET = "/run/stackd/stackd.sock"


def systemctl(*args):
    return run(["systemctl", *args])


def property_of(name, unit=UNIT):
    return systemctl("show", "--value", "-p", name, unit).out.strip()


def state_of(unit=UNIT):
    return property_of("ActiveState", unit)


def main_pid():
    return int(property_of("MainPID"))


def is_anew(pid):
    """Returns True when a daemon other than the process pid is running."""
    said = dict(line.split("=", 1) for line in systemctl("show", "-p", "MainPID,ActiveState", UNIT).out.splitlines())
    return said["MainPID"] not in ("0", str(pid)) and said["ActiveState"] == "active"


def status_of(pid):
    """Returns /proc/PID/status as a dictionary."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def log_text(since=None):
    argv = ["journalctl", "--no-pager", "-o", "cat", "-u", UNIT]
    return run(argv + ([f"--since=@{since}"] if since else [])).out


def ctl(*args, user=None):
    argv = [STACKCTL, *args]
    return run(["runuser", "-u", user, "--", *argv] if user else argv)


def call(method, **parameters):
    with Connection(SOCKET) as connection:
        return connection.call(method, **parameters)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def blocked_us(pid, start, end):
    """Returns for how long the threads of a process were blocked, and what stackctl said. This sum is
    exact also where stackd samples waits to keep within its budget, as it does on a slow machine."""
    done = ctl("snapshot", "offcpu", "--json", "-n", "1", "-p", str(pid), "--since", f"@{start:.3f}",
               "--until", f"@{end:.3f}")
    totals = json.loads(done.out)["totals"] if done.code == 0 else {"blocked_ns": 0}
    return totals["blocked_ns"] // 1000, f"exit {done.code}, stderr: {done.err}"


def wait_for_store():
    """Waits until the database is open: on a busy machine, the service starts before that."""
    wait_until(lambda: call("io.stackd.Status")["store"]["state"] == "writing", "the database")
