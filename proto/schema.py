#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a JSON Schema of the interface: schema.py OUT.json FILE.varlink. A type T is $defs/T; the reply
of a method M is $defs/M, so that {"$ref": "io.stackd.schema.json#/$defs/Snapshot"} is one answer. Members that
the definition does not have are allowed, as later versions may add some. The documents that stackctl makes
itself are OverviewDocument (snapshot without a probe) and Diff."""
import json
import os
import sys

sys.dont_write_bytecode = True  # the next line would write into the source tree
from generate import Definition, Parser  # noqa: E402

BASES = {"string": {"type": "string"}, "int": {"type": "integer"}, "bool": {"type": "boolean"},
         "object": {"type": "object"}}


INTEGER, BOOLEAN, STRING = BASES["int"], BASES["bool"], BASES["string"]


def list_of(items):
    return {"type": "array", "items": items}


def reference(name):
    return {"$ref": f"#/$defs/{name}"}


def document(description, **members):
    """Returns a type whose members are all there."""
    return {"description": description, "type": "object", "properties": members, "required": [*members]}


def documents():
    """Returns the types of the documents that stackctl makes itself: client/render/json.c, diff_data.c."""
    answer_or_null = {"anyOf": [reference("Overview"), {"type": "null"}]}
    figures = {name: INTEGER for name in ("change", "base", "scaled_base", "new", "base_count", "new_count",
                                          "base_bytes", "new_bytes", "error")}
    figures["estimated"] = BOOLEAN
    numbers = {name: INTEGER for name in ("start_ns", "end_ns", "covered_ns", "asked_ns", "asked_covered_ns",
                                          "windows", "idle_ns", "total")}
    return {
        "OverviewDocument": document("Where time went: the answers to one Overview.",
                                     waits=reference("Overview"), samples=answer_or_null, io=answer_or_null),
        "DiffSide": document("One of two ranges or sessions that are compared.", **numbers, complete=BOOLEAN,
                             missing=list_of(STRING)),
        "DiffRow": document("A stack, the thread first, in both.", stack=list_of(STRING), **figures),
        "DiffRest": document("The rows that are not listed.", rows=INTEGER, **figures),
        "Diff": document("What changed.", version=STRING, probe=STRING,
                         unit={"enum": ["nanoseconds", "count"]}, base=reference("DiffSide"),
                         new=reference("DiffSide"), scaled_total=INTEGER, change=INTEGER, overlap_ns=INTEGER,
                         others=INTEGER, rows=list_of(reference("DiffRow")), rest=reference("DiffRest")),
    }


def schema_of(field):
    base = BASES.get(field.base) or reference(field.base)
    return list_of(base) if field.is_list else dict(base)


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
    definitions.update(documents())
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
