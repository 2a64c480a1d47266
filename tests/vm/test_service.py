#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The service in a running system: which users may ask it, stop, kill, socket activation, reload, the
watchdog, an invalid configuration, a cron job."""

from system import *

DROP_IN = "/run/systemd/system/stackd.service.d/test.conf"
SETTINGS = "/etc/stackd/stackd.conf.d/test.conf"
CRON_JOBS = "/root/cron.test"
CAPTURE = "/root/capture"
METRICS = "/var/lib/prometheus/node-exporter/stackd.prom"


def check_users():
    run(["useradd", "--no-create-home", "outside"])
    run(["useradd", "--no-create-home", "--groups", "stackd", "inside"])
    done = ctl("status", user="outside")
    check(done.code == 3, f"a user outside the group is refused: {done}")
    check("group" in done.err and "stackd" in done.err, "and the message names the group")
    wait_until(lambda: ctl("snapshot", "offcpu", "--window", "30s", user="inside").code == 0,
               "an answer to a user in the group")


def check_stop():
    started = time.time()
    done = systemctl("stop", UNIT)
    check(done.code == 0 and state_of() == "inactive", f"stopped: {done}")
    check(property_of("ExecMainStatus") == "0", "the daemon ended with 0")
    check(property_of("Result") == "success", f"in order: {property_of('Result')}")
    print(log_text(int(started)))
    check(state_of("stackd.socket") == "inactive", "its socket is stopped too")
    done = ctl("status")
    check(done.code == 2, f"no client starts it again: {done}")
    check(state_of() == "inactive", "and it stays stopped")


def check_flush():
    """The window that was open when the daemon was stopped can be queried from the next daemon."""
    start = time.time()
    program = Program("prog_waits", 1, 100).ready().go().done()
    program.end()
    check(systemctl("stop", UNIT).code == 0, "stopped in the middle of a window")
    end = time.time()
    check(systemctl("start", UNIT).code == 0, "and started again")
    check_waits(program.pid, start, end, "that window is there")


def check_waits(pid, start, end, text):
    wait_for_store()
    value, done = blocked_us(pid, start, end)
    check(value >= 100_000, f"{text}: {value} us of waits, {done}")


def check_activation():
    done = systemctl("start", "stackd.socket")
    check(done.code == 0 and state_of() == "inactive", f"only the socket is there: {done}")
    mode = os.stat(SOCKET)
    check(mode.st_mode & 0o777 == 0o660 and mode.st_uid == 0, "with mode 0660, of root")
    # A client waits a minute for the answer; where the start takes longer, the next one gets it.
    ctl("status")
    wait_until(lambda: state_of() == "active", "the service that a client starts")
    done = ctl("status")
    check(done.code == 0, f"which answers: {done}")


def check_restart():
    done = systemctl("restart", UNIT)
    check(done.code == 0 and state_of() == "active", f"restarted: {done}")
    check(state_of("stackd.socket") == "active" and ctl("status").code == 0, "and it answers")


def check_reload():
    pid = main_pid()
    write(SETTINGS, "[window]\nlength = 2s\n")
    since = int(time.time())
    done = systemctl("reload", UNIT)
    check(done.code == 0 and state_of() == "active", f"reloaded: {done}")
    check(main_pid() == pid, "by the same process")
    wait_until(lambda: "window.length" in log_text(since), "the log to name window.length")
    write(SETTINGS, "[window]\nlength = forever\n")
    since = int(time.time())
    systemctl("reload", UNIT)
    wait_until(lambda: "forever" in log_text(since), "the log to name the bad value")
    check(state_of() == "active" and main_pid() == pid, "a bad value leaves it as it was")
    os.unlink(SETTINGS)
    check(systemctl("reload", UNIT).code == 0, "reloaded again")


def check_bad_settings():
    write(SETTINGS, "[window]\nlength = forever\n")
    since = int(time.time())
    done = systemctl("restart", UNIT)
    check(done.code != 0, "a bad setting: it does not start")
    check(property_of("ExecMainStatus") == "78", f"status {property_of('ExecMainStatus')}")
    check(property_of("NRestarts") == "0", "and is not tried again")
    check(SETTINGS in log_text(since), "the log names the file")
    systemctl("reset-failed", UNIT)


def watchdog_us():
    """Returns when the daemon last said that it is alive, in us of CLOCK_MONOTONIC."""
    return int(property_of("WatchdogTimestampMonotonic"))


def check_watchdog():
    # Even an emulated machine is fast enough for this interval.
    seconds = 10
    write(DROP_IN, f"[Service]\nWatchdogSec={seconds}s\n")
    systemctl("daemon-reload")
    check(systemctl("restart", UNIT).code == 0, "restarted with a shorter watchdog")
    pid, start = main_pid(), watchdog_us()
    wait_until(lambda: watchdog_us() > start + 1.2 * seconds * 1_000_000, "signs of the daemon")
    check(main_pid() == pid, "a healthy daemon outlives the interval")
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_anew(pid), "a new daemon")
    check(property_of("NRestarts") == "1", "a stopped daemon is started anew")
    wait_until(lambda: ctl("status").code == 0, "the new daemon to answer")
    check(state_of("stackd.socket") == "active", "over its socket")
    systemctl("reset-failed", UNIT)


def check_late():
    """A daemon that stood still for most of the watchdog's interval, and for longer than a drain may be late,
    is not killed."""
    write(SETTINGS, "[window]\nlength = 1s\n")
    write(DROP_IN, "[Service]\nWatchdogSec=24s\n")
    systemctl("daemon-reload")
    check(systemctl("restart", UNIT).code == 0, "restarted with short windows")
    pid, start = main_pid(), watchdog_us()
    wait_until(lambda: watchdog_us() > start, "a sign of the daemon")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(15)
    os.kill(pid, signal.SIGCONT)
    late = time.monotonic() * 1_000_000
    wait_until(lambda: watchdog_us() > late or main_pid() != pid, "a sign of the daemon that stood still")
    check(main_pid() == pid, "a daemon that stood still for 15 of 24 s goes on")
    os.unlink(DROP_IN)
    os.unlink(SETTINGS)
    systemctl("daemon-reload")
    check(systemctl("restart", UNIT).code == 0, "restarted with windows as they were")


def check_store():
    """A store in a directory that the unit protects: the daemon records all the same, and says what
    to do. This also starts the daemon again after check_bad_settings()."""
    write(SETTINGS, "[store]\npath = /srv/stackd/stackd.db\n")
    since = int(time.time())
    done = systemctl("restart", UNIT)
    check(done.code == 0, f"a store elsewhere: it starts: {done}")
    wait_until(lambda: "ReadWritePaths=" in log_text(since), "the log to say ReadWritePaths=")
    problems = call("io.stackd.Status")["problems"]
    check(any("ReadWritePaths=" in p for p in problems), f"and so does status: {problems}")
    os.unlink(SETTINGS)


def check_cron():
    """stackctl works in a cron job: without a terminal or a session, with few variables."""
    command = f"stackctl snapshot offcpu --window 30s -f --output {CAPTURE} 2>{CAPTURE}.err"
    write(f"{CRON_JOBS}/stackd", f"#!/bin/sh\n{command}\n")
    os.chmod(f"{CRON_JOBS}/stackd", 0o755)
    done = run(["run-parts", CRON_JOBS], start_new_session=True,
               env={"PATH": "/usr/bin:/bin", "HOME": "/root", "LOGNAME": "root", "SHELL": "/bin/sh"})
    check(done.code == 0, f"cron: {done}")
    shutil.rmtree(CRON_JOBS)
    with open(CAPTURE, encoding="utf-8") as file:
        stacks = parse_folded(file.read())
    check(stacks and any("__schedule" in stack for stack in stacks), f"cron: {len(stacks)} stacks")
    with open(f"{CAPTURE}.err", encoding="utf-8") as file:
        text = file.read()
    # The machine is slow: to keep within the budget, stackd may sample short waits.
    words = [line for line in text.splitlines() if "some figures are estimates" not in line]
    check(not words, f"cron: and no word besides: {text}")


def synced_s():
    """Returns the end of the newest window that is synced to disk, or 0."""
    return call("io.stackd.Status")["store"].get("synced", {"ns": 0})["ns"] / NS_PER_S


def check_kill():
    """After SIGKILL the daemon is started again, and what it recorded before can be queried."""
    pid = main_pid()
    start = time.time()
    program = Program("prog_waits", 1, 100).ready().go().done()
    program.end()
    end = time.time()
    wait_until(lambda: synced_s() >= end, "the store to sync it")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_anew(pid), "a new daemon")
    check(state_of("stackd.socket") == "active" and ctl("status").code == 0, "it answers")
    check_waits(program.pid, start, end, "killed: what was synced is there")
    reply = call("io.stackd.Snapshot", probe="offcpu", since_ns=int(start * NS_PER_S), top=1)
    gaps = [g["reason"] for g in reply["coverage"]["gaps"]]
    check(gaps == ["stackd was killed or crashed"], f"and the time between is a gap: {gaps}")
    systemctl("reset-failed", UNIT)


def check_monitoring():
    # Where the machine gets little CPU time, a window may be late for a moment.
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: ctl("status", "--check").code == 0, "a healthy service")
    done = ctl("status", "--check")
    check(done.code == 0 and done.out.startswith("OK"), f"status --check: {done} {done.out}")


def check_metrics():
    """The file for Prometheus does not outlive what it is about: a dead stackd is not healthy."""
    os.makedirs(os.path.dirname(METRICS), exist_ok=True)
    check(systemctl("start", "stackd-metrics.timer").code == 0, "the timer of the metrics runs")
    wait_until(lambda: os.path.exists(METRICS), "the file")
    with open(METRICS) as file:
        check("stackd_healthy" in file.read(), "which has the health")
    check(systemctl("stop", UNIT, "stackd.socket").code == 0, "stopped")
    check(not os.path.exists(METRICS), "and the file is gone")
    with open(METRICS, "w") as file:
        file.write("stackd_healthy 1\n")
    check(systemctl("start", "stackd-metrics.service").code != 0, "nobody answers")
    check(not os.path.exists(METRICS), "and the old file is gone")
    check(systemctl("start", UNIT).code == 0, "started again")


check_users()
check_monitoring()
check_metrics()
check_cron()
check_reload()
check_stop()
check_activation()
check_restart()
check_flush()
check_kill()
check_bad_settings()
check_store()
check_watchdog()
check_late()
finish()
