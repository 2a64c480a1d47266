# SPDX-License-Identifier: GPL-2.0-or-later
"""Where prog_unwind sleeps, in each of its builds, and what its stacks look like then."""

import re

DEEP = [f"f{i}" for i in range(10, 0, -1)]
BUILDS = ("o2", "o3", "os", "static", "static_pie", "clang")

# The functions between nap and work, leaf first; ... is what libc has between.
PLACES = {
    "deep": DEEP,
    "thread": DEEP,
    "alloca": ["with_alloca"],
    "realigned": ["with_realigned"],
    "big_frame": ["with_big_frame"],
    "signal": ["on_signal", ..., "with_signal"],
    "callback": ["compare", ..., "with_callback"],
    "library": ["library_call", "with_library"],
}


def begins_with(names, expected):
    """Whether names begin with what is expected, where ... stands for any frames."""
    text = "\n".join(names) + "\n"
    pattern = "".join("(?:.*\n)*?" if e is ... else re.escape(e) + "\n" for e in expected)
    return re.match(pattern, text) is not None


def below_nap(names):
    """What called nap: above it are libc's own, which differ from build to build. Compilers put what
    is seldom run elsewhere, as name.cold."""
    return [name.split(".")[0] for name in names[names.index("nap") + 1:]]


def tail_of(place):
    """From work to the thread's first function."""
    return ["work", "worker", ...] if place == "thread" else ["work", "main", ..., "_start"]
