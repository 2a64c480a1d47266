#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that on-CPU + blocked + runnable = the length of the window for every thread that is alive
throughout, and that the split agrees with a second account of the same events, with schedstat's run
time and with the number of context switches. It takes twenty windows under stress-ng, and some with
wakeups that begin while the sleeper is still on its way off its CPU.

The runnable time of threads that sleep is not compared with schedstat's run-queue delay, which
leaves out most of what this load consists of. A wakeup that is about to preempt marks the queue's
clock to be taken as it is (rq_clock_skip_update, in wakeup_preempt), so by that clock the woken
thread arrives when it was queued. A thread that is preempted on its way to sleep is not charged at
all (sched_info_depart looks at the task's state). Since 6.12 a sleeper that is still queued may be
charged with its sleep when it is moved. A kernel worker of high priority showed a fifth of its
delay. The runnable time of threads that never slept meanwhile is compared, here and in
test_runnable.py.
"""

from harness import *

WINDOWS = 20
PARTS = "on_cpu", "blocked", "runnable"


class Account:
    """The counters that /proc has for one thread."""

    def __init__(self, pid, tid):
        base = f"/proc/{pid}/task/{tid}"
        with open(f"{base}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
        self.comm = text[text.index("(") + 1 : text.rindex(")")]
        words = text[text.rindex(")") + 2 :].split()
        self.has_ended, self.start = words[0] in "ZX", words[19]
        with open(f"{base}/schedstat", encoding="ascii") as f:
            self.on_cpu, self.delay = (int(word) for word in f.read().split()[:2])
        with open(f"{base}/status", encoding="utf-8", errors="replace") as f:
            lines = [line for line in f if "voluntary_ctxt_switches" in line]
        self.sleeps, preempted = (int(line.split()[1]) for line in lines)
        self.switches = self.sleeps + preempted
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


class Oracle(Program):
    """The second account, which oracle.bpf.c keeps."""

    def __init__(self):
        super().__init__("prog_oracle")
        self.ready()

    def read(self):
        """Returns {tid: {part: ns so far}}, the state each thread is in counted up to "when"."""
        self.lines.clear()
        self.go().done()
        return {values["tid"]: values for values in self.values("thread")}


def value_between(a, b, at, when_a, when_b):
    """Returns the value at an instant, interpolated between two readings."""
    return a + (b - a) * min(max((at - when_a) / max(when_b - when_a, 1), 0.0), 1.0)


class Edge:
    """A cut, with the readings of /proc and the oracle just before and just after it."""

    def __init__(self, daemon, oracle):
        self.interrupts = interrupt_ns()
        self.before = read_accounts()
        self.oracle_before = oracle.read()
        self.at = daemon.cut()
        self.oracle_after = oracle.read()
        self.after = read_accounts()
        self.interrupts_after = interrupt_ns()
        self.width = max(values["when"] for values in self.oracle_after.values()) - min(
            values["when"] for values in self.oracle_before.values()
        )

    def on_cpu(self, tid):
        a, b = self.before[tid], self.after[tid]
        return value_between(a.on_cpu, b.on_cpu, self.at, a.when, b.when)

    def delay(self, tid):
        a, b = self.before[tid], self.after[tid]
        return value_between(a.delay, b.delay, self.at, a.when, b.when)

    def part(self, tid, part):
        a, b = self.oracle_before[tid], self.oracle_after[tid]
        return value_between(a[part], b[part], self.at, a["when"], b["when"])

    def has(self, tid):
        return tid in self.before and tid in self.after

    def oracle_has(self, tid):
        return tid in self.oracle_before and tid in self.oracle_after


def edge_of(daemon, oracle):
    """Returns the narrowest of three edges: a cut may have to wait for the open window to be long
    enough."""
    return min((Edge(daemon, oracle) for _ in range(3)), key=lambda edge: edge.width)


def alive_between(first, last):
    """Returns the threads alive at both edges. One that has ended stays in /proc until its parent
    reaps it, but its time has stopped."""
    return [
        tid
        for tid in first.before
        if first.has(tid) and last.has(tid) and first.before[tid].start == last.after[tid].start
        and not last.after[tid].has_ended
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


def longest_ns(connection, tid, start, end):
    """Returns the longest wait of a thread, for a CPU and before."""
    rows = connection.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"tids": [tid]},
        top=1,
        sort="max",
        idle=True,
    )["rows"]
    return max((row["max_ns"] for row in rows), default=0)


def sum_of(totals):
    return sum(totals[f"{part}_ns"] for part in PARTS)


class Comparison:
    """stackd's account of each thread beside the others, over the range between two edges."""

    def __init__(self, connection, first, last, stressed):
        self.connection, self.stressed = connection, stressed
        self.first, self.last, self.length = first, last, last.at - first.at
        self.interrupts = last.interrupts - first.interrupts
        self.ours, self.oracles = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
        self.kernel, self.ours_all = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
        self.sleepless, self.ours_sleepless, self.kernel_sleepless = [], 0, 0
        self.waiting_ns = 0
        self.sums_off, self.split_off, self.kernel_off, self.counts_off = [], [], [], []
        self.tids, self.compared = alive_between(first, last), []
        for tid in self.tids:
            totals = totals_of(connection, tid, first.at, last.at)
            name = f"{first.before[tid].comm}/{tid}"
            self._add_kernel(name, tid, totals)
            if self._oracle_knows(tid):
                self._add_oracle(name, tid, totals)

    def _add_kernel(self, name, tid, totals):
        first, last = self.first, self.last
        if totals["threads"] != 1 or abs(sum_of(totals) - self.length) > self.length * 0.001:
            self.sums_off.append((name, totals["threads"], sum_of(totals) / self.length))
        kernel = last.on_cpu(tid) - first.on_cpu(tid)
        if abs(totals["on_cpu_ns"] - kernel) > self.length * 0.05 + self.interrupts:
            self.kernel_off.append((name, totals["on_cpu_ns"], round(kernel)))
        delay = last.delay(tid) - first.delay(tid)
        for part in PARTS:
            self.ours_all[part] += totals[f"{part}_ns"]
        self.kernel["on_cpu"] += kernel
        self.kernel["runnable"] += delay
        if last.after[tid].sleeps == first.before[tid].sleeps and kernel > self.length * 0.01:
            self.sleepless.append(name)
            self.ours_sleepless += totals["runnable_ns"]
            self.kernel_sleepless += delay
            self.waiting_ns += longest_ns(self.connection, tid, first.at, last.at)
        least = last.before[tid].switches - first.after[tid].switches
        most = last.after[tid].switches - first.before[tid].switches
        if not least - 1 <= totals["waits"] <= most + 1:
            self.counts_off.append((name, totals["waits"], least, most))

    def _oracle_knows(self, tid):
        """True if the oracle has followed the thread. It knows no thread that has slept since
        before the oracle started, and loses track of threads in switches that it does not see,
        those to and from threads that a host hides from BPF."""
        if not self.first.oracle_has(tid) or not self.last.oracle_has(tid):
            return False
        lost = self.last.oracle_after[tid]["lost"] - self.first.oracle_before[tid]["lost"]
        return lost < self.length * 0.005

    def _add_oracle(self, name, tid, totals):
        self.compared.append(tid)
        for part in PARTS:
            value = totals[f"{part}_ns"]
            oracle = self.last.part(tid, part) - self.first.part(tid, part)
            self.ours[part] += value
            self.oracles[part] += oracle
            if abs(value - oracle) > self.length * 0.01:
                self.split_off.append((name, part, value, round(oracle)))

    def check(self):
        print(f"edges of {self.first.width / 1e6:.1f} and {self.last.width / 1e6:.1f} ms")
        check(len(self.tids) > 20, f"{len(self.tids)} threads were alive throughout")
        check(not self.sums_off, f"the sum is the range's length: off: {self.sums_off}")
        both = len(self.compared), len(set(self.compared) & set(self.stressed))
        check(both[0] > 15 and both[1] > 1, f"in the oracle too: {both[0]}, {both[1]} of stress-ng")
        check(
            not self.split_off,
            f"the split is the oracle's within 1 % of the range: off: {self.split_off}",
        )
        for part in PARTS:
            text = f"{part} of all against the oracle, ns"
            check_near(self.ours[part], self.oracles[part], 0.01, text)
        check(not self.kernel_off, f"on-CPU is within 5 % of schedstat: off: {self.kernel_off}")
        text, slack = "on-CPU of all against schedstat, ns", self.interrupts
        check_near(self.ours_all["on_cpu"], self.kernel["on_cpu"], 0.02, text, slack)
        ours, kernel = self.ours_all["runnable"], self.kernel["runnable"]
        print(f"runnable of all, s: {ours / NS_PER_S:.2f}, schedstat {kernel / NS_PER_S:.2f}")
        # On an emulated machine each thread may have had to wait for a page once.
        is_emulated = "STACKD_UNIT" in os.environ
        check(self.sleepless or is_emulated, f"some threads ran and never slept: {self.sleepless}")
        # schedstat counts a wait for a CPU when it ends: of the waits in progress at an edge, the
        # part before it is in the other account's range.
        slack = min(self.waiting_ns, self.kernel_sleepless / 10)
        text = f"runnable of those against schedstat, ns, the longest waits {self.waiting_ns}"
        check_near(self.ours_sleepless, self.kernel_sleepless, 0.02, text, slack)
        check(not self.counts_off, f"waits = switches: off (waits, least, most): {self.counts_off}")


def windows_between(daemon, start, end=None):
    until = end or time.time_ns()
    reply = daemon.call("io.stackd.Windows", probe="offcpu", since_ns=start, until_ns=until)
    return [
        w
        for w in reply["windows"]
        if w["start"]["ns"] >= start and (not end or w["end"]["ns"] <= end)
    ]


def check_each_window(connection, stressed, windows):
    off = []
    for window in windows:
        for tid in stressed:
            totals = totals_of(connection, tid, window["start"]["ns"], window["end"]["ns"])
            if abs(sum_of(totals) - window["length_ns"]) > window["length_ns"] * 0.01:
                off.append((window["seq"], tid, sum_of(totals) / window["length_ns"]))
    check(
        not off,
        f"{len(windows)} windows x {len(stressed)} threads: each sum is the length: off: {off}",
    )


def check_early_wakes(daemon, oracle):
    """Checks wakeups that begin early. On a machine whose CPUs do not run in parallel there are
    none, and this shows nothing."""
    program = Program("prog_earlywakes").ready()
    tid = program.value("sleeper")["tid"]
    time.sleep(1)
    first = edge_of(daemon, oracle)
    time.sleep(5)
    last = edge_of(daemon, oracle)
    program.go().done().end()
    with Connection(daemon.socket) as connection:
        ours = totals_of(connection, tid, first.at, last.at)["runnable_ns"]
    theirs, early = (last.part(tid, part) - first.part(tid, part) for part in ("runnable", "early"))
    lost = last.oracle_after[tid]["lost"] - first.oracle_before[tid]["lost"]
    slack = theirs * 0.02 + lost + (first.width + last.width) / 2
    # stackd counts an early wakeup as ready from the switch-out on, the oracle from when it is
    # queued.
    least, most = round(theirs - slack), round(theirs + slack + early)
    text = f"early wakes, {early / max(theirs, 1):.1%} of the time: runnable"
    check(least <= ours <= most, f"{text}: {least} <= {ours} <= {most} ns, the oracle {theirs:.0f}")


def start_stress(daemon):
    argv = [need_tool("stress-ng"), "--cpu", "2", "--switch", "2", "--io", "1"]
    stress = subprocess.Popen(
        [*argv, "--timeout", "600s", "--temp-path", daemon.dir],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)),
    )
    atexit.register(signal_group_of, stress, signal.SIGKILL)
    wait_until(lambda: len(children_of(stress.pid)) >= 5, "stress-ng to start")
    return stress


