#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a bad client harms only itself: killed, silent, babbling, greedy and slow clients are
tried, while other clients go on getting their answers."""

from harness import *

MAX_CLIENTS = 8
MAX_MESSAGE = 65536


def snapshot_take(daemon):
    """Takes a snapshot as a well-behaved client; returns it and the seconds it took."""
    started = time.monotonic()
    result = daemon.ctl("snapshot", "offcpu", "--window", "5s")
    return result, time.monotonic() - started


def check_daemon(daemon, text):
    result, took = snapshot_take(daemon)
    error = result.err.strip()
    check(result.code == 0, f"after {text}: others are answered: {result.code} {error}")
    estimate_most(took, 2 + 4 * undisturbed, f"after {text}: {took:.2f} s, {undisturbed:.2f} s before")
    check(daemon.process.poll() is None, f"after {text}: the daemon runs")


def raw_socket(daemon):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(HANG_SECONDS)
    s.connect(daemon.socket)
    return s


def answer_to(daemon, data):
    """Returns all that comes back for these bytes, until the daemon closes or is silent for a
    while."""
    with raw_socket(daemon) as s:
        s.settimeout(1)
        answer = b""
        with contextlib.suppress(OSError):
            s.sendall(data)
            while block := s.recv(65536):
                answer += block
    return answer


def check_killed(daemon):
    argv = [STACKCTL, "-S", daemon.socket, "snapshot", "offcpu", "--format", "json", "--idle"]
    for i in range(20):
        client = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.003 * i)
        client.kill()
        client.wait()
    check_daemon(daemon, "twenty killed clients")


def check_garbage(daemon):
    status = b'{"method":"io.stackd.Status"}\0'
    samples = {
        "random bytes": os.urandom(4096).replace(b"\0", b"\1") + b"\0",
        "an empty message": b"\0",
        "many empty messages": b"\0" * 5000,
        "not an object": b"[1,2,3]\0",
        "a number": b"42\0",
        "two values": b"{} {}\0",
        "half an object": b'{"method":\0',
        "no method": b'{"parameters":{}}\0',
        "a method that is a number": b'{"method":7}\0',
        "parameters that are a list": b'{"method":"io.stackd.Status","parameters":[]}\0',
        "invalid UTF-8": b'{"method":"io.stackd.\xff\xfe"}\0',
        "deep nesting": b'{"parameters":' + b"[" * 20000 + b"]" * 20000 + b"}\0",
        "too long a message": b'{"method":"' + b"x" * (MAX_MESSAGE * 4) + b'"}\0',
        "no end": b'{"method":"' + b"x" * (MAX_MESSAGE * 4),
    }
    for text, data in samples.items():
        answer = answer_to(daemon, data)
        check(b'"version"' not in answer, f"{text}: no answer but an error: {answer[:80]}")
        check_daemon(daemon, text)
    check(b'"version"' in answer_to(daemon, status), "a plain call is answered")


def check_wrong_calls(daemon):
    calls = {
        "io.stackd.NoSuchMethod": ({}, "org.varlink.service.MethodNotFound"),
        "no.such.Interface": ({}, "org.varlink.service."),
        "io.stackd.Snapshot": ({}, "org.varlink.service.InvalidParameter"),
    }
    for method, (parameters, error) in calls.items():
        with raw_socket(daemon) as s:
            s.sendall(json.dumps({"method": method, "parameters": parameters}).encode() + b"\0")
            reply = json.loads(s.recv(65536).split(b"\0")[0])
        check(reply.get("error", "").startswith(error), f"{method}: {reply}")
    wrong = {
        "probe": 5,
        "window_ns": "long",
        "top": -1,
        "by": "nosuch",
        "sort": "nosuch",
        "filter": {"pids": "all"},
    }
    for field, value in wrong.items():
        try:
            daemon.call("io.stackd.Snapshot", **{"probe": "offcpu", field: value})
            check(False, f"Snapshot with {field}={value!r} is refused")
        except VarlinkError as e:
            check(field in str(e) or field == "filter", f"Snapshot with {field}={value!r}: {e}")


def check_many(daemon):
    idle = [raw_socket(daemon) for _ in range(MAX_CLIENTS * 4)]
    check_daemon(daemon, f"{len(idle)} idle connections of {MAX_CLIENTS} allowed")
    limits = {limit["name"]: limit for limit in daemon.status()["limits"]}
    clients = next((v for k, v in limits.items() if "clients" in k), None)
    check(clients and clients["hits"] > 0, f"reaching the limit of clients is counted: {clients}")
    for s in idle:
        s.close()


def check_slow(daemon):
    """Asks again and again and never reads: the daemon closes the connection, or only this client
    waits."""
    call = {
        "method": "io.stackd.Snapshot",
        "parameters": {"probe": "offcpu", "idle": True},
        "more": True,
    }
    data = json.dumps(call).encode() + b"\0"
    before = daemon.status()["rss_bytes"]
    with raw_socket(daemon) as s:
        s.setblocking(False)
        sent = 0
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and sent < 2000:
            try:
                s.send(data)
                sent += 1
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        check_daemon(daemon, f"a client that asked {sent} times and never read")
        grown = daemon.status()["rss_bytes"] - before
        check(grown < 64 << 20, f"it cost {grown >> 20} MiB")


need_live()
daemon = Daemon(
    "window.length=1s",
    f"control.max_clients={MAX_CLIENTS}",
    f"control.max_message={MAX_MESSAGE}",
)
undisturbed = max(snapshot_take(daemon)[1] for _ in range(3))
check_killed(daemon)
check_garbage(daemon)
check_wrong_calls(daemon)
check_many(daemon)
check_slow(daemon)
check_nothing_lost(daemon.status(), "status")
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
