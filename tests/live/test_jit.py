#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows stacks through code that node and java make at run time and publish in a perf map: they are
whole, with the names of the functions, between the frames of the programs that run the code."""

from harness import *

COUNT, WARMUP = 100, 20

SCRIPT = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function rest(n) { Atomics.wait(cell, 0, 0, 2); return n + 1; }
function settle(n) { return rest(n) + 1; }
class Ledger { post(n) { return settle(n) + 1; } }
const ledger = new Ledger();
function work(count) { let sum = 0; for (let i = 0; i < count; i++) sum += ledger.post(i); return sum; }
work(WARMUP);
console.log("ready");
require("fs").readSync(0, Buffer.alloc(1));
work(COUNT);
console.log("done");
while (require("fs").readSync(0, Buffer.alloc(1)));
""".replace("COUNT", str(COUNT)).replace("WARMUP", str(WARMUP))

CLASS = """
public class Books {
    static long rest(int n) throws Exception { Thread.sleep(2); return n + 1; }
    static long settle(int n) throws Exception { return rest(n) + 1; }
    static long post(int n) throws Exception { return settle(n) + 1; }
    static long work(int count) throws Exception {
        long sum = 0;
        for (int i = 0; i < count; i++) sum += post(i);
        return sum;
    }
    public static void main(String[] args) throws Exception {
        work(WARMUP);
        System.out.println("ready");
        System.in.read();
        work(COUNT);
        System.out.println("done");
        while (System.in.read() >= 0);
    }
}
""".replace("COUNT", str(COUNT)).replace("WARMUP", str(WARMUP))


def write(daemon, name, text):
    path = os.path.join(daemon.dir, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def check_chain(daemon, label, start, chain, ends):
    """Checks the program that start() returns."""

    def is_right(row):
        rest = iter(frame_names(row))
        return (set(row["user"]["flags"]) == {"frame_pointers"} and frame_names(row)[-1] in ends and
                all(any(re.search(part, name) for name in rest) for part in chain))

    program = daemon.settled(start()).go().done()
    rows = [r for r in daemon.snapshot("-p", program.pid)["rows"] if r["state"] == "S"]
    program.end()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/tmp/perf-{program.pid}.map")
    n = row_sum([r for r in rows if is_right(r)], "count")
    # A JVM may interrupt a sleep, which is then two waits.
    if not check(n >= COUNT - 1, f"{label}: {n} of {COUNT} are whole and named"):
        for row in rows:
            print(f"  {row['count']} {row['user']['flags']} {' < '.join(frame_names(row))}")


def check_node(daemon):
    """Checks node with its first compiler alone, so that each function has a frame of its own."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        leave_out("no node here")
        return
    path = write(daemon, "books.js", SCRIPT)

    def start():
        return Program("", "--perf-basic-prof", "--always-sparkplug", "--no-opt",
                       "--no-logfile-per-isolate", f"--logfile={daemon.dir}/v8.log", path,
                       path=node).ready()

    chain = [rf"^JS:\W*{name} " for name in ("rest", "settle", "post", "work")]
    check_chain(daemon, "node", start, [*chain, "node::Start"], {"_start"})


def check_java(daemon):
    """Checks a JVM, which writes its map on request."""
    if not all(shutil.which(tool) for tool in ("java", "javac", "jcmd")):
        leave_out("no java, javac and jcmd here")
        return
    done = run(["javac", "-d", daemon.dir, write(daemon, "Books.java", CLASS)])
    check(done.code == 0, f"javac: {done.err.strip()[-200:]}")

    def start():
        program = Program("", "-XX:+PreserveFramePointer", "-Xcomp", "-XX:CompileOnly=Books",
                          "-XX:-Inline", "-cp", daemon.dir, "Books",
                          path=shutil.which("java")).ready()
        start.done = run(["jcmd", str(program.pid), "Compiler.perfmap"])
        start.path = f"/tmp/perf-{program.pid}.map"
        return program

    start().end()
    if start.done.code or not os.path.exists(start.path):
        leave_out(f"this java writes no map: {start.done.out.strip()[-200:]}")
        return
    chain = [rf"\bBooks\.{name}\(" for name in ("rest", "settle", "post", "work")]
    check_chain(daemon, "java", start, [*chain, "JavaCalls::call_helper", "start_thread"],
                {"clone3", "__clone3", "clone", "__clone"})


need_live()
# node and a JVM need 3 MiB, and other programs may run at the same time
daemon = Daemon("unwind.max_memory=64M")
check_node(daemon)
check_java(daemon)
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
