#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows what floods by one user cost the others: a perf map of a million lines, 65,000 mappings, a
crowd of threads, and forks without end. Meanwhile stackd answers, a program of another user keeps
its waits and their names, and the memory stays below what the unit allows. ATTACK_SHARE=1 makes the
crowds as large as a user can, 20,000 threads and 50,000 forks; the default is a twentieth."""

from harness import *

NOBODY = 65534
SHARE = float(os.environ.get("ATTACK_SHARE", "0.05"))
MEMORY_MAX_KIB = 512 * 1024  # MemoryHigh= of the unit
ANSWER_S = 20


class Attack:
    """One attack by another user, from "ready" to the end of its standard input."""

    def __init__(self, *args):
        # The user may be unable to enter the folder of the build.
        self.copy = shutil.copy(os.path.join(PROGS, "prog_attack"), make_temp_dir())
        os.chmod(os.path.dirname(self.copy), 0o755)
        self.process = subprocess.Popen([self.copy, *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, encoding="utf-8",
                                        user=NOBODY, group=NOBODY, extra_groups=[])
        atexit.register(stop_process, self.process)
        self.said = []
        while not self.said or self.said[-1] != "ready":
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"{args}: ended before it was ready")
            self.said.append(line.strip())

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(HANG_SECONDS)


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def check_goes_on(daemon, label):
    """Checks that no thread hangs and that windows are not late. On a busy host one may be for a
    moment."""

    def problems():
        return [p for p in daemon.status()["problems"] if "has not come on" in p or "ended" in p]

    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not problems(), f"{label}: windows in time")
    stuck = problems()
    check(not stuck, f"{label}: no thread hangs, no window is late: {stuck}")


def check_attack(daemon, label, *args):
    attack = Attack(*args)
    beside = Program("prog_shortlived", "300")
    check(beside.end() == 0, f"{label}: a program beside it runs; {' '.join(attack.said)}")
    begun = time.monotonic()
    rows = daemon.snapshot("-p", beside.pid)["rows"]
    took_s = time.monotonic() - begun
    estimate_most(took_s, ANSWER_S, f"{label}: the answer took {took_s:.2f} s")
    names = {n for r in rows for n in frame_names(r)}
    check("short_wait" in names, f"{label}: the stacks beside it have names")
    rss = rss_kib(daemon.process.pid)
    check(rss < MEMORY_MAX_KIB, f"{label}: stackd has {rss} KiB")
    check_goes_on(daemon, label)
    attack.end()


need_live()
daemon = Daemon("window.length=1s", "window.max_rows=20000")
learn(daemon, [os.path.join(PROGS, "prog_shortlived"), "300"], "short_wait")
check_attack(daemon, "a perf map of a million lines", "perfmap", 1_000_000)
check_attack(daemon, "65,000 mappings", "maps", 65_000, shutil.which("bash"))
check_attack(daemon, "threads", "threads", int(20_000 * SHARE))
check_attack(daemon, "forks", "forks", int(50_000 * SHARE))
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
