# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs virtual machines with Debian's own kernels. A machine has a kernel image of a series
from the package archive and a disk with a small Debian that runs systemd. It is emulated by qemu,
without /dev/kvm. A second disk, mounted at /stackd, holds the job of the machine; see guest_job.py.

Everything that is fetched or built is kept in a cache directory (see cache_dir()), and made again only if
it is missing or `run.py --refresh` asks for it:
    kernel/NAME_VERSION/      an unpacked linux-image package (boot/vmlinuz-*, lib/modules)
    rootfs/HASH.ext4          a root file system; the hash is that of its packages and units
Needs root (mmdebstrap, device nodes), apt-get with bookworm and bookworm-security, and the Debian
packages of NEEDS. Times that are measured in a machine mean nothing, because every instruction is
emulated, except in an exact machine, whose clock counts instructions.
"""

import contextlib
import fcntl
import hashlib
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid

NEEDS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
}

# The package names of each series. No version is pinned.
KERNELS = {
    "6.1": r"^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$",
    "6.12": r"^linux-image-6\.12\.[0-9]+\+deb1[23]-cloud-amd64$",
}

# So many of the newest kernels of a series are tried: the archive may have dropped those that apt still knows.
TRIES = 3

# The programs that the tests call. The libraries of stackd come with its package.
PACKAGES = (
    "binutils",
    "bpftool",
    "fio",
    "kmod",
    "libcmocka0",
    "procps",
    "python3",
    "stress-ng",
    "systemd-sysv",
    "util-linux",
    "xfsprogs",
)

LEAVE_OUT = ("doc", "info", "locale", "man")

# The unit that runs the job when the system has started. Its output goes to the console.
JOB_UNIT = """\
[Unit]
Description=What this machine is for
After=basic.target

[Service]
Type=simple
ExecStartPre=/bin/mount -o ro LABEL=job /stackd
ExecStart=/stackd/job
StandardOutput=tty
StandardError=inherit
TTYPath=/dev/ttyS0

[Install]
WantedBy=multi-user.target
"""

# Units of the image that would only take time.
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
)

DISK_ID = 0x57ACD001
ROOT = f"PARTUUID={DISK_ID:08x}-01"
SECTORS_BEFORE = 2048  # a MiB

# The lines by which the job talks to the host.
BEGIN_LINE = "machine: begin"
CUT_LINE = "machine: cut the power"
EXIT_LINE = re.compile(r"^machine: exit ([0-9]+)$", re.MULTILINE)

# An exact machine has one CPU, which takes 4 ns for each instruction however busy the host is; time
# in which the CPU is idle is skipped. Tests can measure times to the percent there.
EXACT = ["-smp", "1", "-icount", "shift=2,sleep=off"]
BUSY = ["-smp", "2"]

BOOT_S = 600  # many times as long as a machine takes until BEGIN_LINE: on a busy host, 180 s were not enough
CUT_S = 3  # the power is cut at a random moment, at most this long after CUT_LINE


class MachineError(Exception):
    """An error with a message for the user."""

    def line(self):
        """Returns the line of the message that says most: the first one of apt's errors, or the last."""
        lines = str(self).splitlines() or [""]
        return next((line for line in lines if "E: " in line), lines[-1]).strip()[:300]


class NotRun(MachineError):
    """What a machine is made of cannot be had here, which says nothing about stackd."""


def missing():
    """Returns the Debian packages that have to be installed before a machine can run."""
    return sorted(package for tool, package in NEEDS.items() if not shutil.which(tool))


def cache_dir():
    """Returns the directory of what is fetched or built, which all clones of the tree share."""
    home = os.environ.get("XDG_CACHE_HOME") if os.geteuid() != 0 else None
    default = os.path.join(home, "stackd-test") if home else "/var/cache/stackd-test"
    return os.path.abspath(os.environ.get("STACKD_CACHE", default))


