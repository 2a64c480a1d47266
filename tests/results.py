# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums up logs of meson: prints each test that failed with the end of what it said, and each test or
part of one that was skipped with the reason; the last line is "N passed, N failed, N skipped", and "N without
verdict" where there are some: tests that failed in nothing, but in which the host was too busy for an estimate,
see tests/live/noise.py. Ends with 1 if a test failed, or if none passed; else with 3 if one has no verdict, or,
with --whole, if one was skipped that MAY_SKIP does not allow.

With --strict, such a skip, also of a part, counts as a failure. A line of the file MAY_SKIP is the name of a
test, and a regular expression that the reason begins with.

For a machine of tests/vm, each of its tests has a line, and a line names the kernel and what failed.

A test that was asked for and has no result has failed, see results_of(). Each --note is a line that is
printed before the last one. --record adds a line to a file: BEGIN, the minutes that the tests took one after
the other, the numbers, and the names of those that failed and of those without a verdict, with the first reason.

Usage: results.py [--strict] [--whole] [--code CODE] [--note TEXT]... [--record FILE BEGIN] MAY_SKIP LOG...
"""

import argparse
import collections
import json
import os
import re
import sys

LAST_LINES = 60
GOOD = ("OK", "EXPECTEDFAIL")

# Parts that are left out: of a live test, of one in Python's unittest, and of one by cmocka, which
# lists the names again at the end.
PART = re.compile(r"^(?:left out|skipped): (.+)$|^(.+): left out$")
UNITTEST_PART = re.compile(r"^(.+) \.\.\. skipped ['\"](.*)['\"]$")
NO_VERDICT = re.compile(r"^no verdict: (.+)$")
CMOCKA_PART = re.compile(r"^(?:\w+: )?\[  SKIPPED \] (\w+)(?:\\n)?$")

# What tests/vm/run.py says: that a test of a machine begins, how it ended, and the kernel and CPU time of the machine.
BEGIN = re.compile(r"^== (?:unit )?(.+?)(?:, phase [0-9]+)?$")
END = re.compile(r"^test: (?:unit )?(.+?) ((passed|skipped|FAILED|not run)\b.*)$")
KERNEL = re.compile(r"^machine: (linux-.+?): ")


def names_beside(path):
    """Returns the names of the tests that were asked for, from the file NAME.names beside NAME.json."""
    path = os.path.splitext(path)[0] + ".names"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return f.read().split()


def results_of(paths):
    """Returns the results in logs, and one for each test that was asked for and is in none: meson leaves
    out names that it does not know, and may end with 0 before all tests have run."""
    found = []
    for path in paths:
        own = []
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as log:
                own = [json.loads(line) for line in log if line.endswith("\n")]
        missing = set(names_beside(path)) - {name_of(result) for result in own}
        found += own + [{"name": name, "result": "NOT RUN", "duration": 0} for name in sorted(missing)]
    return found


def name_of(result):
    """Returns the name that `meson test NAME` takes."""
    return result["name"].split(" / ")[-1]


def lines_of(result):
    return [line.rstrip("\r") for stream in ("stdout", "stderr")
            for line in (result.get(stream) or "").splitlines()]


def is_machine(result):
    return name_of(result).startswith(("vm_", "exact_"))


def parts_left_out(result):
    """Returns the reasons for which a test that passed left parts of itself out; for those of a machine, the name
    of its own test stands before them."""
    found, test = [], ""
    for line in lines_of(result):
        if is_machine(result) and (match := BEGIN.match(line)):
            test = f"{match[1]}: "
        elif match := PART.match(line):
            found.append(test + (match[1] or match[2]))
        elif match := UNITTEST_PART.match(line):
            found.append(f"{match[1]}: {match[2]}")
        elif match := CMOCKA_PART.match(line):
            found.append(match[1])
    return list(dict.fromkeys(found))


def tests_of_machine(result):
    """Returns {name: (outcome, text)} of the tests that ran in a machine, in their order, and a line for each of
    them and one for all with the kernel's name; nothing of other results."""
    if not is_machine(result):
        return {}, []
    tests = {m[1]: (m[3], m[2]) for line in lines_of(result) if (m := END.match(line))}
    kernels = [m[1] for line in lines_of(result) if (m := KERNEL.match(line))]
    lines = [f"{name_of(result)}: {name} {text}" for name, (_, text) in tests.items()]
    sums = []
    for outcome in ("passed", "FAILED", "skipped", "not run"):
        names = [name for name, (own, _) in tests.items() if own == outcome]
        if names or outcome in ("passed", "FAILED"):
            listed = f": {', '.join(names)}" if names and outcome != "passed" else ""
            sums.append(f"{len(names)} {outcome.lower()}{listed}")
    if tests:
        lines.append(f"{name_of(result)} with {', '.join(kernels) or 'no kernel named'}: {'; '.join(sums)}")
    return tests, lines


