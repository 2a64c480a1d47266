#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""On-CPU + blocked + runnable = the length of the window, for every thread alive throughout, and
the split agrees with the kernel's own accounts: schedstat's run time and run-queue delay, and the
number of context switches. Twenty windows under stress-ng."""

from harness import *

WINDOWS = 20
RANGES_MORE = 2  # at most
DOUBTED_MAX = 4


def read_schedstat(pid, tid):
    """ns on a CPU, ns waiting for one, turns on one."""
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return [int(v) for v in f.read().split()]


class Account:
    """What /proc says of one thread."""

    def __init__(self, pid, tid):
        base = f"/proc/{pid}/task/{tid}"
        with open(f"{base}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
        self.comm = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        self.state, self.start = fields[0], fields[19]
        self.pid = pid
        self.on_cpu, self.delay, self.turns = read_schedstat(pid, tid)
        with open(f"{base}/status", encoding="utf-8", errors="replace") as f:
            self.switches = sum(
                int(line.split()[1]) for line in f if "voluntary_ctxt_switches" in line
            )
        self.when = time.time_ns()


def read_accounts():
    accounts = {}
    for name in os.listdir("/proc"):
        # Where pid 1's threads run as a container's monitor, BPF does not see them as current.
        if not name.isdigit() or name == "1":
            continue
        for tid in threads_of(int(name)):
            with contextlib.suppress(OSError, ValueError):
                accounts[tid] = Account(int(name), tid)
    return accounts


class Edge:
    """A cut, with what /proc said just before and just after it."""

    def __init__(self, daemon):
        self.before = read_accounts()
        self.at = daemon.cut()
        self.after = read_accounts()
        self.pending = self._follow_waiting()

    def _follow_waiting(self):
        """{tid: ns} of the delay up to the cut of threads that wait for a CPU now: schedstat has
        it only when their turn comes, so wait for that."""
        pending = {}
        waiting = {tid: account for tid, account in self.after.items() if account.state == "R"}
        deadline = time.monotonic() + 5
        while waiting and time.monotonic() < deadline:
            for tid, account in list(waiting.items()):
                with contextlib.suppress(OSError):
                    _, delay, turns = read_schedstat(account.pid, tid)
                    if turns == account.turns:
                        continue
                    pending[tid] = max(delay - account.delay - (time.time_ns() - self.at), 0)
                del waiting[tid]
            time.sleep(0.005)
        return pending

    def value(self, tid, field):
        """The value at the cut: on a line between the two readings."""
        a, b = self.before[tid], self.after[tid]
        share = min(max((self.at - a.when) / (b.when - a.when), 0.0), 1.0)
        first, last = getattr(a, field), getattr(b, field)
        if last - first > b.when - a.when:
            # A delay that began before the first reading: what lies behind the cut is left out.
            return last - (b.when - self.at) / 2
        value = first + (last - first) * share
        return value + (self.pending.get(tid, 0) if field == "delay" else 0)

    def has(self, tid):
        return tid in self.before and tid in self.after


def windows_between(daemon, start, end=None):
    reply = daemon.call("io.stackd.Windows", since_ns=start, until_ns=end or time.time_ns())
    return len(reply["windows"])


def alive_between(first, last):
    return [
        tid
        for tid in first.before
        if first.has(tid) and last.has(tid) and first.before[tid].start == last.after[tid].start
    ]


def totals_of(connection, tid, start, end):
    return connection.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"tids": [tid]},
        top=1,
        idle=True,
    )["totals"]


class Comparison:
    """Our account of each thread beside the kernel's, over the range between two edges."""

    def __init__(self, connection, first, last):
        self.length = last.at - first.at
        self.ours, self.theirs = [0, 0], [0, 0]
        self.sums_off, self.split_off, self.counts_off = [], [], []
        self.doubted = {}  # {tid: text}: see check_range
        self.tids = alive_between(first, last)
        for tid in self.tids:
            totals = totals_of(connection, tid, first.at, last.at)
            self._add(f"{first.before[tid].comm}/{tid}", tid, totals, first, last)

    def _add(self, name, tid, totals, first, last):
        values = totals["on_cpu_ns"], totals["runnable_ns"]
        total = sum(values) + totals["blocked_ns"]
        if totals["threads"] != 1 or abs(total - self.length) > self.length * 0.01:
            self.sums_off.append((name, totals["threads"], total / self.length))
        for i, field in enumerate(("on_cpu", "delay")):
            kernel = last.value(tid, field) - first.value(tid, field)
            off = f"{name}: {field} {values[i]}, by schedstat {kernel:.0f}"
            if field == "delay" and kernel - values[i] > self.length * 0.02:
                self.doubted[tid] = off
                continue
            self.ours[i] += values[i]
            self.theirs[i] += kernel
            if abs(values[i] - kernel) > self.length * 0.05:
                self.split_off.append(off)
        least = last.before[tid].switches - first.after[tid].switches
        most = last.after[tid].switches - first.before[tid].switches
        if not least - 1 <= totals["waits"] <= most + 1:
            self.counts_off.append((name, totals["waits"], least, most))

    def check(self):
        ours, theirs = self.ours, self.theirs
        check(len(self.tids) > 20, f"{len(self.tids)} threads were alive throughout")
        check(not self.sums_off, f"the sum is the range's length: off: {self.sums_off}")
        check(not self.split_off, f"the split is within 5 % of schedstat: off: {self.split_off}")
        check(len(self.doubted) <= DOUBTED_MAX, f"schedstat is in doubt for: {self.doubted}")
        check(not self.counts_off, f"waits = switches: off (waits, least, most): {self.counts_off}")
        check_near(ours[0], theirs[0], 0.02, "on-CPU of all threads against schedstat, ns")
        check_near(ours[1], theirs[1], 0.02, "runnable of all threads against schedstat, ns")


