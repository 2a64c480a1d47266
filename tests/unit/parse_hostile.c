/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts workers that a hostile file has taken over, for test_parse.c. The first word of the file
 * says what such a worker does. The sandbox is the real one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "common/base.h"
#include "daemon/host/fd_message.h"
#include "daemon/parse/answers.h"
#include "daemon/parse/message.h"
#include "daemon/parse/zygote.h"

static uint64_t serial;

static void answer(int fd, const struct parse_answer *head, const void *data, size_t size)
{
	struct parse_answer copy = *head;

	copy.serial = serial;
	if (write(fd, &copy, sizeof(copy)) < 0 || (size && write(fd, data, size) < 0))
		_exit(1);
}

/* Answers correctly that the file has this build-id. */
static void answer_id(int fd, const void *id, size_t size)
{
	struct elf_file file = { .build_id_size = ELF_BUILD_ID_MAX };
	struct parse_answer head = { .kind = PARSE_ELF };
	void *data;

	memcpy(file.build_id, id, size);
	if (answer_elf_encode(&file, &data, &head.size))
		_exit(1);
	answer(fd, &head, data, head.size);
	free(data);
}

static void note(uint32_t *done, int bit, bool has_worked)
{
	if (has_worked)
		*done |= 1U << bit;
}

/* Tries what a worker must not be able to do. Returns a bit for each try that worked. */
static uint32_t escape(int socket_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/stackd.socket" };
	int fds[2];
	uint32_t done = 0;

	note(&done, 0, open("/etc/passwd", O_RDONLY) >= 0);
	note(&done, 1, syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600) >= 0);
	note(&done, 2, socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	note(&done, 3, connect(socket_fd, (void *)&address, sizeof(address)) == 0);
	note(&done, 4, socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	note(&done, 5, kill(getppid(), 0) == 0);
	note(&done, 6, syscall(SYS_fork) > 0);
	note(&done, 7, execl("/bin/true", "true", NULL) == 0);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer needs mmap() */
	note(&done, 8,
	     mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		     MAP_FAILED);
#endif
	note(&done, 9, syscall(SYS_memfd_create, "x", 0) >= 0);
	note(&done, 10, syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0) >= 0);
	note(&done, 11, syscall(SYS_ptrace, 0, 0, 0, 0) >= 0);
	note(&done, 12, syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM);
	note(&done, 13, syscall(SYS_unlinkat, AT_FDCWD, "/nowhere", 0) >= 0 || errno != EPERM);
	note(&done, 14, syscall(SYS_dup, socket_fd) >= 0);
	return done;
}

/* Returns how many MiB can be allocated. */
static uint32_t eat(void)
{
	uint32_t n = 0;

	while (n < 4096 && mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0) != MAP_FAILED)
		n++;
	return n;
}

static volatile uintptr_t word_address = 8;
static uint32_t served; /* number of files with the word "count" that this worker has parsed */

static void serve(int fd, const char *word)
{
	struct parse_answer head = { .kind = PARSE_ELF };
	char nonsense[256];
	uint32_t value;

	memset(nonsense, 0xff, sizeof(nonsense));
	if (!strcmp(word, "fine"))
		answer_id(fd, "fine", 4);
	else if (!strcmp(word, "exit"))
		_exit(0);
	else if (!strcmp(word, "crash"))
		*(volatile int *)word_address = 1;
	else if (!strcmp(word, "spin"))
		for (;;)
			;
	else if (!strcmp(word, "hang"))
		for (;;)
			syscall(SYS_read, fd, nonsense, 1);
	else if (!strcmp(word, "huge"))
		answer(fd, &(struct parse_answer){ 0, PARSE_ELF, 0, UINT64_MAX, 0 }, nonsense, 9);
	else if (!strcmp(word, "large"))
		answer(fd, &(struct parse_answer){ 0, PARSE_ELF, 0, UINT64_C(1) << 32, 0 },
		       nonsense, 9);
	else if (!strcmp(word, "cut"))
		answer(fd, &(struct parse_answer){ 0, PARSE_ELF, 0, 200, 0 }, nonsense, 100),
			_exit(0);
	else if (!strcmp(word, "stall"))
		for (answer(fd, &(struct parse_answer){ 0, PARSE_ELF, 0, 200, 0 }, nonsense, 100);;)
			syscall(SYS_read, fd, nonsense, 1);
	else if (!strcmp(word, "kind"))
		answer(fd, &(struct parse_answer){ 0, PARSE_ROWS, 0, 0, 0 }, NULL, 0);
	else if (!strcmp(word, "positive"))
		answer(fd, &(struct parse_answer){ 5, PARSE_ELF, 0, 0, 0 }, NULL, 0);
	else if (!strcmp(word, "failed"))
		answer(fd, &(struct parse_answer){ -EBADMSG, PARSE_ELF, 0, 8, 0 }, nonsense, 8);
	else if (!strcmp(word, "empty"))
		answer(fd, &head, NULL, 0);
	else if (!strcmp(word, "nonsense"))
		answer(fd, &(struct parse_answer){ 0, PARSE_ELF, 0, 256, UINT64_MAX }, nonsense,
		       256);
	else if (!strcmp(word, "early"))
		answer_id(fd, "fine", 4), answer_id(fd, "evil", 4);
	else if (!strcmp(word, "count"))
		value = ++served, answer_id(fd, &value, sizeof(value));
	else if (!strcmp(word, "linger"))
		for (answer_id(fd, "fine", 4);;)
			syscall(SYS_read, fd, nonsense, 1);
	else if (!strcmp(word, "escape"))
		value = escape(fd), answer_id(fd, &value, sizeof(value));
	else if (!strcmp(word, "eat"))
		value = eat(), answer_id(fd, &value, sizeof(value));
	else
		_exit(2);
}

/* Reads a byte of the file, which the test sees in the position of its descriptor, and hangs. */
static void hold(int file_fd, int fd)
{
	char byte;

	if (read(file_fd, &byte, 1) != 1)
		_exit(4);
	for (;;)
		syscall(SYS_read, fd, &byte, 1);
}

static void hostile_run(int fd)
{
	struct parse_request request;
	int fds[2];

	while (fd_message_receive(fd, &request, sizeof(request), fds, 2) > 0) {
		char word[32] = "";

		serial = request.serial;
		if (pread(fds[0], word, sizeof(word) - 1, 0) < 0)
			_exit(3);
		word[strcspn(word, "\n")] = '\0';
		if (!strcmp(word, "hold"))
			hold(fds[0], fd);
		serve(fd, word);
		closep(&fds[0]);
		closep(&fds[1]);
	}
}

int main(void)
{
	return zygote_main(hostile_run);
}
