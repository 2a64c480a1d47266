/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens files as the daemon's process for that does, for test_opener.c. */
#include "daemon/host/opener.h"

int main(void)
{
	return opener_main();
}
