# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the gate: the tests of suite gate, without those of tests/quarantine, in two lanes at once. Each lane
is the load of the other, which must not change what it says. What meson says is in logs called gate and
beside of the build directories, with the names of the tests that were asked for beside them.

A line of the quarantine is: NAME, the date on which it was written, the date until which it holds (at
most 14 days later), and what was seen, separated by spaces; # begins a comment. It has at most five lines.

Usage: gate.py run BUILD BUILD_SANITIZED SECONDS MULTIPLIER [--no-live]
                             runs the gate; ends its tests after so many seconds. Each test may take MULTIPLIER
                             times its time limit. Ends with 0 if all passed and none left anything behind.
       gate.py quarantined   prints a line about each test of the quarantine
       gate.py overdue       the same for the lines that hold no longer; ends with 1 if there are any
Ends with 2 if the quarantine or the tests are not as they must be, and with 128 + N if signal N ended it.
"""

import collections
import contextlib
import ctypes
import datetime
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

QUARANTINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quarantine")
MOST_LINES, MOST_DAYS = 5, 14

# The suites of the lanes, see run().
LANE_SUITES = {"live", "doc", "store", "proto", "unit", "fuzz"}
LEFTOVER_SECONDS, KILL_SECONDS = 10, 10

# Where the tests of a gate have their files: its pid is in the name.
DIRECTORY = "/tmp/stackd-gate.{}."

# What is called after the process that made it, and outlives it: maps of code, control groups.
PERF_MAP = re.compile(r"perf-(\d+)\.map")
CGROUP = re.compile(r"stackd-(?:[a-z]+-)+(\d+)\b.*")

# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# sys/mount.h
MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)

# Tests of some suites in a build directory; is_built_late: they are built when they are run.
Part = collections.namedtuple("Part", "build log suites is_built_late")


class BadLine(ValueError):
    pass


def parse_line(line):
    """Returns (name, date, until, what was seen) of a line."""
    words = line.split(None, 3)
    if len(words) < 4:
        raise BadLine(f"{line!r}: a line is NAME DATE UNTIL WHAT-WAS-SEEN")
    name, seen = words[0], words[3]
    try:
        date, until = (datetime.date.fromisoformat(word) for word in words[1:3])
    except ValueError as e:
        raise BadLine(f"{line!r}: {e}") from None
    if not 0 <= (until - date).days <= MOST_DAYS:
        raise BadLine(f"{line!r}: it may hold for {MOST_DAYS} days at most")
    return name, date, until, seen


def read_quarantine(path=QUARANTINE):
    with open(path, encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    if len(lines) > MOST_LINES:
        raise BadLine(f"{path} has {len(lines)} lines, {MOST_LINES} are allowed")
    return [parse_line(line) for line in lines]


def gate_names(tests, suites, quarantined):
    """Returns the names of the gate's tests of these suites. `tests` are as meson introspect has them."""
    in_gate = {}
    for test in tests:
        own = {suite.partition(":")[2] for suite in test["suite"]}
        if "gate" not in own:
            continue
        if test["name"] in in_gate:
            raise BadLine(f"{test['name']}: two tests of suite gate have that name")
        if not own & LANE_SUITES:
            raise BadLine(f"{test['name']}: no lane runs its suites {sorted(own)}")
        in_gate[test["name"]] = own
    unknown = set(quarantined) - set(in_gate)
    if unknown:
        raise BadLine(f"{', '.join(sorted(unknown))}: quarantined, but no test of suite gate")
    names = [name for name, own in in_gate.items() if own & set(suites) and name not in quarantined]
    # Without a name meson would run all tests.
    if not names:
        raise BadLine(f"no test of suite gate is in {' or '.join(suites)}")
    return names


def names_of(part, quarantined):
    done = subprocess.run(["meson", "introspect", "--tests", part.build], stdout=subprocess.PIPE, check=True)
    return gate_names(json.loads(done.stdout), part.suites, quarantined)


