# SPDX-License-Identifier: GPL-2.0-or-later
"""The gateway, stackd-fleet serve: what it answers for one host is that host's own answer, and what is
missing is a gap with its reason. The daemon serves a database that store_tool wrote.

Usage: test_serve.py NAME CACHE; the programs are in the environment. Skips (77) without a server.
"""

import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import test_fleet
from test_fleet import HOST, Fleet, Served, need

NAME = sys.argv[1]
SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fleet/sql")
ALL = ("send.share=100", "send.rows=100000")
# Rows of preempted threads are sent without stacks, so by stack they are no rows of the host.
NO_R = {"not_states": ["R"]}


class Gateway(Served):
    """stackd-fleet serve."""

    def __init__(self, fleet, *settings):  # pylint: disable=super-init-not-called
        self.socket = f"{fleet.directory}/gateway.sock"
        options = [word for setting in settings for word in ("-o", setting)]
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            fleet.argv("-o", f"serve.listen={self.socket}", "-o", "serve.group=root", *options, "serve"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, method="Snapshot", **parameters):
        """Returns the first reply and all rows."""
        return ask(self, method, **parameters)


def ask(daemon, method="Snapshot", **parameters):
    parts = list(daemon.replies(method, probe="offcpu", **parameters))
    return parts[0], [row for part in parts for row in part.get("rows", [])]


def send(fleet, host, *settings):
    options = [word for setting in (f"send.host={host}", *settings) for word in ("-o", setting)]
    return fleet.run(*options, "send", "--once")


def stack_of(stack):
    return stack and (stack["id"], tuple((f["kind"], f.get("name"), f.get("module"), f.get("offset"))
                                         for f in stack["frames"]))


def own_of(rows, is_by_line):
    """What stackd's own rows are, but for their sums."""
    return [(row["state"], row["idle"], is_by_line and row.get("function")) for row in rows if row.get("own")]


def row_of(row, has_stacks):
    """All that a row of the host and that of the gateway have to have in common."""
    process = row["process"]
    who = (row.get("key"),) if "key" in row else (process["pid"], process["comm"], row["comm"])
    stacks = (stack_of(row.get("kernel")), stack_of(row.get("user"))) if has_stacks else ()
    return (who, row["idle"], row["count"], row["total_ns"], row["blocked_ns"], row["runnable_ns"],
            row["throttled_ns"], row["state"], row.get("reason"), json.dumps(row.get("reasons")), row["max_ns"], row.get("max_end", {}).get("ns"),
            row["open"], tuple(row["buckets"]), stacks)


QUESTIONS = [
    {"by": "stack", "filter": NO_R},
    {"by": "stack", "filter": NO_R, "idle": True},
    {"by": "stack", "filter": NO_R, "top": 7},
    {"by": "stack", "filter": NO_R, "sort": "max", "top": 5},
    {"by": "stack", "filter": {"states": ["D"]}},
    {"by": "stack", "filter": {"states": ["S"], "user_stacks": True}},
    {"by": "process", "idle": True},
    {"by": "process", "sort": "count"},
    {"by": "process", "sort": "max", "top": 3},
    {"by": "process", "reverse": True},
    {"by": "process", "idle": True, "fold_own": True},
    {"by": "comm", "idle": True},
    {"by": "comm", "top": 2},
    {"by": "cgroup", "idle": True},
    {"by": "unit", "idle": True},
    {"by": "unit", "top": 1},
    {"by": "container", "idle": True},
    {"by": "user", "idle": True},
    {"by": "reason", "idle": True},
    {"by": "function", "filter": NO_R, "idle": True},
    {"by": "module", "filter": NO_R, "idle": True},
    {"by": "line", "filter": NO_R, "idle": True},
    {"by": "line", "filter": NO_R, "top": 4},
    {"by": "line", "filter": NO_R, "idle": True, "fold_own": True},
    {"by": "line", "filter": {**NO_R, "comm": "*1*"}},
    {"by": "process", "filter": {"comm": "*1*"}},
    {"by": "comm", "filter": {"not_comms": ["*1"]}, "idle": True},
    {"by": "comm", "filter": {"comm": "*1*", "states": ["T"]}, "idle": True},
]


