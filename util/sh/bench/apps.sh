# shellcheck shell=bash disable=SC2153 # CORE: bench.sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh apps: whole MPI programs of Debian, whose results are checked, over each
# kind of cache, in the guest. Not HPCC, whose latencies take minutes there, nor
# CP2K, which computes as long.

# shellcheck source=util/sh/bench/mpi_alloc.sh
. "$TOP/util/sh/bench/mpi_alloc.sh"

readonly APPS_GOAL=1.02 # instructions of a program, of those over libfabric's cache
APPS_PACKAGES="lammps libopenmpi-dev libpnetcdf-dev quantum-espresso
	scalapack-mpi-test"
APPS="pnetcdf scalapack lammps qe" APPS_ROUNDS=3
if smoking; then
	APPS=pnetcdf APPS_ROUNDS=1 APPS_PACKAGES="libopenmpi-dev libpnetcdf-dev"
fi

# Prints what a run of program $1 found, which is to be the same each time;
# nothing if the program itself says that it is wrong.
apps_found()
{
	case $1 in
	pnetcdf) sed -nE 's/^pnetcdf_write: ([0-9]+) of \1 values right/\1/p' out ;;
	scalapack)
		awk '/tests completed and passed/ { n = $1 }
			/tests completed and failed/ && !$1 && n { print n }' out
		;;
	lammps) awk '/^Loop time/ { print found } { found = $2 " " $3 " " $5 }' out ;;
	qe) awk '/^!/ { energy = $5 } /JOB DONE/ { print energy }' out ;;
	esac
}

