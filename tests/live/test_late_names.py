#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that code made at run time has the names of its time: a perf map that comes late names the stacks
that were there before it, from then on; one that is written anew names them anew; and one that is removed
takes no name away. What was recorded before keeps what it had. One of the functions keeps no frame pointer,
as those that python -X perf makes."""

from harness import *

need_live()
daemon = Daemon("window.length=1s")
inside = os.path.join(daemon.dir, "tmp")
os.mkdir(inside)
shutil.copy(os.path.join(PROGS, "prog_jit"), inside)
# A /tmp of its own, so that nothing is left in the host's.
late = spawn(["unshare", "-m", "sh", "-c", f"mount --bind {inside} /tmp && exec /tmp/prog_jit late"],
             stdout=subprocess.PIPE, encoding="ascii")
word, *places = late.stdout.readline().split()
if places == ["none"]:
    skip("no code for this machine")
path = os.path.join(inside, f"perf-{late.pid}.map")


def write_map(*names):
    with open(path + ".new", "w", encoding="ascii") as f:
        for place, name in zip(places, names):
            f.write(f"{place} 20 {name}\n")
    os.rename(path + ".new", path)


def chains(*args):
    """Returns the functions between the program's own, of each of its stacks. The last wait of a range may
    have ended after it, when the code had other names."""
    result = daemon.ctl("snapshot", "offcpu", "--idle", "-p", late.pid, "-n", "0", "--format", "json", *args)
    rows = json.loads(result.out)["rows"] if result.code != 4 else []
    names = [frame_names(row) for row in rows if row["state"] == "S" and row["count"] > 1]
    return {tuple(chain[chain.index("brief_nap") + 1:chain.index("main")]) for chain in names
            if {"brief_nap", "main"} <= set(chain)}


def named(chain, text):
    """Returns a range in which all stacks have this chain, once there is one."""
    def look():
        start = daemon.cut()
        look.until = wait_until(lambda: (end := daemon.cut()) > start + NS_PER_S and end, "a window")
        # A millisecond inside: the clocks of two windows may differ by some nanoseconds.
        look.range = "--since", at(start + 1_000_000), "--until", at(look.until - 1_000_000)
        return chains(*look.range) == {chain}

    wait_until(look, text)
    return look.range


steps = [(("[generated code]",), named(("[generated code]",), "stacks without names"))]
for names in (("late:inner", "late:outer", "late:bare"), ("other:inner", "other:outer", "other:bare")):
    write_map(*names)
    steps.append((names, named(names, f"the names {names}")))
os.unlink(path)
steps.append((steps[-1][0], named(steps[-1][0], "the names that the map had")))
for chain, used in steps:
    check(chains(*used) == {chain}, f"{used} has {chain}: {chains(*used)}")
check(daemon.stop() == 0, "the daemon ends")
daemon.start()
for chain, used in steps:
    check(chain in chains(*used), f"{used} has {chain} on disk: {chains(*used)}")
finish()
