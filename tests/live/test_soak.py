#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the daemon keeps within its size, that sixty snapshots do not make it grow, and that
its end, by SIGTERM or SIGKILL, leaves no BPF program, map or link behind."""

from harness import *

GROWTH = 8 << 20
MAPS = 48 << 20
# 64 MiB with 300 processes; a host that builds software at the same time has thousands.
RSS = 96 << 20


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) << 10


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def bpf_ids(pid):
    """Returns {(kind, id)} of the BPF objects that a process holds."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                for kind, number in re.findall(r"^(prog|map|link)_id:\s*(\d+)$", f.read(), re.M):
                    found.add((kind, int(number)))
    return found


def bpf_ids_of_host(bpftool):
    found = set()
    for kind in ("prog", "map", "link"):
        text = run([bpftool, "-j", kind, "list"]).out
        found |= {(kind, entry["id"]) for entry in json.loads(text or "[]")}
    return found


def ask(daemon, count):
    """Takes `count` snapshots; returns the daemon's open files after each."""
    files = []
    for _ in range(count):
        result = daemon.ctl("snapshot", "offcpu", "--window", "10s", "--format", "json")
        if not check(result.code == 0, f"snapshot: {result.code} {result.err}"):
            break
        files.append(open_files(daemon.process.pid))
        time.sleep(0.25)
    return files


def rss_at_rest(daemon):
    """Returns the least RSS of some seconds: the memory for large answers is given back after a
    while."""
    sizes = []
    for _ in range(24):
        sizes.append(rss_bytes(daemon.process.pid))
        time.sleep(0.5)
    return min(sizes)


def check_growth(daemon):
    """Checks that snapshots do not make the daemon grow. New processes on a busy host make it grow
    too, so an equally long time without snapshots is compared."""
    files = ask(daemon, 20)
    start = rss_at_rest(daemon)
    begun = time.monotonic()
    files_late = ask(daemon, 40)
    asked = rss_at_rest(daemon)
    time.sleep(time.monotonic() - begun - 12)
    unasked = rss_at_rest(daemon)
    grown, drift = asked - start, max(unasked - asked, 0)
    text = f"RSS grew by {grown >> 10} KiB in 40 snapshots, {drift >> 10} as long without"
    check(grown < drift + GROWTH, text)
    check(unasked <= RSS, f"RSS is {unasked >> 10} KiB of {RSS >> 10}")
    # If a file stayed open for each answer, there would be fifty more.
    early, late = files[5], files_late[-1]
    check(late <= early + 10, f"open files: {early} early, {late} late")


def check_gone(bpftool, ids, text):
    kinds = {kind for kind, _ in ids}
    check({"prog", "map"} <= kinds, f"{text}: it held {len(ids)} BPF objects of {sorted(kinds)}")
    check_until(lambda: not ids & bpf_ids_of_host(bpftool), f"{text}: no object is left",
                lambda: sorted(ids & bpf_ids_of_host(bpftool)))


need_live()
bpftool = need_tool("bpftool")
daemon = Daemon("window.length=500ms", "window.keep=10s")
# The history is full after ten seconds; before that, growth is expected.
time.sleep(11)
check_growth(daemon)
status = daemon.status()
check_nothing_lost(status, "status")
maps = status["map_bytes"]
check(maps <= MAPS, f"BPF maps by default: {maps >> 10} KiB of {MAPS >> 10}")
held = bpf_ids(daemon.process.pid)
check(daemon.stop() == 0, f"SIGTERM: exit {daemon.process.returncode}")
check(not os.path.exists(daemon.socket), "SIGTERM: the socket is gone")
check_gone(bpftool, held, "SIGTERM")

daemon = Daemon()
held = bpf_ids(daemon.process.pid)
daemon.process.kill()
daemon.process.wait()
check_gone(bpftool, held, "SIGKILL")
finish()
