#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run.py BUILD_DIR [-e] [-s SET] [-k SERIES] [-t SECONDS] [TEST]...
run.py --refresh

Runs tests with the package of this tree installed, in a machine with a kernel of Debian's series (6.1).
With -e the machine is exact (see machine.py). A TEST is the NAME of a test_NAME.py in this folder or in
tests/live, or 'rotation'; without one the tests of a SET are run. 'unit NAME' runs the test against the
daemon that its systemd unit started. 'bench NAME ARGUMENT...' runs a program of tests/bench, with bpftrace
and libbpf-tools of this host for comparison. Exit code 0: all passed; 77: the machine cannot be had here.
The last lines name the kernel and the CPU time, and say for each test how it ended; tests/results.py reads them.

With --refresh, renews the kernels and the system in the cache from the archive, and runs nothing.
"""

import argparse
import lzma
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time

import machine
import package

HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = os.path.join(HERE, "..", "live")
BENCH = os.path.join(HERE, "..", "bench")

# What each machine is for. The first test installs the package. The times that are measured in a machine with
# two CPUs mean nothing, because it is emulated.
SETS = {
    # What depends on the kernel.
    "kernel": (
        "package",
        "rotation",
        "throttled",
        "unit hook",
        "unit kernel_calls",
        "unit open_waits",
        "unit hotplug",
        "unit iolat",
        "unit iolat_disk",
        "unit iolat_sessions",
        "unit iolat_faults",
    ),
    # What depends on systemd; the last test removes the package.
    "system": ("install", "service", "unit container", "unit suspend", "reboot", "remove"),
    # These check times to a few percent: they run in machines whose clock counts instructions.
    "exact": (
        "package",
        "unit known_waits",
        "unit conservation",
        "unit oncpu",
        "unit wakers",
        "unit disk_wakers",
        "unit overview",
    ),
}

# The kernel modules that the disks of those tests and their file systems need.
MODULES = ("loop", "xfs", "dm_delay", "null_blk", "zram", "mq_deadline")

LIMIT_S = 1500  # for one test: several times as long as it takes
EXACT_FACTOR = 10  # exact machines get a longer limit, since their clock skips idle time

# Tools of this host to compare with; each runs with the libraries of this host.
PEERS = ("bpftrace", "fsdist", "biolatency")
PEER = "#!/bin/sh\nexec /stackd/peer/ld.so --library-path /stackd/peer /stackd/peer/{name} \"$@\"\n"

# A replacement for linux-perf, which would double the image: makes the load that test_rotation asks for.
PERF = "#!/bin/sh\nexec /stackd/pingpong pipe 10000000 0 1\n"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", nargs="?")
    parser.add_argument("tests", nargs="*")
    parser.add_argument("-e", "--exact", action="store_true")
    parser.add_argument("-s", "--set", choices=SETS, default="kernel")
    parser.add_argument("-k", "--kernel", choices=machine.KERNELS, default="6.1")
    parser.add_argument("-t", "--timeout", type=int, default=1740)
    parser.add_argument("--refresh", action="store_true")
    args = parser.parse_intermixed_args()
    args.tests = args.tests or SETS[args.set]
    args.exact = args.exact or args.set == "exact"
    if not args.build and not args.refresh:
        parser.error("BUILD_DIR is missing")
    return args


def modules_of(kernel):
    """Returns {name: path} of all modules of a kernel, with _ for each - in names."""
    found = {}
    for folder, _, names in os.walk(os.path.join(kernel, "lib", "modules")):
        for name in names:
            if ".ko" in name:
                found[name.split(".ko")[0].replace("-", "_")] = os.path.join(folder, name)
    return found


def module_needs(path):
    """Returns the modules that a module needs, by its .modinfo; those of newer kernels are .xz."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        found = re.search(rb"\0depends=([^\0]+)\0", file.read())
    return found[1].decode().split(",") if found else []


