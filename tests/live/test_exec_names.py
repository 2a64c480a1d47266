#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows the names of their moment in a storm of 1,000 execs a second. Known programs run as they
are, then as copies, under new names, by hard links, in a directory that was renamed, with another
program under an old name, below a mount, in another mount namespace, in overlays of one directory,
and in a control group, one right after the other. Every row has the path that was executed, the
functions of the file that was there, and the control group."""

from harness import *

RATE, COUNT, PROGRAMS = (200, 200, 20) if EVENTS_ONLY else (1000, 500, 20)

need_live()
unshare, mount = need_tool("unshare"), need_tool("mount")


def prog(name):
    return os.path.join(PROGS, name)


def make(directory, source):
    """Fills a new directory with copies of a program; returns it."""
    os.mkdir(directory)
    for path in paths(directory):
        shutil.copy(prog(source), path)
    return directory


def paths(directory, letter="p"):
    return [os.path.join(directory, f"{letter}{i:02}") for i in range(PROGRAMS)]


def storm(what, programs, function, before=(), cgroup=None):
    """Runs the programs; notes which path, function and cgroup each pid has to have."""
    argv = [*before, prog("prog_storm"), RATE, COUNT, *programs]
    result = run([str(a) for a in argv])
    if result.code != 0:
        raise AssertionError(str(result))
    for line in result.out.splitlines():
        pid, path = line.split(" ", 1)
        truth[int(pid)] = (what, path, function, cgroup)


def make_group():
    """Makes a control group in another one; returns its directory and its path, or None."""
    with open("/proc/mounts", encoding="ascii") as f:
        mounts = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    path = f"/stackd-test-{os.getpid()}/inner"
    try:
        os.makedirs(mounts[0] + path)
    except (IndexError, OSError):
        return None
    atexit.register(os.removedirs, mounts[0] + path)
    return mounts[0] + path, path


truth = {}
begin = time.time_ns()
daemon = Daemon(
    "window.max_memory=256M", "query.max_memory=256M", "probe.offcpu.max_keys=131072"
)
top = make_temp_dir()
one, two = make(f"{top}/one", "prog_tick"), make(f"{top}/two", "prog_tock")
storm("at first", paths(one), "tick")
storm("known", paths(one), "tick")

three = make(f"{top}/three", "prog_tick")
storm("copies", paths(three), "tick")
for old, new in zip(paths(three), paths(three, "r")):
    os.rename(old, new)
storm("renamed", paths(three, "r"), "tick")
for old, new in zip(paths(three, "r"), paths(three, "l")):
    os.link(old, new)
storm("hard links", [p for pair in zip(paths(three, "r"), paths(three, "l")) for p in pair], "tick")
os.rename(three, f"{top}/four")
storm("in a renamed directory", paths(f"{top}/four", "r"), "tick")
for new, old in zip(paths(two), paths(f"{top}/four", "r")):
    shutil.copy(new, old + ".new")
    os.rename(old + ".new", old)
storm("with other programs under the old names", paths(f"{top}/four", "r"), "tock")
# The files below the mount stay what they are for others, who run at the same time.
script = f'{mount} --bind "$1" "$2" && shift 2 && exec "$@"'
hidden = [unshare, "-m", "--propagation", "private", "sh", "-c", script, "sh", two, one]
storm("in another mount namespace", paths(one), "tock", before=hidden)
storm("outside of it", paths(one), "tick")
file_over = f'for f in "$1"/p*; do {mount} --bind "$f" "$2/${{f##*/}}" || exit; done; shift 2; exec "$@"'
hidden[6] = file_over
storm("below mounts", paths(one), "tock", before=hidden)

# In both overlays the programs are the same files of one layer, as in containers of one image.
script = (f'mkdir "$2" && {mount} -t tmpfs none "$2" && mkdir "$2/up" "$2/work" "$2/top" && '
          f'{mount} -t overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" none "$2/top" && '
          'shift 2 && exec "$@"')
for name in ("five", "six"):
    layers = [unshare, "-m", "--propagation", "private", "sh", "-c", script, "sh", one,
              f"{top}/{name}"]
    if name == "five" and run([*layers, "true"]).code != 0:
        leave_out("no overlay can be mounted here")
        break
    shutil.rmtree(f"{top}/{name}", ignore_errors=True)
    storm(f"in overlay {name}", paths(f"{top}/{name}/top"), "tick", before=layers)

group = make_group()
if group:
    inside = ["sh", "-c", f'echo $$ > "{group[0]}/cgroup.procs" && exec "$@"', "sh"]
    storm("in a control group", paths(one), "tick", before=inside, cgroup=group[1])
else:
    leave_out("no control group can be made here")

snapshot = daemon.snapshot("--since", at(begin))
seen, named = {}, {}
wrong = []
for row in snapshot["rows"]:
    process = row["process"]
    what, path, function, cgroup = truth.get(process["pid"], (None, None, None, None))
    # Rows from before the exec are those of a fork of prog_storm. A pid may have been used before.
    if not what or process["comm"] == "prog_storm" or process["start"]["ns"] < begin:
        continue
    seen.setdefault(what, set()).add(process["pid"])
    if process.get("exe") != path or process["comm"] != os.path.basename(path):
        wrong.append((what, path, process))
    if cgroup and process.get("cgroup") != cgroup:
        wrong.append((what, cgroup, process))
    for frame in (row.get("user") or {}).get("frames", []):
        if frame.get("name") in ("tick", "tock") or frame.get("module", "").startswith(top):
            named.setdefault(what, set()).add(process["pid"])
            if frame.get("module") != path or frame.get("name") in {"tick", "tock"} - {function}:
                wrong.append((what, path, frame))
for what in dict.fromkeys(values[0] for values in truth.values()):
    total = sum(values[0] == what for values in truth.values())
    rows, names = len(seen.get(what, ())), len(named.get(what, ()))
    check(rows > 0, f"{what}: {rows} of {total} processes have a row")
    estimate_least(rows, 0.9 * total, f"{what}: these are most")
    # At first, a file is read while its first process may have ended already.
    check(names > 0 or what == "at first", f"{what}: {names} of {rows} have a stack through the program")
    estimate_least(names, 1 if what == "at first" else 0.9 * rows, f"{what}: these are most")
check(not wrong, f"no wrong name: {len(wrong)}, such as {wrong[:5]}")
print(f"lost: {lost_text(daemon.status())}")
daemon.stop()
finish()
