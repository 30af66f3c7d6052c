# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh files: what it costs to serve a file in each way, by files_bench over
# tcp and in the guest.

# of memory that was registered before, and of the best way chosen by hand
readonly FILES_GOAL=0.95
FILES_HERE=(-I 5) FILES_GUEST=(-I 3 -m 4M) FILES_ROWS=(29 12)
smoking && FILES_HERE=(-I 1 -m 4M) FILES_GUEST=(-I 1 -m 4M) FILES_ROWS=(12 12)

# files_table in|out ROWS OUT
files_table()
{
	table "$2" "N N N [|] * N * * * N [|] * N * * * N" < <(awk -v place="$1" '
		BEGIN {
			split("none static dynamic first direct auto", name)
			printf "%5s %5s %5s", "KiB", "part", "pipes"
			for (i = 0; i < 12; i++)
				printf "%s %7s", i % 6 ? "" : " |", \
					name[i % 6 + 1]
			printf "\n"
		}
		$1 == place {
			printf "%5d %5d %5d", $2 / 1024, $3 / 1024, $4
			for (i = 0; i < 12; i++)
				printf "%s %7s", i % 6 ? "" : " |", \
					$(5 + 2 * (i % 6) + (i >= 6))
			printf "\n"
		}' "$3")
}

# files_tables CORE ROWS OUT
files_tables()
{
	say "$1, in the page cache"
	files_table in "$2" "$3"
	say
	if grep -q '^out ' "$3"; then
		say "$1, not in the page cache, of a file opened just now"
		files_table out "$2" "$3"
	else
		say "$1: not measured out of the page cache: $(grep '^note' "$3")"
	fi
	grep -q '^in .* - - - - ' "$3" &&
		say "$1: this kernel maps no part (before Linux 6.2): all are copied"
	say
}

# files_ratio COLUMN PLACE OUT...: the mean and the least of a ratio, of parts
# from 64 KiB on
files_ratio()
{
	awk -v column="$1" -v place="$2" '
		$1 == place && $3 >= 65536 && $column != "-" {
			log_sum += log($column)
			if (!n++ || $column < least)
				least = $column
		}
		END {
			if (n)
				printf "%.2f (least %.2f)\n", \
					exp(log_sum / n), least
		}' "${@:3}"
}

bench_files()
{
	local dir=$DATA/files met=no dynamic auto out

	# whose kernel maps parts
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-k trixie -d 1G)
	prepare
	program fabtests/benchmarks/files_bench
	measured "tcp, the ways in turn" "$dir/tcp" "$PROGRAM" -t 1700 \
		-p "tcp;ofi_mrrc" "${FILES_HERE[@]}"
	in_guest 900 "$dir/verbs" "the same" "$PROGRAM" -t 880 \
		-p "$CORE;ofi_mrrc" "${FILES_GUEST[@]}"
	say
	say "Set-up: $(setup_line); verbs: Soft-RoCE in an"
	say "emulated guest with Linux 6.12. Writes of a file to a peer, in parts, so"
	say "many (pipes) under way at once, by one thread that drives both ends;"
	say "medians, the ways in turn. Left: MB/s; right: nanoseconds of processor time"
	say "a KiB, of both ends. none: memory that was registered before; static: copied;"
	say "dynamic: mapped, kept from the last time; first: mapped, a file opened"
	say "just now; direct: read past the page cache; auto: what the provider"
	say "chooses."
	say
	files_tables tcp "${FILES_ROWS[0]}" "$dir/tcp"
	files_tables "$CORE" "${FILES_ROWS[1]}" "$dir/verbs"
	dynamic=$(files_ratio 17 in "$dir/tcp")
	auto=$(files_ratio 18 in "$dir/tcp")
	out=$(files_ratio 18 out "$dir/tcp")
	if at_most $FILES_GOAL "${dynamic%% *}" &&
	   at_most $FILES_GOAL "${auto%% *}"; then
		met=yes
	fi
	result "from 64 KiB on, tcp: dynamic $dynamic of none, auto $auto of the best, ${out:-not measured 0} not in the page cache" \
		"each >= $FILES_GOAL" $met
}
