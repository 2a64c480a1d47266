# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the tests of the older tools' verbs share: parsers of their output, and cases, each of
which is a call of a tool with a check of its output. Several cases are recorded at a time.
"""

import concurrent.futures
import os
import re
import select
import signal
import subprocess
import time

import harness as h

BLOCK = re.compile(
    r"((?:    [^ \n][^\n]*\n)*)    -                (\S.*) \((\d+)\)\n        (\d+(?: \d+ \S+)?)\n\n"
)
PAIR = re.compile(
    r"    waker:           (\S.*) (\d+|-)\n((?:    .+\n)*?)    --               --\n"
    r"((?:    .+\n)*?)    target:          (\S.*) (\d+)\n        (\d+)\n\n"
)
TIME = re.compile(r"^\d\d:\d\d:\d\d$", re.M)

# Several cases run at a time to save time, but not so many that loading programs is all they do:
# in an emulated machine, the last one would wait longer for its answer than a client does.
IS_SLOW = "STACKD_UNIT" in os.environ
AT_ONCE = 1 if IS_SLOW else 8


class Entry:
    """A block, a pair or a folded line of the output. frames: leaf first, kernel above user."""

    def __init__(self, frames, comm, pid, value, waker=None, above=(), line=None):
        self.frames, self.comm, self.pid, self.value = frames, comm, pid, value
        self.waker, self.above, self.line = waker, list(above), line
        self.longest = self.end = None

    def has(self, *names):
        return all(any(name in frame for frame in self.frames) for name in names)


def _frames(text):
    return [line[4:] for line in text.splitlines()]


class Output:
    """The output of a call of a tool. The method for the form that it must have reads its entries."""

    def __init__(self, label, result):
        self.label, self.result, self.entries = label, result, []
        self.lines = result.out.splitlines()
        self.check(result.code == 0, f"{result}")

    def check(self, condition, text):
        return h.check(condition, f"{self.label}: {text}")

    def header(self, text):
        """Checks the first line, and that an empty line follows."""
        self.check(self.lines[:1] == [text], f"the header is {self.lines[:1]}, not {text!r}")
        self.check(self.lines[1:2] == [""], "an empty line below it")
        return self.result.out.split("\n", 1)[-1]

    def _left(self, text, pattern):
        left = TIME.sub("", pattern.sub("", text)).strip()
        self.check(not left, f"only entries are printed: {left[:200]!r}")

    def _ascending(self, values):
        self.check(values == sorted(values), "the smallest comes first")

    def blocks(self, header, is_sorted=True):
        body = self.header(header)
        self._left(body, BLOCK)
        for frames, comm, pid, value in BLOCK.findall(body):
            words = value.split()
            entry = Entry(_frames(frames), comm, int(pid), int(words[0]))
            if len(words) > 1:
                entry.longest = int(words[1])
                entry.end = float(words[2]) if words[2] != "-" else None
            self.entries.append(entry)
        if is_sorted:
            self._ascending([e.longest or e.value for e in self.entries])
        return self

    def pairs(self, header):
        body = self.header(header)
        self._left(body, PAIR)
        for waker, _, above, below, comm, pid, value in PAIR.findall(body):
            self.entries.append(
                Entry(_frames(below), comm, int(pid), int(value), waker, _frames(above))
            )
        self._ascending([e.value for e in self.entries])
        return self

    def folded(self):
        for line in self.lines:
            stack, _, value = line.rpartition(" ")
            if not self.check(stack and value.isdigit(), f"a folded line: {line[:200]!r}"):
                continue
            frames = stack.split(";")
            self.entries.append(Entry(frames[:0:-1], frames[0], None, int(value), line=stack))
        self._ascending([e.value for e in self.entries])
        return self

    def some(self, *names):
        """Returns the entries with all of these functions in their stack; there must be at least
        one."""
        found = [e for e in self.entries if e.has(*names)]
        self.check(found, f"there are entries at {', '.join(names)}")
        return found

    def none(self, *names):
        for name in names:
            self.check(not any(e.has(name) for e in self.entries), f"no entry is at {name}")

    def sum(self, *names):
        return sum(e.value for e in self.entries if e.has(*names))

    def pids(self):
        return {e.pid for e in self.entries}

    def near(self, value, expected, tolerance, text):
        h.check_near(value, expected, tolerance, f"{self.label}: {text}")


class Cases:
    """Calls of tools, each with the row of the final table it belongs to; recorded together,
    checked one by one."""

    def __init__(self, daemon):
        self.daemon, self.cases, self.rows = daemon, [], {}

    def add(self, row, words, look, until_interrupted=False):
        """Adds a call. look(output) checks what `stackctl words` printed; words is a list or a
        string. The call is interrupted after a second, or when it has printed so many times of day
        as until_interrupted says."""
        argv = words.split() if isinstance(words, str) else [str(w) for w in words]
        self.cases.append((row, argv, look, until_interrupted))

    @staticmethod
    def _read_times(process, count):
        """Returns what a call prints until there are so many times of day."""
        text, deadline = b"", time.monotonic() + h.HANG_SECONDS
        while len(TIME.findall(text.decode("utf-8", "replace"))) < count:
            if time.monotonic() > deadline:
                break
            if select.select([process.stdout], [], [], 1)[0]:
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    break
                text += data
        return text

    def _ctl(self, argv, until_interrupted):
        """Runs stackctl; returns its result, and how long it took until it recorded."""
        began = time.monotonic()
        process = subprocess.Popen(
            [h.STACKCTL, "-S", self.daemon.socket, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # unbuffered: communicate() must read all that follows the header
        )
        # The header says that it records now.
        first = process.stdout.readline()
        start = time.monotonic() - began
        if until_interrupted is True:
            time.sleep(1)
        elif until_interrupted:
            first += self._read_times(process, until_interrupted)
        if until_interrupted:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=h.HANG_SECONDS)
        result = h.Result(argv, process.returncode, (first + out).decode(), err.decode())
        result.took = time.monotonic() - began
        return result, start

    def _run(self, case):
        _, argv, _, until_interrupted = case
        began = time.monotonic()
        result, start = self._ctl(argv, until_interrupted)
        if IS_SLOW and "no answer for" in result.err:
            # Loading takes seconds in the verifier, and longer for a process with a third of a CPU.
            result, start = self._ctl(argv, until_interrupted)
        now = time.monotonic()
        print(f"{now - self.began:6.1f} s: {' '.join(argv)}: {start:.1f} s to start,"
              f" {now - began:.1f} s in all", flush=True)
        return result

    def run(self):
        self.began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(self._run, self.cases))
        for (row, argv, look, _), result in zip(self.cases, results):
            before = len(h.failures())
            look(Output(" ".join(argv), result))
            self.rows.setdefault(row, []).append(
                (" ".join(argv), len(h.failures()) == before)
            )
        print("\nwhat is checked, and by which call:")
        for row, uses in self.rows.items():
            for use, is_good in uses:
                print(f"  {row:44} {'ok    ' if is_good else 'FAILED'} {use}")
