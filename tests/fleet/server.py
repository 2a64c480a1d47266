# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's clickhouse-server on a port of its own, as nobody, without systemd. It is unpacked into a
directory of the build the first time (see get_server.sh)."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
NOBODY = 65534

CONFIG = """<?xml version="1.0"?>
<yandex>
 <logger><level>warning</level><log>{dir}/server.log</log><errorlog>{dir}/server.err</errorlog></logger>
 <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
 <path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><format_schema_path>{dir}/tmp/</format_schema_path>
 <mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>8388608</uncompressed_cache_size>
 <max_concurrent_queries>50</max_concurrent_queries><timezone>UTC</timezone>
 <users_config>{dir}/users.xml</users_config><default_profile>default</default_profile>
 <default_database>default</default_database>
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex>
 <profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
 <users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
   <quota>default</quota></default>
  <sender><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
   <quota>default</quota></sender>
 </users>
 <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors>
  <result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def find_program(cache):
    """Returns the program and the environment that it runs with; skips the test where there is none."""
    installed = shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin")
    if installed:
        return installed, dict(os.environ)
    root = f"{cache}/root"
    if not os.path.exists(f"{root}/usr/sbin/clickhouse-server"):
        done = subprocess.run([f"{HERE}/get_server.sh", cache], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        if done.returncode != 0:
            last = (done.stdout.strip().splitlines() or ["no reason"])[-1]
            skip(f"there is no clickhouse-server, and it could not be fetched: {last}")
    libraries = [f"{root}/usr/lib/x86_64-linux-gnu", f"{root}/lib/x86_64-linux-gnu"]
    return f"{root}/usr/sbin/clickhouse-server", {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, directory, cache):
        self.directory = directory
        self.program, self.environment = find_program(cache)
        self.http, self.tcp = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.process = None
        os.makedirs(f"{directory}/tmp", exist_ok=True)
        for name, text in (("config.xml", CONFIG), ("users.xml", USERS)):
            with open(f"{directory}/{name}", "w", encoding="ascii") as file:
                file.write(text.format(dir=directory, http=self.http, tcp=self.tcp))
        if os.geteuid() == 0:
            for path, folders, files in os.walk(directory):
                for name in [path] + [f"{path}/{entry}" for entry in folders + files]:
                    os.chown(name, NOBODY, NOBODY)

    def start(self):
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [self.program, f"--config-file={self.directory}/config.xml"], env=self.environment,
            cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, **as_nobody)
        while True:
            if self.process.poll() is not None:
                with open(f"{self.directory}/server.err", encoding="utf-8", errors="replace") as log:
                    sys.exit(f"FAILED: the server ended with {self.process.returncode}: {log.read()[-2000:]}")
            try:
                self.query("SELECT 1")
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.05)

    def signal(self, number):
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)

    def query(self, sql, user="default", password="", timeout=60):
        """Returns the rows of a SELECT as lists of texts, with the escapes of TSV."""
        request = urllib.request.Request(f"{self.url}/?wait_end_of_query=1", data=sql.encode())
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                text = reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode("utf-8", "replace")[:500]) from None
        return [line.split("\t") for line in text.splitlines()]
