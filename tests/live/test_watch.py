# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows watch and record as a person sees them: answers that follow each other without a gap, or
are drawn over each other on a terminal; progress; and Ctrl-C, which ends both with the results so
far.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import harness as h

h.need_live()

ROWS, COLUMNS, NARROW = 12, 90, 30
CLEAR = "\x1b[H\x1b[2J"


def started(*args, **kwargs):
    argv = [h.STACKCTL, "-S", daemon.socket, *h.with_stacks(args)]
    return h.spawn(argv, stdin=subprocess.DEVNULL, **kwargs)


def interrupted(process):
    process.send_signal(signal.SIGINT)
    return process.wait(h.HANG_SECONDS)


def read_until(fd, is_enough):
    """Reads text from fd until is_enough(text)."""
    text, deadline = "", time.monotonic() + h.HANG_SECONDS
    while not is_enough(text) and time.monotonic() < deadline:
        if select.select([fd], [], [], 1)[0]:
            data = os.read(fd, 65536)
            if not data:
                break
            text += data.decode()
    return text


def read_rest(fd):
    text = ""
    with contextlib.suppress(OSError):  # reading fails when the other end of a terminal is closed
        while data := os.read(fd, 65536):
            text += data.decode()
    return text


def on_terminal(which, *args, columns=COLUMNS):
    """Runs stackctl with its stdout or stderr on a terminal of ROWS by `columns`."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, which: slave}
    process = started(*args, env={**os.environ, "NO_COLOR": "1", "TERM": "xterm", "SYSTEMD_PAGER": ""}, **streams)
    os.close(slave)
    return process, master


daemon = h.Daemon("window.length=1s")
daemon.cut()
before = daemon.started_objects()
program = h.spawn(
    ["python3", "-c", "import time\nwhile True: time.sleep(0.01); sum(range(20000))"]
)
ours = ("-i", "1s", "-p", program.pid)

# Into a pipe it prints one answer after the other.
watch = started("watch", "offcpu", *ours, stdout=subprocess.PIPE)
text = read_until(watch.stdout.fileno(), lambda t: len(re.findall("^time ", t, re.M)) > 2)
h.check(interrupted(watch) == 0, "Ctrl-C ends watch well")
h.check(len(re.findall("^time ", text, re.M)) > 2, f"there are three answers: {text[-200:]}")
h.check(f"(pid {program.pid})" in text and "\x1b" not in text,
        "it shows that process, in plain text")
pids = set(re.findall(r"\(pid (\d+)\)", text))
h.check(pids == {str(program.pid)}, f"it shows no other process: {pids}")

# With --json it prints an object in each line, each from where the one before ended.
watch = started("watch", "oncpu", *ours, "--json", "--by", "process", stdout=subprocess.PIPE)
lines = read_until(watch.stdout.fileno(), lambda t: t.count("\n") > 2).splitlines()[:3]
h.check(interrupted(watch) == 0, "Ctrl-C ends watch of samples well")
replies = [json.loads(line) for line in lines]
h.check(len(replies) == 3, f"there are three objects: {len(replies)}")
for one, two in zip(replies, replies[1:]):
    end, start = one["coverage"]["used"]["end"]["ns"], two["coverage"]["used"]["start"]["ns"]
    h.check(end == start, f"no gap between answers: {start - end} ns")
h.check(
    any(r["process"]["pid"] == program.pid for reply in replies for r in reply["rows"]),
    "it has its samples, by process",
)

# With a process that does nothing it goes on all the same, and ends with its session.
idle = h.spawn(["sleep", "600"])
short = daemon.ctl("start", "oncpu", "--name", "short", "--for", "3s")
h.check(short.code == 0, f"a session of 3 s: {short}")
of_idle = ("watch", "short", "-i", "1s", "-p", idle.pid, "--json")
watch = started(*of_idle, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
out, err = (text.decode() for text in watch.communicate(timeout=h.HANG_SECONDS))
replies = [json.loads(line) for line in out.splitlines()]
h.check(watch.returncode == 1 and "session short has ended" in err, f"it ends: {err}")
h.check(replies and not any(reply["rows"] for reply in replies),
        f"{len(replies)} answers have no rows")
for one, two in zip(replies, replies[1:]):
    end, start = one["coverage"]["used"]["end"]["ns"], two["coverage"]["used"]["start"]["ns"]
    h.check(end == start, f"no window is shown twice: {start - end} ns")

# The choice and the order of rows are those of snapshot.
watch = started("watch", "offcpu", "-i", "1s", "--idle", "-n", "3", "--reverse", "--json",
                stdout=subprocess.PIPE)
line = read_until(watch.stdout.fileno(), lambda t: "\n" in t).splitlines()[0]
interrupted(watch)
rows = json.loads(line)["rows"]
totals = [row["total_ns"] for row in rows]
h.check(len(totals) == 3 and totals == sorted(totals), f"-n 3 --reverse: {totals}")
h.check(any(row.get("module") for row in rows), "rows have the module of their function, as those of snapshot")

# On a terminal each answer replaces the one before. There is more to show than fits: the screen is
# filled except for the cursor's line, from the answer's first line on.
watch, master = on_terminal("stdout", "watch", "offcpu", "-i", "1s", "--idle")
text = read_until(master, lambda t: t.count(CLEAR) > 2)
h.check(interrupted(watch) == 0, "Ctrl-C ends it there, too")
os.close(master)
screens = text.replace("\r\n", "\n").split(CLEAR)
h.check(screens[0] == "" and len(screens) > 3, f"each clears the screen: {len(screens) - 1}")
for screen in screens[1:-1]:
    drawn = screen.splitlines()
    wide = [line for line in drawn if len(line) > COLUMNS]
    h.check(len(drawn) == ROWS - 1 and not wide, f"{len(drawn)} lines of {ROWS}; too wide: {wide}")
    h.check(drawn[0].startswith("time "), f"it begins with its top: {drawn[:1]}")

# A terminal too narrow for any text breaks its lines, and still begins with the first one.
watch, master = on_terminal("stdout", "watch", "offcpu", "-i", "1s", "--idle", columns=NARROW)
text = read_until(master, lambda t: t.count(CLEAR) > 1)
interrupted(watch)
os.close(master)
drawn = text.replace("\r\n", "\n").split(CLEAR)[1].splitlines()
height = sum(max(1, -(-len(line) // NARROW)) for line in drawn)
h.check(
    len(drawn) < height < ROWS and drawn[0].startswith("time "),
    f"{height} rows of {ROWS} at {NARROW} columns: {drawn}",
)
record, master = on_terminal("stderr", "record", "offcpu", "-p", program.pid, columns=NARROW)
progress = read_until(master, lambda t: len(re.findall("offcpu: ", t)) > 2)
interrupted(record)
progress = [re.sub("\x1b.*", "", line) for line in progress.split("\r")[1:-1]]
os.close(master)
h.check(all(len(line) < NARROW for line in progress), f"progress is on one row: {progress}")

# A recording shows its progress; Ctrl-C prints the results so far, and leaves nothing.
record, master = on_terminal("stderr", "record", "offcpu", "-p", program.pid)
progress = read_until(master, lambda t: len(re.findall("offcpu: .* switches", t)) > 0)
h.check(interrupted(record) == 0, "Ctrl-C ends a recording well")
progress += read_rest(master)
os.close(master)
h.check(
    re.search(r"\roffcpu: \S+ s, [\d,]+ switches, lost 0; Ctrl-C ends", progress),
    f"it shows its progress: {progress!r}",
)
out = record.stdout.read().decode()
h.check(f"(pid {program.pid})" in out, f"it prints the results so far: {out[:200]}")

# When the program that reads the output exits, as head does, they end, even if they have nothing to
# print. The first answer is longer than the buffer of 4 KiB that hid the failed write once.
def unread(*args, lines):
    process = started(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = read_until(process.stdout.fileno(), lambda t: t.count("\n") >= lines)
    process.stdout.close()
    h.check(process.wait(h.HANG_SECONDS) == 7, f"{args}: exit {process.returncode}")
    h.check(process.stderr.read() == b"", f"{args}: it says nothing")
    return text


h.check(len(unread("watch", "offcpu", "-i", "1s", "--idle", "-n", "0", lines=1)) > 4096,
        "the answer was long")
unread("watch", "oncpu", "-i", "1s", "--json", lines=1)
unread("watch", "offcpu", "-i", "600s", lines=0)
unread("snoop", "t:sched:sched_process_exec", "--comm", "no-such-comm", lines=0)
unread("stacksnoop", "t:sched:sched_switch", lines=100)
with open("/dev/full", "w", encoding="ascii") as full:
    watch = started("watch", "offcpu", "-i", "1s", stdout=full, stderr=subprocess.PIPE)
    h.check(watch.wait(h.HANG_SECONDS) == 7, f"a full disk ends it: {watch.returncode}")
    err = watch.stderr.read().decode()
    h.check("standard output: No space left on device" in err, f"and it says so: {err}")

# Requests that are refused.
for words, says in (
    ([], "needs a probe"),
    (["nope"], "no session nope is running"),
    (["offcpu", "--output", "x"], "takes no --output"),
    (["offcpu", "-i", "0"], "has to be more than 0"),
    (["offcpu", "--window", "5s"], "takes no --window"),
):
    result = daemon.ctl("watch", *words)
    h.check(result.code == 1 and says in result.err and not result.out, f"watch {words}: {result}")

after = daemon.settled_objects(before)
h.check(before and after == before, f"in the kernel: {after} as {before}")
h.finish()
