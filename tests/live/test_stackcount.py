#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that calls of tracepoints, of functions of programs and, where possible, of kernel
functions are counted exactly, by the paths that led to them, and streamed one by one up to a rate.
A target that cannot be traced is refused in words. Nothing stays in the kernel, however the daemon
ends."""

from container import Contained
from harness import *

COUNT = 500
PATHS = {"call_by_read": 1, "call_by_write": 2, "call_by_pread": 3}


def has_kernel_functions():
    return os.path.exists("/sys/bus/event_source/devices/kprobe/type")


def kprobes():
    """Returns the kernel's list of probes on its functions."""
    found = []
    for path in ("/sys/kernel/debug/kprobes/list", "/sys/kernel/tracing/enabled_functions",
                 "/sys/kernel/debug/tracing/enabled_functions"):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8", errors="replace") as f:
                found += f.read().splitlines()
    return found


def session_of(daemon, id_text):
    return {s["id"]: s for s in daemon.call("io.stackd.Sessions")["sessions"]}[id_text]


class Session:
    """A session of calls that a client starts and stops."""

    def __init__(self, daemon, *args):
        self.daemon = daemon
        started = daemon.ctl("start", *args)
        check(started.code == 0, f"started: {started}")
        self.id = started.out.strip()

    def stop(self):
        stopped = self.daemon.ctl("stop", self.id)
        check(stopped.code == 0, f"stopped: {stopped}")
        return wait_until(self._whole, f"all that session {self.id} recorded")

    def _whole(self):
        """Returns the answer, or None if it says that the last names are late; it waits 5 s for
        them."""
        reply = self.daemon.ctl_json("snapshot", self.id, "-n", "0", "--idle")
        return reply if not reply["coverage"]["gaps"] else None


def counts_by_path(rows):
    sums = dict.fromkeys(PATHS, 0)
    for row in rows:
        for name in frame_names(row):
            if name in sums:
                sums[name] += row["count"]
    return sums


def check_paths(rows, text, first, count=COUNT):
    for name, factor in PATHS.items():
        got = counts_by_path(rows)[name]
        check(got == factor * count, f"{text}: {got} calls by {name}, {factor * count} made")
    cut = [(row["count"], frame_names(row), row.get("user", {}).get("flags")) for row in rows
           if frame_names(row)[-1:] != ["_start"]]
    check(not cut, f"{text}: stacks reach _start: {cut[:3]}")
    leaves = {frame_names(row, "kernel" if row.get("kernel") else "user")[0] for row in rows
              if set(frame_names(row)) & set(PATHS)}
    check(leaves and all(re.fullmatch(first, leaf) for leaf in leaves),
          f"{text}: the function is the first frame: {leaves}")


def check_tracepoint(daemon):
    n = 40
    name = f"counted{os.getpid()}"
    path = os.path.join(make_temp_dir(), name)
    shutil.copy("/bin/true", path)
    session = Session(daemon, "stackcount", "t:sched:sched_process_exec", "--comm", name)
    for _ in range(n):
        run([path])
    reply = session.stop()
    total = sum(row["count"] for row in reply["rows"])
    check(total == n, f"tracepoint: {total} execs counted, {n} made")
    check(reply["totals"]["calls"] == n, f"tracepoint: {reply['totals']['calls']} calls in all")
    leaves = {frame_names(row, "kernel")[0] for row in reply["rows"]}
    check(leaves == {"tracepoint:sched_process_exec"}, f"tracepoint: first frames {leaves}")
    callers = {frame_names(row, "kernel")[1] for row in reply["rows"]}
    check(len(callers) == 1 and re.search("exec", callers.pop()),
          "tracepoint: one caller passed it")
    check_nothing_lost(reply, "tracepoint")


def settled_program(daemon, *args, of="prog_calls"):
    return daemon.settled(Program(of, *args).ready())


