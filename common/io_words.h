/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_IO_WORDS_H
#define STACKD_COMMON_IO_WORDS_H

/*
 * The words that the daemon writes and the client reads in answers of the probe iolat: names of
 * layers, kinds of operations, and the system calls that are traced. Each macro below is a list and
 * calls the macro X once for each entry. No code, no state.
 */

#include <sys/syscall.h>

/* Calls X(LAYER, word) for each layer of enum io_layer, from the program down to the device. */
#define IO_LAYER_WORDS(X)        \
	X(SYSCALL, "syscall")    \
	X(VFS, "vfs")            \
	X(FS, "fs")              \
	X(BLOCK, "block")        \
	X(THROTTLE, "throttled") \
	X(QUEUE, "queue")        \
	X(DEVICE, "device")

/* Calls X(OP, word) for each kind of operation of enum io_op. */
#define IO_OP_WORDS(X)        \
	X(READ, "read")       \
	X(WRITE, "write")     \
	X(SYNC, "sync")       \
	X(OPEN, "open")       \
	X(FLUSH, "flush")     \
	X(DISCARD, "discard") \
	X(SUBMIT, "submit")   \
	X(OTHER, "other")

/* Newer architectures do not have the system call open(): their programs call openat() instead. */
#ifdef SYS_open
#define IO_CALL_WORDS_OPEN(X) X(open, OPEN, RESULT)
#else
#define IO_CALL_WORDS_OPEN(X)
#endif

/*
 * Calls X(name, OP, FILE) for each system call that is traced. OP is its kind of operation. FILE is
 * the last word in the name of a constant of enum io_call_file, which says which file the call
 * uses.
 */
#define IO_CALL_WORDS(X)                \
	X(read, READ, FIRST)            \
	X(pread64, READ, FIRST)         \
	X(readv, READ, FIRST)           \
	X(preadv, READ, FIRST)          \
	X(preadv2, READ, FIRST)         \
	X(write, WRITE, FIRST)          \
	X(pwrite64, WRITE, FIRST)       \
	X(writev, WRITE, FIRST)         \
	X(pwritev, WRITE, FIRST)        \
	X(pwritev2, WRITE, FIRST)       \
	X(sendfile, WRITE, FIRST)       \
	X(copy_file_range, WRITE, OUT)  \
	X(splice, WRITE, OUT)           \
	X(fsync, SYNC, FIRST)           \
	X(fdatasync, SYNC, FIRST)       \
	X(syncfs, SYNC, FIRST)          \
	X(sync_file_range, SYNC, FIRST) \
	X(sync, SYNC, NONE)             \
	IO_CALL_WORDS_OPEN(X)           \
	X(openat, OPEN, RESULT)         \
	X(openat2, OPEN, RESULT)        \
	X(io_uring_enter, SUBMIT, NONE) \
	X(io_submit, SUBMIT, NONE)      \
	X(io_getevents, SUBMIT, NONE)

#endif
