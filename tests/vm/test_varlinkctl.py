#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""varlinkctl of Debian 13, systemd's own Varlink client, can call every method of the control socket,
and systemd of Debian 13 loads the units without a warning. Both run in a directory with a Debian 13,
on the kernel of this host.

Usage: test_varlinkctl.py SOURCE_ROOT UNIT_DIR
"""

import hashlib

import machine
from harness import *

SUITE, PACKAGES = "trixie", ["procps", "systemd"]

# $1: the root; $2: mounted at its /mnt; $3: mounted at its /usr/bin/stackd; then the command.
ENTER = """
mount --bind "$2" "$1/mnt" && mount --bind "$3" "$1/usr/bin/stackd" || exit 125
root=$1; shift 3
exec chroot "$root" "$@"
"""


def debian():
    """Returns the root directory of a Debian 13. To build it takes a minute."""
    home = os.path.join(machine.cache_dir(), "rootfs")
    name = hashlib.sha256("\n".join([SUITE, *PACKAGES]).encode()).hexdigest()[:16]
    target = os.path.join(home, f"{SUITE}-{name}")
    with machine.Locked(home):
        if not os.path.isdir(target):
            with tempfile.TemporaryDirectory(dir=home) as scratch:
                tree = os.path.join(scratch, "tree")
                machine.bootstrap(SUITE, PACKAGES, tree)
                # The daemon, which the units name, is mounted over this file.
                machine.put_text("", tree, "usr/bin/stackd", mode=0o755)
                machine.put_text("u stackd\n", tree, "usr/lib/sysusers.d/stackd.conf")
                machine.command(["systemd-sysusers", f"--root={tree}", "stackd.conf"])
                os.rename(tree, target)
    return target


def enter(*argv):
    done = run(["unshare", "-m", "sh", "-c", ENTER, "sh", root, shared, STACKD, *argv])
    done.argv = list(argv)
    return done


def varlinkctl(verb, *args):
    return enter("varlinkctl", verb, *args)


def objects(text):
    """Returns the JSON objects of a text, which follow one another."""
    found, decoder = [], json.JSONDecoder()
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


def check_description():
    done = varlinkctl("info", ADDRESS)
    check(done.code == 0 and "io.stackd" in done.out, f"info: {done}")
    done = varlinkctl("list-methods", ADDRESS)
    check(done.code == 0 and "io.stackd.Snapshot" in done.out, f"list-methods: {done}")
    for name in ("io.stackd", "org.varlink.service"):
        done = varlinkctl("introspect", ADDRESS, name)
        check(done.code == 0 and f"interface {name}" in done.out, f"introspect {name}: {done}")
    done = varlinkctl("validate-idl", "/mnt/io.stackd.varlink")
    check(done.code == 0, f"validate-idl: {done}")


def check_calls():
    for method in ("Status", "Probes", "Sessions", "Windows"):
        done = varlinkctl("call", "--more", "--json=short", ADDRESS, f"io.stackd.{method}", "{}")
        check(done.code == 0 and objects(done.out), f"call {method}: {done}")
    question = json.dumps({"probe": "offcpu", "window_ns": 5 * NS_PER_S, "top": 3})
    done = varlinkctl("call", "--json=short", ADDRESS, "io.stackd.Snapshot", question)
    replies = objects(done.out)
    check(done.code == 0 and len(replies) == 1, f"call Snapshot: {len(replies)} reply, {done}")
    check(replies and replies[0]["rows"], "which has rows")
    question = json.dumps({"probe": "offcpu", "window_ns": 5 * NS_PER_S, "idle": True})
    done = varlinkctl("call", "--more", "--json=short", ADDRESS, "io.stackd.Snapshot", question)
    replies = objects(done.out)
    check(done.code == 0 and replies, f"call --more Snapshot: {len(replies)} replies, {done}")
    done = varlinkctl("call", ADDRESS, "io.stackd.Snapshot", '{"probe": "none"}')
    check(done.code != 0 and "io.stackd.UnknownProbe" in done.err, f"an error is named: {done}")


def check_units():
    units = ["/mnt/stackd.service", "/mnt/stackd.socket"]
    done = enter("systemd-analyze", "--man=no", "verify", *units)
    ours = [line for line in done.err.splitlines() if "stackd" in line]
    check(done.code == 0 and not ours, f"the units load without a warning: {done}")


need_live()
if machine.missing():
    skip(f"needs the packages {' '.join(machine.missing())}")
source, units = sys.argv[1:]
try:
    root = debian()
except machine.NotRun as e:
    skip(f"not run: {e}")
daemon = Daemon("window.length=1s")
shared = daemon.dir
os.chmod(shared, 0o755)
shutil.copy(os.path.join(source, "proto/io.stackd.varlink"), shared)
shutil.copy(os.path.join(source, "systemd/stackd.socket"), shared)
shutil.copy(os.path.join(units, "stackd.service"), shared)
ADDRESS = "unix:/mnt/stackd.sock"
print(enter("systemctl", "--version").out.split("\n", 1)[0])
daemon.cut()
check_description()
check_calls()
check_units()
finish()
