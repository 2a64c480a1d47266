# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the live tests share: a stackd of their own on a private socket, stackctl as a user
calls it, programs of known truth, and checks that say what was expected.

STACKD, STACKCTL and PROGS (a directory) name what is tested; meson sets them. Where STACKD_UNIT
names a unit, its daemon is tested instead of one that the test starts.
"""

import atexit
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import noise

SKIP = 77
NS_PER_S = 1_000_000_000

STACKD = os.environ.get("STACKD", "stackd")
STACKCTL = os.environ.get("STACKCTL", "stackctl")
PROGS = os.environ.get("PROGS", ".")

# Room for the waits and stacks of all else that runs on the host, for tests that record the shortest
# waits of all threads: a host that builds software has tens of thousands of different ones.
ROOM = ("probe.offcpu.max_keys=131072", "probe.offcpu.stack_ring=32M",
        "probe.offwake.max_keys=65536", "window.max_memory=256M")

# What must happen may take so long. It is no claim: nothing takes so long on a busy host, so that what has
# not come by then hangs. An emulated machine is slower: tests/vm/guest_job.py sets more.
HANG_SECONDS = int(os.environ.get("STACKD_HANG_SECONDS", "120"))

_failures = []
_no_verdicts = []
_daemons = set()
_noise = noise.Noise()

# SIGTERM ends a test through exit(), so that its registered cleanup runs.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def leave_out(text):
    """Says that a part of the test is left out, and why. Where tests must run, that is a failure
    unless tests/may_skip has the test and the reason."""
    print(f"left out: {text}", flush=True)


def check(condition, text):
    """Prints the result. A failure is noted and the test goes on, so that one run shows all
    failures."""
    if condition:
        print(f"ok: {text}")
    else:
        print(f"FAILED: {text}", flush=True)
        _failures.append(text)
    return bool(condition)


# The gate runs a test with this argument to leave out what the load of the host decides.
EVENTS_ONLY = "events" in sys.argv[1:]


def estimate(condition, text, factor=1.0):
    """Does what check() does for shares, rates and times that the host can change. Where the condition is false
    and the noise of the host so far can have caused that, there is no verdict. `factor` is that by which a value
    misses its bound; if more than the noise can cause, that is a failure. Of events only, it prints the result
    and judges nothing."""
    if EVENTS_ONLY:
        print(f"{'seen' if condition else 'not seen'}, which is not judged: {text}")
        return bool(condition)
    _noise.note()
    if condition or _noise.factor() <= factor:
        return check(condition, text)
    _no_verdicts.append(f"{text} ({_noise.words()})")
    print(f"no verdict: {_no_verdicts[-1]}", flush=True)
    return False


def off(value, bound):
    """Returns the factor, 1 or more, between two numbers; infinite where there is none."""
    ratio = value / bound if bound else 0
    return max(ratio, 1 / ratio) if ratio > 0 else float("inf")


def estimate_least(value, least, text):
    return estimate(value >= least, text, off(value, least))


def estimate_most(value, most, text):
    return estimate(value <= most, text, off(value, most))


def _near(value, expected, tolerance, text, slack):
    """Returns the number within bounds that is nearest to value, and the text with the numbers."""
    within = abs(expected) * tolerance + slack
    percent = (value - expected) / expected * 100 if expected else float("inf")
    return (min(max(value, expected - within), expected + within),
            f"{text}: {value} is within {tolerance:.1%} of {expected} ({percent:+.2f} %)")


def check_near(value, expected, tolerance, text, slack=0, most=noise.MOST_APART):
    """Estimates that value is within tolerance (a share of expected) plus slack (absolute) of expected. `most` is the
    factor by which noise can change the value. It is noise.MOST where expected is not measured, too."""
    bound, text = _near(value, expected, tolerance, text, slack)
    factor = off(value, bound)
    return estimate(value == bound, text, factor if factor < most else float("inf"))


def check_sum(value, expected, tolerance, text, slack=0):
    """Checks as an event what check_near() estimates: two numbers from the same data, which the host cannot
    change."""
    bound, text = _near(value, expected, tolerance, text, slack)
    return check(value == bound, text)


def failures():
    """Returns the texts of the checks that have failed so far."""
    return list(_failures)


def run_parts(*parts):
    """Runs the functions whose names are the arguments of the test, or all, and ends like finish()."""
    names = sys.argv[1:] or [part.__name__ for part in parts]
    unknown = set(names) - {part.__name__ for part in parts}
    if unknown:
        sys.exit(f"{sys.argv[0]} has no part {', '.join(sorted(unknown))}")
    for part in parts:
        if part.__name__ in names:
            part()
    finish()


def finish():
    """Prints the failed checks and the estimates without a verdict, and ends with the test's exit code, which is
    that of a skip if there are only the latter; must be called last."""
    if _failures:
        print(f"{len(_failures)} checks failed:")
        for text in _failures:
            print(f"  {text}")
        sys.exit(1)
    if _no_verdicts:
        print(f"{len(_no_verdicts)} estimates have no verdict")
        sys.exit(SKIP)
    sys.exit(0)


def interrupt_ns():
    """Returns the time that interrupts and the hypervisor took since boot, on all CPUs. Kernels may
    leave it out of a thread's CPU time, but the thread is on its CPU meanwhile."""
    with open("/proc/stat", encoding="ascii") as f:
        _, _, _, _, _, irq, softirq, steal = [int(v) for v in f.readline().split()[1:9]]
    return (irq + softirq + steal) * NS_PER_S // os.sysconf("SC_CLK_TCK")


