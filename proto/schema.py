#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a JSON Schema of the interface: schema.py OUT.json FILE.varlink. A type T is $defs/T; the reply
of a method M is $defs/M, so that {"$ref": "io.stackd.schema.json#/$defs/Snapshot"} is one answer. Members that
the definition does not have are allowed, as later versions may add some."""
import json
import os
import sys

sys.dont_write_bytecode = True  # the next line would write into the source tree
from generate import Definition, Parser  # noqa: E402

BASES = {"string": {"type": "string"}, "int": {"type": "integer"}, "bool": {"type": "boolean"},
         "object": {"type": "object"}}


def schema_of(field):
    base = BASES.get(field.base) or {"$ref": f"#/$defs/{field.base}"}
    return {"type": "array", "items": base} if field.is_list else dict(base)


def object_of(record):
    required = [field.name for field in record.fields if not field.optional]
    return {
        "description": " ".join(" ".join(record.comment).split()),
        "type": "object",
        "properties": {field.name: schema_of(field) for field in record.fields},
        "required": required,
    }


def main():
    out, path = sys.argv[1:]
    found = Definition()
    Parser(path, found).parse()
    replies = {method.name: method.reply for method in found.methods}
    types = {record.name: record for record in found.records if record.name in found.types}
    definitions = {"Time": {
        "description": "One point in time: ns since the Unix epoch, and the same as RFC 3339 text.",
        "type": "object",
        "properties": {"ns": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["ns", "text"],
    }}
    for name, record in [*types.items(), *replies.items()]:
        # A type and a reply may have one name: the reply is then NAMEReply.
        definitions[f"{name}Reply" if name in definitions else name] = object_of(record)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": os.path.basename(out),
        "title": os.path.basename(path).removesuffix(".varlink"),
        "$defs": definitions,
    }
    with open(out, "w", encoding="ascii") as file:
        json.dump(schema, file, indent=1)
        file.write("\n")


main()
