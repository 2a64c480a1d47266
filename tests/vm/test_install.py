#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""When the package is installed, the service runs without any further step: as its own user, with
only the capabilities that tracing needs, and hardened. An upgrade while it records keeps its
history and its settings. So does installing the same package again."""

import contextlib

from system import *

PACKAGE, OLDER = "/stackd/stackd.deb", "/stackd/older.deb"
SETTINGS = "/etc/stackd/stackd.conf"

# The message ID of stackd(8) for a probe that records.
RECORDING = "f4b95029720840e3a25f77edd94f3998"

# The numbers of capabilities, from /usr/include/linux/capability.h.
SYSLOG, DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN = 34, 2, 19, 21
PERFMON, BPF, CHECKPOINT_RESTORE = 38, 39, 40
DAEMON = {SYSLOG, DAC_READ_SEARCH, SYS_PTRACE, PERFMON, BPF, CHECKPOINT_RESTORE}
# The capabilities of its children, by their names; all others have none.
CHILDREN = {"stackd-broker": {SYS_ADMIN}, "stackd-open": {DAC_READ_SEARCH},
            "stackd-holders": {DAC_READ_SEARCH, SYS_PTRACE}}


def capabilities(pid, name="CapPrm"):
    bits = int(status_of(pid)[name], 16)
    return {n for n in range(64) if bits >> n & 1}


def check_install(text, package=PACKAGE):
    done = run(["dpkg", "-i", package])
    check(done.code == 0, f"{text}: {done}")
    check("Warning" not in done.err + done.out, f"{text}: without a warning: {done.out} {done.err}")
    check(state_of() == "active", f"{text}: the service is {state_of()}")
    check(state_of("stackd.socket") == "active", f"{text}: so is the socket")
    check(property_of("UnitFileState") == "enabled", f"{text}: and it is enabled")


def version():
    return run(["dpkg-query", "-W", "-f", "${Version}", "stackd"]).out


def check_upgrade():
    """Upgrades from an older version in the middle of a window, with a setting of the user's."""
    check_install("the version before", OLDER)
    older, pid = version(), main_pid()
    with open(SETTINGS, "a", encoding="utf-8") as file:
        file.write("\n[window]\nlength = 4s\n")
    start = time.time()
    program = Program("prog_waits", 2, 100).ready().go().done()
    program.end()
    end = time.time()
    check_install("upgraded")
    check(version() != older, f"from {older} to {version()}")
    check(main_pid() not in (0, pid), "the service was started anew")
    check(ctl("status").code == 0, "it answers over its socket")
    wait_for_store()
    value, done = blocked_us(program.pid, start, end)
    check(value >= 200_000, f"what was recorded before is answered: {value} us of waits, {done}")
    gaps = [g["reason"] for g in windows(start)["gaps"]]
    check(gaps == ["stackd was stopped"], f"and the time between is a gap: {gaps}")
    with open(SETTINGS, encoding="utf-8") as file:
        check("length = 4s" in file.read(), "the user's setting is left as it was")
    length = run([STACKD, "--dump-config"]).out
    check(re.search(r"^length *= *4s", length, re.M), "and holds")


def windows(since):
    """Returns the coverage from since to now, as soon as the daemon is not too busy to answer so."""
    reply = {}

    def is_timely():
        reply.update(call("io.stackd.Snapshot", probe="offcpu", since_ns=int(since * NS_PER_S), top=1))
        return not any("too busy" in gap["reason"] for gap in reply["coverage"]["gaps"])

    wait_until(is_timely, "a daemon that is not busy")
    return reply["coverage"]


def check_processes():
    pid = main_pid()
    children = children_of(pid)
    user = status_of(pid)["Uid"].split()[0]
    check(user == run(["id", "-u", "stackd"]).out.strip(), f"the daemon's user is {user}")
    for name in ("CapPrm", "CapEff", "CapAmb", "CapInh"):
        got = capabilities(pid, name)
        check(got == DAEMON, f"the daemon's {name} are {sorted(got)}")
    # A worker ends when it has nothing to do for a while, or with the file that it was started for.
    seen = []
    for child in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = status_of(child)
            seen.append((status["Name"], capabilities(child), status["Seccomp"]))
    names = [name for name, _, _ in seen]
    check(names.count("stackd-broker") == 1, f"one child opens perf events: {names}")
    others = [name for name in names if name != "stackd-broker"]
    check(all(name.startswith(("stackd-parse", "stackd-open", "stackd-holders")) for name in others),
          f"the others parse and open files, and look up holders: {others}")
    check(len(names) > 1, "there are others")
    for name, has, seccomp in seen:
        may = CHILDREN.get(name, set())
        check(has == may, f"{name} has {has}, no capability but {may}")
        check(seccomp == "2", f"{name} has a filter of system calls")


def check_threads():
    """The threads that read ring buffers and new processes run at a higher priority."""
    nice = {}
    for tid in os.listdir(f"/proc/{main_pid()}/task"):
        with open(f"/proc/{main_pid()}/task/{tid}/stat", encoding="ascii") as file:
            head, _, rest = file.read().rpartition(")")
        nice[head.partition("(")[2]] = int(rest.split()[16])
    urgent = {name for name, value in nice.items() if value == -5}
    check({"offcpu", "oncpu", "stackd-proc"} <= urgent, f"these threads have a nice of -5: {nice}")
    check(not urgent & {"stackd", "resolver", "store", "stackd-files"}, "and these have not")


def check_units():
    done = run(["systemd-analyze", "--man=no", "verify", "stackd.service", "stackd.socket"])
    ours = [line for line in done.err.splitlines() if "stackd" in line]
    check(done.code == 0 and not ours, f"the units load without a warning: {done} {ours}")
    done = run(["systemd-analyze", "security", "stackd.service"])
    score = re.search(r"exposure level for stackd.service: ([0-9.]+)", done.out)
    check(score and float(score.group(1)) <= 2.5, f"systemd-analyze security: {score}")


def check_answers():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as level:
        check(level.read().strip() == "3", "perf_event_paranoid is 3, as Debian has it")
    probes = {p["name"]: p for p in call("io.stackd.Status")["probes"]}
    hook = probes["offcpu"].get("hook")
    check(hook == "kprobe/finish_task_switch", f"the hook of offcpu is {hook}")
    hook = probes["oncpu"].get("hook")
    check(hook == "perf_event/cpu-clock", f"the hook of oncpu is {hook}: the broker opened it")
    failed = [p for p in probes.values() if p["state"] == "failed"]
    check(not failed, f"no probe failed: {failed}")
    done = ctl("snapshot", "offcpu", "--window", "30s", "-f")
    check(done.code == 0 and "__schedule" in done.out, f"a snapshot names kernel functions: {done} {done.out[:500]}")
    check("notify" not in log_text() and property_of("StatusText"),
          f"systemctl status says: {property_of('StatusText')}")


def check_journal():
    argv = ["journalctl", "--no-pager", "-o", "json", "-u", UNIT, f"MESSAGE_ID={RECORDING}"]
    entries = [json.loads(line) for line in run(argv).out.splitlines()]
    check(entries, "the journal has a record of the start")
    for entry in entries[:1]:
        found = {name: entry.get(name) for name in ("PRIORITY", "STACKD_PROBE", "STACKD_HOOK")}
        wanted = {"PRIORITY": "6", "STACKD_PROBE": "offcpu",
                  "STACKD_HOOK": "kprobe/finish_task_switch"}
        check(found == wanted, f"with its fields: {found}")


check_upgrade()
check_journal()
check_processes()
check_threads()
check_units()
check_answers()
check_install("installed again")
check_answers()
finish()