def _note_margin(seconds, what):
    """Appends how much of its deadline a wait took to the file STACKD_MARGINS, for tests/stress.py."""
    path = os.environ.get("STACKD_MARGINS")
    if path:
        with open(path, "a", encoding="utf-8") as margins:
            margins.write(f"{seconds / HANG_SECONDS:.4f} {what}\n")


def wait_until(condition, what):
    """Polls until condition() is true, and returns its value. What does not come is a failure: it raises
    TimeoutError and prints what the daemons do."""
    begun = time.monotonic()
    while True:
        asked = time.monotonic()
        value = condition()
        _noise.note()
        took = time.monotonic() - begun
        if value:
            _note_margin(took, what)
            return value
        if took > HANG_SECONDS:
            for daemon in _daemons:
                daemon.diagnose()
            raise TimeoutError(f"waited {took:.0f} s for {what}")
        # Where programs are slow, asking must not take the time of what is waited for.
        time.sleep(min(max(0.01, 3 * (time.monotonic() - asked)), 1))


def check_until(condition, text, seen=lambda: ""):
    """Does what wait_until() does, but notes what does not come as a failed check, with what seen() returns, and the
    test goes on. Returns the condition's value; None if it did not come."""
    try:
        value = wait_until(condition, text)
    except TimeoutError as e:
        check(False, f"{text}: {e}: {seen()}")
        return None
    check(True, text)
    return value


def subject_sleep(seconds):
    """Sleeps where the time itself is what the test is about: the length of a wait, a range without events.
    Tests of the gate wait for an effect by wait_until()."""
    time.sleep(seconds)


