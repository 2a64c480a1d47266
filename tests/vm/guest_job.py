#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The job of a test machine: installs the package, and runs the tests named in /stackd/tests, one
a line, one after the other. A line 'unit NAME' runs a live test against the daemon as its unit
started it. A test that ends with REBOOT or POWER_CUT is run again after that, with PHASE one
higher. The exit code is the number of tests that failed.
"""

import json
import os
import subprocess
import sys
import time

HOME = "/stackd"
STATE = "/var/lib/test-machine.json"
SKIP, REBOOT, POWER_CUT = 77, 88, 89
LIMIT_S = 600  # of one test, several times what it takes

os.environ.update(
    HOME="/root",
    LANG="C.UTF-8",
    PATH=f"/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{HOME}/bin",
    STACKD="/usr/bin/stackd",
    STACKCTL="/usr/bin/stackctl",
    PROGS=HOME,
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


def run(line, phase):
    *words, name = line.split()
    script = f"{HOME}/test_{name}.py"
    argv = [sys.executable, script] if os.path.exists(script) else [f"{HOME}/test_{name}"]
    environment = {**os.environ, "PHASE": str(phase)}
    if "unit" in words:
        environment["STACKD_UNIT"] = "stackd.service"
    start = time.monotonic()
    say(f"== {line}{f', phase {phase}' if phase else ''}")
    try:
        code = subprocess.run(argv, cwd=HOME, env=environment, timeout=LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        say(f"{line} did not end within {LIMIT_S} s")
        code = 1
    word = {0: "passed", SKIP: "skipped", REBOOT: "reboots", POWER_CUT: "cuts the power"}.get(code, f"FAILED ({code})")
    say(f"test: {line} {word} in {time.monotonic() - start:.0f} s")
    return code


def reboot(how):
    if how == REBOOT:
        subprocess.run(["systemctl", "--no-block", "reboot"], check=True)
    else:
        # At once: nothing is told, nothing is written.
        with open("/proc/sysrq-trigger", "w", encoding="ascii") as trigger:
            trigger.write("b")


def main():
    state = load()
    with open(f"{HOME}/tests", encoding="ascii") as tests:
        lines = tests.read().splitlines()
    while state["done"] < len(lines):
        code = run(lines[state["done"]], state["phase"])
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
