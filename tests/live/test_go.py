#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares stacks of Go programs with what Go's own runtime reports: below assembly without a
frame, from system calls, goroutines, other stacks of the runtime and C, in programs with names,
without names, and position-independent. The stacks must be whole, with no function left out, and
must not go on beyond the start."""

from harness import *
from unwound import begins_with

COUNT = 8

GO = """
package main

import ("bufio"; "fmt"; "io"; "os"; "runtime"; "strings"; "syscall"; "time"; _ "unsafe")

var ts = syscall.Timespec{Nsec: 2000000}
var place string
var shown bool

func nap(ts *syscall.Timespec)

//go:linkname systemstack runtime.systemstack
//go:noescape
func systemstack(fn func())

// Prints the stack from work() on as the runtime has it, once.
func show() {
	var names []string
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more && !shown; {
		var frame runtime.Frame
		frame, more = frames.Next()
		names = append(names, frame.Function)
	}
	if !shown { fmt.Println("stack", strings.Join(names, ";")) }
	shown = true
}

//go:noinline
func work(n int) int {
	show()
	switch place {
	case "leaf": nap(&ts)
	case "call": syscall.Nanosleep(&ts, nil)
	case "system": systemstack(func() { nap(&ts) })
	case "parked": time.Sleep(2 * time.Millisecond)
	}
	return n + 1
}

FUNCTIONS
//go:noinline
func settle() (sum int) {
	for i := 0; i < COUNT; i++ { sum += f1(i) }
	return sum
}

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	in.ReadByte()
	place = os.Args[1]
	if place == "goroutine" {
		place = "leaf"
		done := make(chan int)
		go func() { done <- settle() }()
		<-done
	} else { settle() }
	fmt.Println("done")
	io.ReadAll(in)
}
""".replace("COUNT", str(COUNT)).replace("FUNCTIONS", "\n".join(
    f"//go:noinline\nfunc f{i}(n int) int {{ return {f'f{i + 1}' if i < 10 else 'work'}(n) + {i} }}"
    for i in range(1, 11)))

ASSEMBLY = """
#include "textflag.h"
TEXT \u00b7nap(SB), NOSPLIT, $0-8
	MOVQ $35, AX
	MOVQ ts+0(FP), DI
	MOVQ $0, SI
	SYSCALL
	RET
"""

CGO = """
package main

/*
#include <time.h>
extern void goBack(void);
static __attribute__((noinline)) int c_leaf(int n) {
	struct timespec ts = { .tv_nsec = 2000000 };
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL) + n;
}
static __attribute__((noinline)) int c_outer(int n) { return c_leaf(n + 1) + 1; }
static __attribute__((noinline)) int c_back(int n) { goBack(); return n + 1; }
*/
import "C"
import ("bufio"; "fmt"; "io"; "os"; "syscall")

//go:noinline
//export goBack
func goBack() {
	ts := syscall.Timespec{Nsec: 2000000}
	syscall.Nanosleep(&ts, nil)
}

//go:noinline
func below(n int) int { return int(C.c_outer(C.int(n))) + 1 }

