# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts one fault after the other into a copy of the tree, and says which test finds it. Each is one that a
programmer could make, and breaks a law of tests/README.md. By hand, as root: a mutant takes about a minute. The
output of the tests is in $TMPDIR/stackd-mutants/*.log, from which one sees whether the fault made them fail.

Usage: mutants.py [NUMBER...]      copies the tree to $TMPDIR/stackd-mutants, builds it, runs the tests of all
                                   mutants (or of these) without one, then each mutant's own tests
       mutants.py -l               lists the mutants
       mutants.py --check BUILD    checks that each text is once in its file, and that its tests are in the gate
Ends with 1 if a mutant lives or does not build, or if a check fails.
"""

import collections
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = os.path.join(tempfile.gettempdir(), "stackd-mutants")
TREE, BUILD = os.path.join(PLACE, "tree"), os.path.join(PLACE, "build")

Mutant = collections.namedtuple("Mutant", "path old new law tests")

MUTANTS = [Mutant(*fields) for fields in (
    ("bpf/offcpu.bpf.c", "w->start_ns < cut.start_ns[slot])", "w->start_ns < cut.start_ns[slot ^ 1])",
     "1: a wait over a cut is in one window whole", "gate_rotation"),
    ("bpf/thread.bpf.h", "\t\tt->at_cut.runnable_ns += span_ns(wake_ns > from ? wake_ns : from, at);\n", "",
     "1: time for which a thread was ready before a cut is counted after it", "gate_conservation"),
    ("bpf/offwake.bpf.c", "\tkey.path = wake_path(s->links);\n", "",
     "4: waits that two wakers ended have the name of the first", "gate_wakers"),
    ("bpf/unwind.bpf.h", "\tw->is_exact = 1;\n\treturn 0;", "\treturn 0;",
     "3: what a signal interrupted is taken for a caller", "live_open_stacks"),
    ("bpf/iolat.bpf.c", "t->is_error = ret < 0;", "t->is_error = ret <= 0;",
     "2: a read at the end of a file counts as failed", "live_iolat_crowd"),
    ("bpf/oncpu.bpf.c", "key.tid = task->pid;", "key.tid = task->tgid;",
     "4: samples have the id of the process in place of the thread's", "gate_lifetimes"),
    ("bpf/openwait.bpf.c", "\t\tt->user_looks = 0;\n", "",
     "3: a wait has the attempts of the one before, and gets no stack", "live_open_stacks"),
    ("bpf/stackcount.bpf.c", "\tcpu->counts.calls_passed = 0;\n\treturn count;", "\treturn count;",
     "2: each call stands for those before it again", "gate_stackcount"),
    ("daemon/drain/map_read.c", "i < batch.n;", "i + 1 < batch.n;",
     "2: the last row of a batch is lost", "gate_rotation"),
    ("daemon/drain/records.c", "\t\tstack->mappings = record->mappings;\n", "",
     "4: stacks are named by later mappings", "gate_reload"),
    ("daemon/drain/cut.c", "+= counts.lost[i] - drain->last.lost[i];", "+= counts.lost[i];",
     "5: each window has the losses of all before", "live_iolat_crowd"),
    ("daemon/window/fold_counts.c", "\t\tview->samples[n - 1].on_ns += sample->on_ns;\n", "",
     "9: the time of samples that are merged is gone", "fold"),
    ("daemon/window/namer.c", "if (has_changing || stack->n_named < n)", "if (has_changing)",
     "4: a stack without all names is not named again", "resolver"),
    ("daemon/window/stack.c", "stack->n_raw == n && stack->process == process &&", "stack->n_raw == n &&",
     "3: a stack of another process with the same id is taken for this one", "stack"),
    ("daemon/query/aggregate_waits.c", "\twait->is_counted = true;\n", "",
     "2: an open wait counts once for each window", "aggregate"),
    ("daemon/store/timeline_coverage.c", " &&\n\t    strcmp(last->reason, reason) == 0) {", ") {",
     "5: a gap has the reason of the one before", "timeline"),
    ("daemon/query/time_range.c", "\tif (range->is_length)\n\t\trange->since -= range->until - newest_ns;\n", "",
     "5: the last 10 s are fewer", "time_range"),
    ("daemon/query/snapshot.c", "!question->filter.wire->pids.n;", "!question->filter.wire->tids.n;",
     "9: a filter by pid misses processes that were folded", "gate_fold"),
    ("daemon/session/filter.c", "!filter->wanted.has_reasons && filter->min_ns == 0 &&",
     "!filter->wanted.has_reasons &&",
     "2: short waits are in an answer about long ones", "filter"),
    ("daemon/session/session_groups.c", ".level = depth + 1 };", ".level = depth };",
     "4: a session of a unit records another cgroup", "gate_sessions"),
    ("daemon/session/governor.c", "\tif (!is_under)\n\t\tgovernor->under_since_ns = 0;\n\telse if (!governor",
     "\tif (is_under && !governor", "7: a step is taken back after a peak", "governor"),
    ("daemon/session/session.c", "\tprobe_close(probe);\n\tif (!r)\n", "\tif (!r)\n",
     "7: the BPF programs of a session stay loaded", "gate_sessions"),
    ("daemon/store/tier.c", "\tstore->sums[next].bytes += row->size;\n", "",
     "7: bytes that move to a tier are not counted there", "store_writer"),
    ("daemon/window/window.h", "\tsum->max_end_ns = row->max_end_ns;\n", "",
     "5: the longest wait of merged windows has the time of another", "downsample"),
    ("daemon/store/intern.c", "(uint64_t)stack->names_version << 32 |", "",
     "4: a stack that was named again is stored with its old names", "live_late_names"),
    ("daemon/store/window_blob.c", "\twindow->lost[WINDOW_LOST_OTHER] += count;\n", "",
     "5: a loss that a later version wrote is not shown", "window_blob"),
    ("daemon/process/table.c", "\t\trestore_comm(process);\n", "",
     "4: a process has the name of what it executed later", "process"),
    ("daemon/process/maps.c", "mappings->items[first].start < map->end;", "mappings->items[first].start <= map->end;",
     "4: a library that was unmapped below another is forgotten", "process"),
    ("daemon/process/perf_map.c", "\t\tuser_discharge(map->user, map->bytes);\n\t\tuser_put",
     "\t\tuser_put", "7: what a user's freed maps took stays counted", "perf_map"),
    ("daemon/symbol/symtab_build.c", "if (was_sizeless && item->start < covered)",
     "if (was_sizeless && item->start <= covered)",
     "4: a function without a size behind one with a size has no name", "module"),
    ("daemon/host/remote_mounts.c", "for (size_t i = table->n; i-- > 0;)", "for (size_t i = 0; i < table->n; i++)",
     "10: what is mounted over a local directory counts as local", "remote_mounts"),
    ("daemon/host/opener.c", "\tpthread_cond_broadcast(&state.is_free);\n", "",
     "10: who waits for a process that opens files is not woken", "opener"),
    ("daemon/service/admission.c", "\t\tadmission->n_long -= place->is_long;\n", "",
     "6: long answers that ended take up places", "admission"),
    ("daemon/service/service.c", "i = METHOD_QUERY; i <= class; i++", "i = METHOD_QUERY; i < class; i++",
     "10: who may query may also control", "service"),
)]


def check(build):
    """Yields what is wrong with the table."""
    with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as f:
        tests = {test["name"]: {suite.partition(":")[2] for suite in test["suite"]} for test in json.load(f)}
    for i, mutant in enumerate(MUTANTS, 1):
        with open(os.path.join(ROOT, mutant.path), encoding="utf-8") as f:
            n = f.read().count(mutant.old)
        if n != 1:
            yield f"{i}: {mutant.path} has {mutant.old!r} {n} times"
        yield from (f"{i}: {name} is no test of the gate" for name in mutant.tests.split()
                    if "gate" not in tests.get(name, ()))


def tree_copy():
    """Makes TREE like the tree. A file that is alike keeps its time, so that little is built again."""
    for folder, folders, files in os.walk(ROOT):
        if folder == ROOT:
            folders[:] = [name for name in folders if name != ".git" and not name.startswith("build")]
        to = os.path.join(TREE, os.path.relpath(folder, ROOT))
        os.makedirs(to, exist_ok=True)
        for name in files:
            source, copy = os.path.join(folder, name), os.path.join(to, name)
            if not os.path.exists(copy) or not filecmp.cmp(source, copy, shallow=False):
                shutil.copy(source, copy)


def passes(log, *argv):
    """Runs a command. Its output goes to a file in PLACE, from which one sees why a test failed."""
    with open(os.path.join(PLACE, f"{log}.log"), "w", encoding="utf-8") as out:
        return subprocess.run(argv, stdout=out, stderr=out, check=False).returncode == 0


def test_passes(log, name):
    return passes(log, "meson", "test", "-C", BUILD, "--print-errorlogs", "-t", "3", name)


def judge(number):
    """Returns (what became of the mutant, whether a test has killed it)."""
    mutant = MUTANTS[number - 1]
    path = os.path.join(TREE, mutant.path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(mutant.old, mutant.new))
        if not passes(number, "ninja", "-C", BUILD, "daemon/stackd"):
            return "does not build", False
        killer = next((name for name in mutant.tests.split() if not test_passes(number, name)), None)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    return (f"killed by {killer}", True) if killer else ("alive", False)


def main(argv):
    if argv[:1] == ["--check"]:
        wrong = list(check(argv[1]))
        print("\n".join(wrong) or f"{len(MUTANTS)} mutants")
        return 1 if wrong else 0
    if argv[:1] == ["-l"]:
        for i, mutant in enumerate(MUTANTS, 1):
            print(f"{i:2} {mutant.path}: law {mutant.law} ({mutant.tests})")
        return 0
    numbers = {str(i): i for i in range(1, len(MUTANTS) + 1)}
    unknown = [word for word in argv if word not in numbers]
    if unknown:
        sys.exit(f"{unknown[0]} is no mutant: a number from 1 to {len(MUTANTS)}, see -l")
    chosen = [numbers[word] for word in argv] or numbers.values()
    tree_copy()
    if not os.path.exists(BUILD):
        subprocess.run(["meson", "setup", BUILD, TREE], check=True)
    subprocess.run(["ninja", "-C", BUILD, "daemon/stackd"], check=True)
    tests = {name for i in chosen for name in MUTANTS[i - 1].tests.split()}
    wrong = [f"{name} fails without a mutant" for name in sorted(tests) if not test_passes(name, name)]
    for text in wrong:
        print(text)
    for i in chosen:
        verdict, is_killed = judge(i)
        print(f"{i:2} {MUTANTS[i - 1].path}: law {MUTANTS[i - 1].law}: {verdict}", flush=True)
        if not is_killed:
            wrong.append(verdict)
    return 1 if wrong else 0


sys.exit(main(sys.argv[1:]))
