# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that sessions of I/O with a filter record the operations of the processes or of the one
thread asked for, and of no other, with operations that do not end, and with requests of a disk that
other processes keep busy.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys

import harness as h
from disks import Loop, may_miss, modprobe

h.need_live()

# The name is that of this run only: others may run on this host.
READS, NAME, GROUP = 500, f"io-{os.getpid()}", f"stackd-test-{os.getpid()}"

# Two threads besides the main one, one of them with a name of its own, make READS reads each; then
# all three wait in a read that does not end.
PROCESS = f"""
import os, sys, threading

go = threading.Barrier(3)

def work(name):
    with open("/proc/thread-self/comm", "w") as file:
        file.write(name)
    os.write(1, f"{{name}} {{threading.get_native_id()}}\\n".encode())
    go.wait()
    file = os.open("/proc/self/exe", os.O_RDONLY)
    for _ in range({READS}):
        os.preadv(file, [bytearray(1)], 0)
    os.read(os.pipe()[0], 1)

for name in ("{NAME}", "other"):
    threading.Thread(target=work, args=(name,), daemon=True).start()
sys.stdin.readline()
go.wait()
os.read(os.pipe()[0], 1)
"""


class Reader:
    def __init__(self, cgroup=None):
        self.process = subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, encoding="ascii")
        atexit.register(self.end)
        self.tids = dict(self.process.stdout.readline().split() for _ in range(2))
        if cgroup:
            with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(self.process.pid))

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()


with open("/proc/self/mounts", encoding="ascii") as mounts:
    unified = next((words[1] for words in map(str.split, mounts) if words[2] == "cgroup2"), None)
daemon = h.Daemon("window.length=1s")
inside = None
if unified:
    directory = os.path.join(unified, GROUP)
    os.mkdir(directory)
    atexit.register(lambda: os.path.exists(directory) and os.rmdir(directory))
    inside = Reader(directory)
outside = Reader()
first = str(outside.process.pid)

# Filters, and what each must show of each process: how many threads that make READS reads, and how
# many whose read does not end.
USES = {
    "thread": (("-t", outside.tids[NAME]), {outside: (1, 1)}),
    "first": (("-t", first), {outside: (0, 1)}),
    "process": (("-p", first), {outside: (2, 3)}),
    "named": (("--comm", NAME), {reader: (1, 1) for reader in (outside, inside) if reader}),
}
if inside:
    USES["cgroup"] = (("--cgroup", f"/{GROUP}"), {inside: (2, 3)})
for name, (words, _) in USES.items():
    result = daemon.ctl("start", "iolat", "--name", name, *words)
    h.check(result.code == 0, f"start {name}: {result}")
for reader in (outside, inside):
    if reader:
        reader.go()


def seen_in(name):
    """Returns {pid: (calls of preadv that ended, of read that did not)} of the processes in the
    answer."""
    result = daemon.ctl("snapshot", name, "--by", "process", "--since", "-10min", "--format", "json")
    rows = json.loads(result.out)["rows"] if result.code == 0 else []
    found = {}
    for row in rows:
        io, pid = row["io"], row["process"]["pid"]
        ended, still = found.get(pid, (0, 0))
        if io["op"].startswith("preadv"):
            ended += row["count"]
        if io["op"] == "read" and io["layer"] == "syscall":
            still += io.get("open", 0)
        found[pid] = (ended, still)
    return found


for name, (_, readers) in USES.items():
    wanted = {reader.process.pid: (READS * threads, still)
              for reader, (threads, still) in readers.items()}
    h.check_until(lambda: seen_in(name) == wanted, f"{name}: (ended, open) by process are {wanted}",
                  lambda: seen_in(name))
if inside:
    inside.end()

# The disk is kept busy by others: a thread that runs its queue also issues requests of other
# threads. A loop device takes 128 at a time; the rest waits in the scheduler.
OWN, OTHERS = 1000, 250


def requests_of(name):
    """Returns {(pid, operation): requests}, and how many requests the session knows that it missed."""
    result = daemon.ctl("snapshot", name, "--by", "process", "--since", "-10min", "--layer", "block",
                        "--disk", disk.name, "--format", "json")
    reply = json.loads(result.out) if result.code in (0, 5) else {"rows": [], "lost": []}
    missed = sum(lost["count"] for lost in reply["lost"] if lost["reason"] == h.UNSEEN)
    return {(r["process"]["pid"], r["io"]["op"]): r["count"] for r in reply["rows"]}, missed


def has_all(name):
    """True if the session has all requests. On a host that hides tasks, those may be missing that the session
    counts as missed, or a few that nobody can have seen."""
    seen, missed = requests_of(name)
    hidden = may_miss(daemon, OWN)
    return OWN - (max(hidden, missed) if hidden else 0) <= sum(seen.values()) <= OWN


def check_busy_disk(scheduler):
    with open(f"/sys/block/{disk.name}/queue/scheduler", "w", encoding="ascii") as file:
        file.write(scheduler)
    first = disk.stats()["read"]
    others = subprocess.Popen(
        ["fio", "--name=others", f"--filename={disk.path}", "--rw=randread", "--offset=16M",
         "--size=32M", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=256", "--time_based",
         "--runtime=300"], stdout=subprocess.DEVNULL)
    h.wait_until(lambda: disk.stats()["read"] > first, "others' reads")
    program = h.Program("prog_io", disk.path, OWN, "direct_read").ready()
    result = daemon.ctl("start", "iolat", "--name", scheduler, "-p", program.pid)
    h.check(result.code == 0, f"start {scheduler}: {result}")
    before = disk.stats()
    program.go().done()
    after = disk.stats()
    others.terminate()
    others.wait()
    all_reads = after["read"] - before["read"]
    h.check(all_reads > OWN + OTHERS, f"{scheduler}: others kept it busy: {all_reads} reads in all")
    h.check_until(lambda: has_all(scheduler), f"{scheduler}: all requests")
    seen, missed = requests_of(scheduler)
    h.check(list(seen) == [(program.pid, "read")],
            f"{scheduler}: requests {seen}, of {program.pid} {OWN} reads, of all {all_reads}; missed {missed}")
    program.end()


if shutil.which("fio"):
    disk = Loop(64)
    modprobe("mq-deadline")
    for scheduler in ("mq-deadline", "none"):
        check_busy_disk(scheduler)
else:
    h.leave_out("no fio to keep a disk busy")

# With hook=fentry, sessions also trace the functions of system calls, and other processes pay
# nothing.
probe = next(p for p in daemon.call("io.stackd.Probes")["probes"] if p["name"] == "iolat")
if "fentry" in probe["hook"]:
    daemon.stop()
    daemon = h.Daemon("window.length=1s", "probe.iolat.hook=fentry")
    reader = Reader()
    result = daemon.ctl("start", "iolat", "--name", "functions", "-p", reader.process.pid)
    h.check(result.code == 0, f"start: {result}")
    reader.go()
    wanted = {reader.process.pid: (READS * 2, 3)}
    h.wait_until(lambda: seen_in("functions") == wanted, "what functions show")
    hook = daemon.ctl_json("snapshot", "functions", "--since", "-10min")["hook"]
    h.check("system calls" in hook and "fentry" in hook and "system calls and" not in hook,
            f"by functions: {hook}")
else:
    h.leave_out(f"no functions of system calls: {probe['hook']}")
h.finish()
