#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that `stuck` names what threads wait for and who holds it or is at the other end: a chain of five
mutexes with what its last holder waits for, a deadlock of three threads, a read-write lock, a file
lock with the process that /proc/locks says has it, pipes both ways, a FIFO, Unix and TCP sockets as
ss says, a stopped and a frozen process, a FUSE mount whose server does not answer. The daemon has a network of its own, as its unit gives it,
and a netlink socket of the host's."""

import ctypes
import fcntl
import socket

from harness import *


def rows_of(daemon, pid, reason):
    """Returns {tid: row} of the waits of a process for this reason."""
    daemon.cut()
    rows = daemon.ctl_json("stuck", "--idle", "-p", pid)["rows"]
    return {row["tid"]: row for row in rows if row["reason"] == reason}


def row_of(daemon, pid, reason):
    """Returns the row of the wait of a process with one thread, when it was looked up in time."""
    row = {}

    def is_found():
        nonlocal row
        row = rows_of(daemon, pid, reason).get(pid, {})
        unknown = row.get("holders_unknown", "")
        return ("object" in row or unknown) and "too long" not in unknown

    wait_until(is_found, f"the wait of {pid} for {reason}")
    return row


def only_child(pid):
    """Returns the only child of a process with one thread, 0 as long as it has none."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        return int(children.read() or 0)


def check_text(daemon, pid, counts, text, unwrap=str):
    """Checks how often each phrase is at least in the text of stuck, of which unwrap() may join the lines
    that a long path wraps. It may take several questions: on a busy host, a look-up may not end in
    time, and the answer then has no holders."""
    last = ""

    def has_all():
        nonlocal last
        last = unwrap(daemon.ctl("stuck", "-p", pid, "-n", 0).out)
        return all(last.count(phrase) >= count for phrase, count in counts.items())

    check_until(has_all, text, lambda: last)


def locked(daemon, kind, n, waiters):
    """Starts prog_locks. Returns it, its threads, and the rows of the waits for mutexes."""
    program = Program("prog_locks", kind, n).ready()
    tids = [int(tid) for tid in next(line for line in program.lines if line.startswith("tids"))
            .split()[1:]]
    # The user stack says what the futex is; it is read when a window ends, and holders are looked up
    # while nothing else is.
    rows = wait_until(
        lambda: (lambda rows: len(rows) == waiters
                 and all("holders" in row for row in rows.values()) and rows)(
                     rows_of(daemon, program.pid, "mutex")),
        f"{waiters} waits for mutexes with holders")
    return program, tids, rows


def check_chain(daemon):
    program, tids, rows = locked(daemon, "chain", 5, 4)
    for i, tid in enumerate(tids[:4]):
        row = rows[tid]
        check([holder["tid"] for holder in row["holders"]] == [tids[i + 1]],
              f"thread {i} waits for the next one: {row['holders']}")
        check(row["object"].startswith("0x"), f"thread {i}: the address of the lock")
        check([step["tid"] for step in row["chain"]] == tids[i + 1:], f"thread {i}: the chain")
        reasons = [step["reason"] for step in row["chain"]]
        check(reasons == ["mutex"] * (3 - i) + ["sleep"], f"thread {i}: the root sleeps: {reasons}")
        check("deadlock" not in row, f"thread {i}: no deadlock")
    phrases = {f", held by prog_locks (thread {tid})\n": 1 for tid in tids[1:]}
    # The root is in the chains of all four.
    phrases[f"prog_locks (thread {tids[4]}) waits for a timer (nanosleep), for "] = 4
    check_text(daemon, program.pid, phrases, "the text names the holders and the root")
    program.end()


def check_ring(daemon):
    program, tids, rows = locked(daemon, "ring", 3, 3)
    for i, tid in enumerate(tids):
        check(rows[tid].get("deadlock") is True, f"ring: thread {i} is in a deadlock")
        check([step["tid"] for step in rows[tid]["chain"]] == [tids[(i + k) % 3] for k in (1, 2)],
              f"ring: thread {i}: the others are its chain")
    check_text(daemon, program.pid, {"deadlock: ": 3}, "ring: the text says so")
    program.end()


WAITER = "import fcntl, sys\nfcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX)"


def name_self(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME


def check_file_lock(daemon):
    path = os.path.join(daemon.dir, "lock\nfile")
    name_self("a\nholder\n")
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiter = spawn([sys.executable, "-c", WAITER, path])
        row = row_of(daemon, waiter.pid, "flock")
        check(row["object"] == path, f"the path of the file: {row['object']!r}")
        check([(holder["pid"], holder["comm"]) for holder in row["holders"]] == [(os.getpid(), "a\nholder\n")],
              f"the holder: {row['holders']}")
        with open("/proc/locks", encoding="utf-8") as locks:
            check(any(f" {os.getpid()} " in line and "FLOCK" in line and "->" not in line
                      for line in locks), "/proc/locks says the same")
        check_text(daemon, waiter.pid, {f"(pid {os.getpid()})": 1, "lock\\nfile,": 1},
                   "the text, escaped", unwrap=lambda out: " ".join(out.split()))
    check(waiter.wait(HANG_SECONDS) == 0, "the program got the lock")
    name_self("python3")


def check_child_deadlock(daemon, options, is_inherited):
    """Two programs that each hold a lock and wait for a child, which waits for the other's lock."""
    paths = [os.path.join(daemon.dir, name) for name in ("one", "two")]
    # Each takes its own lock first: the children go on when both say that they have it.
    code = 'echo; read line; flock "$0" true; true'
    holders = [spawn(["flock", *options, own, "sh", "-c", code, other], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, start_new_session=True)
               for own, other in (paths, reversed(paths))]
    try:
        for holder in holders:
            check(holder.stdout.readline() == b"\n", "the program has its lock")
        for holder in holders:
            holder.stdin.close()
        check_both_wait(daemon, [holder.pid for holder in holders], is_inherited)
    finally:
        for holder in holders:
            os.killpg(holder.pid, signal.SIGKILL)


