# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Which stages `test.sh --ci` runs: those that find most, always; and a third of
# the others, by the commit's hash, without those whose inputs have not changed
# since the last tag.  Sourced, after common.sh.

# what takes longest begins first
readonly CI_STAGES="verbs asan unit tcp rdm"
# thirds that take about as long
readonly CI_TURNS=(
	"distcheck asan_rdm fuzz net hook analyze"
	"verbs_rdm valgrind demo kokkos hosts"
	"verbs13 libfabric2 tsan smoke alloc openmpi wire first"
)
# Seconds. Mutations come last, until CI_SECONDS are over: for CI_MUTATE_LEAST in
# any case, and for CI_MUTATE_MOST at most.
# shellcheck disable=SC2034 # test.sh reads it
readonly CI_SECONDS=$((32 * 60)) CI_MUTATE_LEAST=120 CI_MUTATE_MOST=540
# commits whose files come first
readonly CI_COMMITS=200

mutate_options()
{
	local left=$((CI_LAST - SECONDS))

	[ -n "$CI_LAST" ] || return 0
	[ $left -lt $CI_MUTATE_MOST ] || left=$CI_MUTATE_MOST
	[ $left -gt $CI_MUTATE_LEAST ] || left=$CI_MUTATE_LEAST
	echo "-t $left -r $CI_COMMITS"
}

# The name of the commit; a release has none.
commit()
{
	git -C "$TOP" rev-parse HEAD 2>/dev/null || echo 0
}

# inputs STAGE: the folders and files that decide what a stage finds, besides
# the scripts that run all of them.
inputs()
{
	case $1 in
	valgrind|tsan|asan_rdm|verbs_rdm|verbs13|libfabric2|wire) echo "prov include fabtests util" ;;
	net|hook|hosts|openmpi) echo "prov include fabtests" ;;
	alloc) echo "prov include fabtests/scripts/test_alloc.sh" ;;
	kokkos) echo "prov include fabtests/common fabtests/functional/alloc/kokkos.cc" ;;
	distcheck|first) echo "." ;;
	demo) echo "prov include fabtests util demo.sh" ;;
	smoke) echo "prov include fabtests util bench.sh" ;;
	fuzz|analyze) echo "prov util" ;;
	esac
}

# changed STAGE TAG: have its inputs, or test.sh itself?
changed()
{
	local tag=$2

	# shellcheck disable=SC2046 # a list
	! git -C "$TOP" diff --quiet "$tag" -- $(inputs "$1") test.sh util/sh \
		configure.ac Makefile.am
}

# Prints the stages, and says on standard error why.
choose_stages()
{
	local hash tag stage chosen=''

	hash=$(commit)
	tag=$(git -C "$TOP" describe --tags --abbrev=0 2>/dev/null)
	for stage in ${CI_TURNS[0x${hash:0:7} % ${#CI_TURNS[@]}]}; do
		[ -n "$tag" ] && ! changed "$stage" "$tag" ||
			chosen+=" $stage"
	done
	say "By the commit's hash, ${hash:0:7}, it is the turn" \
		"of${chosen:- none: nothing has changed since $tag}" >&2
	echo "$CI_STAGES$chosen mutations"
}
