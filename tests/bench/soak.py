#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A long run under load, started by hand: STACKD, STACKCTL and PROGS are set as for the live tests,
MINUTES (20) says how long, SPAWNS (300) how many processes a second, and STRESS=no leaves out
stress-ng, which takes all CPUs.

It runs windows of 1 s, all probes, short-lived processes, stress-ng, and queries, sessions and
reloads all the time. Each minute it prints what the daemon holds. At the end it prints
what grew after the first quarter, what was lost, and whether laws 1 and 2 hold: each thread's times
add up to the window, and waits are counted as often as the kernel counts switches. The exit code is
1 if something grew, was lost or does not add up.
"""

import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import disks  # noqa: E402
from harness import *  # noqa: E402

MINUTES = float(os.environ.get("MINUTES", 20))
SPAWNS = int(os.environ.get("SPAWNS", 300))
KEEP = 60  # seconds in memory: full long before the first quarter is over
STORE_MIB = 64  # some minutes: full before the first quarter is over, too

SPAWNER = """
import os, time
due = time.monotonic()
while True:
    due += 1 / %d
    pid = os.posix_spawn('/bin/true', ['true'], {})
    os.waitpid(pid, 0)
    time.sleep(max(0, due - time.monotonic()))
"""

SLEEPER = "import time\nwhile True: time.sleep(0.002)"


def descriptors(pid):
    """Returns (open files, maps, programs and links) of the daemon."""
    kinds = {"bpf-map": 0, "bpf-prog": 0, "bpf_link": 0}
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            total += 1
            for kind in kinds:
                kinds[kind] += name.endswith(kind)
    return {"files": total, **kinds}


def memory_kib(pid):
    """Returns the resident memory, and the part of it that is heap and stacks, without shared files
    and maps."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {"rss": int(fields["VmRSS"].split()[0]), "anon": int(fields["RssAnon"].split()[0])}


def sample(daemon, busy):
    """Returns what the daemon holds while no query and no session runs: the least of some
    readings."""
    readings = []
    with contextlib.ExitStack() as paused:
        for one in busy:
            paused.enter_context(one.is_acting)
        for _ in range(12):
            readings.append({**memory_kib(daemon.process.pid), **descriptors(daemon.process.pid)})
            time.sleep(0.25)
    status = daemon.status()
    limits = {limit["name"]: limit for limit in status["limits"]}
    return {
        **{name: min(reading[name] for reading in readings) for name in readings[0]},
        "windows_kib": limits["window.max_memory"]["used"] >> 10,
        "symbols_kib": limits["symbols.max_memory"]["used"] >> 10,
        "processes": limits["processes"]["used"],
        "maps": status["map_bytes"] >> 10,
        "store": status["store"]["bytes"] >> 10,
        "windows": status["windows"],
        "dropped": status["store"]["dropped"],
        "lost": lost_sum(disks.without_hidden(daemon, status)),
        "cpu": (status["user_ns"] + status["system_ns"]) / 1e9,
    }


class Busy(threading.Thread):
    """A thread that repeats an action until it is stopped, and counts the failures."""

    def __init__(self, interval, action):
        super().__init__(daemon=True)
        self.interval, self.action = interval, action
        self.done, self.failed, self.is_stopping = 0, [], threading.Event()
        self.is_acting = threading.Lock()
        self.start()

    def run(self):
        while not self.is_stopping.wait(self.interval):
            try:
                with self.is_acting:
                    self.action()
                self.done += 1
            except Exception as e:  # every failure is reported, whatever its kind
                self.failed.append(str(e)[-200:])

    def stop(self):
        self.is_stopping.set()
        self.join(60)


def query(daemon):
    result = daemon.ctl("snapshot", "offcpu", "--window", "30s", "--idle", "--json")
    if result.code not in (0, 4):
        raise RuntimeError(str(result))
    for argv in (["stuck"], ["windows"], ["snapshot"], ["snapshot", "oncpu", "-f"]):
        result = daemon.ctl(*argv)
        if result.code not in (0, 4):
            raise RuntimeError(str(result))


def session(daemon, pid):
    started = daemon.ctl("start", "offcpu", "-p", pid, "-m", "1", "--for", "3s")
    if started.code != 0:
        raise RuntimeError(str(started))


