#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that status tells when a thread hangs that recording needs, and that the watchdog of
systemd is then no longer notified. The hanging thread is made by fault injection; when it comes on,
the problem is gone."""

import threading

import fault
from harness import *

WATCHDOG_S = 2
LIMIT_S = 120  # for what takes some 10 s on an idle host
STUCK_S = 30  # after so long without progress the watchdog is not notified


class Watchdog(threading.Thread):
    """The socket to which a service manager listens. A daemon hangs if nobody reads from it."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.last, self.n = time.monotonic(), 0
        self.start()

    def run(self):
        while True:
            if b"WATCHDOG=1" in self.socket.recv(4096):
                self.last, self.n = time.monotonic(), self.n + 1

    def environment(self):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000)}

    def silent_s(self):
        """Returns for how long the watchdog was not notified."""
        return time.monotonic() - self.last

    def wait(self):
        """Waits until it is notified once more."""
        n = self.n
        wait_until(lambda: self.n > n, "the watchdog to be notified")
        check(True, "the watchdog is notified")


def problem(words, what):
    """Waits until status has a problem with these words, and returns it."""

    def look():
        status = daemon.status()
        found = [p for p in status["problems"] if words in p]
        return found[0] if found and not status["healthy"] else None

    return wait_until(look, what)


def check_gone(words):
    """Checks that status no longer has a problem with these words. It may have others, such as
    losses on a busy host."""
    wait_until(lambda: not any(words in p for p in daemon.status()["problems"]),
               f"the end of the problem with {words}")
    check(True, f"the problem with {words} is gone")


@contextlib.contextmanager
def new_code():
    """Starts a program once a second that makes its code at run time. The thread that looks up names
    opens a file for each of them, which it seldom does for programs that it knows."""
    ended = threading.Event()

    def start():
        while not ended.wait(1):
            Program("prog_jit", "jit").read_until("ready")

    thread = threading.Thread(target=start)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


need_live()
daemon = Daemon("window.length=1s", start=False)
faults = fault.Faults(daemon.dir)
watchdog = Watchdog(daemon.dir)
daemon.start(env={**faults.environment(), **watchdog.environment()})
check_gone("stackd-proc")

faults.hang("stackd-proc")
run([os.path.join(PROGS, "prog_shortlived"), "30"])
text = problem("stackd-proc", "the thread that reads processes")
check("reading processes" in text, f"a thread that reads processes and hangs: {text}")
check(daemon.ctl("status").code == 0, "stackctl status still answers")
watchdog.wait()
begun = time.monotonic()
wait_until(lambda: watchdog.silent_s() > 2 * WATCHDOG_S,
           "the watchdog to starve")
check(True, f"the watchdog starves after another {time.monotonic() - begun:.0f} s")
faults.hang("")
watchdog.wait()
check_gone("stackd-proc")

faults.hang("resolver")
with new_code():
    text = problem("the newest window of offcpu", "windows that wait for names")
check("names are looked up too slowly" in text, f"a resolver that hangs: {text}")
text = problem("the thread resolver", "the thread that looks up names")
check("looking up names" in text, f"a resolver that hangs: {text}")
faults.hang("")
check_gone("the thread resolver")
check_gone("the newest window of offcpu")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
