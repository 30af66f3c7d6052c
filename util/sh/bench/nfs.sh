# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh nfs: fi_mrrc_serve and fi_mrrc_get over verbs against the kernel's NFS
# over RDMA, in turns of serve_guest.sh in the guest, and ib_write_bw beside them.

readonly NFS_GOAL=1 # of NFS over RDMA
readonly NFS_PACKAGES="nfs-common nfs-kernel-server perftest"
# peer of serve_guest.sh, and what it is
readonly NFS_PEERS="mrrc fi_mrrc_get
copy fi_mrrc_get, --copy
nfs NFS over RDMA, cp
write ib_write_bw"
NFS_ARGS=(-t 3 one:1:4 big:1:65536 some:100:64 many:500:4 -- mrrc copy nfs write)
NFS_ROWS=4
if smoking; then
	NFS_ARGS=(-p "$CORE;ofi_mrrc" -a 127.0.0.1 one:1:4 big:1:1024 some:10:64
		many:20:4 -- mrrc copy)
	NFS_ROWS=2
fi

# nfs_rows SET DIVISOR OUT: of each peer the least times, in a DIVISOR-th of a
# millisecond: of the clock, of the processor, and of the clock without that of
# one small file; and the ratio of this to NFS's.
nfs_rows()
{
	awk -v set="$1" -v divisor="$2" -v peers="$NFS_PEERS" "$(
		cat "$TOP/util/sh/peers.awk")"'
		$2 == "one" { least("one", $1, $3) }
		$2 == set {
			least("wall", $1, $3)
			if ($4 != "-")
				least("busy", $1, $4)
		}
		function net(peer) {
			if (set == "one" || peer == "write")
				return min["wall", peer]
			return min["wall", peer] - min["one", peer]
		}
		function shown(value) {
			if (value == "")
				return "-"
			return sprintf("%.2f", value * 1e3 / divisor)
		}
		function ratio(peer) {
			if (!(("wall", "nfs") in min) || net("nfs") <= 0)
				return "-"
			return sprintf("%.2f", net(peer) / net("nfs"))
		}
		END {
			n = split_peers(peers)
			for (i = 1; i <= n; i++) {
				p = name[i]
				if (!(("wall", p) in min))
					continue
				printf "  %-21s %9s %9s %9s %7s\n", title[i],
					shown(min["wall", p]),
					shown(min["busy", p]), shown(net(p)),
					ratio(p)
			}
		}' "$3"
}

# nfs_table TITLE SET DIVISOR OUT
nfs_table()
{
	say "$1"
	printf '  %-21s %9s %9s %9s %7s\n' '' clock busy net ratio
	table $NFS_ROWS "... N * Z *" < <(nfs_rows "$2" "$3" "$4")
	say
}

# nfs_ratio SET OUT
nfs_ratio()
{
	nfs_rows "$1" 1 "$2" | awk '$1 == "fi_mrrc_get" && NF == 5 { print $NF }'
}

bench_nfs()
{
	local out=$DATA/nfs/out met=no big some many

	if smoking; then
		prepare
	else
		prepare "$NFS_PACKAGES"
	fi
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-k trixie -i -l nfsd -l rpcrdma -l nfsv4)
	in_guest 500 "$out" "the peers in turn" "$TOP/util/sh/serve_guest.sh" \
		"${NFS_ARGS[@]}"
	say
	say "Set-up: $(setup_line); Soft-RoCE in an emulated guest"
	say "with Linux 6.12 and one processor, whose clock counts instructions of user"
	say "code and kernel, one a nanosecond. Files and copies in memory (tmpfs); of 3"
	say "turns of each the least times: of the clock, of the processor for server"
	say "and client, of the clock without that of one file of 4 KiB (net), and the"
	say "ratio of this to NFS. NFS is mounted anew each time, which is not counted;"
	say "the begin of fi_mrrc_get is. It alone compares checksums. ib_write_bw moves as"
	say "many bytes, of no file, in messages of 512 KiB or of a file."
	say
	nfs_table "One file of 4 KiB: ms" one 1 "$out"
	nfs_table "One file of 64 MiB: ms" big 1 "$out"
	nfs_table "100 files of 64 KiB: ms a file" some 100 "$out"
	nfs_table "500 files of 4 KiB: ms a file" many 500 "$out"
	big=$(nfs_ratio big "$out")
	some=$(nfs_ratio some "$out")
	many=$(nfs_ratio many "$out")
	smoking && big=1 some=1 many=1
	at_most "$big" $NFS_GOAL && at_most "$some" $NFS_GOAL &&
		at_most "$many" $NFS_GOAL && met=yes
	result "of NFS over RDMA, without the begin: $big (64 MiB), $some (100 x 64 KiB), $many (500 x 4 KiB)" \
		"each <= $NFS_GOAL" $met
}