def need_live():
    """Skips the test where the daemon cannot run at all."""
    if os.geteuid() != 0:
        skip("needs root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip("this kernel has no BTF (/sys/kernel/btf/vmlinux)")
    if os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:
        skip("needs the pid namespace of the host")


def need_tool(name):
    path = shutil.which(name)
    if not path:
        skip(f"needs {name}")
    return path


def make_temp_dir():
    path = tempfile.mkdtemp(prefix="stackd-live-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def stop_process(process):
    """Ends a process that this test started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def spawn(argv, **kwargs):
    """Starts a process that ends with the test at the latest, however the test ends."""
    process = subprocess.Popen(argv, **kwargs)
    atexit.register(stop_process, process)
    return process


class Result:
    """The exit code and the output of a command."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    def __str__(self):
        return f"{' '.join(self.argv)}: exit {self.code}, stderr: {self.err.strip()[:500]}"


def run(argv, timeout=HANG_SECONDS, **kwargs):
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout,
        **kwargs,
    )
    _noise.note()
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Result([str(a) for a in argv], done.returncode, out, err)


def with_stacks(args):
    """Returns the words of a call of stackctl, with an option that prints stacks if it prints rows."""
    words = [str(a) for a in args]
    if words and words[0] in ("snapshot", "stuck", "record", "watch"):
        words.insert(1, "--stacks")
    return words


class Daemon:
    """A stackd with its own socket and an empty config file, with a client's methods to call it."""

    def __init__(self, *overrides, binary=None, start=True, **kwargs):
        self.dir = make_temp_dir()
        self.socket = os.path.join(self.dir, "stackd.sock")
        self.config = os.path.join(self.dir, "stackd.conf")
        self.log_path = os.path.join(self.dir, "log")
        with open(self.config, "w", encoding="utf-8"):
            pass
        self.argv = [binary or STACKD, "-c", self.config, "-o", f"control.socket={self.socket}"]
        self.store = os.path.join(self.dir, "stackd.db")
        self.argv += ["-o", f"store.path={self.store}"]
        # What a test sees of its own programs must not depend on how busy the rest of the host is.
        # Tests of folding, of the memory of queries and of the budget set other limits.
        # Neither must it depend on what stackd itself costs, on a machine of whatever speed.
        self.argv += ["-o", "window.max_rows=0", "-o", "query.max_memory=1G"]
        self.argv += ["-o", "budget.cpu=off", "-o", "budget.memory=16G"]
        for override in overrides:
            self.argv += ["-o", override]
        if start:
            self.start(**kwargs)

    def start(self, prefix=(), socket=None, **kwargs):
        """Starts the daemon. prefix goes before the command; socket is where it answers, if not at
        its own."""
        self.socket = socket or self.socket
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, *self.argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kwargs
            )
        atexit.register(stop_process, self.process)
        self._wait_ready()

    def _wait_ready(self):
        _daemons.add(self)
        _noise.roots.add(self.process.pid)  # a unit's is not below this process

        def ready():
            if self.process.poll() is not None:
                self._give_up(f"the daemon ended with {self.process.returncode}")
            return self.ctl("status").code == 0

        try:
            wait_until(ready, "the daemon to be ready")
        except TimeoutError:
            self._give_up(f"not ready: {self.ctl('status')}")

    def _give_up(self, text):
        print(f"FAILED: {text}\n{self.log()}")
        sys.exit(1)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def diagnose(self):
        """Prints what each thread of the daemon waits for, its status and the end of its log."""
        if self.process.poll() is not None:
            return
        print(f"daemon {self.process.pid}:")
        for task in sorted(os.listdir(f"/proc/{self.process.pid}/task"), key=int):
            for name in ("comm", "wchan", "stack"):
                with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/task/{task}/{name}",
                                                        encoding="utf-8", errors="replace") as f:
                    print(f"  {task} {name}: {f.read().strip()}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            print(run([STACKCTL, "-S", self.socket, "status"], timeout=20).out)
        print("\n".join(self.log().splitlines()[-40:]), flush=True)

    def ctl(self, *args, **kwargs):
        """Runs stackctl with these arguments on this daemon's socket. Its text has the stacks."""
        return run([STACKCTL, "-S", self.socket, *with_stacks(args)], **kwargs)

    def ctl_lines(self, *args, **kwargs):
        """Does what ctl() does, but for each row, the text has only one line."""
        return run([STACKCTL, "-S", self.socket, *[str(a) for a in args]], **kwargs)

    def ctl_json(self, *args):
        result = self.ctl(*args, "--format", "json")
        if result.code not in (0, 5):
            raise AssertionError(str(result))
        return json.loads(result.out)

    def snapshot(self, *args):
        """Returns all rows up to now, with idle ones, as JSON."""
        self.cut()
        return self.ctl_json("snapshot", "offcpu", "--idle", *args)

    def folded(self, *args):
        """Returns {stack text: value in us} of the folded snapshot."""
        result = self.ctl("snapshot", "offcpu", "-f", *args)
        if result.code != 0:
            raise AssertionError(str(result))
        return parse_folded(result.out)

    def status(self):
        return self.call("io.stackd.Status")

    def call(self, method, **parameters):
        """Makes one call over the socket, without stackctl; returns the last reply's parameters
        with all rows."""
        with Connection(self.socket) as connection:
            return connection.call(method, **parameters)

    def cut(self, probe="offcpu"):
        """Ends the probe's open window and returns that instant, in ns since the epoch."""
        asked = time.time_ns()

        # Cuts that clients cause are at least window.min_length apart: this asks until there is
        # one.
        def cut_since():
            try:
                reply = self.call("io.stackd.Snapshot", probe=probe, window_ns=NS_PER_S, top=1)
            except VarlinkError as e:
                if e.name != "io.stackd.NoData":  # the very first window is still open
                    raise
                return None
            end = reply["coverage"]["used"]["end"]["ns"]
            return end if end >= asked else None

        return wait_until(cut_since, "a cut")

    def settled(self, program):
        """Waits until the daemon knows all that it needs for whole and named stacks of a Program, or of the process
        with this pid. Returns what it was given."""
        pid = getattr(program, "pid", program)
        wait_until(lambda: self.call("io.stackd.Settled", pid=pid)["settled"], f"process {pid} to be settled")
        return program

    def kernel_objects(self):
        """Counts the kernel objects it holds, by kind. Programs, maps, links and events go with
        their last fd. A bpf_iter is open only while the daemon visits all threads."""
        held = ("bpf-prog", "bpf-map", "bpf_link", "perf_event")
        counts = {}
        path = f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(path):
            with contextlib.suppress(FileNotFoundError):
                kind = os.readlink(os.path.join(path, fd))
                # Only anonymous inodes count: the daemon also reads files with such names, e.g.
                # perf-PID.map.
                if kind.startswith("anon_inode:") and any(name in kind for name in held):
                    counts[kind] = counts.get(kind, 0) + 1
        return counts

    def started_objects(self):
        """Returns kernel_objects() once the program for open waits is loaded: a thread of its own
        loads it, last."""

        def is_whole():
            offcpu = next(p for p in self.status()["probes"] if p["name"] == "offcpu")
            names = [program["name"] for program in offcpu.get("programs") or ()]
            return any(name.startswith("on_open_wait") for name in names)

        wait_until(is_whole, "the program of open waits")
        return self.kernel_objects()

    def settled_objects(self, expected):
        """Returns kernel_objects() once the kernel has had time to free what is not expected."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: self.kernel_objects() == expected, "the kernel to let go")
        return self.kernel_objects()

    def stop(self):
        """Sends SIGTERM, as a service manager does; returns the exit code."""
        stop_process(self.process)
        return self.process.returncode


class UnitProcess:
    """The daemon's process as systemd knows it."""

    def __init__(self, unit):
        self.unit = unit

    def _property(self, name):
        return run(["systemctl", "show", "--value", "-p", name, self.unit]).out.strip()

    @property
    def pid(self):
        return int(self._property("MainPID"))

    @property
    def returncode(self):
        """Returns the exit code once the process has ended, else None."""
        return int(self._property("ExecMainStatus")) if self.poll() is not None else None

    def poll(self):
        ended = self._property("ActiveState") in ("inactive", "failed")
        return int(self._property("ExecMainStatus")) if ended else None


class UnitDaemon(Daemon):
    """stackd as its unit starts it, with the test's settings in a file of /etc/stackd. They stay: the next test has
    its own, and before one without any, tests/vm/guest_job.py removes them."""

    SETTINGS = "/etc/stackd/stackd.conf.d/live.conf"

    def __init__(self, *overrides, binary=None):
        self.unit = os.environ["STACKD_UNIT"]
        self.dir = make_temp_dir()
        self.socket = "/run/stackd/stackd.sock"
        self.process = UnitProcess(self.unit)
        os.makedirs(os.path.dirname(self.SETTINGS), exist_ok=True)
        with open(self.SETTINGS, "w", encoding="utf-8") as settings:
            # As in Daemon: on a slow machine, waits would be sampled to keep within the budget.
            for override in ("budget.cpu=off", *overrides):
                name, value = override.split("=", 1)
                section, key = name.rsplit(".", 1)
                settings.write(f"[{section}]\n{key} = {value}\n")
        self._systemctl("restart")
        self._wait_ready()

    def start(self):
        self._systemctl("start")
        self._wait_ready()

    def _systemctl(self, verb):
        done = run(["systemctl", verb, self.unit])
        if done.code != 0:
            self._give_up(str(done))

    def log(self):
        argv = ["journalctl", "--no-pager", "-o", "cat", "-u", self.unit]
        return run(argv).out

    def stop(self):
        self._systemctl("stop")
        return self.process.returncode


if os.environ.get("STACKD_UNIT"):
    Daemon = UnitDaemon  # every test takes its daemon class by this name


class Connection:
    """A Varlink client without stackctl."""

    def __init__(self, path, timeout=HANG_SECONDS):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.socket.close()

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        while b"\0" not in self.buffer:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("closed by the daemon")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.send({"method": method, "parameters": parameters, "more": True})
        rows = []
        while True:
            reply = self.receive()
            if "error" in reply:
                raise VarlinkError(reply["error"], reply.get("parameters", {}))
            result = reply.get("parameters", {})
            rows += result.get("rows", [])
            if not reply.get("continues"):
                break
        if "rows" in result:
            result["rows"] = rows
        return result


class VarlinkError(Exception):
    def __init__(self, name, parameters):
        super().__init__(f"{name} {parameters}")
        self.name, self.parameters = name, parameters


class Program:
    """A program of known truth: it is started, begins on a line of input, prints results, and ends
    on request."""

    def __init__(self, name, *args, path=None):
        self.argv = [path or os.path.join(PROGS, name), *[str(a) for a in args]]
        self.lines = []
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        atexit.register(stop_process, self.process)
        self.pid = self.process.pid

    def read_until(self, word):
        """Reads lines up to the one that starts with word, and returns that line."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"{self.argv}: ended before it said {word!r}")
            self.lines.append(line.strip())
            if line.startswith(word):
                return line.strip()

    def ready(self):
        self.read_until("ready")
        return self

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self

    def done(self):
        self.read_until("done")
        return self

    def end(self):
        """Lets the program end by itself; returns the exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.process.wait(HANG_SECONDS)

    def kill(self):
        stop_process(self.process)

    def values(self, word):
        """Returns the numbers NAME=VALUE of each line that starts with word."""
        return [
            {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)", line)}
            for line in self.lines
            if line.split(" ", 1)[0] == word
        ]

    def value(self, word):
        return self.values(word)[0]


def short_lives(n, wait_ms):
    """Runs n processes at once that wait wait_ms and end, and returns their pids."""
    program = os.path.join(PROGS, "prog_shortlived")
    processes = [subprocess.Popen([program, str(wait_ms)]) for _ in range(n)]
    for process in processes:
        process.wait()
    return [process.pid for process in processes]


def learn(daemon, argv, function):
    """Runs a program that ends by itself until its wait in this function has a stack up to main. From
    then on the daemon has read the program's files: a process of it needs no more than its mappings
    to be read before it waits."""

    def is_known():
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        process.wait()
        rows = rows_with(daemon.snapshot("-p", process.pid), function)
        return any("main" in frame_names(row) for row in rows)

    wait_until(is_known, f"{argv[0]} to be known")


def wait_in(pid, *words):
    """Waits until all threads of a process sleep in the kernel, each in a function whose name has one of the
    words."""

    def are_there():
        for tid in threads_of(pid):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{tid}/wchan", encoding="ascii") as f:
                function = f.read()
                if not any(word in function for word in words):
                    return False
        return True

    wait_until(are_there, f"{pid} to sleep in {' or '.join(words)}")


def parse_folded(text):
    stacks = {}
    for line in text.splitlines():
        stack, value = line.rsplit(" ", 1)
        stacks[stack] = stacks.get(stack, 0) + int(value)
    return stacks


def folded_sum(stacks, *names):
    """Returns the sum of the stacks in which all these names are frames."""
    return sum(v for s, v in stacks.items() if set(names) <= set(s.split(";")))


def frame_names(row, side="user"):
    """Returns the names of a row's stack, leaf first; a frame without a name gives its address."""
    stack = row.get(side) or {}
    return [f.get("name") or f.get("address") or "?" for f in stack.get("frames", [])]


def rows_with(snapshot, name, side="user"):
    return [row for row in snapshot["rows"] if name in frame_names(row, side)]


def row_sum(rows, field="total_ns"):
    return sum(row[field] for row in rows)


def lost_sum(reply):
    return sum(lost["count"] for lost in reply["lost"])


def lost_text(reply):
    return ", ".join(f"{lost['reason']}={lost['count']}" for lost in reply["lost"]) or "nothing"


UNSEEN = "requests whose issue or end was not seen"


def check_nothing_lost(reply, text):
    """Checks an answer, or the reply of Status. Where the host hides threads from BPF, Status also
    has the disk requests that ended in these threads."""
    blind = [words for probe in reply.get("probes", ()) for words in probe["blind"]]
    if any("hides" in words for words in blind):
        reply = dict(reply, lost=[lost for lost in reply["lost"] if lost["reason"] != UNSEEN])
    check(lost_sum(reply) == 0, f"{text}: lost {lost_text(reply)}")


# The most instructions that the verifier may process for a program. It allows a million; these
# limits are twice the largest number on any kernel when this was written, so growth is noticed here
# first.
VERIFIED_MAX_WALK = 600_000
VERIFIED_MAX = 250_000
WALKERS = ("on_sched_exit", "on_finish_switch", "on_switch", "on_waking", "on_sample",
           "on_open_wait")


def check_verified(daemon, text):
    """Checks that the programs of all probes that are on stay far below the verifier's limit."""
    for probe in daemon.status()["probes"]:
        for program in probe.get("programs") or ():
            name, insns = program["name"], program["verified_insns"]
            most = VERIFIED_MAX_WALK if name.startswith(WALKERS) else VERIFIED_MAX
            check(insns <= most, f"{text}: {probe['name']} {name}: {insns} instructions of {most}")


def used_ns(reply):
    """Returns the length of the covered part of the range, rounded outward to windows."""
    used = reply["coverage"]["used"]
    gaps = sum(g["end"]["ns"] - g["start"]["ns"] for g in reply["coverage"]["gaps"])
    return used["end"]["ns"] - used["start"]["ns"] - gaps


def at(ns):
    """Returns a time in the form that the client takes."""
    return f"@{ns // NS_PER_S}.{ns % NS_PER_S:09}"


def cgroup_root():
    """Returns where the unified hierarchy of control groups is mounted, or None."""
    with open("/proc/self/mounts", encoding="ascii") as mounts:
        return next((words[1] for words in map(str.split, mounts) if words[2] == "cgroup2"), None)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class CpuUse:
    """What a process uses of a CPU from now on. A busy host makes the time longer, not the use."""

    def __init__(self, pid):
        self.pid, self.used, self.begun = pid, cpu_seconds(pid), time.monotonic()

    def check(self, share, text, besides=0):
        """Checks that it was less than this share of the time, and these seconds besides."""
        used, took = cpu_seconds(self.pid) - self.used, time.monotonic() - self.begun
        estimate_most(used, share * took + besides, f"{text}: {used:.2f} s of CPU time in {took:.2f} s")


def threads_of(pid):
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def children_of(pid):
    """Returns all descendants of a process."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        for tid in threads_of(parent):
            with contextlib.suppress(OSError):
                with open(f"/proc/{parent}/task/{tid}/children", encoding="ascii") as f:
                    todo += (kids := [int(word) for word in f.read().split()])
                    found += kids
    return found


def signal_group_of(process, number=signal.SIGTERM):
    """Signals a process group that this test made (start_new_session)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
