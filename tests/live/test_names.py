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
    snapshot = daemon.snapshot("--window", "10min", "-p", pid, *args)
    return [frame_names(row) for row in snapshot["rows"] if row.get("user")]


def run_short(argv, ms=30):
    """Runs a program for some ms; returns its pid."""
    process = subprocess.Popen([*argv, str(ms)], stdin=subprocess.DEVNULL)
    process.wait()
    return process.pid


def check_stripped(daemon):
    strip = shutil.which("strip")
    if not strip:
        leave_out("no strip here: functions without symbols")
        return None
    path = os.path.join(daemon.dir, "bare")
    run([strip, "--strip-all", "-o", path, prog("prog_shortlived")])
    seen = []

    def named():
        """A run may have ended before its mappings were read."""
        return [s for s in user_stacks(daemon, run_short([path])) if s[0].startswith("bare+fn_")]

    for _ in range(2):
        seen.append(wait_until(named, "a function to be named by its start, not by a neighbour")[0][0])
    check(seen[0] == seen[1], f"stripped: the same in every run: {seen}")
    found = run(["nm", prog("prog_shortlived")]).out
    start = {line.split()[2]: int(line.split()[0], 16) for line in found.splitlines()
             if len(line.split()) == 3}
    check(seen[0] == f"bare+fn_{start['short_wait']:x}", "stripped: where the function starts")
    return path


def file_position(path, address):
    """Returns the position in an ELF file of the byte at a virtual address."""
    for line in run(["readelf", "-lW", path]).out.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and int(words[2], 16) <= address < int(words[2], 16) + int(words[4], 16):
            return address - int(words[2], 16) + int(words[1], 16)
    return None


def check_build_ids(daemon, path, *args):
    """Checks which file each frame of a program is in, and where; no frame says it unasked."""
    plain = daemon.snapshot(*args, "--comm", os.path.basename(path))["rows"]
    check(plain and not any("build_id" in f or "file_offset" in f for row in plain
                            for f in (row.get("user") or {}).get("frames", [])),
          f"build-ids: none unless asked for, {args}")
    rows = daemon.snapshot(*args, "--comm", os.path.basename(path), "--build-ids")["rows"]
    frames = [f for row in rows for f in (row.get("user") or {}).get("frames", [])]
    own = [f for f in frames if f.get("module") == path]
    others = {f["module"]: f for f in frames if f.get("build_id") and f["module"] != path}
    check(own and {f.get("build_id") for f in own} == {build_id(path)},
          f"build-ids: of the program's own frames, {args}: {own[:3]}")
    check(all(f.get("file_offset") == file_position(path, f["file_address"]) for f in own),
          f"build-ids: where in the program, {args}: {own[:3]}")
    named = [f for f in own if (f.get("name") or "").startswith("bare+fn_")]
    check(named and all(int(f["name"][8:], 16) + f["offset"] == f["file_address"] for f in named),
          f"build-ids: the address in the function, {args}: {named[:3]}")
    check(others and all(f["build_id"] == build_id(module) for module, f in others.items()
                         if module.startswith("/")),
          f"build-ids: of libraries, {args}: {others}")


def module_names(row):
    """Returns (module, name) of the program's own frames. Waits before the exec, as a fork of this
    interpreter, have none."""
    if row["comm"].startswith("python"):
        return []
    return [(f.get("module"), f.get("name")) for f in (row.get("user") or {}).get("frames", [])
            if "/lib" not in (f.get("module") or "/lib") and f["module"][0] == "/"]


