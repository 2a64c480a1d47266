#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of counting a hot tracepoint's calls by stack, and of streaming them one by
one, beside bpftrace. Goal: at most bpftrace's cost, and no more calls streamed than the limit.
Where the kernel's functions can be traced, it also measures how long many of them take to attach
and detach. Goal: no longer than bpftrace, while the daemon answers and loses nothing."""

import atexit
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from bench import arguments, load, spread, table, verdict

args = arguments(__doc__, rounds=8, calls=300000, functions=2000, cpu=1, pattern="*_show",
                 traced="t:raw_syscalls:sys_enter")

import harness  # noqa: E402
import tools  # noqa: E402

OTHERS = ("probe.offcpu.enabled=no", "probe.oncpu.enabled=no")
FOREVER = "probe.stackcount.max_cpu=10000"
MANY = "probe.stackcount.max_functions=100000"
KINDS = {"t:": "tracepoint:", "": "kprobe:"}
SPEC = next(f"{word}{args.traced[len(letter):]}" for letter, word in KINDS.items()
            if args.traced.startswith(letter))
SCRIPT = SPEC + ' /comm == "ioloop"/ { @[kstack, ustack] = count(); }'
EACH = (SPEC + ' /comm == "ioloop"/ '
        '{ printf("%llu %s %d %d %d%s%s\\n", nsecs, comm, pid, tid, cpu, kstack, ustack); }')
RATE = 1000  # the default of snoop's --rate


class Counted(tools.Stackd):
    """stackd with a session that counts each system call."""

    def __enter__(self):
        super().__enter__()
        started = self.daemon.ctl("start", "stackcount", args.traced, "--comm",
                                  "ioloop")
        assert started.code == 0, str(started)
        return self


class Streamed(tools.Stackd):
    """stackd with a client that receives each system call."""

    calls, begin, client, out = [], 0.0, None, None

    def __enter__(self):
        super().__enter__()
        self.out = tempfile.TemporaryFile("w+")
        argv = [os.environ["STACKCTL"], "-S", self.daemon.socket, "snoop",
                args.traced, "--comm", "ioloop", "--json"]
        self.client = subprocess.Popen(argv, stdout=self.out, stderr=subprocess.PIPE,
                                       encoding="utf-8")
        harness.wait_until(self._has_session, "the session")
        self.begin = time.monotonic()
        return self

    def _has_session(self):
        sessions = self.daemon.call("io.stackd.Sessions")["sessions"]
        return any(s["probe"] == "stacksnoop" for s in sessions)

    def __exit__(self, *args):
        seconds = time.monotonic() - self.begin
        time.sleep(3)  # the sums of the calls that were not sent arrive once a second
        self.client.send_signal(signal.SIGINT)
        err = self.client.communicate(timeout=60)[1]
        self.out.seek(0)
        streamed = sum(1 for _ in self.out)
        held = re.search(r"([\d,]+) of [\d,]+ calls were not printed", err)
        held = int(held[1].replace(",", "")) if held else 0
        Streamed.calls.append((streamed, held, streamed <= RATE * (seconds + 1)))
        super().__exit__(*args)


def run():
    """Returns the ns of a system call that does nothing."""
    argv = ["taskset", "-c", str(args.cpu), load(args, "ioloop"), "getppid", str(args.calls),
            "/dev/null"]
    return float(harness.run(argv).out)


def tracers():
    found = [tools.Nothing(), Counted("every call", *OTHERS, FOREVER),
             Counted("in its budget", *OTHERS), Streamed("streamed", *OTHERS, FOREVER)]
    if shutil.which("bpftrace") and tools.mount_tracefs():
        found.append(tools.Peer("bpftrace", "bpftrace", "-e", SCRIPT))
        found.append(tools.Peer("bpftrace, streamed", "bpftrace", "-e", EACH))
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
    for ours, theirs in (("every call", "bpftrace"), ("streamed", "bpftrace, streamed")):
        if theirs in times:
            ratio = (min(times[ours]) - base) / (min(times[theirs]) - base)
            print(f"{ours}: {ratio:.2f} of bpftrace's, goal 1: {verdict(ratio <= 1)}")
    for streamed, held, is_limited in Streamed.calls:
        print(f"{streamed} streamed and {held} counted, of {args.calls}, {RATE} a second: "
              f"{verdict(is_limited and abs(streamed + held - args.calls) <= args.calls / 100)}")


# Prefixes of functions that an idle machine hardly calls. Tracing functions that it calls all the
# time stops an emulated machine.
QUIET = """acpi pci pcie xfrm ip6 ipv6 inet6 tcp udp udpv6 crypto key keyctl x509 scsi ata drm fb snd
usb nfs iommu amd intel efi tpm mce selinux apparmor aa tomoyo smack audit ima evm landlock hugetlb ksm
swap migrate devlink ethtool ethnl fib fib6 nf nexthop dm md xen hv kvm cpufreq thermal power regulator
gpio gpiod i2c spi phy mdio clk of hid input rtc led nvmem rfkill btrfs xfs fuse ext4 jbd2 rpc quota msi
ioapic mtrr microcode kernfs sysfs cpuset debugfs configfs module fw device bus class netdev genl
inet igmp ping raw bond vlan neigh arp dst zswap balloon pnp virtio vfio elv
scmi dax mmc nvme ext2 vfat fat isofs overlayfs ovl autofs devpts ramfs shmem mq sem msg shm""".split()
# Parts of names of the tracers' own functions, which run for each of their maps and events.
TRACERS = ("map_", "bpf", "trace", "perf", "ring_")


def prefixes(wanted):
    """Returns prefixes of names that fit at most `wanted` functions together, and the number they
    fit."""
    with open(f"{tools.TRACING}/available_filter_functions", encoding="ascii") as f:
        names = {line.split()[0] for line in f if "[" not in line}
    counts = {}
    for name in names:
        prefix = name.split("_", 1)[0]
        if "_" in name and prefix in QUIET:
            counts[prefix] = counts.get(prefix, 0) + 1
    for name in names:
        if any(word in name for word in TRACERS):
            counts.pop(name.split("_", 1)[0], None)
    chosen, total = [], 0
    for prefix, count in sorted(counts.items(), key=lambda item: -item[1]):
        if total + count <= wanted:
            chosen.append(prefix + "_")
            total += count
    return chosen, total


class Asking:
    """Asks the daemon for its status again and again; keeps the longest answer, in seconds."""

    def __init__(self, daemon):
        self.daemon, self.longest, self.ended = daemon, 0.0, False
        self.thread = threading.Thread(target=self._ask)

    def _ask(self):
        while not self.ended:
            start = time.monotonic()
            self.daemon.status()
            self.longest = max(self.longest, time.monotonic() - start)
            # It pauses between calls: asking without a pause is all that an emulated machine could
            # do.
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


def ask(daemon, method, **parameters):
    """Calls the daemon and waits for one reply. An emulated machine may need minutes, longer than
    stackctl waits. A Start with `more` is answered until its session ends, so `more` is not
    used."""
    with harness.Connection(daemon.socket) as connection:
        connection.send({"method": method, "parameters": parameters})
        reply = connection.receive()
    if "error" in reply:
        raise harness.VarlinkError(reply["error"], reply.get("parameters", {}))
    return reply["parameters"]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drains(daemon, begin_ns):
    """Returns (windows cut since begin_ns, the longest drain in s, gaps between them)."""
    reply = daemon.call("io.stackd.Windows", probe="offcpu")
    windows = sorted((w["start"]["ns"], w["end"]["ns"]) for w in reply["windows"]
                     if w["end"]["ns"] > begin_ns)
    gaps = sum(a[1] != b[0] for a, b in zip(windows, windows[1:])) + len(reply["gaps"])
    return len(windows), max((end - start) / 1e9 for start, end in windows), gaps


class Attached:
    """The times that a session took to attach and to detach, in seconds, and its number of
    functions."""

    def __init__(self, daemon, pid, target):
        start = time.monotonic()
        session = ask(daemon, "io.stackd.Start", probe="stackcount", filter={"pids": [pid]},
                      **target)["session"]
        self.attach = time.monotonic() - start
        self.functions = session["functions"]
        print(f"attached {self.functions} in {self.attach:.2f} s", flush=True)
        start = time.monotonic()
        ask(daemon, "io.stackd.Stop", session=session["id"])
        self.detach = time.monotonic() - start
        self.both = self.attach + self.detach

    def row(self, name, used=""):
        times = [f"{t:.2f}" for t in (self.both, self.attach, self.detach)]
        return [name, self.functions, *times, used]


def attach_ours(pid, **target):
    """Returns (one function, those of the target, CPU seconds of these, longest answer
    meanwhile)."""
    # It does not wait until the daemon has settled: a slow machine never settles, and ns do not
    # matter.
    daemon = harness.Daemon(MANY)
    print("the daemon has started", flush=True)
    with Asking(daemon) as asking:
        begin_ns = time.time_ns()
        one = Attached(daemon, pid, {"function": "vfs_statfs"})
        used = cpu_seconds(daemon.process.pid)
        all_of_them = Attached(daemon, pid, target)
        used = cpu_seconds(daemon.process.pid) - used
        status = daemon.status()
        lost = {p["name"]: p["lost"] for p in status["probes"] if p.get("lost")}
    print(f"lost meanwhile: {lost}; problems: {status['problems']}; longest cut: "
          f"{status['cut_max_ns'] / 1e6:.1f} ms")
    daemon.cut()
    windows, longest, gaps = drains(daemon, begin_ns)
    print(f"drains meanwhile: {windows} windows of {status['window_ns'] / 1e9:.0f} s, the longest "
          f"{longest:.2f} s, {gaps} gaps: "
          f"{verdict(not gaps and not lost and longest < 2 * status['window_ns'] / 1e9)}")
    daemon.stop()
    return one, all_of_them, used, asking.longest


def allow_files():
    """Allows a file for each function: beyond the limit bpftrace leaves functions out and is
    faster."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bpftrace_seconds(probes, pid):
    """Returns (time, CPU time) of bpftrace's whole life with these probes, its children
    included."""
    environment = {**os.environ, "BPFTRACE_MAX_PROBES": "100000"}
    script = f"{probes} /pid == {pid}/ {{ @ = count(); }} interval:ms:1 {{ exit(); }}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(["bpftrace", "-e", script], env=environment, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, preexec_fn=allow_files)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(pid, probes, **target):
    """Compares one pattern of stackd with bpftrace's probes for the same functions. Both need time
    for one function too: stackd loads its program, and bpftrace starts."""
    ours_one, ours, used, longest = attach_ours(pid, **target)
    rows = [ours.row("stackd", f"{used:.2f}"), ours_one.row("one of its")]
    if shutil.which("bpftrace"):
        one, one_used = bpftrace_seconds("kprobe:vfs_statfs", pid)
        seconds, their_used = bpftrace_seconds(",".join(f"kprobe:{p}" for p in probes), pid)
        rows.append(["bpftrace", f"{len(probes)} patterns", f"{seconds:.2f}", "", "",
                     f"{their_used:.2f}"])
        rows.append(["one of its", 1, f"{one:.2f}", "", "", f"{one_used:.2f}"])
    table(["kernel functions", "functions", "both s", "attach", "detach", "CPU s"], rows)
    print(f"longest answer of the daemon meanwhile: {longest:.2f} s")
    if len(rows) > 2:
        print(f"in all {ours.both / seconds:.2f} of bpftrace's, goal 1: "
              f"{verdict(ours.both <= seconds)}")
        print(f"beyond what one takes: {ours.both - ours_one.both:.2f} s, bpftrace "
              f"{seconds - one:.2f} s")


def many():
    """Attaches to a process that sleeps: the cost of its calls is not measured here."""
    tools.mount_tracefs()
    sleeper = subprocess.Popen(["sleep", "infinity"])
    atexit.register(harness.stop_process, sleeper)
    start = time.monotonic()
    chosen, total = prefixes(args.functions)
    print(f"{total} functions chosen in {time.monotonic() - start:.1f} s", flush=True)
    compare(sleeper.pid, [f"{p}*" for p in chosen], regexp=True, function=f"^({'|'.join(chosen)})")
    if args.pattern:
        print(f"one pattern of both, {args.pattern}", flush=True)
        compare(sleeper.pid, [args.pattern], function=args.pattern)


tools.warn_of_others()
if args.rounds:
    hot()
if os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
    if args.functions:
        many()
else:
    print("this kernel lets none of its functions be traced: none are attached")