def modules_put(kernel, home):
    """Copies MODULES and the modules they need to home/modules, with their paths in lib/modules."""
    known, wanted, done = modules_of(kernel), list(MODULES), set()
    while wanted:
        name = wanted.pop().replace("-", "_")
        if name in done or name not in known:
            continue  # a module that is not known is built into the kernel
        done.add(name)
        target = os.path.join(home, "modules", os.path.relpath(known[name], f"{kernel}/lib/modules"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(known[name], target)
        wanted += module_needs(known[name])


def module_put(kernel, home):
    """Copies a module that nothing needs, which tests load and unload."""
    for folder, _, names in os.walk(os.path.join(kernel, "lib", "modules")):
        for name in names:
            if name.startswith("dummy.ko") and folder.endswith("/drivers/net"):
                target = os.path.join(home, name.replace("dummy", "module"))
                shutil.copy(os.path.join(folder, name), target)


def peer_put(home, name):
    """Copies a program of this host, with its libraries."""
    path = shutil.which(name)
    if not path:
        return
    peer = os.path.join(home, "peer")
    os.makedirs(peer, exist_ok=True)
    shutil.copy(path, os.path.join(peer, name))
    for line in machine.command(["ldd", path]).decode().splitlines():
        library, _, target = line.strip().partition(" => ")
        if target:
            shutil.copy(target.split()[0], os.path.join(peer, library))
        elif library.startswith("/"):
            shutil.copy(library.split()[0], os.path.join(peer, "ld.so"))
    machine.put_text(PEER.format(name=name), home, f"bin/{name}", mode=0o755)


def bench_put(home, build):
    for name, source in (("bench", BENCH), ("live", LIVE)):
        os.mkdir(os.path.join(home, name))
        for script in (n for n in os.listdir(source) if n.endswith((".py", ".bt"))):
            shutil.copy(os.path.join(source, script), os.path.join(home, name))
    for folder, name in (("daemon", "stackd"), ("client", "stackctl")):
        os.makedirs(os.path.join(home, "build", folder))
        os.symlink(f"/usr/bin/{name}", os.path.join(home, "build", folder, name))
    os.makedirs(os.path.join(home, "build/tests/bench"))
    shutil.copy(os.path.join(build, "tests/bench/ioloop"), os.path.join(home, "build/tests/bench"))
    for name in PEERS:
        peer_put(home, name)


def job_fill(home, build, kernel, tests, is_exact):
    shutil.copy(os.path.join(HERE, "guest_job.py"), os.path.join(home, "job"))
    shutil.copy(package.find(".deb"), os.path.join(home, "stackd.deb"))
    shutil.copy(package.find_older(), os.path.join(home, "older.deb"))
    for source in (HERE, LIVE):
        for name in os.listdir(source):
            if name.endswith(".py") and not name.startswith(("machine", "package", "run")):
                # If both folders had a test of this name, one of them would never run.
                assert not os.path.exists(os.path.join(home, name)), name
                shutil.copy(os.path.join(source, name), home)
    for path in ("tests/live/test_rotation", "tests/bench/pingpong"):
        shutil.copy(os.path.join(build, path), home)
    live = os.path.join(build, "tests/live")
    for name in os.listdir(live):
        if name.startswith(("prog_", "libprog_")) and os.path.isfile(os.path.join(live, name)):
            shutil.copy(os.path.join(live, name), home)
    module_put(kernel, home)
    modules_put(kernel, home)
    if any(test.startswith("bench ") for test in tests):
        bench_put(home, build)
    machine.put_text(PERF, home, "bin/perf", mode=0o755)
    machine.put_text("\n".join(tests) + "\n", home, "tests")
    machine.put_text(str(LIMIT_S * (EXACT_FACTOR if is_exact else 1)), home, "limit")


def outcomes(console, tests):
    """Returns a line for each test that says how it ended, by what the job said of it."""
    said = dict.fromkeys(tests, "not run")
    said.update(dict.fromkeys(re.findall(r"^== (.+?)(?:, phase [0-9]+)?$", console, re.MULTILINE), "FAILED (no end)"))
    said.update(re.findall(r"^test: (.+?) ((?:passed|skipped|FAILED).*)$", console, re.MULTILINE))
    return [f"test: {test} {said[test]}" for test in tests]


def children_cpu():
    """Returns the CPU time in seconds of all programs that have run and ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(args):
    """Runs the tests in a machine. Returns True if all have passed."""
    directory = machine.kernel(args.kernel)
    root = machine.rootfs(package.depends(package.find(".deb")))
    name = os.path.basename(directory)
    print(f"-- {name}", flush=True)
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)
        job_fill(home, args.build, directory, args.tests, args.exact)
        begun, used = time.monotonic(), children_cpu()
        with machine.Machine(directory, root, home, args.exact) as guest:
            guest.run(args.timeout)
            console, code = guest.console(), guest.exit_code()
        # A host with other work gives it a part of a CPU, which may explain what is late.
        share = f"{children_cpu() - used:.0f} s of CPU time in {time.monotonic() - begun:.0f} s"
    print(console)
    # The results are printed again, because the last lines of a log are read first.
    print("\n".join(re.findall(r"^FAILED: .*", console, re.MULTILINE)))
    print("\n".join(outcomes(console, args.tests)))
    print(f"machine: {name}, {share}: {'no end' if code is None else f'{code} failed'}", flush=True)
    return code == 0


def refresh():
    for series in machine.KERNELS:
        print(machine.kernel(series, is_fresh=True), flush=True)
    print(machine.rootfs(package.depends(package.find(".deb")), is_fresh=True))
    return True


def main():
    args = arguments()
    # An exit by exception ends the machine and removes the temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    missing = machine.missing() + package.missing()
    if missing or os.geteuid() != 0:
        print(f"not run: needs {'root' if os.geteuid() else 'the packages ' + ' '.join(missing)}")
        return 77
    try:
        good = refresh() if args.refresh else run(args)
    except machine.NotRun as e:
        print(f"not run: {e}")
        return 77
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except machine.MachineError as e:
        print(f"run.py: {e}", file=sys.stderr)
        sys.exit(1)
