#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of counting a hot tracepoint's calls by stacks and of telling them one by one, beside
bpftrace, goal: at most its, and no more told than the limit; and, where the kernel's functions can
be traced, how long many of them take to attach and detach, goal: no longer than bpftrace, while the
daemon answers and loses nothing."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from bench import arguments, load, spread, table, verdict

args = arguments(__doc__, rounds=8, calls=300000, functions=2000, cpu=1)

import harness  # noqa: E402
import tools  # noqa: E402

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no")
FOREVER = "budget.cpu=10000"
MANY = "probe.stackcount.max_functions=100000"
SCRIPT = 'tracepoint:raw_syscalls:sys_enter /comm == "ioloop"/ { @[kstack, ustack] = count(); }'
EACH = ('tracepoint:raw_syscalls:sys_enter /comm == "ioloop"/ '
        '{ printf("%llu %s %d %d %d%s%s\\n", nsecs, comm, pid, tid, cpu, kstack, ustack); }')
RATE = 1000  # of snoop, without --rate


class Counted(tools.Stackd):
    """stackd with a session on each system call."""

    def __enter__(self):
        super().__enter__()
        started = self.daemon.ctl("start", "stackcount", "t:raw_syscalls:sys_enter", "--comm",
                                  "ioloop")
        assert started.code == 0, str(started)
        return self


class Told(tools.Stackd):
    """stackd with a client that is told of each system call."""

    calls, begin, client, out = [], 0.0, None, None

    def __enter__(self):
        super().__enter__()
        self.out = tempfile.TemporaryFile("w+")
        argv = [os.environ["STACKCTL"], "-S", self.daemon.socket, "snoop",
                "t:raw_syscalls:sys_enter", "--comm", "ioloop", "--json"]
        self.client = subprocess.Popen(argv, stdout=self.out, stderr=subprocess.PIPE,
                                       encoding="utf-8")
        harness.wait_until(self._has_session, 60, "the session")
        self.begin = time.monotonic()
        return self

    def _has_session(self):
        sessions = self.daemon.call("io.stackd.Sessions")["sessions"]
        return any(s["probe"] == "stacksnoop" for s in sessions)

    def __exit__(self, *args):
        seconds = time.monotonic() - self.begin
        time.sleep(3)  # it is told the sums each second
        self.client.send_signal(signal.SIGINT)
        err = self.client.communicate(timeout=60)[1]
        self.out.seek(0)
        told = sum(1 for _ in self.out)
        held = re.search(r"([\d,]+) of [\d,]+ calls were not told", err)
        held = int(held[1].replace(",", "")) if held else 0
        Told.calls.append((told, held, told <= RATE * (seconds + 1)))
        super().__exit__(*args)


def run():
    """ns a system call that does nothing."""
    argv = ["taskset", "-c", str(args.cpu), load(args, "ioloop"), "getppid", str(args.calls),
            "/dev/null"]
    return float(harness.run(argv).out)


def tracers():
    found = [tools.Nothing(), Counted("every call", *OTHERS, FOREVER),
             Counted("in its budget", *OTHERS), Told("told", *OTHERS, FOREVER)]
    if shutil.which("bpftrace") and tools.mount_tracefs():
        found.append(tools.Peer("bpftrace", "bpftrace", "-e", SCRIPT))
        found.append(tools.Peer("bpftrace, told", "bpftrace", "-e", EACH))
    return found


def hot():
    times = {}
    for _ in range(args.rounds):
        for tracer in tracers():
            with tracer:
                times.setdefault(tracer.name, []).append(run())
    base = min(times["base"])
    print(f"{args.rounds} rounds of {args.calls} calls on CPU {args.cpu}; ns a call, least")
    table(["tracer", "least", "added"],
          [[n, f"{min(t):.0f}", f"{min(t) - base:.0f}"] for n, t in times.items()])
    print(f"base against base: {spread(times['base']):.0f} ns")
    for ours, theirs in (("every call", "bpftrace"), ("told", "bpftrace, told")):
        if theirs in times:
            ratio = (min(times[ours]) - base) / (min(times[theirs]) - base)
            print(f"{ours}: {ratio:.2f} of bpftrace's, goal 1: {verdict(ratio <= 1)}")
    for told, held, is_limited in Told.calls:
        print(f"{told} told and {held} counted, of {args.calls}, {RATE} a second: "
              f"{verdict(is_limited and abs(told + held - args.calls) <= args.calls / 100)}")


