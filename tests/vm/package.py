#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the Debian package of this tree from a copy of its sources, and the same package with an
older version number, for tests of upgrades. Packages are kept in the cache directory, under a hash
of the sources.

Usage as a program: package.py [--lint], which prints the path of the package and lintian's findings.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import machine

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NEEDS = {
    "dpkg-buildpackage": "dpkg-dev",
    "dh": "debhelper",
    "lintian": "lintian",
}

OLDER = "~older"  # a version with this at its end sorts before the version itself
KEEP = 4  # packages of older trees in the cache


def missing():
    return sorted(package for tool, package in NEEDS.items() if not shutil.which(tool))


def is_left_out(name):
    return re.match(r"build(-[a-z]+)?$|__pycache__|\.(?!ci$|clang-format$|gitignore$)", name)


def sources():
    """Returns the paths of the source files, without the tests and the files of builds and tools."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not is_left_out(f))
        if folder == ROOT:
            folders.remove("tests")
        found += [os.path.join(folder, n) for n in sorted(names) if not is_left_out(n)]
    return found


def fingerprint(paths):
    total = hashlib.sha256()
    for path in paths:
        total.update(os.path.relpath(path, ROOT).encode() + b"\0")
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()[:16]


def changelog_version(path, version=None):
    """Returns the newest version in a debian/changelog, and replaces it by version, if given."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.search(r"\((.*?)\)", text).group(1)
    if version:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(f"({found})", f"({version})", 1))
    return found


def is_of_daemon(name, suffix):
    """True for the file of the package stackd, and not of stackd-fleet."""
    return name.startswith("stackd_") and name.endswith(suffix)


def build_older(tree, directory):
    """Packs what is built in the tree a second time, with the older version, into a directory."""
    changelog = os.path.join(tree, "debian", "changelog")
    changelog_version(changelog, changelog_version(changelog) + OLDER)
    for package in ("stackd", "stackd-fleet"):
        os.unlink(os.path.join(tree, "debian", f"{package}.debhelper.log"))
    machine.command(["dpkg-buildpackage", "-b", "-nc", "-us", "-uc"], cwd=tree, env=environment())
    (name,) = (n for n in os.listdir(directory) if OLDER in n and is_of_daemon(n, ".deb"))
    os.mkdir(os.path.join(directory, "older"))
    os.rename(os.path.join(directory, name), os.path.join(directory, "older", "stackd.deb"))
    for other in [n for n in os.listdir(directory) if OLDER in n]:
        os.unlink(os.path.join(directory, other))


def environment():
    # The package is only used in a test machine: it needs no tests of its own, no debug symbols.
    return {**os.environ, "DEB_BUILD_OPTIONS": "nocheck noautodbgsym"}


def build_in(scratch, paths):
    """Builds both packages in the directory scratch, and returns it."""
    tree = os.path.join(scratch, "stackd")
    for path in paths:
        target = os.path.join(tree, os.path.relpath(path, ROOT))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(path, target)
    machine.command(["dpkg-buildpackage", "-b", "-us", "-uc"], cwd=tree, env=environment())
    build_older(tree, scratch)
    shutil.rmtree(tree)
    return scratch


def forget(home):
    """Removes the packages of all but the last KEEP trees."""
    paths = [os.path.join(home, name) for name in os.listdir(home) if name != "lock"]
    for path in sorted(paths, key=os.path.getmtime)[:-KEEP]:
        shutil.rmtree(path, ignore_errors=True)


def directory():
    """Returns the directory with the .deb and the .changes of this tree, built if it is missing."""
    paths = sources()
    home = os.path.join(machine.cache_dir(), "package")
    target = os.path.join(home, fingerprint(paths))
    with machine.Locked(home):
        if not os.path.isdir(target):
            forget(home)
            scratch = tempfile.mkdtemp(dir=home)
            os.rename(build_in(scratch, paths), target)
    return target


def find_older():
    """Returns the path of the .deb that differs only in its older version."""
    return os.path.join(directory(), "older", "stackd.deb")


def find(suffix):
    (name,) = (n for n in os.listdir(directory()) if is_of_daemon(n, suffix))
    return os.path.join(directory(), name)


def depends(deb):
    """Returns the names of the packages that a .deb needs, with the first of alternatives."""
    text = machine.command(["dpkg-deb", "-f", deb, "Depends"]).decode()
    return [re.match(r"[a-z0-9.+-]+", one.strip()).group() for one in text.split(",")]


def lint():
    """Returns lintian's exit code, which is 0 without errors, and its findings."""
    argv = ["lintian", "--allow-root", "--fail-on", "error", find(".changes")]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def main():
    if missing():
        print(f"skipped: needs the packages {' '.join(missing())}")
        return 77
    print(find(".deb"))
    if "--lint" not in sys.argv[1:]:
        return 0
    code, text = lint()
    print(text)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except machine.MachineError as e:
        print(f"package.py: {e}", file=sys.stderr)
        sys.exit(1)