def reason_of(result):
    """Returns the reason of a test that was skipped as a whole."""
    lines = [line for line in lines_of(result) if line]
    return lines[-1].removeprefix("skipped: ") if lines else "no reason"


def unsure_of(result):
    """Returns what a test has no verdict on, and why."""
    return [match[1] for line in lines_of(result) if (match := NO_VERDICT.match(line))]


def read_allowed(path):
    """Returns [(test, compiled reason)] of the lines of a file; # begins a comment."""
    with open(path, encoding="utf-8") as f:
        lines = [line.split(None, 1) for line in f if line.strip() and not line.startswith("#")]
    return [(test, re.compile(reason.strip())) for test, reason in lines]


def is_allowed(allowed, name, reason):
    return any(test == name and pattern.match(reason) for test, pattern in allowed)


def judge(result, allowed, is_strict):
    """Returns ("passed", "failed", "skipped", "missing" or "without verdict", lines to print). One that is missing
    was skipped, which `allowed` does not allow."""
    name, is_whole = name_of(result), result["result"] == "SKIP"
    if result["result"] not in GOOD and not is_whole:
        return "failed", []
    unsure = unsure_of(result)
    is_whole = is_whole and not unsure
    reasons = [reason_of(result)] if is_whole else parts_left_out(result)
    others = [r for r in reasons if not is_allowed(allowed, name, r)]
    refused = others if is_strict else []
    word = "skipped" if is_whole else "left out"
    lines = [f"{name}: FAILED, as it must not be {word} here: {r}" if r in refused
             else f"{name}: {word}: {r}" for r in reasons]
    lines += [f"{name}: no verdict: {text}" for text in unsure]
    if refused or unsure:
        return "failed" if refused else "without verdict", lines
    return ("missing" if others else "skipped") if is_whole else "passed", lines


def print_failure(result):
    print(f"\n-- {result['name']}: {result['result']} after {result['duration']:.0f} s")
    for stream in ("stdout", "stderr"):
        print("\n".join((result.get(stream) or "").splitlines()[-LAST_LINES:]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--code", type=int, default=0)
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--record", nargs=2)
    parser.add_argument("may_skip")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    allowed, names, said, seconds = read_allowed(args.may_skip), collections.defaultdict(list), [], 0
    unsure = []
    for result in results_of(args.logs):
        outcome, lines = judge(result, allowed, args.strict)
        tests, machine = tests_of_machine(result)
        bad = [test for test, (own, _) in tests.items() if own == "FAILED"]
        names[outcome].append(name_of(result) + (f"({','.join(bad)})" if bad else ""))
        seconds += result["duration"]
        unsure += [f"{name_of(result)} (no verdict: {unsure_of(result)[0]})"] if outcome == "without verdict" else []
        said += machine + lines
        if result["result"] not in (*GOOD, "SKIP"):
            print_failure(result)
    print("\n".join(said + args.note))
    # Logs of a run that was cut short show no failure.
    if args.code:
        print(f"\nmeson test ended with code {args.code}")
    failed, missing = names["failed"], names["missing"]
    last = f"{len(names['passed'])} passed, {len(failed)} failed, {len(names['skipped'] + missing)} skipped"
    last += f", {len(unsure)} without verdict" if unsure else ""
    if args.record:
        with open(args.record[0], "a", encoding="utf-8") as f:
            ended = [f"(ended with {args.code})"] if args.code and not failed else []
            words = [args.record[1], f"{seconds / 60:.0f} min:", last, *failed, *ended]
            f.write(" ".join(words + unsure) + "\n")
    print(f"\n{last}")
    if failed or args.code or not names["passed"] + unsure:
        return 1
    return 3 if unsure or (args.whole and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
