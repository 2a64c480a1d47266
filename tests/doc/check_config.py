# SPDX-License-Identifier: GPL-2.0-or-later
"""conf/stackd.conf, man/stackd.conf.5 and --dump-config agree with the key table: the same keys in
the same order, the same defaults, ranges and help. stackd(8) names the keys of a reload.

Usage: check_config.py CONFIG_KEYS SOURCE_ROOT
"""

import re
import subprocess
import sys

failures = []


def fail(text):
    print(f"FAILED: {text}")
    failures.append(text)


def squeeze(text):
    return " ".join(text.split())


def read_table(exe):
    """{(section, key): (default, range, help)} in the table's order."""
    out = subprocess.run([exe], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    rows = [line.split("\t") for line in out.splitlines()]
    return {(r[0], r[1]): tuple(r[2:]) for r in rows}


def read_ini(text):
    """{(section, key): (value, comment lines right above)}; a commented "#key = value" counts."""
    entries, section, above = {}, None, []
    text = re.sub(r"\\\n#?", " ", text)
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            section, above = match[1], []
        elif match := re.fullmatch(r"#?([a-z_]+) =(.*)", line):
            entries[section, match[1]] = (squeeze(match[2]), squeeze(" ".join(above)))
            above = []
        elif line.startswith("# "):
            above.append(line[2:])
        else:
            above = []
    return entries


def read_man(text):
    """{(section, key): (default, text)} of ".SS [section]" and ".BR key" with " = default"."""
    entries, section, key = {}, None, None
    for line in text.splitlines():
        line = line.replace("\\-", "-")
        if match := re.fullmatch(r"\.SS \[(.+)\]", line):
            section, key = match[1], None
        elif line.startswith(".SH"):
            section = key = None
        elif line == ".PP":
            key = None
        elif section and (match := re.fullmatch(r'\.BR? ([a-z_]+)(?: " = (.*)")?', line)):
            key = (section, match[1])
            entries[key] = [match[2], ""]
        elif key and not line.startswith("."):
            entries[key][1] += line + "\n"
    for entry in entries.values():
        # A default too long for its heading is the end of the text.
        body, _, default = entry[1].partition("Default:")
        entry[0] = entry[0] if entry[0] is not None else squeeze(default)
        entry[1] = squeeze(body)
    return entries


def compare(name, entries, table, has_text=True):
    if list(entries) != list(table):
        fail(f"{name}: keys {list(entries)} instead of {list(table)}")
    for key, (default, allowed, help_text) in table.items():
        value, text = entries.get(key, ("", ""))
        if value != default:
            fail(f"{name}: {key}: default {value!r} instead of {default!r}")
        if has_text and allowed.lower() not in text.lower():
            fail(f"{name}: {key}: does not say {allowed!r}")
        if has_text and help_text not in text:
            fail(f"{name}: {key}: does not say {help_text!r}")


def check_live(root):
    """stackd(8) names the keys that SIGHUP makes hold, and README how long the queue to the disk is."""
    with open(f"{root}/daemon/config/reload.c", encoding="utf-8") as file:
        table = re.search(r"live_keys\[\]\[2\] = \{(.*?)\n\};", file.read(), re.DOTALL)[1]
    live = set(re.findall(r'\{ "\w+", "(\w+)" \}', table))
    with open(f"{root}/man/stackd.8", encoding="utf-8") as file:
        text = re.search(r"\.B SIGHUP\n(.*?)hold from then on", file.read(), re.DOTALL)[1]
    named = set(re.findall(r"^\.IR? (\w+)", text, re.MULTILINE))
    if len(live) < 7 or named != live:
        fail(f"stackd.8: SIGHUP takes {sorted(live)}, not {sorted(named)}")
    with open(f"{root}/daemon/store/store.h", encoding="utf-8") as file:
        queue = re.search(r"STORE_QUEUE_MAX = (\d+)", file.read())[1]
    with open(f"{root}/README.md", encoding="utf-8") as file:
        if f"{queue} windows wait for a slow disk" not in squeeze(file.read()):
            fail(f"README.md: {queue} windows wait for a slow disk")


def main():
    exe, root = sys.argv[1:]
    table = read_table(exe)
    if not table:
        fail("the key table is empty")
    dump = subprocess.run([exe, "dump"], stdout=subprocess.PIPE, check=True, encoding="utf-8")
    compare("--dump-config", read_ini(dump.stdout), table, has_text=False)
    with open(f"{root}/conf/stackd.conf", encoding="utf-8") as conf:
        text = conf.read()
    compare("conf/stackd.conf", read_ini(text), table)
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#") and not line.startswith("["):
            fail(f"conf/stackd.conf:{number}: sets a value: {line!r}")
    with open(f"{root}/man/stackd.conf.5", encoding="utf-8") as man:
        compare("man/stackd.conf.5", read_man(man.read()), table)
    check_live(root)
    print(f"{len(table)} keys compared")
    sys.exit(1 if failures else 0)


main()
