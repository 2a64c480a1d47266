#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run.py BUILD_DIR [-k SERIES]... [-t SECONDS] [TEST]...

Runs live tests of a built tree on Debian's kernels, each series in a machine of its own. A TEST is
the middle of test_<name>.py here or in tests/live, or 'rotation'. Exit code 0: all passed.
"""

import argparse
import os
import shutil
import sys
import tempfile

import machine

HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = os.path.join(HERE, "..", "live")
TESTS = ("hook", "rotation", "known_waits", "open_waits")

# Stands in for linux-perf, which would double the image: the load that test_rotation starts.
PERF = "#!/bin/sh\nexec /stackd/pingpong pipe 10000000 0 1\n"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("-k", "--kernel", action="append", choices=machine.KERNELS)
    parser.add_argument("-t", "--timeout", type=int, default=900)
    return parser.parse_intermixed_args()


def put(source, *target):
    path = os.path.join(*target)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(source, path)


def put_text(text, *target):
    path = os.path.join(*target)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def overlay_fill(top, build, tests):
    home = os.path.join(top, "stackd")
    put(os.path.join(HERE, "guest_init"), top, "init")
    put(os.path.join(HERE, "guest_job.py"), home, "job")
    for source in (HERE, LIVE):
        for name in os.listdir(source):
            if name.startswith(("test_", "harness")) and name.endswith(".py"):
                put(os.path.join(source, name), home, name)
    for path in ("daemon/stackd", "client/stackctl", "tests/live/test_rotation"):
        put(os.path.join(build, path), home, os.path.basename(path))
    put(os.path.join(build, "tests/bench/pingpong"), home, "pingpong")
    live = os.path.join(build, "tests/live")
    for name in os.listdir(live):
        if name.startswith("prog_") and os.path.isfile(os.path.join(live, name)):
            put(os.path.join(live, name), home, name)
    put_text(PERF, top, "usr/local/bin/perf")
    put_text("\n".join(tests) + "\n", home, "tests")


def run(series, build, tests, timeout):
    directory = machine.kernel(series)
    print(f"-- {series}: {os.path.basename(directory)}", flush=True)
    with tempfile.TemporaryDirectory() as top:
        overlay_fill(top, build, tests)
        done = machine.boot(directory, machine.rootfs(), top, timeout)
    print(done.console)
    end = "no end" if done.code is None else f"{done.code} failed"
    print(f"-- {series}: {end}, {done.seconds:.0f} s", flush=True)
    return done.code == 0


def main():
    args = arguments()
    if machine.missing():
        print(f"skipped: needs the packages {' '.join(machine.missing())}")
        return 77
    kernels = args.kernel or list(machine.KERNELS)
    good = [run(series, args.build, args.tests, args.timeout) for series in kernels]
    return 0 if all(good) else 1


try:
    sys.exit(main())
except machine.MachineError as e:
    print(f"run.py: {e}", file=sys.stderr)
    sys.exit(1)
