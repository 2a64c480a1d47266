#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Installs the package for the tests that follow. test_install checks it in detail."""

from system import *

done = run(["dpkg", "-i", "/stackd/stackd.deb"])
check(done.code == 0, f"installed: {done}")
check(state_of() == "active", f"the service is {state_of()}")
finish()
