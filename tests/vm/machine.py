# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines of Debian's own kernels: the newest image of a series from the package archive,
a small root file system as initrd, and qemu's emulator around both, without /dev/kvm.

Everything fetched or built is kept in a cache directory and made again only when it is missing:
    kernel/NAME_VERSION/      an unpacked linux-image package (boot/vmlinuz-*, lib/modules)
    rootfs/HASH.cpio          a root file system, by suite and list of packages
Needs root (mmdebstrap, device nodes), apt-get with bookworm and bookworm-security, and the Debian
packages of NEEDS. Times in a machine mean nothing: every instruction is emulated.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

NEEDS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "cpio": "cpio",
}

# Package names of a series; the newest that apt knows is taken, none is pinned.
KERNELS = {
    "6.1": r"^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$",
    "6.12": r"^linux-image-6\.12\.[0-9]+\+deb1[23]-cloud-amd64$",
}

# What stackd links to, and what the live tests call.
PACKAGES = (
    "kmod",
    "libbpf1",
    "libcmocka0",
    "libelf1",
    "libjson-c5",
    "libsqlite3-0",
    "libsystemd0",
    "libuv1",
    "libzstd1",
    "procps",
    "python3",
    "util-linux",
)

LEAVE_OUT = ("doc", "info", "locale", "man")

EXIT_LINE = re.compile(rb"^machine: exit ([0-9]+)\r?$", re.MULTILINE)


class MachineError(Exception):
    """With a text for the user."""


def missing():
    """Debian packages to install before a machine can run."""
    return sorted(package for tool, package in NEEDS.items() if not shutil.which(tool))


def cache_dir():
    here = os.path.dirname(os.path.abspath(__file__))
    default = os.path.join(here, "..", "..", ".cache", "vm")
    return os.path.abspath(os.environ.get("STACKD_VM_CACHE", default))


def command(argv, **kwargs):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    if done.returncode:
        error = done.stderr.decode("utf-8", "replace").strip()[-2000:]
        raise MachineError(f"{' '.join(argv)}: exit {done.returncode}: {error}")
    return done.stdout


class Locked:
    """One builder at a time in a cache directory."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, "lock")

    def __enter__(self):
        self.file = open(self.path, "w", encoding="ascii")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *args):
        self.file.close()


def version_key(name):
    return [int(number) for number in re.findall(r"[0-9]+", name)]


def newest_kernel(series):
    """The package name and version of the newest kernel of a series that apt can download."""
    found = command(["apt-cache", "search", "--names-only", KERNELS[series]]).decode()
    names = [line.split(" ", 1)[0] for line in found.splitlines()]
    if not names:
        raise MachineError(f"apt knows no kernel package {KERNELS[series]} (apt-get update?)")
    name = max(names, key=version_key)
    text = command(["apt-cache", "show", "--no-all-versions", name]).decode()
    return name, re.search(r"^Version: (.*)$", text, re.MULTILINE).group(1)


def kernel(series):
    """The directory of the unpacked package of a series of KERNELS."""
    name, version = newest_kernel(series)
    home = os.path.join(cache_dir(), "kernel")
    target = os.path.join(home, f"{name}_{version}")
    with Locked(home):
        if os.path.isdir(target):
            return target
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            command(["apt-get", "download", f"{name}={version}"], cwd=scratch)
            (package,) = (f for f in os.listdir(scratch) if f.endswith(".deb"))
            tree = os.path.join(scratch, "tree")
            command(["dpkg", "-x", os.path.join(scratch, package), tree])
            os.rename(tree, target)
    return target


def vmlinuz(kernel_dir):
    boot = os.path.join(kernel_dir, "boot")
    (name,) = (f for f in os.listdir(boot) if f.startswith("vmlinuz-"))
    return os.path.join(boot, name)


def cpio(directory, target):
    """Writes the tree as an archive that the kernel unpacks; archives may follow each other."""
    with open(target, "wb") as out:
        find = subprocess.Popen(["find", ".", "-print0"], cwd=directory, stdout=subprocess.PIPE)
        subprocess.run(
            ["cpio", "--quiet", "-0", "-o", "-H", "newc", "-R", "0:0"],
            cwd=directory,
            stdin=find.stdout,
            stdout=out,
            check=True,
        )
        find.stdout.close()
        if find.wait():
            raise MachineError(f"find in {directory}: exit {find.returncode}")


def rootfs(suite="bookworm", packages=PACKAGES):
    """The cpio of a minimal system with these packages; about 30 s when it is not there yet."""
    wanted = "\n".join([suite, *sorted(packages)])
    home = os.path.join(cache_dir(), "rootfs")
    name = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    target = os.path.join(home, f"{name}.cpio")
    with Locked(home):
        if os.path.exists(target):
            return target
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            tree = os.path.join(scratch, "tree")
            leave_out = [f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in LEAVE_OUT]
            command(
                ["mmdebstrap", "--quiet", "--variant=minbase", *leave_out]
                + ['--aptopt=Acquire::Languages "none"']
                + [f"--include={','.join(sorted(packages))}", suite, tree]
            )
            part = os.path.join(scratch, "cpio")
            cpio(tree, part)
            os.rename(part, target)
    return target


class Run:
    """What came of a machine: its console, and the exit code of its job (None: it had no end)."""

    def __init__(self, console, seconds):
        ends = EXIT_LINE.findall(console)
        self.console = console.decode("utf-8", "replace").replace("\r\n", "\n")
        self.code = int(ends[-1]) if ends else None
        self.seconds = seconds


def copy_into(source, out):
    with open(source, "rb") as file:
        shutil.copyfileobj(file, out)


def boot(kernel_dir, root, overlay, timeout, arguments=(), cpus=2, memory="2G"):
    """
    Boots a kernel into root (a cpio) with the tree overlay on top of it, and waits for it to power
    off, timeout seconds at most. The overlay brings /init; see guest_init for the usual one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        initrd, top = os.path.join(scratch, "initrd"), os.path.join(scratch, "top")
        os.chmod(overlay, 0o755)  # it becomes the mode of the guest's /
        cpio(overlay, top)
        with open(initrd, "wb") as out:
            copy_into(root, out)
            copy_into(top, out)
        # One emulating thread: with more, 6.12 has crashed in its 16-byte compare-and-swap.
        argv = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"]
        argv += ["-smp", str(cpus), "-m", memory, "-nographic", "-no-reboot", "-nic", "none"]
        argv += ["-kernel", vmlinuz(kernel_dir), "-initrd", initrd]
        argv += ["-append", " ".join(["console=ttyS0", "panic=-1", "quiet", *arguments])]
        start = time.monotonic()
        with open(os.path.join(scratch, "console"), "w+b") as console:
            qemu = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT
            )
            try:
                qemu.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
            finally:
                qemu.kill()
                qemu.wait()
            console.seek(0)
            return Run(console.read(), time.monotonic() - start)
