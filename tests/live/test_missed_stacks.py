# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows stacks that do not fit into the ring because the daemon is kept from reading it: each of
the older tools says so in the stack's place, in the original's words, and keeps the time.
"""

import os
import re
import signal
import subprocess
import time

import harness as h
from compat import Output

h.need_live()
if "STACKD_UNIT" in os.environ:
    h.skip("an emulated machine takes half of the samples asked for, and minutes to read what fills a ring")

USER, KERNEL = "[Missed User Stack]", "[Missed Kernel Stack]"
US = 1_000_000
# There are more stacks than the ring of a session takes, but no more waits than its window has rows
# for. Each thread that computes does so for longer than the time between two samples.
WAITING, COMPUTING, COMPUTE_US, RATE = 4096, 16384, 150, 9999
PLACES = ("wait_in_nanosleep", "wait_in_futex", "wait_in_pipe_read", "wait_in_vfork", "spin")

# A stack that one session has recorded is known to all sessions, so no other sessions run.
daemon = h.Daemon(
    "window.length=1min",
    "probe.offcpu.enabled=no",
    "probe.oncpu.enabled=no",
    "probe.iolat.enabled=no",
    "probe.offcpu.min_wait=1us",
    "probe.offwake.min_wait=1us",
)
fillers = [
    daemon.settled(h.Program("prog_manystacks", stacks, 1, 20, compute_us).ready())
    for stacks, compute_us in ((WAITING, 0), (COMPUTING, COMPUTE_US))
]
waits = h.Program("prog_waits", 5, 50).ready()
spinners = h.Program("prog_spinners", 2).ready()
PIDS = {waits: f"{fillers[0].pid},{waits.pid}", spinners: f"{fillers[1].pid},{spinners.pid}"}
TOOLS = {
    "offcputime": (f"Tracing off-CPU time (us) of PID {PIDS[waits]} by user + kernel stack", waits, []),
    "topwaits": (
        f"Tracing waits (us: total, longest; end of the longest) of PID {PIDS[waits]} by process and stack",
        waits,
        [],
    ),
    "offwaketime": ("Tracing blocked time (us) by user + kernel off-CPU and waker stack", waits, []),
    "profile": (
        f"Sampling at {RATE} Hertz of PID {PIDS[spinners]} by user + kernel stack",
        spinners,
        ["-F", str(RATE)],
    ),
}


def record(tool, *options):
    _, program, words = TOOLS[tool]
    argv = [h.STACKCTL, "-S", daemon.socket, tool, *options, *words, "-p", PIDS[program]]
    return h.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def recorded():
    listed = daemon.call("io.stackd.Sessions")["sessions"]
    return [s for s in listed if not s["always"]]


texts = {tool: record(tool) for tool in TOOLS}
lines = {tool: record(tool, "-f") for tool in TOOLS if tool != "topwaits"}
tracers = [*texts.values(), *lines.values()]
h.wait_until(lambda: len(recorded()) == len(tracers), "all to record")
try:
    os.kill(daemon.process.pid, signal.SIGSTOP)
    for filler in fillers:
        filler.go().done()
    # From here on the ring has no room for new stacks. Nor may it have room for the end of a thread, without which
    # nobody knows whose its waits were: these programs end when their waits and samples are known.
    waits.go().done()
    spinners.go().read_until("spinning")
    time.sleep(1)
    spinners.go().done()
    for tracer in tracers:
        tracer.send_signal(signal.SIGINT)
finally:
    os.kill(daemon.process.pid, signal.SIGCONT)
WAITED_US = sum(waits.value(place)["ns"] for place in PLACES if "wait" in place) // 1000
SAMPLES = sum(spun["cpu_ns"] for spun in spinners.values("spun")) * RATE // h.NS_PER_S


def output(tool, process):
    out, err = process.communicate(timeout=h.HANG_SECONDS)
    return Output(tool, h.Result([tool], process.returncode, out.decode(), err.decode()))


def check_missed(o, where, text):
    """Checks that an entry names the missed stacks. where(entry) gives the lines to look
    through."""
    for words in (USER, KERNEL):
        h.check(any(words in where(e) for e in o.entries), f"{o.label}: {words} {text}")


def check_kept(o, ours):
    """Checks that time without a stack is kept, and that none of these waits or samples has a
    stack."""
    missed = sum(e.value for e in ours if e.has(USER))
    if o.label.startswith("profile"):
        h.check_near(missed, SAMPLES, 0.1, f"{o.label}: samples without a stack")
    else:
        h.check(missed >= WAITED_US, f"{o.label}: {missed} us without a stack, {WAITED_US} waited")
    found = [e.frames for e in ours if set(PLACES).intersection(e.frames)]
    h.check(not found, f"{o.label}: no such entry has a stack: {found[:2]}")
    warning = r"WARNING: [0-9]+ stack traces could not be displayed"
    h.check(re.search(warning, o.result.err), f"{o.label} warns: {o.result.err}")


for tool, process in texts.items():
    header = f"{TOOLS[tool][0]}... Hit Ctrl-C to end."
    o = output(tool, process)
    o = o.pairs(header) if tool == "offwaketime" else o.blocks(header)
    check_missed(o, lambda e: e.frames, "in stacks of waits or samples")
    if tool == "offwaketime":
        check_missed(o, lambda e: e.above, "of wakers")
    check_kept(o, [e for e in o.entries if e.pid == TOOLS[tool][1].pid])
for tool, process in lines.items():
    o = output(f"{tool} -f", process)
    for line in o.lines:
        if "Missed" in line:
            h.check(re.fullmatch(r"[^;]+(;[^;]+)+ \d+", line), line)
    o = o.folded()
    check_missed(o, lambda e: e.line, "in a line")
    check_kept(o, [e for e in o.entries if e.comm in ("prog_waits", "prog_spinners")])

for program in (waits, spinners):
    program.end()

# In stackd's own form a flag of the stack gives the reason, and lost stacks are counted.
for session in recorded():
    label = f"session {session['id']}, {session['probe']}"
    reply = daemon.call("io.stackd.Snapshot", session=session["id"], idle=True)
    lost = [r for r in reply["rows"] if "lost" in r.get("user", {}).get("flags", ())]
    h.check(lost, f"{label}: {len(lost)} rows with a stack that is flagged as lost")
    reasons = {entry["reason"] for entry in reply["lost"]}
    h.check(
        "stacks whose frames never arrived, or found no room" in reasons
        and "stacks: the ring was full" in reasons,
        f"{label}: lost {reasons}",
    )
h.finish()
