#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows source lines and inlined functions, on request: from the file itself, from its separate
debug file, and from a file that was deleted. A note says which files have none. Broken debug
information costs the answer nothing else."""

from harness import *

CHAIN = ["inner", "middle", "outer", "main"]


def truth(program):
    """Returns {function: line}, as the program itself reports it."""
    return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", program.lines[0])}


def tool(*argv):
    result = run(argv)
    check(result.code == 0, str(result))


# The head and the name of a build-id's note; its 20 bytes follow.
BUILD_ID = b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"


def copy(home, name):
    """Copies a program and changes its build-id, because files with the same build-id count as the
    same."""
    path = os.path.join(home, name)
    with open(os.path.join(PROGS, "prog_lines"), "rb") as f:
        data = bytearray(f.read())
    at = data.index(BUILD_ID) + len(BUILD_ID)
    data[at : at + 20] = os.urandom(20)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, 0o755)
    return path


def frames_of(daemon, program, *args):
    rows = daemon.ctl_json("stuck", "--idle", "-p", program.pid, *args)["rows"]
    return rows[0]["user"]["frames"] if len(rows) == 1 else []


def ours(frames):
    """Returns (name, file, line, inlined) of the program's own frames."""
    return [
        (f["name"], os.path.basename(f["source"]["file"]), f["source"]["line"],
         f["source"]["inlined"])
        for f in frames if f.get("source") and "prog_lines" in f["source"]["file"]
    ]


def check_lines(daemon, program, label):
    want = [(name, "prog_lines.c", truth(program)[name], name in ("inner", "middle")) for name in CHAIN]
    found = ours(frames_of(daemon, program, "--lines"))
    check(found == want, f"{label}: {found}")


def check_none(daemon, program, label):
    reply = daemon.ctl_json("stuck", "--idle", "-p", program.pid, "--lines")
    frames = reply["rows"][0]["user"]["frames"]
    check(not ours(frames) and len(frames) > 3, f"{label}: there are no lines, and all frames")
    notes = [n for n in reply.get("notes", []) if "source lines" in n]
    check(notes and os.path.basename(program.argv[0]) in notes[0],
          f"{label}: a note says so: {notes}")


def split(path, *args):
    """Moves the debug information of a file into a file of its own."""
    tool("objcopy", "--only-keep-debug", path, path + ".debug")
    tool("strip", *args, path)
    tool("objcopy", f"--add-gnu-debuglink={path}.debug", path)


def break_debug(path):
    """Overwrites a third of a debug file, which keeps its build-id."""
    with open(path, "r+b") as f:
        size = f.seek(0, os.SEEK_END)
        f.seek(size // 4)
        f.write(os.urandom(size // 3))


def check_separate(daemon, programs):
    check_lines(daemon, programs["separate"], "in a separate debug file")
    check_none(daemon, programs["bare"], "without debug information")
    frames = frames_of(daemon, programs["broken"], "--lines")
    check(len(frames) > 3, f"broken debug information: the frames are there: {len(frames)}")


need_live()
home = make_temp_dir()
names = ["plain", "deleted"]
if shutil.which("objcopy") and shutil.which("strip"):
    names += ["separate", "bare", "broken"]
else:
    leave_out("no objcopy and strip here: separate debug files")
paths = {name: copy(home, f"prog_lines_{name}") for name in names}
if "separate" in paths:
    split(paths["separate"], "--strip-unneeded")
    split(paths["broken"])
    break_debug(paths["broken"] + ".debug")
    tool("strip", paths["bare"])
programs = {name: Program(path, path=path).ready() for name, path in paths.items()}
plain = programs["plain"]
for program in programs.values():
    wait_in(program.pid, "nanosleep")
daemon = Daemon("window.length=1s")
for program in programs.values():
    daemon.settled(program)


def are_named():
    daemon.cut()
    # A stack that was read before the program's unwind table was loaded ends at outer, until it is read again.
    return all({"outer", "main"} <= {f.get("name") for f in frames_of(daemon, programs[name])}
               for name in ("plain", "deleted"))


wait_until(are_named, "the stacks")
check_lines(daemon, plain, "in the file")
if "separate" in programs:
    check_separate(daemon, programs)
os.unlink(paths["deleted"])
check_lines(daemon, programs["deleted"], "deleted while it runs")

# Without the request nothing is looked up and no frame has a line.
check(not any("source" in f and f["source"] for f in frames_of(daemon, plain)),
      "there are lines only on request")
text = daemon.ctl("stuck", "--idle", "-v", "-p", plain.pid, "--lines").out
lines = truth(plain)
check(
    re.search(rf"inner \S*prog_lines.c:{lines['inner']}  \(inlined\)", text)
    and re.search(rf"outer \S*prog_lines.c:{lines['outer']}  \(prog_lines_plain\)", text),
    f"as text: {text}",
)
folded = daemon.ctl("snapshot", "-f", "--idle", "offcpu", "-p", plain.pid).out
check("main;outer;usleep" in folded, f"folded is as without the request: {folded}")
folded = daemon.ctl("snapshot", "-f", "--idle", "offcpu", "-p", plain.pid, "--lines", "-a").out
check(f"middle_[i] prog_lines.c:{lines['middle']};inner_[i]" in folded,
      f"with lines on request: {folded}")

# The process has exited, but its file is there: the build-id shows that it is the same file.
plain.kill()
daemon.cut()
rows = daemon.ctl_json("snapshot", "offcpu", "--idle", "-p", plain.pid, "--lines")["rows"]
found = [ours(r["user"]["frames"]) for r in rows if r.get("user") and ours(r["user"]["frames"])]
check(found and [f[0] for f in found[0]] == CHAIN, f"after its end: {found}")

# The kernel ends a helper that needs too much memory, and the answer says so.
check(daemon.stop() == 0, "the daemon stops")
program = Program("prog_lines").ready()
wait_in(program.pid, "nanosleep")
daemon = Daemon("window.length=1s", "symbols.lines_memory=64M")


def whole_reply():
    """Returns the answer once the daemon has read the program's stack."""
    daemon.cut()
    reply = daemon.ctl_json("stuck", "--idle", "-p", program.pid, "--lines")
    named = [f["name"] for row in reply["rows"] for f in row["user"]["frames"]]
    return reply if len(reply["rows"]) == 1 and "main" in named else None


reply = wait_until(whole_reply, "the stack")
limit = next(l for l in daemon.status()["limits"] if l["name"] == "symbols.lines_memory")
notes = [n for n in reply.get("notes", []) if "source lines" in n]
check(
    bool(ours(reply["rows"][0]["user"]["frames"])) != bool(limit["hits"]) and
    bool(limit["hits"]) == any("lines_memory" in n for n in notes),
    f"with 64 MiB it has lines or says why not: {limit} {notes}",
)
daemon.stop()
finish()