# In the guest. apps_guest CORE ROUNDS DIR PROGRAM...: lines "apps PROGRAM WAY
# REGISTRATIONS STARTED PEAK NS START CPU FOUND", sums of both ranks. Runs without
# ofi_mrrc are repeated if they fail: LAMMPS over ofi_rxm 1.17 did in 2 of 5 runs with
# libfabric's cache, one with signal 11 after its last step.
apps_guest()
{
	local core=$1 rounds=$2 dir=$3 program way found work round try command=()

	shift 3
	work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT || return 1
	# the two phases of ROMIO's collective writes
	export OMP_NUM_THREADS=1 OMPI_MCA_io=romio321
	for ((round = 0; round < rounds; round++)); do
		for program in "$@"; do
			case $program in
			pnetcdf) command=("$dir/pnetcdf_write" out.nc 8 512) ;;
			scalapack)
				command=(/usr/lib/*/scalapack/openmpi-tests/xdlu)
				;;
			lammps) command=(lmp -in lammps.in) ;;
			qe) command=(pw.x -in qe.in) ;;
			esac
			for way in raw cache ofi_mrrc hook; do
				for try in 1 2 3; do
					rm -rf "$work/run" && cp -r "$dir/inputs" \
						"$work/run" && cd "$work/run" ||
						return 1
					mpi_way "$core" $way "$dir/count.so" \
						"${command[@]}" >out 2>&1 && break
					echo "status $? of $program $way, try $try"
					[[ $way = raw || $way = cache ]] || break
				done
				found=$(apps_found "$program")
				[ -n "$found" ] || tail -n 20 out
				awk -v what="apps $program $way" \
					-v found="${found:-wrong}" '
					/^reg_report / {
						for (i = 2; i <= NF; i++)
							sum[i] += $i
						ranks++
					}
					END {
						printf "%s", what
						for (i = 2; i <= 7; i++)
							printf " %d", sum[i]
						gsub(/ /, "_", found)
						print " " (ranks == 2 ? found : "wrong")
					}' out
			done
		done
	done
}

# The programs' inputs, so small that a run takes seconds in the guest.
apps_build()
{
	local dir=$1 from=$TOP/fabtests/traces/own_time/inputs

	mkdir -p "$dir/inputs" && cd "$dir/inputs" &&
		mpicc.openmpi -O2 -o "$dir/pnetcdf_write" \
			"$TOP/fabtests/clients/pnetcdf_write.c" -lpnetcdf &&
		cc -O2 -shared -fPIC -o "$dir/count.so" \
			"$TOP"/fabtests/benchmarks/reg_{count,report}.c || return 1
	! smoking || return 0
	# ofi_rxm copies messages to 128 KiB, so these programs send longer ones
	sed -e 's/0 32 0 32 0 32/0 8 0 40 0 40/' -e 's/run 200/run 10/' \
		-e 's/^units lj/&\nprocessors 2 1 1/' \
		"$from/lammps.in" >lammps.in &&
		sed -e 's/nstep=8/nstep=1/' -e 's/^ 2 2 1 1/ 1 1 1 1/' \
			-e 's/1d-7/1d-4/' "$from/qe.in" >qe.in &&
		ld1.x <"$from/silicon.in" >ld1.log &&
		printf '%s\n' LU MPI LU.out 6 1 800 800 1 64 1 16 1 16 1 1 2 \
			1.0 F >LU.dat
}

# A row of each program and way, with medians of the rounds; "!" for a result that
# is wrong, or not that of the program's first run.
apps_rows()
{
	awk '
		function median(values,    list, n, i, k, x) {
			n = split(values, list, " ")
			for (i = 2; i <= n; i++) {
				x = list[i]
				for (k = i - 1; k && list[k] + 0 > x + 0; k--)
					list[k + 1] = list[k]
				list[k + 1] = x
			}
			return list[int((n + 1) / 2)]
		}
		$1 != "apps" || NF != 10 { next }
		{
			at = $2 " " $3
			if (!(at in bad))
				row[++rows] = at
			$4 -= $5
			for (i = 4; i <= 9; i++)
				value[at, i] = value[at, i] " " $i
			if (!($2 in first))
				first[$2] = $10
			bad[at] = bad[at] || $10 == "wrong" || $10 != first[$2]
		}
		END {
			for (k = 1; k <= rows; k++) {
				at = row[k]
				printf "%s%s %d %d %.1f %.1f %.0f %.0f\n", at,
					bad[at] ? "!" : "", median(value[at, 4]),
					median(value[at, 5]),
					median(value[at, 6]) / 1048576,
					median(value[at, 7]) / 1e6,
					median(value[at, 8]), median(value[at, 9])
			}
		}' "$1"
}

# apps_worst COLUMN ROWS: the highest ratio to libfabric's cache, and where.
apps_worst()
{
	awk -v at="$1" '
		$2 == "cache" { cache[$1] = $at }
		/ofi_mrrc|hook/ && cache[$1] && $at / cache[$1] >= most {
			most = $at / cache[$1]
			where = " (" $1 ", " $2 ")"
		}
		END { printf "%.3f%s\n", most, where }' "$2"
}

bench_apps()
{
	local dir=$DATA/apps unit="million instructions" worst met=no

	prepare "$APPS_PACKAGES"
	smoking && unit=milliseconds
	logged "programs and inputs" "$dir/build" apps_build "$dir" ||
		broken "a program does not compile, or the inputs are missing"
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	# shellcheck disable=SC2086 # a list
	in_guest 3000 "$dir/out" "each way in turn" bash -c \
		"$(declare -f mpi_way apps_found apps_guest); apps_guest \"\$@\"" \
		apps "$CORE" "$APPS_ROUNDS" "$dir" $APPS
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor. Two ranks of Open MPI over ofi_rxm, whole runs, sums of"
	say "both ranks, medians of $APPS_ROUNDS, in turn: registrations of the device"
	say "(made) after MPI_Init and in it, the most MiB registered at a time;"
	say "$unit of registering and deregistering, until"
	say "MPI_Init has returned, and of all, polling included. raw: without"
	say "libfabric's cache. '!': wrong, or not the result of the first run."
	say
	printf '  %-9s %-9s %6s %7s %7s %11s %8s %8s\n' program way made in-init \
		MiB registering init all
	apps_rows "$dir/out" >"$dir/rows"
	table $((4 * $(wc -w <<<"$APPS"))) "* * Z Z Z Z N N" < <(awk '{
		printf "  %-9s %-9s %6d %7d %7.1f %11.1f %8d %8d\n", $1, $2, $3,
			$4, $5, $6, $7, $8 }' "$dir/rows")
	say
	say "Runs that failed without ofi_mrrc, and were repeated:" \
		"$(grep -cE '^status .* (raw|cache), try [12]$' "$dir/out")"
	! grep '!' "$dir/rows" || broken "wrong results"
	say "Registrations after MPI_Init:" \
		"at most $(apps_worst 3 "$dir/rows") of libfabric's cache"
	worst=$(apps_worst 8 "$dir/rows")
	at_most "${worst%% *}" $APPS_GOAL && met=yes
	result "$unit at most $worst of libfabric's cache" \
		"<= $APPS_GOAL" $met
}
