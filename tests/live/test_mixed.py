#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows programs as Debian ships them, at work: python3, perl, git, bash and, where they are
installed, postgres, redis and nginx. Of their waits, also of processes that live for milliseconds,
99 in 100 have a user stack that is whole, down to the thread's first function."""

import collections
import pwd

from harness import *

SECONDS = 10
# rounds of each program before the count begins, so that the daemon has read every file of it
ROUNDS_BEFORE = 2
GOAL = 0.99
PROGRAMS = {"bash", "dash", "echo", "git", "head", "ls", "nginx", "perl", "pgbench", "postgres", "rm",
            "runuser", "sed", "sleep", "sort", "tr", "true"}
POSTGRES = "/usr/lib/postgresql/15/bin"

PYTHON = """
import json, ssl, sqlite3, subprocess, sys, tempfile, threading, time
def work(n):
    for i in range(n):
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=(20,)) for i in range(3)]
for t in threads: t.start()
with tempfile.NamedTemporaryFile() as f:
    db = sqlite3.connect(f.name)
    db.execute("create table t (n int)")
    for i in range(5):
        db.execute("insert into t values (?)", (i,))
        db.commit()
subprocess.run(["/bin/true"])
for t in threads: t.join()
"""

PERL = """
use POSIX; use IO::Select; use Socket;
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC);
for (1 .. 20) {
    select(undef, undef, undef, 0.001);
    my $pid = fork();
    if (!$pid) { select(undef, undef, undef, 0.002); POSIX::_exit(0); }
    waitpid($pid, 0);
    my $text = `/bin/echo $_`;
}
"""

BASH = """
for i in 1 2 3 4 5; do
    echo "$i" | tr 1-5 a-e | { read -r line; : "$line"; }
    (read -rt 0.002 < <(sleep 0.005))
    text=$(ls / | sort | head -3)
    sed -n 1p /etc/passwd > /dev/null
done
"""

GIT = """
set -e
git init -q . && git config user.email a@b && git config user.name a
for i in 1 2 3; do
    echo "$i" > "file$i" && git add . && git commit -q -m "$i"
    git log --oneline > /dev/null && git status > /dev/null && git diff HEAD~0 > /dev/null
done
git gc -q && rm -rf .git file*
"""


class Load:
    """Runs a command over and over in a directory of its own until it is stopped."""

    def __init__(self, argv):
        self.argv = argv
        self.dir = make_temp_dir()
        os.chmod(self.dir, 0o755)
        self.notes = os.path.join(make_temp_dir(), "rounds")
        quoted = " ".join("'" + a.replace("'", "'\\''") + "'" for a in argv)
        # A program for the notes would be one more to measure; the shell's own commands start none.
        script = f"until [ -e {self.notes}.stop ]; do {quoted} || exit 1; echo >> {self.notes}; done"
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script], cwd=self.dir, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.dir},
        )
        atexit.register(stop_process, self.process)

    def rounds(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.argv[0]} ended with {self.process.returncode}")
        with contextlib.suppress(FileNotFoundError):
            return os.path.getsize(self.notes)
        return 0

    def end(self):
        with open(f"{self.notes}.stop", "w", encoding="ascii"):
            pass
        code = self.process.wait(HANG_SECONDS)
        check(code == 0, f"{os.path.basename(self.argv[0])} has worked: {code}")


class Server:
    """A server in the foreground, in a directory of its own."""

    def __init__(self, argv, directory, **kwargs):
        self.process = subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        **kwargs)
        atexit.register(stop_process, self.process)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        stop_process(self.process)


def postgres_start():
    """Starts a server and its load; None where there is no postgres."""
    if not os.path.exists(f"{POSTGRES}/pgbench"):
        leave_out("no postgres here")
        return None
    directory = make_temp_dir()
    user = pwd.getpwnam("postgres")
    os.chown(directory, user.pw_uid, user.pw_gid)
    owner = {"user": user.pw_uid, "group": user.pw_gid, "cwd": directory}
    data = f"{directory}/data"
    done = run([f"{POSTGRES}/initdb", "-D", data, "-A", "trust", "-N"], **owner)
    if not check(done.code == 0, f"initdb: {done.err.strip()[-200:]}"):
        return None
    server = Server([f"{POSTGRES}/postgres", "-D", data, "-k", directory, "-h", ""], directory,
                    user=user.pw_uid, group=user.pw_gid)
    ready = [f"{POSTGRES}/pg_isready", "-h", directory]
    wait_until(lambda: run(ready, **owner).code == 0, "postgres")
    bench = [f"{POSTGRES}/pgbench", "-h", directory, "-U", "postgres", "postgres"]
    run([*bench, "-i", "-q"], **owner)
    load = Load(["/usr/sbin/runuser", "-u", "postgres", "--", *bench, "-n", "-c", "2", "-T", "1"])
    return server, load


