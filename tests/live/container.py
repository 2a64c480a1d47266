# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of known truth in a container of their own."""

from harness import *

# $1 is a directory that becomes the root, in a file system that no other process sees.
CONTAINER = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir -p "$1/lib" "$1/lib64" "$1/usr" "$1/proc" "$1/dev" "$1/old"
mount --bind /usr "$1/usr"
mount --rbind /lib "$1/lib" 2>/dev/null || true
mount --rbind /lib64 "$1/lib64" 2>/dev/null || true
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
cp "$2" "$1/contained"
cd "$1"
pivot_root . old
umount -l /old
shift 2
exec /contained "$@"
"""


class Contained(Program):
    """A program in a container: it is /contained, in a mount namespace with a root of its own.
    pid_there is its pid as the host has it; pid is that of unshare, its parent."""

    def __init__(self, name, *args):
        argv = ["--mount", "--pid", "--fork", "sh", "-c", CONTAINER, "sh", make_temp_dir()]
        super().__init__("unshare", *argv, os.path.join(PROGS, name), *args,
                         path=need_tool("unshare"))
        self.pid_there = None

    def ready(self):
        super().ready()
        (self.pid_there,) = children_of(self.pid)[:1]
        return self