def command(argv, **kwargs):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    if done.returncode:
        error = done.stderr.decode("utf-8", "replace").strip()[-2000:]
        raise MachineError(f"{' '.join(argv)}: exit {done.returncode}: {error}")
    return done.stdout


class Locked:
    """Lets only one process at a time build in a cache directory."""

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


def newest_first(series, names):
    """Returns those of these names that are kernels of a series, NAME or NAME_VERSION, newest first."""
    ours = [name for name in names if re.match(KERNELS[series], name.partition("_")[0])]
    return sorted(ours, key=version_key, reverse=True)


def cached_kernels(series):
    """Returns the directories of the kernels of a series in the cache, newest first."""
    home = os.path.join(cache_dir(), "kernel")
    names = os.listdir(home) if os.path.isdir(home) else []
    return [os.path.join(home, name) for name in newest_first(series, names)]


def archive_kernels(series):
    """Returns the package names of the kernels of a series that apt knows, newest first."""
    found = command(["apt-cache", "search", "--names-only", KERNELS[series]]).decode()
    return newest_first(series, [line.split(" ", 1)[0] for line in found.splitlines()])


def kernel(series, is_fresh=False):
    """
    Returns the directory of a kernel of a series of KERNELS: the newest in the cache. The archive is asked
    if there is none, or with is_fresh. Raises NotRun if there is none to be had.
    """
    cached = cached_kernels(series)
    if cached and not is_fresh:
        return cached[0]
    why = kernel_fetch(series, is_fresh)
    cached = cached_kernels(series)
    if not cached:
        raise NotRun(f"there is no kernel {series} to be had: {why}")
    if why:
        print(f"the archive has no newer kernel {series} to be had: {why}", flush=True)
    return cached[0]


def kernel_fetch(series, is_fresh):
    """
    Puts the newest kernel of a series in the archive into the cache; with is_fresh, or if none of those that apt
    knows is there, by new lists of packages. Returns None, or why it could not.
    """
    why = None
    for with_update in (True,) if is_fresh else (False, True):
        why = lists_renew() if with_update else None
        names = archive_kernels(series)
        for name in names[:TRIES]:
            why = kernel_try(name)
            if not why:
                return None
        why = why or f"apt knows no package {KERNELS[series]}"
    return why


def lists_renew():
    """Renews the lists of packages. Returns None, or why not all were: one that is not Debian's may be missing."""
    try:
        command(["apt-get", "update", "-q", "--error-on=any"])
    except MachineError as e:
        print(f"lists of packages that are not renewed: {e.line()}", flush=True)
        return e.line()
    return None


def kernel_try(name):
    """Unpacks a package of the archive into the cache, unless it is there. Returns None, or why it could not."""
    home = os.path.join(cache_dir(), "kernel")
    try:
        text = command(["apt-cache", "show", "--no-all-versions", name]).decode()
        version = re.search(r"^Version: (.*)$", text, re.MULTILINE).group(1)
        target = os.path.join(home, f"{name}_{version}")
        with Locked(home), tempfile.TemporaryDirectory(dir=home) as scratch:
            if os.path.isdir(target):
                return None
            command(["apt-get", "download", "-q", f"{name}={version}"], cwd=scratch)
            (package,) = (f for f in os.listdir(scratch) if f.endswith(".deb"))
            tree = os.path.join(scratch, "tree")
            command(["dpkg", "-x", os.path.join(scratch, package), tree])
            os.rename(tree, target)
    except MachineError as e:
        return e.line()
    return None


def vmlinuz(kernel_dir):
    boot = os.path.join(kernel_dir, "boot")
    (name,) = (f for f in os.listdir(boot) if f.startswith("vmlinuz-"))
    return os.path.join(boot, name)


def tree_megabytes(tree):
    return int(command(["du", "-sm", tree]).split()[0])


