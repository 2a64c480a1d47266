#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a file system that answers nothing any more stops nobody else. A program maps a file of
an overlay over FUSE, which every user can mount in a user namespace. stackd asks that file system
nothing: it records other programs with their names, ends at once, and starts at once, all while
the attack lasts. A stackd that was set to read remote files, too, loses a process that opens files,
and nothing else."""

from harness import *

NOBODY = 65534


def start_attack():
    """Starts the attack as another user where that user may use FUSE, else as root."""
    at = make_temp_dir()
    os.chown(at, NOBODY, NOBODY)
    user = {"user": NOBODY, "group": NOBODY} if os.stat("/dev/fuse").st_mode & 0o002 else {}
    argv = [os.path.join(PROGS, "prog_attack"), "hang", at, os.path.join(PROGS, "prog_sleeper")]
    log = open(os.path.join(make_temp_dir(), "log"), "w+", encoding="utf-8")
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, **user)
    atexit.register(end_attack, process)

    def has_begun():
        with open(log.name, encoding="utf-8") as f:
            if "ready" in f.read():
                return True
        if process.poll() is not None:
            with open(log.name, encoding="utf-8") as f:
                skip(f"the attack is not possible here: {f.read().strip()}")
        return False

    wait_until(has_begun, "the attack")
    return process, log.name


def end_attack(process):
    if process.poll() is None:
        process.stdin.close()
        process.wait(30)


def hung_threads(log, pid):
    """Returns the threads of a process that have asked the file system anything since it hangs."""
    with open(log, encoding="utf-8") as f:
        asked = {int(n) for n in re.findall(r"hang opcode \d+ by pid (\d+)", f.read())}
    return asked & {int(n) for n in os.listdir(f"/proc/{pid}/task")}


def problems(daemon):
    """Returns what is wrong. A busy host may have lost something at any time, and be late for a
    moment."""
    return [text for text in daemon.status()["problems"] if " lost in " not in text]


def check_names(daemon, label):
    program = Program("prog_shortlived", "300")
    check(program.end() == 0, f"{label}: a new program runs")
    names = [n for r in daemon.snapshot("-p", program.pid)["rows"] for n in frame_names(r)]
    check("short_wait" in names, f"{label}: its stacks have names")


def check_recording(daemon, label):
    check_names(daemon, label)
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not problems(daemon), f"{label}: a healthy stackd")
    found = problems(daemon)
    check(not found, f"{label}: stackd is healthy: {found}")


need_live()
if not os.path.exists("/dev/fuse"):
    skip("needs /dev/fuse")
def start_seconds(daemon):
    begun = time.monotonic()
    daemon.start()
    return time.monotonic() - begun


def remote_files(daemon):
    return next(l["hits"] for l in daemon.status()["limits"] if l["name"] == "symbols.remote")


daemon = Daemon("window.length=1s", start=False)
alone_s = start_seconds(daemon)
attack, log = start_attack()
check_recording(daemon, "an attack on a running stackd")
wait_until(lambda: remote_files(daemon) > 0, "the mapping of the attack to be left out")
check(not hung_threads(log, daemon.process.pid), "no thread of stackd asked the file system")
begun = time.monotonic()
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
took_s = time.monotonic() - begun
estimate_most(took_s, 10, f"it took {took_s:.2f} s to end")
took_s = start_seconds(daemon)
estimate_most(took_s, 3 * alone_s + 5, f"it took {took_s:.2f} s to start, {alone_s:.2f} s without attack")
check(remote_files(daemon) > 0, "the mapping of the attack is left out")
check_recording(daemon, "a start during the attack")
check(not hung_threads(log, daemon.process.pid), "no thread of stackd asked the file system")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
daemon = Daemon("window.length=1s", "symbols.remote=yes")
wait_until(lambda: any("file system does not answer" in text for text in problems(daemon)),
           "a process that opens files to hang")
check_names(daemon, "remote files are read")
check(not hung_threads(log, daemon.process.pid), "no thread of stackd itself asked the file system")
hits = next(l["hits"] for l in daemon.status()["limits"] if l["name"] == "symbols.hanging_opens")
check(hits > 0, f"{hits} files were not opened")
begun = time.monotonic()
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
took_s = time.monotonic() - begun
estimate_most(took_s, 10, f"it took {took_s:.2f} s to end")
check(attack.poll() is None, "the attack went on to the end")
end_attack(attack)
finish()
