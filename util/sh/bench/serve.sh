# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh serve: fi_mrrc_serve and fi_mrrc_get against servers and clients of
# files that people use, in turns of serve_turns.sh, over loopback.

readonly SERVE_GOAL=1 # of the best other peer's processor time
readonly SERVE_PACKAGES="coreutils curl diffutils python3-minimal rsync wget"
# peer of serve_turns.sh, with its sets, and what it is; the last two are local
readonly SERVE_PEERS="mrrc:one,big,some,many fi_mrrc_get
pages:big fi_mrrc_get, own pages
curl:one,big,some,many nginx, curl
curls:some,many nginx, curl -Z
wget:one,big,some,many nginx, wget
python:one,big,some,many http.server, curl
rsync:one,big,some,many rsync daemon
dd:big dd
cp:one,big,some,many cp -r"
SERVE_TURNS=5 SERVE_SETS=(one:1:4 big:1:1048576 some:1000:64 many:10000:4)
SERVE_ROOM=3500 # MiB
if smoking; then
	SERVE_TURNS=1 SERVE_SETS=(one:1:4 big:1:4096 some:10:64 many:20:4)
	SERVE_ROOM=64
fi

# Sets NGINX. The package is unpacked, as installing it begins a server.
serve_nginx()
{
	local dir=$DATA/serve/nginx

	NGINX=$(PATH=$PATH:/usr/sbin type -P nginx) && return
	NGINX=$dir/usr/sbin/nginx
	[ ! -x "$NGINX" ] || return 0
	need "libpcre2-8-0 libssl3" && mkdir -p "$dir" &&
		(cd "$dir" && apt-get download -qq nginx &&
			dpkg-deb -x nginx_*.deb .) >"$dir.log" 2>&1 &&
		"$NGINX" -v 2>>"$dir.log"
}

# serve_room FOLDER: is there memory for so many files?
serve_room()
{
	local free

	free=$(df -m --output=avail "$1" 2>/dev/null | tail -n 1)
	[ "${free:-0}" -ge $SERVE_ROOM ] &&
		awk -v room=$SERVE_ROOM '$1 == "MemAvailable:" {
			exit !($2 / 1024 >= room)
		}' /proc/meminfo
}

# serve_rows SET DIVISOR OUT: of each peer that fetched it the least times, in
# microseconds, a DIVISOR-th, and their ratios to the best of the other peers
serve_rows()
{
	awk -v set="$1" -v divisor="$2" -v peers="$SERVE_PEERS" "$(
		cat "$TOP/util/sh/peers.awk")"'
		$2 == "none" { least("life", $1, $5) }
		$2 == set {
			least("wall", $1, $3 > .001 ? $3 : .001)
			least("client", $1, $4)
			least("server", $1, $5)
		}
		function served(peer) {
			return min["server", peer] - min["life", peer]
		}
		# a millisecond is what times are known to
		function used(peer,  both) {
			both = min["client", peer] + served(peer)
			return both > .001 ? both : .001
		}
		END {
			n = split_peers(peers)
			for (i = 1; i <= n; i++) {
				p = name[i]
				if (!(("wall", p) in min) ||
				    p ~ /^(mrrc|pages|dd|cp)$/)
					continue
				if (!best || used(p) < best)
					best = used(p)
				if (!first || min["wall", p] < first)
					first = min["wall", p]
			}
			scale = 1e6 / divisor
			for (i = 1; i <= n; i++) {
				p = name[i]
				if (!(("wall", p) in min))
					continue
				printf "  %-21s %9.1f %9.1f %9.1f %9.1f %7.2f %7.2f\n", title[i],
					min["wall", p] * scale,
					served(p) * scale,
					min["client", p] * scale,
					used(p) * scale,
					min["wall", p] / first, used(p) / best
			}
		}' "$3"
}

# serve_table TITLE SET DIVISOR OUT
serve_table()
{
	local rows

	rows=$(grep -c "^[a-z]*:[a-z,]*$2" <<<"$SERVE_PEERS")
	say "$1"
	printf '  %-21s %9s %9s %9s %9s %7s %7s\n' '' wall server client both \
		wall both
	table "$rows" "... N Z Z N N N" < <(serve_rows "$2" "$3" "$4")
	say
}

# serve_ratio SET OUT: of fi_mrrc_get, the processor time
serve_ratio()
{
	serve_rows "$1" 1 "$2" | awk '$1 == "fi_mrrc_get" { print $NF }'
}

bench_serve()
{
	local out=$DATA/serve/out met=no big some many peers

	prepare "$SERVE_PACKAGES"
	serve_nginx || cannot "nginx is missing, and cannot be downloaded"
	serve_room /dev/shm || cannot "$SERVE_ROOM MiB in /dev/shm are needed"
	mapfile -t peers < <(awk '{ print $1 }' <<<"$SERVE_PEERS")
	measured "the peers in turn" "$out" "$TOP/util/sh/serve_turns.sh" \
		-t $SERVE_TURNS -n "$NGINX" "${SERVE_SETS[@]}" -- "${peers[@]}"
	say
	say "Set-up: $(setup_line); tcp over loopback,"
	say "files and copies in memory (tmpfs). Of $SERVE_TURNS turns of each" \
		"peer the least"
	say "times of the clock, and of the processors for server and client: the"
	say "client from its begin to its end, the server without its begin. Right:"
	say "ratios to the best of nginx, http.server and rsync. fi_mrrc_serve copies"
	say "(as with --copy); own pages: FI_OFI_MRRC_REGISTER=always. Only it and"
	say "rsync compare checksums. $("$NGINX" -v 2>&1 |
		sed 's/.*: //'), $(curl --version |
		awk 'NR == 1 { print $1 "/" $2 }'),"
	say "$(wget --version | awk 'NR == 1 { print $1 $2 "/" $3 }'), $(
		/usr/bin/python3 --version), $(rsync --version |
		awk 'NR == 1 { print $1 "/" $3 }')."
	say
	serve_table "One file of 4 KiB: ms" one 1000 "$out"
	serve_table "One file of 1 GiB: ms" big 1000 "$out"
	serve_table "1,000 files of 64 KiB: us a file" some 1000 "$out"
	serve_table "10,000 files of 4 KiB: us a file" many 10000 "$out"
	big=$(serve_ratio big "$out")
	some=$(serve_ratio some "$out")
	many=$(serve_ratio many "$out")
	at_most "$big" $SERVE_GOAL && at_most "$some" $SERVE_GOAL &&
		at_most "$many" $SERVE_GOAL && met=yes
	result "processor time of the best peer's: $big (1 GiB), $some (1,000 x 64 KiB), $many (10,000 x 4 KiB)" \
		"each <= $SERVE_GOAL" $met
}
