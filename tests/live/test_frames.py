#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares user stacks with elfutils: programs of Debian and one in C++ are stopped at random
moments, eu-stack walks the stopped threads, and stackd's stacks of the same stops have the same
frames, address by address. A stack that is marked as incomplete ends early, with the right frames
up to there."""

import collections
import random

from harness import *

STOPS = int(os.environ.get("STOPS", "20"))

PYTHON = """
import json, re, threading, time
class Item:
    def __init__(self, n): self.n = n
    def __lt__(self, other):
        if self.n == 97: time.sleep(0.0001)
        return self.n < other.n
def numbers(n):
    if n: yield from numbers(n - 1)
    yield n
def hook(d):
    time.sleep(0.0002)
    return d
def work():
    while True:
        sorted(Item(i * 7919 % 301) for i in numbers(30) for _ in range(30))
        re.sub("[a-c]", lambda m: m.group().upper(), "abcabd" * 500)
        json.loads('[{"a": {"b": 1}}, {"c": 2}]', object_hook=hook)
        time.sleep(0.0005)
threading.Thread(target=work, daemon=True).start()
work()
"""

PERL = """
sub deep { my $n = shift; return $n ? deep($n - 1) + 1 : do { select(undef, undef, undef, 0.0003); 0 } }
$SIG{ALRM} = sub { my $x = deep(3); };
while (1) {
    my @sorted = sort { $a == 17 && $b == 301 and deep(2); $a <=> $b } map { $_ * 7919 % 301 } 1 .. 3000;
    my $text = join ",", @sorted;
    $text =~ s/(\\d+)/$1 + 1/ge;
    eval { deep(20); die "done" };
    sprintf("%s", $text) for 1 .. 50;
}
"""

BASH = """
trap 'x=$((x + 1))' USR1
deep() { if (($1)); then deep $(($1 - 1)); else read -rt 0.001 <> <(:); fi; }
while :; do
    for i in {1..500}; do y="${x//1/2}$i"; done
    deep 10
    kill -USR1 $$
    case $y in *z*) ;; *) [[ $y =~ ^(.*)5 ]] && y=${BASH_REMATCH[1]} ;; esac
done
"""


SQL = """
create table t (a, b); create index i on t (b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 300)
  insert into t select x, x * 7919 % 301 || '-' || x from c;
with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000000)
  select sum(length(b)) from c, t where b like '%' || (x % 10) || '%' group by a order by 1;
