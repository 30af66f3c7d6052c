# shellcheck shell=bash disable=SC2153 # CORE: bench.sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh mpi_alloc: an MPI program that gets new memory by MPI_Alloc_mem for each
# exchange, with and without libmrrc_mpi.so, by fabtests/clients/alloc_mem.c.

readonly MPI_ALLOC_GOAL=0 # registrations of a round
MPI_ALLOC_ROUNDS=20
MPI_ALLOC_RUNS=(65536:default 1048576:default 1048576:mapped)
smoking && MPI_ALLOC_ROUNDS=2 MPI_ALLOC_RUNS=(1048576:mapped)

# In the guest. mpi_way CORE WAY PRELOADED COMMAND...: two ranks, over ofi_rxm over
# CORE without a cache, with libfabric's, or with ours in both forms.
mpi_way()
{
	local stack="$1;ofi_rxm" vars=(LD_PRELOAD="$3")

	case $2 in
	raw) vars+=(FI_MR_CACHE_MAX_COUNT=0) ;;
	hook) vars+=(FI_HOOK=mrrc) ;;
	ofi_mrrc|preload) stack+=";ofi_mrrc" ;;
	esac
	shift 3
	mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 \
		--mca pml cm --mca mtl ofi --mca btl self \
		--mca mtl_ofi_provider_include "$stack" \
		--mca mpi_yield_when_idle 1 \
		env FI_PROVIDER="$stack" "${vars[@]}" "$@"
}

# mpi_alloc_guest CORE ROUNDS DIR LIB SIZE:MALLOC...: lines "SIZE MALLOC WAY US
# REGISTRATIONS", of rank 0
mpi_alloc_guest()
{
	local core=$1 rounds=$2 dir=$3 lib=$4 what way preload vars

	shift 4
	for what in "$@"; do
		vars=()
		[[ $what != *:mapped ]] || vars=(MALLOC_MMAP_THRESHOLD_=65536)
		for way in raw cache ofi_mrrc hook preload; do
			preload=$dir/count.so
			[ $way != preload ] || preload+=":$lib"
			mpi_way "$core" $way "$preload" "${vars[@]}" \
				"$dir/alloc_mem" "-$rounds" "${what%:*}" |
				sed -n "s/^alloc_mem /${what/:/ } $way /p"
		done
	done
}

# The program, and what counts its registrations.
mpi_alloc_build()
{
	mkdir -p "$1" && mpicc.openmpi -O2 -o "$1/alloc_mem" \
		"$TOP/fabtests/clients/alloc_mem.c" &&
		cc -O2 -shared -fPIC -o "$1/count.so" \
			"$TOP/fabtests/benchmarks/reg_count.c"
}

bench_mpi_alloc()
{
	local dir=$DATA/mpi_alloc most met=no

	command -v mpicc.openmpi >/dev/null || cannot "no Open MPI"
	prepare
	program .libs/libmrrc_mpi.so
	logged "an MPI program" "$dir/build" mpi_alloc_build "$dir" ||
		broken "the program does not compile"
	in_guest 900 "$dir/out" "each way in turn" bash -c \
		"$(declare -f mpi_way mpi_alloc_guest); mpi_alloc_guest \"\$@\"" \
		mpi_alloc "$CORE" "$MPI_ALLOC_ROUNDS" "$dir" "$PROGRAM" \
		"${MPI_ALLOC_RUNS[@]}"
	say
	levy_setup
	say "Two ranks of Open MPI over ofi_rxm, each round: two buffers of"
	say "MPI_Alloc_mem, an exchange, both freed. Registrations of the device"
	say "and milliseconds of a round, in the mean of $MPI_ALLOC_ROUNDS; malloc"
	say "as it is, or mapping what has 64 KiB and more. raw: without"
	say "libfabric's cache; preload: ofi_mrrc, with libmrrc_mpi.so."
	say
	printf '  %-8s %-8s %-9s %13s %10s\n' size malloc way registrations ms
	table $((5 * ${#MPI_ALLOC_RUNS[@]})) "* * * Z N" < <(awk 'NF == 5 {
		printf "  %-8s %-8s %-9s %13.2f %10.2f\n", $1 / 1024 "K", $2, $3,
			$5, $4 / 1000 }' "$dir/out")
	most=$(awk '$3 == "preload" && $5 > most { most = $5 }
		END { printf "%.2f", most }' "$dir/out")
	at_most "$most" $MPI_ALLOC_GOAL && met=yes
	result "$most registrations a round at most" $MPI_ALLOC_GOAL $met
}
