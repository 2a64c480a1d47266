# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows sessions that cannot be started: each is refused with a message that names the cause, and
an exit code to go by. It also shows which users may stop which sessions, and a daemon that exits
while it records. Nothing is left of any.
"""

import os
import shutil
import signal
import subprocess

import harness as h

h.need_live()
h.need_tool("setpriv")

NOBODY, OTHER = 65534, 65533
# A group that every Debian has; a unit's socket has the group of its own unit.
GROUP, START_GROUP = "stackd" if os.environ.get("STACKD_UNIT") else "daemon", "games"


def refused(code, words, *args):
    result = daemon.ctl(*args)
    h.check(
        result.code == code and words in result.err and not result.out,
        f"{' '.join(map(str, args))[:60]}: exit {code} and {words!r}: {str(result)[-300:]}",
    )


def as_user(uid, groups, *args):
    """Runs stackctl as that user, in these groups alone."""
    drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}"]
    drop.append(f"--groups={groups}" if groups else "--clear-groups")
    return h.run([*drop, stackctl, "-S", daemon.socket, *args])


daemon = h.Daemon(
    "window.length=1s", f"control.group={GROUP}", f"control.start_group={START_GROUP}"
)
daemon.cut()
before = daemon.started_objects()
RATE_MAX = int(open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii").read())

# Processes and threads that do not exist.
gone = subprocess.Popen(["true"])
gone.wait()
refused(1, f"there is no process {gone.pid}", "start", "offcpu", "-p", gone.pid)
refused(1, "there is no process 4194000", "record", "offcpu", "--duration", "1s", "-p", "4194000")
refused(1, "there is no thread 4194000", "start", "offcpu", "-t", "4194000")
every = ",".join(str(i) for i in range(1, 10001))
refused(1, "more than 256", "start", "offcpu", "-p", every)

# Options that exclude each other, or make no sense.
refused(1, "--pid and --tid exclude each other", "start", "offcpu", "-p", "1", "-t", "1")
refused(1, "exclude each other", "start", "offcpu", "-U", "-K")
refused(1, "exclude each other", "start", "offcpu", "-u", "-k")
refused(1, "longer than", "start", "offcpu", "-m", "100", "-M", "10")
refused(1, "from 1 on", "start", "oncpu", "-F", "0")
refused(1, f"up to {RATE_MAX} ", "start", "oncpu", "-F", RATE_MAX + 1)
refused(1, f"up to {min(RATE_MAX, 10000)} samples", "start", "oncpu", "-F", min(RATE_MAX, 10000) + 1)
refused(1, "takes one every 100 us to 10 s", "start", "oncpu", "--count", "99999")
refused(1, "kernel.perf_event_max_sample_rate", "start", "oncpu", "-F", "10000000")
refused(1, "kernel.perf_event_max_sample_rate", "start", "oncpu", "--count", "100")
refused(1, "there is no CPU 99; online are", "start", "oncpu", "-C", "99")
refused(1, "no state", "start", "offcpu", "--state", "Q")
refused(1, "no waits that have a state", "start", "oncpu", "--state", "D")
refused(1, "no waits that could be long", "start", "oncpu", "-m", "100")
refused(1, "cannot be limited to some CPUs; see oncpu", "start", "offcpu", "-C", "0")
refused(1, "/no/such is no cgroup below", "start", "offcpu", "--cgroup", "/no/such")
refused(1, "is no cgroup below", "start", "offcpu", "--cgroup", "/cgroup.procs")
refused(1, "is no cgroup below", "start", "offcpu", "--cgroup", "/../../../etc")
refused(1, "begins with /", "start", "offcpu", "--cgroup", "system.slice")
refused(1, "no cgroup of a unit no-such.service", "start", "offcpu", "--unit", "no-such")
refused(1, "no probe nope", "start", "nope")
refused(1, "needs --for", "record", "offcpu")
refused(1, "not the name of a probe", "start", "offcpu", "--name", "offcpu")

refused(1, '"" is no function', "start", "stackcount", "")
refused(1, "needs a probe", "start", "")
refused(4, "for a while: stackctl record offwake", "snapshot", "offwake")

# A process may get that name later, so it is recorded; the answer is empty, and says why.
for words in (["no-such-name*"], ["no-such-name*", "-f"]):
    result = daemon.ctl("record", "offcpu", "--duration", "500ms", "--comm", *words)
    says = "no thread of comm no-such-name* was seen"
    h.check(result.code == 4 and says in result.err, f"a name that no thread has: {result}")
h.check(not result.out, f"nothing is printed as folded: {result.out[:200]}")

# Stopping a session twice, one that does not exist, and one that is always on.
session = daemon.ctl("start", "offcpu", "-p", os.getpid()).out.strip()
h.check(daemon.ctl("stop", session).code == 0, "stopped")
refused(1, "has ended already", "stop", session)
refused(1, "no session 4711", "stop", "4711")
refused(1, "the id of a session", "stop")
refused(6, "offcpu is always on", "stop", "offcpu")

# Sessions may be stopped by their owner and by root.
os.chmod(daemon.dir, 0o755)
stackctl = os.path.join(daemon.dir, "stackctl")
shutil.copy(h.STACKCTL, stackctl)
both = f"{GROUP},{START_GROUP}"
of_root = daemon.ctl("start", "oncpu", "--name", "of-root").out.strip()
result = as_user(NOBODY, GROUP, "start", "oncpu")
h.check(result.code == 3 and START_GROUP in result.err, f"a member that may only ask: {result}")
result = as_user(NOBODY, both, "start", "oncpu")
h.check(result.code == 0, f"a member that may start: {result}")
own = result.out.strip()
result = as_user(NOBODY, both, "stop", of_root)
h.check(result.code == 3 and "only root may" in result.err, f"root's: {result}")
result = as_user(OTHER, both, "stop", own)
h.check(result.code == 3 and "its owner" in result.err, f"another user's: {result}")
listed = {s["id"]: s for s in daemon.call("io.stackd.Sessions")["sessions"]}
h.check(not any("ended" in listed[i] for i in (own, of_root)), "both go on")
h.check(as_user(NOBODY, both, "stop", own).code == 0, "the owner stops it")
again = as_user(NOBODY, both, "start", "oncpu").out.strip()
h.check(daemon.ctl("stop", again).code == 0, "root stops any user's session")
h.check(daemon.ctl("stop", of_root).code == 0, "root stops its own session")

# Others than root may trace only functions, in files that no one but root can change or replace.
own_copy = os.path.join(daemon.dir, "true")
shutil.copy("/bin/true", own_copy)
os.chown(own_copy, NOBODY, NOBODY)
link = os.path.join(daemon.dir, "link")
os.symlink(own_copy, link)
for place, says in (
    ("/bin/true:0x1000", "only root may trace an address"),
    (f"{own_copy}:*", "others than root can change"),
    (f"{link}:*", "others than root can change"),
    (f"/proc/self/root{own_copy}:*", "others than root can change"),
):
    result = as_user(NOBODY, both, "start", "stackcount", f"u:{place}")
    h.check(result.code == 1 and says in result.err, f"not for a member, {place}: {result}")
own = as_user(NOBODY, both, "start", "stackcount", "u:c:getaddrinfo").out.strip()
h.check(own and daemon.ctl("stop", own).code == 0, f"a function of a file of root's: {own}")
address = next(line.split()[0] for line in
               h.run(["nm", "-D", "--defined-only", "/lib/x86_64-linux-gnu/libc.so.6"]).out.splitlines()
               if line.endswith(" T getaddrinfo@@GLIBC_2.2.5"))
of_root = daemon.ctl("start", "stackcount", f"u:/lib/x86_64-linux-gnu/libc.so.6:0x{address}").out.strip()
h.check(of_root and daemon.ctl("stop", of_root).code == 0, f"root traces an address: {of_root}")

# Without a group, only root starts sessions.
alone = h.Daemon("window.length=1s", f"control.group={GROUP}", "control.start_group=")
os.chmod(alone.dir, 0o755)
other = h.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={both}", stackctl,
               "-S", alone.socket, "start", "oncpu"])
h.check(other.code == 3 and "only root may" in other.err, f"no group may start: {other}")
h.check(alone.ctl("start", "oncpu").code == 0, "root may")
alone.stop()

# A client that exits before it has the session's number leaves nothing behind; nor does one that
# cannot print the number.
def places_taken():
    limits = daemon.status()["limits"]
    return next(x["used"] for x in limits if x["name"] == "control.max_sessions")


def sessions_named(name):
    return [s for s in daemon.call("io.stackd.Sessions")["sessions"] if s.get("name") == name]


def start_interrupted(name):
    """Starts a session and interrupts the client; true if the session was still loading."""
    start = subprocess.Popen(
        [h.STACKCTL, "-S", daemon.socket, "start", "offwake", "--name", name],
        stdout=subprocess.PIPE,
    )
    h.wait_until(lambda: places_taken() == 1 or start.poll() is not None, "it to load")
    start.send_signal(signal.SIGINT)
    printed = start.communicate()[0].decode().strip()
    if printed:
        daemon.ctl("stop", printed)
    return not printed


names = (f"gone-{i}" for i in range(20))
name = next(name for name in names if start_interrupted(name))
h.wait_until(lambda: places_taken() == 0, "nothing to run")
given_up = sessions_named(name)[0]
h.check(
    "ended" in given_up and "went away before" in given_up["note"],
    f"it was ended, and why: {given_up}",
)
said = f"session {given_up['id']} ended: its client went away"
h.check(h.wait_until(lambda: said in daemon.log(), "the log to have it"), said)
listed = daemon.ctl("sessions").out
h.check("went away before" in listed, f"and stackctl sessions: {listed[-300:]}")
with open("/dev/full", "w", encoding="ascii") as full:
    argv = [h.STACKCTL, "-S", daemon.socket, "start", "oncpu", "--name", "unprinted"]
    start = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, timeout=h.HANG_SECONDS)
h.check(start.returncode == 7 and b"is stopped" in start.stderr, f"a full disk: {start}")
h.check(all("ended" in s for s in sessions_named("unprinted")), "it is stopped")

# Several sessions may have one name: it stands for the newest that runs, or else for the newest.

def start_twin():
    return daemon.ctl("start", "offcpu", "--name", "twin", "-m", "1s").out.strip()


first, second = start_twin(), start_twin()
daemon.call("io.stackd.Stop", session=second)
stopped = daemon.call("io.stackd.Stop", session="twin")["session"]["id"]
h.check(stopped == first, f"of {first} and {second}, the one that ran was stopped: {stopped}")
stop = daemon.ctl("stop", "twin")
is_newest = f"session {second} has ended already" in stop.err
h.check(stop.code == 1 and is_newest, f"of two that have ended the newest: {stop}")

after = daemon.settled_objects(before)
h.check(before and after == before, f"in the kernel: {after} as {before}")

# The daemon is restarted while it records.
record = subprocess.Popen(
    [h.STACKCTL, "-S", daemon.socket, "record", "offcpu", "--duration", "1min"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
)


def recordings():
    return [s["id"] for s in daemon.call("io.stackd.Sessions")["sessions"] if not s["always"] and "ended" not in s]


(recorded,) = h.wait_until(recordings, "the recording to begin")
daemon.stop()
daemon.start()
out, err = record.communicate(timeout=h.HANG_SECONDS)
h.check(record.returncode == 7 and not out, f"exit {record.returncode}, expected 7: {err.decode()}")
h.check(b"the daemon closed the connection" in err, f"it says why: {err.decode()}")
# The client may not have read yet which session it has.
said = err.decode().split()[-1]
h.check(said in (recorded, "connection"), f"and which session it was: {recorded}, {err.decode()}")
kept = daemon.ctl("snapshot", recorded, "-n", "1")
h.check(kept.code == 0 and "waits" in kept.out, f"what it had recorded is there: {kept}")
running = [s for s in daemon.call("io.stackd.Sessions")["sessions"] if "ended" not in s]
h.check(all(s["always"] for s in running), f"its session is over: {running}")
h.finish()
