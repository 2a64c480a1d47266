# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the parts of a range (--each) add up to the range, that each part and each of several
ranges (--range) is answered as if it had been asked for alone, and that the overview says who did
I/O.
"""

import os
import subprocess
import re

import harness as h

h.need_live()

# The windows stay in memory: on disk, several may become one between two questions.
daemon = h.Daemon("window.length=1s", "window.max_memory=256M", "probe.oncpu.frequency=199")
LOOP = "import time\nwhile True: time.sleep(0.01); sum(range(100000))"
worker = h.spawn(["python3", "-c", LOOP], stdout=subprocess.DEVNULL)
writer = h.spawn(["sh", "-c", f"while :; do dd if=/dev/zero of={os.getcwd()}/slices.tmp bs=64k count=16"
                  " conv=fsync 2> /dev/null; done"])
start = daemon.cut()
h.wait_until(lambda: daemon.cut() > start + 6 * h.NS_PER_S, "six seconds")
end = min(daemon.cut(probe) for probe in ("offcpu", "oncpu")) // h.NS_PER_S
RANGE = ["--since", f"@{end - 5}", "--until", f"@{end}"]
h.stop_process(writer)
os.unlink("slices.tmp")

# The parts of a range add up to the range, and each is answered as if it had been asked for.
SUMS = ("on_cpu_ns", "runnable_ns", "blocked_ns", "waits", "short_waits", "samples")


def by_row(answer):
    """Returns the sums of an answer's rows by process and thread name. A wait that has ended since
    another answer was made may have got another stack."""
    sums = {}
    for row in answer["rows"]:
        key = (row["process"]["pid"], row["process"]["start"]["ns"], row["comm"])
        old = sums.get(key, (0, 0, 0))
        sums[key] = (old[0] + row["total_ns"], old[1] + row["count"], old[2] + row.get("open", 0))
    return sums


for probe in ("offcpu", "oncpu"):
    whole = daemon.ctl_json("snapshot", probe, *RANGE)
    for each in ("window", "2s"):
        slices = daemon.ctl_json("snapshot", probe, "--each", each, *RANGE)
        starts = [s["coverage"]["used"]["start"]["ns"] for s in slices]
        h.check(len(slices) > 1 and starts == sorted(starts, reverse=True),
                f"{probe}: each {each}: newest first: {starts}")
        h.check(sum(s["coverage"]["windows"] for s in slices) == whole["coverage"]["windows"],
                f"{probe}: each {each}: each window is in one part")
        for name in SUMS:
            have = sum(s["totals"].get(name, 0) for s in slices)
            want = whole["totals"].get(name, 0)
            h.check(have == want, f"{probe}: each {each}: {name}: {have} of {want}")
        have = sum(h.row_sum(s["rows"]) for s in slices)
        h.check(have == h.row_sum(whole["rows"]), f"{probe}: each {each}: rows: {have}")
        for part in slices[1:3]:
            used = part["coverage"]["used"]
            alone = daemon.call("io.stackd.Snapshot", probe=probe, idle=True,
                                since_ns=used["start"]["ns"], until_ns=used["end"]["ns"])
            here, there = by_row(part), by_row(alone)
            differ = [(key, here.get(key), there.get(key)) for key in {**here, **there}
                      if here.get(key) != there.get(key)]
            h.check(not differ, f"{probe}: each {each}: as if asked for alone: {differ[:5]}")
            h.check(part["totals"] == alone["totals"], f"{probe}: each {each}: its totals")
    text = daemon.ctl("snapshot", probe, "--each", "2s", *RANGE)
    lines = re.findall(r"(?m)^\d\d:\d\d:\d\d .*%  \S", text.out)
    h.check(text.code == 0 and len(lines) == len(slices), f"{probe}: a line each: {text} {text.out}")

# Several ranges are one call. They overlap, come in any order and repeat; one lies before the first
# window. Each is answered as if it had been asked for alone, in the order of the request.
spans = [(end - 2, end - 1), (end - 5, end), (end - 4, end - 2), (end - 2, end - 1), (1000, 2000)]
words = [word for a, b in spans for word in ("--range", f"@{a}..@{b}")]
for probe in ("offcpu", "oncpu"):
    many = daemon.ctl_json("snapshot", probe, *words)
    asked = [a["coverage"]["asked"] for a in many]
    h.check([(a["start"]["ns"], a["end"]["ns"]) for a in asked] ==
            [(a * h.NS_PER_S, b * h.NS_PER_S) for a, b in spans], f"{probe}: in order: {asked}")
    for (since, until), answer in list(zip(spans, many))[:-1]:
        alone = daemon.ctl_json("snapshot", probe, "--since", f"@{since}", "--until", f"@{until}")
        for name in ("coverage", "totals", "lost"):
            h.check(answer[name] == alone[name], f"{probe}: @{since}..@{until}: {name}: {answer[name]}")
        sums = [sum(a[part].get("total_ns", 0) for part in ("shown", "rest", "idle"))
                for a in (answer, alone)]
        h.check(sums[0] == sums[1] > 0, f"{probe}: @{since}..@{until}: all rows: {sums}")
        h.check(by_row(answer) == by_row(alone), f"{probe}: @{since}..@{until}: rows")
        have = sum(p["total_ns"] for p in answer["parts"])
        h.check(have == h.row_sum(answer["rows"]), f"{probe}: @{since}..@{until}: parts: {have}")
    none = many[-1]
    h.check((none["coverage"]["windows"], none["coverage"]["covered_ns"], none["rows"]) == (0, 0, []) and
            none["missing"] and [g["end"]["ns"] - g["start"]["ns"] for g in none["coverage"]["gaps"]] ==
            [1000 * h.NS_PER_S], f"{probe}: a range without windows: {none}")
    text = daemon.ctl("snapshot", probe, *words, "-n", "1")
    h.check(text.code == 0 and len(re.findall(r"(?m)^time ", text.out)) == len(spans) and
            len(re.findall(r"(?m)^no data ", text.out)) == 1, f"{probe}: text: {text}")
    h.check(daemon.ctl("snapshot", probe, *words, "--strict", "--json").code == 5, f"{probe}: strict")
    result = daemon.ctl("snapshot", probe, "--range", "@1000..@2000", "--range", "@10..@20")
    h.check(result.code == 4 and "any of the 2 ranges" in result.err, f"{probe}: none: {result}")
worker_pid = str(worker.pid)
named = daemon.ctl_json("snapshot", "offcpu", "-p", worker_pid, *words)
h.check([a["totals"]["threads"] for a in named] == [1, 1, 1, 1, 0], "one process in each range")
nobody = daemon.ctl("snapshot", "offcpu", "--comm", "nobody-has-it", *words[:2])
h.check(nobody.code == 4, f"a filter that selects nobody: {nobody}")

# A range up to now ends the window in progress; what is wrong in a list is refused as a whole.
now = daemon.ctl_json("snapshot", "offcpu", "--range", f"@{end - 1}..", "--range", "-1s..")
h.check(all(a["coverage"]["windows"] for a in now), "up to now")
SPAN = {"since_ns": (end - 5) * h.NS_PER_S, "until_ns": end * h.NS_PER_S}
for spans, more, text in (
        ([SPAN] * 257, {}, "257 ranges"), ([SPAN], {"each_ns": 0}, "either a list"),
        ([SPAN], {"window_ns": 1}, "either a list"),
        ([SPAN, {"since_ns": -1}], {}, "number 2 has a negative time"),
        ([SPAN, {**SPAN, "until_ns": SPAN["since_ns"]}], {}, "number 2 ends before it begins"),
        ([SPAN, {"since_ns": SPAN["since_ns"] * 2}], {}, "number 2 begins in the future")):
    try:
        got = daemon.call("io.stackd.Snapshot", probe="offcpu", ranges=spans, **more)
    except h.VarlinkError as e:
        got = e
    h.check(isinstance(got, h.VarlinkError) and got.name == "io.stackd.InvalidTime" and
            got.parameters["field"] == "ranges" and text in got.parameters["message"],
            f"refused: {got}")
limits = {limit["name"]: limit["hits"] for limit in daemon.call("io.stackd.Status")["limits"]}
h.check(limits["request_ranges"] == 1, f"counted: {limits}")

# The overview has the I/O of the same time, by process.
both = daemon.ctl_json("snapshot", *RANGE)
h.check(list(both) == ["waits", "samples", "io"], f"the overview: {list(both)}")
if both["io"]:
    h.check(both["io"]["probe"] == "iolat", "the overview: its I/O")
    layers = {part["name"]: part["total_ns"] for part in both["io"]["parts"]}
    for name, total in layers.items():
        have = sum(r["total_ns"] for r in both["io"]["rows"] if r["io"]["layer"] == name)
        h.check(have == total, f"the overview: {name}: {have} of {total}")
    text = daemon.ctl("snapshot", *RANGE)
    for name, label in (("fs", "I/O"), ("block", "disks")):
        h.check(name not in layers or re.search(rf"(?m)^{label} +.*, [\d,]+ of [\d,]+ rows?$", text.out),
                f"text: {label}: {text.out[-1500:]}")

# From disk, a thread loads the windows of the next parts while the rows of this part are read: both
# must not use the database at the same time.
daemon.stop()
short = h.Daemon("window.length=200ms", "window.min_length=100ms")
h.wait_until(lambda: len(short.call("io.stackd.Windows", probe="offcpu")["windows"]) > 30,
             "30 windows")
short.stop()
short.argv.append("--serve-only")
short.start()
for probe in ("offcpu", "oncpu"):
    whole = short.ctl_json("snapshot", probe, "--since", "-1h")
    for each in ("window", "1s", "window", "1s"):
        slices = short.ctl_json("snapshot", probe, "--since", "-1h", "--each", each)
        have = sum(h.row_sum(s["rows"]) for s in slices)
        h.check(len(slices) > 3 and have == h.row_sum(whole["rows"]),
                f"{probe}: from disk, each {each}: rows: {have}")
h.check(short.process.poll() is None, "the daemon goes on")

h.finish()