class Lane(threading.Thread):
    """Runs parts of the gate one after the other. Its tests end when end() is called."""

    def __init__(self, parts, quarantined, multiplier, output):
        super().__init__()
        self.parts, self.multiplier, self.output = parts, multiplier, output
        self.names = {part: names_of(part, quarantined) for part in parts}
        self.lock, self.process, self.has_ended, self.is_good = threading.Lock(), None, False, False

    def begin(self, part):
        """Starts meson in a process group of its own. False if the lane has been told to end."""
        logs = os.path.join(part.build, "meson-logs")
        os.makedirs(logs, exist_ok=True)
        with open(os.path.join(logs, part.log + ".names"), "w", encoding="utf-8") as f:
            f.write("\n".join(self.names[part]))
        # However this process ends, so do the tests.
        argv = ["setpriv", "--pdeathsig", "TERM", "--"]
        argv += ["meson", "test", "-C", part.build, "-t", str(self.multiplier), "--logbase", part.log]
        argv += [] if part.is_built_late else ["--no-rebuild"]
        with self.lock:
            if self.has_ended:
                return False
            self.process = subprocess.Popen([*argv, *self.names[part]], stdin=subprocess.DEVNULL,
                                            stdout=self.output, stderr=self.output, process_group=0)
        return True

    def run(self):
        """Sets is_good last, so that a lane that ends by an exception is not good."""
        self.is_good = all([self.begin(part) and self.process.wait() == 0 for part in self.parts])

    def end(self):
        """Tells meson to end its tests, which clean up after themselves, or the build that it has begun."""
        with self.lock:
            self.has_ended = True
            if self.process and self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGTERM)


def parents():
    """Returns {pid: pid of the parent} of all processes."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            found[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
    return found


def children():
    """Returns the pids of the children of this process, with those whose parents have ended."""
    return [pid for pid, parent in parents().items() if parent == os.getpid()]


def descendants():
    """Returns the pids of the children of this process, of theirs, and so on."""
    below, found = parents(), {os.getpid()}
    while more := {pid for pid, parent in below.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def reap(kept):
    """Removes children that have ended, but for those that a lane waits for."""
    for pid in children():
        if pid not in kept:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def command_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return ""


def kill_leftovers():
    """Kills what tests have left behind, once it has had time to end, and then its children. Returns the pids
    of these processes. What cannot be killed is named."""
    begun, killed = time.monotonic(), set()
    while pids := children():
        took = time.monotonic() - begun
        if took > LEFTOVER_SECONDS:
            for pid in set(pids) - killed:
                print(f"left behind by a test, killed: {pid} {command_of(pid)}", flush=True)
                os.kill(pid, signal.SIGKILL)
            killed.update(pids)
        if took > LEFTOVER_SECONDS + KILL_SECONDS:
            print(f"these cannot be killed: {pids}", flush=True)
            break
        time.sleep(0.1)
        reap(())
    return killed


def mark_directories():
    """Returns [(directory, what is called after a process there)]."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        mounts = [words[1] for words in map(str.split, f) if words[2] in ("cgroup", "cgroup2")]
    return [("/tmp", PERF_MAP), *((mount, CGROUP) for mount in mounts)]


def marks():
    """Returns {path: pid} of what is called after the process that made it."""
    found = {}
    for directory, pattern in mark_directories():
        with contextlib.suppress(OSError):  # it may have been unmounted
            found.update((os.path.join(directory, name), int(match[1])) for name in os.listdir(directory)
                         if (match := pattern.fullmatch(name)))
    return found


def remove(path):
    """Removes a file, a link as such, or a control group and those in it."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    for group, _, _ in os.walk(path, topdown=False):
        os.rmdir(group)


def is_younger(path, pid):
    """True if the path has the own user, and the process is older; pids are used again within minutes."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        began = int(f.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        of_path = os.lstat(path)
        return of_path.st_uid == os.geteuid() and time.time() - of_path.st_ctime <= age + 0.1
    return False


def note_marks(own):
    """Adds what is called after a process of this gate that lives now to {path: pid}."""
    pids = descendants()
    own.update((path, pid) for path, pid in marks().items() if pid in pids and is_younger(path, pid))


def remove_marks(own):
    """Removes what note_marks() has seen and is still there without its process. Returns the paths."""
    left = [path for path, pid in own.items() if os.path.exists(path) and not os.path.exists(f"/proc/{pid}")]
    for path in left:
        try:
            remove(path)
            print(f"left behind by a test, removed: {path}", flush=True)
        except OSError as e:
            print(f"left behind by a test, cannot be removed: {e}", flush=True)
    return left


def mounts_below(directory):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        paths = [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split()[4]) for line in f]
    return [path for path in paths if path.startswith(directory + "/")]


