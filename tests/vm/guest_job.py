#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in a test machine: installs the package and runs the tests named in /stackd/tests, one per
line, one after the other. A line 'unit NAME' runs a live test against the daemon that the systemd
unit started; 'bench NAME ARGUMENT...' runs a program of tests/bench. A test that exits with REBOOT
or POWER_CUT is run again after the reboot, with PHASE one higher. No test is repeated. The exit code
is the number of tests that failed. For each of them the logs of the daemon and the kernel are
printed.
"""

import json
import os
import shutil
import subprocess
import sys
import time

HOME = "/stackd"
STATE = "/var/lib/test-machine.json"
# Written by UnitDaemon of tests/live/harness.py.
SETTINGS = "/etc/stackd/stackd.conf.d/live.conf"
DROP_IN = "/run/systemd/system/stackd.service.d/machine.conf"
SKIP, REBOOT, POWER_CUT = 77, 88, 89
LOG_LINES = 200

os.environ.update(
    HOME="/root",
    LANG="C.UTF-8",
    PATH=f"/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{HOME}/bin",
    STACKD="/usr/bin/stackd",
    STACKCTL="/usr/bin/stackctl",
    PROGS=HOME,
    STACKD_HANG_SECONDS="600",
    PYTHONDONTWRITEBYTECODE="1",
)


def say(text):
    print(text, flush=True)


def load():
    try:
        with open(STATE, encoding="ascii") as file:
            return json.load(file)
    except FileNotFoundError:
        return {"done": 0, "failed": 0, "phase": 0}


def save(state):
    with open(STATE, "w", encoding="ascii") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())


def text_of(name):
    with open(f"{HOME}/{name}", encoding="ascii") as file:
        return file.read()


def show_logs():
    for title, argv in (
        ("journal of stackd", ["journalctl", "--no-pager", "-u", "stackd.service"]),
        ("kernel's log", ["journalctl", "--no-pager", "-k"]),
    ):
        say(f"-- the {title}")
        subprocess.run([*argv, "-o", "short-precise", "-n", str(LOG_LINES)], check=False)


def restore_unit():
    """Starts the daemon with its own settings, if a test of the unit has left others."""
    if os.path.exists(SETTINGS):
        os.unlink(SETTINGS)
        subprocess.run(["systemctl", "restart", "stackd.service"], check=True)


def run(line, phase):
    *words, name = line.split()
    if "unit" not in words:
        restore_unit()
    script = f"{HOME}/test_{name}.py"
    argv = [sys.executable, script] if os.path.exists(script) else [f"{HOME}/test_{name}"]
    if line.startswith("bench "):
        _, name, *words = line.split()
        argv = [sys.executable, f"{HOME}/bench/bench_{name}.py", f"{HOME}/build", *words]
    environment = {**os.environ, "PHASE": str(phase)}
    if name == "rotation":
        # Each kernel takes one half of the ways in which it is run.
        half = "0" if os.uname().release.startswith("6.1.") else "1"
        environment.update(ROTATIONS="10", HALF=half)
    if "unit" in words:
        environment["STACKD_UNIT"] = "stackd.service"
    limit = int(text_of("limit"))
    start = time.monotonic()
    say(f"== {line}{f', phase {phase}' if phase else ''}")
    try:
        code = subprocess.run(argv, cwd=HOME, env=environment, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        say(f"{line} did not end within {limit} s")
        code = 1
    words = {0: "passed", SKIP: "skipped", REBOOT: "reboots", POWER_CUT: "wants a power cut"}
    say(f"test: {line} {words.get(code, f'FAILED ({code})')} in {time.monotonic() - start:.0f} s")
    if code not in words:
        show_logs()
    return code


def reboot(how):
    if how == REBOOT:
        subprocess.run(["systemctl", "--no-block", "reboot"], check=True)
    else:
        # The host cuts the power soon, while the programs that the test started go on.
        say("machine: cut the power")
        time.sleep(600)


def allow_slowness():
    """Gives the unit more time: in an emulator on a busy host, verifying the BPF programs may take minutes, and
    threads of the daemon that are not at fault may stand for as long. test_service sets its own watchdog."""
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="ascii") as file:
        file.write("[Service]\nTimeoutStartSec=10min\nTimeoutStopSec=10min\nWatchdogSec=10min\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def modules_install():
    source = f"{HOME}/modules"
    if os.path.isdir(source):
        shutil.copytree(source, "/lib/modules", dirs_exist_ok=True)
        subprocess.run(["depmod"], check=True)


def main():
    say("machine: begin")
    allow_slowness()
    state = load()
    if not state["done"]:
        modules_install()
    lines = text_of("tests").splitlines()
    while state["done"] < len(lines):
        line = lines[state["done"]]
        code = run(line, state["phase"])
        if code in (REBOOT, POWER_CUT):
            save({**state, "phase": state["phase"] + 1})
            reboot(code)
            return
        state = {
            "done": state["done"] + 1,
            "failed": state["failed"] + (code not in (0, SKIP)),
            "phase": 0,
        }
        save(state)
    say(f"machine: exit {state['failed']}")
    os.sync()
    subprocess.run(["systemctl", "--force", "--force", "poweroff"], check=False)


main()
