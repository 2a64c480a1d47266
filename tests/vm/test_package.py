#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The package alone, for what is tested with it: test_install looks at it closer."""

from system import *

done = run(["dpkg", "-i", "/stackd/stackd.deb"], timeout=300)
check(done.code == 0, f"installed: {done}")
check(state_of() == "active", f"the service is {state_of()}")
finish()