def check_user(daemon):
    path = os.path.join(PROGS, "prog_calls")
    program = settled_program(daemon, COUNT)
    session = Session(daemon, "stackcount", f"u:{path}:called_here", "-p", program.pid)
    program.go().done()
    program.end()
    reply = session.stop()
    check_paths(reply["rows"], "user function, after its process exited", "called_here")
    check_nothing_lost(reply, "user function")


def check_static_probe(daemon):
    """Checks a static probe: it is on only while it is traced, and is counted as a function is."""
    path = os.path.join(PROGS, "prog_calls")
    target = f"usdt:{path}:stackd_test:here"
    program = settled_program(daemon, COUNT)
    session = Session(daemon, "stackcount", target, "-p", program.pid)
    program.go().done()
    reply = session.stop()
    program.end()
    check(program.value("probe")["counter"] == 1, f"{target}: is switched on")
    check_paths(reply["rows"], target, "called_here")
    check_nothing_lost(reply, target)
    check(traced_by("prog_calls") == 0, "static probe: it is off again")
    listed = daemon.ctl("probes", "--functions", f"usdt:{path}:*").out
    check(listed == "stackd_test:here\n", f"static probe: it is listed: {listed!r}")
    listed = daemon.ctl_json("probes", "--functions", f"u:{path}:here")
    check(listed["kind"] == "usdt", f"static probe: it is found without its prefix: {listed}")


def check_deep(daemon):
    """Checks that a hundred frames arrive whole, also from a static program; a stack with one frame
    too many says that it is incomplete."""
    for name, depth, flags in (("prog_unwind_static", 100, None),
                               ("prog_unwind_o2", 300, ["truncated"])):
        program = settled_program(daemon, "recurse", depth, 8, 1000, of=name)
        session = Session(daemon, "stackcount", f"u:{PROGS}/{name}:nap", "-p", program.pid)
        program.go().done()
        program.end()
        (row,) = session.stop()["rows"]
        names = frame_names(row)
        check(row["count"] == 8 and names[0] == "nap" and
              names.count("recurse") == min(depth, 126), f"{name}: {row['count']} calls of {names}")
        check(flags or names[-1] == "_start", f"{name}: it goes down to {names[-1]}")
        check((row["user"].get("flags") or None) == flags, f"{name}: flags {row['user']['flags']}")


def check_many_user(daemon):
    """Checks that detaching many functions takes seconds at most where the kernel can do it for all
    at once; before 6.6 it detaches one after the other."""
    has_multi = tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 6)
    function = "u:c:s*" if has_multi else "u:c:sig*"
    session = Session(daemon, "stackcount", function)
    functions = session_of(daemon, session.id)["functions"]
    begin = time.monotonic()
    reply = session.stop()
    seconds = time.monotonic() - begin
    check(functions > 10, f"{functions} functions of libc")
    if has_multi:
        estimate_most(seconds, 10, f"they are detached in {seconds:.1f} s")
    check_nothing_lost(reply, function)


def check_cgroup(daemon):
    """Checks calls in a cgroup alone, by the cgroup's path and as a unit, which has the same
    name."""
    if not cgroup_root():
        leave_out("no unified hierarchy of cgroups")
        return
    name = f"counted{os.getpid()}.service"
    cgroup = os.path.join(cgroup_root(), name)
    function = f"u:{os.path.join(PROGS, 'prog_calls')}:called_here"
    os.mkdir(cgroup)
    try:
        inside, outside = settled_program(daemon, 20), settled_program(daemon, 20)
        with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(inside.pid))
        session = Session(daemon, "stackcount", function, "--cgroup", f"/{name}")
        calls, _ = snoop(daemon, [outside, inside], function, "--unit", name, until=120)
        reply = session.stop()
        for program in (outside, inside):
            program.end()
        check_paths(reply["rows"], "cgroup", "called_here", 20)
        pids = {row["process"]["pid"] for row in reply["rows"]}
        pids |= {call["pid"] for call in calls}
        check(pids == {inside.pid}, f"cgroup: only its own process, {inside.pid}: {pids}")
        check(len(calls) == 120, f"cgroup: {len(calls)} calls streamed")
    finally:
        wait_until(lambda: not open(f"{cgroup}/cgroup.procs", encoding="ascii").read(),
                   "the cgroup to be empty")
        os.rmdir(cgroup)


