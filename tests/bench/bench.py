# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the benchmarks share: it finds the build, runs tools beside a load and prints tables.

Each bench takes the build directory as its first argument (default: build).
"""

import argparse
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live"))


def arguments(doc, **numbers):
    """Parses BUILD and --NAME VALUE for each of numbers, and sets the harness's variables to the
    build."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("build", nargs="?", default=os.path.join(HERE, "..", "..", "build"))
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default {value}")
    args = parser.parse_args()
    os.environ["STACKD"] = os.path.join(args.build, "daemon", "stackd")
    os.environ["STACKCTL"] = os.path.join(args.build, "client", "stackctl")
    os.environ["PROGS"] = os.path.join(args.build, "tests", "live")
    for path in (os.environ["STACKD"], os.environ["STACKCTL"]):
        if not os.access(path, os.X_OK):
            sys.exit(f"{path} is not there: give the build directory")
    if os.geteuid() != 0:
        sys.exit("needs root")
    return args


def load(args, name):
    return os.path.join(args.build, "tests", "bench", name)


def table(header, rows):
    """Prints columns: the first is aligned to the left, the others to the right."""
    rows = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def spread(values):
    """Returns the noise of the base: the least of the odd rounds over the least of the even
    ones."""
    if len(values) < 2:
        return 0.0
    return abs(min(values[::2]) - min(values[1::2]))


def median_spread(values):
    if len(values) < 2:
        return 0.0
    return abs(statistics.median(values[::2]) - statistics.median(values[1::2]))


def verdict(reached):
    return "reached" if reached else "MISSED"