def check_both_wait(daemon, holders, is_inherited):
    shells = [only_child(holder) for holder in holders]
    waiters = [wait_until(lambda shell=shell: only_child(shell), "the shell's child") for shell in shells]
    pids = ",".join(map(str, [*holders, *shells, *waiters]))

    def rows_found():
        daemon.cut()
        rows = {row["tid"]: row for row in daemon.ctl_json("stuck", "-p", pids, "--no-idle")["rows"]}
        return all("deadlock" in rows.get(waiter, {}) for waiter in waiters) and rows

    rows = wait_until(rows_found, "a deadlock through two children")
    for i, waiter in enumerate(waiters):
        other = 1 - i
        # The shell and its child may have inherited the locked file: of these three, two wait for the
        # third.
        family = [holders[other], shells[other], waiters[other]]
        check({holder["pid"] for holder in rows[waiter]["holders"]} ==
              set(family if is_inherited else family[:1]), f"the holders: {rows[waiter]['holders']}")
        check([step["pid"] for step in rows[waiter]["chain"]] ==
              (family[2:] if is_inherited else [*family, holders[i], shells[i]]),
              f"the chain goes through the children: {rows[waiter]['chain']}")
    check(sorted(rows) == sorted(waiters), f"the waits for children are idle: {sorted(rows)}")


# A server whose workers take turns in accept(). Each that has a client takes another lock, too, and
# forgets to let it go.
SERVER = """
import fcntl, os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
for i in range(2):
    if os.fork() == 0:
        turn, data = (open(path, "w") for path in sys.argv[1:])
        while True:
            fcntl.flock(turn, fcntl.LOCK_EX)
            client, _ = listener.accept()
            fcntl.flock(turn, fcntl.LOCK_UN)
            fcntl.flock(data, fcntl.LOCK_EX)
            client.send(b"x")
            client.recv(1)
            client.close()
print(listener.getsockname()[1], flush=True)
os.wait()
"""


def check_turns(daemon):
    """Workers of a server that wait for their turn to accept are idle; one that has a client and waits
    for a lock of another worker that is back in accept is not."""
    server = spawn([sys.executable, "-c", SERVER, *(os.path.join(daemon.dir, name) for name in ("turn", "data"))],
                   stdout=subprocess.PIPE, start_new_session=True)
    address = ("127.0.0.1", int(server.stdout.readline()))
    try:
        check_workers(daemon, server.pid, {"accept": 1, "flock idle": 1}, "nobody has a client")
        first = socket.create_connection(address)
        check(first.recv(1) == b"x", "the first client is served")
        check_workers(daemon, server.pid, {"accept": 1, "tcp": 1}, "it keeps its worker")
        first.close()
        check_workers(daemon, server.pid, {"accept": 1, "flock idle": 1}, "the worker waits for its turn")
        with socket.create_connection(address):
            check_workers(daemon, server.pid, {"accept": 1, "flock": 1},
                          "the second client's worker waits for a lock of one that waits for a client")
    finally:
        os.killpg(server.pid, signal.SIGKILL)


def check_workers(daemon, server, wanted, what):
    """Waits until the children of a process wait for these reasons, and those hidden are the idle ones."""
    last = None

    def is_so():
        nonlocal last
        with open(f"/proc/{server}/task/{server}/children", encoding="utf-8") as children:
            pids = ",".join(children.read().split())
        daemon.cut()
        rows = daemon.ctl_json("stuck", "--idle", "-p", pids)["rows"]
        busy = daemon.ctl_json("stuck", "--no-idle", "-p", pids)
        last = [row["reason"] + (" idle" if row["reason"] == "flock" and row["idle"] else "") for row in rows]
        idle = sum(row["idle"] for row in rows)
        return (sorted(last) == sorted(word for word, n in wanted.items() for _ in range(n))
                and busy["idle"]["threads"] == idle and len(busy["rows"]) == len(rows) - idle)

    check_until(is_so, what, lambda: last)


