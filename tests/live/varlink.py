# SPDX-License-Identifier: GPL-2.0-or-later
"""A Varlink client that knows nothing of stackd: it learns an interface from its description and
checks every reply and every error against it, as a strict client of another implementation
would."""

import json
import re
import socket

FIELD = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*")
INTEGERS = range(-(1 << 63), 1 << 63)
TOKEN = re.compile(r"\s+|#[^\n]*|(->|\[\]|\[string\]|[?(),:]|[A-Za-z][A-Za-z0-9_.-]*)")


class Mismatch(Exception):
    """The service did not keep to its own description."""


class Error(Exception):
    def __init__(self, name, parameters):
        super().__init__(f"{name} {parameters}")
        self.name, self.parameters = name, parameters


class Interface:
    """Parses "interface NAME", then types, methods and errors in any order; see varlink.org."""

    def __init__(self, text):
        self.types, self.methods, self.errors = {}, {}, {}
        self.tokens = self._split(text)
        self._expect("interface")
        self.name = self.tokens.pop(0)
        while self.tokens:
            self._member()

    @staticmethod
    def _split(text):
        tokens, at = [], 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                raise Mismatch(f"not the language of interfaces: {text[at:at + 40]!r}")
            tokens += [match[1]] if match[1] else []
            at = match.end()
        return tokens

    def _expect(self, token):
        got = self.tokens.pop(0)
        if got != token:
            raise Mismatch(f"{token!r} expected, not {got!r}")

    def _member(self):
        keyword, name = self.tokens.pop(0), self.tokens.pop(0)
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
            raise Mismatch(f"{keyword} {name}: not a name")
        value = self._type()
        if keyword == "method":
            self._expect("->")
            value = (value, self._type())
        table = {"type": self.types, "method": self.methods, "error": self.errors}[keyword]
        if name in table:
            raise Mismatch(f"{keyword} {name}: twice")
        table[name] = value

    def _type(self):
        token = self.tokens.pop(0)
        if token in ("?", "[]", "[string]"):
            return (token, self._type())
        return self._struct() if token == "(" else token

    def _struct(self):
        fields = {}
        while self.tokens[0] != ")":
            name = self.tokens.pop(0)
            if not FIELD.fullmatch(name) or name in fields:
                raise Mismatch(f"field {name!r}: not a name, or twice")
            if self.tokens[0] == ":":
                self._expect(":")
                fields[name] = self._type()
            else:
                fields[name] = None  # the field of an enum has no type
            if self.tokens[0] == ",":
                self._expect(",")
        self._expect(")")
        return fields

    def check(self, value, kind, where):
        if isinstance(kind, tuple):
            self._check_many(value, *kind, where)
        elif isinstance(kind, dict):
            self._check_struct(value, kind, where)
        elif kind in self.types:
            self.check(value, self.types[kind], where)
        elif not self._is_plain(value, kind):
            raise Mismatch(f"{where}: {value!r} is not of type {kind}")

    @staticmethod
    def _is_plain(value, kind):
        if kind == "int":
            return type(value) is int and value in INTEGERS
        plain = {"string": str, "bool": bool, "float": (int, float), "object": dict}
        return isinstance(value, plain[kind])

    def _check_many(self, value, outer, inner, where):
        if outer == "?":
            if value is not None:
                self.check(value, inner, where)
        elif outer == "[]":
            self._check_plain_list(value, inner, where)
        else:
            for key, item in value.items():
                self.check(item, inner, f"{where}[{key}]")

    def _check_plain_list(self, value, inner, where):
        if not isinstance(value, list):
            raise Mismatch(f"{where}: not an array")
        for i, item in enumerate(value):
            self.check(item, inner, f"{where}[{i}]")

    def _check_struct(self, value, fields, where):
        if all(kind is None for kind in fields.values()) and fields:
            if value not in fields:
                raise Mismatch(f"{where}: {value!r} is none of {list(fields)}")
            return
        if not isinstance(value, dict):
            raise Mismatch(f"{where}: not an object")
        for name in value.keys() - fields.keys():
            raise Mismatch(f"{where}.{name}: not in the description")
        for name, kind in fields.items():
            if name in value:
                self.check(value[name], kind, f"{where}.{name}")
            elif not (isinstance(kind, tuple) and kind[0] == "?"):
                raise Mismatch(f"{where}.{name}: missing")


class Client:
    """Learns all interfaces at the start."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.interfaces = {}
        self.info = self._exchange("org.varlink.service.GetInfo", {}, {})[0]["parameters"]
        for name in self.info["interfaces"]:
            method = "org.varlink.service.GetInterfaceDescription"
            reply = self._exchange(method, {"interface": name}, {})[0]["parameters"]
            self.interfaces[name] = Interface(reply["description"])
            if self.interfaces[name].name != name:
                raise Mismatch(f"{name}: described as {self.interfaces[name].name}")

    def close(self):
        self.file.close()
        self.socket.close()

    def _receive(self):
        data = bytearray()
        while not data.endswith(b"\0"):
            byte = self.file.peek(1)
            if not byte:
                raise ConnectionError("closed by the service")
            end = byte.find(b"\0")
            data += self.file.read(end + 1 if end >= 0 else len(byte))
        return json.loads(data[:-1].decode("utf-8", "strict"))

    def _exchange(self, method, parameters, flags):
        call = {"method": method, "parameters": parameters, **flags}
        self.socket.sendall(json.dumps(call).encode() + b"\0")
        replies = [self._receive()]
        while replies[-1].get("continues"):
            if not flags.get("more"):
                raise Mismatch(f"{method}: continues without more")
            replies.append(self._receive())
        return replies

    def _check_error(self, reply):
        interface, _, name = reply["error"].rpartition(".")
        known = self.interfaces.get(interface)
        if not known or name not in known.errors:
            raise Mismatch(f"{reply['error']}: an error that is not described")
        known.check(reply.get("parameters", {}), known.errors[name], reply["error"])

    def call(self, method, parameters=None, more=False):
        """Returns the parameters of all replies, each checked against the description. Raises
        Error."""
        interface, _, name = method.rpartition(".")
        found = []
        for reply in self._exchange(method, parameters or {}, {"more": True} if more else {}):
            if set(reply) - {"parameters", "continues", "error"}:
                raise Mismatch(f"{method}: a reply has {set(reply)}")
            if "error" in reply:
                self._check_error(reply)
                raise Error(reply["error"], reply.get("parameters", {}))
            known = self.interfaces[interface]
            known.check(reply["parameters"], known.methods[name][1], method)
            found.append(reply["parameters"])
        return found