"""

VIM = "|".join(("while 1", "let x = sort(map(range(300), 'v:val * 7919 % 301'))",
                "let y = substitute(join(x, ','), '\\(\\d\\+\\),\\(\\d\\)', '\\2-\\1', 'g')",
                "call setline(1, y)", "silent! %s/3/33/g", "endwhile"))

# The programs, where they are installed; each works for at least a minute.
TOUR = {
    "awk": ["-f", "-"],
    "openssl": ["speed", "-seconds", "100", "rsa2048"],
    "sort": ["--parallel=2", "-R", "/dev/stdin"],
    "sqlite3": [":memory:", SQL],
    "vim": ["-u", "NONE", "-i", "NONE", "-n", "-es", "-c", VIM],
    "xz": ["-9", "-c", "/dev/zero"],
    "tclsh": [],
}
INPUT = {
    "awk": 'BEGIN { while (1) { s = ""; for (i = 0; i < 300; i++) { a[i % 50] = s; s = s sprintf("%d,", i * 7919 % 301) }'
           ' gsub(/[0-9]+,/, "<&>", s); n = split(s, b, "<"); x = substr(s, n, 20) ~ /3.*1/ } }',
    "sort": "\n".join(str(i * 7919 % 30011) for i in range(2_000_000)),
    "tclsh": "proc f {n} { if {$n} { return [expr {[f [expr {$n - 1}]] + 1}] } else { return 0 } }\n"
             "while 1 { f 20; lsort -command {apply {{a b} {expr {$a < $b}}}} {5 3 8 1 9 2 7} }\n",
}


def eu_stacks(pid):
    """Returns the frame addresses of each thread of a stopped process."""
    threads = run(["eu-stack", "-n", "500", "-p", str(pid)]).out.split("\nTID ")[1:]
    return [tuple(int(a, 16) for a in re.findall(r"^#\d+ +0x([0-9a-f]+)", thread, re.MULTILINE))
            for thread in threads]


def is_stopped(pid):
    def state(tid):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    return all(state(tid) == "T" for tid in threads_of(pid))


def stops_of(pid, stops):
    """Stops the process `stops` times; returns the stacks of its threads by eu-stack."""
    expected = set()
    for _ in range(stops):
        time.sleep(random.uniform(0.003, 0.02))
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(pid), "the process to stop")
        expected.update(eu_stacks(pid))
        os.kill(pid, signal.SIGCONT)
    return expected


def our_stacks(daemon, pid):
    """Returns {addresses: flags} of threads that were stopped, by a signal or by a tracer."""
    ours = {}
    for row in daemon.snapshot("--window", "120s", "-p", pid)["rows"]:
        if row.get("state") in ("T", "t") and row.get("user") and row["count"]:
            frames = row["user"]["frames"]
            # Rows from disk have no addresses.
            if all("address" in f for f in frames):
                ours[tuple(int(f["address"], 16) for f in frames)] = set(row["user"]["flags"])
    return ours


def is_right(frames, flags, expected):
    """True if eu-stack saw the same stack or, if the flags say it is incomplete, one that begins
    with it."""
    if not flags - {"frame_pointers"}:
        return frames in expected
    return any(other[: len(frames)] == frames for other in expected)


def is_found(frames, ours):
    """True if stackd has the stack of eu-stack, which may itself end early where it finds no
    information, and does not say so."""
    return any(mine == frames or (flags and frames[: len(mine)] == mine)
               for mine, flags in ours.items())


def check_program(daemon, label, process, stops=STOPS, least=STOPS // 4):
    time.sleep(0.5)
    expected = stops_of(process.pid, stops)
    # The program may by chance have been stopped in few functions only.
    for _ in range(8):
        if len(expected) < least:
            expected |= stops_of(process.pid, stops)
    # Once a process has exited, its stacks are those of all processes of its program, which have no
    # addresses.
    ours = our_stacks(daemon, process.pid)
    stop_process(process)
    flagged = collections.Counter(flag for flags in ours.values() for flag in flags)
    wrong = [(sorted(flags), [hex(a) for a in frames]) for frames, flags in ours.items()
             if not is_right(frames, flags, expected)]
    missing = sum(not is_found(frames, ours) for frames in expected)
    check(len(ours) >= least, f"{label}: {len(ours)} different stacks of stopped threads, "
          f"{sum(len(frames) for frames in ours)} frames")
    if not check(not wrong, f"{label}: 0 wrong, cut: {dict(flagged) or 0}: {wrong[:2]}"):
        for _, mine in wrong[:2]:
            same = [frames for frames in expected if frames and hex(frames[0]) == mine[0]]
            print(f"  eu-stack: {[[hex(a) for a in frames] for frames in same[:2]]}")
    check(missing <= len(expected) // 10,
          f"{label}: {missing} of {len(expected)} that eu-stack saw are missing")


def start(*argv, text=None):
    source = subprocess.DEVNULL
    if text:
        source = tempfile.TemporaryFile()
        source.write(text.encode())
        source.seek(0)
    process = subprocess.Popen(argv, stdin=source, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    atexit.register(stop_process, process)
    return process


def check_tour(daemon):
    for name, args in TOUR.items():
        if not shutil.which(name):
            leave_out(f"no {name} here")
            continue
        process = start(shutil.which(name), *args, text=INPUT.get(name))
        # A program that fills memory or reads may be stopped at the same instruction each time.
        check_program(daemon, name, process, STOPS // 2, 1)


need_live()
need_tool("eu-stack")
seed = int(os.environ.get("SEED", time.time_ns() % 100000))
random.seed(seed)
print(f"seed {seed}")
daemon = Daemon("window.length=2s")
check_program(daemon, "python3", start("/usr/bin/python3", "-c", PYTHON))
check_program(daemon, "perl", start("/usr/bin/perl", "-e", PERL))
check_program(daemon, "bash", start("/bin/bash", "-c", BASH))
check_tour(daemon)
if os.path.exists(os.path.join(PROGS, "prog_frames")):
    check_program(daemon, "C++", start(os.path.join(PROGS, "prog_frames")))
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
