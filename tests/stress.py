# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs tests of a build directory under a load that it makes itself, and says how near they came to failing:
the runs, the failures, the most that the rate of failures can be (95 %), the median and the longest seconds,
and of all waits of the harness the one that took most of its deadline. A run that fails leaves its log in
meson-logs/stress of the build directory. Ends with 1 if a run failed or a wait took half of its deadline.

Tests are named as `meson test NAME` takes them; without names, the live tests of the gate are run. All are run
once before any is run again. The loads end with this program, however it ends. Nothing is built.

    freeze  takes all CPUs for 20 to 400 ms at random times, as a hypervisor does; needs root
    cpu     2 threads for each CPU that never sleep
    forks   300 new processes a second
    io      writes and syncs a file in the build directory
    switch  two threads that wake each other
    all     all of these at once
    noisy   one of these, another each second
    idle    none
"""

import argparse
import collections
import contextlib
import ctypes
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

CPUS = sorted(os.sched_getaffinity(0))
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None, use_errno=True)

# A test may take so many times its time limit, as in bootstrap; then it has this long to clean up.
PATIENCE, KILL_SECONDS = 3, 10
WORST_MARGIN = 0.5
FORKS_PER_SECOND = 300

Test = collections.namedtuple("Test", "name argv env workdir seconds")
Run = collections.namedtuple("Run", "is_good seconds margins")


def load_cpu(*_):
    while True:
        pass


def load_forks(_, __, begun):
    for count in range(sys.maxsize):
        time.sleep(max(0, begun + count / FORKS_PER_SECOND - time.monotonic()))
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def load_io(rng, *_):
    data = rng.randbytes(1 << 20)
    with tempfile.TemporaryFile(dir=".") as file:
        while True:
            os.pwrite(file.fileno(), data, rng.randrange(16) << 20)
            os.fsync(file.fileno())


def load_switch(*_):
    here, there = os.pipe(), os.pipe()

    def pass_on(source, target):
        while True:
            os.write(target, os.read(source, 1))

    fork(pass_on, here[0], there[1])
    os.write(here[1], b"x")
    pass_on(there[0], here[1])


def load_freeze(rng, number, at):
    """Takes one CPU. The processes of all CPUs have the same random numbers, so they take them at once."""
    os.sched_setaffinity(0, [CPUS[number]])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    while True:
        at += rng.uniform(0.05, 1)
        time.sleep(max(0, at - time.monotonic()))
        at += rng.uniform(0.02, 0.4)
        while time.monotonic() < at:
            pass


def load_noisy(rng, *_):
    is_good = True
    while is_good:
        loads = Loads(rng.choice(sorted(LOADS)), rng.random())
        time.sleep(1)
        is_good = loads.end()


# Each load, and how many processes make it.
LOADS = {"cpu": (load_cpu, 2 * len(CPUS)), "forks": (load_forks, 1), "io": (load_io, 1),
         "switch": (load_switch, 1), "freeze": (load_freeze, len(CPUS))}
PROFILES = {"idle": [], "all": sorted(LOADS), "noisy": ["noisy"], **{name: [name] for name in LOADS}}


def die_with(parent, number):
    """Lets the calling process get this signal when its parent ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def fork(function, *args):
    """Runs a function that does not return in a process that ends with this one. Returns its pid."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        die_with(parent, signal.SIGKILL)
        function(*args)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


class Loads:
    """The processes that make the loads of a profile."""

    def __init__(self, profile, seed):
        self.pids, begun = [], time.monotonic()
        for name in PROFILES[profile]:
            function, count = LOADS.get(name, (load_noisy, 1))
            self.pids += [fork(function, random.Random(f"{name} {seed}"), number, begun)
                          for number in range(count)]

    def end(self):
        """Ends them. False if one had ended before."""
        ended = [pid for pid in self.pids if os.waitpid(pid, os.WNOHANG)[0]]
        for pid in set(self.pids) - set(ended):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return not ended


def read_tests(names):
    """Returns the tests of the build directory, the current one, with these names or those of the gate."""
    with open(os.path.abspath("meson-info/intro-tests.json"), encoding="utf-8") as file:
        known = {test["name"]: test for test in json.load(file)}
    unknown = set(names) - set(known)
    if unknown:
        raise ValueError(f"no test is called {', '.join(sorted(unknown))}; `meson test --list` has the names")

    def is_default(test):
        return {"live", "gate"} <= {suite.partition(":")[2] for suite in test["suite"]}

    chosen = [known[name] for name in dict.fromkeys(names)] or list(filter(is_default, known.values()))
    return [Test(t["name"], t["cmd"], t["env"], t["workdir"], t["timeout"]) for t in chosen]


def end_group(process):
    """Ends the process group of a test, which may clean up after itself."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_margins(path):
    """Returns [(waited / deadline, what was waited for)], see wait_until() in tests/live/harness.py."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        words = [line.rstrip("\n").split(" ", 1) for line in file]
    return [(float(margin), what) for margin, what in words]


def run_once(test, log):
    """Runs a test; what it says is in the file `log`."""
    parent, begun = os.getpid(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stackd-stress.", ignore_cleanup_errors=True) as directory, \
            open(log, "w", encoding="utf-8") as output:
        os.chmod(directory, 0o1777)
        margins = os.path.join(directory, "margins")
        env = {**os.environ, **test.env, "TMPDIR": directory, "STACKD_MARGINS": margins}
        process = subprocess.Popen(test.argv, cwd=test.workdir, env=env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, start_new_session=True,
                                   preexec_fn=lambda: die_with(parent, signal.SIGTERM))
        try:
            code = process.wait(test.seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            code = f"none after {test.seconds * PATIENCE} s"
        finally:
            end_group(process)
        output.write(f"\nexit code: {code}\n")
        return Run(code == 0, time.monotonic() - begun, read_margins(margins))


def upper_bound(failed, runs):
    """Returns the rate of failures at which so few of these runs fail in 5 of 100 cases (Clopper-Pearson)."""
    if failed == runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        chance = sum(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(failed + 1))
        low, high = (rate, high) if chance > 0.05 else (low, rate)
    return high


def summarize(name, runs):
    """Returns (is good, line of the table)."""
    failed, seconds = sum(not run.is_good for run in runs), [run.seconds for run in runs]
    margin, what = max((margin for run in runs for margin in run.margins), default=(0, "no wait"))
    line = (f"{name:24} {len(runs):5} {failed:6} {upper_bound(failed, len(runs)):7.1%} "
            f"{statistics.median(seconds):7.1f} {max(seconds):7.1f} {margin:7.3f}  {what}")
    return failed == 0 and margin < WORST_MARGIN, line


def run_all(tests, count):
    """Returns {name: runs}, and if all of them have been done."""
    logs, runs = os.path.join("meson-logs", "stress"), collections.defaultdict(list)
    os.makedirs(logs, exist_ok=True)
    try:
        for number in range(1, count + 1):
            for test in tests:
                log = os.path.abspath(os.path.join(logs, f"{test.name}.{os.getpid()}.{number}.log"))
                runs[test.name].append(run_once(test, log))
                if runs[test.name][-1].is_good:
                    os.unlink(log)
                else:
                    print(f"FAILED: {test.name}, run {number}: {log}", flush=True)
    except KeyboardInterrupt as e:
        print(f"ended early {e}")
        return runs, False
    return runs, True


def measure(seconds):
    """Prints how late a thread that nothing on this host may delay gets its CPU."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    counts, until = collections.Counter(), time.monotonic() + seconds
    while (begun := time.monotonic()) < until:
        time.sleep(0.001)
        counts[int((time.monotonic() - begun) * 1000 - 1).bit_length()] += 1
    for bits in range(max(counts) + 1):
        print(f"{(1 << bits) >> 1:6} to {1 << bits:6} ms late: {counts[bits]:9}")


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-n", type=int, default=40, metavar="RUNS", help="of each test; 40 if not given")
    parser.add_argument("-C", default="build-test", metavar="BUILD", help="the build directory")
    parser.add_argument("--profile", choices=list(PROFILES), default="noisy")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other times of the loads")
    parser.add_argument("--measure", type=int, metavar="SECONDS", help="print the pauses of this host instead")
    args = parser.parse_args(argv)
    if args.n < 1:
        parser.error(f"-n {args.n}: at least 1")
    if os.geteuid() and (args.measure or args.profile in ("freeze", "all", "noisy")):
        parser.error("freeze, all, noisy and --measure need root")
    try:
        if not args.measure:
            os.chdir(args.C)
            args.tests = read_tests(args.names)
    except (OSError, ValueError) as e:
        parser.error(str(e))
    return args


def interrupted(number, _):
    raise KeyboardInterrupt(f"by {signal.Signals(number).name}")


def main(argv):
    args = parse(argv)
    if args.measure:
        measure(args.measure)
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    loads = Loads(args.profile, args.seed)
    try:
        runs, is_whole = run_all(args.tests, args.n)
    finally:
        has_load = loads.end()
    print("test                      runs failed at most  median longest  margin  wait")
    rows = [summarize(name, own) for name, own in runs.items() if own]
    print("\n".join(line for _, line in rows))
    if not has_load:
        print("the load ended before the tests did")
    return 0 if is_whole and has_load and all(is_good for is_good, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
