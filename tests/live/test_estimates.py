#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where waits and operations are sampled, each output marks the figures that are estimates, and no
others: text with ~, JSON with `estimated`, the rest by a line on stderr. All of them have the same
rows, and add up to the same sums."""

from harness import *

BELOW = "500us"
BELOW_NS = 500_000
MESSAGE = "some figures are estimates"
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "days": 86400e9}
# A row's title ends with its time and its share: "cat (pid 5)    ~5 min 3 s   5 %".
TITLE = re.compile(r"^\S.*?  +(~?)(\d[\d.]* \w+(?: \d+ \w+)?)  +(?:<?\d+ %)$")


def text_ns(text):
    words = text.split()
    return sum(float(n) * UNITS[unit] for n, unit in zip(words[::2], words[1::2]))


def titles(text):
    """Returns the mark and the time of each row of a text."""
    found = [TITLE.match(line) for line in text.split("\n")]
    return [(match[1] == "~", text_ns(match[2])) for match in found if match]


def is_estimate(row):
    return bool(row.get("estimated"))


class Range:
    """Answers about a range of windows that have all ended, so that each answer has the same."""

    def __init__(self, daemon, probe):
        self.daemon, self.probe = daemon, probe
        end = daemon.cut(probe)
        until = (end - 1_000_000) / NS_PER_S
        self.args = ["--since", f"@{daemon.begin // NS_PER_S}", "--until", f"@{until:.6f}"]

    def text(self, *args):
        return self.daemon.ctl("snapshot", self.probe, *self.args, *args)

    def json(self, *args):
        return self.daemon.ctl_json("snapshot", self.probe, *self.args, *args)


def check_rows(answers, label, *args, some=True):
    """The rows of the text are those of the JSON, with marks where these are estimates. Only the
    program's rows, as other programs of a host may have names that look like figures."""
    args = [*args, "-p", str(program.pid)]
    rows = answers.json("-n", "0", *args)["rows"]
    rows = [row for row in rows if "--idle" in args or not row["idle"]]
    shown = titles(answers.text("-n", "0", *args).out)
    check(len(shown) == len(rows), f"{label}: {len(shown)} rows in the text, {len(rows)} in JSON")
    wrong = [i for i, (mark, _) in enumerate(shown[:len(rows)]) if mark != is_estimate(rows[i])]
    check(not wrong, f"{label}: rows {wrong[:9]} have a wrong mark")
    off = [i for i, (_, ns) in enumerate(shown[:len(rows)])
           if abs(ns - rows[i]["total_ns"]) > 0.01 * rows[i]["total_ns"]]
    check(not off, f"{label}: rows {off[:9]} have other times in the text")
    check(some in (None, any(mark for mark, _ in shown)), f"{label}: marks: {some}")
    return rows


def check_json(answers, label):
    reply = answers.json("-n", "0", "--idle")
    rows = reply["rows"]
    check(all(is_estimate(row) == ("sampled_ns" in row) for row in rows),
          f"{label}: the rows that have a sampled part are estimates")
    check(all(row.get("sampled_ns", 0) <= row["total_ns"] for row in rows),
          f"{label}: a part is not more than the whole")
    few = answers.json("-n", "3")
    for field in ("total_ns", "sampled_ns"):
        whole = sum(row.get(field, 0) for row in rows)
        check(reply["shown"].get(field, 0) == whole, f"{label}: {field} of what is shown: {whole}")
        parts = sum(few[part].get(field, 0) for part in ("shown", "rest", "idle"))
        check(parts == whole, f"{label}: {field} of shown, rest and idle: {parts}")
    return reply


def check_offcpu(answers):
    reply = check_json(answers, "offcpu")
    totals = reply["totals"]
    exact = totals["blocked_ns"] + totals["runnable_ns"]
    check_sum(reply["shown"]["total_ns"], exact, 0.0001, "offcpu: all rows", slack=1_000_000)
    check_rows(answers, "offcpu", "--idle")
    text = answers.text("--idle", "-n", "1").out
    check("rows       % of ~" not in text, "offcpu: the sum of all is exact")
    check_rows(answers, "offcpu without idle rows")
    check_rows(answers, "one state", "--state", "S")
    text = answers.text("--state", "S", "-n", "1").out
    check("rows       % of ~" in text, "one state: its sum is not")
    # The sum of a thread's rows is exact, but what is idle of it, and why, is an estimate.
    for by in ("thread", "process", "comm", "cgroup", "unit", "container", "module", "function"):
        check_rows(answers, f"by {by}", "--idle", "--by", by)
    check_rows(answers, "from 100 us", "-m", "100")
    rows = check_rows(answers, "from 10 ms", "-m", "10000", some=None)
    check(all(row["max_ns"] >= 10_000_000 for row in rows), "from 10 ms: no shorter ones")


def check_folded(answers):
    result = answers.text("-f", "--idle")
    totals = answers.json("-n", "0", "--idle")["totals"]
    us = (totals["blocked_ns"] + totals["runnable_ns"]) / 1000
    check_sum(sum(parse_folded(result.out).values()), us, 0.0001, "folded: us", slack=1000)
    check(MESSAGE in result.err, f"folded: it is said on stderr: {result.err.strip()}")
    exact = answers.daemon.ctl("snapshot", "oncpu", "-f", "--window", "1min")
    check(MESSAGE not in exact.err, "oncpu, folded: nothing to say")


