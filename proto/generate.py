#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the C side of the wire from the definition files: structs, field tables, methods, errors.

Usage: generate.py OUT.h OUT.c FILE.varlink...

A type T of a definition becomes struct wire_t and, where a list of it is used, struct wire_ts with
the members v and n. A method M becomes struct wire_m_request and struct wire_m_reply. The comment
above a definition is copied above its struct. The C type of a member is:

    varlink                C                           value when absent
    string, ?string        const char *                NULL
    int, ?int              int64_t                     WIRE_ABSENT
    bool                   bool
    ?bool                  int, 0 or 1                 WIRE_BOOL_ABSENT
    Time, ?Time            int64_t, ns since 1970      WIRE_ABSENT
    []string, ?[]string    struct wire_strs            n is 0
    []int, ?[]int          struct int_list             n is 0
    T                      struct wire_t
    ?T                     const struct wire_t *       NULL
    []T, ?[]T              struct wire_ts              n is 0

A struct with a member whose value when absent is WIRE_ABSENT or WIRE_BOOL_ABSENT has a function that
returns it with all of these absent: struct wire_t wire_t_absent(void).

Time is the type of that name in the definition: {ns, text}, the same instant as a number and as
RFC 3339. An error has at most one parameter of its own, a string or an int, and it may have a
message: struct wire_error of proto/wire_error.h can hold any error.
"""

import re
import sys

# C names of the definitions whose C name is not just their own name in small letters.
C_NAMES = {
    "Walks": "walk",
    "GetInfo": "info",
    "GetInterfaceDescription": "description",
}

# Methods whose reply has the same parameters as the reply of another method, and the same struct.
SAME_REPLY = {"Follow": "Snapshot", "Overview": "Snapshot"}

TOKEN = re.compile(r"\s+|(?P<comment>#[^\n]*)|(?P<token>->|\?|\[\]|[A-Za-z][A-Za-z0-9_.]*|[(),:])")
FIELDS_MAX = 128  # RECORD_FIELDS_MAX of record.h


class Field:
    """One member. optional: its type begins with ?. is_list: it has [] before the base type."""

    def __init__(self, name, optional, is_list, base):
        self.name, self.optional, self.is_list, self.base = name, optional, is_list, base

    def __eq__(self, other):
        return vars(self) == vars(other)

    def is_struct(self):
        return self.base not in ("string", "int", "bool", "Time")

    def kind(self):
        """Returns the constant of enum field_kind (proto/record.h) for this member."""
        if self.is_list:
            return {"string": "FIELD_STRINGS", "int": "FIELD_INTS"}.get(self.base, "FIELD_STRUCTS")
        if self.is_struct():
            return "FIELD_STRUCT_PTR" if self.optional else "FIELD_STRUCT"
        if self.base == "bool":
            return "FIELD_TRISTATE" if self.optional else "FIELD_BOOL"
        return f"FIELD_{self.base.upper()}"

    def absent(self, found):
        """Returns the C value of this member when it is absent; None if that is 0, NULL or empty."""
        if self.kind() in ("FIELD_INT", "FIELD_TIME"):
            return "WIRE_ABSENT" if self.optional else None
        if self.kind() == "FIELD_TRISTATE":
            return "WIRE_BOOL_ABSENT"
        record = found.type_of(self) if self.kind() == "FIELD_STRUCT" else None
        return f"wire_{record.c}_absent()" if record and record.absents(found) else None

    def declaration(self):
        before = {
            "FIELD_STRING": "const char *",
            "FIELD_INT": "int64_t ",
            "FIELD_TIME": "int64_t ",
            "FIELD_BOOL": "bool ",
            "FIELD_TRISTATE": "int ",
            "FIELD_STRINGS": "struct wire_strs ",
            "FIELD_INTS": "struct int_list ",
            "FIELD_STRUCTS": f"struct wire_{c_name(self.base)}s ",
            "FIELD_STRUCT": f"struct wire_{c_name(self.base)} ",
            "FIELD_STRUCT_PTR": f"const struct wire_{c_name(self.base)} *",
        }[self.kind()]
        words = ["optional"] * self.optional + ["time"] * (self.base == "Time")
        comment = f" /* {' '.join(words)} */" if words else ""
        return f"{before}{self.name};{comment}"


class Record:
    """A struct with a table of fields: a type, or the parameters of a request or of a reply."""

    def __init__(self, name, c, fields, comment):
        if len(fields) > FIELDS_MAX:
            sys.exit(f"{name} has more than {FIELDS_MAX} fields")
        self.name, self.c, self.fields, self.comment = name, c, fields, comment

    def absents(self, found):
        """Returns the names and C values of the members that are not 0 when they are absent."""
        values = [(field.name, field.absent(found)) for field in self.fields]
        return [(name, value) for name, value in values if value]


class Method:
    """request and reply are records; request is None where the method has no parameters."""

    def __init__(self, name, interface, request, reply):
        self.name, self.interface, self.request, self.reply = name, interface, request, reply


class Error:
    """first: the one parameter besides the message, a Field; None if there is no such parameter."""

    def __init__(self, name, interface, first, has_message):
        self.name, self.interface, self.first, self.has_message = name, interface, first, has_message


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def c_name(name):
    return C_NAMES.get(name, snake(name))


class Parser:
    """Reads one definition file. Adds the types, methods and errors in it to a Definition."""

    def __init__(self, path, found):
        self.path, self.found = path, found
        self.tokens = []  # tuples of a token, the comment above it, and the number of its line
        with open(path, encoding="ascii") as file:
            self.scan(file.read())
        self.interface = None

    def fail(self, line, text):
        sys.exit(f"{self.path}:{line}: {text}")

    def scan(self, text):
        at, comment = 0, []
        while at < len(text):
            match = TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if not match:
                self.fail(line, f"cannot read {text[at:at + 20]!r}")
            if match["comment"]:
                comment.append(match["comment"].removeprefix("#").removeprefix(" "))
            elif match["token"]:
                self.tokens.append((match["token"], comment, line))
                comment = []
            elif match[0].count("\n") > 1:
                comment = []  # a comment before an empty line belongs to no definition
            at = match.end()
        self.tokens.append(("", [], line))

    def take(self, expected=None):
        token, _, line = self.tokens.pop(0)
        if expected and token != expected:
            self.fail(line, f"expected {expected!r}, found {token!r}")
        return token

    def try_take(self, token):
        return self.tokens[0][0] == token and bool(self.tokens.pop(0))

    def fields(self):
        found = []
        self.take("(")
        while not self.try_take(")"):
            if found:
                self.take(",")
            name = self.take()
            self.take(":")
            optional, is_list = self.try_take("?"), self.try_take("[]")
            line = self.tokens[0][2]
            found.append(Field(name, optional, is_list, self.take()))
            if is_list and found[-1].base in ("bool", "Time"):
                self.fail(line, f"no list of {found[-1].base} can be written in C")
            if found[-1].is_struct() and found[-1].base not in self.found.types:
                self.fail(line, f"type {found[-1].base} is not defined above")
        return found

    def parse_method(self, name, comment, line):
        request = reply = None
        c = c_name(name)
        fields = self.fields()
        self.take("->")
        if fields:
            request = self.found.add_record(Record(name, f"{c}_request", fields, comment))
        fields = self.fields()
        if name in SAME_REPLY:
            reply = next(m.reply for m in self.found.methods if m.name == SAME_REPLY[name])
            if reply.fields != fields:
                self.fail(line, f"{name} does not reply as {SAME_REPLY[name]}")
        else:
            reply = self.found.add_record(
                Record(f"{name}()", f"{c}_reply", fields, [] if request else comment))
        self.found.methods.append(Method(name, self.interface, request, reply))

    def parse_error(self, name, line):
        fields = self.fields()
        has_message = bool(fields) and fields[-1].name == "message"
        own = fields[:-1] if has_message else fields
        if len(own) > 1 or any(f.is_list or f.base not in ("string", "int") for f in own):
            self.fail(line, f"struct wire_error cannot hold the parameters of {name}")
        self.found.errors.append(Error(name, self.interface, own[0] if own else None, has_message))

    def parse(self):
        self.take("interface")
        self.interface = self.take()
        while self.tokens[0][0]:
            word, comment, line = self.tokens.pop(0)
            name = self.take()
            if word == "type" and name == "Time":
                self.fields()
            elif word == "type":
                self.found.types.add(name)
                self.found.add_record(Record(name, c_name(name), self.fields(), comment))
            elif word == "method":
                self.parse_method(name, comment, line)
            elif word == "error":
                self.parse_error(name, line)
            else:
                self.fail(line, f"expected type, method or error, found {word!r}")


class Definition:
    """Everything that the files define, in the order of the files."""

    def __init__(self):
        self.types, self.records, self.methods, self.errors = set(), [], [], []

    def add_record(self, record):
        self.records.append(record)
        return record

    def type_of(self, field):
        return next(r for r in self.records if r.name == field.base)

    def lists(self):
        """Returns the names of the types that some member has a list of."""
        fields = [f for r in self.records for f in r.fields]
        return {f.base for f in fields if f.kind() == "FIELD_STRUCTS"}

    def requests(self):
        return [m for m in self.methods if m.request]

    def replies(self):
        return [m for m in self.methods if m.name not in SAME_REPLY]


HEADER = """\
/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Written by proto/generate.py from the .varlink files: edit those. */
#ifndef STACKD_PROTO_WIRE_H
#define STACKD_PROTO_WIRE_H