class Rounds(Program):
    """A program whose six threads wait, compute and wait for their CPU."""

    def __init__(self):
        super().__init__("prog_rounds")
        self.ready()
        self.tids = {value["tid"]: line.split()[1] for value, line in
                     zip(self.values("thread"), (line for line in self.lines if line.startswith("thread ")))}


def check_split(first, last, totals, tid, name):
    """Checks the parts of a thread's time against the least and the most that the oracle can have counted
    between the two cuts. What it lost may be of any part; an interrupt between its program and the
    daemon's at the same event is in no part of one of them."""
    lost = last.oracle_after[tid]["lost"] - first.oracle_before[tid]["lost"]
    early = last.oracle_after[tid]["early"] - first.oracle_before[tid]["early"]
    slack = lost + early + last.interrupts_after - first.interrupts + 3 * NS_PER_S // os.sysconf("SC_CLK_TCK")
    for part in PARTS:
        least = last.oracle_before[tid][part] - first.oracle_after[tid][part] - slack
        most = last.oracle_after[tid][part] - first.oracle_before[tid][part] + slack
        value = totals[f"{part}_ns"]
        check(least <= value <= most, f"{name}: {part} for {value} ns, {least} to {most} by the oracle")


def split():
    """Shows law 1 for each thread of a program in each of some windows, to the nanosecond, and its parts
    within what the width of two cuts allows."""
    daemon, oracle, program = Daemon("window.length=1s", "window.min_length=50ms"), Oracle(), Rounds()
    first = edge_of(daemon, oracle)
    wait_until(lambda: len(windows_between(daemon, first.at)) >= 4, "windows")
    last = edge_of(daemon, oracle)
    print(f"edges of {first.width / 1e6:.1f} and {last.width / 1e6:.1f} ms")
    with Connection(daemon.socket) as connection:
        for tid, name in program.tids.items():
            totals = totals_of(connection, tid, first.at, last.at)
            check(sum_of(totals) == last.at - first.at, f"{name}: {sum_of(totals)} ns of {last.at - first.at}")
            check_split(first, last, totals, tid, name)
            for window in windows_between(daemon, first.at, last.at):
                ours = sum_of(totals_of(connection, tid, window["start"]["ns"], window["end"]["ns"]))
                length = window["length_ns"]
                check(ours == length, f"{name}: {ours} ns of the {length} of window {window['seq']}")
    check(program.end() == 0 and oracle.end() == 0, "the programs end")
    check(daemon.stop() == 0, "the daemon ends")


