#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows the lines of text on real processes: processes of one name are one row with their number, each
request of a disk is in one row with its bytes, windows of all probes end together, and each answer fits on
a terminal."""

import fcntl
import pty
import struct
import termios
import threading

from harness import *

PROCESSES, BLOCKS = 12, 40

need_live()
# Windows end only when a client asks for that.
daemon = Daemon("window.length=10min")


def wait_for_lock(path, name):
    """Returns a process of this name that waits for the lock of the file."""
    code = ("import ctypes, fcntl, sys; ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0); "
            "fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)")
    return spawn([sys.executable, "-c", code, path, name])


def on_terminal(*words):
    """Returns the lines that stackctl prints on a terminal of 80 columns and 24 lines."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    out = b""

    def read():
        nonlocal out
        with contextlib.suppress(OSError):
            while data := os.read(master, 65536):
                out += data

    reader = threading.Thread(target=read)
    reader.start()
    subprocess.run([STACKCTL, "-S", daemon.socket, *words], stdout=slave, timeout=HANG_SECONDS, check=True,
                   env={**os.environ, "NO_COLOR": "1", "TERM": "xterm", "PAGER": "cat", "SYSTEMD_PAGER": ""})
    os.close(slave)
    reader.join()
    os.close(master)
    return out.decode().rstrip("\r\n").split("\r\n")


name, path = f"lk{os.getpid()}", os.path.join(daemon.dir, "lock")
with open(path, "w", encoding="utf-8") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = [wait_for_lock(path, name) for _ in range(PROCESSES)]
    args = ["snapshot", "offcpu", "--reason", "flock", "--window", "1min", "-n", "0"]

    def line():
        """Returns the row of the waiting processes once all of them wait."""
        daemon.cut()
        rows = [row for row in daemon.ctl_json(*args, "--by", "line")["rows"] if row["process"]["comm"] == name]
        return rows if sum(row["open"] for row in rows) == PROCESSES else None

    (row,) = wait_until(line, "all processes to wait")
    check((row["processes"], row["process"]["pid"], row["reason"]) == (PROCESSES, 0, "flock"), f"one row: {row}")
    text = daemon.ctl_lines(*args).out
    check(re.search(rf"(?m)  {name}\(x{PROCESSES}\) +S flock\b", text), f"one line: {text}")
    text = daemon.ctl_lines("stuck", "--comm", name).out
    check(re.search(rf"(?m) {name}\(\d+\) +S flock {re.escape(path)} +\S+\({os.getpid()}\)", text), f"its holder: {text}")
for process in waiting:
    process.wait()

# Windows of samples and of I/O end with those of waits, unless they began less than a second ago.
for probe in ("oncpu", "iolat"):
    def ended(probe=probe):
        return [window["seq"] for window in daemon.call("io.stackd.Windows", probe=probe)["windows"]]
    before = ended()
    wait_until(lambda before=before, ended=ended: daemon.cut() and set(ended()) - set(before),
               f"a window of {probe}")

# A request of a disk is in one row, not in one for each part of its time.
with open(os.path.join(daemon.dir, "blocks"), "wb") as file:
    for _ in range(BLOCKS):
        file.write(b"x" * 65536)
        file.flush()
        os.fsync(file.fileno())
daemon.cut("iolat")
reply = daemon.call("io.stackd.Snapshot", probe="iolat", window_ns=60 * NS_PER_S, by="line", sort="bytes")
rows = reply["rows"]
layers = {row["io"]["layer"] for row in rows}
check(rows and not layers & {"queue", "device", "throttled"}, f"the layers are those of whole operations: {layers}")
count = sum(row["count"] for row in rows)
check(reply["totals"]["ios"] == count, f"{count} operations, {reply['totals']['ios']} in all")
moved = [0 if row["io"]["op"] == "discard" else row["io"]["bytes"] for row in rows]
check(moved == sorted(moved, reverse=True), f"by bytes: {moved}")
answer = daemon.ctl_lines("snapshot", "iolat", "--sort", "bytes", "--window", "1min")
check(answer.code == 0 and re.search(r"(?m)^ *total +count +MB/s ", answer.out), f"in lines: {answer}")

# Each answer fits, with the command line below it.
for words in (["snapshot"], ["snapshot", "offcpu"], ["snapshot", "oncpu"], ["snapshot", "iolat"], ["stuck"]):
    lines = on_terminal(*words)
    check(len(lines) <= 23 and max(map(len, lines)) <= 80, f"{words} fits: {lines}")
    check(lines[-1].startswith(("rows  ", "more  ")), f"{words}: its last line says how to see more: {lines[-1]}")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
