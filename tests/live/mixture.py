# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the tests of sampled waits share."""

import math

from harness import check, rows_with


def check_spread(errors, label):
    """errors: the differences between estimates and truth, in standard deviations. Their squares
    are 1 on average, and that of n squares spreads by about sqrt(2 / n)."""
    n = len(errors)
    square = sum(e * e for e in errors) / n
    mean = sum(errors) / n
    worst = max(abs(e) for e in errors)
    check(worst < 4.5, f"{label}: the worst of {n} errors is {worst:.2f} sigma")
    check(abs(mean) < 4 / math.sqrt(n), f"{label}: on average {mean:.2f} sigma")
    check(abs(square - 1) < 4 * math.sqrt(2 / n),
          f"{label}: the spread is {math.sqrt(square):.2f} of what the rule says")


def rows_of(snapshot, pid, name):
    return [row for row in rows_with(snapshot, name) if row["process"]["pid"] == pid]


def sampled(rows):
    return sum(row.get("sampled_ns") or 0 for row in rows)
