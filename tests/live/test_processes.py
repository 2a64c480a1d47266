#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows processes in all kinds: processes that live for milliseconds, thousands of them, bursts,
replaced programs, code mapped from something that is no file, and code mapped and unmapped all the
time. Their stacks are whole and named, and cost the daemon little."""

from harness import *

FORKS = 2000
CROWD = 5000

# Maps code from a device, from a path that is a FIFO later, and from a file mapped again and again.
ODD = """
import mmap, os, sys, time
directory, seconds = sys.argv[1], float(sys.argv[2])
path = os.path.join(directory, "code")
with open(path, "wb") as f:
    f.write(bytes(8192))
READ, EXEC = mmap.PROT_READ, mmap.PROT_EXEC
device = os.open("/dev/zero", os.O_RDWR)
file = os.open(path, os.O_RDWR)
kept = [mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=READ | EXEC) for fd in (device, file)]
os.unlink(path)
os.mkfifo(path)
end = time.monotonic() + seconds
while time.monotonic() < end:
    with mmap.mmap(file, 8192, flags=mmap.MAP_PRIVATE, prot=READ | EXEC):
        time.sleep(0.0003)
"""


def prog(name):
    return os.path.join(PROGS, name)


def copy_prog(daemon, name, to):
    path = os.path.join(daemon.dir, to)
    shutil.copy(prog(name), f"{path}.new")
    os.rename(f"{path}.new", path)
    return path


def waits_in(daemon, name, *args):
    """Returns the waits with this function in their user stack: all of them, and those with a whole
    stack."""
    rows = rows_with(daemon.snapshot("--window", "10min", *args), name)
    return row_sum(rows, "count"), row_sum([r for r in rows if not r["user"]["flags"]], "count")


def check_short_lives(daemon):
    """Checks short runs. The first runs of a new program have incomplete stacks, until the daemon
    has read it; how many depends on the load of the machine."""
    path = copy_prog(daemon, "prog_shortlived", "brief")
    cut = 0
    while not waits_in(daemon, "short_wait", "-p", run_pid([path, "3"]))[1] and cut < 100:
        cut += 1
    check(cut < 100, f"3 ms long: known after {cut} runs")
    pids = [run_pid([path, "3"]) for _ in range(30)]
    found = [waits_in(daemon, "short_wait", "-p", pid) for pid in pids]
    whole = sum(whole > 0 for _, whole in found)
    check(whole >= 29, f"3 ms long: {whole} of {len(pids)} have their wait, named and whole")


def run_pid(argv):
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    process.wait()
    return process.pid


def waits_after_forks(daemon, forks):
    """Runs this many children. Returns the waits of all children so far, and those with a whole
    stack."""
    program = Program("prog_forker", forks, 1).ready().go()
    program.read_until("child_wait")
    program.end()
    return waits_in(daemon, "child_wait", "--comm", "prog_forker")


def check_forks(daemon):
    """Checks many children, once the daemon has read their program, which takes longer on a busy
    machine."""
    runs = 1
    while not (before := waits_after_forks(daemon, 20))[1] and runs < 100:
        runs += 1
    after = waits_after_forks(daemon, FORKS)
    n, whole = after[0] - before[0], after[1] - before[1]
    check(n >= 0.99 * FORKS and whole >= 0.99 * n,
          f"{FORKS} forks: {n} waits are named, {whole} of them whole (known after {runs} runs)")


def check_crowd(daemon):
    program = Program("prog_crowd", CROWD).ready().go().done()
    n, whole = waits_in(daemon, "crowd_wait", "--comm", "prog_crowd")
    check(n >= 0.99 * CROWD and whole >= 0.99 * n,
          f"{CROWD} processes: {n} waits are named, {whole} of them whole")
    limit = {l["name"]: l for l in daemon.status()["limits"]}["unwind.mappings"]
    check(not limit["hits"], f"{CROWD} processes: there is room for their mappings: {limit}")
    program.end()


def check_replaced(daemon):
    """Checks two programs at the same path: each process has the names of the program that it
    runs."""
    path = copy_prog(daemon, "prog_shortlived", "replaced")
    first = subprocess.Popen([path, "400"], stdin=subprocess.DEVNULL)
    time.sleep(0.1)
    copy_prog(daemon, "prog_sleeper", "replaced")
    second = Program("replaced", path=path).ready()
    first.wait()
    second.go()
    time.sleep(0.3)
    second.kill()
    old = waits_in(daemon, "short_wait", "-p", first.pid)
    check(old[1] == old[0] > 0, f"replaced: the old one has its names: {old}")
    rows = [r for r in daemon.snapshot("-p", second.pid)["rows"] if r.get("user")]
    names = {n for r in rows for n in frame_names(r)}
    check("main" in names and "short_wait" not in names, f"replaced: the new one has its own: {names}")


def check_odd(daemon):
    use = CpuUse(daemon.process.pid)
    process = subprocess.Popen(["/usr/bin/python3", "-c", ODD, daemon.dir, "3"])
    code = process.wait(HANG_SECONDS)
    use.check(2 / 3, "odd code: the daemon uses")
    check(code == 0, f"odd code: the program ends: {code}")
    rows = [r for r in daemon.snapshot("-p", process.pid)["rows"] if r.get("user")]
    n = row_sum(rows, "count")
    whole = row_sum([r for r in rows if not r["user"]["flags"]], "count")
    check(n > 100 and whole >= 0.95 * n, f"odd code: {whole} of {n} stacks are whole")


need_live()
daemon = Daemon("window.length=1s")
check_short_lives(daemon)
check_forks(daemon)
check_replaced(daemon)
check_odd(daemon)
check_crowd(daemon)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
