#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that status is not healthy, and says why, when the past on disk is shorter than [store]
tiers says: windows of the first tier were merged early because the disk space was needed."""

from harness import *

SIZE, COUNT = 16 << 20, 10000
TIERS = "5s:{}:30%, 1min:100d:30%, 10min:1000d:40%"


def short(daemon):
    reply = daemon.status()
    return [text for text in reply["problems"] if "on disk reach back" in text]


need_live()
if not os.path.exists(os.environ.get("STORE_TOOL", "")):
    skip("it needs store_tool, which only a build has")
daemon = Daemon(f"store.max_size={SIZE}", f"store.tiers={TIERS.format('10d')}",
                "store.max_age=1000d", start=False)
# Each of these windows has processes of its own: they fill the database.
done = subprocess.run(
    [os.environ["STORE_TOOL"], "write", daemon.store, str(COUNT), str(SIZE)],
    stdout=subprocess.PIPE, text=True, check=False,
    env={**os.environ, "STORE_CHURN": "150", "STORE_TURNS": "1", "STORE_FOLD": "32",
         "STORE_SHIFT": str(-5 * COUNT - 600),
         "STORE_TIERS": "5:864000:30 60:8640000:30 600:86400000:40"})
merged = re.search(r"^merged: (\d+)$", done.stdout, re.M)
check(done.returncode == 0 and merged and int(merged[1]) > 0,
      f"the database was full, so windows were merged early: {done.stdout}")
daemon.start()
problems = short(daemon)
check(len(problems) == 1 and problems[0].startswith("windows of 5 s on disk reach back")
      and "not 10 d as [store] tiers says" in problems[0]
      and problems[0].endswith("raise [store] max_size"), f"it says what is short: {problems}")
checked = daemon.ctl("status", "--check")
check(checked.code != 0 and "raise [store] max_size" in checked.out + checked.err,
      f"status --check fails and says why: {checked}")
tiers = daemon.status()["store"]["tiers"]
check(tiers[0].get("early"), f"the tier says up to when windows were merged early: {tiers[0]}")
daemon.stop()

# With a tier that need not reach as far back, all is well again.
daemon.argv += ["-o", f"store.tiers={TIERS.format('5min')}"]
daemon.start()
check(not short(daemon), f"a shorter past is as wanted: {short(daemon)}")
daemon.stop()
finish()
