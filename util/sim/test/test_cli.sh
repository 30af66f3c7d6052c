#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_cli.sh: fi_mrrc_sim as people call it: what it prints, what it refuses
# and how. Part of make check.

SIM=${SIM:-util/fi_mrrc_sim}
TOOL=$SIM
# shellcheck source=util/sh/cli.sh
. "${srcdir:-$(dirname -- "$0")/../../..}/util/sh/cli.sh"

short=gen:cello:requests=2000
one=reg_page=0:reg=1:dereg_page=0:dereg=0
corpus=${srcdir:-$(dirname -- "$0")/../../..}/util/sim/test/corpus_trace

printf 'time_us,addr,len\n1,0,4096\n2,4096,x\n' >"$DIR/bad.csv"
printf 'time_us,addr,len,proc\n%s\n%s\n%s\n' \
	"1,0,$((2**63 - 1)),0" "1,0,$((2**63 - 1)),1" "1,0,$((2**63 - 1)),2" \
	>"$DIR/vast.csv"
printf 'time_us,addr,len\n1,4096,12345679872\n' >"$DIR/long.csv"
printf 'time_us,addr,len\n1,0x1000,4096\n2,0x1000,4096\n' >"$DIR/good.csv"

says 'Usage: ' --help
says '^  gdl ' --list
says '^  libfabric +libfabric.s own cache, of 1024 regions' --list
says 'time_us,addr,len' -w - $short
says 'lru +50\.0% +50\.0% +1\.00 ' -p lru -s 64K "$DIR/good.csv"
says '^gen:cello:requests=2000,4096,ou2009,10,[0-9]+,,gdl:pieces=2,2000,' \
	-f csv -p gdl:pieces=2 -s 10% $short
says ',100,18446744073709547520,' -f csv -p lru -s 100% "$DIR/vast.csv"
says '"footprint_bytes": 1\.84467440737096e19,$' -f json -p lru -s 100% \
	"$DIR/vast.csv"
says '"max_bytes": 9\.22337203685478e18,$' -f json -p lru -s 8388608T "$DIR/good.csv"
says ',12345679872$' -f csv -p lru -s 64G "$DIR/long.csv"
says '"pinned_peak_bytes": 12345679872,$' -f json -p lru -s 64G "$DIR/long.csv"
says '"pinned_over_time"' -f json -p lru -s 10% $short
says ' of 2 processes' --together -p lru -s 10% $short $short
says 'bounced' --bounce -f csv -p lru -m reg_page=0:reg=900:dereg_page=0:dereg=0:copy_page=9 $short
says 'pages of 65536' -P 64K -p none,lru,offline,bound $short

# other ways to register, for a real program, too
traces=${srcdir:-$(dirname -- "$0")/../../..}/fabtests/traces
says '^nas_is,4096,ucx,0,67108864,1024,libfabric,1027,883,' -f csv -s 64M \
	-m ucx -p libfabric "$traces/nas_is.csv.xz"
says '^nas_is,4096,ucx,0,67108864,,static,1027,1027,.*,6504448$' -f csv \
	-s 64M -m ucx -p static,alloc,libfabric-all "$traces/nas_is.csv.xz"

# what a program would gain
says '^  static +2 .* 1\.3MiB$' --gain -m $one "$traces/own_time/lu.csv.xz"
says "^  no cache +1027 +0\.02469 +1\.18% " --gain "$traces/nas_is.csv.xz"
says 'Set FI_HOOK=mrrc: it saves' --gain gen:kv
says '^nas_is,4096,ucx,libfabric,144,0,0\.00387' --gain -f csv \
	"$traces/nas_is.csv.xz"
says '^ +"registrations": 1027,$' --gain -f json "$traces/nas_is.csv.xz"
says '"advice": \[' --gain -f json "$traces/nas_is.csv.xz"
# limits: of the recording, or others
says 'ofi_mrrc evicted [0-9]+ regions: raise' --gain -s 64M gen:kv
says '^  libfabric.s cache +99875 ' --gain --counts=100 gen:kv
says ' of 2 processes' --gain --together $short $short
says 'there is no run' --gain "$DIR/long.csv"
says 'model trace$' --gain "$corpus/recorded_cost.trace"
refuses 2 "--gain has no policies" --gain -p lru $short
refuses 2 "--gain has no policies" --gain --helper $short
refuses 2 "writes no trace" --gain --write=- $short
# the documentation's example
docs=${srcdir:-$(dirname -- "$0")/../../..}/docs/tools.md
run 0 --gain "$traces/imb_cold.csv.xz"
sed -n '/^\$ fi_mrrc_sim --gain .*imb_cold/,/^```/p' "$docs" | sed '1d;$d' |
	diff - <(sed 1d "$DIR/out") ||
	fail "docs/tools.md has another output of --gain"