def check_kernel(daemon):
    """Checks that the sum over all functions is the number of calls, and that each path has its
    own."""
    program = settled_program(daemon, COUNT)
    session = Session(daemon, "stackcount", "-r", "^vfs_(read|write)$", "-p", program.pid)
    status = session_of(daemon, session.id)
    check(status["functions"] == 2, f"kernel: {status['functions']} functions traced")
    program.go().done()
    reply = session.stop()
    rows = [row for row in reply["rows"] if set(frame_names(row)) & set(PATHS)]
    check_paths(rows, "kernel functions", "vfs_(read|write)")
    check(row_sum(rows, "count") == 6 * COUNT, "kernel functions: all calls are counted")
    program.end()
    wide = Session(daemon, "stackcount", "vfs_*")
    traced = session_of(daemon, wide.id)["functions"]
    listed = daemon.ctl("probes", "--functions", "vfs_*").out.split()
    check(traced > 20 and abs(len(listed) - traced) <= len(listed) // 5,
          f"kernel: {traced} functions traced, {len(listed)} listed")
    wide.stop()
    check("record stackcount 'vfs_*'" in " ".join(daemon.ctl("status", "-v").out.split()),
          "kernel: status recommends what can be traced")


def check_no_kernel(daemon):
    refused = daemon.ctl("record", "stackcount", "vfs_read", "--duration", "1s")
    check(refused.code == 6 and refused.err.count("\n") == 1 and "tracepoints" in refused.err,
          f"kernel functions are refused in one line: {refused}")
    listed = daemon.ctl("probes", "--functions", "vfs_*")
    check(listed.code == 6 and not listed.out and "neither kprobes" in listed.err,
          f"none is listed: {listed}")
    for words in (["status", "-v"], ["probes"]):
        text = daemon.ctl(*words).out
        check("vfs_" not in text and "record stackcount t:sched" in " ".join(text.split()),
              f"{' '.join(words)} recommends what can be traced")


def printed(path):
    with open(path, encoding="utf-8") as f:
        return sum(1 for _ in f)


def wait_for_rest(path):
    """Waits until no more calls are printed."""
    sizes = [-1, printed(path)]
    while sizes[-1] != sizes[-2]:
        subject_sleep(1)
        sizes.append(printed(path))


class Client:
    """stackctl with a session of its own, until it is interrupted."""

    def __init__(self, daemon, *args):
        before = len(daemon.call("io.stackd.Sessions")["sessions"])
        self.path = os.path.join(make_temp_dir(), "out")
        argv = [STACKCTL, "-S", daemon.socket, *[str(a) for a in args]]
        with open(self.path, "w", encoding="utf-8") as f:
            self.process = subprocess.Popen(argv, stdout=f, stderr=subprocess.PIPE,
                                            encoding="utf-8")
        atexit.register(stop_process, self.process)
        wait_until(lambda: len(daemon.call("io.stackd.Sessions")["sessions"]) > before,
                   "the session")

    def interrupt(self):
        """Interrupts it; returns (its stdout, its stderr)."""
        self.process.send_signal(signal.SIGINT)
        err = self.process.communicate()[1]
        check(self.process.returncode == 0, f"{self.process.args[3:]}: {err[:300]}")
        with open(self.path, encoding="utf-8") as f:
            return f.read(), err


def snoop(daemon, programs, *args, until=None):
    """Streams calls while programs do their work, at least `until` of them; returns (calls,
    stderr)."""
    client = Client(daemon, "snoop", *args, "--json")
    for program in programs:
        program.go().done()
    if until:
        wait_until(lambda: printed(client.path) >= until, f"{until} calls to be printed")
    wait_for_rest(client.path)
    out, err = client.interrupt()
    return [json.loads(line) for line in out.splitlines()], err


