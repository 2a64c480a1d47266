/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the reader of configuration files. A file that is refused gives an error message of one
 * line. The dump of a file that is accepted is accepted, too, and gives the same dump again.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

static int load(const void *data, size_t size, struct config **out, struct config_error *error)
{
	char path[32];
	const struct config_paths paths = { .file = path, .is_file_needed = true };
	int fd = memfd_create("config", MFD_CLOEXEC), r;

	REQUIRE(fd >= 0);
	REQUIRE(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = config_load_from(&paths, NULL, 0, out, error);
	close(fd);
	return r;
}

static char *dump(const struct config *config, size_t *size_out)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size_out);

	REQUIRE(out);
	config_dump(config, out);
	REQUIRE(fclose(out) == 0);
	return text;
}

/* Removes the comments, which say where a value was set. */
static void comments_remove(char *text)
{
	char *to = text;

	while (*text) {
		size_t n = strcspn(text, "\n");

		n += text[n] == '\n';
		if (*text != '#') {
			memmove(to, text, n);
			to += n;
		}
		text += n;
	}
	*to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_error error = { "" };
	struct config *config = NULL, *again = NULL;
	char *first, *second;
	size_t n, n_again;
	int r = load(data, size, &config, &error);

	if (r < 0) {
		REQUIRE(!config && error.text[0] != '\0' && !strchr(error.text, '\n'));
		return 0;
	}
	first = dump(config, &n);
	REQUIRE(load(first, n, &again, &error) == 0);
	second = dump(again, &n_again);
	comments_remove(first);
	comments_remove(second);
	REQUIRE(strcmp(first, second) == 0);
	free(first);
	free(second);
	config_free(config);
	config_free(again);
	return 0;
}