# a page held for 4 us, not used for 6, and used again
printf 'time_us,addr,len,end_ns\n0,0x1000,4096,4000\n10,0x1000,4096,0\n' \
	>"$DIR/held.csv"
says '^  timeout:us=7 +0\.00MiB +1\.000 +0\.00MiB +1\.000 +0\.00% ' \
	--helper=timeout:us=7 -m $one "$DIR/held.csv"
says '^held,4096,[^,]*,timeout:us=3,3,2,1,1,1,2,0,0,0,2867\.2,0\.7,4096,1$' \
	--helper=timeout:us=3 -m $one -f csv "$DIR/held.csv"
says '^  predict .*% +[0-9.]+% +[0-9.]+% +[0-9]+$' --helper gen:nas:requests=2000
says '"bytes_over_time"' --helper=predict -f json $short
says '"requests": 2000,$' --helper=timeout -f json $short
says '"idle_us"' --helper=timeout -f json $short
refuses 2 "'wait' is not leave" --helper=leave,wait $short
refuses 2 "--helper has no limits" --helper -s 64K $short
refuses 2 "--helper has no limits" --helper --bounce $short
printf 'time_us,addr,len\n0,1,1\n2000000000000000000,1,1\n' >"$DIR/ages.csv"
refuses 1 "the trace too long" --helper "$DIR/ages.csv"

refuses 2 "a TRACE is missing"
refuses 2 "no policy is called 'ruin'" -p ruin $short
refuses 2 "no such parameter" -p gdl:colour=1 $short
refuses 2 "out of its range" -p gdl:pieces=99 $short
refuses 2 "NAME:KEY=NUMBER" -p gdl:pieces $short
refuses 2 "'0%'" -s 0% $short
refuses 2 "'many'" -s many $short
refuses 2 "no power of two" -P 5000 $short
refuses 2 "neither a model nor" -m fast $short
refuses 2 "neither a model nor" -m ou2009, $short
refuses 2 "neither a model nor" -m reg=1::dereg=1 $short
refuses 2 "as reg_page=" -m reg=900:copy_page=9 $short
refuses 2 "not text, csv or json" -f xml $short
refuses 2 "no number from 1" -j 0 $short
refuses 1 "no such generator" gen:nothing
refuses 1 "gen:NAME" gen:cello:seed=x
refuses 1 "gen:NAME" gen:cello:requests=0
refuses 1 "gen:NAME" gen:nas:requests=1000000001
refuses 1 "bad.csv:3: " "$DIR/bad.csv"
refuses 1 "No such file" "$DIR/none.csv"
refuses 1 "no request is that long" --min-len=1G "$DIR/good.csv"
refuses 1 "writes one trace" -w "$DIR/w.csv" $short $short
[ ! -e "$DIR/w.csv" ] || fail "a file is left of what failed"

# a full disk is an error
if [ -w /dev/full ]; then
	"$SIM" -q -p lru -s 10% $short >/dev/full 2>"$DIR/err" </dev/null &&
		fail "a result that could not be written is no success"
	for option in --list --help; do
		"$SIM" $option >/dev/full 2>"$DIR/err" &&
			fail "$option that could not be written is no success"
		grep -q 'standard output: No space' "$DIR/err" ||
			fail "$option: does not say that the disk is full"
	done
fi

# recorded before costs were, and after
says 'model ou2009$' -q -s 64K "$corpus/recorded.trace"
refuses 1 "no cost model was recorded" -m trace "$corpus/recorded.trace"
refuses 1 "no cost model was recorded" -m ucx,trace "$short"
says 'model trace$' -q -s 64K "$corpus/recorded_cost.trace"
says 'model ucx$' -q -s 64K -m ucx "$corpus/recorded_cost.trace"
says '^  trace ' --list

# what fi_mrrc_prof saves
printf '# by hand\nreg_page=770:reg=7420:dereg_page=220:dereg=1100:copy_page=300\n' >"$DIR/model"
says "model file:$DIR/model" -q -m "file:$DIR/model" "$short"
printf 'a=770,b=7420,c=220,d=1100,copy=300\n' >"$DIR/model"
refuses 2 "$DIR/model: is no model as reg_page=" -m "file:$DIR/model" "$short"
refuses 2 "none: No such file" -m "file:$DIR/none" "$short"

[ $failed -eq 0 ] && echo "PASS: fi_mrrc_sim's command line"
exit $failed
