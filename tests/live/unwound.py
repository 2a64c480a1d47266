# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists where prog_unwind sleeps, in each of its builds, and how its stacks look there."""

import re

DEEP = [f"f{i}" for i in range(10, 0, -1)]
BUILDS = ("o2", "o3", "os", "static", "static_pie", "clang")
# Builds without call frame information, whose functions keep frame pointers.
FRAMED_BUILDS = ("framed", "framed_clang", "framed_static")

# The functions between nap and work, leaf first; ... stands for frames of libc in between.
PLACES = {
    "deep": DEEP,
    "thread": DEEP,
    "alloca": ["with_alloca"],
    "realigned": ["with_realigned"],
    "big_frame": ["with_big_frame"],
    "signal": ["on_signal", ..., "with_signal"],
    "callback": ["compare", ..., "with_callback"],
    "library": ["library_call", "with_library"],
    "trap": ["on_signal", ..., "traps", "with_trap"],
    "begins": DEEP,
    "unaligned": ["unaligned", "with_unaligned"],
}
# Only the build o2 has these.
O2_PLACES = ("library", "trap", "begins")
# Only the builds with frame pointers have these.
FRAMED_PLACES = ("unaligned",)


def has_place(build, place):
    if place in FRAMED_PLACES:
        return build in FRAMED_BUILDS
    return place not in O2_PLACES or build == "o2"


def begins_with(names, expected):
    """True if names begin with the expected ones, where ... stands for any frames."""
    text = "\n".join(names) + "\n"
    pattern = "".join("(?:.*\n)*?" if e is ... else re.escape(e) + "\n" for e in expected)
    return re.match(pattern, text) is not None


def below_nap(names):
    """Returns the names of nap's callers. The frames above nap are libc's own, which differ from
    build to build. Compilers put code that seldom runs elsewhere, as name.cold."""
    return [name.split(".")[0] for name in names[names.index("nap") + 1:]]


def flags_of(build):
    """Returns the flags of a whole stack of this build."""
    return ["frame_pointers"] if build in FRAMED_BUILDS else []


def tail_of(place):
    """Returns the names from work to the thread's first function."""
    if place == "begins":
        return ["work", "worker", "begins"]
    return ["work", "worker", ...] if place == "thread" else ["work", "main", ..., "_start"]
