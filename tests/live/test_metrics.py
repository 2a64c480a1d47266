# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that counters for monitoring systems grow, to the nanosecond, by what snapshots of the same
windows have: for the host, for I/O and for a unit whose two threads wait for mutexes for ever; that
they never fall, and that a call ends no window. stackctl metrics prints what Prometheus can read.
"""

import atexit
import contextlib
import decimal
import os
import re
import shutil
import subprocess

import harness as h

h.need_live()
root = h.cgroup_root()
if not root:
    h.skip("this host has no cgroup v2")
# A path in which the text format has to escape two characters.
UNIT = f'stackd-"\\metrics-{os.getpid()}.service'
group = os.path.join(root, UNIT)
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
NS = decimal.Decimal(h.NS_PER_S)
LENGTH_NS = h.NS_PER_S // 2


def unescaped(value):
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)


def parse(text):
    """Returns {(name, labels): value} of a text in the format 0.0.4. Fails if a line is not in that
    format, a series comes twice, or a name has no help or type."""
    values, types, helps = {}, {}, set()
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("# HELP "):
            helps.add(line.split()[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            h.check(name not in types, f"{name} has one type")
            types[name] = kind
        else:
            match = LINE.fullmatch(line)
            if not match:
                raise AssertionError(f"not in the format: {line!r}")
            labels = [(k, unescaped(v)) for k, v in LABEL.findall(match[2] or "")]
            key = match[1], tuple(sorted(labels))
            h.check(key not in values, f"{key} comes once")
            values[key] = decimal.Decimal(match[3])
    for name in types:
        h.check(name in helps, f"{name} has a help")
    for name, _ in values:
        base = re.sub("_(bucket|sum|count)$", "", name)
        h.check(name in types or types.get(base) == "histogram", f"{name} has a type")
    return values


def check_by_others(text):
    """Lets Prometheus' own tools read the text, where they are installed."""
    with contextlib.suppress(ImportError):
        from prometheus_client import parser

        families = list(parser.text_string_to_metric_families(text))
        h.check(len(families) > 15, f"Prometheus' library reads {len(families)} metrics")
        units = {s.labels.get("unit") for family in families for s in family.samples}
        h.check(f"/{UNIT}" in units, "Prometheus' library reads the name of the unit")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True, check=False)
        h.check(done.returncode == 0 and not done.stdout + done.stderr,
                f"promtool: {done.returncode} {done.stdout}{done.stderr}")


def probe_of(reply, probe):
    return next((p for p in reply["probes"] if p["probe"] == probe and p["windows"]), None)


def counters(reply):
    """Returns {name: value} of all counters in a reply that windows make grow."""
    out = {("preempted",): reply["preempted_ns"]}
    for unit in reply["units"]:
        for total in unit["blocked"]:
            out["blocked", unit["unit"], total["class"]] = total["total_ns"]
        out["runnable", unit["unit"]] = unit["runnable_ns"]
        out["throttled", unit["unit"]] = unit["throttled_ns"]
    for io in reply["ios"]:
        for member in ("count", "total_ns", "bytes", "errors"):
            out[member, io["layer"], io["op"]] = io[member]
    for probe in reply["probes"]:
        out["windows", probe["probe"]] = probe["windows"]
        out["covered", probe["probe"]] = probe["covered_ns"]
    return out


def grown(*name):
    """Returns by how much the counters have grown whose names begin like this."""
    return sum(v - first.get(k, 0) for k, v in last.items() if k[:len(name)] == name)


def metrics_after(n, reply=None):
    """Returns metrics in which each probe has n more windows than in `reply`."""
    def find():
        now = daemon.call("io.stackd.Metrics")
        for probe in ("offcpu", "iolat"):
            old, new = reply and probe_of(reply, probe), probe_of(now, probe)
            if not new or new["windows"] < (old["windows"] if old else 0) + n:
                return None
        return now

    return h.wait_until(find, f"{n} more windows in the metrics")


def windows_between(probe, start, end):
    """Returns the windows that one reply of Metrics lacks and a later one has."""
    first_seq, last_seq = probe_of(start, probe)["seq"], probe_of(end, probe)["seq"]
    return [w for w in daemon.call("io.stackd.Windows", probe=probe)["windows"]
            if first_seq < w["seq"] <= last_seq]


