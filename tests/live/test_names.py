#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names where they are hard to come by: stripped programs, debug files in a root of their own,
code made at run time, and files that are no files."""

from harness import *

SPIN = """
function stackdInner(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
function stackdOuter(n) { let x = 0; for (let i = 0; i < 10; i++) x += stackdInner(n); return x; }
for (;;) stackdOuter(100000);
"""


def prog(name):
    return os.path.join(PROGS, name)


def user_stacks(daemon, pid, *args):
    snapshot = daemon.snapshot("--window", "30s", "-p", pid, *args)
    return [frame_names(row) for row in snapshot["rows"] if row.get("user")]


def run_short(argv, ms=30):
    """Lives that long; its pid."""
    process = subprocess.Popen([*argv, str(ms)], stdin=subprocess.DEVNULL)
    process.wait()
    return process.pid


def check_stripped(daemon):
    strip = shutil.which("strip")
    if not strip:
        print("no strip here: functions without symbols are left out")
        return
    path = os.path.join(daemon.dir, "bare")
    run([strip, "--strip-all", "-o", path, prog("prog_shortlived")])
    seen = []
    for _ in range(2):
        stacks = user_stacks(daemon, run_short([path]))
        named = [s for s in stacks if s[0].startswith("bare+fn_")]
        if not check(named, f"stripped: told by where it starts, not by a neighbour: {stacks}"):
            return
        seen.append(named[0][0])
    check(seen[0] == seen[1], f"stripped: the same in every run: {seen}")
    found = run(["nm", prog("prog_shortlived")]).out
    start = {line.split()[2]: int(line.split()[0], 16) for line in found.splitlines()
             if len(line.split()) == 3}
    check(seen[0] == f"bare+fn_{start['short_wait']:x}", "stripped: where the function starts")


def copy_into(root, path):
    """A file and what it is linked to, to the same places below root."""
    for file in [path, *re.findall(r"(/\S+) \(0x", run(["ldd", path]).out)]:
        target = root + file
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(file, target)


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]).out)[1]


def check_other_root(daemon):
    """In a mount namespace of its own, with a program and its debug file that the host has not."""
    root = os.path.join(daemon.dir, "root")
    source = prog("prog_shortlived")
    os.mkdir(root)
    number = build_id(source)
    script = f"""set -e
        mount -t tmpfs none {root}
        tar -C {daemon.dir}/image -cf - . | tar -C {root} -xf -
        exec chroot {root} /hidden "$0"
        """
    image = os.path.join(daemon.dir, "image")
    copy_into(image, source)
    for option, to in (("--strip-all", "/hidden"),
                       ("--only-keep-debug", f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug")):
        os.makedirs(os.path.dirname(image + to), exist_ok=True)
        run(["strip", option, "-o", image + to, source])
    pid = run_short(["unshare", "-m", "sh", "-c", script], ms=100)
    stacks = user_stacks(daemon, pid)
    check(any(s[0] == "short_wait" for s in stacks),
          f"its own root: named by the debug file there: {stacks[:4]}")


def check_node(daemon):
    node = shutil.which("node")
    if not node:
        print("no node here: its functions are left out")
        return
    script = os.path.join(daemon.dir, "spin.js")
    with open(script, "w", encoding="utf-8") as f:
        f.write(SPIN)
    cpu = str(max(os.sched_getaffinity(0)))
    argv = ["taskset", "-c", cpu, node, "--perf-basic-prof", "--interpreted-frames-native-stack"]
    spinner = subprocess.Popen([*argv, script], cwd=daemon.dir)  # it leaves a log there
    # Who shares its CPU makes it wait where it is: in code made at run time.
    rival = subprocess.Popen(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"])
    atexit.register(stop_process, rival)
    atexit.register(stop_process, spinner)

    def chain():
        for stack in user_stacks(daemon, spinner.pid):
            at = [i for i, name in enumerate(stack) if "stackdInner" in name]
            if at and "stackdOuter" in "".join(stack[at[0] + 1 : at[0] + 2]):
                return stack
        return None

    try:
        stack = wait_until(chain, 30, "named functions of node")
        check(True, f"node: named by its perf map: {stack[:3]}")
    except TimeoutError as e:
        check(False, f"node: {e}: {user_stacks(daemon, spinner.pid)[:3]}")
    stop_process(rival)
    stop_process(spinner)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/tmp/perf-{spinner.pid}.map")


def check_odd_files(daemon):
    """Code mapped from a deleted file of 2 GiB, mostly holes, and mapped anew all the time."""
    code = """
import ctypes, mmap, os, sys, time
path = sys.argv[1]
with open(path, "wb") as f:
    f.write(b"\\x7fELF\\x02\\x01\\x01" + bytes(57))
    f.truncate(2 << 30)
    fd = os.open(path, os.O_RDWR)
os.unlink(path)
big = mmap.mmap(fd, 1 << 20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
end = time.monotonic() + 3
n = 0
while time.monotonic() < end:
    m = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    time.sleep(0.0003)
    m.close()
    n += 1
print("loops", n)
"""
    start_cpu = cpu_seconds(daemon.process.pid)
    done = run([sys.executable, "-c", code, os.path.join(daemon.dir, "holes")])
    used = cpu_seconds(daemon.process.pid) - start_cpu
    check(done.code == 0, f"mapping code in a loop: {done.out.strip()} {done.err.strip()[-200:]}")
    check(used < 2 * SLOWNESS, f"mapping code in a loop costs the daemon {used:.2f} s of 3 s")
    check(daemon.ctl("status").code == 0, "the daemon answers after it")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


need_live()
for tool in ("unshare", "ldd", "strip", "readelf", "nm", "taskset"):
    need_tool(tool)
daemon = Daemon("window.length=1s")
check_stripped(daemon)
check_other_root(daemon)
check_node(daemon)
check_odd_files(daemon)
limit = {l["name"]: l for l in daemon.status()["limits"]}["symbols.perf_maps"]
check(limit["value"] > 0 and limit["hits"] == 0, f"perf maps have a limit, not reached: {limit}")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
