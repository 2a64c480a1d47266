#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# get_server.sh DIR: unpacks Debian's clickhouse-server into DIR/root, unless it is there. Nothing is
# installed: the package's own scripts would start a server on this host. Needs the network once.
set -euo pipefail

dir=$(realpath -m "$1")
[ ! -x "$dir/root/usr/sbin/clickhouse-server" ] || exit 0
rm -rf "$dir/debs" "$dir/unpacked"
mkdir -p "$dir/debs" "$dir/unpacked"
cd "$dir/debs"
# Those that are installed already are not in the list.
mapfile -t packages < <(apt-get install -s --no-install-recommends clickhouse-server | awk '/^Inst/ { print $2 }')
[ ${#packages[@]} -gt 0 ] || { echo "apt-get knows no clickhouse-server" >&2; exit 1; }
apt-get download -q "${packages[@]}" >&2
for deb in ./*.deb; do
	dpkg -x "$deb" "$dir/unpacked"
done
rm -rf "$dir/root"
mv "$dir/unpacked" "$dir/root"
rm -rf "$dir/debs"