def same(fleet, gateway, since, until, question):
    """The gateway's answer for a host is that of the host: rows, sums, order."""
    asked = {**question, "since_ns": since, "until_ns": until}
    own, own_rows = ask(fleet.daemon, **asked)
    filters = {**question.get("filter", {}), "hosts": [HOST]}
    its, its_rows = gateway.ask(**{**asked, "filter": filters})
    has_stacks = question["by"] == "stack"
    left, right = ([row_of(row, has_stacks) for row in rows] for rows in (own_rows, its_rows))
    where = f"{question} from {since} to {until}"
    sort = {"max": 9, "count": 2}.get(question.get("sort"), 3)
    need([row[sort] for row in left] == [row[sort] for row in right],
         f"{where}: the order is the same:\n{left[:5]}\n{right[:5]}")
    if "top" not in question:
        missing, more = collections.Counter(left), collections.Counter(right)
        need(missing == more, f"{where}: the rows are the same: without {list((missing - more))[:3]}\n"
                              f"more {list((more - missing))[:3]}")
    if question["by"] == "line":
        need([row.get("function") for row in own_rows] == [row.get("function") for row in its_rows],
             f"{where}: the functions of lines")
    ours, theirs = (own_of(rows, question["by"] == "line") for rows in (own_rows, its_rows))
    need(ours == theirs and bool(ours) == bool(question.get("fold_own")),
         f"{where}: the rows of stackd itself: {ours}, {theirs}")
    known, more = (set().union(*rows) for rows in (own_rows, its_rows))
    need(more <= known, f"{where}: rows have no other members than the host's: {more - known}")
    for name in ("shown", "rest", "idle"):
        need(own[name]["total_ns"] == its[name]["total_ns"], f"{where}: {name}: {own[name]}, {its[name]}")
    for name in ("asked", "used", "windows", "covered_ns", "used_ns"):
        need(own["coverage"][name] == its["coverage"][name],
             f"{where}: {name} is {own['coverage'][name]}, not {its['coverage'][name]}")
    if "filter" not in question:
        for name in ("on_cpu_ns", "runnable_ns", "blocked_ns", "throttled_ns", "short_waits", "short_ns", "open_waits"):
            need(own["totals"][name] == its["totals"][name],
                 f"{where}: {name} is {own['totals'][name]}, not {its['totals'][name]}")
    return len(right)


def parts_of(reply):
    """Estimates are not sent by part of the time."""
    return [(part["name"], part["rows"], part["total_ns"]) for part in reply["parts"]]


def same_overview(fleet, gateway, windows, question):
    """The overview of a host is that of the host, but for what is not sent."""
    asked = {"since_ns": windows[2][0], "until_ns": windows[-2][1], "filter": NO_R, "io": True, **question}
    own = list(fleet.daemon.replies("Overview", **asked))
    its = list(gateway.replies("Overview", **{**asked, "filter": {**NO_R, "hosts": [HOST]}}))
    left, right = ([row_of(row, False) for reply in replies for row in reply["rows"] if reply["probe"] == "offcpu"]
                   for replies in (own, its))
    need(left == right, f"{question}: the rows are the same:\n{left[:3]}\n{right[:3]}")
    need(parts_of(own[0]) == parts_of(its[0]), f"{question}: {own[0]['parts']}, {its[0]['parts']}")
    need([reply["probe"] for reply in its if reply["probe"] != its[0]["probe"]] == ["oncpu", "iolat"] and
         all(reply["missing"] for reply in its[-2:]), f"what there is not is said: {its[-2:]}")
    return len(right)


def check_samples(fleet, gateway, windows):
    """The samples of an overview are those of the time of its waits, though their windows end at other times."""
    put_window(fleet, {"probe": "'oncpu'", "start": "start + 2000000000", "end": "end + 2000000000"}, HOST)
    first = next(gateway.replies("Overview", since_ns=windows[2][0], until_ns=windows[9][1], filter={"hosts": [HOST]}))
    samples = [reply for reply in gateway.replies("Overview", since_ns=windows[2][0], until_ns=windows[9][1],
                                                  filter={"hosts": [HOST]}) if reply["probe"] == "oncpu"][0]
    need(first["coverage"]["windows"] == samples["coverage"]["windows"] == 8,
         f"both have as many windows: {first['coverage']}, {samples['coverage']}")
    need(not samples.get("missing"), f"{samples['missing'] if 'missing' in samples else ''}")


def same_slices(fleet, gateway, windows, each_ns):
    """The slices of a host are those of the host."""
    asked = {"since_ns": windows[3][0] + 1, "until_ns": windows[-3][1] - 1, "each_ns": each_ns, "probe": "offcpu",
             "by": "process", "idle": True}
    answers = []
    for daemon, more in ((fleet.daemon, {}), (gateway, {"filter": {"hosts": [HOST]}})):
        slices = collections.defaultdict(lambda: (None, []))
        for reply in daemon.replies("Snapshot", **asked, **more):
            key = reply["coverage"]["used"]["start"]["ns"]
            first, rows = slices[key]
            slices[key] = (first or reply, rows + [row_of(row, False) for row in reply["rows"]])
        answers.append(slices)
    own, its = answers
    need(list(own) == list(its), f"{each_ns}: slices begin at {list(own)[:5]}, not {list(its)[:5]}")
    for key, (reply, rows) in own.items():
        other, other_rows = its[key]
        need(collections.Counter(rows) == collections.Counter(other_rows), f"{each_ns}, {key}: the rows are the same")
        need(parts_of(reply) == parts_of(other), f"{each_ns}, {key}: {reply['parts']}, {other['parts']}")
        for name in ("used", "windows", "used_ns"):
            need(reply["coverage"][name] == other["coverage"][name],
                 f"{each_ns}, {key}: {name} is {reply['coverage']}, not {other['coverage']}")
    return len(own)


