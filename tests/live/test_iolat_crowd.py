# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows a window with more processes than it has rows for: each operation is counted, in one row of
all processes without a row of their own, and the answer says so.
"""

import os
import shutil
import subprocess

import harness as h

h.need_live()

PROCESSES, READS = 800, 40

daemon = h.Daemon("probe.iolat.max_keys=256", "window.length=10min")
# The name is that of this run only: others may read that device, too.
dd = shutil.copy(h.need_tool("dd"), os.path.join(daemon.dir, f"dd-{os.getpid()}"))
session = daemon.ctl("start", "iolat", "--comm", os.path.basename(dd)).out.strip()
for _ in range(PROCESSES):
    subprocess.run([dd, "if=/dev/zero", "of=/dev/null", "bs=512", f"count={READS}", "status=none"],
                   check=True)
# One read each at the end of a file, and one that fails.
subprocess.run([dd, "if=/dev/null", "of=/dev/null", "status=none"], check=True)
subprocess.run([dd, "if=/", "of=/dev/null", "status=none"], check=False, stderr=subprocess.DEVNULL)
reply = daemon.ctl_json("snapshot", session, "--by", "process", "-n", 0)
reads = [r for r in reply["rows"] if r["io"]["layer"] == "syscall" and r["io"]["op"] == "read"]
failed = sum(r["io"].get("errors", 0) for r in reads)
h.check(failed == 1, f"{failed} reads failed, one did")
rows = [r for r in reply["rows"] if r["io"]["layer"] == "syscall" and r["io"]["op"] == "read"
        and r["io"].get("device") == "zero"]
count = sum(r["count"] for r in rows)
h.check(count == PROCESSES * READS, f"{count} reads of /dev/zero, {PROCESSES * READS} were made")
rest = [r for r in rows if r["process"]["comm"] == "others"]
h.check(len(rest) == 1 and rest[0]["count"] % READS == 0,
        f"some are in a row of many processes: {[r['count'] for r in rest]}")
h.check(1 < len(rows) < PROCESSES, f"and {len(rows) - 1} processes by themselves")
lost = {loss["reason"]: loss["count"] for loss in reply["lost"]}


def shared(answer):
    return [note for note in answer["notes"] if "operations are in rows for several processes" in note]


h.check(len(shared(reply)) == 1, f"the answer says so: {reply['notes']}")
h.check(not any("operations" in reason for reason in lost), f"no operation is lost: {lost}")
problems = [text for text in daemon.status()["problems"] if "iolat" in text and h.UNSEEN not in text]
h.check(not problems, f"nothing is wrong with that: {problems}")
text = daemon.ctl("snapshot", session, "--by", "process", "-n", 0).out
h.check("    others\n" in text, "the text calls them others")


def ask_later():
    """Returns an answer with more windows, in which nothing happened."""
    later = daemon.ctl_json("snapshot", session, "--by", "process", "-n", 0)
    return later if later["coverage"]["windows"] > reply["coverage"]["windows"] else None


later = h.wait_until(ask_later, "another window")
h.check(shared(later) == shared(reply), f"a window counts what it lacks itself: {shared(later)}, {shared(reply)}")
h.finish()
