#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that no chain of calls within a BPF program needs more stack than a kernel gives: 512 bytes,
where each function's part is rounded up to 32. Kernels from 6.12 on may give more to programs of
tracing, so a program that loads there may be refused by 6.1.

Usage: test_bpf_stack.py OBJECT...
"""

import os
import struct
import sys

LIMIT, ROUND = 512, 32
FP = 10  # the register that holds the end of the stack
INSN = struct.Struct("<BBhi")
R_BPF_64_64, R_BPF_64_32 = 1, 10
CALL, LD_IMM64, MOV_REG, ADD_IMM = 0x85, 0x18, 0xBF, 0x07
PSEUDO_CALL = 1
SHT_SYMTAB, SHT_REL, STT_FUNC, SHF_EXECINSTR = 2, 9, 2, 4


class Object:
    """The code, the functions and the relocations of an ELF file."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        assert self.data[:6] == b"\x7fELF\x02\x01", path
        table, count = struct.unpack_from("<Q", self.data, 40)[0], *struct.unpack_from("<H", self.data, 60)
        # name, type, flags, address, offset, size, link, info, alignment, size of an entry
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + 64 * i)
                         for i in range(count)]
        symtab = next(s for s in self.sections if s[1] == SHT_SYMTAB)
        strings = self.sections[symtab[6]][4]
        # name, info, other, section, value, size
        self.symbols = [struct.unpack_from("<IBBHQQ", self.data, symtab[4] + 24 * i)
                        for i in range(symtab[5] // 24)]
        self.functions = {}
        for name, info, _, section, value, size in self.symbols:
            if info & 15 == STT_FUNC and self.sections[section][2] & SHF_EXECINSTR:
                end = self.data.index(b"\0", strings + name)
                text = self.data[strings + name:end].decode()
                self.functions[section, value // 8] = (text, size // 8)
        self.relocations = {}
        for s in (s for s in self.sections if s[1] == SHT_REL):
            for at in range(s[4], s[4] + s[5], 16):
                offset, info = struct.unpack_from("<QQ", self.data, at)
                self.relocations[s[7], offset // 8] = (info & 0xFFFFFFFF, self.symbols[info >> 32])

    def insn(self, section, i):
        """Returns the code, the two registers, the offset and the constant of an instruction."""
        code, regs, off, imm = INSN.unpack_from(self.data, self.sections[section][4] + 8 * i)
        return code, regs & 15, regs >> 4, off, imm

    def callee(self, section, i):
        """Returns the function that an instruction calls or whose address it takes, or None."""
        code, _, src, _, imm = self.insn(section, i)
        kind, symbol = self.relocations.get((section, i), (None, None))
        if code == CALL and src == PSEUDO_CALL:
            if kind == R_BPF_64_32 and not symbol[3]:
                return None  # a function of the kernel
            if kind == R_BPF_64_32:
                return symbol[3], symbol[4] // 8 + imm + 1
            return section, i + imm + 1
        if code == LD_IMM64 and kind == R_BPF_64_64 and self.sections[symbol[3]][2] & SHF_EXECINSTR:
            return symbol[3], (symbol[4] + imm) // 8
        return None

    def scan(self, key):
        """Returns how far a function's own accesses go down its stack, and the functions it calls."""
        section, first = key
        deepest, callees, copied = 0, set(), None
        for i in range(first, first + self.functions[key][1]):
            code, dst, src, off, imm = self.insn(section, i)
            kind = code & 7
            if (kind == 1 and src == FP) or (kind in (2, 3) and dst == FP):
                deepest = min(deepest, off)
            if code == ADD_IMM and dst == copied:
                deepest = min(deepest, imm)
            copied = dst if code == MOV_REG and src == FP else None
            callee = self.callee(section, i)
            if callee:
                callees.add(callee)
        return -deepest, callees

    def chain(self, key, above=()):
        """Returns the stack of the deepest chain of calls from a function on, and its functions."""
        assert key not in above, f"{self.functions[key][0]} calls itself"
        own, callees = self.scan(key)
        own = max(-(-own // ROUND), 1) * ROUND
        below, names = max((self.chain(callee, (*above, key)) for callee in callees),
                           default=(0, []))
        return own + below, [f"{self.functions[key][0]} {own}", *names]


def main():
    worst, seen = 0, set()
    for path in sys.argv[1:]:
        obj = Object(path)
        called = {callee for key in obj.functions for callee in obj.scan(key)[1]}
        for key in obj.functions:
            if key in called:
                continue
            size, names = obj.chain(key)
            worst = max(worst, size)
            # Programs that differ in their attachment only have the same chain.
            if size > LIMIT - 2 * ROUND and (path, size, *names[1:]) not in seen:
                print(f"{'FAILED' if size > LIMIT else 'ok'}: {os.path.basename(path)}: {size} bytes: "
                      f"{', '.join(names)}")
            seen.add((path, size, *names[1:]))
    print(f"the deepest chain has {worst} bytes of {LIMIT}")
    return 0 if 0 < worst <= LIMIT else 1


sys.exit(main())