class Waits:
    """Laws 1 and 2 for a thread, in a session of its own, whose windows are not folded: counts its
    waits in all windows so far, against the kernel's count, and adds up its times."""

    def __init__(self, daemon, pid):
        self.daemon, self.pid, self.off, self.gaps = daemon, pid, 0, []
        self.begun_at, before = time.time_ns(), switches(pid)
        started = daemon.ctl("start", "offcpu", "-p", pid, "-m", "1us")
        if started.code != 0:
            raise RuntimeError(str(started))
        self.begun = before, switches(pid)  # it began between these counts
        self.session, self.ours, self.theirs = started.out.strip(), 0, (0, 0)

    def ask(self, **parameters):
        return self.daemon.call("io.stackd.Snapshot", session=self.session, idle=True, top=1,
                                **parameters)

    def cut(self):
        """Ends the session's open window. Returns that instant, and the kernel's counts before and after it."""
        asked, before = time.time_ns(), switches(self.pid)

        def cut_since():
            try:
                end = self.ask(window_ns=NS_PER_S)["coverage"]["used"]["end"]["ns"]
            except VarlinkError:  # the very first window is still open
                return None
            return end if end >= asked else None

        return wait_until(cut_since, "a cut"), before, switches(self.pid)

    def add(self):
        """Asks for the whole session, of which more and more is on disk: a shorter range would
        begin where a window on disk begins."""
        end, before, after = self.cut()
        reply = self.ask(since_ns=self.begun_at, until_ns=end)
        totals, used = reply["totals"], reply["coverage"]["used"]
        length = used["end"]["ns"] - used["start"]["ns"]
        parts = totals["on_cpu_ns"] + totals["blocked_ns"] + totals["runnable_ns"]
        self.gaps = [gap for gap in reply["coverage"]["gaps"] if "not begun" not in gap["reason"]]
        self.off = max(self.off, abs(parts - length) / length)
        self.ours, self.theirs = totals["waits"], (before - self.begun[1], after - self.begun[0])


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def usual_priority():
    """Restores the usual priority. The run is niced because of the load; a niced daemon would lose
    events."""
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def main():
    need_live()
    stress = os.environ.get("STRESS") != "no" and shutil.which("stress-ng")
    daemon = Daemon("window.length=1s", f"window.keep={KEEP}s", "probe.offwake.enabled=yes",
                    "probe.iolat.top=syscall", f"store.max_size={STORE_MIB}M",
                    "window.max_rows=500", "query.max_memory=16M", "budget.memory=64M",  # defaults
                    preexec_fn=usual_priority)
    load = [subprocess.Popen([sys.executable, "-c", SPAWNER % SPAWNS])]
    sleeper = subprocess.Popen([sys.executable, "-c", SLEEPER])
    load.append(sleeper)
    if stress:
        load.append(subprocess.Popen(
            [stress, "--cpu", "1", "--switch", "1", "--fork", "1", "--hdd", "1", "--hdd-bytes",
             "16M", "--temp-path", daemon.dir, "-q"]))
    time.sleep(2)
    waits = Waits(daemon, sleeper.pid)
    busy = [
        Busy(3, waits.add),
        Busy(1, lambda: query(daemon)),
        Busy(5, lambda: session(daemon, sleeper.pid)),
        Busy(20, lambda: daemon.process.send_signal(signal.SIGHUP)),
    ]
    samples = []
    begun = time.monotonic()
    deadline = begun + MINUTES * 60
    interval = max(20, min(50, MINUTES * 60 / 25))
    try:
        while time.monotonic() < deadline and daemon.process.poll() is None:
            time.sleep(interval)
            samples.append(sample(daemon, busy))
            print(f"{(time.monotonic() - begun) / 60:5.1f} min", samples[-1], f"off {waits.off:.5f}",
                  f"waits {waits.ours} of {waits.theirs[0]} to {waits.theirs[1]}", flush=True)
        for one in busy:
            one.stop()
    finally:
        for process in load:
            stop_process(process)
    check_all(daemon, samples, busy)
    check_laws(waits)
    check(not waits.gaps, f"no gap in all windows: {waits.gaps[:3]}")
    check(daemon.stop() == 0, f"it ends with {daemon.process.returncode}")
    finish()


def check_laws(waits):
    check(waits.off < 0.01, f"law 1: on CPU + blocked + runnable is off by {waits.off:.3%} at most")
    least, most = waits.theirs
    check(least <= waits.ours <= most, f"law 2: {waits.ours} waits of one thread, {least} to {most} by the kernel")


def check_all(daemon, samples, busy):
    check(daemon.process.poll() is None, "the daemon runs")
    early = samples[len(samples) // 4 : len(samples) // 2]
    late = samples[-(len(samples) // 4) :]
    for name, slack in (("rss", 6 << 10), ("files", 3), ("bpf-map", 2), ("bpf-prog", 2),
                        ("bpf_link", 2), ("maps", 64), ("store", 8 << 10)):
        least, last = min(s[name] for s in early), min(s[name] for s in late)
        check(last <= least * 1.05 + slack, f"{name}: {least} in the second quarter, {last} at the end")
    # The store's log cannot begin anew while a client reads from it.
    least, most = (f(s["store"] for s in late) for f in (min, max))
    check(least <= STORE_MIB << 10, f"the store has {least} to {most} KiB, of {STORE_MIB} MiB")
    check(samples[-1]["lost"] == 0, f"lost: {lost_text(daemon.status())}")
    check(samples[-1]["dropped"] == 0, f"{samples[-1]['dropped']} windows did not get to disk")
    for one, what in zip(busy, ("counts", "queries", "sessions", "reloads")):
        check(one.done and not one.failed, f"{one.done} {what}, {len(one.failed)} failed: {one.failed[:2]}")


main()
