# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that stackd.conf, stackd.conf(5) and --dump-config, which are made from the key table, agree
with it: the same keys in the same order, with the same defaults, ranges and help. With each setting
uncommented, stackd.conf must load and give the defaults.

Usage: check_config.py CONFIG_KEYS STACKD_CONF STACKD_CONF_5 SOURCE_ROOT
"""

import re
import subprocess
import sys
import tempfile

failures = []


def fail(text):
    print(f"FAILED: {text}")
    failures.append(text)


def squeeze(text):
    return " ".join(text.split())


def read_table(exe):
    """Returns {(section, key): (default, range, help, "reload" or "restart")}, in table order."""
    out = subprocess.run([exe], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    rows = [line.split("\t") for line in out.splitlines()]
    return {(r[0], r[1]): tuple(r[2:]) for r in rows}


def read_ini(text):
    """Returns {(section, key): (value, comment right above)}, also for a commented "#key = value"."""
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
    """Returns {(section, key): (default, text)} from ".SS [section]" and ".BR key = default"."""
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
        # A default that is too long for the heading comes at the end of the text.
        body, _, default = entry[1].partition("Default:")
        entry[0] = entry[0] if entry[0] is not None else squeeze(default)
        entry[1] = squeeze(body)
    return entries


def compare(name, entries, table, has_text=True):
    if list(entries) != list(table):
        fail(f"{name}: keys {list(entries)} instead of {list(table)}")
    for key, (default, allowed, help_text, when) in table.items():
        value, text = entries.get(key, ("", ""))
        if value != default:
            fail(f"{name}: {key}: default {value!r} instead of {default!r}")
        if has_text and allowed.lower() not in text.lower():
            fail(f"{name}: {key}: does not say {allowed!r}")
        if has_text and help_text not in text:
            fail(f"{name}: {key}: does not say {help_text!r}")
        if has_text and ("applied by a reload" in text) != (when == "reload"):
            fail(f"{name}: {key}: says wrongly when a change is applied, which takes a {when}")


def check_conf(exe, text):
    """Checks that stackd.conf sets nothing and, with every setting uncommented, gives the defaults."""
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#") and not line.startswith("["):
            fail(f"stackd.conf:{number}: sets a value: {line!r}")
    with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
        file.write(re.sub(r"^#(?! )|^#(?=    )", "", text, flags=re.MULTILINE))
        file.flush()
        loaded = dump(exe, file.name)
    if f"# {file.name}:" not in loaded or "# default" in loaded:
        fail("stackd.conf: a setting of it is not read when it is uncommented")
    if settings(loaded) != settings(dump(exe)):
        fail("stackd.conf: its settings, uncommented, are not the defaults")


def dump(exe, *file):
    return subprocess.run([exe, "dump", *file], stdout=subprocess.PIPE, check=True,
                          encoding="utf-8").stdout


def settings(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def check_queue(root):
    """Checks that doc/operating.md says how many windows wait for a slow disk."""
    with open(f"{root}/daemon/store/store.h", encoding="utf-8") as file:
        queue = re.search(r"STORE_QUEUE_MAX = (\d+)", file.read())[1]
    with open(f"{root}/doc/operating.md", encoding="utf-8") as file:
        if f"{queue} windows wait for a slow disk" not in squeeze(file.read()):
            fail(f"doc/operating.md: {queue} windows wait for a slow disk")


def main():
    exe, conf, man, root = sys.argv[1:]
    table = read_table(exe)
    if not table:
        fail("the key table is empty")
    if sum(row[3] == "reload" for row in table.values()) < 7:
        fail("fewer than 7 settings are applied by a reload")
    compare("--dump-config", read_ini(dump(exe)), table, has_text=False)
    with open(conf, encoding="utf-8") as file:
        text = file.read()
    compare("stackd.conf", read_ini(text), table)
    check_conf(exe, text)
    with open(man, encoding="utf-8") as file:
        compare("stackd.conf.5", read_man(file.read()), table)
    check_queue(root)
    print(f"{len(table)} keys compared")
    sys.exit(1 if failures else 0)


main()