def image(tree, target, megabytes, label):
    """Makes an ext4 file system with the files of a directory tree."""
    command(["mkfs.ext4", "-q", "-F", "-L", label, "-d", tree, target, f"{megabytes}M"])


def disk(filesystem, target):
    """Makes a disk with that file system as its only partition, which the kernel finds by ROOT."""
    size = os.path.getsize(filesystem)
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", SECTORS_BEFORE, size // 512)
    with open(target, "wb") as file:
        file.write(struct.pack("<440sIH16s48sH", b"", DISK_ID, 0, entry, b"", 0xAA55))
        file.truncate(SECTORS_BEFORE * 512 + size)
    command(["dd", f"if={filesystem}", f"of={target}", "bs=1M", "seek=1", "conv=notrunc,sparse"])


def put_text(text, *target, mode=0o644):
    path = os.path.join(*target)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def rootfs_prepare(tree):
    """Adds to the directory tree of a Debian what a machine needs to run a job."""
    units = os.path.join(tree, "etc/systemd/system")
    put_text(JOB_UNIT, units, "job.service")
    os.makedirs(os.path.join(units, "multi-user.target.wants"), exist_ok=True)
    os.symlink("/etc/systemd/system/job.service",
               os.path.join(units, "multi-user.target.wants/job.service"))
    for unit in MASKED:
        os.symlink("/dev/null", os.path.join(units, unit))
    # Without a machine ID, systemd would treat each boot as the first one.
    put_text(uuid.uuid4().hex + "\n", tree, "etc/machine-id")
    put_text("machine\n", tree, "etc/hostname")
    os.makedirs(os.path.join(tree, "stackd"))


def rootfs(packages, is_fresh=False, suite="bookworm"):
    """Returns the root file system of a minimal system with PACKAGES and these. To build it takes a minute."""
    packages = sorted({*PACKAGES, *packages})
    wanted = "\n".join([suite, *packages, JOB_UNIT, *MASKED])
    home = os.path.join(cache_dir(), "rootfs")
    name = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    target = os.path.join(home, f"{name}.ext4")
    with Locked(home):
        if os.path.exists(target) and not is_fresh:
            return target
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            tree = os.path.join(scratch, "tree")
            try:
                bootstrap(suite, packages, tree)
            except NotRun as e:
                if not os.path.exists(target):
                    raise
                print(f"the one in the cache stays: {e}", flush=True)
                return target
            rootfs_prepare(tree)
            part = os.path.join(scratch, "ext4")
            image(tree, part, 768, "root")
            os.rename(part, target)
    return target


def bootstrap(suite, packages, tree):
    """Installs a minimal Debian with these packages in the directory tree. Raises NotRun if it cannot."""
    leave_out = [f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in LEAVE_OUT]
    try:
        command(
            ["mmdebstrap", "--quiet", "--variant=minbase", *leave_out]
            + ['--aptopt=Acquire::Languages "none"']
            + [f"--include={','.join(packages)}", suite, tree]
        )
    except MachineError as e:
        raise NotRun(f"there is no Debian {suite} to be had: {e.line()}") from e


