#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the past reaches back as far as [window] keep says while processes come and go all the time,
although memory is short: the oldest windows are read from disk, none is missing, a process of the oldest ones
is still found with its wait, and the daemon's RSS stays within what the settings allow. Where there is no
disk and memory cannot hold the configured past, `status` says so, and is not healthy."""

from harness import *

RATE, KEEP, LENGTH = 400, 60, 1
MEMORY = 24 << 20  # the default
SYMBOLS = 16 << 20
WAIT_MS = 900
# The oldest window may go up to this number of windows before its time, one for each probe.
SLACK = 3 * LENGTH


def rss(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) << 10


def storm(seconds):
    """Starts RATE processes a second, until it is stopped or the time is over."""
    return spawn([os.path.join(PROGS, "prog_storm"), str(RATE), str(RATE * seconds), "/bin/true"],
                 stdout=subprocess.DEVNULL)


def reach(status):
    """Returns how far back windows in memory reach, in seconds."""
    return (status["newest"]["ns"] - status["oldest"]["ns"]) / NS_PER_S


def problems_of_memory(status):
    return [text for text in status["problems"] if "windows in memory reach back" in text]


def waits_once(daemon):
    """Runs a process that waits once; returns the range of time in which it ran."""
    start = daemon.cut()
    subprocess.run([os.path.join(PROGS, "prog_shortlived"), str(WAIT_MS)], check=True)
    return start, daemon.cut()


def check_old(daemon, start, end):
    """Checks that the process is found in the oldest windows, with its wait."""
    age = time.time_ns() - start
    check(age > (KEEP - 2 * SLACK) * NS_PER_S, f"a process ended {age / NS_PER_S:.0f} s ago")
    try:
        reply = daemon.call("io.stackd.Snapshot", probe="offcpu", since_ns=start, until_ns=end,
                            filter={"comm": "prog_shortlived"}, idle=True)
    except VarlinkError as e:
        check(False, f"its windows are there: {e}")
        return
    check(not reply["coverage"]["gaps"], f"its windows are there: {reply['coverage']['gaps']}")
    rows = [row for row in rows_with(reply, "short_wait") if row["state"] == "S"]
    check(row_sum(rows, "count") <= 1, f"its wait is there, {row_sum(rows, 'count')} times")
    # Where the host waits in many other ways for longer, the wait is folded with others.
    if estimate(rows, "it has a row"):
        check_near(row_sum(rows, "blocked_ns"), WAIT_MS * 1_000_000, 0.05, "its length, ns", 5_000_000, noise.MOST)


def check_windows(daemon):
    """Checks that no window of offcpu is missing."""
    windows = daemon.call("io.stackd.Windows", probe="offcpu")["windows"]
    times = sorted((window["start"]["ns"], window["end"]["ns"]) for window in windows)
    holes = [(a, b) for (_, a), (b, _) in zip(times, times[1:]) if abs(b - a) > 1_000_000]
    check(not holes, f"{len(times)} windows follow one another: {holes}")
    check(len(times) >= (KEEP - SLACK) / LENGTH, f"all {KEEP} s are there")


def check_full():
    daemon = Daemon(f"window.length={LENGTH}s", f"window.keep={KEEP}s", f"window.max_memory={MEMORY}",
                    f"symbols.max_memory={SYMBOLS}", "window.max_rows=500")
    daemon.cut()
    before, begun = rss(daemon), time.monotonic()
    process = storm(10 * KEEP)
    start, end = waits_once(daemon)
    sizes = []
    # The time until windows go because they are too old is what this test is about.
    while time.time_ns() - start < (KEEP - SLACK) * NS_PER_S:
        sizes.append(rss(daemon))
        time.sleep(0.5)
    check_old(daemon, start, end)
    while time.monotonic() - begun < KEEP + 10:
        sizes.append(rss(daemon))
        time.sleep(0.5)
    status = daemon.status()
    check(process.poll() is None, "processes still come and go")
    print(f"memory reaches back {reach(status):.0f} s of {KEEP}")
    check(not problems_of_memory(status), f"no problem of memory: {status['problems']}")
    check_windows(daemon)
    limit = {limit["name"]: limit for limit in status["limits"]}["window.max_memory"]
    check(limit["used"] <= MEMORY + MEMORY // 16, f"{limit['used']} bytes of {MEMORY} in use")
    # Besides the windows: as much again for what the open windows need before they are folded, and
    # symbols that are loaded meanwhile.
    bound = before + 2 * MEMORY + SYMBOLS
    late = sorted(sizes[len(sizes) // 2:])[-len(sizes) // 10]
    check(late <= bound, f"RSS {late >> 20} MiB of {bound >> 20}, {before >> 20} at first")
    stop_process(process)
    daemon.stop()


def check_short():
    """Without folding and with little memory, the configured time does not fit."""
    daemon = Daemon(f"window.length={LENGTH}s", f"window.keep={KEEP}s", "window.max_memory=4M",
                    "window.max_rows=0", "store.enabled=no")
    process = storm(10 * KEEP)

    def problem():
        return problems_of_memory(daemon.status())

    texts = check_until(problem, "status says that memory is short", lambda: daemon.status()["problems"])
    if not texts:
        return
    text = texts[0]
    found = re.fullmatch(r"windows in memory reach back (\d+) s, not 60 s as \[window\] keep says: "
                         r"raise \[window\] max_memory", text)
    check(found and int(found[1]) < KEEP - SLACK, f"status says: {text}")
    status = daemon.status()
    check(not status["healthy"], "it is not healthy")
    result = daemon.ctl("status", "--check")
    check(result.code == 1 and result.out.startswith("WARNING: "), f"--check: {result}")
    text = " ".join(daemon.ctl("status").out.split())
    check("raise [window] max_memory" in text, "the text of status names the setting")
    stop_process(process)
    daemon.stop()


need_live()
check_full()
check_short()
finish()
