# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs that are older tools by name: every example of the originals runs, in their layout,
and their figures are those of programs of known truth.
"""

import re
import signal
import subprocess
import time

import harness as h

h.need_live()

BLOCK = re.compile(
    r"((?:    [^ \n][^\n]*\n)*)    -                (\S.*) \((\d+)\)\n        (\d+(?: \d+ \S+)?)\n\n"
)

daemon = h.Daemon("window.length=1s")
spinner = h.Program("prog_spinners", 1).ready().go()
spinner.read_until("spinning")
sleeper = subprocess.Popen(
    ["python3", "-c", "import time\nwhile True: time.sleep(0.02)"], stdout=subprocess.DEVNULL
)
S, P = str(sleeper.pid), str(spinner.pid)


def until_interrupted(*args, seconds=1.5):
    """What the tool prints when Ctrl-C ends it that long after its first line."""
    process = subprocess.Popen(
        [h.STACKCTL, "-S", daemon.socket, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=h.patience(30))
    return h.Result(args, process.returncode, out.decode(), err.decode())


def text(result, header):
    """[(frames, comm, pid, value)] of the blocks below that header line."""
    lines = result.out.splitlines()
    h.check(result.code == 0 and lines and lines[0] == header, f"{header}: {result} {lines[:1]}")
    body = result.out.split("\n", 1)[1] if lines else ""
    h.check(body.startswith("\n"), f"{header}: an empty line below it")
    blocks = BLOCK.findall(body)
    left = BLOCK.sub("", body).strip()
    h.check(not left, f"{header}: nothing but blocks: {left[:200]!r}")
    values = [int(v.split()[0]) for *_, v in blocks]
    if "waits" not in header:
        h.check(values == sorted(values), f"{header}: smallest first")
    return [(f.split("\n")[:-1], c, int(p), v) for f, c, p, v in blocks]


def folded(result):
    """{line: value}, and no line twice in a row of another form."""
    h.check(result.code == 0, str(result))
    lines = [line.rsplit(" ", 1) for line in result.out.splitlines()]
    h.check(all(len(x) == 2 and x[1].isdigit() and ";" in x[0] for x in lines), f"{result.argv}")
    values = [int(v) for _, v in lines]
    h.check(values == sorted(values), f"{result.argv}: smallest first")
    return lines


ctl = daemon.ctl
USER_KERNEL = "by user + kernel stack"

# offcputime: the examples of its help.
OFF = "Tracing off-CPU time (us) of"
blocks = text(until_interrupted("offcputime"), f"{OFF} all threads {USER_KERNEL}... Hit Ctrl-C to end.")
h.check(any(p == sleeper.pid for _, _, p, _ in blocks), "all threads: the sleeper's")
blocks = text(ctl("offcputime", "2"), f"{OFF} all threads {USER_KERNEL} for 2 secs.")
h.check(len({p for _, _, p, _ in blocks}) > 2, "all threads: of several processes")
lines = folded(ctl("offcputime", "-f", "1"))
h.check(any("nanosleep" in stack for stack, _ in lines), "folded: who sleeps")
blocks = text(
    ctl("offcputime", "-m", "1000", "-p", S, "1"), f"{OFF} PID {S} {USER_KERNEL} for 1 secs."
)
h.check(blocks and all(int(v) >= 1000 for *_, v in blocks), "-m: 1 ms and more")
blocks = text(
    ctl("offcputime", "-M", "10000", "-p", S, "1"), f"{OFF} PID {S} {USER_KERNEL} for 1 secs."
)
h.check(sum(int(v) for *_, v in blocks) < 500_000, "-M: not the sleeps of 20 ms")
blocks = text(ctl("offcputime", "-p", S, "3"), f"{OFF} PID {S} {USER_KERNEL} for 3 secs.")
h.check({p for _, _, p, _ in blocks} == {sleeper.pid}, "-p: this process only")
total = sum(int(v) for *_, v in blocks)
h.check(2_400_000 < total < 3_100_000, f"-p: it sleeps most of 3 s: {total} us")
frames = blocks[-1][0] if blocks else []
kernel = [i for i, f in enumerate(frames) if "nanosleep" in f]
h.check(len(kernel) > 1 and "schedule" in frames[0], f"leaf first, the kernel's above: {frames}")
text(ctl("offcputime", "-t", S, "1"), f"{OFF} TID {S} {USER_KERNEL} for 1 secs.")
blocks = text(ctl("offcputime", "-u", "1"), f"{OFF} user threads {USER_KERNEL} for 1 secs.")
h.check(any(p == sleeper.pid for _, _, p, _ in blocks), "-u: programs")
users = {p for _, _, p, _ in blocks}
blocks = text(ctl("offcputime", "-k", "1"), f"{OFF} kernel threads {USER_KERNEL} for 1 secs.")
h.check(not users & {p for _, _, p, _ in blocks}, "-k: no programs")
blocks = text(ctl("offcputime", "-Up", S, "1"), f"{OFF} PID {S} by user stack for 1 secs.")
h.check(not any("schedule" in f for fs, *_ in blocks for f in fs), "-U: no kernel frames")
blocks = text(ctl("offcputime", "-Kp", S, "1"), f"{OFF} PID {S} by kernel stack for 1 secs.")
h.check(any("schedule" in f for fs, *_ in blocks for f in fs), "-K: kernel frames")
blocks = text(ctl("offcputime", "-dp", S, "1"), f"{OFF} PID {S} {USER_KERNEL} for 1 secs.")
h.check(any("    --" in fs for fs, *_ in blocks), "-d: a border")
lines = folded(ctl("offcputime", "-dfp", S, "1"))
h.check(any(";-;" in stack for stack, _ in lines), "-df: a border")
blocks = text(ctl("offcputime", "-vp", S, "1"), f"{OFF} PID {S} {USER_KERNEL} for 1 secs.")
h.check(all(re.match("    (0x[0-9a-f]+|-) ", f) for fs, *_ in blocks for f in fs), "-v: addresses")
blocks = text(ctl("offcputime", "-sp", S, "1"), f"{OFF} PID {S} {USER_KERNEL} for 1 secs.")
h.check(any("+0x" in f for fs, *_ in blocks for f in fs), "-s: offsets")
for state, some in (("1", True), ("2", False)):
    result = ctl("offcputime", "--state", state, "-p", S, "1")
    blocks = text(result, f"{OFF} PID {S} {USER_KERNEL} for 1 secs.")
    h.check(sum(int(v) for *_, v in blocks) > 500_000 if some else True, f"--state {state}")
result = ctl("offcputime", "-Ti", "1", "-p", S, "3")
times = re.findall(r"^\d\d:\d\d:\d\d$", result.out, re.M)
h.check(result.code == 0 and 2 <= len(times) <= 4, f"-Ti 1: {times} {result}")
total = sum(int(v) for *_, v in BLOCK.findall(result.out))
h.check(2_400_000 < total < 3_100_000, f"-i: each wait once: {total} us")
result = ctl("offcputime", "--stack-storage-size", "4096", "1")
h.check(result.code == 0 and "--stack-storage-size" in result.err, f"a size is noted: {result}")

# topwaits.
TOP = "Tracing waits (us: total, longest; end of the longest) of"
since = time.time()
result = ctl("topwaits", "-p", S, "2")
blocks = text(result, f"{TOP} PID {S} by process and stack for 2 secs.")
total, longest, end = blocks[-1][3].split() if blocks else (0, 0, 0)
h.check(20_000 <= int(longest) < 200_000 and int(longest) < int(total), f"the longest: {longest}")
h.check(since < float(end) < time.time(), f"its end: {end}")
text(ctl("topwaits", "1"), f"{TOP} all threads by process and stack for 1 secs.")
text(ctl("topwaits", "-t", S, "1"), f"{TOP} TID {S} by process and stack for 1 secs.")
text(until_interrupted("topwaits", "-m", "1000"), f"{TOP} all threads by process and stack... Hit Ctrl-C to end.")
blocks = text(ctl("topwaits", "-M", "1000", "1"), f"{TOP} all threads by process and stack for 1 secs.")
h.check(all(int(v.split()[1]) <= 1000 for *_, v in blocks), "-M: 1 ms at most")
blocks = text(ctl("topwaits", "--state", "0", "-p", P, "1"), f"{TOP} PID {P} by process and stack for 1 secs.")
h.check(all(int(v.split()[1]) < 900_000 for *_, v in blocks), "--state 0: what is preempted")

# offwaketime: who woke the sleeper is a timer.
WAKE = "Tracing blocked time (us) by"
PAIR = re.compile(
    r"    waker:           (\S.*) (\d+|-)\n((?:    .+\n)*?)    --               --\n"
    r"((?:    .+\n)*?)    target:          (\S.*) (\d+)\n        (\d+)\n\n"
)


def pairs(result, header):
    """[(waker, frames above, frames below, target's pid, us)]"""
    lines = result.out.splitlines()
    h.check(result.code == 0 and lines and lines[0] == header, f"{header}: {result} {lines[:1]}")
    body = result.out.split("\n", 1)[1] if lines else ""
    left = PAIR.sub("", body).strip()
    h.check(not left, f"{header}: nothing but pairs: {left[:200]!r}")
    found = PAIR.findall(body)
    values = [int(f[-1]) for f in found]
    h.check(values == sorted(values), f"{header}: smallest first")
    return [(w, above, below, int(p), int(v)) for w, _, above, below, _, p, v in found]


result = ctl("offwaketime", "-p", S, "3")
found = pairs(result, f"{WAKE} user + kernel off-CPU and waker stack for 3 secs.")
h.check({p for *_, p, _ in found} == {sleeper.pid}, "offwaketime -p: this process only")
total = sum(v for *_, v in found)
timer = sum(v for w, *_, v in found if w == "timer")
h.check(2_000_000 < total < 3_100_000, f"offwaketime: it sleeps most of 3 s: {total} us")
h.check(timer > 0.95 * total, f"offwaketime: a timer wakes it: {timer} of {total} us")
below = found[-1][2].splitlines() if found else [""]
h.check("schedule" in below[0], f"offwaketime: the target's leaf first: {below}")
pairs(ctl("offwaketime", "1"), f"{WAKE} user + kernel off-CPU and waker stack for 1 secs.")
pairs(until_interrupted("offwaketime"), f"{WAKE} user + kernel off-CPU and waker stack... Hit Ctrl-C to end.")
pairs(ctl("offwaketime", "-Kk", "1"), f"{WAKE} kernel off-CPU and waker stack for 1 secs.")
pairs(ctl("offwaketime", "-Up", S, "1"), f"{WAKE} user off-CPU and waker stack for 1 secs.")
pairs(ctl("offwaketime", "-m", "1000", "-t", S, "1"), f"{WAKE} user + kernel off-CPU and waker stack for 1 secs.")
pairs(ctl("offwaketime", "-M", "10000", "--state", "1", "1"), f"{WAKE} user + kernel off-CPU and waker stack for 1 secs.")
lines = folded(ctl("offwaketime", "-fu", "1"))
h.check(all(";--;" in stack or stack.endswith(";--") for stack, _ in lines), "offwaketime -f: both")
h.check(any(stack.endswith(";timer") for stack, _ in lines), "offwaketime -f: the waker last")

# profile: the examples of its help.
ON = "Sampling at"
blocks = text(until_interrupted("profile"), f"{ON} 49 Hertz of all threads {USER_KERNEL}... Hit Ctrl-C to end.")
h.check(any(p == spinner.pid for _, _, p, _ in blocks), "profile: who spins")
text(ctl("profile", "-F", "99", "1"), f"{ON} 99 Hertz of all threads {USER_KERNEL} for 1 secs.")
blocks = text(
    ctl("profile", "-c", "1000000", "1"), f"{ON} every 1000000 events of all threads {USER_KERNEL} for 1 secs."
)
h.check(sum(int(v) for *_, v in blocks) > 300, "-c 1000000: one each ms")
text(ctl("profile", "2"), f"{ON} 49 Hertz of all threads {USER_KERNEL} for 2 secs.")
folded(ctl("profile", "-f", "1"))
blocks = text(ctl("profile", "-F", "99", "-p", P, "2"), f"{ON} 99 Hertz of PID {P} {USER_KERNEL} for 2 secs.")
count = sum(int(v) for *_, v in blocks)
h.check({p for _, _, p, _ in blocks} == {spinner.pid}, "-p: this process only")
h.check(40 < count <= 210, f"99 Hz for 2 s: {count}")
h.check(any("spin" in fs[0] for fs, *_ in blocks if fs), "the leaf frame is on top")
text(ctl("profile", "-L", P, "1"), f"{ON} 49 Hertz of TID {P} {USER_KERNEL} for 1 secs.")
text(ctl("profile", "-U", "1"), f"{ON} 49 Hertz of all threads by user stack for 1 secs.")
text(ctl("profile", "-K", "1"), f"{ON} 49 Hertz of all threads by kernel stack for 1 secs.")
text(ctl("profile", "-C", "0", "1"), f"{ON} 49 Hertz of all threads {USER_KERNEL} on CPU#0 for 1 secs.")
lines = folded(ctl("profile", "-adfF", "499", "1"))
h.check(any("_[k]" in stack for stack, _ in lines), "-a: kernel frames are marked")
h.check(any(";-;" in stack for stack, _ in lines), "-d: a border")
blocks = text(ctl("profile", "-IF", "99", "1"), f"{ON} 99 Hertz of all threads {USER_KERNEL} for 1 secs.")
# A host that hides the threads of init from BPF hides the idle ones that init forked at boot, all
# but the first CPU's.
h.check(sum(int(v) for *_, v in blocks) > 80, "-I: a CPU at least, idle or not")

# What would be used, and what cannot be.
result = ctl("offcputime", "--ebpf")
h.check(result.code == 0 and "program on_switch on " in result.out, f"--ebpf: {result.out}")
result = ctl("profile", "--ebpf")
h.check(result.code == 0 and result.out.startswith("probe oncpu"), f"--ebpf: {result.out}")
for words in (
    "offcputime -p 1 -t 1",
    "offcputime -p 1 -u",
    "offcputime -u -k",
    "offcputime -U -K",
    "offcputime 0",
    "offcputime 5s",
    "offcputime 1 2",
    "offcputime -x",
    "offcputime -m",
    "offcputime --cgroupmap /sys/fs/bpf/x",
    "offcputime -p nobody",
    "offcputime -p 4194000 1",
    "offcputime -i 0",
    "profile -F 9 -c 9",
    "profile -p 1 -L 1",
    "profile -F 10000000 1",
    "profile -C 999 1",
    "offwaketime -p 1 -k",
    "offwaketime -U -K",
    "offwaketime -v",
    "topwaits -k",
    "topwaits --state Q 1",
):
    result = ctl(*words.split())
    h.check(result.code == 1 and result.err and not result.out, f"{words}: {result} {result.out}")

sleeper.kill()
h.finish()
