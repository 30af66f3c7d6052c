#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check.sh: writes what fi_mrrc_stat --check prints on this machine to
# docs/results/check.txt, as if the provider was installed in /usr.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
export LC_ALL=C

usage()
{
	cat <<-EOT
	Usage: $ME BUILD

	BUILD: a folder where ofi_mrrc was built, with its functional tests.
	EOT
}

# screen COMMAND: as it is typed, and what it prints
screen()
{
	printf '\n$ %s\n' "$1"
	(PATH=$DIR:$PATH "${AS[@]}" bash -c "$1" 2>&1 || true) |
		grep -v '^PASS: ' |
		sed "s|$FI_PROVIDER_PATH|/usr/lib/x86_64-linux-gnu/libfabric|"
}

# only ABOUT: lines about that alone
only()
{
	awk -v about=" +($1): " \
		'/^[a-z]/ { on = $0 ~ about } on || NR <= 2'
}

[ $# -eq 1 ] || { usage >&2; exit 2; }
BUILD=$(cd -- "$1" && pwd)
open_results
export FI_PROVIDER_PATH=$BUILD/.libs
unset FI_PROVIDER FI_HOOK "${!FI_OFI_MRRC_@}"
ln -s "$BUILD/util/fi_mrrc_stat" "$DIR/fi_mrrc_stat"
ln -s "$BUILD/fabtests/fi_mrrc_live" "$DIR/application"
AS=(env)
# root's rights would lift the limit of locked memory
[ "$(id -u)" -ne 0 ] || AS=(setpriv --bounding-set=-ipc_lock)
cd "$DIR"
{
	echo 'On a machine without an RDMA device:'
	screen 'fi_mrrc_stat --check'
	echo
	echo 'With 64 KiB of lockable memory and a misspelt variable:'
	screen 'ulimit -l 64; FI_OFI_MRRC_POLICI=lru fi_mrrc_stat --check' |
		only 'variables|locked memory'
	echo
	echo 'With an application, the output ends with:'
	export FI_PROVIDER='tcp;ofi_mrrc' FI_OFI_MRRC_REGISTER=always
	screen 'fi_mrrc_stat --check -- ./application' |
		only application
} >"$RESULTS/check.txt"
close_results
