# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the answers of a real daemon to the JSON Schema that is installed: every method that reads, by
each way to ask Snapshot, has only members of the types that the schema says. SCHEMA names the file."""

import json
import os
import subprocess
import sys

import harness as h

try:
    import jsonschema
except ImportError:
    if sys.executable != "/usr/bin/python3":  # the one for which Debian has the package
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    h.skip("needs python3-jsonschema")

PROBES = ("offcpu", "oncpu", "iolat")
h.need_live()
with open(os.environ["SCHEMA"], encoding="ascii") as file:
    SCHEMA = json.load(file)
jsonschema.Draft202012Validator.check_schema(SCHEMA)


def strict(schema):
    """Returns the schema where members that it does not have are errors: this daemon is of its version."""
    definitions = {name: {**one, "additionalProperties": False}
                   for name, one in schema["$defs"].items()}
    return {**schema, "$defs": definitions}


def check(name, document, text):
    validator = jsonschema.Draft202012Validator({**strict(SCHEMA), "$ref": f"#/$defs/{name}"})
    found = [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(document)]
    h.check(found == [], f"{text} is a {name}: {found[:3]}")


daemon = h.Daemon()
for probe in PROBES:
    daemon.cut(probe)
for verb in ("status", "probes", "sessions", "windows"):
    check(verb.capitalize(), daemon.ctl_json(verb), verb)
for probe in PROBES:
    for words in (("-n", "30"), ("--by", "process", "-n", "30")):
        check("Snapshot", daemon.ctl_json("snapshot", probe, *words), f"{probe} {' '.join(words)}")
check("Snapshot", daemon.ctl_json("stuck"), "stuck")
check("OverviewDocument", daemon.ctl_json("snapshot", "-n", "5"), "snapshot without a probe")
slices = daemon.ctl_json("snapshot", "offcpu", "--each", "window", "--window", "10s", "-n", "5")
h.check(len(slices) > 0, "there are slices")
for one in slices:
    check("Snapshot", one, "one of --each")
ranges = daemon.ctl_json("snapshot", "offcpu", "--range", "-20s..", "--range", "-30s..", "-n", "5")
h.check(len(ranges) == 2, f"there are two ranges: {len(ranges)}")
for one in ranges:
    check("Snapshot", one, "one of --range")
first, second, third = (f"@{daemon.cut() / h.NS_PER_S:.9f}" for _ in range(3))
change = daemon.ctl_json("diff", "offcpu", "--since", second, "--until", third, "--base", f"{first}..{second}", "-n", "20")
h.check(len(change["rows"]) > 0, "there are changes")
check("Diff", change, "diff")
answer = daemon.ctl_json("snapshot", "offcpu")
h.check(len(answer["rows"]) > 0, "there are rows")
# A test that cannot fail is none: a member of another type, and one that is missing.
for broken in ({**answer, "rows": 3}, {k: v for k, v in answer.items() if k != "coverage"}):
    validator = jsonschema.Draft202012Validator({**SCHEMA, "$ref": "#/$defs/Snapshot"})
    h.check(not validator.is_valid(broken), "what is no answer is refused")
example = subprocess.run([sys.executable, f"{os.path.dirname(__file__)}/../../examples/longest_waits.py", daemon.socket],
                         capture_output=True, text=True)
named = [line for line in example.stdout.splitlines() if " ms  " in line and not line.endswith(" -")]
h.check(example.returncode == 0 and named,
        f"the client in examples/ prints rows: {example.stdout[:300]}{example.stderr[-300:]}")
daemon.stop()
h.finish()
