# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that the stack of a wait that goes on is taken again if it was lost: a burst of stacks
fills the daemon's memory, and a wait that begins then has its stack at one of the next cuts.
"""

import harness as h

h.need_live()
daemon = h.Daemon("window.length=60s", "window.max_memory=4M", "probe.offcpu.min_wait=1us")
probe = next(p for p in daemon.status()["probes"] if p["name"] == "offcpu")
if any("waits that have not ended" in blind for blind in probe.get("blind", [])):
    h.skip("this kernel: stacks of waits that have not ended are not read")

program = daemon.settled(h.Program("prog_manystacks", 16384, 1, 20).ready())
seen = set()


def open_flags():
    """Returns the flags of both stacks of the wait in which the program now is, and notes them: at the
    next cut the stack may have been taken again."""
    rows = daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"]
    stacks = [row.get(side, {}) for row in rows for side in ("kernel", "user")]
    flags = [flag for stack in stacks for flag in stack.get("flags", [])]
    seen.update(flags)
    return flags


def is_whole():
    daemon.cut()
    rows = daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"]
    return len(rows) == 1 and not open_flags()


program.go()
program.read_until("walked")
h.wait_until(lambda: "lost" in open_flags() or is_whole(), "the wait for the end to be seen")
h.check("lost" in seen, f"at first there is no room for its stack: {seen}")
h.wait_until(is_whole, "the stack to be taken again")
names = h.frame_names(daemon.ctl_json("stuck", "--idle", "-p", program.pid)["rows"][0])
h.check("wait_for_end" in names and names[-1] == "_start", f"it is the wait for the end: {names}")
h.check(program.end() == 0, "the program ended well")
daemon.stop()
h.finish()