def check_slices(fleet, gateway, windows):
    """The slices of several hosts have each window once."""
    asked = {"since_ns": windows[0][0], "until_ns": windows[-1][1], "by": "host", "idle": True}
    whole, rows = gateway.ask(**asked)
    for each_ns in (0, 20 * 10**9):
        replies = list(gateway.replies("Snapshot", probe="offcpu", each_ns=each_ns, **asked))
        sums = collections.Counter()
        for reply in replies:
            for row in reply["rows"]:
                sums[row["host"]] += row["total_ns"]
        need(sums == {row["host"]: row["total_ns"] for row in rows}, f"{each_ns}: {sums}")
        need(sum(reply["coverage"]["windows"] for reply in replies) == whole["coverage"]["windows"],
             f"{each_ns}: each window is in one slice")


def test_overview(directory):
    """An overview, and the slices of a range, of a host and of two."""
    with Fleet(directory, 60, STORE_SHIFT="-600") as fleet:
        fleet.run("schema", "--apply")
        send(fleet, HOST, *ALL)
        send(fleet, "other", *ALL)
        windows = fleet.daemon.windows()
        with Gateway(fleet) as gateway:
            n = sum(same_overview(fleet, gateway, windows, question) for question in (
                {"by": "line", "top": 5}, {"by": "line", "top": 3, "idle": True}, {"by": "process"},
                {"by": "process", "top": 2}))
            slices = sum(same_slices(fleet, gateway, windows, each_s * 10**9) for each_s in (0, 1, 12, 60, 10000))
            check_slices(fleet, gateway, windows)
            check_samples(fleet, gateway, windows)
            need(error_of(gateway, "Snapshot", probe="offcpu", window_ns=3600 * 10**9, each_ns=-1) ==
                 "io.stackd.InvalidTime", "a negative length")
            page, trace = (f"{directory}/report.{suffix}" for suffix in ("html", "pftrace"))
            for path in (page, trace):
                subprocess.run([os.environ["STACKCTL"], "-S", gateway.socket, "report", "--host", HOST, "--since",
                                f"@{windows[0][0] // 10**9}", "--output", path], check=True, timeout=120)
                need(os.path.getsize(path) > 1000, f"{path} has {os.path.getsize(path)} bytes")
            text = subprocess.run([os.environ["STACKCTL"], "-S", gateway.socket, "snapshot", "--since",
                                   f"@{windows[0][0] // 10**9}"], check=True, timeout=120, stdout=subprocess.PIPE,
                                  encoding="utf-8").stdout
            need("ask the host itself" in text, f"the text says what a fleet does not have:\n{text}")
        print(f"{n} rows of overviews, {slices} slices")


def test_same(directory):
    """Many questions asked of a host and of the gateway have the same answers."""
    with Fleet(directory, 60, STORE_SHIFT="-600") as fleet:
        fleet.run("schema", "--apply")
        send(fleet, HOST, *ALL)
        send(fleet, "other", *ALL)
        windows = fleet.daemon.windows()
        rows = 0
        with Gateway(fleet) as gateway:
            for since, until in ((windows[5][0], windows[5][1]), (windows[3][0] + 1, windows[20][1] - 1),
                                 (windows[0][0], windows[-1][1])):
                for question in QUESTIONS:
                    rows += same(fleet, gateway, since, until, question)
            check_fleet(fleet, gateway, windows)
            check_idle(fleet, gateway, windows)
            send(fleet, "small")
            check_sums(fleet, gateway, windows)
            check_many(fleet, gateway, windows)
        print(f"{3 * len(QUESTIONS)} questions, {rows} rows")


def check_fleet(fleet, gateway, windows):
    """All hosts together: two that sent the same have twice the sums of one."""
    asked = {"since_ns": windows[0][0], "until_ns": windows[-1][1], "idle": True}
    one, rows = ask(fleet.daemon, by="unit", **asked)
    both, fleet_rows = gateway.ask(by="unit", **asked)
    need([(row["key"], 2 * row["total_ns"], 2 * row["count"]) for row in rows] ==
         [(row["key"], row["total_ns"], row["count"]) for row in fleet_rows], "units of two hosts add up")
    need(2 * one["totals"]["blocked_ns"] == both["totals"]["blocked_ns"], "totals of two hosts add up")
    need(one["coverage"]["covered_ns"] == both["coverage"]["covered_ns"] and both["coverage"]["windows"] ==
         2 * len(windows), f"the coverage is the average: {both['coverage']}")
    _, hosts = gateway.ask(by="host", **asked)
    need({row["host"] for row in hosts} == {HOST, "other"} == {row["key"] for row in hosts}, f"by host: {hosts}")
    _, stacks = gateway.ask(by="stack", filter=NO_R, **asked)
    need(stacks and all(row["process"]["pid"] == 0 and "host" not in row for row in stacks),
         "by stack, rows are of all hosts")
    _, processes = gateway.ask(by="process", **asked)
    need({row["host"] for row in processes} == {HOST, "other"}, "by process, rows are of a host each")
    listed = [w for reply in gateway.replies("Windows", probe="offcpu", since_ns=windows[0][0],
                                             until_ns=windows[-1][1]) for w in reply["windows"]]
    need(collections.Counter(w["host"] for w in listed) == {HOST: len(windows), "other": len(windows)} and
         {(w["start"]["ns"], w["end"]["ns"]) for w in listed} == set(windows), "the windows of both hosts are listed")