//go:noinline
func around(n int) int { return int(C.c_back(C.int(n))) + 1 }

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	in.ReadByte()
	for i := 0; i < COUNT; i++ { below(i); around(i) }
	fmt.Println("done")
	io.ReadAll(in)
}
""".replace("COUNT", str(COUNT))

PLAIN = {"names": [], "stripped": ["-ldflags=-s -w"],
         "stripped, to be loaded anywhere": ["-buildmode=pie", "-ldflags=-s -w"]}
CALLS = ("syscall.", "runtime/internal/syscall.", "internal/runtime/syscall.")


def build(daemon, label, files, *argv):
    """Builds a program; returns its path, or None where it cannot be built here."""
    folder = os.path.join(daemon.dir, re.sub(r"\W+", "-", label))
    os.makedirs(folder)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    environment = {**os.environ, "GOCACHE": os.path.join(daemon.dir, "cache"), "GO111MODULE": "off",
                   "GOFLAGS": "-p=1"}
    done = run(["go", "build", *argv, "-o", "program", "."], timeout=400, env=environment, cwd=folder)
    if done.code:
        leave_out(f"{label} cannot be built here: {done.err[-300:]}")
    return None if done.code else os.path.join(folder, "program")


def names_of(row):
    """Returns the names without the mark of the calling convention, which Go's runtime leaves out,
    too."""
    names = [name.removesuffix(".abi0") for name in frame_names(row)]
    return [name for i, name in enumerate(names) if i == 0 or name != names[i - 1]]


def stacks(daemon, path, *args):
    """Returns the program and its rows, after its sleeps."""
    program = daemon.settled(Program("", *args, path=path).ready()).go().done()
    rows = [r for r in daemon.snapshot("-p", program.pid)["rows"] if r["state"] == "S"]
    program.end()
    return program, rows


def check_count(label, rows, good, flags=()):
    found = [r for r in rows if good(names_of(r)) and set(r["user"]["flags"]) == set(flags)]
    n = row_sum(found, "count")
    # A sleep that the scheduler hides is counted as lost.
    is_right = check(COUNT - 1 <= n <= COUNT, f"{label}: {n} of {COUNT} right")
    for row in rows if not is_right else []:
        if row not in found and row["count"]:
            print(f"  {row['count']} {row['user']['flags']} {' < '.join(names_of(row))}")


def truth_of(program):
    line = next(line for line in program.lines if line.startswith("stack "))
    return line.split(" ", 1)[1].split(";")


def check_plain(daemon, label, path):
    for place in ("leaf", "goroutine"):
        program, rows = stacks(daemon, path, place)
        truth = truth_of(program)
        check(truth[-1] == "runtime.goexit" and "main.f10" in truth, f"{label}: the truth is {truth}")
        check_count(f"{label}, {place}", rows, lambda names: names == ["main.nap", *truth])

    program, rows = stacks(daemon, path, "call")
    truth = truth_of(program)

    def is_call(names):
        calls = names[:-len(truth)]
        return (names[-len(truth):] == truth and calls[-1:] == ["syscall.Nanosleep"] and
                len(calls) > 2 and all(name.startswith(CALLS) for name in calls))

    check_count(f"{label}, a system call", rows, is_call)

    program, rows = stacks(daemon, path, "system")
    truth = truth_of(program)
    check_count(f"{label}, on the system's stack", rows,
                lambda names: names == ["main.nap", "main.work.func1", "runtime.systemstack", *truth],
                ["frame_pointers"])

    # The goroutine that a thread ran last before it went idle does not wait in that thread.
    _, rows = stacks(daemon, path, "parked")
    idle = [names_of(r) for r in rows if "runtime.schedule" in names_of(r)]
    check(idle and all(names[-1] in ("runtime.mcall", "runtime.mstart") for names in idle) and
          not any(name.startswith("main.") for names in idle for name in names),
          f"{label}: idle threads wait at {idle[:3]}")


def check_c(daemon, label, path, has_names):
    _, rows = stacks(daemon, path)
    go_end = ["main.main", "runtime.main", "runtime.goexit"]

    def is_below(names):
        return begins_with(names, [..., *(["c_leaf", "c_outer"] if has_names else []), ...,
                                   "runtime.asmcgocall", ..., "main._Cfunc_c_outer", "main.below",
                                   *go_end])

    def is_around(names):
        return begins_with(names, [..., "syscall.Nanosleep", "main.goBack", ..., "runtime.cgocallback",
                                   "crosscall2", *(["goBack", "c_back"] if has_names else []), ...,
                                   "runtime.asmcgocall", ..., "main._Cfunc_c_back", "main.around",
                                   *go_end])

    check_count(f"{label}, below C", rows, is_below, ["frame_pointers"])
    check_count(f"{label}, called by C", rows, is_around, ["frame_pointers"])


need_live()
need_tool("go")
# compilers that run at the same time may use all of the default
daemon = Daemon("unwind.max_memory=64M")
built = 0
for label, argv in PLAIN.items():
    path = build(daemon, label, {"main.go": GO, "nap_amd64.s": ASSEMBLY}, *argv)
    if path:
        built += 1
        check_plain(daemon, label, path)
for label, argv in {"cgo": [], "cgo, stripped": ["-ldflags=-s -w"],
                    "cgo, stripped, to be loaded anywhere":
                        ["-buildmode=pie", "-ldflags=-s -w"]}.items():
    path = build(daemon, label, {"main.go": CGO}, *argv)
    if path:
        built += 1
        check_c(daemon, label, path, not argv)
check_nothing_lost(daemon.status(), "status")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
if not built:
    skip("no program in Go can be built here")
finish()
