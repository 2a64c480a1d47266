#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows names where they are hard to find: stripped programs, debug files in another root, code
made at run time, and mapped files that are no ELF files."""

from harness import *

SPIN = """
function stackdInner(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
function stackdOuter(n) { let x = 0; for (let i = 0; i < 10; i++) x += stackdInner(n); return x; }
for (;;) stackdOuter(100000);
"""


JAVA = """
public class Spin {
    static int stackdInner(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) x = (x * 31 + i) % 1000003;
        return x;
    }
    static int stackdOuter(int n) {
        int x = 0;
        for (int i = 0; i < 10; i++) x += stackdInner(n);
        return x;
    }
    public static void main(String[] args) {
        long x = 0;
        while (true) x += stackdOuter(100000);
    }
}
"""


def prog(name):
    return os.path.join(PROGS, name)


def user_stacks(daemon, pid, *args):
    snapshot = daemon.snapshot("--window", "30s", "-p", pid, *args)
    return [frame_names(row) for row in snapshot["rows"] if row.get("user")]


def run_short(argv, ms=30):
    """Runs a program for some ms; returns its pid."""
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
        if not check(named,
                     f"stripped: a function is named by its start, not by a neighbour: {stacks}"):
            return
        seen.append(named[0][0])
    check(seen[0] == seen[1], f"stripped: the same in every run: {seen}")
    found = run(["nm", prog("prog_shortlived")]).out
    start = {line.split()[2]: int(line.split()[0], 16) for line in found.splitlines()
             if len(line.split()) == 3}
    check(seen[0] == f"bare+fn_{start['short_wait']:x}", "stripped: where the function starts")


def module_names(row):
    """Returns (module, name) of the program's own frames. Waits before the exec, as a fork of this
    interpreter, have none."""
    if row["comm"].startswith("python"):
        return []
    return [(f.get("module"), f.get("name")) for f in (row.get("user") or {}).get("frames", [])
            if "/lib" not in (f.get("module") or "/lib") and f["module"][0] == "/"]


def check_equal_files(daemon):
    """Checks one program under many names: each process's frames have the path that it was run
    by."""
    copies = [os.path.join(daemon.dir, name) for name in ("ledgerd", "billing-sync", "linked", "moved")]
    run(["strip", "--strip-all", "-o", copies[0], prog("prog_shortlived")])
    for copy in (copies[1], copies[3] + ".new"):
        shutil.copy(copies[0], copy)
    os.link(copies[0], copies[2])
    os.rename(copies[3] + ".new", copies[3])
    first = {run_short([path]): path for path in copies}
    second = {subprocess.Popen([path, "3600000"]).pid: path for path in reversed(copies)}
    for pid in second:
        atexit.register(os.kill, pid, signal.SIGKILL)

    def look():
        stuck = daemon.ctl_json("stuck", "--idle")["rows"]
        rows = [r for r in stuck if r["process"]["pid"] in second and module_names(r)]
        return rows if {r["process"]["pid"] for r in rows} == set(second) else None

    open_rows = wait_until(look, 15, "all of them to wait")
    rows = daemon.snapshot()["rows"]
    ended = [r for r in rows if r["process"]["pid"] in first and module_names(r)]
    check({r["process"]["pid"] for r in ended} == set(first), "equal files: each has a stack")
    for row in ended + open_rows:
        path = {**first, **second}[row["process"]["pid"]]
        files = {module for module, _ in module_names(row)}
        labels = {name.split("+")[0] for _, name in module_names(row) if name and "+fn_" in name}
        check(files == {path} and labels == {os.path.basename(path)},
              f"equal files: {os.path.basename(path)} is named {files} {labels}")
    return first


def check_equal_files_kept(daemon, paths):
    """Checks the same for stacks that are read from disk."""
    rows = [r for r in daemon.snapshot("--window", "1h")["rows"]
            if r["process"]["pid"] in paths and module_names(r)]
    check({r["process"]["pid"] for r in rows} == set(paths), "equal files: all of them are on disk")
    for row in rows:
        path = paths[row["process"]["pid"]]
        files = {module for module, _ in module_names(row)}
        check(files == {path}, f"equal files: {os.path.basename(path)} is on disk as {files}")


def copy_into(root, path):
    """Copies a file and the libraries it is linked with to the same paths below root."""
    for file in [path, *re.findall(r"(/\S+) \(0x", run(["ldd", path]).out)]:
        target = root + file
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(file, target)


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]).out)[1]


def check_other_root(daemon):
    """Checks a program in a mount namespace of its own; the host has neither it nor its debug
    file."""
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
          f"its own root: the debug file there names it: {stacks[:4]}")


def check_layers(daemon):
    """Checks a root of layers (overlayfs, as containers have), with programs of the lower and upper
    one."""
    image = os.path.join(daemon.dir, "lower")
    copy_into(image, prog("prog_shortlived"))
    for name in ("/below", "/above"):
        shutil.copy(prog("prog_shortlived"), image + name)
    top = os.path.join(daemon.dir, "layers")
    os.mkdir(top)
    script = f"""set -e
        mount -t tmpfs none {top}
        mkdir {top}/upper {top}/work {top}/root
        mount -t overlay -o lowerdir={image},upperdir={top}/upper,workdir={top}/work none {top}/root
        touch {top}/root/above
        chroot {top}/root /above 5
        exec chroot {top}/root "$0" "$1"
        """
    if run(["unshare", "-m", "sh", "-c", script, "/below", "300"]).code:
        print("no overlayfs here: left out")
        return
    for path in ("/below", "/above"):
        pid = run_short(["unshare", "-m", "sh", "-c", script, path], ms=1000)
        rows = [r for r in daemon.snapshot("--window", "30s", "-p", pid)["rows"]
                if "short_wait" in frame_names(r)]
        check(rows and all(r["user"]["frames"][0]["module"].endswith(path) and not r["user"]["flags"]
                           and frame_names(r)[-1] == "_start" for r in rows),
              f"layers: {path}: {[(r['user']['flags'], frame_names(r)) for r in rows][:2]}")


def stuck_stack(daemon, pid, name):
    """Returns the frames of the thread that waits below a function of this name, once they are
    named."""
    def look():
        daemon.cut()
        rows = daemon.ctl_json("stuck", "--idle", "-p", pid)["rows"]
        found = [r["user"] for r in rows if name in frame_names(r)]
        return found[0] if found else None

    try:
        return wait_until(look, 15, f"{name} in a stack")
    except TimeoutError:
        return {"frames": [], "flags": []}


def check_made(daemon, pid, label):
    """Checks functions made at run time, which the process lists in its own /tmp, under its own
    pid."""
    stack = stuck_stack(daemon, pid, "jit:outer")
    names = [f.get("name") for f in stack["frames"]]
    at = names.index("nap") if "nap" in names else 0
    check(names[at : at + 4] == ["nap", "jit:inner the;1st", "jit:outer", "main"]
          and names[-1] == "_start", f"{label}: {names}")
    kinds = [f["kind"] for f in stack["frames"][at : at + 4]]
    check(kinds == ["native", "jit", "jit", "native"], f"{label}: {kinds}")
    check(stack["flags"] == ["frame_pointers"],
          f"{label}: the flags say how it was walked: {stack['flags']}")


def check_jit(daemon):
    program = Program("prog_jit", "jit").ready()
    if "none" in program.lines[0]:
        print("no code is made on this machine: left out")
        return
    check_made(daemon, program.pid, "jit")
    program.kill()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(program.lines[0].split("map=")[1])
    # Only the container knows this /tmp, and the pid in the map's name.
    inside = os.path.join(daemon.dir, "tmp")
    os.mkdir(inside)
    shutil.copy(prog("prog_jit"), inside)
    script = f"mount --bind {inside} /tmp && exec /tmp/prog_jit jit"
    holder = subprocess.Popen(["unshare", "-m", "-p", "-f", "sh", "-c", script],
                              stdout=subprocess.PIPE, encoding="utf-8")
    atexit.register(stop_process, holder)
    line = holder.stdout.readline()
    check("map=/tmp/perf-1.map" in line, f"jit: number 1 in a namespace of its own: {line}")
    with open(f"/proc/{holder.pid}/task/{holder.pid}/children", encoding="ascii") as f:
        child = int(f.read().split()[0])
    check_made(daemon, child, "jit in a container")
    os.kill(child, signal.SIGKILL)
    stop_process(holder)


def check_memory_file(daemon):
    if not os.path.exists(prog("libprog_unwind.so")):
        print("no library here to load from memory: left out")
        return
    program = Program("prog_jit", "memfd").ready()
    stack = stuck_stack(daemon, program.pid, "library_call")
    frame = [f for f in stack["frames"] if f.get("name") == "library_call"]
    check(frame and "memfd:stackd code" in frame[0]["module"] and not stack["flags"],
          f"memfd: {frame} {stack['flags']}")
    program.kill()


def check_deleted(daemon):
    """Checks a program that is deleted before it first waits, with another program at its path."""
    path = os.path.join(daemon.dir, "deleted")
    shutil.copy(prog("prog_paged"), path)
    program = Program("deleted", path=path)
    os.unlink(path)
    shutil.copy(prog("prog_shortlived"), path)
    program.ready()
    stack = stuck_stack(daemon, program.pid, "nap")
    names = [f.get("name") for f in stack["frames"]]
    at = names.index("nap") if "nap" in names else 0
    check(names[at : at + 6] == ["nap", "f5", "f4", "f3", "f2", "f1"], f"deleted: {names}")
    program.kill()


def check_vdso(daemon):
    program = subprocess.Popen([prog("prog_jit"), "vdso", str(int(patience(4) * 1000))])
    atexit.register(stop_process, program)

    def look():
        return [r["user"]["frames"][:4] for r in samples(daemon, program.pid) if r.get("user")
                and r["user"]["frames"][0].get("module") == "[vdso]"]

    try:
        found = wait_until(look, 8, "samples in the vdso")
    except TimeoutError:
        check(False, "vdso: no sample in it")
        return
    frame = found[0][0]
    check("clock_gettime" in (frame.get("name") or ""), f"vdso: it is named: {frame}")
    check(any("read_clock" in [f.get("name") for f in frames] for frames in found),
          f"vdso: the stack goes on below it: {found}")
    stop_process(program)


def check_java(daemon):
    """Checks a JVM with frame pointers, which writes its perf map on request."""
    if not all(map(shutil.which, ("java", "javac", "jcmd"))):
        print("no java here: its functions are left out")
        return
    source = os.path.join(daemon.dir, "Spin.java")
    with open(source, "w", encoding="ascii") as f:
        f.write(JAVA)
    if run(["javac", "-d", daemon.dir, source], timeout=120).code != 0:
        print("javac does not work here: left out")
        return
    java = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "-XX:-Inline", "-cp", daemon.dir,
                             "Spin"])
    atexit.register(stop_process, java)

    def named():
        run(["jcmd", str(java.pid), "Compiler.perfmap"], timeout=60)
        for stack in user_samples(daemon, java.pid):
            at = [i for i, name in enumerate(stack) if "stackdInner" in name]
            if at and "stackdOuter" in "".join(stack[at[0] + 1 : at[0] + 2]):
                return stack
        return None

    try:
        stack = wait_until(named, 40, "named functions of java")
        check(True, f"java: named by its perf map: {stack[:3]}")
    except TimeoutError as e:
        check(False, f"java: {e}: {user_samples(daemon, java.pid)[:3]}")
    stop_process(java)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/tmp/perf-{java.pid}.map")


def samples(daemon, pid):
    """Returns rows of samples; none until a clock tick has hit the process."""
    result = daemon.ctl("snapshot", "oncpu", "-p", pid, "--format", "json")
    return json.loads(result.out)["rows"] if result.code != 4 else []


def user_samples(daemon, pid):
    return [[n or "" for n in frame_names(row)] for row in samples(daemon, pid) if row.get("user")]


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
    spinner = subprocess.Popen([*argv, script], cwd=daemon.dir)  # node leaves a log there
    # The program that shares its CPU makes it wait where it computes, in code made at run time.
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
    """Checks code mapped from a deleted sparse file of 2 GiB, and code that is mapped again and
    again."""
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


need_live()
for tool in ("unshare", "ldd", "strip", "readelf", "nm", "taskset"):
    need_tool(tool)
daemon = Daemon("window.length=1s")
check_stripped(daemon)
equal = check_equal_files(daemon)
check_other_root(daemon)
check_layers(daemon)
check_jit(daemon)
check_memory_file(daemon)
check_deleted(daemon)
check_vdso(daemon)
check_node(daemon)
check_java(daemon)
check_odd_files(daemon)
limit = {l["name"]: l for l in daemon.status()["limits"]}["symbols.perf_maps"]
check(limit["value"] > 0 and limit["hits"] == 0, f"perf maps have a limit, not reached: {limit}")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
daemon.start()
check_equal_files_kept(daemon, equal)
daemon.stop()
finish()