def check_idle(fleet, gateway, windows):
    """Where a filter names threads, idle rows come behind the others that matter, in any order."""
    put_window(fleet, {"host": "'sleepy'", "idle": "toUInt8(pid % 2)"}, HOST)
    asked = {"since_ns": windows[0][0], "until_ns": windows[9][1], "by": "process",
             "filter": {"hosts": ["sleepy"], "comm": "*"}}
    for sort in ("total", "max", "count"):
        _, rows = gateway.ask(**asked, sort=sort)
        busy = sum(row["total_ns"] for row in rows if not row["idle"])
        marks = [row["idle"] for row in rows if row["total_ns"] >= busy // 100]
        need(marks == sorted(marks) and len(set(marks)) == 2, f"by {sort}: {marks}")
        _, first = gateway.ask(**asked, sort=sort, top=1)
        need(not first[0]["idle"], f"by {sort}, the first one: {first[0]}")


def check_sums(fleet, gateway, windows):
    """A host that sends small rows as sums: all of its time is there, unless the question is for processes."""
    asked = {"since_ns": windows[0][0], "until_ns": windows[-1][1], "by": "comm", "idle": True}
    _, own = ask(fleet.daemon, **asked)
    whole, rows = gateway.ask(**asked, filter={"hosts": ["small"]})
    need(sum(row["total_ns"] for row in rows) == sum(row["total_ns"] for row in own), "sums keep the time")
    need(any("their times are exact" in note for note in whole["notes"]), f"a note says so: {whole['notes']}")
    need("(others)" in {row["key"] for row in rows} and all(row["key"] and row["comm"] for row in rows),
         f"the rest has a name: {[row['key'] for row in rows]}")
    for name, value in (("comm", "*1*"), ("not_comms", ["*1"]), ("pids", [1]), ("not_pids", [1])):
        asked_of_some = {**asked, "filter": {"hosts": ["small"], name: value}}
        if name == "pids":
            texts = message_of(gateway, "Snapshot", probe="offcpu", **asked_of_some)
            need(any("nothing that the filter selects" in text and "neither pids nor names" in text for text in texts),
                 f"of a process that no row has: {texts}")
            continue
        part, _ = gateway.ask(**asked_of_some)
        need(any("a part of the time may be missing" in note for note in part["notes"]) and
             all("exact" not in note for note in part["notes"]), f"with {name}: {part['notes']}")
    asked_of_few = {"since_ns": windows[0][0], "until_ns": windows[9][1], "filter": {"hosts": ["small"], "pids": [1]}}
    put_window(fleet, {"probe": "'oncpu'", "pid": "toUInt32(1)"}, "small")
    replies = list(gateway.replies("Overview", **asked_of_few))
    need(any(row["process"]["pid"] == 1 for reply in replies if reply["probe"] == "oncpu" for row in reply["rows"]) and
         all(not reply["rows"] for reply in replies if reply["probe"] == "offcpu"),
         f"an overview of a process that has samples, and waits in sums at most: {replies}")
    future = 4 * 10**18
    need(error_of(gateway, "Windows", since_ns=future) == "io.stackd.InvalidTime", "windows of the future")
    listed, _ = gateway.ask("Windows", since_ns=windows[0][0], until_ns=future)
    need(all(gap["end"]["ns"] < future for gap in listed["gaps"]), f"no gap is in the future: {listed['gaps']}")


def check_many(fleet, gateway, windows):
    """With many hosts, the query stays short enough for a server, and a note says what is not counted."""
    start, end = windows[5]
    asked = {"since_ns": start, "until_ns": end, "by": "host", "idle": True}
    _, few = gateway.ask(**asked)
    columns = ", ".join(row[0] for row in fleet.query("DESCRIBE TABLE stackd.rows"))
    values = re.sub(r"\bhost\b", "concat('one-of-many-', toString(arrayJoin(range(1900))))", columns)
    fleet.query(f"INSERT INTO stackd.rows ({columns}) SELECT {values} FROM stackd.rows "
                f"WHERE kind = 0 AND host = 'small' AND start = {start}")
    for hosts, expected in ((["*"], few), (["one-of-many-*"], [])):
        many, rows = gateway.ask(**asked, filter={"hosts": hosts})
        need([(row["host"], row["total_ns"]) for row in rows] == [(row["host"], row["total_ns"]) for row in expected],
             f"{hosts}: the rows are those of hosts that have some: {rows}")
        need(any("too many hosts" in note for note in many["notes"]) and many["coverage"]["windows"] >= 1900,
             f"{hosts}: {many['notes']}, {many['coverage']['windows']} windows")


def error_of(gateway, method, **parameters):
    """Returns the error of a call."""
    return failure_of(gateway, method, **parameters).get("error")


def message_of(gateway, method, **parameters):
    """Returns the texts that the error of a call has."""
    return [text for text in failure_of(gateway, method, **parameters).get("parameters", {}).values()
            if isinstance(text, str)]


def failure_of(gateway, method, **parameters):
    """Returns the first reply of a call that is to fail."""
    try:
        with test_fleet.socket.socket(test_fleet.socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(gateway.socket)
            call = {"method": f"io.stackd.{method}", "parameters": parameters, "more": True}
            connection.sendall(test_fleet.json.dumps(call).encode() + b"\0")
            data = b""
            while b"\0" not in data:
                data += connection.recv(65536)
    except OSError as error:
        need(False, f"{method}: {error}")
    return test_fleet.json.loads(data.split(b"\0")[0])


def test_refused_calls(directory):
    """What a fleet does not have is not supported, and the gateway goes on; nor is evil text SQL."""
    with Fleet(directory, 12, STORE_SHIFT="-600") as fleet:
        fleet.run("schema", "--apply")
        send(fleet, HOST, *ALL)
        (since, _), (_, until) = fleet.daemon.windows()[0], fleet.daemon.windows()[-1]
        span = {"since_ns": since, "until_ns": until}
        asked = {"probe": "offcpu", **span}
        evil = "x') OR 1=1 --"
        with Gateway(fleet) as gateway:
            for method, more in (("Snapshot", {**asked, "open": True}), ("Snapshot", {**asked, "by": "thread"}),
                                 ("Snapshot", {**asked, "lines": True}), ("Snapshot", {**asked, "probe": "iolat"}),
                                 ("Snapshot", {**asked, "filter": {"functions": ["f"]}}),
                                 ("Snapshot", {"session": "101"}), ("Stop", {"session": "101"}), ("Sessions", {}),
                                 ("Start", {"probe": "oncpu"}), ("Follow", {"probe": "offcpu"}), ("Probes", {}),
                                 ("Settled", {"pid": 1})):
                need(error_of(gateway, method, **more) == "io.stackd.NotSupported", f"{method} {more}")
            for field in ("comm", "unit"):
                for method in ("Snapshot", "Overview"):
                    failure = failure_of(gateway, method, **(asked if method == "Snapshot" else span), filter={field: evil})
                    need(failure.get("error") == "io.stackd.NoData" and failure["parameters"]["what"] == "filter",
                         f"{method}: no row has the {field} {evil}, as a host says it: {failure}")
            need(error_of(gateway, "Snapshot", **asked, filter={"hosts": [evil]}) == "io.stackd.NoData", evil)
            need(error_of(gateway, "Snapshot", probe=evil) == "io.stackd.UnknownProbe", evil)
            need(error_of(gateway, "Snapshot", **{**asked, "since_ns": 5, "until_ns": 1}) == "io.stackd.InvalidTime",
                 "a range that ends before it begins")


def test_lies(directory):
    """A window that was sent twice counts once; a stack that is not what its id says is not shown."""
    with Fleet(directory, 24, STORE_SHIFT="-600") as fleet:
        fleet.run("schema", "--apply")
        send(fleet, HOST, *ALL)
        windows = fleet.daemon.windows()
        asked = {"since_ns": windows[0][0], "until_ns": windows[-1][1], "idle": True, "filter": {"hosts": [HOST]}}
        with Gateway(fleet) as gateway:
            first, rows = gateway.ask(**asked)
            send_again(fleet, windows[3][0], windows[9][0])
            twice, again = gateway.ask(**asked)
            need([row_of(row, True) for row in rows] == [row_of(row, True) for row in again],
                 "windows that were sent twice change no row")
            need(first["totals"] == twice["totals"] and any("6 windows" in note for note in twice["notes"]),
                 f"nor the totals, and a note counts them: {twice['notes']}")
            shown = [row["user"]["id"] for row in rows if row.get("user", {}).get("id", "0x0") != "0x0"]
            number = int(shown[0], 16)
            fleet.query("INSERT INTO stackd.stacks SELECT id, host_id, kinds, arrayMap(f -> 'forged', frames), "
                        f"modules, offsets, flags, seen + 1 FROM stackd.stacks WHERE host_id = {number}")
            fleet.query("OPTIMIZE TABLE stackd.stacks FINAL")
            poisoned, forged = gateway.ask(**asked)
            bad = [row["user"] for row in forged if "ambiguous" in row.get("user", {}).get("flags", [])]
            need(bad and all(stack["frames"][0]["name"] == "[two stacks with one id]" for stack in bad),
                 f"the forged stack is marked: {bad}")
            need(all(f.get("name") != "forged" for row in forged for f in row.get("user", {}).get("frames", [])),
                 "and not shown")
            need(any("not what their ids say" in note for note in poisoned["notes"]), f"{poisoned['notes']}")


def test_missing(directory):
    """A shard that is frozen or gone is a gap with its reason, and the other one's hosts are shown."""
    with Fleet(directory, 24, STORE_SHIFT="-600") as fleet:
        os.mkdir(f"{directory}/ch2")
        second = test_fleet.server.Server(f"{directory}/ch2", sys.argv[2])
        second.start()
        try:
            check_missing(fleet, second)
        finally:
            second.signal(signal.SIGCONT)
            second.stop()


def put_window(fleet, changed, host):
    """Makes windows like those of a host that differ from them in some columns."""
    columns = [row[0] for row in fleet.query("DESCRIBE TABLE stackd.rows")]
    fleet.query(f"INSERT INTO stackd.rows ({', '.join(columns)}) SELECT "
                f"{', '.join(changed.get(column, column) for column in columns)} FROM stackd.rows "
                f"WHERE host = '{sql_text(host)}'")


def sql_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def put_host(fleet, name, ahead_s, shift_ns):
    """Makes a host that has the windows of HOST, but later, and a clock that is ahead."""
    put_window(fleet, {"host": f"'{name}'", "start": f"start + {shift_ns}", "end": f"end + {shift_ns}",
                       "day": f"toDate(intDiv(start + {shift_ns}, 1000000000))"}, "steady")
    fleet.query("INSERT INTO stackd.hosts (host, boot, seen) SELECT "
                f"'{name}', toUUID('00000000-0000-0000-0000-000000000001'), now() + {ahead_s}")


def test_clock(directory):
    """A host whose clock is ahead is named, and takes nothing from the others, nor is it absent without a word."""
    with Fleet(directory, 60, STORE_SHIFT="-300") as fleet:
        fleet.run("schema", "--apply")
        send(fleet, "steady", *ALL)
        last = fleet.daemon.windows()[-1][1]
        put_host(fleet, "young", 3600, 3600 * 10**9)
        put_host(fleet, "older", 1800, time.time_ns() - last - 10**9)
        with Gateway(fleet) as gateway:
            reply, rows = gateway.ask(window_ns=30 * 10**9, by="host", idle=True)
            gaps = [gap["reason"] for gap in reply["coverage"]["gaps"]]
            need("steady" in {row["host"] for row in rows}, f"the host with the right time is there: {rows}, {gaps}")
            need(any(re.match("young: it has sent no window of this time; its clock is, or was, ahead by (1 h|59 min)", gap) for gap in gaps), f"{gaps}")
            now = time.time_ns()
            reply, rows = gateway.ask(since_ns=now - 300 * 10**9, until_ns=now - 1, by="host", idle=True)
            need("older" in {row["host"] for row in rows} and
                 any("the clock of older is, or was, ahead by" in note for note in reply["notes"]),
                 f"a note says what is older than it says: {reply['notes']}")
            need(any("the clock of young" in text for text in
                     message_of(gateway, "Snapshot", probe="offcpu", window_ns=30 * 10**9, filter={"hosts": ["young"]})),
                 "why there is no window")
            _, rows = gateway.ask(window_ns=10**9, by="host", idle=True, filter={"hosts": ["older"]})
            need(rows, "alone, it has its newest windows, as any host that lags")
            problems = next(gateway.replies("Status"))["problems"]
            need(sorted(text.split(",")[0] for text in problems if "clock" in text) ==
                 ["older: its clock is", "young: its clock is"], f"the status says it: {problems}")
            fleet.query("INSERT INTO stackd.hosts (host, boot, seen) SELECT 'steady', "
                        "toUUID('00000000-0000-0000-0000-000000000001'), now() + 3")
            reply, _ = gateway.ask(since_ns=last - 60 * 10**9, until_ns=last, by="host", filter={"hosts": ["steady"]})
            need(all("clock" not in note for note in reply["notes"]), f"a clock that is right: {reply['notes']}")


def test_young(directory):
    """Of a fleet that is a minute old all is answered, also where the question is for an hour."""
    with Fleet(directory, 14, STORE_BEGIN=str(int(time.time()) - 75)) as fleet:
        fleet.run("schema", "--apply")
        send(fleet, HOST, *ALL)
        windows = fleet.daemon.windows()
        need(fleet.query("SELECT count() FROM stackd.rows60 WHERE kind = 0") != [["0"]], "a minute was sent, too")
        with Gateway(fleet) as gateway:
            for hosts in ([], [HOST]):
                reply, rows = gateway.ask(since_ns=windows[0][1] - 3600 * 10**9, by="process", idle=True,
                                          filter={"hosts": hosts})
                coverage = reply["coverage"]
                need(coverage["windows"] == len(windows) and coverage["used"]["end"]["ns"] == windows[-1][1],
                     f"all windows are in the answer: {coverage}")
                need(len(coverage["gaps"]) == 1 and coverage["gaps"][0]["end"]["ns"] == windows[0][0],
                     f"and the rest is a gap: {coverage['gaps']}")
                need(rows, "there are rows")
            send(fleet, "minutes", *ALL, "send.tiers=1min")
            asked = {"since_ns": windows[0][1] - 3600 * 10**9, "by": "host", "idle": True}
            _, rows = gateway.ask(**asked)
            need({row["key"] for row in rows} == {HOST, "minutes"}, f"a host that sends minutes alone is there: {rows}")
            reply, _ = gateway.ask(**asked, filter={"hosts": ["node*"]})
            need(reply["coverage"]["windows"] == len(windows), f"and changes nothing for others: {reply['coverage']}")


def status_of(gateway):
    status = next(gateway.replies("Status"))
    need(status["healthy"] == (not status["problems"]), f"what is wrong is named: {status['problems']}")
    return status


def test_status(directory):
    """A fleet of which every host sends something is healthy, whatever that is; one that sends nothing is named."""
    with Fleet(directory, 14, STORE_BEGIN=str(int(time.time()) - 75)) as fleet:
        fleet.run("schema", "--apply")
        send(fleet, "steady", *ALL)
        windows = fleet.daemon.windows()
        since, until = (f"@{windows[number][1] // 10**9}" for number in (4, 12))
        with Gateway(fleet) as gateway:
            need(status_of(gateway)["fleet"] == {"hosts": 1} and status_of(gateway)["healthy"], "one host")
            send(fleet, "minutes", *ALL, "send.tiers=1min")
            put_window(fleet, {"host": "'samples'", "probe": "'oncpu'",
                               "start": f"start - 600000000000 * (start = {windows[0][0]})"}, "steady")
            minutes = int(fleet.query("SELECT count() FROM stackd.rows60 WHERE kind = 0 AND host = 'minutes'")[0][0])
            status = status_of(gateway)
            need(status["fleet"] == {"hosts": 3} and not status["problems"], f"three hosts: {status['problems']}")
            need([(probe["name"], probe["state"]) for probe in status["probes"]] == [("offcpu", "on"), ("oncpu", "on")],
                 f"what they send: {status['probes']}")
            need(minutes and status["windows"] == 2 * 14 + minutes and status["window_ns"] == 605 * 10**9,
                 f"the windows of all hosts, and the longest: {status['windows']}, {status['window_ns']}")
            text = check_hints(gateway, "status")
            need(re.search("^fleet +healthy, 3 hosts", text), text)
            text = check_hints(gateway, "status", "--check")
            need(text.startswith("OK: all hosts of the last hour send windows; "), text)
            send(fleet, "units", *ALL, "send.tiers=units")
            status = status_of(gateway)
            need(status["fleet"] == {"hosts": 4} and status["windows"] == 2 * (14 + minutes) and not status["problems"],
                 f"and a host that sends sums alone: {status['problems']}")
            fleet.query("INSERT INTO stackd.hosts (host, boot, seen) SELECT 'silent', "
                        "toUUID('00000000-0000-0000-0000-000000000001'), now()")
            need(status_of(gateway)["problems"] == ["silent: no window of the last hour"], "one that sends nothing")
            for words in (["status", "-v"], ["snapshot"], ["snapshot", "--stacks"], ["snapshot", "offcpu"],
                          ["diff", "offcpu", "--since", since, "--until", until, "--base", "-20s"]):
                check_hints(gateway, *words)


def check_hints(gateway, *words):
    """Returns what the client prints, which has no hint to what the gateway refuses."""
    done = subprocess.run([os.environ["STACKCTL"], "-S", gateway.socket, *words], timeout=120, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    need(done.returncode == 0, f"{words}: {done.returncode}: {done.stdout}")
    found = re.findall(r"\b(?:stackctl (?:stuck|probes|record|sessions|metrics)|record \w+|iolat)\b", done.stdout)
    need(not found, f"{words}: {found} in\n{done.stdout}")
    return done.stdout


def check_missing(fleet, second):
    urls = f"server.url={fleet.server.url} {second.url}"
    fleet.run("-o", urls, "schema", "--apply")
    with Gateway(fleet, urls) as gateway:
        status = next(gateway.replies("Status"))
        need(not status["healthy"] and status["problems"] == ["no host has sent a window in the last hour"],
             f"a fleet without hosts is not healthy: {status['problems']}")
    servers = {"": fleet.server, "second": second}
    names = [f"host{i}" for i in range(6)]
    for name in names:
        send(fleet, name, urls, *ALL)
    where = {which: {row[0] for row in server.query("SELECT DISTINCT host FROM stackd.rows")}
             for which, server in servers.items()}
    need(all(where.values()) and where[""] | where["second"] == set(names) and not where[""] & where["second"],
         f"each host is on one of two servers: {where}")
    windows = fleet.daemon.windows()
    asked = {"since_ns": windows[0][0], "until_ns": windows[-1][1], "by": "host", "idle": True}
    with Gateway(fleet, urls, "serve.shard_timeout=2s") as gateway:
        whole, rows = gateway.ask(**asked)
        need({row["host"] for row in rows} == set(names) and whole["coverage"]["complete"],
             f"all hosts are there: {whole['coverage']}")
        for stop in (signal.SIGSTOP, signal.SIGKILL):
            second.signal(stop)
            began = time.monotonic()
            part, rows = gateway.ask(**asked)
            need({row["host"] for row in rows} == where[""], f"the hosts of the other server are there: {rows}")
            gaps = [gap["reason"] for gap in part["coverage"]["gaps"]]
            need(not part["coverage"]["complete"] and any(second.url in gap for gap in gaps),
                 f"the shard is a gap: {gaps}")
            print(f"after {stop.name}, {time.monotonic() - began:.1f} s: {gaps[0]}")
            began = time.monotonic()
            slices = list(gateway.replies("Snapshot", probe="offcpu", each_ns=10**9, **asked))
            parts = [part for part in slices if part["coverage"]]
            need(len(parts) > 20 and all(any(second.url in gap["reason"] for gap in part["coverage"]["gaps"])
                                         for part in parts), f"it is a gap of each slice: {len(parts)}")
            need(time.monotonic() - began < 2 * len(parts), "nobody waits for it again for each slice")
            status = next(gateway.replies("Status"))
            need({"fleet.windows", "fleet.answers"} <= {limit["name"] for limit in status["limits"]},
                 f"the status has the limits: {status['limits']}")
            need(not status["healthy"] and any(second.url in text for text in status["problems"]),
                 f"the status says it: {status['problems']}")
        need(error_of(gateway, "Snapshot", probe="offcpu", filter={"hosts": sorted(where["second"])[:1]},
                      since_ns=windows[0][0], until_ns=windows[-1][1]) == "io.stackd.NoData", "no host of the shard")


def run_queries(fleet, texts):
    """Returns the rows of each ready query, by its file."""
    found = {}
    for path in sorted(glob.glob(f"{SQL}/query-*.sql")):
        with open(path, encoding="utf-8") as file:
            sql = "\n".join(line for line in file.read().splitlines() if not line.startswith("--"))
        for name, value in texts.items():
            sql = sql.replace(name, str(value))
        need("@" not in sql, f"{path}: all names have values")
        found[os.path.basename(path)] = sorted(fleet.query(sql))
    return found


def send_again(fleet, since, until):
    """Makes the windows of a time be there twice, as after an insert whose answer was lost."""
    columns = ", ".join(row[0] for row in fleet.query("DESCRIBE TABLE stackd.rows"))
    values = re.sub(r"\battempt\b", "attempt + 1", columns)
    fleet.query(f"INSERT INTO stackd.rows ({columns}) SELECT {values} FROM stackd.rows "
                f"WHERE start >= {since} AND start < {until}")


def put_minutes_beside(fleet):
    """Makes windows of a minute, which were sent before, be there beside those of 5 s."""
    columns = ", ".join(row[0] for row in fleet.query("DESCRIBE TABLE stackd.rows"))
    values = re.sub(r"\battempt\b", "intDiv(attempt, 2)", columns)
    fleet.query(f"INSERT INTO stackd.rows ({columns}) SELECT {values} FROM stackd.rows60")


def without_reason(found):
    """Leaves out the reason of the row with the most time: what a row is depends on the window."""
    return {name: [row[:4] + row[5:] if "waits-by-unit" in name else row for row in rows]
            for name, rows in found.items()}


def test_queries(directory):
    """Each ready query of fleet/sql runs, and counts what is there once, also if it was sent twice."""
    with Fleet(directory, 60, STORE_SHIFT="-600") as fleet:
        fleet.run("schema", "--apply")
        for name in ("a1", "a2", "odd"):
            send(fleet, name, *ALL)
        windows = fleet.daemon.windows()
        _, units = ask(fleet.daemon, since_ns=windows[0][0], until_ns=windows[-1][1], by="unit")
        texts = {"@DATABASE@": "stackd", "@SINCE@": windows[0][0], "@UNTIL@": windows[-1][1],
                 "@BEFORE@": windows[0][0], "@DEPLOY@": windows[36][0]}
        need(windows[36][0] % test_fleet.MINUTE == 0 == windows[0][0] % test_fleet.MINUTE, "a minute begins")
        found = run_queries(fleet, texts)
        need(len(found) == 4 and all(found.values()), f"each query finds something: {found}")
        top = {test_fleet.text_of(row[0]): int(row[1]) for row in found["query-waits-by-unit.sql"]}
        own = collections.Counter()
        for row in units:
            own[row["key"]] += row["blocked_ns"]
        need(top == {unit: 3 * ns for unit, ns in own.items() if ns},
             f"the waits by unit are those of stackctl, three times: {top}, {own}")
        need({row[0] for row in found["query-run-queue-by-host.sql"]} == {"a1", "a2", "odd"}, "a row for each host")
        send_again(fleet, windows[3][0], windows[9][0])
        again = run_queries(fleet, texts)
        need(found == again, f"windows that were sent twice count once: {found} {again}")
        put_minutes_beside(fleet)
        both = run_queries(fleet, texts)
        need(without_reason(found) == without_reason(both), f"and each second, of several lengths: {found} {both}")
        print({name: len(rows) for name, rows in found.items()})


def main():
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="stackd-serve.") as directory:
        globals()[f"test_{NAME}"](directory)


main()
