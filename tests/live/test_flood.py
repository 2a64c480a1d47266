#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that status names the control group whose threads fill the table of waits, when the table is
full and waits of others are lost."""

import harness as h

h.need_live()

THREADS = 3000
GROUP = f"/stackd-flood-{h.os.getpid()}"
group = h.cgroup_root() + GROUP
h.os.mkdir(group)
h.atexit.register(h.os.rmdir, group)
daemon = h.Daemon("window.length=1s", "probe.offcpu.max_keys=1024")


def floods():
    return [text for text in daemon.status()["problems"] if f"rows are of {GROUP}" in text]


h.check(not floods(), "nobody floods")
flood = h.subprocess.Popen(
    ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh",
     h.os.path.join(h.PROGS, "prog_attack"), "threads", str(THREADS)],
    stdin=h.subprocess.PIPE, stdout=h.subprocess.DEVNULL)
h.atexit.register(h.stop_process, flood)
named = h.wait_until(floods, "status names who floods")
print("\n".join(named))
h.check(any("the window's map was full" in text for text in named), "and which table is full")
h.check(not daemon.status()["healthy"], "the daemon is not healthy")
flood.stdin.close()
h.check(flood.wait(h.HANG_SECONDS) == 0, "the flood ends")
h.check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
h.finish()