def check_rwlock(daemon):
    program = Program("prog_locks", "rwlock", 3).ready()
    tids = [int(tid) for tid in next(line for line in program.lines if line.startswith("tids"))
            .split()[1:]]
    rows = wait_until(
        lambda: (lambda rows: len(rows) == 2 and all(row.get("holders") for row in rows.values())
                 and rows)(rows_of(daemon, program.pid, "rwlock")),
        "two waits for a read-write lock with a holder")
    for tid in tids[:2]:
        check([holder["tid"] for holder in rows[tid]["holders"]] == [tids[2]],
              f"thread {tid}: the writer has the lock: {rows[tid]}")
        check([step["reason"] for step in rows[tid]["chain"]] == ["sleep"], "which sleeps")
    program.end()


def check_other_end(daemon, code, fds, reason, what, is_object):
    """Starts Python code that waits for something of which this process has the other end."""
    waiter = spawn([sys.executable, "-c", code, *map(str, fds)], pass_fds=fds)
    row = row_of(daemon, waiter.pid, reason)
    check(is_object(row.get("object", "")), f"{what}: the object is {row.get('object')!r}")
    check([holder["pid"] for holder in row.get("holders", [])] == [os.getpid()],
          f"{what}: this process is at the other end: {row}")
    check("holders_unknown" not in row, f"{what}: nothing is unknown")
    return waiter


READ = "import os, sys; os.read(int(sys.argv[1]), 1)"
WRITE = "import os, sys; os.write(int(sys.argv[1]), bytes(1 << 20))"
RECEIVE = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).recv(1)"


def check_pipes(daemon):
    r, w = os.pipe()
    name = f"pipe {os.fstat(r).st_ino}"
    waiter = check_other_end(daemon, READ, [r], "pipe-read", "pipe", lambda text: text == name)
    check_text(daemon, waiter.pid, {f"{name}, other end: ": 1, f"(pid {os.getpid()})": 1},
               "the text names it", unwrap=lambda out: " ".join(out.split()))
    os.close(w)
    check(waiter.wait(HANG_SECONDS) == 0, "the end of the pipe ends the wait")
    os.close(r)
    r, w = os.pipe()
    waiter = check_other_end(daemon, WRITE, [w], "pipe-write", "full pipe",
                             lambda text: text.startswith("pipe "))
    waiter.kill()
    path = os.path.join(daemon.dir, "fifo")
    os.mkfifo(path)
    waiter = spawn([sys.executable, "-c", "import sys; open(sys.argv[1])", path])
    row = row_of(daemon, waiter.pid, "fifo-open")
    check(row.get("object") == path and not row.get("holders"), f"a FIFO nobody opens: {row}")
    waiter.kill()


def ss_says(options, pid):
    """True if ss lists a socket of this process in a line."""
    done = run(["ss", "-H", *options])
    return [line for line in done.out.splitlines() if f"pid={pid}," in line]


def check_sockets(daemon):
    path = os.path.join(daemon.dir, "server")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    served, _ = listener.accept()
    fd = os.dup(client.fileno())
    client.close()
    waiter = spawn([sys.executable, "-c", RECEIVE, str(fd)], pass_fds=[fd])
    os.close(fd)
    row = row_of(daemon, waiter.pid, "unix")
    check(row.get("object") == f"Unix socket {path}", f"the name of the server: {row}")
    check([holder["pid"] for holder in row.get("holders", [])] == [os.getpid()],
          "this process is the server")
    peer = os.fstat(served.fileno()).st_ino
    check(any(f" {peer} " in line + " " for line in ss_says(["-xp"], waiter.pid)),
          "ss names the same peer")
    waiter.kill()

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    client = socket.create_connection(listener.getsockname())
    served, (_, port) = listener.accept()
    fd = os.dup(client.fileno())
    client.close()
    waiter = spawn([sys.executable, "-c", RECEIVE, str(fd)], pass_fds=[fd])
    os.close(fd)
    row = row_of(daemon, waiter.pid, "tcp")
    ends = f"TCP 127.0.0.1:{port} to 127.0.0.1:{listener.getsockname()[1]}, established"
    check(row.get("object", "").startswith(ends), f"the connection: {row}")
    check([holder["pid"] for holder in row.get("holders", [])] == [os.getpid()],
          "this process is the server")
    lines = ss_says(["-tpn"], waiter.pid)
    check(any(f"127.0.0.1:{port} " in line and f":{listener.getsockname()[1]} " in line
              for line in lines), f"ss says the same: {lines}")
    waiter.kill()
    served.close()


