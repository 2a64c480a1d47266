/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

/* Replaces escapes, such as \040 for a blank, by the bytes for which they stand. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* A line is like "36 35 98:0 /root /point options shared:1 - type source options". */
int mountinfo_parse(const char *line, struct mountinfo *out)
{
	const char *end = strstr(line, " - ");

	*out = (struct mountinfo){ 0 };
	if (!end || sscanf(end, " - %63s %63s", out->type, out->source) != 2 ||
	    sscanf(line, "%d %*d %u:%u %*s %ms %ms", &out->id, &out->major, &out->minor,
		   &out->point, &out->options) != 5)
		return -EINVAL;
	unescape(out->point);
	return 0;
}

void mountinfo_fini(struct mountinfo *mount)
{
	free(TAKE(mount->point));
	free(TAKE(mount->options));
}
