#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that calls of the kernel's own functions are counted exactly along known paths, by patterns
and with every option of the two older tools. A function that cannot be traced is refused and leaves
nothing attached; one that is called all the time is sampled; a module may be unloaded under its
probe; after the daemon's death no probe is left in the kernel's own lists."""

import threading

from harness import *

COUNT = 50
PATHS = {"call_by_read": 1, "call_by_write": 2, "call_by_pread": 3}
ALL = sum(PATHS.values())
TRACING = "/sys/kernel/tracing"
MODULE_FUNCTIONS = "^dummy_(xmit|setup|dev_init|dev_uninit|get_stats64|change_carrier)$"
MODULE = next((p for p in (os.path.join(PROGS, "module.ko"), os.path.join(PROGS, "module.ko.xz"))
               if os.path.exists(p)), None)


def kprobes():
    """Returns the kernel's list of probes on its functions."""
    found = []
    for path in ("/sys/kernel/debug/kprobes/list", "/sys/kernel/tracing/enabled_functions"):
        with open(path, encoding="utf-8", errors="replace") as f:
            found += f.read().splitlines()
    return found


def has_places(daemon):
    """True if the kernel gives the daemon the address of each function that it can trace, and
    attaches many at once."""
    root = f"/proc/{daemon.process.pid}/root"
    return (os.path.exists(f"{root}{TRACING}/available_filter_functions_addrs")
            and "register_fprobe_ips" in text_of("/proc/kallsyms"))


