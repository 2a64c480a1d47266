#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that each of some 110 waits, which prog_kinds makes, has its reason in stuck and in snapshot
offcpu: in the words of a daemon that saw the waits begin, and of one that was started later. What the
host lacks is left out by name. Of a file that hangs, the type of its file system is said. With the
word "gate", only those are made that leave no loop device and no control group behind if the test is
killed."""

from harness import *

# These need loop devices, control groups or the trace buffer, which the host shares.
SHARED = {"loop-read", "loop-direct", "fsfreeze-write", "fsfreeze-mkdir", "frozen-v1",
          "frozen-v1-pipe", "frozen-v2", "memory-max", "trace-pipe", "kmsg"}
# A daemon that starts later does not see a thread that is about to end; and the kernel ends the wait
# for a lease after 45 seconds.
ONLY_EARLY = {"pid-ns", "lease"}


# Waits in epoll, and whether they are idle.
IDLE = {"epoll": 1, "program-lock": 0, "replication": 0}


class Kinds(Program):
    """Processes that wait, each named after its kind."""

    def __init__(self, kinds):
        super().__init__("prog_kinds", make_temp_dir(), *sorted(kinds))
        self.of_pid = {}
        left = set(kinds)
        while left:
            word, kind, rest = self.read_until(("kind ", "skip ")).split(" ", 2)
            left.discard(kind)
            if word == "skip":
                leave_out(f"{kind}: {rest}")
            else:
                pid, reason = rest.split()
                self.of_pid[int(pid)] = (kind, reason)

    def reasons(self, rows):
        """Returns the reason and the kernel frames of the longest wait of each kind."""
        found = {}
        for row in sorted(rows, key=lambda row: row["total_ns"]):
            kind = self.of_pid.get(row["process"]["pid"], ("",))[0]
            if kind and row.get("comm") == kind[:15]:
                found[kind] = (row.get("reason"), row["state"], frame_names(row, "kernel")[:6])
        return found

    def check(self, ask, label, without=()):
        """Checks the reasons in the rows that ask() returns, once all waits have begun."""
        wanted = {kind: reason for kind, reason in self.of_pid.values() if kind not in without}

        wrong = {}

        def all_right():
            found = self.reasons(ask(",".join(map(str, self.of_pid))))
            wrong.clear()
            wrong.update({kind: found.get(kind) for kind, reason in wanted.items()
                          if not found.get(kind) or found[kind][0] != reason})
            return not wrong

        with contextlib.suppress(TimeoutError):
            wait_until(all_right, label)
        for kind, reason in wanted.items():
            check(kind not in wrong, f"{label}: {kind} waits for {reason}: {wrong.get(kind, '')}")


def rows_of(daemon, *words):
    """Returns a function that asks for the rows of some processes: none until they were seen."""

    def ask(pids):
        daemon.cut()
        answer = daemon.ctl(*words, "--idle", "-n", "0", "-p", pids, "--format", "json")
        return json.loads(answer.out)["rows"] if answer.code in (0, 5) else []

    return ask


def check_file(daemon, kinds):
    """A read of a FUSE file that hangs is for no disk, and the file system has a name."""
    pid = next((pid for pid, (kind, _) in kinds.of_pid.items() if kind == "fuse-read"), None)
    if not pid:
        return
    row = daemon.ctl_json("stuck", "-p", pid)["rows"][0]
    check(row.get("object", "").endswith("/file (fuse.kinds)"), f"the object: {row.get('object')}")
    text = daemon.ctl("stuck", "-p", pid).out
    check("D waits for data of a file to be read" in text and "disk" not in text, f"text: {text}")
    # Who has a lock of the kernel is not known; a row without a word on it reads as if nobody had it.
    pid = next(pid for pid, (kind, _) in kinds.of_pid.items() if kind == "inode-lock")
    row = daemon.ctl_json("stuck", "-p", pid)["rows"][0]
    check(row.get("holders") or row.get("holders_unknown"), f"the holder of an inode's lock: {row}")


def check_idle(daemon, kinds):
    """A wait in epoll for a lock of the program is not idle, and the program is asked who has it."""
    pids = {kind: pid for pid, (kind, _) in kinds.of_pid.items()}
    for kind, is_idle in IDLE.items():
        rows = daemon.ctl_json("stuck", "-p", pids[kind], "--idle")["rows"]
        check([row["idle"] for row in rows] == [is_idle], f"{kind} is idle: {rows}")
    text = daemon.ctl("stuck", "-p", pids["program-lock"], "--stacks").out
    check("pg_blocking_pids" in text, f"who can tell the holder: {text}")


def check_idle_on_disk(daemon, kinds):
    """A daemon that reads the windows from disk says the same, also where rows need no names."""
    pids = {kind: pid for pid, (kind, _) in kinds.of_pid.items()}
    span = daemon.ctl_json("snapshot", "offcpu", "-p", pids["epoll"])["coverage"]["used"]
    check(daemon.stop() == 0, "the daemon ends")
    daemon.start()
    since, until = (f"@{span[end]['ns'] // 10**9}" for end in ("start", "end"))
    for kind, is_idle in IDLE.items():
        rows = daemon.ctl_json("snapshot", "offcpu", "--since", since, "--until", until, "-p", pids[kind])["rows"]
        waits = [row for row in rows if row["state"] == "S"]
        check(waits and all(row["idle"] == is_idle for row in waits), f"on disk, {kind} is idle: {waits}")


need_live()
names = [line.split()[0] for line in run([os.path.join(PROGS, "prog_kinds")]).out.splitlines()]
check(len(set(names)) == len(names) > 100, f"{len(names)} kinds")
if "gate" in sys.argv[1:]:
    names = [name for name in names if name not in SHARED]
daemon = Daemon("window.length=1s")
kinds = Kinds(names)
kinds.check(rows_of(daemon, "stuck"), "stuck")
kinds.check(rows_of(daemon, "snapshot", "offcpu"), "snapshot")
check_file(daemon, kinds)
check_idle(daemon, kinds)
check_idle_on_disk(daemon, kinds)
# While it starts, stackd reads what each process has mapped, for which it has to wait here.
later = Daemon("window.length=1s")
problems = later.status()["problems"]
check("mmap-lock" not in names or any(text.startswith("reading /proc hangs for") for text in problems),
      f"processes that cannot be read are a problem: {problems}")
refused = later.ctl("start", "stackcount", "u:c:malloc")
check("mmap-lock" not in names or (refused.code == 6 and "would keep every process of this host from forking" in
                                   refused.err), f"no probe in a program begins meanwhile: {refused}")
kinds.check(rows_of(later, "stuck"), "stuck, started later", ONLY_EARLY)
kinds.check(rows_of(later, "snapshot", "offcpu"), "snapshot, started later", ONLY_EARLY)
check(kinds.end() == 0, "the program ends")
finish()
