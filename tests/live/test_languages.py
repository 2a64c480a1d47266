#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows stacks of programs in Rust as its compiler makes them, also static ones: they are whole,
with the names of their functions, down to where the program or the thread began."""

from harness import *

COUNT = 8

RUST = """
use std::{hint::black_box, io::Read, thread, time::Duration};
struct Ledger { n: u64 }
trait Post { fn post(&mut self, depth: u64) -> u64; }
impl Post for Ledger {
    #[inline(never)]
    fn post(&mut self, depth: u64) -> u64 {
        if depth > 0 { return black_box(self.post(depth - 1)) + 1; }
        thread::sleep(Duration::from_millis(2));
        self.n += 1;
        self.n
    }
}
#[inline(never)]
fn settle<T: Post>(post: &mut T) -> u64 {
    let mut sum = 0;
    for _ in 0..COUNT { sum += black_box(post.post(3)); }
    black_box(sum)
}
fn main() {
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let thread = thread::Builder::new().name("books".into()).spawn(|| black_box(settle(&mut Ledger { n: 1 })));
    let mut sum = black_box(settle(&mut Ledger { n: 0 }));
    sum += thread.unwrap().join().unwrap();
    println!("done {}", sum);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
""".replace("COUNT", str(COUNT))

def build(daemon, name, compiler, source, *argv):
    """Builds a program; returns its path, or None where it cannot be built here."""
    path = os.path.join(daemon.dir, name)
    with open(os.path.join(daemon.dir, source[0]), "w", encoding="ascii") as f:
        f.write(source[1])
    done = run([compiler, *argv, "-o", path, os.path.join(daemon.dir, source[0])], timeout=180)
    if done.code:
        leave_out(f"{name} cannot be built here: {done.err[-300:]}")
    return None if done.code else path


def stacks(daemon, path, function):
    """Runs a program to the end of its sleeps; returns its rows below a function."""
    program = daemon.settled(Program("", path=path).ready()).go().done()
    rows = daemon.snapshot("-p", program.pid)["rows"]
    program.end()
    return [r for r in rows if r["state"] == "S" and any(function in n for n in frame_names(r))]


def has_chain(names, chain):
    """True if these names are in the stack in this order; other frames may be between them."""
    rest = iter(names)
    return all(any(part in name for name in rest) for part in chain)


def check_stacks(label, rows, chain, ends):
    found = [r for r in rows if has_chain(frame_names(r), chain) and frame_names(r)[-1] in ends]
    whole = [r for r in found if not r["user"]["flags"]]
    # A sleep that the scheduler hides is counted as lost.
    check(COUNT - 1 <= row_sum(whole, "count") <= COUNT,
          f"{label}: {row_sum(whole, 'count')} of {COUNT} whole: "
          f"{[(r['user']['flags'], frame_names(r)) for r in rows if r not in whole][:2]}")


def check_rust(daemon):
    rustc = shutil.which("rustc")
    if not rustc:
        leave_out("no rustc here: programs in Rust")
        return
    post = ["Post>::post"] * 4
    for label, argv in {"rust": [], "rust, static": ["-C", "target-feature=+crt-static"],
                        "rust, static without PIE":
                            ["-C", "target-feature=+crt-static", "-C", "relocation-model=static"],
                        }.items():
        path = build(daemon, label.replace(" ", "-"), rustc, ("books.rs", RUST), "-O", *argv)
        if not path:
            continue
        rows = stacks(daemon, path, "Post>::post")
        check_stacks(label, rows, [*post, "settle", "main"], {"_start"})
        check_stacks(f"{label}: a thread", rows, [*post, "settle"],
                     {"clone3", "__clone3", "clone", "__clone", "start_thread"})


need_live()
daemon = Daemon()
check_rust(daemon)
check_nothing_lost(daemon.status(), "status")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
