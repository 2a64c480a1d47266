/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_EMBEDDED_H
#define STACKD_CLIENT_REPORT_EMBEDDED_H

/* The page in front of its data and behind it, which embed.py makes of report.html. Constant. */
extern const char page_head[];
extern const char page_tail[];

#endif
