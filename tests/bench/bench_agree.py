#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares what stackd and its peers report about the same process at the same time: waits of 1 ms
and more beside libbpf-tools' offcputime (goal: within 2 %), samples at 999 Hz beside its profile,
perf and bpftrace (within 5 %). The programs keep frame pointers and count the true values
themselves. Differences are shown function by function, with the reason where there is one."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from bench import arguments, table, verdict

args = arguments(__doc__, count=50, ms=20, seconds=10, hz=999, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402

WAITS_GOAL, SAMPLES_GOAL = 0.02, 0.05
MIN_US = 1000

# The programs wait in these functions for this bench, before and after the work, or for each other.
EDGES = {"wait_for_line", "wait_for_start", "wait_for_end", "wait_for_others"}
OUTER, IN_LIBC = ("main", "_start"), "in libc"


def functions_of(path):
    """Returns the names of the program's own functions. The peers see no callers above libc."""
    lines = harness.run(["nm", "--defined-only", path]).out.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] in "tT"}


class Sums:
    """The values of one tracer by function: the innermost of the program's own functions counts. A
    wait that main() makes through libc counts together with stacks without any such function,
    because offcputime sees no callers above libc."""

    def __init__(self, names):
        self.names, self.values, self.counts = names, {}, {}

    def add(self, frames, value, count=0):
        own = next((f for f in frames if f in self.names and f not in OUTER), IN_LIBC)
        self.values[own] = self.values.get(own, 0) + value
        self.counts[own] = self.counts.get(own, 0) + count

    def total(self):
        return sum(self.values.values())


def parse_offcputime(text, names):
    """Reads stacks with a line for each frame, leaf first; '- comm (pid)' and the microseconds end
    each."""
    sums, frames, missed = Sums(names), [], 0
    for line in text.splitlines():
        if re.fullmatch(r"\s+\d+", line):
            sums.add(frames, int(line) * 1000)
            frames = []
        elif line.strip():
            frames.append(line.split()[-1] if line.lstrip().startswith("#") else line.strip())
            missed += "issed" in line
    return sums, missed


def parse_folded(text, names, period):
    sums = Sums(names)
    for line in text.splitlines():
        if re.fullmatch(r".+;.* \d+", line):
            stack, count = line.rsplit(" ", 1)
            sums.add(stack.split(";")[::-1], int(count) * period)
    return sums


def parse_bpftrace(text, names, period):
    sums = Sums(names)
    for stack, count in re.findall(r"@\[([^\]]*)\]: (\d+)", text):
        sums.add([re.sub(r"\+\d+$", "", f.strip()) for f in stack.split("\n")], int(count) * period)
    return sums


def parse_perf(text, names, period):
    sums = Sums(names)
    for block in re.split(r"\n\s*\n", text.strip()):
        sums.add([line.split()[-1] for line in block.splitlines() if line.strip()], period)
    return sums


def rows_of(reply, names):
    sums = Sums(names)
    for row in reply["rows"]:
        sums.add(harness.frame_names(row), row["total_ns"], row["count"])
    return sums


def reason_of(ours, theirs, whole, goal, own):
    """Returns why two values differ. own is what the program itself counts there, or None."""
    if abs(ours - theirs) <= goal * theirs:
        return ""
    if own and abs(ours - own) <= goal * own:
        return f"the program itself: {own / 1e6:.1f}"
    return "less than 1 % of all" if abs(ours - theirs) <= 0.01 * whole else "NOT EXPLAINED"


def compare(title, ours, theirs, reasons, goal, own=()):
    """Prints one table. The goal applies to the totals without what one of the two cannot know."""
    names = sorted({*ours.values, *theirs.values}, key=lambda n: -ours.values.get(n, 0))
    rows, common = [], [0, 0]
    for name in names:
        a, b = ours.values.get(name, 0), theirs.values.get(name, 0)
        if name not in reasons:
            common[0] += a
            common[1] += b
        reason = reasons.get(name) or reason_of(a, b, theirs.total(), goal, dict(own).get(name))
        off = f"{a / b - 1:+.2%}" if b else "-"
        count = ours.counts.get(name, 0)
        rows.append([name, count, f"{a / 1e6:.1f}", f"{b / 1e6:.1f}", off, reason])
    off = common[0] / common[1] - 1 if common[1] else 1
    rows.append(["what both can see", "", *(f"{c / 1e6:.1f}" for c in common), f"{off:+.2%}", ""])
    table([title, "count", "stackd ms", "theirs ms", "off", "reason"], rows)
    explained = not any(row[-1] == "NOT EXPLAINED" for row in rows)
    print(f"within {goal:.0%}, and what differs is explained: "
          f"{verdict(abs(off) <= goal and explained)}\n")


class Session:
    """A recording of one process; reply holds the result once it is over."""

    def __init__(self, daemon, *argv):
        self.daemon = daemon
        started = daemon.ctl("start", *argv)
        if started.code != 0:
            raise RuntimeError(str(started))
        self.id = started.out.strip()

    def end(self):
        self.daemon.ctl("stop", self.id)
        return self.daemon.ctl_json("snapshot", self.id, "--idle")


