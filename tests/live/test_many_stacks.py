#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows 4,096 and then 16,384 distinct user stacks within one window: each arrives once, with its
own path of names, and nothing is lost. BPF maps of the default size take no more than they should."""

from harness import *

DEPTH = 14


def path_of(row):
    """Returns the number of the path that the names spell, or None."""
    names = frame_names(row)
    if "path_end" not in names:
        return None
    first = names.index("path_end") + 1
    branches = names[first : first + DEPTH + 1]
    if len(branches) != DEPTH + 1 or not set(branches) <= {"branch_a", "branch_b"}:
        return None
    # The outermost branch is the branch_a that main calls; then bit 0 of the number decides, and so
    # on.
    return sum(1 << d for d, name in enumerate(list(reversed(branches))[1:]) if name == "branch_b")


def check_stacks(daemon, count):
    program = daemon.settled(Program("prog_manystacks", count, 1, 20).ready())
    start = daemon.cut()
    program.go().done()
    end = daemon.cut()
    program.end()
    reply = daemon.call(
        "io.stackd.Snapshot",
        probe="offcpu",
        since_ns=start,
        until_ns=end,
        filter={"pids": [program.pid]},
        idle=True,
    )
    check(reply["coverage"]["windows"] == 1, f"{count}: {reply['coverage']['windows']} window")
    rows = [r for r in reply["rows"] if "path_end" in frame_names(r) and r["state"] == "S"]
    paths = [path_of(row) for row in rows]
    check(None not in paths, f"{count}: every stack spells a path")
    check(
        set(paths) == set(range(count)),
        f"{count}: {len(set(paths))} distinct paths, all that were walked",
    )
    check(len(paths) == len(set(paths)), f"{count}: no path has two rows")
    check(len({row["user"]["id"] for row in rows}) == count,
          f"{count}: there are as many stack ids")
    waits = row_sum(rows, "count")
    slept = program.value("walked")["sleeps"]
    check(waits == slept, f"{count}: {waits} waits, as many as the kernel counted: {slept}")
    check(
        row_sum(rows) >= count * 20_000,
        f"{count}: {row_sum(rows) // count} ns a wait, at least the 20 us asked for",
    )
    check_nothing_lost(reply, f"{count}")
    # The client and the socket carry all of the stacks, too.
    result = daemon.ctl("snapshot", "offcpu", "-f", "--window", "5min", "-p", program.pid)
    stacks = parse_folded(result.out)
    paths = {stack.split(";path_end")[0] for stack in stacks if "path_end" in stack}
    check(len(paths) == count, f"{count}: {len(paths)} distinct paths in the folded snapshot")


def check_default_maps():
    daemon = Daemon()
    daemon.cut()
    maps = daemon.status()["map_bytes"]
    check(maps <= 48 << 20, f"BPF maps, with those of the unwinder: {maps / 2**20:.1f} MiB")
    daemon.stop()


need_live()
check_default_maps()
# With a min_wait of 1 us, the waits of all other programs are in the same window.
daemon = Daemon("window.length=10min", "probe.offcpu.min_wait=1us", *ROOM)
check_stacks(daemon, 4096)
check_stacks(daemon, 16384)
status = daemon.status()
check_nothing_lost(status, "status")
keys = next(limit for limit in status["limits"] if limit["name"] == "probe.offcpu.max_keys")
print(f"most keys in a window: {keys['used']} of {keys['value']}")
finish()