def redis_start():
    if not os.path.exists("/usr/bin/redis-server"):
        leave_out("no redis here")
        return None
    directory = make_temp_dir()
    sock = f"{directory}/redis"
    server = Server(["/usr/bin/redis-server", "--port", "0", "--unixsocket", sock, "--save", "",
                     "--appendonly", "yes", "--appendfsync", "always"], directory)
    wait_until(lambda: os.path.exists(sock), "redis")
    load = Load(["/usr/bin/redis-benchmark", "-s", sock, "-n", "400", "-c", "5", "-q", "-t", "set,get"]) if os.path.exists("/usr/bin/redis-benchmark") else None
    return server, load


def nginx_start():
    if not os.path.exists("/usr/sbin/nginx"):
        leave_out("no nginx here")
        return None
    directory = make_temp_dir()
    os.chmod(directory, 0o755)
    with open(f"{directory}/conf", "w", encoding="ascii") as f:
        f.write(f"""daemon off; user root; worker_processes 2; pid {directory}/pid; error_log {directory}/log;
        events {{ }} http {{ access_log {directory}/access;
        server {{ listen unix:{directory}/sock; root /usr/share; autoindex on; }} }}""")
    server = Server(["/usr/sbin/nginx", "-c", f"{directory}/conf"], directory)
    wait_until(lambda: os.path.exists(f"{directory}/sock"), "nginx")
    code = f"""
import socket, time
for i in range(50):
    s = socket.socket(socket.AF_UNIX)
    s.connect("{directory}/sock")
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    while s.recv(65536): pass
    time.sleep(0.002)
"""
    return server, Load(["/usr/bin/python3", "-c", code])


def is_whole(row):
    return not set(row["user"]["flags"]) - {"frame_pointers"}


def is_ours(row, begun_ns):
    """True if this test started the process: its name and start time fit. exe may be unknown."""
    name = os.path.basename(row["process"].get("exe") or "") or row["comm"]
    return (row["process"]["start"]["ns"] >= begun_ns and row.get("user") and row["count"]
            and (name in PROGRAMS or name.startswith(("python3", "redis-"))))


def account(rows):
    """Returns {program: Counter of waits by how their user stacks ended}."""
    programs = collections.defaultdict(collections.Counter)
    for row in rows:
        name = os.path.basename(row["process"].get("exe") or "") or f"({row['comm']})"
        programs[name]["whole" if is_whole(row) else ",".join(row["user"]["flags"])] += row["count"]
    return programs


def check_whole(rows):
    programs = account(rows)
    total = sum(programs.values(), collections.Counter())
    for name, ends in sorted(programs.items()):
        n = sum(ends.values())
        short = {end: count for end, count in ends.items() if end != "whole"}
        print(f"  {name}: {n} waits, {ends['whole'] / n:.2%} whole", short or "")
    n = sum(total.values())
    check(n > 1000 and total["whole"] >= GOAL * n,
          f"{total['whole'] / max(n, 1):.2%} of {n} user stacks are whole: {dict(total)}")


def print_cut(rows, most=20):
    """Prints where incomplete stacks end."""
    ends = collections.Counter()
    for row in rows:
        if not is_whole(row):
            names = frame_names(row)
            exe = os.path.basename(row["process"].get("exe") or "") or row["comm"]
            kernel = [n for n in frame_names(row, "kernel") if not n.startswith(("schedule", "__"))]
            ends[f"{exe} {row['user']['flags']} {' < '.join(names[:2] + names[-1:])} | "
                 f"{' < '.join(kernel[:3])}"] += row["count"]
    for text, count in ends.most_common(most):
        print(f"  incomplete: {count} {text}")


need_live()
daemon = Daemon("window.length=2s")
begun_ns = time.time_ns()
started = [s for s in (postgres_start(), redis_start(), nginx_start()) if s]
commands = {
    "/usr/bin/python3": ["-c", PYTHON],
    "/usr/bin/perl": ["-e", PERL],
    "/bin/bash": ["-c", BASH],
    "/usr/bin/git": None,
}
loads = [load for _, load in started if load]
for program, args in commands.items():
    if not os.path.exists(program):
        leave_out(f"no {program} here")
    elif args:
        loads.append(Load([program, *args]))
    else:
        loads.append(Load(["/bin/sh", "-c", GIT]))
wait_until(lambda: min(load.rounds() for load in loads) >= ROUNDS_BEFORE, "each to be seen")
since_ns = daemon.cut()
time.sleep(SECONDS)
for load in loads:
    load.end()
snapshot = daemon.snapshot("--since", f"@{since_ns // NS_PER_S + 1}")
rows = [row for row in snapshot["rows"] if is_ours(row, begun_ns)]
for server, _ in started:
    server.stop()
check_whole(rows)
print_cut(rows)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
