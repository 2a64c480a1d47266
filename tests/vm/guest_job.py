#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The job of a test machine: runs the live tests named in /stackd/tests, one line each, one after
the other. The exit code is the number of those that failed."""

import os
import subprocess
import sys
import time

HOME = "/stackd"
SKIP = 77

os.environ.update(
    STACKD=f"{HOME}/stackd",
    STACKCTL=f"{HOME}/stackctl",
    PROGS=HOME,
    PYTHONDONTWRITEBYTECODE="1",
)


def argv_of(name):
    script = f"{HOME}/test_{name}.py"
    return [sys.executable, script] if os.path.exists(script) else [f"{HOME}/test_{name}"]


def run(name):
    start = time.monotonic()
    print(f"== {name}", flush=True)
    code = subprocess.run(argv_of(name), cwd=HOME, check=False).returncode
    word = {0: "passed", SKIP: "skipped"}.get(code, f"FAILED ({code})")
    print(f"test: {name} {word} in {time.monotonic() - start:.0f} s", flush=True)
    return code not in (0, SKIP)


with open(f"{HOME}/tests", encoding="ascii") as tests:
    sys.exit(sum(run(name) for name in tests.read().split()))
