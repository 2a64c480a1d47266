# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that stackctl diff finds what was changed on purpose in a program, first and of the right size:
a function that sleeps three times as long, and a lock that was added. The sums of both sides are those
of snapshots of the two ranges, and so are those of other tools' formats."""

import csv
import io
import json

import harness as h

h.need_live()

COUNT, STEADY, CHANGED = 10, 50, 60


def run_program(*arguments):
    program = h.Program("prog_change", *arguments).ready().go().done()
    program.end()
    return program


def off_cpu(program, name):
    truth = program.value(name)
    return truth["ns"] - truth["cpu_ns"]


def at(ns):
    return f"@{ns // h.NS_PER_S}.{ns % h.NS_PER_S:09}"


def change_of(document, *names):
    """Returns the change of all rows with one of these functions."""
    return sum(row["change"] for row in document["rows"] if set(names) & set(row["stack"]))


# The windows stay in memory: on disk, several may become one between two questions.
daemon = h.Daemon("window.length=1s", "window.max_memory=256M")
cuts = [daemon.cut()]


def phase(*arguments):
    """Runs the program in a range of its own. All ranges have about the same length, or what did not
    change would have changed by their ratio."""
    program = run_program(*arguments)
    h.wait_until(lambda: daemon.cut() > cuts[-1] + 4 * h.NS_PER_S, "the end of the range")
    cuts.append(daemon.cut())
    return program


before = phase(COUNT, STEADY, CHANGED)
after = phase(COUNT, STEADY, 3 * CHANGED)
locked = phase(COUNT, STEADY, CHANGED, "lock")


def sides(first, second):
    return ["--comm", "prog_change", "--since", at(cuts[second]), "--until", at(cuts[second + 1]),
            "--base", f"{at(cuts[first])}..{at(cuts[first + 1])}"]


def compare(first, second):
    return daemon.ctl_json("diff", "offcpu", *sides(first, second))


def check_sums(document, first, second):
    """Holds the figures of both sides to each other and to snapshots of their ranges."""
    for side, number in (("base", first), ("new", second)):
        snapshot = daemon.ctl_json("snapshot", "offcpu", "--comm", "prog_change", "--since",
                                   at(cuts[number]), "--until", at(cuts[number + 1]))
        want = h.row_sum(snapshot["rows"])
        h.check(document[side]["total"] == want, f"{side}: {document[side]['total']}, not {want}")
        used = snapshot["coverage"]["used"]
        h.check((document[side]["start_ns"], document[side]["end_ns"]) ==
                (used["start"]["ns"], used["end"]["ns"]), f"{side}: its windows")
    h.check(document["overlap_ns"] == 0, "no window is in both ranges")
    h.check(all(row["scaled_base"] + row["change"] == row["new"] for row in document["rows"]),
            "base + change = new in each row")
    for name, want in (("scaled_base", document["scaled_total"]), ("new", document["new"]["total"]),
                       ("change", document["change"])):
        have = sum(row[name] for row in document["rows"])
        h.check(have == want, f"the sum of {name}: {have}, not {want}")


def scaled(document, ns):
    return ns * document["new"]["covered_ns"] / document["base"]["covered_ns"]


# One function sleeps three times as long.
slower = compare(0, 1)
check_sums(slower, 0, 1)
first_row = slower["rows"][0]
h.check("changed_sleep" in first_row["stack"], f"slower: first is {first_row['stack']}")
truth = off_cpu(after, "changed_sleep") - scaled(slower, off_cpu(before, "changed_sleep"))
h.check_near(change_of(slower, "changed_sleep"), truth, 0.02, "slower: its change, ns")
truth = off_cpu(after, "steady_sleep") - scaled(slower, off_cpu(before, "steady_sleep"))
h.check_near(change_of(slower, "steady_sleep"), truth, 0.02, "slower: the change of the other, ns",
             slack=0.02 * off_cpu(after, "steady_sleep"))

# A lock was added: its row is new. In the other direction it is gone.
added = compare(0, 2)
check_sums(added, 0, 2)
rows = [row for row in added["rows"] if "added_lock" in row["stack"]]
h.check(rows and all(row["base"] == 0 for row in rows), f"added: new rows: {rows}")
h.check_near(change_of(added, "added_lock"), off_cpu(locked, "added_lock"), 0.02,
             "added: its change, ns")
removed = compare(2, 0)
check_sums(removed, 2, 0)
rows = [row for row in removed["rows"] if "added_lock" in row["stack"]]
h.check(rows and all(row["new"] == 0 and row["change"] == -row["scaled_base"] for row in rows),
        f"removed: gone rows: {rows}")
h.check_near(change_of(removed, "added_lock"), -scaled(removed, off_cpu(locked, "added_lock")), 0.02,
             "removed: its change, ns")

# As text, and as folded stacks with two columns.
text = daemon.ctl("diff", "offcpu", *sides(0, 1))
lines = text.out.splitlines()
first = next((i + 1 for i, line in enumerate(lines) if line.split()[:1] == ["change"]), None)
h.check(text.code == 0 and first and "changed_sleep" in lines[first], f"text: {text}")
text = daemon.ctl("diff", "offcpu", *sides(2, 0), "-n0")
h.check(any(" gone  prog_change" in line for line in text.out.splitlines()), f"gone: {text}")
folded = [line.rsplit(" ", 2) for line in
          daemon.ctl("diff", "offcpu", *sides(0, 1), "--folded").out.splitlines()]
for column, want in ((1, slower["scaled_total"]), (2, slower["new"]["total"])):
    have = sum(int(line[column]) for line in folded)
    h.check(have == want // 1000, f"folded: column {column}: {have} us of {want} ns")

# The time before a range, of the same length, is its base unless another one is named.
default = daemon.ctl_json("diff", "--comm", "prog_change", *sides(0, 1)[2:6])
h.check(default["base"]["end_ns"] == default["new"]["start_ns"] and default["overlap_ns"] == 0,
        f"default: {default['base']}")
h.check(default["new"]["total"] == slower["new"]["total"], "default: the same new range")

# The formats of other tools have the same sums.
RANGE = ["snapshot", "offcpu", *sides(0, 1)[:6]]
want = {"total": slower["new"]["total"]}
have = csv.DictReader(io.StringIO(daemon.ctl(*RANGE, "--format", "csv").out, newline=""))
h.check(sum(int(row["total_ns"]) for row in have) == want["total"], f"csv: {want}")
profiles = json.loads(daemon.ctl(*RANGE, "--format", "speedscope").out)["profiles"]
h.check(sum(sum(profile["weights"]) for profile in profiles) == want["total"], f"speedscope: {want}")

h.finish()