class Machine:
    """
    A machine with a disk of its own, which exists as long as this object: the machine can be
    started again after it has ended or was killed. job is a directory tree with an executable /job,
    which prints BEGIN_LINE, later a line that EXIT_LINE matches, and then powers the machine off.
    Use it in a with statement.
    """

    def __init__(self, kernel_dir, root, job, is_exact=False, memory="2G"):
        self.scratch = tempfile.mkdtemp(prefix="stackd-vm-")
        self.disk, self.job = (os.path.join(self.scratch, n) for n in ("disk", "job"))
        self.console_path = os.path.join(self.scratch, "console")
        self.monitor_path = os.path.join(self.scratch, "monitor")
        disk(root, self.disk)
        image(job, self.job, tree_megabytes(job) * 5 // 4 + 128, "job")
        # One emulating thread: with several, kernel 6.12 has crashed in its cmpxchg16b code.
        self.argv = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"]
        self.argv += [*(EXACT if is_exact else BUSY), "-m", memory, "-display", "none"]
        self.argv += ["-nic", "none", "-serial", "stdio"]
        self.argv += ["-monitor", f"unix:{self.monitor_path},server,nowait"]
        # The kernel may number the disks in any order, so it finds them by partition ID and label.
        for n, path in enumerate((self.disk, self.job)):
            # Writes of qemu survive its end without a flush. With flushes it would wait for the disk
            # of this host, and the guest would take its own disk for broken.
            self.argv += ["-drive", f"file={path},if=none,id=d{n},format=raw,cache=unsafe"]
            self.argv += ["-device", f"nvme,drive=d{n},serial=stackd{n}"]
        self.argv += ["-kernel", vmlinuz(kernel_dir), "-append"]
        # no_timer_check: while the emulator gets no CPU time, the timer looks broken at boot.
        self.argv += [
            f"root={ROOT} rootwait rw console=ttyS0 quiet systemd.show_status=no unknown_nmi_panic"
            " no_timer_check"
        ]
        self.qemu = None

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self):
        with open(self.console_path, "ab") as console:
            self.qemu = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT
            )

    def kill(self):
        """Ends the machine as a power cut does."""
        if self.qemu:
            self.qemu.kill()
            self.qemu.wait()

    def console(self):
        with open(self.console_path, "rb") as console:
            return console.read().decode("utf-8", "replace").replace("\r\n", "\n")

    def show_where(self):
        """Makes the kernel of a machine that hangs print where it is, and panic."""
        seen = len(self.console())
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.monitor_path)
            monitor.sendall(b"info registers -a\nnmi\n")
            monitor.settimeout(1)
            with contextlib.suppress(TimeoutError):
                while data := monitor.recv(1 << 16):
                    print(data.decode("utf-8", "replace"), end="")
        deadline = time.monotonic() + 10
        while "Kernel panic" not in self.console()[seen:] and time.monotonic() < deadline:
            time.sleep(0.5)

    def _wait_for(self, condition, seconds):
        """Waits until condition(console) is true or the machine ends. False: it did not in time."""
        deadline = time.monotonic() + seconds
        while self.qemu.poll() is None:
            text = self.console()
            if condition(text):
                return True
            if "Kernel panic" in text or time.monotonic() > deadline:
                return False
            time.sleep(0.5)
        return True

    def _boot(self):
        """
        Starts the machine for the first time. Returns True if it has booted. If the emulator hangs
        at boot, it is started once more: nothing that is tested has run by then.
        """
        for _ in range(2):
            self.start()
            if self._wait_for(lambda text: BEGIN_LINE in text, BOOT_S):
                return True
            self.show_where()
            self.kill()
            print(f"did not come up within {BOOT_S} s:\n{self.console()}", flush=True)
            os.truncate(self.console_path, 0)
        return False

    def run(self, timeout):
        """
        Starts the machine and waits until it ends or its kernel panics, at most timeout seconds. If
        the job asks for it, the power is cut and the machine started again. Raises NotRun if the machine does
        not boot, as nothing of stackd has run by then.
        """
        cuts = 0
        if not self._boot():
            raise NotRun(f"the machine has not booted within {BOOT_S} s, twice")
        deadline = time.monotonic() + timeout
        while True:
            is_done = self._wait_for(
                lambda text: text.count(CUT_LINE) > cuts, deadline - time.monotonic()
            )
            if not is_done:
                self.show_where()
            if self.qemu.poll() is not None or not is_done:
                break
            cuts += 1
            time.sleep(random.uniform(0, CUT_S))
            self.kill()
            self.start()
        self.kill()

    def exit_code(self):
        """Returns the exit code of the last job, or None if it did not end."""
        ends = EXIT_LINE.findall(self.console())
        return int(ends[-1]) if ends else None