def wait_run(daemon, name, *argv, work, edges):
    """Runs a program under both tracers, which begin before it does its work and end after that."""
    path = os.path.join(harness.PROGS, name)
    names = functions_of(path)
    program = harness.Program(name, *argv).ready()
    session = Session(daemon, "offcpu", "-p", program.pid, "-m", MIN_US)
    peer = tools.Peer(
        "offcputime", tools.libbpf_tool("offcputime"), "-p", str(program.pid), "-m", str(MIN_US)
    )
    with peer:
        work(program)
    reply = session.end()
    program.kill()
    theirs, missed = parse_offcputime(peer.text, names)
    print(f"{' '.join(map(str, (name, *argv)))}: lost by stackd: {harness.lost_text(reply)}; "
          f"stacks missed by offcputime: {missed}")
    own = {}
    for word in ("wait_in_nanosleep", "wait_in_futex", "wait_in_pipe_read", "wait_in_vfork"):
        for value in program.values(word):
            own[word] = value["ns"]
            print(f"  the program itself: {word} {value['count']} times, {value['ns'] / 1e6:.1f} ms")
    # offcputime counts a wait if it saw both ends; stackd counts every wait while it recorded.
    reasons = dict.fromkeys(edges, "began before offcputime looked, or has not ended: stackd alone")
    compare("waits", rows_of(reply, names), theirs, reasons, WAITS_GOAL, own)


def until_done(program):
    program.go().done()


def until_spun(program):
    program.go().read_until("spinning")
    time.sleep(args.seconds / 2)
    program.go().done()


def waits(daemon):
    wait_run(daemon, "prog_waits", args.count, args.ms, work=until_done,
             edges={*EDGES, "peer_wait_for_request"})
    wait_run(daemon, "prog_wakers", 10 * args.count, work=until_done, edges=EDGES)
    # More spinners than the CPU has room for: they wait for the CPU, which begins with a
    # preemption.
    wait_run(daemon, "prog_spinners", 3, args.cpu, work=until_spun, edges=EDGES)


class Perf:
    name = "perf"

    def __init__(self, pid):
        self.path = os.path.join(tempfile.mkdtemp(dir="/var/tmp"), "perf.data")
        self.argv = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(args.hz), "-g",
                     "-p", str(pid), "-o", self.path]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL)
        harness.wait_until(lambda: os.path.exists(self.path), "perf to begin")
        time.sleep(1)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.text = harness.run(["perf", "script", "-i", self.path, "-F", "ip,sym"]).out
        shutil.rmtree(os.path.dirname(self.path))


def samplers(pid):
    """Returns [(tracer, parser)] of the samplers that are installed."""
    found = []
    if tools.libbpf_tool("profile"):
        argv = (tools.libbpf_tool("profile"), "-F", str(args.hz), "-p", str(pid), "-f")
        found.append((tools.Peer("profile", *argv), parse_folded))
    else:
        print("profile is not installed (libbpf-tools has it from Debian 13 on): perf stands in")
    if shutil.which("perf"):
        found.append((Perf(pid), parse_perf))
    if shutil.which("bpftrace") and tools.mount_tracefs():
        script = f"profile:hz:{args.hz} /pid == {pid}/ {{ @[ustack] = count(); }}"
        found.append((tools.Peer("bpftrace", "bpftrace", "-e", script), parse_bpftrace))
    return found


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def samples(daemon):
    """Runs all samplers at the same time on a program that does nothing until all have begun."""
    name = "prog_shares"
    names = functions_of(os.path.join(harness.PROGS, name)) - {"spin_until", "now_ns"}
    program = harness.Program(name, args.cpu).ready()
    os.kill(program.pid, signal.SIGSTOP)
    time.sleep(0.2)
    before = cpu_ns(program.pid)
    session = Session(daemon, "oncpu", "-F", args.hz, "-p", program.pid)
    found = samplers(program.pid)
    for tracer, _ in found:
        tracer.__enter__()
    os.kill(program.pid, signal.SIGCONT)
    time.sleep(args.seconds)
    os.kill(program.pid, signal.SIGSTOP)
    time.sleep(0.2)
    after = cpu_ns(program.pid)
    for tracer, _ in found:
        tracer.__exit__(None, None, None)
    reply = session.end()
    os.kill(program.pid, signal.SIGCONT)
    program.end()
    print(f"{name}: {(after - before) / 1e6:.1f} ms of CPU time by /proc, 3:1 between its functions;"
          f" lost by stackd: {harness.lost_text(reply)}")
    ours = rows_of(reply, names)
    off = ours.total() / (after - before) - 1
    print(f"stackd: {ours.total() / 1e6:.1f} ms, {off:+.2%} of /proc: "
          f"{verdict(abs(off) <= SAMPLES_GOAL)}")
    for tracer, parse in found:
        theirs = parse(tracer.text, names, 1e9 / args.hz)
        compare(f"samples, {tracer.name}", ours, theirs, {}, SAMPLES_GOAL)


tools.warn_of_others()
daemon = harness.Daemon("window.length=1s")
if tools.libbpf_tool("offcputime"):
    waits(daemon)
else:
    print("offcputime (libbpf-tools) is not installed: no waits to compare")
samples(daemon)
daemon.stop()