def check_snoop_all(daemon):
    path = os.path.join(PROGS, "prog_calls")
    program = settled_program(daemon, 20)
    calls, err = snoop(daemon, [program], f"u:{path}:called_here", "-p", program.pid, until=120)
    program.end()
    times = [call["time"]["ns"] for call in calls]
    check(len(calls) == 120, f"snoop: {len(calls)} of 120 calls streamed")
    check(times == sorted(times) and len(set(times)) == len(times), "snoop: times increase")
    check(all(c["pid"] == program.pid and c["comm"] == "prog_calls" for c in calls),
          "snoop: all are of that process")
    check(all(c["user"]["frames"][0]["name"] == "called_here" for c in calls),
          "snoop: the function is the first frame")
    check("not printed" not in err, f"snoop: no call was held back: {err}")


def check_snoop_exec(daemon):
    """Checks that what is executed is told: path, arguments and parent, also of a script and of long arguments."""
    name = f"told{os.getpid()}"
    directory = make_temp_dir()
    path, script = os.path.join(directory, name), os.path.join(directory, name + ".sh")
    shutil.copy("/bin/true", path)
    with open(script, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh -e\n")
    os.chmod(script, 0o755)
    long = "x" * 600
    client = Client(daemon, "snoop", "t:sched:sched_process_exec", "--comm", name + "*", "--json")
    run([path, "a b", "", "\n"])
    run([script, "-q"])
    run([path, long])
    wait_until(lambda: printed(client.path) >= 3, "three execs to be printed")
    told = [json.loads(line)["exec"] for line in client.interrupt()[0].splitlines()]
    wanted = [{"path": path, "arguments": [path, "a b", "", "\n"]},
              {"path": script, "arguments": ["/bin/sh", "-e", script, "-q"]},
              {"path": path, "arguments": [path, long[: 511 - len(path)]],
               "arguments_more": len(long) + len(path) + 2 - 512}]
    with open("/proc/self/comm", encoding="utf-8") as f:
        parent = {"parent": os.getpid(), "parent_comm": f.read().strip()}
    check(told == [{**one, **parent} for one in wanted], f"snoop: what is executed is told: {told}")


def check_snoop_rate(daemon):
    """Checks that no more calls a second are streamed than the rate says, and that the rest are
    counted."""
    program = settled_program(daemon, 0, 3)
    calls, err = snoop(daemon, [program], "t:raw_syscalls:sys_enter", "-p", program.pid, "--rate",
                       "500")
    made = program.value("flood")["calls"]
    program.end()
    held = int(re.search(r"([\d,]+) of ([\d,]+) calls were not printed", err)[1].replace(",", ""))
    check(500 <= len(calls) <= 500 * 5,
          f"rate: {len(calls)} calls streamed at 500 a second, {made} made")
    check_near(len(calls) + held, made, 0.02,
               "rate: streamed and held back calls are all that were made")
    stood = sum(call["count"] for call in calls)
    check(stood <= made * 1.02, f"rate: those streamed stand for {stood} of {made}")


def check_held_back(daemon):
    """Checks calls that one process made and that were not streamed: a later call of another
    process does not stand for them, and after the last call they are still counted."""
    cpu = max(os.sched_getaffinity(0))
    hasty, late = settled_program(daemon, 0, 1), settled_program(daemon, 5)
    for program in (hasty, late):
        os.sched_setaffinity(program.pid, {cpu})
    session = Session(daemon, "stacksnoop", "t:raw_syscalls:sys_enter", "--rate", "50", "-p",
                      f"{hasty.pid},{late.pid}")
    hasty.go().done()
    made = hasty.value("flood")["calls"]
    hasty.end()
    gone = time.time_ns()

    def has_cuts():
        """Two cuts: calls that the sampling skipped are counted at the second."""
        reply = daemon.ctl_json("snapshot", session.id, "-n", "0")
        return reply["coverage"]["used"]["end"]["ns"] > gone + 2 * NS_PER_S

    wait_until(has_cuts, "the windows after it")
    late.go().done()
    late.end()
    reply = session.stop()
    count = session_of(daemon, session.id)["count"]
    counted = row_sum([r for r in reply["rows"] if r["process"]["pid"] == late.pid], "count")
    check(counted < 500, f"held back: {counted} calls of the later process, {made} of the first")
    lost = sum(x["count"] for x in reply["lost"] if x["reason"].startswith("calls "))
    sums = f"{row_sum(reply['rows'], 'count')} in rows, {lost} lost, of {count}"
    check(row_sum(reply["rows"], "count") + lost == count, f"held back: {sums}")
    check(count >= made, f"held back: {count} calls, of these {made} in one process")


def cpu_ns(pid):
    """Returns the CPU time of a process in ns, with its time in the kernel."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def number_of(pattern, text):
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else 0


def flood_snooped(daemon, stalls):
    """Streams a program's calls to a reader that goes on or stalls; returns (CPU time of each call,
    how many calls the reader missed)."""
    program = settled_program(daemon, 0, 4)
    client = Client(daemon, "snoop", "t:raw_syscalls:sys_enter", "-p", program.pid, "--rate",
                    "100000", "--json")
    program.go()
    wait_until(lambda: printed(client.path) > 0, "a call to be printed")
    if stalls:
        client.process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        check(daemon.ctl("status").code == 0, "stalled: others are answered")
        print(f"in {time.monotonic() - begin:.2f} s")
    program.done()
    flood, cost = program.value("flood"), cpu_ns(program.pid)
    client.process.send_signal(signal.SIGCONT)
    wait_for_rest(client.path)
    out, err = client.interrupt()
    program.end()
    streamed, missed = out.count("\n"), number_of(r"([\d,]+) calls were missed", err)
    held = number_of(r"([\d,]+) of [\d,]+ calls were not printed", err)
    lost = number_of(r"lost, .*: ([\d,]+)", err)
    what = (f"{streamed} streamed, {held} held back, {missed} missed, {lost} lost, "
            f"of {flood['calls']}")
    check_near(streamed + held + missed + lost, flood["calls"], 0.02, f"stalls {stalls}: {what}")
    return cost / flood["calls"], missed


def check_stalled(daemon):
    """Checks that a reader that is too slow, or stalls for a while, costs neither the program nor
    other clients anything, and learns how many calls it missed."""
    going, stalled = [], []
    # An emulator's CPUs take turns: other CPUs' work may count as this one's time, so more than one
    # pair of runs may be needed. A cost of the stalled reader would be in each.
    for _ in range(3):
        going.append(flood_snooped(daemon, False)[0])
        cost, missed = flood_snooped(daemon, True)
        stalled.append(cost)
        check(missed > 0, f"stalled: {missed} calls were missed")
        if min(stalled) < 1.5 * min(going):
            break
    check(min(stalled) < 1.5 * min(going), f"stalled: {min(stalled):.0f} ns a call, "
          f"{min(going):.0f} otherwise")


def check_refusals(daemon):
    cases = [
        (["stackcount", "no_such_function_at_all"], 1,
         '0 functions matched by "no_such_function_at_all" in the kernel; of a library, such as libc, it is '
         "u:c:no_such_function_at_all;"),
        (["stackcount", "u:c:no_such_function_at_all"], 1, "0 functions matched by"),
        (["stacksnoop", "u:c:no_such_function"], 1, 'Function "u:c:no_such_function" not found in /'),
        (["stackcount", "u:no_such_library:f"], 1, "there is no library or program"),
        (["stackcount", "usdt:stdc++:no_such_probe"], 1, "0 functions matched by"),
        (["stackcount", "usdt:stdc++"], 1, "is no function"),
        (["stackcount", "t:nope:nope"], 1, "0 functions matched by"),
        (["stackcount", "t:syscalls:sys_enter_read"], 1, "raw_syscalls"),
        (["stackcount", "-r", "vfs_[re"], 1, "at its end"),
        (["stackcount", "t:*:*"], 1, "more than 32"),
        (["stackcount", "u:c:*"], 1, "max_functions"),
        (["stackcount"], 1, "needs a function"),
        (["oncpu", "vfs_read"], 1, "traces no functions"),
        (["stackcount", "u:c:malloc", "-m", "5"], 1, "no waits"),
        (["stackcount", "u:c:malloc", "--rate", "5"], 1, "streams nothing"),
        (["stackcount", "u:c:malloc", "-p", "4194303"], 1, "no process"),
    ]
    before = len(daemon.call("io.stackd.Sessions")["sessions"])
    for args, code, word in cases:
        result = daemon.ctl("start", *args)
        check(result.code == code and word in result.err, f"refused: {result}")
    after = len(daemon.call("io.stackd.Sessions")["sessions"])
    check(before == after, "refused requests started nothing")


def copies(*paths, of="prog_calls"):
    for path in paths:
        shutil.copy(os.path.join(PROGS, of), path)
        atexit.register(lambda p=path: os.path.exists(p) and os.unlink(p))
    return paths


def check_two_files(daemon):
    """Checks a name that two files have: in one directory, in two, and a program beside a library.
    If only one of them has the function, or a process uses only one, that one is traced."""
    name = f"counted{os.getpid()}"
    path, *others = copies(f"/usr/local/lib/lib{name}.so.1", f"/usr/local/lib/lib{name}.so.2",
                           f"/usr/lib/lib{name}.so.1", f"/usr/local/bin/{name}")
    for other in others:
        for unused in (o for o in others if o != other and os.path.exists(o)):
            os.unlink(unused)
        copies(other)
        refused = daemon.ctl("start", "stackcount", f"u:{name}:called_here")
        check(refused.code == 1 and path in refused.err and other in refused.err
              and refused.err.count("\n") == 1, f"two files of a name: {refused}")
        listed = daemon.ctl("probes", "--functions", f"u:{other}:called_*").out
        check(listed == "called_here\n", f"the path selects one of them: {listed!r}")
    hidden = os.path.join(make_temp_dir(), name)
    copies(hidden)
    listed = daemon.ctl("probes", "--functions", f"u:{hidden}:called_*").out
    check(listed == "called_here\n",
          f"a path that the unit hides from its daemon works, too: {listed!r}")
    program = Program(name, 1, path=other).ready()
    session = Session(daemon, "stackcount", f"u:{name}:called_here", "-p", program.pid)
    check(session_of(daemon, session.id)["file"] == other,
          f"it is the file that {program.pid} uses")
    program.go().done()
    program.end()
    counted = session.stop()["totals"]["calls"]
    check(counted == 6, f"{other}: {counted} of 6 calls in its process counted")
    copies(other, of="prog_io")
    listed = daemon.ctl_json("probes", "--functions", f"u:{name}:called_here")
    check(listed["file"] == path and listed["count"] == 1,
          f"it is the file that has the function: {listed}")


def check_contained(daemon):
    """Checks that a path or a name is looked up where the process is, in its container, too."""
    for place in ("/contained", "contained"):
        program = Contained("prog_calls", 10).ready()
        daemon.settled(program.pid_there)
        session = Session(daemon, "stackcount", f"u:{place}:called_here", "-p", program.pid_there)
        program.go().done()
        program.end()
        check_paths(session.stop()["rows"], f"contained, {place}", "called_here", 10)
    refused = daemon.ctl("start", "stackcount", "u:/contained:called_here")
    check(refused.code == 1 and "No such file" in refused.err, f"contained: not here: {refused}")


def check_replaced(daemon):
    """Checks a process that goes on with a file that was deleted and replaced: its calls are
    counted."""
    name = f"counted{os.getpid()}"
    path = os.path.join(make_temp_dir(), name)
    copies(path)
    program = Program(name, 10, path=path).ready()
    os.unlink(path)
    copies(path, of="prog_io")
    daemon.settled(program)
    session = Session(daemon, "stackcount", f"u:{name}:called_here", "-p", program.pid)
    program.go().done()
    program.end()
    check_paths(session.stop()["rows"], "replaced on disk", "called_here", 10)


def check_compat(daemon):
    path = os.path.join(PROGS, "prog_calls")
    program = settled_program(daemon, 10)
    client = Client(daemon, "stackcount", "-P", f"{path}:called_here")
    program.go().done()
    text, _ = client.interrupt()
    program.end()
    check(text.startswith(f'Tracing 1 functions for "{path}:called_here"... Hit Ctrl-C to end.\n'),
          f"stackcount says what it traces: {text[:80]!r}")
    entry = f"    prog_calls [{program.pid}]\n    30\n\n"
    check("\n  called_here\n  call_by_pread\n  main\n" in text and entry in text,
          f"stackcount's layout:\n{text}")
    check(text.index("    10\n") < text.index("    20\n") < text.index("    30\n"),
          "stackcount: the smallest comes first")
    check(text.endswith("Detaching...\n"), "stackcount ends with a word")
    text = daemon.ctl("stackcount", "-D", 1, f"{path}:called_here").out
    check(text.endswith("end.\n\nDetaching...\n"), f"stackcount -D: it ends by itself: {text!r}")
    program = settled_program(daemon, 1)
    client = Client(daemon, "stacksnoop", "-v", f"{path}:called_here")
    program.go().done()
    wait_until(lambda: printed(client.path) >= 3, "a call to be printed")
    lines = client.interrupt()[0].splitlines(keepends=True)
    program.end()
    check(lines[0] == f"{'TIME(s)':<18} {'COMM':<12} {'PID':<6} {'CPU':<3} STACK\n",
          f"stacksnoop's header: {lines[0]!r}")
    check(re.fullmatch(r" *\d+\.\d{9} prog_calls   \d+ +\d+ +\n", lines[1]),
          f"stacksnoop: there is a line for each call: {lines[1]!r}")
    check(re.fullmatch(r" *\d+\.\d{9} prog_calls   \d+ +\d+ +ip: [0-9a-f]+ called_here\n", lines[2]),
          f"stacksnoop: there is a line for each frame: {lines[2]!r}")


def traced_by(name):
    """Returns how many tracers use its static probe, as a program itself reports."""
    program = Program(name, 1).ready().go().done()
    program.end()
    return program.value("probe")["counter"]


def check_killed():
    """Checks that nothing is left after the daemon was killed: no probe in the kernel's lists, and
    no tracer in a program's own counter."""
    daemon = Daemon()
    before = kprobes()
    Session(daemon, "stackcount", f"usdt:{os.path.join(PROGS, 'prog_calls')}:here")
    check(traced_by("prog_calls") == 1, "the static probe is on while it runs")
    if has_kernel_functions():
        Session(daemon, "stackcount", "vfs_*")
        check(len(kprobes()) > len(before), f"{len(kprobes()) - len(before)} probes while it runs")
    daemon.process.kill()
    daemon.process.wait()
    wait_until(lambda: len(kprobes()) <= len(before), "the probes to go")
    check(len(kprobes()) <= len(before), "no probe is left after kill -9")
    wait_until(lambda: traced_by("prog_calls") == 0, "the static probe to be off")


need_live()
# Every call is counted as long as the cost is within the budget, which a slow machine soon exceeds.
# On a fast one the cost may exceed it so far that the session would end.
daemon = Daemon("probe.stackcount.max_cpu=10000")
STEPS = (check_tracepoint, check_snoop_exec, check_user, check_static_probe, check_deep, check_cgroup,
         check_kernel if has_kernel_functions() else check_no_kernel, check_refusals, check_two_files,
         check_contained, check_replaced)
if not EVENTS_ONLY:
    STEPS += check_many_user, check_snoop_all, check_compat, check_snoop_rate, check_held_back, check_stalled
for step in STEPS:
    begin = time.monotonic()
    step(daemon)
    print(f"{step.__name__}: {time.monotonic() - begin:.0f} s", flush=True)
daemon.stop()
if "STACKD_UNIT" not in os.environ:
    check_killed()
finish()