def check_views(answers):
    daemon, args, whole = answers.daemon, answers.args, answers.args
    args = [*args, "-p", str(program.pid)]
    text = daemon.ctl("snapshot", *args, "-n", "0").out
    # The first line that begins with such a name has the total.
    runnable, blocked = [re.split(rf"\n{name} +(?=~?\d)", text)[-1] for name in
                         ("runnable", "blocked")]
    sections = {"runnable": runnable.split("\nblocked ")[0], "blocked": blocked.split("\nI/O ")[0]}
    rows = daemon.ctl_json("snapshot", "offcpu", *args, "-n", "0")["rows"]
    for name, section in sections.items():
        shown = titles(section)
        least = {"runnable": lambda row: row["throttled_ns"], "blocked": lambda row: 0}[name]
        mine = [row for row in rows if row[name + "_ns"] > least(row) and not row["idle"]]
        check(shown and sum(mark for mark, _ in shown) == sum(is_estimate(row) for row in mine),
              f"overview, {name}: {len(shown)} rows, with as many marks as JSON has estimates")
    lines = [line for line in
             daemon.ctl("snapshot", "offcpu", *whole, "--each", "2s").out
             .split("\n") if re.match(r"\d\d:\d\d:\d\d +\d", line)]
    check(lines and all("~" in line for line in lines),
          "--each: sums without idle waits are estimates")
    check("~" not in daemon.ctl("stuck", "-n", "0").out, "stuck: what waits now is exact")


def check_iolat(answers):
    reply = answers.json("-n", "0", "--by", "stack")
    rows = reply["rows"]
    check(all(is_estimate(row) == ("sampled_ns" in row) for row in rows), "iolat: JSON")
    some = [row for row in rows if is_estimate(row)]
    text = answers.text("-n", "0", "--by", "stack").out
    check(some and len(some) < len(rows), f"iolat: {len(some)} of {len(rows)} rows are estimates")
    check(sum(bool(re.match(r"  \S.* ~\d", line)) for line in text.split("\n")) == len(some),
          "iolat by stack: as many marks")
    check("~ (2 sigma): operations under" in text, "iolat by stack: what the mark means")
    plain = answers.text("-n", "0").out
    check(not re.search(r"~\d", plain), "iolat by operation: all is exact")
    tree = answers.text("--by", "stack", "--breakdown").out
    sums = re.findall(r"  (~?)\d\S* \w+ in all, ~?(\d\S* \w+) each", tree)
    check(any(mark for mark, _ in sums), f"iolat --breakdown: {len(sums)} sums, some with marks")
    # Operations that all took longer than BELOW are exact.
    short = [each for mark, each in sums if not mark and text_ns(each) < BELOW_NS]
    check(not short, f"iolat --breakdown: these have no mark: {short}")
    check("~" not in answers.text("--breakdown").out, "but only by stack")


def check_offwake(answers):
    check_json(answers, "offwake")
    check_rows(answers, "offwake", "--idle")
    text = answers.text("--idle").out
    check("rows       % of ~" in text and re.search(r"\ntotals .*~\S+ waits, blocked ~", text), "offwake: totals are estimates")


def check_sessions(daemon, load):
    """Sessions and the older tools' verbs."""
    result = daemon.ctl("offcputime", "-p", load.pid, "1")
    check(MESSAGE in result.err, f"offcputime: {result.err.strip()}")
    result = daemon.ctl("offwaketime", "-f", "-p", load.pid, "1")
    check(MESSAGE in result.err, f"offwaketime: {result.err.strip()}")
    result = daemon.ctl("topwaits", "-p", load.pid, "1")
    check(MESSAGE in result.err, f"topwaits: {result.err.strip()}")
    watch = run(["timeout", "-s", "INT", "4", STACKCTL, "-S", daemon.socket, "watch", "offcpu",
                 "--stacks", "-p", str(load.pid), "-n", "0"])
    check(any(mark for mark, _ in titles(watch.out)), f"watch: marks {watch.err}")
    result = daemon.ctl("record", "offcpu", "-p", load.pid, "--duration", "1s", "--idle")
    check(any(mark for mark, _ in titles(result.out)), "record: marks")
    exact = daemon.ctl("record", "offcpu", "-p", load.pid, "--duration", "1s", "-m", "0")
    check(not any(mark for mark, _ in titles(exact.out)), "record of all waits: no marks")
    exact = daemon.ctl("offcputime", "-m", "1", "-p", load.pid, "1")
    check(MESSAGE not in exact.err, f"offcputime -m: {exact.err.strip()}")


need_live()
begin = time.time_ns() - 10 * NS_PER_S
daemon = Daemon(f"probe.offcpu.sample_below={BELOW}", "probe.offwake.enabled=yes",
                f"probe.offwake.sample_below={BELOW}", "probe.iolat.top=syscall",
                "probe.iolat.slow=20us", f"probe.iolat.sample_below={BELOW}", "window.length=1s")
daemon.begin = begin
program = Program("prog_mixture", 1, 3000, 0, 500).ready().go().done()
program.end()
load = spawn(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000"],
             stderr=subprocess.DEVNULL)
check(load.wait(HANG_SECONDS) == 0, "dd")
offcpu = Range(daemon, "offcpu")
check_offcpu(offcpu)
check_folded(offcpu)
check_views(offcpu)
check_offwake(Range(daemon, "offwake"))
check_iolat(Range(daemon, "iolat"))
many = Program("prog_mixture", 2, 1000000, 0, 500, "wait_50us").ready().go()
check_sessions(daemon, many)
stop_process(many.process)
check(daemon.stop() == 0, "the daemon ends with 0 at SIGTERM")
finish()
