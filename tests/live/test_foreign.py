#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a client of another implementation, which knows only the protocol and the service's
own description, can use all of it: every reply and error is as described, to the field."""

import varlink
from harness import *

SNAPSHOT = {"probe": "offcpu", "window_ns": 5 * NS_PER_S}


def check_call(client, method, parameters=None, more=False):
    try:
        replies = client.call(method, parameters, more)
    except (varlink.Mismatch, varlink.Error) as e:
        check(False, f"{method}: {e}")
        return [{}]
    check(replies, f"{method}{' with more' if more else ''}: {len(replies)} replies as described")
    return replies


def check_error(client, call, parameters, name, **expected):
    try:
        client.call(call, parameters)
        check(False, f"{call} {parameters}: an error is expected")
    except varlink.Mismatch as e:
        check(False, f"{call} {parameters}: {e}")
    except varlink.Error as e:
        text = f"{call} {parameters}: {e}"
        check(e.name == name and expected.items() <= e.parameters.items(), text)


def check_service(client):
    info = client.info
    check(
        set(info) == {"vendor", "product", "version", "url", "interfaces"} and all(info.values()),
        f"GetInfo has its five fields: {info}",
    )
    service, stackd = "org.varlink.service", "io.stackd"
    check(set(client.interfaces) == {service, stackd}, f"interfaces: {list(client.interfaces)}")
    check_call(client, "org.varlink.service.GetInfo")
    for name in client.interfaces:
        check_call(client, "org.varlink.service.GetInterfaceDescription", {"interface": name})


def check_methods(client):
    for more in (False, True):
        for name in ("Status", "Probes", "Sessions", "Windows"):
            check_call(client, f"io.stackd.{name}", more=more)
        for by in ("stack", "thread", "process"):
            check_call(client, "io.stackd.Snapshot", {**SNAPSHOT, "by": by, "top": 20}, more)
    check_call(client, "io.stackd.Snapshot", {**SNAPSHOT, "open": True, "idle": True}, True)
    rows = [row for reply in check_call(client, "io.stackd.Snapshot", SNAPSHOT, True)
            for row in reply.get("rows", [])]
    check(rows, f"a snapshot with more has {len(rows)} rows")


def check_errors(client):
    service, snapshot = "org.varlink.service", "io.stackd.Snapshot"
    invalid = f"{service}.InvalidParameter"
    check_error(client, "io.stackd.Nope", {}, f"{service}.MethodNotFound", method="io.stackd.Nope")
    check_error(client, "io.nope.X", {}, f"{service}.InterfaceNotFound", interface="io.nope")
    description = f"{service}.GetInterfaceDescription"
    check_error(client, description, {"interface": "io.x"}, f"{service}.InterfaceNotFound",
                interface="io.x")
    check_error(client, description, {}, invalid, parameter="interface")
    check_error(client, snapshot, {}, invalid, parameter="probe")
    check_error(client, snapshot, {"probe": "nosuch"}, "io.stackd.UnknownProbe", probe="nosuch")
    check_error(client, snapshot, {**SNAPSHOT, "top": "ten"}, invalid, parameter="top")
    check_error(client, snapshot, {**SNAPSHOT, "nosuch": 1}, invalid, parameter="nosuch")
    past = {"probe": "offcpu", "since_ns": 10**18, "until_ns": 10**18 + 1}
    check_error(client, snapshot, past, "io.stackd.NoData", what="range")
    check_call(client, "io.stackd.Status")


need_live()
daemon = Daemon("window.length=1s")
daemon.cut()
client = varlink.Client(daemon.socket)
check_service(client)
check_methods(client)
check_errors(client)
client.close()
check(daemon.stop() == 0, f"the daemon ends with {daemon.process.returncode}")
finish()
