#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows a memory cgroup that is too small: the kernel refuses maps and programs half-way, or kills
the daemon. Nothing of it stays behind, pinned or leaked, and where it goes on it says which probes
are off."""

from harness import *

# The limits go from less than the libraries take to more than the daemon ever needs.
LIMITS_MIB = [4, 16, 32, 48, 64, 72, 80, 88, 96, 112, 128, 512]
ROOM_MIB = 2


def cgroup_make():
    """Makes a memory cgroup for this test; returns it and the name of its limit, of either
    version."""
    for root, limit in (("/sys/fs/cgroup", "memory.max"),
                        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        path = f"{root}/stackd-test-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        atexit.register(cgroup_remove, path)
        if os.path.exists(f"{path}/{limit}"):
            return path, limit
    skip("needs a memory cgroup that can be written to")


def cgroup_remove(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)


def usage(group):
    for name in ("memory.current", "memory.usage_in_bytes"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"{group}/{name}", encoding="ascii") as f:
                return int(f.read())
    raise AssertionError(f"no usage in {group}")


def limit_set(group, limit, size):
    with open(f"{group}/{limit}", "w", encoding="ascii") as f:
        f.write(str(size))


def bpf_objects(bpftool):
    """Returns {(kind, id, name)} of all BPF objects on the host."""
    found = set()
    for kind in ("prog", "map", "link"):
        entries = json.loads(run([bpftool, "-j", kind, "list"]).out or "[]")
        found |= {(kind, entry["id"], entry.get("name", "")) for entry in entries if "id" in entry}
    return found


def is_ours(before, after):
    """Returns the objects that are new and have names of the daemon's. Other programs on this host
    may load objects meanwhile."""
    return {entry for entry in after - before if entry[2] in names}


def limited_start(daemon, group, limit, mib):
    limit_set(group, limit, mib << 20)

    def enter():
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    with open(daemon.log_path, "wb") as log:
        daemon.process = subprocess.Popen(daemon.argv, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, preexec_fn=enter)
    atexit.register(stop_process, daemon.process)

    def settled():
        return daemon.process.poll() is not None or daemon.ctl("status").code == 0

    check_until(settled, f"{mib} MiB: an end or an answer", daemon.log)


def check_ended(daemon, mib):
    code, log = daemon.process.returncode, daemon.log()
    if code == -signal.SIGKILL:
        return "ended by the kernel"
    check(code in (1, 77) and "stackd" in log, f"{mib} MiB: exit {code}: {log[-300:]}")
    return "refused to start"


def check_runs(daemon, mib):
    status = daemon.status()
    off = [probe for probe in status["probes"] if probe["state"] == "failed"]
    for probe in off:
        text = f"{mib} MiB: {probe['name']} is off: {probe.get('reason')}"
        check(probe.get("reason") and status["problems"], text)
    # The daemon may run out of memory later, when it builds windows.
    for _ in range(5):
        daemon.ctl("snapshot", "offcpu", "--window", "5s")
    return f"ran, {len(off)} probes off"


def check_session(daemon, group, limit):
    """Starts a session without memory: it is refused and leaves nothing, or the kernel ends the
    daemon."""
    with_all = bpf_objects(bpftool)
    limit_set(group, limit, usage(group) + (ROOM_MIB << 20))
    result = daemon.ctl("start", "offcpu", "-m", "1")
    if "closed the connection" in result.err:
        wait_until(lambda: daemon.process.poll() is not None, "the daemon's end")
        return "a session: ended by the kernel"
    if result.code == 0:
        check(daemon.ctl("stop", result.out.strip()).code == 0, "it had memory")
    else:
        check("could not attach" in result.err, f"a session is refused with a reason: {result}")
    limit_set(group, limit, 512 << 20)
    check_gone(with_all, "a session without room")
    check(daemon.ctl("snapshot", "offcpu", "--window", "5s").code == 0, "recording goes on")
    return f"a session: exit {result.code}"


def check_gone(before, text):
    def left():
        return sorted(is_ours(before, bpf_objects(bpftool)))

    check_until(lambda: not left(), f"{text}: nothing is left in the kernel", left)


need_live()
bpftool = need_tool("bpftool")
group, limit = cgroup_make()
daemon = Daemon(start=False)
daemon.argv += ["-o", "window.length=1s", "-o", "probe.offwake.enabled=yes"]
before = bpf_objects(bpftool)
daemon.start()
names = {entry[2] for entry in bpf_objects(bpftool) - before} - {""}
check(names, f"its objects are known by {len(names)} names")
daemon.stop()
outcomes = {}
for mib in LIMITS_MIB:
    before = bpf_objects(bpftool)
    limited_start(daemon, group, limit, mib)
    if daemon.process.poll() is None:
        outcomes[mib] = check_runs(daemon, mib)
        if mib == LIMITS_MIB[-1]:
            print(check_session(daemon, group, limit))
        stop_process(daemon.process)
        code = daemon.process.returncode
        check(code in (0, -signal.SIGKILL), f"{mib} MiB: it ends with {code}")
    else:
        outcomes[mib] = check_ended(daemon, mib)
    check_gone(before, f"{mib} MiB, {outcomes[mib]}")
check("ran" not in outcomes[LIMITS_MIB[0]], f"with too little memory it does not run: {outcomes}")
check(outcomes[LIMITS_MIB[-1]] == "ran, 0 probes off", "with enough memory all probes run")
with open("/proc/self/mounts", encoding="utf-8") as f:
    mounts = [line.split()[1] for line in f if line.split()[2] == "bpf"]
pinned = [name for mount in mounts for name in os.listdir(mount) if "stackd" in name]
check(not pinned, f"nothing is pinned in {mounts}: {pinned}")
finish()
