/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_JSON_STRING_H
#define STACKD_CLIENT_BASE_JSON_STRING_H

/* Prints strings of JSON, for documents that are not messages of the daemon. Any thread. */

#include <stdio.h>

/*
 * Prints text, which name_escape() has made valid UTF-8 without control characters, as a string in
 * quotes. Escapes <, too, so that </script> in a name does not end a script that has the document.
 */
void json_print_string(FILE *out, const char *text);

#endif
