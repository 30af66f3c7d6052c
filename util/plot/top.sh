#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# top.sh: writes what fi_mrrc_stat shows of eight MPI ranks on a terminal of
# 24 x 80 to docs/results/stat.txt.  Needs Open MPI (openmpi-bin, libopenmpi-dev) and
# root, for a name space without other processes.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
export LC_ALL=C

usage()
{
	cat <<-EOT
	Usage: $ME BUILD

	BUILD: a folder where ofi_mrrc was built.
	EOT
}

# program: MPI_Alltoall of blocks of 1 to 64 KiB until it is killed; each tenth
# call has a new buffer.
program()
{
	cat <<-'EOT'
	#include <mpi.h>
	#include <stdlib.h>
	#include <string.h>
	#include <unistd.h>

	int main(int argc, char **argv)
	{
		size_t size = 8 << 16;
		char *from = malloc(size), *to = malloc(size), *new;
		int i, len;

		MPI_Init(&argc, &argv);
		memset(from, 1, size);
		for (i = 0;; i++) {
			len = 1024 << i % 7;
			new = i % 10 ? to : malloc(size);
			MPI_Alltoall(from, len, MPI_CHAR, new, len, MPI_CHAR,
				     MPI_COMM_WORLD);
			if (new != to)
				free(new);
			usleep(20000);
		}
	}
	EOT
}

[ $# -eq 1 ] || { usage >&2; exit 2; }
BUILD=$(cd -- "$1" && pwd)
need mpicc.openmpi mpirun.openmpi python3
open_results
unset FI_HOOK "${!FI_OFI_MRRC_@}"
export FI_PROVIDER_PATH=$BUILD/.libs FI_PROVIDER='tcp;ofi_rxm;ofi_mrrc'
export FI_OFI_MRRC_REGISTER=always
program | mpicc.openmpi -x c -o "$DIR/alltoall" -
mpi=(mpirun.openmpi --allow-run-as-root --oversubscribe -n 8
	--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi
	--mca mtl_ofi_provider_include "$FI_PROVIDER" --mca btl self
	"$DIR/alltoall")
# shellcheck disable=SC2016 # run in the name space
unshare --pid --fork --mount-proc --kill-child bash -c '
	"${@:3}" >"$0/log" 2>&1 &
	"$2" "see:(.* alltoall +[1-9][0-9]{2} .*\n){8}" screen: press:q end:0 -- \
		"$1" --wait' "$DIR" "$BUILD/util/fi_mrrc_stat" \
	"$TOP/fabtests/scripts/terminal.py" "${mpi[@]}" >"$DIR/screen" ||
	{ cat "$DIR/log" "$DIR/screen"; exit 1; }
{
	cat <<-'EOT'
	Eight ranks under Open MPI, started by mpirun -np 8, exchange blocks over tcp,
	every tenth time in a new buffer. A terminal of 24 x 80.

	$ fi_mrrc_stat
	EOT
	cat "$DIR/screen"
} >"$RESULTS/stat.txt"
close_results
