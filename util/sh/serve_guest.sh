#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# serve_guest.sh: fetches sets of files from fi_mrrc_serve and by NFS over RDMA,
# in turn, on a machine that runs nothing else, such as guest.sh's.
#
# Flow: the kernel's NFS server begins -> for each turn, peer and set: the server
# of files begins or the export is mounted, one small file is fetched, and then
# the measured set. In the end, ib_write_bw moves as many bytes.

# shellcheck source=util/sh/serve_peers.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/serve_peers.sh"
readonly NFS_PORT=20049
PROVIDER="verbs;ofi_mrrc" ADDRESS=10.0.0.1
SERVER='' MOUNT=''

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... SET... -- PEER...

	SET is NAME:FILES:KIB; PEER is mrrc, copy (mrrc with --copy), nfs, or
	write (ib_write_bw). nfs needs the kernel's modules nfsd, rpcrdma and
	nfsv4.

	  -t TURNS     (default $TURNS)
	  -p PROVIDER  (default $PROVIDER)
	  -a ADDRESS   (default $ADDRESS)

	Files and copies are in $FOLDER.
	Prints "PEER SET WALL BUSY" for each fetch, in seconds: of the clock, and
	of all processors of the machine.
	EOT
}

# now: the clock, and the processor time of all there was, in milliseconds
now()
{
	awk -v ticks="$(getconf CLK_TCK)" '
		FILENAME == "/proc/uptime" { clock = $1 }
		$1 == "cpu" { busy = $2 + $3 + $4 + $7 + $8 }
		END { printf "%d %d\n", clock * 1000, busy * 1000 / ticks }
	' /proc/uptime /proc/stat
}

# ---- peers -------------------------------------------------------------------

begin_nfs()
{
	[ -d /proc/fs/nfsd ] || die "no module nfsd"
	mkdir -p /var/lib/nfs/v4recovery "$WORK/mnt"
	if ! mount -t nfsd nfsd /proc/fs/nfsd ||
	   ! exportfs -i -o ro,insecure,no_root_squash,fsid=0,no_subtree_check \
		"$ADDRESS:$WORK/src" ||
	   ! rpc.mountd -N 3 || ! rpc.nfsd -N 3 -V 4.2 -U --rdma=$NFS_PORT 4
	then
		die "the NFS server does not begin"
	fi
}

# serve [OPTION]...
serve()
{
	PORT=$((PORT + 1))
	fi_mrrc_serve --root --private -P "$PROVIDER" -a "$ADDRESS" -p "$PORT" "$@" \
		"$WORK/src" >"$WORK/server.log" 2>&1 &
	SERVER=$!
}

# begin PEER: until it answers
begin()
{
	local try

	case $1 in
	mrrc) serve ;;
	copy) serve --copy ;;
	nfs)
		mount -t nfs -o "vers=4.2,proto=rdma,port=$NFS_PORT" \
			"$ADDRESS:/" "$WORK/mnt" || die "no mount"
		MOUNT=$WORK/mnt
		;;
	esac
	for ((try = 0; try < 100; try++)); do
		get "$1" first >"$WORK/first.log" 2>&1 &&
			rm "$WORK/dst/first" && return
		sleep 0.2
	done
	cat "$WORK/first.log" "$WORK/server.log" >&2
	die "$1: the server does not answer"
}

# What the client has kept goes with it.
end()
{
	[ -z "$SERVER" ] || { kill "$SERVER"; wait "$SERVER"; }
	[ -z "$MOUNT" ] || umount "$MOUNT"
	SERVER='' MOUNT=''
}

# get PEER NAME
get()
{
	case $1 in
	mrrc|copy)
		fi_mrrc_get -q --no-sync -P "$PROVIDER" -p "$PORT" \
			-C "$WORK/dst" "$ADDRESS:$2"
		;;
	nfs) cp -r "$WORK/mnt/$2" "$WORK/dst/" ;;
	*) die "no peer $1" ;;
	esac
}

# write_bw NAME FILES KIB: as many bytes, in messages of a file or 512 KiB
write_bw()
{
	local size=$3 count=$2 server rate

	[ "$size" -le 512 ] || { count=$((count * size / 512)); size=512; }
	# it does not do with fewer
	[ "$count" -ge 5 ] || count=5
	ib_write_bw -F -s $((size << 10)) -n "$count" >"$WORK/bw.server" 2>&1 &
	server=$!
	sleep 1
	rate=$(ib_write_bw -F -s $((size << 10)) -n "$count" "$ADDRESS" \
		2>"$WORK/bw.log" | awk '$1 ~ /^[0-9]+$/ { rate = $4 } END { print rate }')
	wait "$server"
	awk -v rate="${rate:-0}" -v kib="$(($2 * $3))" -v set="$1" 'BEGIN {
		if (rate <= 0)
			exit 1
		printf "write %s %.5f -\n", set, kib / 1024 / rate
	}' || { cat "$WORK/bw.log" "$WORK/bw.server" >&2; die "no bandwidth"; }
}

# ---- turns -------------------------------------------------------------------

# fetch PEER TURN NAME FILES KIB: the first turn's bytes are compared
fetch()
{
	local before after

	if [ "$1" = write ]; then
		write_bw "${@:3}"
		return
	fi
	begin "$1"
	before=$(now)
	get "$1" "$3" || die "$1 did not fetch $3"
	after=$(now)
	[ "$2" -gt 0 ] || same "$3" || die "$1 fetched other bytes of $3"
	rm -rf "${WORK:?}/dst/$3"
	end
	awk -v peer="$1" -v set="$3" '{
		printf "%s %s %.3f %.3f\n", peer, set,
			($3 - $1) / 1000, ($4 - $2) / 1000
	}' <<<"$before $after"
}

# turn NUMBER: the peer that begins changes
turn()
{
	local peers set i

	read -ra peers <<<"$PEERS"
	for ((i = 0; i < ${#peers[@]}; i++)); do
		for set in $SETS; do
			IFS=: read -ra set <<<"$set"
			fetch "${peers[(i + $1) % ${#peers[@]}]}" "$1" \
				"${set[@]}"
		done
	done
}

parse()
{
	local option

	while getopts t:p:a:h option; do
		case $option in
		t) TURNS=$OPTARG ;;
		p) PROVIDER=$OPTARG ;;
		a) ADDRESS=$OPTARG ;;
		h) usage; exit 0 ;;
		*) usage >&2; exit $RC_USAGE ;;
		esac
	done
	shift $((OPTIND - 1))
	sets_and_peers "$@"
}

main()
{
	parse "$@"
	PATH=$PATH:/usr/sbin
	begin_sets
	[[ " $PEERS " != *" nfs "* ]] || begin_nfs
	all_turns
}

main "$@"; exit
