#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that hostile input does little harm: programs whose files are wrong on purpose, perf maps
of another user and of 5 GiB, and a bomb of forks. Each loses at most its own names, and costs the
daemon little."""

import random
import struct

from harness import *

NOBODY = 65534
GROWTH_KIB = 48 * 1024
BOMB_PROCESSES = 400
SMALL = ("window.length=1s", "window.max_rows=500", "window.max_memory=4M", "query.max_memory=16M")

BOMB = f"""
import os, resource, time
resource.setrlimit(resource.RLIMIT_NPROC, ({BOMB_PROCESSES}, {BOMB_PROCESSES}))
os.setgid({NOBODY}); os.setuid({NOBODY})
end = time.monotonic() + 3
while time.monotonic() < end:
    try: os.fork()
    except OSError: time.sleep(0.01)
os._exit(0)
"""


def prog(name):
    return os.path.join(PROGS, name)


def sections(image):
    """Returns {name: (offset in the file, size)}, and the offset of the section table."""
    table, = struct.unpack_from("<Q", image, 40)
    size, n, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(n)]
    base = headers[names][4]
    name = lambda at: image[base + at:image.index(b"\0", base + at)].decode()
    return {name(h[0]): (h[4], h[5]) for h in headers}, table, size, n


def noise_in(*names):
    def change(image):
        found, *_ = sections(image)
        for name in names:
            at, size = found.get(name, (0, 0))
            image[at:at + size] = random.randbytes(size)
    return change


def huge_sections(image):
    _, table, size, n = sections(image)
    for i in range(1, n):
        struct.pack_into("<QQ", image, table + i * size + 24, 1 << 62, (1 << 63) - 1)


def no_end_of_sections(image):
    struct.pack_into("<Q", image, 40, len(image) - 8)
    struct.pack_into("<HHH", image, 58, 64, 0xfff0, 0xffef)


def cut_short(image):
    """Truncates a file behind what is loaded; the names of its sections are gone."""
    _, table, *_ = sections(image)
    del image[table - 64:]


def long_loop(image):
    """Fills the call frames with entries of length 0 and of the largest length, alternately."""
    at, size = sections(image)[0][".eh_frame"]
    for i in range(at, at + size - 8, 8):
        struct.pack_into("<II", image, i, 4, 0)


LIES = {
    "noise for call frames": noise_in(".eh_frame", ".eh_frame_hdr"),
    "noise for names": noise_in(".symtab", ".strtab", ".shstrtab"),
    "noise for notes": noise_in(".note.gnu.build-id", ".gnu_debuglink", ".comment"),
    "sections without end": huge_sections,
    "sections behind the end": no_end_of_sections,
    "cut short": cut_short,
    "empty call frames": long_loop,
}


def memory_kib(daemon):
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE") // 1024


def usage(daemon):
    """Returns what the daemon uses of a CPU from now on, and its memory now in KiB."""
    return CpuUse(daemon.process.pid), memory_kib(daemon)


def check_bounded(daemon, label, before):
    """Checks what the daemon used since `before`. It also records the rest of the host, in windows
    of at most 4 MiB."""
    check(daemon.ctl("status").code == 0, f"{label}: the daemon answers")
    use, memory = before
    # When it has just been started, it reads the files of all programs that run.
    use.check(0.5, f"{label}: the daemon used", besides=1)
    grown = memory_kib(daemon) - memory
    estimate_most(grown, GROWTH_KIB, f"{label}: the daemon has {grown} KiB more")


def check_lies(daemon):
    """Checks a program that runs although its file is wrong: its waits are recorded, with as much
    of their stacks as can be known, and stacks of a sound program beside it are whole."""
    with open(prog("prog_shortlived"), "rb") as f:
        true = f.read()
    for label, change in LIES.items():
        before = usage(daemon)
        image = bytearray(true)
        change(image)
        path = os.path.join(daemon.dir, re.sub(r"\W", "-", label))
        with open(path, "wb") as f:
            f.write(image)
        os.chmod(path, 0o755)
        liars = [subprocess.Popen([path, "300"], stdin=subprocess.DEVNULL) for _ in range(3)]
        beside = subprocess.Popen([prog("prog_shortlived"), "300"], stdin=subprocess.DEVNULL)
        codes = [p.wait(HANG_SECONDS) for p in [*liars, beside]]
        check(not any(codes), f"{label}: the programs end: {codes}")
        rows = [r for p in liars for r in daemon.snapshot("-p", p.pid)["rows"] if r["state"] == "S"]
        check(rows, f"{label}: {row_sum(rows, 'count')} waits recorded")
        # A sleep that the scheduler hides is counted as lost.
        estimate_least(row_sum(rows, "count"), len(liars), f"{label}: these are all")
        rows = rows_with(daemon.snapshot("-p", beside.pid), "short_wait")
        check(rows and not rows[0]["user"]["flags"], f"{label}: the program beside it is whole")
        check_bounded(daemon, label, before)


def names_of_made(daemon, pid):
    """Returns the names of the frames above the function that code made at run time waits in."""

    def look():
        for row in daemon.snapshot("-p", pid)["rows"]:
            names = frame_names(row)
            if "nap" in names:
                return names[names.index("nap") + 1:]
        return None

    return wait_until(look, "the wait below code made at run time")


def check_map(label, spoil, is_named):
    """Checks names from a perf map that is spoilt before the daemon starts."""
    program = Program("prog_jit", "jit")
    path = program.read_until("ready").split("map=")[1]
    spoil(path)
    daemon = Daemon(*SMALL)
    before = usage(daemon)
    names = names_of_made(daemon, program.pid)
    check(any("jit:" in name for name in names) == is_named, f"{label}: names are {names[:3]}")
    check_bounded(daemon, label, before)
    check(daemon.stop() == 0, f"{label}: the daemon ends with {daemon.process.returncode}")
    program.kill()
    os.unlink(path)


def swap_for_fifo(path):
    os.unlink(path)
    os.mkfifo(path)


def check_bomb(daemon):
    before = usage(daemon)
    process = subprocess.Popen([sys.executable, "-c", BOMB], stdin=subprocess.DEVNULL)
    check(process.wait(HANG_SECONDS) == 0, f"a bomb of {BOMB_PROCESSES} forks: it ends")
    check_bounded(daemon, "a bomb of forks", before)


need_live()
seed = random.randrange(1 << 32)
random.seed(seed)
print(f"seed {seed}")
check_map("a perf map", lambda path: None, True)
check_map("another user's perf map", lambda path: os.chown(path, NOBODY, NOBODY), False)
check_map("a perf map that is a FIFO", swap_for_fifo, False)
check_map("a perf map of 5 GiB", lambda path: os.truncate(path, 5 << 30), True)  # its first lines
daemon = Daemon(*SMALL)
learn(daemon, [prog("prog_shortlived"), "300"], "short_wait")
check_lies(daemon)
if not EVENTS_ONLY:
    check_bomb(daemon)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
