/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"

static FILE *caught;
static int saved_stderr;

/* Redirects stderr to a file during a test. */
static int setup(void **state)
{
	caught = tmpfile();
	saved_stderr = dup(STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	log_setup(LOG_TARGET_STDERR, LOG_INFO);
	return dup2(fileno(caught), STDERR_FILENO) < 0;
}

static int teardown(void **state)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	return fclose(caught);
}

static const char *said(void)
{
	static char text[65536];

	rewind(caught);
	text[fread(text, 1, sizeof(text) - 1, caught)] = '\0';
	return text;
}

static void test_lines(void **state)
{
	errno = ENOTTY;
	log_info("hello %d", 7);
	log_notice("noted");
	log_warning("odd");
	log_error("bad");
	log_debug("not shown");
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(log_err(-ENOENT, "open %s", "x"), -ENOENT);
	assert_int_equal(errno, ENOTTY);
	assert_string_equal(said(), "stackd: hello 7\nstackd: noted\nstackd: warning: odd\n"
				    "stackd: error: bad\n"
				    "stackd: error: open x: No such file or directory\n");
}

/* errno is kept even when there is no stderr to write to. */
static void test_errno_is_kept(void **state)
{
	close(STDERR_FILENO);
	errno = ENOTTY;
	log_warning("unheard");
	assert_int_equal(errno, ENOTTY);
	log_err(-EIO, "unheard");
	assert_int_equal(errno, ENOTTY);
}

static void test_priority(void **state)
{
	log_setup(LOG_TARGET_STDERR, LOG_DEBUG);
	log_debug("shown");
	log_setup(LOG_TARGET_STDERR, LOG_ERR);
	log_warning("not shown");
	assert_string_equal(said(), "stackd: shown\n");
}

/* The name of a process may contain anything, but a message stays one line. */
static void test_control_bytes(void **state)
{
	log_info("comm %s", "a\nb\033[2Jc\x7f");
	assert_string_equal(said(), "stackd: comm a?b?[2Jc?\n");
}

static void test_long_text_is_cut(void **state)
{
	_cleanup_(freep) char *text = malloc(100001);
	const char *line;

	memset(text, 'x', 100000);
	text[100000] = '\0';
	log_info("%s", text);
	log_err(-EIO, "%s", text);
	line = said();
	assert_int_equal(strcspn(line, "\n"), strlen("stackd: ") + 2047);
	assert_memory_equal(strchr(line, '\n') - 4, "x...\nstackd: error: ", 20);
}

static void test_journal_only_when_it_is_stderr(void **state)
{
	struct stat st;
	char value[64];

	/* JOURNAL_STREAM of another stream: a shell that redirected stderr keeps the variable. */
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(value, sizeof(value), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	setenv("JOURNAL_STREAM", value, 1);
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	log_info("one");
	setenv("JOURNAL_STREAM", "rubbish", 1);
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	log_info("two");
	assert_string_equal(said(), "stackd: one\nstackd: two\n");
}

static void *talk(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_info("thread %s says something of some length", (const char *)arg);
	return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
	pthread_t threads[4];
	char names[4][2] = { "a", "b", "c", "d" };
	_cleanup_(freep) char *text = NULL;
	size_t lines = 0;
	char *save;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, talk, names[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	text = strdup(said());
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(strlen(line), strlen("stackd: thread a says something of some "
						      "length"));
		lines++;
	}
	assert_int_equal(lines, 800);
}

/* Plays the service manager with a socket in the abstract namespace. */
static int manager_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char name[64];

	snprintf(name, sizeof(name), "@stackd-test-%d", getpid());
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	memcpy(address.sun_path, name, strlen(name));
	address.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void check_told(int fd, const char *message)
{
	char text[1024];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_int_equal(strncmp(text, message, strlen(message)), 0);
}

static void test_notify(void **state)
{
	_cleanup_(closep) int fd = manager_open();

	notify_status("%d windows", 3);
	check_told(fd, "STATUS=3 windows");
	notify_ready();
	check_told(fd, "READY=1");
	notify_reloading();
	check_told(fd, "RELOADING=1\nMONOTONIC_USEC=");
	notify_watchdog();
	check_told(fd, "WATCHDOG=1");
	notify_stopping();
	check_told(fd, "STOPPING=1");
	unsetenv("NOTIFY_SOCKET");
	notify_ready();
	assert_int_equal(recv(fd, &(char){ 0 }, 1, 0), -1);
	assert_string_equal(said(), "");
	/* A manager that is not there is reported once. */
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	notify_ready();
	notify_watchdog();
	assert_string_equal(said(), "stackd: error: notify the service manager of READY=1: "
				    "No such file or directory\n");
	unsetenv("NOTIFY_SOCKET");
}

static void test_watchdog(void **state)
{
	char pid[32];

	unsetenv("WATCHDOG_USEC");
	assert_int_equal(notify_watchdog_ns(), 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_ns(), 30 * NS_PER_S);
	unsetenv("WATCHDOG_USEC");
}

static void test_listen_fds(void **state)
{
	unsetenv("LISTEN_FDS");
	assert_int_equal(notify_listen_fds(), 0);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_PID", "1", 1); /* the pid of another process */
	assert_int_equal(notify_listen_fds(), 0);
	assert_null(getenv("LISTEN_FDS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errno_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_priority, setup, teardown),
		cmocka_unit_test_setup_teardown(test_control_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_text_is_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_journal_only_when_it_is_stderr, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_threads_do_not_mix_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_notify, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watchdog, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listen_fds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
