# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh code: system calls that the analysis of code (prov/mrrc/sys/proof/code.h)
# finds and decides in libraries of this machine that programs of the field
# load.

readonly CODE_MS=50
# what each should leave undecided: libc syscall() and two places of set*id(2),
# which are known otherwise (sys/proof/prove.c)
readonly CODE_FILES="libc.so.6=3 ld-linux-x86-64.so.2=0 libm.so.6=0
	libgomp.so.1=0 libstdc++.so.6=0 libgfortran.so.5=0 libz.so.1=0
	libcrypto.so.3=0 libssl.so.3=0 libpython3.11.so.1.0=0 libopenblas.so.0=0
	libmpi.so.40=0 libopen-pal.so.40=0 libopen-rte.so.40=0 libpmix.so.2=0
	libhwloc.so.15=0 libfabric.so.1=0 libibverbs.so.1=0 libmlx5.so.1=0
	librdmacm.so.1=0 libpsm2.so.2=0 libucp.so.0=0 libucs.so.0=0 libuct.so.0=0
	libucm.so.0=0 liburing.so.2=0 libtcmalloc.so.4=0 libasan.so.8=0
	libitm.so.1=1 libGLdispatch.so.0=9"

bench_code()
{
	local out=$DATA/code met=no entry path files=() more=0 ms want=()

	prepare
	program prov/mrrc/test/code_corpus
	for entry in $CODE_FILES; do
		path=$(/sbin/ldconfig -p | awk -v name="${entry%=*}" '
			$1 == name && /x86-64/ { print $NF; exit }')
		[ -n "$path" ] || continue
		files+=("$path") want+=("$path ${entry#*=}")
	done
	measured "code of ${#files[@]} libraries" "$out" "$PROGRAM" "${files[@]}"

	say
	say "Set-up: $(setup_line)."
	say "Pairs of bytes that look like an instruction"
	say "that enters the kernel; those that are one; with a number that is"
	say "known; in data; not decided; milliseconds of processor time."
	say
	table ${#files[@]} "* Z Z Z Z Z N" < <(awk '
		/^ / { next }
		{ sub(".*/", "", $1) }
		{ printf "  %-24s %7s %13s %13s %6s %8s %7s\n", $1, $2, $3,
			$4, $5, $6, $7 }' "$out")
	say
	while read -r path more; do
		awk -v path="$path" -v most="$more" '
			$1 == path && $6 > most { bad = 1 } END { exit bad }
			' "$out" || say "  more than $more undecided: $path"
	done < <(printf '%s\n' "${want[@]}")
	more=$(printf '%s\n' "${want[@]}" | awk '
		NR == FNR { most[$1] = $2; next }
		$1 in most && $6 > most[$1] { count++ }
		END { print count + 0 }' - "$out")
	ms=$(awk '$1 ~ "^/" { ms += $7 } END { printf "%.0f", ms }' "$out")
	[ "$more" -gt 0 ] || ! at_most "$ms" $CODE_MS || met=yes
	result "$more of ${#files[@]} with more undecided than before, $ms ms" \
		"0, <= $CODE_MS ms" $met
}