def check_each_window(connection, stressed, windows):
    off = []
    for window in windows:
        for tid in stressed:
            totals = totals_of(connection, tid, window["start"]["ns"], window["end"]["ns"])
            total = totals["on_cpu_ns"] + totals["runnable_ns"] + totals["blocked_ns"]
            if abs(total - window["length_ns"]) > window["length_ns"] * 0.01:
                off.append((window["seq"], tid, total / window["length_ns"]))
    check(
        not off,
        f"{len(windows)} windows x {len(stressed)} threads: each sum is the length: off: {off}",
    )


def check_range(connection, daemon, stress):
    """Twenty windows. Returns the threads for which schedstat's delay is in doubt.

    Kernels that leave sleepers on the queue for a while (sched_delayed) and move one to another
    CPU meanwhile charge its sleep to schedstat's delay, seconds at times; the scheduler's events,
    counted by bpftrace, agree with us then. It never makes schedstat's delay shorter, and has to
    be absent from another range.
    """
    first = Edge(daemon)
    stressed = children_of(stress.pid)
    wait_until(lambda: windows_between(daemon, first.at) >= WINDOWS, 5 * WINDOWS, "windows")
    last = Edge(daemon)
    comparison = Comparison(connection, first, last)
    comparison.check()
    reply = connection.call("io.stackd.Windows", since_ns=first.at, until_ns=last.at)
    windows = [
        w
        for w in reply["windows"]
        if w["start"]["ns"] >= first.at and w["end"]["ns"] <= last.at
    ]
    check(len(windows) >= WINDOWS, f"{len(windows)} windows between the two cuts")
    check(len(stressed) >= 5, f"{len(stressed)} threads of stress-ng")
    check_each_window(connection, stressed, windows)
    return comparison.doubted


need_live()
stress_ng = need_tool("stress-ng")
daemon = Daemon("window.length=1s")
argv = [stress_ng, "--cpu", "2", "--switch", "2", "--io", "1", "--timeout", "600s"]
stress = subprocess.Popen(
    [*argv, "--temp-path", daemon.dir],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    start_new_session=True,
)
atexit.register(signal_group_of, stress, signal.SIGKILL)
wait_until(lambda: len(children_of(stress.pid)) >= 5, 20, "stress-ng to start")
time.sleep(2)
with Connection(daemon.socket) as connection:
    doubted = check_range(connection, daemon, stress)
    for _ in range(RANGES_MORE):
        if doubted:
            print(f"schedstat in doubt, another range: {doubted}", flush=True)
            again = check_range(connection, daemon, stress)
            doubted = {tid: text for tid, text in doubted.items() if tid in again}
    check(not doubted, f"no thread has less delay than by schedstat in every range: {doubted}")
signal_group_of(stress)
stress.wait(20)
status = daemon.status()
check_nothing_lost(status, "status")
check(status["healthy"], f"the daemon is healthy: {status['problems']}")
finish()
