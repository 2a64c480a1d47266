# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the gate's live tests neither estimate nor wait for a time, see doc/testing.md: what runs in
them names none of REFUSED. Of a test that calls run_parts() it reads what the parts in the gate reach. A test
that is called with "events" judges no estimates, and may have them.

Usage: check_gate.py BUILD
"""

import ast
import json
import os
import sys

REFUSED = {
    "sleep": "wait_until() waits for an effect, subject_sleep() is for a time that the test is about",
}

ESTIMATES = {
    "CpuUse": "what a process uses of a CPU depends on the host",
    "check_near": "a share that the host can change is an estimate",
    "cpu_seconds": "what a process uses of a CPU depends on the host",
    "estimate": "what the host can change",
    "estimate_least": "what the host can change",
    "estimate_most": "what the host can change",
}

failures = []


def gate_tests(build):
    """Yields (path, arguments) of the gate's live tests that are scripts."""
    with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as f:
        for test in json.load(f):
            suites = {suite.partition(":")[2] for suite in test["suite"]}
            scripts = [i for i, word in enumerate(test["cmd"]) if word.endswith(".py")]
            if {"live", "gate"} <= suites and scripts:
                yield test["cmd"][scripts[0]], test["cmd"][scripts[0] + 1:]


def parse(path):
    with open(path, encoding="utf-8") as f:
        return ast.parse(f.read(), path)


def called(node):
    """Returns the name of the function that a call calls, else None."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", None))


def names_in(node):
    """Yields (name, line) of all that is named in the node."""
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield getattr(one, "attr", getattr(one, "id", None)), one.lineno


def load(path, definitions):
    """Adds the functions and classes of the file, and of what it imports from its folder but for the harness,
    to {name: (file, node)}. Returns its other statements."""
    others = []
    for node in parse(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            definitions[node.name] = os.path.basename(path), node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            for module in modules:
                other = os.path.join(os.path.dirname(path), f"{module}.py")
                if module != "harness" and os.path.exists(other):
                    load(other, definitions)
        else:
            others.append(node)
    return others


def check_test(path, parts):
    definitions, refused = {}, {**REFUSED, **({} if "events" in parts else ESTIMATES)}
    statements = load(path, definitions)
    chooses = any(called(node) == "run_parts" for one in statements for node in ast.walk(one))
    if chooses:
        statements = [one for one in statements if called(getattr(one, "value", None)) != "run_parts"]
    reached = [(os.path.basename(path), one) for one in statements]
    names = set(parts if chooses and parts else definitions)
    reached += [definitions.pop(name) for name in sorted(names & set(definitions))]
    while reached:
        name, node = reached.pop()
        for used, line in names_in(node):
            if used in refused:
                failures.append(f"{name}:{line}: {used} in a test of the gate: {refused[used]}")
            if used in definitions:
                reached.append(definitions.pop(used))


def main():
    tests = list(gate_tests(sys.argv[1]))
    for path, parts in tests:
        check_test(path, parts)
    for text in sorted(set(failures)):
        print(f"FAILED: {text}")
    print(f"{len(tests)} tests read")
    sys.exit(1 if failures or len(tests) < 10 else 0)


main()
