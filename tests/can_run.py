# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells whether live tests can run here: root, BTF, and a kernel that lets a tracing program of BPF be
loaded. Ends with 0 if so, else prints one line why not and ends with 1. It loads a program by itself, as
a tool that is broken must not look like such a kernel."""

import ctypes
import os
import struct
import sys

BTF = "/sys/kernel/btf/vmlinux"

# linux/bpf.h; the number of the system call is x86-64's.
SYS_BPF = 321
BPF_PROG_LOAD = 5
BPF_PROG_TYPE_RAW_TRACEPOINT = 17
ATTR_SIZE = 128

# r0 = 0; exit.
PROGRAM = struct.pack("<BBhi", 0xB7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)


def load_program():
    """Loads the program and drops it. Returns 0 or an errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(PROGRAM, len(PROGRAM))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQ", BPF_PROG_TYPE_RAW_TRACEPOINT, len(PROGRAM) // 8,
                       ctypes.addressof(program), ctypes.addressof(licence))
    attr = ctypes.create_string_buffer(attr.ljust(ATTR_SIZE, b"\0"), ATTR_SIZE)
    fd = libc.syscall(SYS_BPF, BPF_PROG_LOAD, attr, ATTR_SIZE)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def why_not():
    if os.geteuid() != 0:
        return "this needs root"
    if not os.path.exists(BTF):
        return f"this kernel has no BTF ({BTF})"
    error = load_program()
    return f"the kernel refuses a BPF program: {os.strerror(error)}" if error else None


def main():
    reason = why_not()
    if reason:
        print(reason)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