/*
 * The parameters of all methods as C structs, the same for daemon and client. Encoding a struct
 * leaves it unchanged. A struct that was decoded points into the arena of the caller. Plain
 * values: any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/int_list.h"

struct record;

/* The value of an optional int or time that is absent. Optional strings and structs are NULL. */
#define WIRE_ABSENT INT64_MIN

/* The value of an optional bool that is absent. */
enum { WIRE_BOOL_ABSENT = -1 };

struct wire_strs {
	const char *const *v;
	size_t n;
};
"""


def write_struct(out, record):
    out.append("")
    if record.comment:
        out += ["/*"] + [f" * {line}".rstrip() for line in record.comment] + [" */"]
    out.append(f"struct wire_{record.c} {{")
    out += [f"\t{field.declaration()}" for field in record.fields]
    out.append("};")


def write_absent(out, record, found):
    absents = record.absents(found)
    if absents:
        out += ["", "/* Returns the struct with all optional members absent, and 0 in the others. */",
                f"static inline struct wire_{record.c} wire_{record.c}_absent(void)", "{",
                f"\treturn (struct wire_{record.c}){{"]
        out += [f"\t\t.{name} = {value}," for name, value in absents] + ["\t};", "}"]


def write_list_macro(out, comment, name, methods):
    rows = [f"#define {name}(X)"] + [f"\tX({c_name(m.name)})" for m in methods]
    out += ["", f"/* {comment} */", " \\\n".join(rows)]


def write_header(found):
    out = [HEADER.rstrip()]
    lists = found.lists()
    for record in found.records:
        write_struct(out, record)
        write_absent(out, record, found)
        if record.name in lists:
            out += ["", f"struct wire_{record.c}s {{", f"\tconst struct wire_{record.c} *v;",
                    "\tsize_t n;", "};"]
    out += ["", "/* Holds the reply of any method. */", "union wire_reply {"]
    out += [f"\tstruct wire_{m.reply.c} {c_name(m.name)};" for m in found.replies()]
    out += ["};", "", "/* The table of fields of each struct (see proto/record.h). */"]
    out += [f"extern const struct record record_{r.c};" for r in found.records]
    out += ["", "/* All of these tables; NULL follows the last one. */",
            "extern const struct record *const wire_records[];"]
    out += ["", "struct wire_method {", "\tconst char *name; /* full name: \"io.stackd.Status\" */",
            "\tconst struct record *request; /* NULL: the method has no parameters */",
            "\tconst struct record *reply;", "};", ""]
    out += [f"extern const struct wire_method method_{c_name(m.name)};" for m in found.methods]
    write_list_macro(out, "Calls X(method) for each method of io.stackd.", "WIRE_METHODS",
                     [m for m in found.methods if m.interface == "io.stackd"])
    write_list_macro(out, "Calls X(method) for each method that has parameters.", "WIRE_REQUESTS",
                     found.requests())
    write_list_macro(out, "Calls X(method) for each method whose reply has a struct of its own.",
                     "WIRE_REPLIES", found.replies())
    out += ["", "enum wire_error_code {",
            "\tERROR_NONE, /* no error, or one whose name is not known here */"]
    out += [f"\tERROR_{snake(e.name).upper()}," for e in found.errors]
    out += ["\tWIRE_ERRORS", "};", "", "#endif", ""]
    return "\n".join(out)


def c_bool(value):
    return "true" if value else "false"


def write_source(found):
    out = ["/* SPDX-License-Identifier: GPL-2.0-or-later */",
           "/* Written by proto/generate.py from the .varlink files: edit those. */",
           '#include "proto/wire.h"', "", '#include "common/base.h"', '#include "proto/record.h"',
           '#include "proto/wire_error.h"']
    for r in found.records:
        out += ["", f"static const struct field fields_{r.c}[] = {{"]
        for f in r.fields:
            of = f"&record_{c_name(f.base)}" if f.is_struct() else "NULL"
            out.append(f'\t{{ "{f.name}", {f.kind()}, {c_bool(f.optional)}, '
                       f"offsetof(struct wire_{r.c}, {f.name}), {of} }},")
        out += ["};", "", f"const struct record record_{r.c} = {{",
                f'\t"{r.name}", sizeof(struct wire_{r.c}), fields_{r.c}, ARRAY_SIZE(fields_{r.c}),',
                "};"]
    out += ["", "const struct record *const wire_records[] = {"]
    out += [f"\t&record_{r.c}," for r in found.records] + ["\tNULL,", "};"]
    for m in found.methods:
        request = f"&record_{m.request.c}" if m.request else "NULL"
        out += ["", f"const struct wire_method method_{c_name(m.name)} = {{",
                f'\t"{m.interface}.{m.name}", {request}, &record_{m.reply.c},', "};"]
    out += ["", "const struct wire_error_shape wire_error_shapes[WIRE_ERRORS] = {"]
    for e in found.errors:
        first = f'"{e.first.name}"' if e.first else "NULL"
        is_limit = e.first is not None and e.first.base == "int"
        out.append(f'\t[ERROR_{snake(e.name).upper()}] = {{ "{e.interface}.{e.name}", {first}, '
                   f"{c_bool(is_limit)}, {c_bool(e.has_message)} }},")
    return "\n".join(out + ["};", ""])


def main():
    header, source, *files = sys.argv[1:]
    found = Definition()
    for path in files:
        Parser(path, found).parse()
    with open(header, "w", encoding="ascii") as out:
        out.write(write_header(found))
    with open(source, "w", encoding="ascii") as out:
        out.write(write_source(found))


if __name__ == "__main__":
    main()
