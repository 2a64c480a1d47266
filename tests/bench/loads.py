# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads that benchmarks run beside stackd. Servers listen on the loopback only, run as nobody and
postgres in directories of their own, and end with the `with` that began them. Import this after
bench.arguments()."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile

import harness

POSTGRES = "/usr/lib/postgresql"
PG_PORT, WEB_PORT = 54329, 54380
SBIN = os.environ["PATH"] + ":/usr/sbin"


def has_pgbench():
    return bool(shutil.which("pgbench")) and os.path.isdir(POSTGRES)


def has_nginx():
    return bool(shutil.which("nginx", path=SBIN) and shutil.which("ab"))


@contextlib.contextmanager
def process(argv, **kwargs):
    child = harness.spawn([str(a) for a in argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
    try:
        yield child
    finally:
        harness.stop_process(child)


def as_user(name):
    user = pwd.getpwnam(name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def directory_of(name):
    path = tempfile.mkdtemp(prefix="bench-", dir="/tmp")
    user = pwd.getpwnam(name)
    os.chown(path, user.pw_uid, user.pw_gid)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def pgbench(*options):
    binaries = os.path.join(POSTGRES, sorted(os.listdir(POSTGRES))[-1], "bin")
    who = as_user("postgres")
    with directory_of("postgres") as path:
        data = os.path.join(path, "data")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": path, **who}
        subprocess.run([f"{binaries}/initdb", "-D", data, "-A", "trust"], check=True, **quiet)
        server = [f"{binaries}/postgres", "-D", data, "-k", path, "-p", PG_PORT, "-h", "127.0.0.1"]
        with process(server, cwd=path, **who):
            client = ["-h", path, "-p", str(PG_PORT), "postgres"]
            harness.wait_until(lambda: subprocess.run([f"{binaries}/pg_isready", *client[:-1]],
                                                      **quiet).returncode == 0, "postgres")
            subprocess.run(["pgbench", "-i", "-q", *client], check=True, **quiet)
            ask = ["pgbench", "-c", 4, "-j", 2, "-T", 86400, *options, *client]
            with process(ask, cwd=path, **who):
                yield


NGINX = """
daemon off; pid {0}/pid; error_log stderr; worker_processes 2;
events {{ }}
http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};
uwsgi_temp_path {0}; scgi_temp_path {0};
server {{ listen 127.0.0.1:{1}; location / {{ return 200 "hello"; }} }} }}
"""


@contextlib.contextmanager
def nginx():
    who = as_user("nobody")
    binary = shutil.which("nginx", path=SBIN)
    with directory_of("nobody") as path:
        config = os.path.join(path, "nginx.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write(NGINX.format(path, WEB_PORT))
        with process([binary, "-c", config, "-p", path, "-e", "stderr"], cwd=path, **who):
            url = f"http://127.0.0.1:{WEB_PORT}/"
            ask = ["ab", "-q", "-n", "1", url]
            harness.wait_until(lambda: harness.run(ask).code == 0, "nginx")
            # ab allocates 32 bytes for each request that it may make.
            with process(["ab", "-q", "-c", 8, "-t", 86400, "-n", 10_000_000, url], **who):
                yield


@contextlib.contextmanager
def pipe():
    with process(["perf", "bench", "sched", "pipe", "-l", 100_000_000]):
        yield


@contextlib.contextmanager
def compiling(jobs):
    """Compiles a file of 2,000 functions again and again, in some jobs at once."""
    with tempfile.TemporaryDirectory(prefix="bench-") as path, contextlib.ExitStack() as stack:
        source = os.path.join(path, "many.c")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <stdio.h>\n")
            for i in range(2000):
                f.write(f"int f{i}(int a) {{ int s = {i}; for (int k = 0; k < a; k++) "
                        f's += k * a ^ s; return printf("%d", s); }}\n')
        for _ in range(jobs):
            loop = f"while :; do gcc -O2 -c {source} -o /dev/null; done"
            stack.enter_context(process(["sh", "-c", loop]))
        yield
