# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracers that run beside a load: stackd with two settings, and its peers. Import this after
bench.arguments()."""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import harness
from bench import HERE

BPF_STATS = "/proc/sys/kernel/bpf_stats_enabled"
TRACING = "/sys/kernel/tracing"
TRACING_TYPES = ("tracing", "raw_tracepoint", "tracepoint", "kprobe", "perf_event")


def programs():
    """Returns {id: program} of all BPF programs on the host."""
    text = harness.run(["bpftool", "-j", "prog", "list"]).out
    return {p["id"]: p for p in json.loads(text or "[]")}


def programs_of(pid):
    """Returns {id: program} of the BPF programs that a process holds, by themselves or by links."""
    held = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                held |= {int(line.split()[1]) for line in f if line.startswith("prog_id:")}
    return {number: p for number, p in programs().items() if number in held}


def warn_of_others():
    """Prints a warning if other tracers or loads run: they make all figures wrong."""
    others = sorted({p.get("name", "?") for p in programs().values() if p["type"] in TRACING_TYPES})
    if others:
        print(f"warning: BPF programs of others are loaded: {', '.join(others)}")
    with open("/proc/loadavg", encoding="ascii") as f:
        load = float(f.read().split()[0])
    if load > 0.5:
        print(f"warning: the host is busy, load {load}")


class Nothing:
    name = "base"

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


class Stackd:
    def __init__(self, name, *overrides):
        self.name, self.overrides = name, overrides

    def __enter__(self):
        self.daemon = harness.Daemon(*self.overrides)
        # At its start the daemon reads about the host, on the other CPU: no part of a switch.
        harness.wait_until(self._has_settled, f"{self.name} to settle")
        return self

    def _has_settled(self):
        before = self._ticks()
        time.sleep(1)
        return self._ticks() - before <= 0.02 * os.sysconf("SC_CLK_TCK")

    def _ticks(self):
        with open(f"/proc/{self.daemon.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def __exit__(self, *args):
        self.daemon.stop()


class Peer:
    """A tool that traces until SIGINT; text holds its output afterwards."""

    def __init__(self, name, *argv, programs_least=1):
        self.name, self.argv, self.programs_least = name, argv, programs_least

    def __enter__(self):
        before = set(programs())
        self.out = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out
        )
        atexit.register(harness.stop_process, self.process)
        harness.wait_until(lambda: self._has_loaded(before), f"{self.name} to load")
        harness.wait_until(self._has_attached, f"{self.name} to attach")
        # More programs may follow the first.
        time.sleep(0.5)
        # fails if the tool has ended, and other programs were the new ones
        self._has_loaded(before)
        return self

    def _has_loaded(self, before):
        if self.process.poll() is not None:
            self.out.seek(0)
            raise RuntimeError(f"{self.name} ended: {self.out.read()[-500:]}")
        return len(set(programs()) - before) >= self.programs_least

    def _has_attached(self):
        """True if it holds its links: on a busy host that is long after it has loaded its
        programs."""
        path = f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(path):
            with contextlib.suppress(FileNotFoundError):
                kind = os.readlink(os.path.join(path, fd))
                if "bpf_link" in kind or "[perf_event]" in kind:
                    return True
        return False

    def __exit__(self, *args):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.seek(0)
        self.text = self.out.read().decode("utf-8", "replace")
        self.out.close()


def libbpf_tool(name):
    """Returns the path of a tool of libbpf-tools, if it is installed: NAME-libbpf from Debian 13
    on."""
    return shutil.which(name + "-libbpf") or shutil.which(name)


def mount_tracefs():
    """Mounts tracefs, which bpftrace needs; returns whether it is there."""
    if not os.path.exists(f"{TRACING}/events"):
        harness.run(["mount", "-t", "tracefs", "none", TRACING])
    return os.path.exists(f"{TRACING}/events")


def peers():
    """Returns libbpf-tools' offcputime and a bpftrace script of the same job, where installed."""
    found = []
    if libbpf_tool("offcputime"):
        found.append(Peer("offcputime", libbpf_tool("offcputime"), "1000"))
    if shutil.which("bpftrace") and mount_tracefs():
        found.append(Peer("bpftrace", "bpftrace", os.path.join(HERE, "offcpu.bt")))
    return found


def ours():
    return [
        Stackd("stackd"),
        Stackd("stackd short", "probe.offcpu.sample_below=100us"),
        Stackd("stackd full", "probe.offcpu.min_wait=1us"),
    ]


@contextlib.contextmanager
def bpf_stats():
    """Makes the kernel keep run times of BPF programs, which costs some time, while this is
    held."""
    with open(BPF_STATS, encoding="ascii") as f:
        before = f.read()
    try:
        with open(BPF_STATS, "w", encoding="ascii") as f:
            f.write("1")
        yield
    finally:
        with open(BPF_STATS, "w", encoding="ascii") as f:
            f.write(before)


def run_times(before, after):
    """Returns (runs, ns) that programs loaded after `before` have used."""
    new = [p for number, p in after.items() if number not in before]
    return sum(p.get("run_cnt", 0) for p in new), sum(p.get("run_time_ns", 0) for p in new)
