#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that each error gets a message that names the cause, and the exit code that scripts rely
on."""

import contextlib
import threading

from harness import *

NOBODY = 65534


def unused_pid():
    """Returns a pid that is not in use, was given out long ago, and will not be soon: the kernel counts up, and
    it is half of all pids away."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as f:
        pid_max = int(f.read())
    with open("/proc/loadavg", encoding="ascii") as f:
        last = int(f.read().split()[-1])
    pid = 301 + (last + pid_max // 2) % (pid_max - 301)
    while os.path.exists(f"/proc/{pid}"):
        pid -= 1
    return pid


def check_ctl(daemon, args, code, *words, out=None):
    """Checks an error: its exit code, one message on stderr that has these words, nothing on
    stdout."""
    result = daemon.ctl(*args)
    text = f"stackctl {' '.join(map(str, args))}"
    check(result.code == code, f"{text}: exit {result.code}, expected {code}: {result.err.strip()}")
    if code == 0:
        return result
    check(result.err.strip(), f"{text}: it says why")
    check(result.out == "", f"{text}: nothing on stdout")
    for word in words:
        check(str(word) in result.err, f"{text}: says {word!r}: {result.err.strip()}")
    return result


def check_namespaces(daemon):
    """A daemon whose pids or clocks are not the kernel's is refused; a client in a pid namespace learns
    whose pids it names."""
    unshare = need_tool("unshare")
    for options, words in (
            (["--time", "--monotonic", "1000", "--fork"], ("time namespace", "monotonic is 1000 s")),
            (["--time", "--boottime", "-5", "--fork"], ("time namespace", "boottime is -5 s")),
            (["--pid", "--fork", "--mount-proc"], ("pid namespace", "--pid=host"))):
        done = run([unshare, *options, STACKD, "-c", daemon.config, "-o", "store.enabled=no",
                    "-o", f"control.socket={daemon.socket}.other"])
        check(done.code == 77, f"a daemon under unshare {' '.join(options)}: {done}")
        check(all(word in done.err for word in words), f"it says {words}")
    client = [STACKCTL, "-S", daemon.socket, "snapshot", "offcpu", "--idle", "-p", "2"]
    there, here = run([unshare, "--pid", "--fork", "--mount-proc", *client]), run(client)
    check(there.code == 0 and "pids and tids are those of the host" in there.err, f"there: {there}")
    check("pids and tids" not in here.err, f"here: {here}")
    other = run([unshare, "--pid", "--fork", "--mount-proc", *client[:-2]])
    check("pids and tids" not in other.err, f"nothing is said where no pid is named: {other}")


def check_chosen(daemon):
    """A function that is chosen at run time is refused by name, with what can be traced instead."""
    record = ["record", "stackcount", "--for", "1s"]
    refused = check_ctl(daemon, [*record, "u:c:memcpy"], 1, "memcpy is chosen at run time (IFUNC)")
    instead = re.search(r"u:/\S+:0x[0-9a-f]+", refused.err)
    check(instead, f"it says where the implementation is: {refused.err}")
    other = daemon.ctl(*record, "u:c:memc*")
    check(other.code == 0 and "chosen at run time (IFUNC)" in other.out,
          f"the answer about others that match says so: {other}")
    found = daemon.ctl("probes", "--functions", "u:c:str*")
    check("chosen at run time" in found.err, f"a list says what it leaves out: {found.err}")
    if instead:
        found = daemon.ctl("probes", "--functions", instead[0])
        check(found.code == 0, f"it can be traced: {found}")


def check_at_once(daemon):
    """Processes that ended a moment ago are never said not to be seen, although the question before has just
    ended a window, so that this question does not end one."""
    for _ in range(8):
        process = subprocess.Popen(["true"])
        process.wait()
        found = daemon.ctl("snapshot", "offcpu", "-p", process.pid)
        check(found.code == 0, f"a process that has just ended was seen: {found}")


def check_usage(daemon):
    snapshot = ["snapshot", "offcpu"]
    check_ctl(daemon, ["nosuchverb"], 1, "nosuchverb")
    check_ctl(daemon, ["snapshot", "nosuchprobe"], 1, "nosuchprobe")
    check_ctl(daemon, [*snapshot, "--nosuchoption"], 1, "nosuchoption")
    check_ctl(daemon, [*snapshot, "-p"], 1)
    check_ctl(daemon, [*snapshot, "-p", "abc"], 1, "abc")
    check_ctl(daemon, [*snapshot, "-p", "-5"], 1, "-5")
    check_ctl(daemon, [*snapshot, "-p", "1,"], 1)
    check_ctl(daemon, [*snapshot, "-p", "99999999999999999999"], 1)
    check_ctl(daemon, [*snapshot, "--sort", "nosuchsort"], 1, "nosuchsort")
    check_ctl(daemon, [*snapshot, "--format", "nosuchformat"], 1, "nosuchformat")
    check_ctl(daemon, [*snapshot, "--state", "nosuchstate"], 1, "nosuchstate")
    check_ctl(daemon, [*snapshot, "-n", "-1"], 1)
    check_ctl(daemon, [*snapshot, "-u", "-k"], 1)
    check_ctl(daemon, [*snapshot, "-m", "100", "-M", "10"], 1)


def child_named(daemon, name):
    """Returns the child of the daemon with this name that runs; None while there is none."""
    for pid in children_of(daemon.process.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            if re.match(rf"\d+ \({name}\) [^ZX] ", f.read()):
                return pid
    return None


def check_parser(daemon):
    """Where no process can parse a file, the client learns that and which file it is; a moment later
    it can be parsed."""
    find = ["probes", "--functions", "u:c:malloc"]

    def refused():
        pid = child_named(daemon, "stackd-parse")
        if pid:
            os.kill(pid, signal.SIGKILL)
        done = daemon.ctl(*find)
        return done if done.code else None

    done = wait_until(refused, "a refusal")
    check(done.code == 7 and re.search(r"/libc\.so\.6: no process that parses files can be started: "
                                       r"the process that starts them ended", done.err),
          f"it names the file and the cause: {done}")
    wait_until(lambda: daemon.ctl(*find).code == 0, "the next process")


def check_broker(daemon):
    """The process that opens perf events cannot be started again: status says that it is gone, and what
    that costs; nobody has to wait for its remains."""
    pid = child_named(daemon, "stackd-broker")
    check(pid, "the process that opens perf events runs")
    os.kill(pid, signal.SIGKILL)

    def said():
        done = daemon.ctl("status", "--check")
        return done if "stackd-broker has ended" in done.out + done.err else None

    done = wait_until(said, "status that says that the process has ended")
    check(done.code != 0, f"stackd is not healthy: {done}")
    check(not os.path.exists(f"/proc/{pid}"), "the process was reaped")


def check_times(daemon):
    snapshot = ["snapshot", "offcpu"]
    check_ctl(daemon, [*snapshot, "--window", "0"], 1, "window")
    check_ctl(daemon, [*snapshot, "--window", "-5s"], 1)
    check_ctl(daemon, [*snapshot, "--window", "banana"], 1, "banana")
    check_ctl(daemon, [*snapshot, "--window", "5s", "--since", "-1min"], 1)
    check_ctl(daemon, [*snapshot, "--since", "-1min", "--until", "-2min"], 1)
    check_ctl(daemon, [*snapshot, "--since", "2099-01-01"], 1, "2099-01-01")
    check_ctl(daemon, [*snapshot, "--since", "2099-01-01 12:00:00"], 1)
    check_ctl(daemon, [*snapshot, "--since", "25:61"], 1, "25:61")
    check_ctl(daemon, [*snapshot, "--until", "-1min"], 1)
    old = ["--since", "2001-01-01 00:00", "--until", "2001-01-01 00:10"]
    check_ctl(daemon, [*snapshot, *old], 4)
    check_ctl(daemon, [*snapshot, "--since", "@1000000000", "--until", "@1000000060"], 4)


@contextlib.contextmanager
def thread():
    """Runs a thread of this process that waits, and yields its id."""
    is_over = threading.Event()
    waiter = threading.Thread(target=is_over.wait)
    waiter.start()
    try:
        yield waiter.native_id
    finally:
        is_over.set()
        waiter.join()


def check_pids(daemon):
    never = unused_pid()
    check_ctl(daemon, ["snapshot", "offcpu", "-p", never], 4, never)
    check_ctl(daemon, ["snapshot", "offcpu", "-t", never], 4, never)
    process = subprocess.Popen([os.path.join(PROGS, "prog_shortlived"), "20"])
    process.wait()
    daemon.cut()
    check_ctl(daemon, ["snapshot", "offcpu", "-p", process.pid], 0)
    with thread() as tid:
        text = f"{tid} is a thread of process {os.getpid()}, not a process: use -t {tid}"
        check_ctl(daemon, ["start", "offcpu", "-p", tid], 1, text)
        check_ctl(daemon, ["start", "offcpu", "-t", tid, "--for", "1s"], 0)
    check_ctl(daemon, ["start", "offcpu", "-p", never], 1, f"there is no process {never}")
    both = check_ctl(daemon, ["snapshot", "offcpu", "-p", f"{never},{process.pid}"], 0)
    check("prog_shortlived" in both.out, "one pid of two seen: its data")


def check_reading(daemon):
    check_ctl(daemon, ["status"], 0)
    check_ctl(daemon, ["probes"], 0)
    check_ctl(daemon, ["windows"], 0)
    check_ctl(daemon, ["sessions"], 0)
    check_ctl(daemon, ["stuck"], 0)
    check_ctl(daemon, ["snapshot", "offcpu"], 0)
    check_ctl(daemon, ["status", "--format", "json"], 0)
    check_ctl(daemon, [], 0)
    with open("/dev/full", "wb") as full:
        argv = [STACKCTL, "-S", daemon.socket, "snapshot", "offcpu", "-f"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, check=False)
    check(done.returncode == 7, f"output to a full disk: exit {done.returncode}, expected 7")
    check(done.stderr, "output to a full disk: says why")


def check_no_daemon(daemon):
    nowhere = os.path.join(daemon.dir, "nowhere")
    result = run([STACKCTL, "-S", nowhere, "status"])
    check(result.code == 2, f"no socket: {result}")
    check(nowhere in result.err, "no socket: names it")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(nowhere)
    listener.close()
    result = run([STACKCTL, "-S", nowhere, "status"])
    check(result.code == 2, f"no daemon listens: {result}")
    result = run([STACKCTL, "-S", "/" + "x" * 200, "status"])
    check(result.code in (1, 2) and result.err, f"socket path too long: {result}")
    environment = {**os.environ, "STACKD_SOCKET": daemon.socket}
    result = run([STACKCTL, "status"], env=environment)
    check(result.code == 0, f"STACKD_SOCKET names the socket: {result}")


def as_nobody(*argv):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv]


def check_privilege(daemon):
    need_tool("setpriv")
    # The build directory may be closed to other users.
    os.chmod(daemon.dir, 0o755)
    binaries = {}
    for path in (STACKD, STACKCTL):
        binaries[path] = os.path.join(daemon.dir, os.path.basename(path))
        shutil.copy(path, binaries[path])
    own = os.path.join(daemon.dir, "nobody")
    os.mkdir(own)
    os.chown(own, NOBODY, NOBODY)
    argv = [binaries[STACKD], "-c", daemon.config, "-o", f"control.socket={own}/sock"]
    argv += ["-o", f"store.path={own}/stackd.db"]
    result = run(as_nobody(*argv))
    check(result.code == 77, f"stackd without privilege: {result}")
    lines = [line for line in result.err.splitlines() if line.strip()]
    check(len(lines) == 1, f"stackd without privilege: one line, not {len(lines)}: {lines}")
    check("root" in result.err or "CAP_" in result.err, "it says what is needed")
    check(not os.path.exists(f"{own}/sock"), "it left no socket")
    result = run(as_nobody(binaries[STACKCTL], "-S", daemon.socket, "status"))
    check(result.code == 3, f"stackctl refused: {result}")
    check("group" in result.err, "stackctl refused: says which group")


def check_second_daemon(daemon):
    result = run(daemon.argv)
    check(result.code not in (0, 77, 78), f"a second daemon on the socket: {result}")
    check(daemon.socket in result.err, "a second daemon: names the socket")
    check(daemon.ctl("status").code == 0, "a second daemon: the first one goes on")


def check_stale_socket():
    daemon = Daemon()
    daemon.process.kill()
    daemon.process.wait()
    check(os.path.exists(daemon.socket), "kill -9 leaves the socket behind")
    check(daemon.ctl("status").code == 2, "kill -9: no daemon")
    again = subprocess.Popen(daemon.argv, stderr=subprocess.DEVNULL)
    atexit.register(stop_process, again)
    wait_until(lambda: daemon.ctl("status").code == 0, "a daemon over a stale socket")
    stop_process(again)
    check(again.returncode == 0, "the next one starts over it, and ends with 0")
    check(not os.path.exists(daemon.socket), "and removes the socket at its end")


def check_unusable_store():
    """A path that cannot be used costs windows on disk only, and is the first thing that is said."""
    daemon = Daemon("store.path=/proc/nosuch/stackd.db", "window.length=1s")
    daemon.cut()
    lines = daemon.ctl("status").out.splitlines()
    check("NOT healthy" in lines[0] and "/proc/nosuch" in lines[1], f"bad path: {lines[:3]}")
    checked = daemon.ctl("status", "--check")
    check(checked.code == 1 and checked.out.startswith("WARNING: /proc/nosuch"), f"{checked}")
    check_ctl(daemon, ["snapshot", "offcpu"], 0)
    limits = daemon.status()["limits"]
    dumb = [limit["name"] for limit in limits if not limit.get("effect")]
    check(len(limits) > 20 and not dumb, f"each limit says what happens when it is reached: {dumb}")
    daemon.stop()


def check_config_text(directory, text, *words):
    """Checks a config file that is refused, by --check-config and at start alike, with exit code
    78."""
    path = os.path.join(directory, "bad.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    for mode in (["--check-config"], []):
        result = run([STACKD, "-c", path, *mode])
        label = f"config {text.strip()!r} {' '.join(mode)}"
        check(result.code == 78, f"{label}: {result}")
        for word in (path, *words):
            check(word in result.err, f"{label}: says {word!r}: {result.err.strip()}")


def check_config(daemon):
    directory = daemon.dir
    check_config_text(directory, "[window]\nlenght = 5s\n", ":2", "lenght")
    check_config_text(directory, "[windows]\nlength = 5s\n", "windows")
    check_config_text(directory, "[window]\n\nlength = banana\n", ":3", "[window] length = banana")
    check_config_text(directory, "[window]\nlength = 1ms\n", ":2", "length = 1ms", "100ms")
    check_config_text(directory, "[probe.offcpu]\nenabled = perhaps\n", ":2", "enabled")
    check_config_text(directory, "length = 5s\n", ":1")
    check_config_text(directory, "[window\nlength = 5s\n", ":1")
    for override in ("nosuch.key=1", "window.length", "window.length=", "window.length=-1s"):
        result = run([STACKD, "-c", daemon.config, "-o", override, "--check-config"])
        check(result.code == 78, f"-o {override}: {result}")
        check(override.split("=")[0] in result.err, f"-o {override}: names it")
    result = run([STACKD, "-c", os.path.join(directory, "missing"), "--check-config"])
    check(result.code == 78 and "missing" in result.err, f"a missing named file: {result}")
    result = run([STACKD, "-c", daemon.config, "--check-config"])
    check(result.code == 0, f"a good config: {result}")


def check_dump(daemon):
    argv = [STACKD, "-c", daemon.config, "-o", "window.length=7s", "--dump-config"]
    result = run(argv)
    check(result.code == 0, f"--dump-config: {result}")
    check(re.search(r"^length\s*=\s*7s", result.out, re.M), "--dump-config shows the override")
    path = os.path.join(daemon.dir, "dumped.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(result.out)
    again = run([STACKD, "-c", path, "--dump-config"])
    check(again.code == 0, f"the dump is a config file: {again}")

    def keys(text):
        return re.findall(r"^(\w+\s*=[^#\n]*?)\s*(?:#.*)?$", text, re.M)

    check(keys(again.out) == keys(result.out), "which gives the same dump again")


def check_stackd_usage():
    for argv, code in ((["--version"], 0), (["--help"], 0), (["--nosuch"], 1), (["word"], 1)):
        result = run([STACKD, *argv])
        check(result.code == code, f"stackd {argv}: {result}")
    for argv in (["--version"], ["--help"]):
        result = run([STACKCTL, *argv])
        check(result.code == 0 and result.out, f"stackctl {argv}: {result}")


need_live()
daemon = Daemon("window.length=1s")
daemon.cut()
check_usage(daemon)
check_namespaces(daemon)
check_chosen(daemon)
check_parser(daemon)
check_times(daemon)
check_at_once(daemon)
check_pids(daemon)
check_reading(daemon)
check_no_daemon(daemon)
check_privilege(daemon)
check_second_daemon(daemon)
check_stale_socket()
check_unusable_store()
check_config(daemon)
check_dump(daemon)
check_stackd_usage()
check_broker(daemon)
finish()
