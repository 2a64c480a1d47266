#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""On this kernel the probe offcpu uses the best hook that the kernel has, loads every BPF program, and
names the functions of known waits. So it does with the last hook, which every kernel has. If the
settings ask for a hook that the kernel does not have, the probe is off, and says why."""

from harness import *

PLACES = ("wait_in_nanosleep", "wait_in_futex", "wait_in_pipe_read", "wait_in_vfork")
MS = 200


def best_hook():
    with open("/sys/kernel/btf/vmlinux", "rb") as types:
        if b"\0btf_trace_sched_exit_tp\0" in types.read():
            return "tp_btf/sched_exit_tp"
    with open("/proc/kallsyms", encoding="ascii") as table:
        names = {line.split()[2] for line in table}
    if any(n == "finish_task_switch" or n.startswith("finish_task_switch.") for n in names):
        return "kprobe/finish_task_switch"
    return "tp_btf/sched_switch"


def probe_of(daemon):
    return {probe["name"]: probe for probe in daemon.status()["probes"]}["offcpu"]


def check_hook(expected, *overrides):
    daemon = Daemon(*overrides)
    probe = probe_of(daemon)
    check(probe.get("hook") == expected, f"the hook is {expected}: {probe}\n{daemon.log()}")
    # With switch_out, stacks are taken before the daemon knows the program: up to three, as an emulated
    # daemon may need half a second.
    count, unknown = (15, 3) if expected == "tp_btf/sched_switch" else (5, 0)
    program = Program("prog_waits", count, MS).ready().go().done()
    program.end()
    daemon.cut()
    folded = daemon.folded("--window", "60s", "-p", program.pid)
    for name in PLACES:
        value = folded_sum(folded, name, "run_waits", "main")
        # Compared with what the program measured: an emulated machine wakes it late.
        seen = program.value(name)
        truth = (seen["ns"] - seen["cpu_ns"]) // 1000
        slack = count * 20_000 + unknown * MS * 1000
        check_near(value, truth, 0.05, f"{expected}: {name}, us", slack)
    status = daemon.status()
    check_nothing_lost(status, expected)
    check_verified(daemon, expected)
    print(daemon.ctl("status").out)
    print("programs:", json.dumps(probe_of(daemon).get("programs")), flush=True)
    for stack, value in sorted(folded.items()):
        print(f"{stack} {value}")
    daemon.stop()


def check_missing_hook():
    daemon = Daemon("probe.offcpu.hook=sched_exit")
    text = daemon.ctl("status").out
    check("no sched_exit_tp" in text, f"a hook that is not there is named as such:\n{text}")
    daemon.stop()


need_live()
with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as level:
    print(f"perf_event_paranoid {level.read().strip()}")
best = best_hook()
check_hook(best)
check_hook("tp_btf/sched_switch", "probe.offcpu.hook=switch_out")
if best != "tp_btf/sched_exit_tp":
    check_missing_hook()
finish()