class Debuginfod:
    """A server of the debug information in a directory, with a database and caches of its own."""

    def __init__(self, daemon, files):
        self.daemon = daemon
        self.files = files
        self.tries = 0
        self.process = None
        self.url = None

    def keep(self):
        """Starts the server unless it runs: it ends if somebody else has taken its port."""
        if self.process and self.process.poll() is None:
            return
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        self.process = subprocess.Popen(
            ["debuginfod", "-F", "-t", "1", "-p", str(port), "-d", f"{self.files}.sqlite", self.files],
            env={**os.environ, "HOME": self.daemon.dir, "DEBUGINFOD_URLS": ""},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(stop_process, self.process)

    def ask(self, *args):
        """Runs stackctl with this server. The library remembers in its cache that a server does not
        have a file, so each call has another one."""
        self.keep()
        self.tries += 1
        cache = {"DEBUGINFOD_CACHE_PATH": f"{self.daemon.dir}/cache-{self.tries}"}
        return self.daemon.ctl(*args, "--debuginfod", "--json", env={
            **os.environ, "HOME": self.daemon.dir, "DEBUGINFOD_URLS": self.url, **cache})


def check_debuginfod(daemon, path):
    """Checks that a real server of debug information gives a stripped program's functions their names,
    also in what an earlier run of the daemon recorded."""
    if not shutil.which("debuginfod"):
        leave_out("no debuginfod here: names from servers")
        return
    files = os.path.join(daemon.dir, "debug-files")
    os.mkdir(files)
    run(["objcopy", "--only-keep-debug", prog("prog_shortlived"), f"{files}/bare.debug"])
    server = Debuginfod(daemon, files)
    words = ["snapshot", "offcpu", "--idle", "--window", "1h", "--comm", os.path.basename(path)]

    def named():
        result = server.ask(*words)
        if result.code:
            return result
        names = [name for row in json.loads(result.out)["rows"] for name in frame_names(row)]
        return result if "short_wait" in names else None

    result = check_until(named, "debuginfod: the names from the server", lambda: server.ask(*words).err)
    if not result:
        return
    stop_process(server.process)
    if "built without" in result.err:
        leave_out("stackctl was built without libdebuginfod: names from servers")
        return
    check(result.code == 0, f"debuginfod: the function has its name: {result.err}")


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

    open_rows = wait_until(look, "all of them to wait")
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
    pid = run_short(["unshare", "-m", "sh", "-c", script], ms=1000)
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
        leave_out("no overlayfs here")
        return
    for path in ("/below", "/above"):
        pid = run_short(["unshare", "-m", "sh", "-c", script, path], ms=1000)
        rows = [r for r in daemon.snapshot("--window", "10min", "-p", pid)["rows"]
                if "short_wait" in frame_names(r)]
        check(rows and all(r["user"]["frames"][0]["module"].endswith(path) and not r["user"]["flags"]
                           and frame_names(r)[-1] == "_start" for r in rows),
              f"layers: {path}: {[(r['user']['flags'], frame_names(r)) for r in rows][:2]}")


def stuck_stack(daemon, pid, name, flags=()):
    """Returns the stack of the thread that waits below a function of this name, once it is named and
    has these flags. What was not known of the process at one cut is known at a later one."""
    seen = [{"frames": [], "flags": []}]

    def look():
        daemon.cut()
        rows = daemon.ctl_json("stuck", "--idle", "-p", pid)["rows"]
        seen.extend(r["user"] for r in rows if name in frame_names(r))
        return seen[-1]["frames"] and seen[-1]["flags"] == list(flags)

    with contextlib.suppress(TimeoutError):
        wait_until(look, f"{name} in a stack")
    return seen[-1]


def check_made(daemon, pid, label):
    """Checks functions made at run time, which the process lists in its own /tmp, under its own
    pid."""
    stack = stuck_stack(daemon, pid, "jit:outer", ["frame_pointers"])
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
        leave_out("no code is made on this machine")
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
        leave_out("no library here to load from memory")
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
    program = subprocess.Popen([prog("prog_jit"), "vdso", "600000"])
    atexit.register(stop_process, program)

    def look():
        return [r["user"]["frames"][:4] for r in samples(daemon, program.pid) if r.get("user")
                and r["user"]["frames"][0].get("module") == "[vdso]"]

    def whole():
        return [frames for frames in look() if "read_clock" in [f.get("name") for f in frames]]

    # The first samples may be taken before the daemon has read the vdso.
    found = check_until(whole, "vdso: the stack goes on below it", look)
    if not found:
        return
    # Some vdsos have functions of their own below it, which no symbol names.
    inside = [frame for frames in found for frame in frames if frame.get("module") == "[vdso]"]
    check(any("clock_gettime" in (frame.get("name") or "") for frame in inside),
          f"vdso: it is named: {inside}")
    stop_process(program)


def check_java(daemon):
    """Checks a JVM with frame pointers, which writes its perf map on request."""
    if not all(map(shutil.which, ("java", "javac", "jcmd"))):
        leave_out("no java here: its functions")
        return
    source = os.path.join(daemon.dir, "Spin.java")
    with open(source, "w", encoding="ascii") as f:
        f.write(JAVA)
    if run(["javac", "-d", daemon.dir, source]).code != 0:
        leave_out("javac does not work here")
        return
    java = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "-XX:-Inline", "-cp", daemon.dir,
                             "Spin"])
    atexit.register(stop_process, java)

    def named():
        run(["jcmd", str(java.pid), "Compiler.perfmap"])
        for stack in user_samples(daemon, java.pid):
            at = [i for i, name in enumerate(stack) if "stackdInner" in name]
            if at and "stackdOuter" in "".join(stack[at[0] + 1 : at[0] + 2]):
                return stack
        return None

    check_until(named, "java: named by its perf map", lambda: user_samples(daemon, java.pid)[:3])
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
        leave_out("no node here: its functions")
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

    check_until(chain, "node: named by its perf map", lambda: user_stacks(daemon, spinner.pid)[:3])
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
    use = CpuUse(daemon.process.pid)
    done = run([sys.executable, "-c", code, os.path.join(daemon.dir, "holes")])
    use.check(2 / 3, "mapping code in a loop costs the daemon")
    check(done.code == 0, f"mapping code in a loop: {done.out.strip()} {done.err.strip()[-200:]}")
    check(daemon.ctl("status").code == 0, "the daemon answers after it")


need_live()
for tool in ("unshare", "ldd", "strip", "readelf", "nm", "taskset"):
    need_tool(tool)
daemon = Daemon("window.length=1s")
bare = check_stripped(daemon)
if bare:
    check_build_ids(daemon, bare, "--window", "10min")
equal = check_equal_files(daemon)
check_other_root(daemon)
check_layers(daemon)
check_jit(daemon)
check_memory_file(daemon)
check_deleted(daemon)
check_vdso(daemon)
if not EVENTS_ONLY:
    check_node(daemon)
    check_java(daemon)
    check_odd_files(daemon)
limit = {l["name"]: l for l in daemon.status()["limits"]}["symbols.perf_maps"]
check(limit["value"] > 0 and limit["hits"] == 0, f"perf maps have a limit, not reached: {limit}")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
daemon.start()
check_equal_files_kept(daemon, equal)
if bare:
    check_build_ids(daemon, bare, "--window", "1h")
    if not EVENTS_ONLY:
        check_debuginfod(daemon, bare)
daemon.stop()
finish()
