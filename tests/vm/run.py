#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run.py BUILD_DIR [-k SERIES]... [-t SECONDS] [TEST]...

Runs tests with the package of this tree installed, on Debian's kernels, each series in a machine
of its own. A TEST is the middle of test_<name>.py here or in tests/live, or 'rotation'; with 'unit '
before it, it is run against the daemon as its unit started it. Exit code 0: all passed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile

import machine
import package

HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = os.path.join(HERE, "..", "live")

# In this order: the package is installed by the first, and removed by the last. Of the live tests
# those are left out that hold times to a few percent, which an emulator cannot keep.
TESTS = (
    "install",
    "rotation",
    "unit hook",
    "hotplug",
    "throttled",
    "unit open_waits",
    "unit names",
    "service",
    "reboot",
    "remove",
)

# Stands in for linux-perf, which would double the image: the load that test_rotation starts.
PERF = "#!/bin/sh\nexec /stackd/pingpong pipe 10000000 0 1\n"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("-k", "--kernel", action="append", choices=machine.KERNELS)
    parser.add_argument("-t", "--timeout", type=int, default=1200)
    return parser.parse_intermixed_args()

def job_fill(home, build, tests):
    shutil.copy(os.path.join(HERE, "guest_job.py"), os.path.join(home, "job"))
    shutil.copy(package.find(".deb"), os.path.join(home, "stackd.deb"))
    for source in (HERE, LIVE):
        for name in os.listdir(source):
            if name.endswith(".py") and not name.startswith(("machine", "package", "run")):
                shutil.copy(os.path.join(source, name), home)
    for path in ("tests/live/test_rotation", "tests/bench/pingpong"):
        shutil.copy(os.path.join(build, path), home)
    live = os.path.join(build, "tests/live")
    for name in os.listdir(live):
        if name.startswith("prog_") and os.path.isfile(os.path.join(live, name)):
            shutil.copy(os.path.join(live, name), home)
    machine.put_text(PERF, home, "bin/perf", mode=0o755)
    machine.put_text("\n".join(tests) + "\n", home, "tests")

def run(series, build, tests, timeout):
    directory = machine.kernel(series)
    root = machine.rootfs(package.depends(package.find(".deb")))
    print(f"-- {series}: {os.path.basename(directory)}", flush=True)
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)
        job_fill(home, build, tests)
        with machine.Machine(directory, root, home) as guest:
            guest.run(timeout)
            print(guest.console())
            code = guest.exit_code()
    print(f"-- {series}: {'no end' if code is None else f'{code} failed'}", flush=True)
    return code == 0

def main():
    args = arguments()
    # So that what is open is closed, the machine above all.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    missing = machine.missing() + package.missing()
    if missing or os.geteuid() != 0:
        print(f"skipped: needs {'root' if os.geteuid() else 'the packages ' + ' '.join(missing)}")
        return 77
    kernels = args.kernel or list(machine.KERNELS)
    good = [run(series, args.build, args.tests, args.timeout) for series in kernels]
    return 0 if all(good) else 1

try:
    sys.exit(main())
except machine.MachineError as e:
    print(f"run.py: {e}", file=sys.stderr)
    sys.exit(1)