def snapshot(probe, windows, **parameters):
    """Returns a snapshot of these windows, each of which it has as a whole."""
    edges = [(w["start"]["ns"] + w["end"]["ns"]) // 2 for w in (windows[0], windows[-1])]
    reply = daemon.call("io.stackd.Snapshot", probe=probe, since_ns=edges[0], until_ns=edges[1],
                        idle=True, **parameters)
    used = reply["coverage"]["used"]
    h.check((used["start"]["ns"], used["end"]["ns"]) ==
            (windows[0]["start"]["ns"], windows[-1]["end"]["ns"]), f"{probe}: the same windows")
    return reply


os.mkdir(group)
atexit.register(os.rmdir, group)
locks = h.Program("prog_locks", "ring", 2).ready()
with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
    f.write(str(locks.pid))
daemon = h.Daemon(f"window.length={LENGTH_NS // 1000000}ms")

start = metrics_after(2)
with open(f"{daemon.dir}/file", "wb") as f:
    for _ in range(200):
        f.write(b"x" * 4096)
        f.flush()
        os.fsync(f.fileno())
middle = metrics_after(4, start)
end = metrics_after(4, middle)
first, last = counters(start), counters(end)

for a, b in ((start, middle), (middle, end)):
    a, b = counters(a), counters(b)
    fell = [(k, v, b.get(k)) for k, v in a.items() if b.get(k, -1) < v]
    h.check(not fell, f"no counter falls: {fell}")
h.check(end["not_added"] == 0 and end["given_up"] == start["given_up"], "all units are there")

windows = windows_between("offcpu", start, end)
h.check(len(windows) == grown("windows", "offcpu"), f"{len(windows)} windows")
covered = sum(w["length_ns"] for w in windows)
h.check(grown("covered", "offcpu") == covered, f"covered: {covered}")
totals = snapshot("offcpu", windows, top=1)["totals"]
for word in ("blocked", "runnable", "throttled"):
    h.check(grown(word) == totals[f"{word}_ns"],
            f"{word}, all units: {grown(word)}, {totals[f'{word}_ns']}")
totals = snapshot("offcpu", windows, top=1, filter={"cgroup": f"/{UNIT}"})["totals"]
for word in ("blocked", "runnable", "throttled"):
    h.check(grown(word, f"/{UNIT}") == totals[f"{word}_ns"],
            f"{word}, the unit: {grown(word, f'/{UNIT}')}, {totals[f'{word}_ns']}")
locked = grown("blocked", f"/{UNIT}", "lock")
h.check_near(locked, 2 * covered, 0.01, "two threads wait for mutexes")

windows = windows_between("iolat", start, end)
rows = snapshot("iolat", windows)["rows"]
kinds = {(r["io"]["layer"], r["io"]["op"]) for r in rows}
# Only kernels whose functions can be traced show system calls.
if any(layer == "syscall" for layer, _ in kinds):
    synced = grown("count", "syscall", "sync")
    h.check(synced >= 200, f"{synced} calls of fsync")
for kind in kinds:
    ours = [r for r in rows if (r["io"]["layer"], r["io"]["op"]) == kind]
    found = h.row_sum(ours, "count"), h.row_sum(ours), sum(r["io"]["bytes"] for r in ours)
    counted = tuple(grown(word, *kind) for word in ("count", "total_ns", "bytes"))
    h.check(counted == found, f"{kind}: operations, ns and bytes {counted}, {found}")

# A call ends no window: while there are many calls, windows have their length.
calls, newest = 0, end
while probe_of(newest, "offcpu")["windows"] < probe_of(end, "offcpu")["windows"] + 6:
    newest, calls = daemon.call("io.stackd.Metrics"), calls + 1
lengths = [w["length_ns"] for w in windows_between("offcpu", end, newest)]
h.check(sum(lengths) >= len(lengths) * LENGTH_NS // 2, f"{calls} calls, windows of {lengths} ns")

# The text is of a moment between two replies.
before = counters(daemon.call("io.stackd.Metrics"))
result = daemon.ctl("metrics")
after = counters(daemon.call("io.stackd.Metrics"))
h.check(result.code == 0, f"exit code {result.code}: {result.err}")
values = parse(result.out)
check_by_others(result.out)
h.check(len(values) < 800, f"{len(values)} series, {len(result.out)} bytes")
for key, value in before.items():
    if key[0] in ("blocked", "runnable", "throttled"):
        name = f"stackd_unit_{key[0]}_seconds_total"
        labels = {"unit": key[1] or "other"} | ({"reason": key[2]} if key[0] == "blocked" else {})
    elif key[0] in ("count", "total_ns"):
        name = "stackd_io_latency_seconds_" + ("sum" if key[0] == "total_ns" else "count")
        labels = {"layer": key[1], "op": key[2]}
    elif key[0] == "windows":
        name, labels = "stackd_windows_total", {"probe": key[1]}
    else:
        continue
    printed = values.get((name, tuple(sorted(labels.items()))), -1)
    printed *= 1 if key[0] in ("count", "windows") else NS
    h.check(value <= printed <= after[key], f"{name} {labels}: {printed}")

path = f"{daemon.dir}/stackd.prom"
h.check(daemon.ctl("metrics", "--output", path).code == 0, "metrics --output")
with open(path, encoding="utf-8") as f:
    parse(f.read())
h.check(os.stat(path).st_mode & 0o444 == 0o444 & ~os.umask(0o022), "others may read the file")

# After a restart all counters begin again, and the time of the start says so.
daemon.stop()
daemon.start()
again = metrics_after(1)
h.check(again["started"]["ns"] > end["started"]["ns"], "the start of the daemon is later")
h.check(probe_of(again, "offcpu")["windows"] < probe_of(newest, "offcpu")["windows"],
        "the counters begin again")
h.finish()