# In names of what tracers call themselves, for each of their own maps and events.
TRACERS = ("map_", "bpf", "trace", "perf", "ring_")


def prefixes(wanted):
    """Beginnings of names that so many functions at most have together, and how many do."""
    with open(f"{tools.TRACING}/available_filter_functions", encoding="ascii") as f:
        names = sorted({line.split()[0] for line in f if "[" not in line})
    counts = {}
    for name in names:
        if name[0].islower():
            counts[name[:4]] = counts.get(name[:4], 0) + 1
    for name in names:
        if any(word in name for word in TRACERS):
            counts.pop(name[:4], None)
    chosen, total = [], 0
    for prefix, count in sorted(counts.items(), key=lambda item: -item[1]):
        if total + count <= wanted and prefix.isalpha():
            chosen.append(prefix)
            total += count
    return chosen, total


class Asking:
    """Asks the daemon for its status all the time: the longest answer, in seconds."""

    def __init__(self, daemon):
        self.daemon, self.longest, self.ended = daemon, 0.0, False
        self.thread = threading.Thread(target=self._ask)

    def _ask(self):
        while not self.ended:
            start = time.monotonic()
            self.daemon.status()
            self.longest = max(self.longest, time.monotonic() - start)
            # Not all the time: in an emulated machine that alone is all that it can do.
            time.sleep(harness.patience(0.01))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


def ask(daemon, method, **parameters):
    """It may take an emulated machine minutes, for which stackctl does not wait."""
    with harness.Connection(daemon.socket, timeout=600) as connection:
        return connection.call(method, **parameters)


def attach_ours(chosen, pid):
    """Seconds to attach, to detach, and of the longest answer meanwhile; and how many there were."""
    # Before it has settled: a slow machine's never does as others do, and this is no matter of ns.
    daemon = harness.Daemon(MANY)
    print("the daemon has started", flush=True)
    with Asking(daemon) as asking:
        start = time.monotonic()
        session = ask(daemon, "io.stackd.Start", probe="stackcount", regexp=True,
                      filter={"pids": [pid]}, function=f"^({'|'.join(chosen)})")["session"]
        attached = time.monotonic()
        print(f"attached {session['functions']} in {attached - start:.2f} s", flush=True)
        between = time.monotonic()
        ask(daemon, "io.stackd.Stop", session=session["id"])
        end = time.monotonic()
        status = daemon.status()
        lost = {p["name"]: p["lost"] for p in status["probes"] if p.get("lost")}
    print(f"lost meanwhile: {lost}; problems: {status['problems']}; longest cut: "
          f"{status['cut_max_ns'] / 1e6:.1f} ms")
    daemon.stop()
    return attached - start, end - between, asking.longest, session["functions"]


def bpftrace_seconds(probes, pid):
    """Of all of its life with these."""
    environment = {**os.environ, "BPFTRACE_MAX_PROBES": "100000"}
    script = f"{probes} /pid == {pid}/ {{ @ = count(); }} interval:ms:1 {{ exit(); }}"
    start = time.monotonic()
    subprocess.run(["bpftrace", "-e", script], env=environment, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def many():
    """Of a process that sleeps: what its calls cost is another matter than to attach."""
    tools.mount_tracefs()
    sleeper = subprocess.Popen(["sleep", "infinity"])
    atexit.register(harness.stop_process, sleeper)
    start = time.monotonic()
    chosen, total = prefixes(args.functions)
    print(f"{total} functions chosen in {time.monotonic() - start:.1f} s", flush=True)
    attach, detach, longest, functions = attach_ours(chosen, sleeper.pid)
    rows = [["stackd", functions, f"{attach + detach:.2f}", f"{attach:.2f}", f"{detach:.2f}"]]
    if shutil.which("bpftrace"):
        one = bpftrace_seconds("kprobe:vfs_read", sleeper.pid)
        probes = ",".join(f"kprobe:{p}*" for p in chosen)
        all_of_them = bpftrace_seconds(probes, sleeper.pid) - one
        rows.append(["bpftrace", total, f"{all_of_them:.2f}", "", ""])
    table(["kernel functions", "functions", "both s", "attach", "detach"], rows)
    print(f"longest answer of the daemon meanwhile: {longest:.2f} s")
    if len(rows) > 1:
        ratio = (attach + detach) / all_of_them
        print(f"{ratio:.2f} of bpftrace's, goal 1: {verdict(ratio <= 1)}")


tools.warn_of_others()
if args.rounds:
    hot()
if os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
    many()
else:
    print("this kernel lets none of its functions be traced: none are attached")