def check_stopped(daemon):
    sleeper = spawn(["sleep", "3600"])
    os.kill(sleeper.pid, signal.SIGSTOP)
    row = row_of(daemon, sleeper.pid, "stopped")
    check("who sent the signal" in row.get("holders_unknown", ""), f"stopped by somebody: {row}")
    sleeper.kill()


def check_frozen(daemon):
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        mount = next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)
    if not mount or not os.access(mount, os.W_OK):
        return
    name = f"/stackd-holders-{os.getpid()}"
    os.mkdir(mount + name)
    sleeper = spawn(["sleep", "3600"])
    try:
        with open(f"{mount}{name}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(sleeper.pid))
        with open(f"{mount}{name}/cgroup.freeze", "w", encoding="utf-8") as file:
            file.write("1")
        row = row_of(daemon, sleeper.pid, "frozen")
        check(row.get("object", "").endswith(name), f"the frozen control group: {row}")
    finally:
        with open(f"{mount}{name}/cgroup.freeze", "w", encoding="utf-8") as file:
            file.write("0")
        sleeper.kill()
        sleeper.wait()
        os.rmdir(mount + name)


FUSE_SERVER = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"stackd-test", sys.argv[1].encode(), b"fuse.stackd-test", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
# Answers FUSE_INIT (26) by version 7.31, see struct fuse_init_out, and no request that comes after it.
unique = struct.unpack_from("IIQ", os.read(fuse, 1 << 17))[2]
init = struct.pack("IIIIHHII", 7, 31, 1 << 16, 0, 12, 12, 1 << 16, 1).ljust(64, b"\0")
os.write(fuse, struct.pack("IiQ", 16 + len(init), 0, unique) + init)
print(fuse, flush=True)
sys.stdin.read()
"""


def fuse_server(daemon, name):
    """Mounts a file system that answers nothing. Returns its server, the descriptor and the mount point."""
    point = os.path.join(daemon.dir, name)
    os.mkdir(point)
    server = subprocess.Popen([sys.executable, "-c", FUSE_SERVER, point], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    fd = server.stdout.readline().strip()
    check(fd, "a FUSE server has mounted")
    return server, fd, point


def check_fuse(daemon):
    if not os.path.exists("/dev/fuse"):
        return
    servers = [fuse_server(daemon, name) for name in ("other mount", "slow mount")]
    server, fd, point = servers[1]
    try:
        waiter = spawn(["stat", "slow mount/a file"], cwd=daemon.dir)
        row = row_of(daemon, waiter.pid, "fuse")
        check(row.get("object") == f"{point}/a file (fuse.stackd-test)", f"the path in a slow call: {row}")
        with open(f"/proc/{server.pid}/fdinfo/{fd}", encoding="utf-8") as file:
            is_said = "fuse_connection:" in file.read()
        if is_said:
            check([holder["pid"] for holder in row.get("holders", [])] == [server.pid], f"its server: {row}")
        else:
            check("does not say" in row.get("holders_unknown", ""), f"an old kernel: {row}")
    finally:
        for server, _, point in servers:
            subprocess.run(["umount", "-l", point], check=False)
            server.stdin.close()
            server.wait()
    waiter.wait()


class Enclosed(Daemon):
    """A stackd in a network of its own, with the sockets that stackd.socket passes."""

    def __init__(self, *overrides):
        super().__init__(*overrides, start=False)
        self.passed = os.path.join(self.dir, "passed.sock")
        # NETLINK_SOCK_DIAG, which the module socket has no name for.
        with (socket.socket(socket.AF_UNIX) as listener,
              socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as diag):
            listener.bind(self.passed)
            listener.listen()
            self.start(
                prefix=["sh", "-c",
                        'exec 3<&"$0" 4<&"$1"; shift; LISTEN_PID=$$ LISTEN_FDS=2 exec unshare -n "$@"',
                        str(listener.fileno()), str(diag.fileno())],
                socket=self.passed,
                pass_fds=[listener.fileno(), diag.fileno()],
            )


need_live()
need_tool("ss")
need_tool("unshare")
daemon = Enclosed("window.length=1s")
check_chain(daemon)
check_ring(daemon)
check_rwlock(daemon)
check_file_lock(daemon)
check_child_deadlock(daemon, ["--close"], False)
check_child_deadlock(daemon, [], True)
check_turns(daemon)
check_pipes(daemon)
check_sockets(daemon)
check_stopped(daemon)
check_frozen(daemon)
check_fuse(daemon)
check_nothing_lost(daemon.status(), "status")
finish()