def unmount_below(directory):
    """Takes away the mounts below a directory, the last one first. Returns where they were."""
    left = mounts_below(directory)[::-1]
    for path in left:
        failed = libc.umount2(os.fsencode(path), MNT_DETACH)
        why = f"cannot be unmounted: {os.strerror(ctypes.get_errno())}" if failed else "unmounted"
        print(f"left behind by a test, {why}: {path}", flush=True)
    return left


def directory_lock(path):
    """Returns a descriptor that marks the directory of a gate as used, or None if it is used or another user's."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if os.fstat(fd).st_uid == os.geteuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    os.close(fd)
    return None


def remove_old_directories():
    """Removes the directories of gates that were killed. One that has just begun has no lock yet, but lives.
    What is mounted there is not to be emptied."""
    for path in glob.glob(DIRECTORY.format("*") + "*"):
        is_alive = os.path.exists(f"/proc/{path.split('.')[-2]}")
        fd = None if is_alive else directory_lock(path)
        if fd is None:
            continue
        unmount_below(path)
        if not mounts_below(path):
            shutil.rmtree(path, ignore_errors=True)
        os.close(fd)


def handle_signals(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def set_up_process():
    """Orphans of the tests become children of this process, and it ends like the script that started it."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def interrupted(number, _):
        raise KeyboardInterrupt(number)

    handle_signals(interrupted)


def wait_for(lanes, seconds, own):
    """Waits for the lanes, and calls note_marks() each half a second: what a process makes right before it ends
    is not seen. Returns (0, None), or the exit code and why the lanes had to be ended."""
    until = time.monotonic() + seconds
    try:
        for lane in lanes:
            while lane.is_alive():
                lane.join(0.5)
                note_marks(own)
                reap([one.process.pid for one in lanes if one.process])
                if time.monotonic() > until:
                    return 1, f"the tests have taken {seconds} s"
    except KeyboardInterrupt as e:
        return 128 + e.args[0], f"ended by {signal.Signals(e.args[0]).name}"
    return 0, None


def run_lanes(lanes, seconds, own):
    """Does what wait_for() does with lanes that it starts and ends."""
    for lane in lanes:
        lane.start()
    result = wait_for(lanes, seconds, own)
    handle_signals(signal.SIG_IGN)
    for lane in lanes:
        lane.end()
        lane.join()
    return result


def run(build, sanitized, seconds, multiplier, with_live):
    """Runs the gate. Returns the exit code."""
    quarantined = [line[0] for line in read_quarantine()]
    live = [Part(build, "gate", ("live",), False)] if with_live else []
    beside = [Part(sanitized, "gate", ("unit", "proto", "fuzz"), True),
              Part(build, "beside", ("doc", "store", "proto"), False)]
    set_up_process()
    remove_old_directories()
    own = {}
    with tempfile.TemporaryDirectory(prefix=os.path.basename(DIRECTORY).format(os.getpid()), dir="/tmp",
                                     ignore_cleanup_errors=True) as directory:
        lock = directory_lock(directory)
        os.chmod(directory, 0o1777)
        os.environ["TMPDIR"] = directory
        with open(os.path.join(sanitized, "meson-logs", "output"), "w", encoding="utf-8") as output:
            lanes = [Lane(live, quarantined, multiplier, None), Lane(beside, quarantined, multiplier, output)]
            code, reason = run_lanes(lanes, seconds, own)
        left = [*kill_leftovers(), *unmount_below(directory), *remove_marks(own)]
        os.close(lock)
    if reason:
        print(reason, flush=True)
    return code or (0 if not left and all(lane.is_good for lane in lanes) else 1)


def print_quarantine(lines):
    for name, date, until, seen in lines:
        print(f"quarantined since {date}, until {until}: {name}: {seen}")


def main(argv):
    if len(argv) in (5, 6) and argv[0] == "run" and argv[5:] in ([], ["--no-live"]):
        return run(argv[1], argv[2], int(argv[3]), int(argv[4]), not argv[5:])
    if argv == ["quarantined"]:
        print_quarantine(read_quarantine())
    elif argv == ["overdue"]:
        overdue = [line for line in read_quarantine() if line[2] < datetime.date.today()]
        print_quarantine(overdue)
        return 1 if overdue else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadLine as e:
        print(f"gate.py: {e}", file=sys.stderr)
        sys.exit(2)