def stress():
    """Shows it for all threads of the host."""
    need_tool("stress-ng")
    # This test, the daemon and the oracle run before the load, because only short edges are exact.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    daemon = Daemon("window.length=1s", "window.min_length=50ms")
    oracle = Oracle()
    if len(os.sched_getaffinity(0)) > 1:
        check_early_wakes(daemon, oracle)
    load = start_stress(daemon)
    time.sleep(2)
    with Connection(daemon.socket) as connection:
        first = edge_of(daemon, oracle)
        stressed = children_of(load.pid)
        wait_until(lambda: len(windows_between(daemon, first.at)) >= WINDOWS, "windows")
        last = edge_of(daemon, oracle)
        windows = windows_between(daemon, first.at, last.at)
        check(len(windows) >= WINDOWS, f"{len(windows)} windows between the two cuts")
        check(len(stressed) >= 5, f"{len(stressed)} threads of stress-ng")
        Comparison(connection, first, last, stressed).check()
        check_each_window(connection, stressed, windows)
    signal_group_of(load)
    load.wait(HANG_SECONDS)
    check(oracle.end() == 0, "the oracle ends")
    status = daemon.status()
    check_nothing_lost(status, "status")
    check(status["healthy"], f"the daemon is healthy: {status['problems']}")


need_live()
run_parts(split, stress)