def text_of(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read()


def sessions(daemon):
    return {s["id"]: s for s in daemon.call("io.stackd.Sessions")["sessions"]}


class Verb:
    """A command of stackctl that records until it is interrupted, or its time is over."""

    def __init__(self, daemon, *args):
        before = set(sessions(daemon))
        self.start = time.monotonic()
        self.daemon = daemon
        self.argv = [STACKCTL, "-S", daemon.socket, *[str(a) for a in args]]
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        encoding="utf-8")
        atexit.register(stop_process, self.process)
        self.lines, self.err = [], ""
        self.readers = [threading.Thread(target=self._read_out),
                        threading.Thread(target=self._read_err)]
        for reader in self.readers:
            reader.start()
        wait_until(lambda: set(sessions(daemon)) - before or self.process.poll() is not None,
                   "the session")
        self.session = (set(sessions(daemon)) - before or {None}).pop()

    def _read_out(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def _read_err(self):
        self.err = self.process.stderr.read()

    def state(self):
        return sessions(self.daemon)[self.session]

    def wait(self):
        self.process.wait(HANG_SECONDS)
        for reader in self.readers:
            reader.join()
        check(self.process.returncode == 0, f"{' '.join(self.argv[3:])}: {self.err[:300]}")
        return "".join(self.lines)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()


def settled_program(daemon, *args):
    return daemon.settled(Program("prog_calls", *args).ready())


def traced(daemon, *args, count=COUNT, ends=False, until=None):
    """Returns (text, session, program) of a verb that records while a program makes its calls; PID
    among the arguments stands for the program's. until: text that must be printed before the
    interrupt."""
    program = settled_program(daemon, count)
    verb = Verb(daemon, *[program.pid if a == "PID" else a for a in args])
    if not verb.session:
        verb.wait()
        program.kill()
        return "", {}, program
    program.go().done()
    state = verb.state()
    if until:
        wait_until(lambda: sum(until in line for line in list(verb.lines)) >= 2 * count,
                   f"{until} in what {args[0]} prints")
        time.sleep(0.1)
    text = verb.wait() if ends else verb.interrupt()
    program.end()
    return text, state, program


def rows_of_paths(rows):
    return [row for row in rows if set(frame_names(row)) & set(PATHS)]


def check_paths(rows, text):
    for name, factor in PATHS.items():
        got = sum(row["count"] for row in rows if name in frame_names(row))
        check(got == factor * COUNT, f"{text}: {got} calls by {name}, {factor * COUNT} made")
    rows = rows_of_paths(rows)
    check(row_sum(rows, "count") == ALL * COUNT, f"{text}: {ALL * COUNT} calls in sum")
    leaves = {frame_names(row, "kernel")[0] for row in rows}
    check(leaves == {"vfs_read", "vfs_write"}, f"{text}: the function is the first frame: {leaves}")
    whole = [row for row in rows if frame_names(row)[-1] == "_start"]
    check(row_sum(whole, "count") == ALL * COUNT, f"{text}: stacks reach _start")


def check_counts(daemon):
    cases = [(["vfs_*"], 20, 500), (["-r", "^vfs_(read|write)$"], 2, 2)]
    if has_places(daemon):
        # the same functions, attached one by one, which is slow
        cases.append((["p:vfs_*"], 20, 500))
    for args, fewest, most in cases:
        text, state, _ = traced(daemon, "record", "stackcount", *args, "-p", "PID", "--duration",
                                "10min", "--format", "json", "-n", "0")
        reply = json.loads(text)
        what = " ".join(args)
        check(fewest <= state["functions"] <= most, f"{what}: {state['functions']} functions")
        check_paths(reply["rows"], what)
        total = row_sum(reply["rows"], "count")
        check(total == reply["totals"]["calls"], f"{what}: {total} calls in rows and in all")
        check_nothing_lost(reply, what)
    listed = daemon.ctl("probes", "--functions", "vfs_*").out.split()
    check("vfs_read" in listed, f"{len(listed)} functions listed")


def check_refusals(daemon):
    before, had = kprobes(), set(sessions(daemon))
    cases = [
        (["no_such_function_*"], 1, "0 functions matched by"),
        (["-r", "vfs_[re"], 1, "at its end"),
        (["*"], 1, "max_functions"),
        (["exc_page_fault"], None, "exc_page_fault"),
    ]
    for args, code, word in cases:
        result = daemon.ctl("record", "stackcount", *args, "--duration", "1s")
        check(result.code == code or code is None and result.code in (1, 6),
              f"exit code {result.code} of {result}")
        check(word in result.err and result.err.count("\n") == 1, f"refused in a line: {result}")
    # Probes of the sessions before may still be removed while this reads the list.
    check(len(kprobes()) <= len(before), "nothing was attached by what was refused")
    check(not any(s["probe"] == "stackcount" and not s.get("ended")
                  for i, s in sessions(daemon).items() if i not in had), "no session goes on")


def blocks(text):
    """Returns [(frames, count)] of stackcount's layout."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("  ")]
        if lines and lines[-1].strip().isdigit():
            found.append(([line.strip() for line in lines[:-1]], int(lines[-1])))
    return found


def counts_of(text):
    """Returns {path: calls} of stackcount's layout, wherever a path's name is in a frame."""
    return {name: sum(n for frames, n in blocks(text) if any(name in f for f in frames))
            for name in PATHS}


EXACT = {name: factor * COUNT for name, factor in PATHS.items()}


def check_stackcount(daemon):
    text, _, program = traced(daemon, "stackcount", "-p", "PID", "-r", "^vfs_(read|write)$")
    check(text.startswith('Tracing 2 functions for "^vfs_(read|write)$"... Hit Ctrl-C to end.\n'),
          f"stackcount says what it traces: {text[:90]!r}")
    check(counts_of(text) == EXACT, f"stackcount -p -r: {counts_of(text)}")
    check(re.search(r"\n  vfs_read\n  ksys_read\n", text), "stackcount: one frame in each line")
    check(text.endswith("Detaching...\n"), "stackcount ends with a word")

    text, _, _ = traced(daemon, "stackcount", "-s", "-d", "-p", "PID", "vfs_read")
    check(re.search(r"\n  vfs_read\+0x0\n  ksys_read\+0x[0-9a-f]+\n", text),
          f"stackcount -s: offsets\n{text[:300]}")
    check("\n    --\n  call_by_read+0x" in text, f"stackcount -d: a line between\n{text[:500]}")

    text, _, _ = traced(daemon, "stackcount", "-v", "-p", "PID", "vfs_read")
    check(re.search(r"\n +(0x)?ffff[0-9a-f]{12} +vfs_read\n", text),
          f"stackcount -v: it shows addresses\n{text[:300]}")

    text, _, _ = traced(daemon, "stackcount", "-K", "-p", "PID", "vfs_write")
    check(not any(counts_of(text).values()) and any(f[0] == "vfs_write" and n >= 2 * COUNT
                                                    for f, n in blocks(text)),
          f"stackcount -K: there are no frames of programs\n{text[:300]}")

    text, _, _ = traced(daemon, "stackcount", "-U", "-p", "PID", "vfs_read")
    check("vfs_read\n" not in text.split("end.\n", 1)[1] and
          counts_of(text) == {**EXACT, "call_by_write": 0}, f"stackcount -U: {counts_of(text)}")

    text, _, program = traced(daemon, "stackcount", "-P", "vfs_read")
    mine = f"    prog_calls [{program.pid}]\n    {3 * COUNT}\n"
    check(mine in text, f"stackcount -P: processes are apart: {mine!r} in\n{text[:500]}")

    text, _, _ = traced(daemon, "stackcount", "-d", "-f", "-p", "PID", "vfs_read")
    folded = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}
    check(sum(n for s, n in folded.items() if "call_by_read" in s and s.endswith(";vfs_read"))
          == COUNT, f"stackcount -f: the root comes first\n{text[:300]}")

    check(re.search(r"call_by_read;-;.*;vfs_read \d+\n", text), f"stackcount -df: {text[:300]!r}")

    sums = dict.fromkeys(range(os.cpu_count()), 0)
    for cpu in sums:
        program = settled_program(daemon, COUNT)
        os.sched_setaffinity(program.pid, {0})
        verb = Verb(daemon, "stackcount", "-c", cpu, "-p", program.pid, "vfs_write")
        program.go().done()
        sums[cpu] = counts_of(verb.interrupt())["call_by_write"]
        program.end()
    check(sums[0] == 2 * COUNT and not any(n for cpu, n in sums.items() if cpu),
          f"stackcount -c: {sums}")

    program = settled_program(daemon, COUNT)
    verb = Verb(daemon, "stackcount", "-i", 1, "-T", "-p", program.pid, "-r", "^vfs_(read|write)$")
    wait_until(lambda: len(re.findall(r"^\d\d:\d\d:\d\d$", "".join(verb.lines), re.M)) >= 1,
               "an interval")
    program.go().done()
    seen = len(re.findall(r"^\d\d:\d\d:\d\d$", "".join(verb.lines), re.M))
    wait_until(lambda: len(re.findall(r"^\d\d:\d\d:\d\d$", "".join(verb.lines), re.M)) > seen + 1,
               "more intervals")
    text = verb.interrupt()
    program.end()
    check(counts_of(text) == EXACT, f"stackcount -i -T: each call in one interval {counts_of(text)}")

    text, _, _ = traced(daemon, "stackcount", "-D", 10, "-p", "PID", "vfs_write",
                        ends=True)
    check(text.endswith("Detaching...\n"), "stackcount -D: it ends by itself")


def check_stacksnoop(daemon):
    line = r" *\d+\.\d{9} "
    text, _, program = traced(daemon, "stacksnoop", "-p", "PID", "vfs_write", count=5,
                              until="main")
    lines = text.splitlines(keepends=True)
    check(lines[0] == f"{'TIME(s)':<18} STACK\n", f"stacksnoop: {lines[0]!r}")
    firsts = [l for l in lines if re.fullmatch(line + r"ip: ffff[0-9a-f]{12} vfs_write\n", l)]
    by_path = sum(1 for l in lines if re.fullmatch(line + r"r\d+: [0-9a-f]+ call_by_write\n", l))
    check(by_path == 10 and len(firsts) >= 10, f"stacksnoop: {by_path} of 10 calls\n{text[:500]}")
    times = [float(l.split()[0]) for l in firsts]
    check(times == sorted(times), "stacksnoop: times increase")
    text, _, _ = traced(daemon, "stacksnoop", "-s", "-p", "PID", "vfs_write", count=1, until="main")
    check(re.search(line + r"ip: ffff[0-9a-f]{12} vfs_write\+0x0\n", text),
          f"stacksnoop -s: offsets\n{text[:300]}")
    text, _, program = traced(daemon, "stacksnoop", "-v", "-p", "PID", "vfs_write", count=1,
                              until="main")
    check(text.startswith(f"{'TIME(s)':<18} {'COMM':<12} {'PID':<6} {'CPU':<3} STACK\n") and
          re.search(line + rf"prog_calls   {program.pid} +\d+ +ip: ffff[0-9a-f]+ vfs_write\n", text),
          f"stacksnoop -v: it shows the process\n{text[:300]}")
    verb = Verb(daemon, "stacksnoop", "-v", "tick_nohz_idle_enter")
    wait_until(lambda: len(verb.lines) > 3, "calls of the idle thread")
    text = verb.interrupt()
    check(re.search(line + r"<idle>       0 +\d+ +ip: ffff[0-9a-f]+ tick_nohz_idle_enter\n", text),
          f"stacksnoop: it shows the idle thread\n{text[:300]}")
    refused = daemon.ctl("stacksnoop", "no_such_function")
    check(refused.code == 1 and 'Function "no_such_function" not found' in refused.err,
          f"stacksnoop: {refused}")
    check(refused.err.count("\n") == 1, f"stacksnoop: in one line: {refused}")
    for pattern, first in (("vfs_wri*", "vfs_write"),
                           ("t:raw_syscalls:sys_enter", "tracepoint:sys_enter")):
        text, _, _ = traced(daemon, "stacksnoop", "-p", "PID", pattern, count=1, until="main")
        check(re.search(line + rf"ip: [0-9a-f-]+ {first}\n", text), f"stacksnoop {pattern}\n{text[:300]}")


def check_elsewhere(daemon):
    """Checks both verbs with targets that are no functions of the kernel, and stacks deeper than
    the older tools allowed."""
    function = f"u:{PROGS}/prog_calls:called_here"
    text, _, _ = traced(daemon, "stackcount", "-p", "PID", function)
    check(text.startswith(f'Tracing 1 functions for "{function}"...') and counts_of(text) == EXACT,
          f"stackcount u: {counts_of(text)}\n{text[:200]}")
    # Each of its calls is one system call.
    text, _, _ = traced(daemon, "stackcount", "-p", "PID", "t:raw_syscalls:sys_enter")
    check(counts_of(text) == EXACT and "\n  tracepoint:sys_enter\n" in text,
          f"stackcount t: {counts_of(text)}\n{text[:200]}")
    refused = daemon.ctl("stackcount", "no_such_function_*")
    check(refused.code == 1 and '0 functions matched by "no_such_function_*"' in refused.err,
          f"stackcount: {refused}")
    program = settled_program(daemon, 5)
    verb = Verb(daemon, "stacksnoop", "-p", program.pid, function)
    program.go().done()
    wait_until(lambda: sum(line.endswith(" _start\n") for line in list(verb.lines)) >= 5 * ALL,
               "all calls to be printed")
    text = verb.interrupt()
    program.end()
    calls = re.findall(r"ip: [0-9a-f]+ called_here\n.*r0: [0-9a-f]+ call_by_\w+\n", text)
    check(len(calls) == 5 * ALL, f"stacksnoop u: {len(calls)} of {5 * ALL} calls\n{text[:300]}")
    firsts = re.findall(r"^ *\d+\.\d{9} $", text, re.M)
    check(len(firsts) == 5 * ALL, f"stacksnoop: {len(firsts)} lines without a frame before calls")
    program = Program("prog_unwind_static", "recurse", 100, 8, 1000).ready()
    daemon.cut()
    verb = Verb(daemon, "stackcount", "-p", program.pid, f"u:{PROGS}/prog_unwind_static:nap")
    program.go().done()
    found = blocks(verb.interrupt())
    program.end()
    check([n for _, n in found] == [8] and found[0][0].count("recurse") == 100
          and found[0][0][-1] == "_start", f"stackcount: a hundred frames: {found}")


def check_held_back(daemon):
    """Checks that calls above the rate are counted, not streamed."""
    program = settled_program(daemon, 500)
    verb = Verb(daemon, "snoop", f"u:{PROGS}/prog_calls:called_here", "-p", program.pid, "--rate",
                "10", "--json")
    program.go().done()
    seconds = time.monotonic() - verb.start
    wait_until(lambda: verb.lines and (verb.state().get("held") or 0) > 400 * ALL, "the sums")
    time.sleep(3)  # the client receives their number each second
    text = verb.interrupt()
    program.end()
    printed = len(text.splitlines())
    held = re.search(r"([\d,]+) of ([\d,]+) calls were not printed", verb.err)
    held = int(held[1].replace(",", "")) if held else 0
    check(0 < printed <= 10 * (seconds + 1) and printed + held == 500 * ALL,
          f"rate: {printed} printed, {held} held back of {500 * ALL} in {seconds:.1f} s: {verb.err}")


def check_snoop(daemon):
    """Checks that 100 calls of a rare function are 100 events, in order."""
    text, _, program = traced(daemon, "snoop", "vfs_write", "-p", "PID", "--json", count=50,
                              until="call_by_write")
    calls = [json.loads(line) for line in text.splitlines()]
    mine = [c for c in calls if "call_by_write" in frame_names(c)]
    check(len(mine) == 100, f"snoop: {len(mine)} of 100 calls streamed")
    times = [c["time"]["ns"] for c in calls]
    check(times == sorted(times) and len(set(times)) == len(times), "snoop: times increase")
    check(all(c["pid"] == program.pid and c["comm"] == "prog_calls" and c["count"] == 1
              and frame_names(c, "kernel")[0] == "vfs_write" for c in calls), "snoop: the names")


def check_same_names(daemon):
    """Checks functions that share a name, of which some cannot be traced: the others are attached
    at once, not in halves until the bad ones are found."""
    with open(f"{TRACING}/available_filter_functions_addrs", encoding="ascii") as f:
        places = sum(line.split()[1].endswith("_show") for line in f)
    program = settled_program(daemon, 1)
    before = daemon.kernel_objects()
    started = daemon.ctl("start", "stackcount", "*_show", "-p", program.pid)
    check(started.code == 0, f"same names: {started}")
    held = {kind: n - before.get(kind, 0) for kind, n in daemon.kernel_objects().items()}
    links = sum(n for kind, n in held.items() if "link" in kind or "perf" in kind)
    state = sessions(daemon)[started.out.strip()]
    check(state["functions"] == places and links < 10,
          f"same names: {state['functions']} of {places} functions by {links} links")
    daemon.ctl("stop", started.out.strip())
    program.kill()


def check_hot(daemon):
    """Checks locks, which are taken all the time: the guard samples them or ends the session, and
    says so."""
    # More than a thousand functions: one by one, that takes an emulator minutes.
    if has_places(daemon):
        wide = daemon.ctl("start", "stackcount", "*lock*")
        print(f"*lock*: {wide}")
        check(wide.code == 0 or wide.code == 1 and "max_functions" in wide.err,
              "hot: all functions with lock in their name")
        if wide.code == 0:
            daemon.ctl("stop", wide.out.strip())
    started = daemon.ctl("start", "stackcount", "-r", "^(_raw_spin_lock|mutex_.*lock|up_|down_)")
    check(started.code == 0, f"hot: started: {started}")
    id_text = started.out.strip()
    program = Program("prog_calls", 0, 5).ready().go()
    state = wait_until(lambda: (s := sessions(daemon)[id_text]) and
                       (s.get("ended") or s.get("every", 1) > 1) and s, "the guard")
    program.done()
    program.end()
    check(state.get("every", 1) > 1 or "[probe.stackcount] max_cpu" in (state.get("note") or ""),
          f"hot: {state.get('calls_per_s')} calls a second, {state.get('load')} % of a CPU, one in "
          f"{state.get('every')} of {state.get('functions')} functions' recorded")
    daemon.ctl("stop", id_text)
    check(daemon.ctl("status").code == 0, "hot: the daemon still runs")


def check_module(daemon):
    """Checks that a module's functions are counted; the module either stays while it is traced, or
    takes the probes with it."""
    done = run(["insmod", MODULE])
    check(done.code == 0, f"module: {done}")
    id_text = daemon.ctl("start", "stackcount", "-r", MODULE_FUNCTIONS).out.strip()
    check(sessions(daemon)[id_text].get("functions", 0) > 3,
          f"module: {sessions(daemon)[id_text].get('functions')} functions")
    gone = run(["rmmod", "dummy"])
    print(f"rmmod: {gone.code} {gone.err.strip()}")
    check(sessions(daemon)[id_text].get("ended") is None, "module: the session goes on")
    stopped = daemon.ctl("stop", id_text)
    check(stopped.code == 0, f"module: {stopped}")
    if gone.code:
        wait_until(lambda: run(["rmmod", "dummy"]).code == 0, "the module to go")
    again = daemon.ctl("start", "stackcount", "-r", MODULE_FUNCTIONS)
    check(again.code == 1 and "0 functions" in again.err, f"module: gone: {again}")


def check_detached(daemon):
    """Checks that no probe is left after a stop, nor after the daemon was killed."""
    before = len(kprobes())
    id_text = daemon.ctl("start", "stackcount", "vfs_*").out.strip()
    during_it = len(kprobes())
    check(during_it > before + 20, f"{during_it - before} probes while it runs")
    daemon.ctl("stop", id_text)
    wait_until(lambda: len(kprobes()) <= before, "the probes to go")
    daemon.ctl("start", "stackcount", "vfs_*")
    check(len(kprobes()) == during_it, f"{len(kprobes()) - before} probes the second time")
    os.kill(daemon.process.pid, signal.SIGKILL)
    wait_until(lambda: len(kprobes()) <= before, "the probes to go")
    check(len(kprobes()) <= before, "no probe is left after kill -9")


need_live()
if not os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
    skip("this kernel lets no function of its own be traced")
if not os.path.exists("/sys/kernel/debug/kprobes/list"):
    run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"])
# Every call is counted as long as the cost is within the budget, which a slow machine soon exceeds.
daemon = Daemon("probe.stackcount.max_cpu=10000")
for step in (check_counts, check_refusals, check_stackcount, check_stacksnoop, check_elsewhere,
             check_snoop, check_held_back, check_same_names, check_hot, check_module,
             check_detached):
    if step is check_same_names and not has_places(daemon):
        leave_out("no list of functions with addresses, or only one function at a time")
        continue
    if step in (check_stackcount, check_stacksnoop) and "STACKD_UNIT" in os.environ \
            and not has_places(daemon):
        # this part checks the client, which the faster test without the machine does as well
        continue
    if step in (check_elsewhere, check_held_back) and "STACKD_UNIT" in os.environ:
        continue  # a slow machine needs another minute; the test without the unit runs these
    if step is check_module and not MODULE:
        leave_out("no module to unload")
        continue
    if step is check_hot:
        daemon.stop()
        daemon = Daemon()
    begin = time.monotonic()
    step(daemon)
    print(f"{step.__name__}: {time.monotonic() - begin:.0f} s", flush=True)
finish()
