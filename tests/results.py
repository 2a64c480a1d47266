# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums up logs of meson: prints each test that failed with the end of what it said, and each test or
part of one that was skipped with the reason; the last line is "N passed, N failed, N skipped". Ends
with 1 if a test failed, or if none passed.

With --strict, a skip counts as a failure unless a line of the file MAY_SKIP allows it: the name of a
test, and a regular expression that the reason begins with.

A test that was asked for and has no result has failed, see results_of(). Each --note is a line that is
printed before the last one. --record adds a line to a file: BEGIN, the minutes that the tests took one after
the other, the numbers, and the names of those that failed.

Usage: results.py [--strict] [--code CODE] [--note TEXT]... [--record FILE BEGIN] MAY_SKIP LOG...
"""

import argparse
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
CMOCKA_PART = re.compile(r"^(?:\w+: )?\[  SKIPPED \] (\w+)(?:\\n)?$")


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


def parts_left_out(result):
    """Returns the reasons for which a test that passed left parts of itself out."""
    found = []
    for line in lines_of(result):
        if match := PART.match(line):
            found.append(match[1] or match[2])
        elif match := UNITTEST_PART.match(line):
            found.append(f"{match[1]}: {match[2]}")
        elif match := CMOCKA_PART.match(line):
            found.append(match[1])
    return list(dict.fromkeys(found))


def reason_of(result):
    """Returns the reason of a test that was skipped as a whole."""
    lines = [line for line in lines_of(result) if line]
    return lines[-1].removeprefix("skipped: ") if lines else "no reason"


def read_allowed(path):
    """Returns [(test, compiled reason)] of the lines of a file; # begins a comment."""
    with open(path, encoding="utf-8") as f:
        lines = [line.split(None, 1) for line in f if line.strip() and not line.startswith("#")]
    return [(test, re.compile(reason.strip())) for test, reason in lines]


def is_allowed(allowed, name, reason):
    return any(test == name and pattern.match(reason) for test, pattern in allowed)


def judge(result, allowed):
    """Returns ("passed", "failed" or "skipped", lines to print). Where `allowed` is None, every skip
    is allowed."""
    name, is_whole = name_of(result), result["result"] == "SKIP"
    if result["result"] not in GOOD and not is_whole:
        return "failed", []
    reasons = [reason_of(result)] if is_whole else parts_left_out(result)
    refused = [r for r in reasons if allowed is not None and not is_allowed(allowed, name, r)]
    word = "skipped" if is_whole else "left out"
    lines = [f"{name}: FAILED, as it must not be {word} here: {r}" if r in refused
             else f"{name}: {word}: {r}" for r in reasons]
    return "failed" if refused else "skipped" if is_whole else "passed", lines


def print_failure(result):
    print(f"\n-- {result['name']}: {result['result']} after {result['duration']:.0f} s")
    for stream in ("stdout", "stderr"):
        print("\n".join((result.get(stream) or "").splitlines()[-LAST_LINES:]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--code", type=int, default=0)
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--record", nargs=2)
    parser.add_argument("may_skip")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    allowed = read_allowed(args.may_skip) if args.strict else None
    counts, said, failed, seconds = dict.fromkeys(("passed", "failed", "skipped"), 0), [], [], 0
    for result in results_of(args.logs):
        outcome, lines = judge(result, allowed)
        counts[outcome] += 1
        seconds += result["duration"]
        failed += [name_of(result)] if outcome == "failed" else []
        said += lines
        if result["result"] not in (*GOOD, "SKIP"):
            print_failure(result)
    print("\n".join(said + args.note))
    # Logs of a run that was cut short show no failure.
    if args.code:
        print(f"\nmeson test ended with code {args.code}")
    last = "{passed} passed, {failed} failed, {skipped} skipped".format(**counts)
    if args.record:
        with open(args.record[0], "a", encoding="utf-8") as f:
            ended = [f"(ended with {args.code})"] if args.code and not failed else []
            f.write(" ".join([args.record[1], f"{seconds / 60:.0f} min:", last, *failed, *ended]) + "\n")
    print(f"\n{last}")
    return 1 if counts["failed"] or args.code or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
