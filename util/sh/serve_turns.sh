#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# serve_turns.sh: fetches sets of files from fi_mrrc_serve and from other
# servers of files, in turn, from memory to memory. For bench.sh serve.
#
# Flow: for each turn and set, each peer: its server begins, answers one fetch,
# and then the measured one; it ends, and the processor time of its whole life
# is known. That of a life with the first fetch alone is printed, too.

# shellcheck source=util/sh/serve_peers.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/serve_peers.sh"
readonly ADDRESS=127.0.0.1
NGINX=''

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... SET... -- PEER...

	SET is NAME:FILES:KIB; PEER is mrrc, pages (mrrc from the files' own),
	curl, curls (-Z), wget, python, rsync, dd or cp. PEER:NAME,... is for
	these sets alone.

	  -t TURNS     (default $TURNS)
	  -n NGINX     the program

	Files and copies are in $FOLDER.
	Prints "PEER SET WALL CLIENT SERVER" for each fetch, in seconds: of the
	clock, and of the processors. SET "none" is a server's life without it.
	EOT
}

# ---- servers -----------------------------------------------------------------

# Debian's settings, apart from the log of requests.
nginx_conf()
{
	local name

	cat <<-EOT
	daemon off;
	worker_processes auto;
	pid $WORK/nginx.pid;
	error_log $WORK/nginx.log;
	events { worker_connections 768; }
	http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	EOT
	for name in client_body proxy fastcgi uwsgi scgi; do
		echo "${name}_temp_path $WORK/nginx.$name;"
	done
	echo "server { listen $ADDRESS:$PORT; root $WORK/src; autoindex on; }"
	echo "}"
}

rsync_conf()
{
	printf '%s\n' "use chroot = no" "[src]" "path = $WORK/src"
}

# server PEER: sets SERVER, its command
server()
{
	local serve=(fi_mrrc_serve --root --private -P "tcp;ofi_mrrc" -a "$ADDRESS"
		-p "$PORT" "$WORK/src")

	case $1 in
	mrrc) SERVER=("${serve[@]}") ;;
	pages) SERVER=(env FI_OFI_MRRC_REGISTER=always "${serve[@]}") ;;
	curl|curls|wget)
		nginx_conf >"$WORK/nginx.conf"
		SERVER=("$NGINX" -p "$WORK" -e "$WORK/nginx.log"
			-c "$WORK/nginx.conf")
		;;
	python)
		SERVER=(/usr/bin/python3 -m http.server -b "$ADDRESS"
			-d "$WORK/src" "$PORT")
		;;
	rsync)
		rsync_conf >"$WORK/rsync.conf"
		SERVER=(rsync --daemon --no-detach "--config=$WORK/rsync.conf"
			"--address=$ADDRESS" "--port=$PORT")
		;;
	*) SERVER=() ;;
	esac
}

# Its time is known when it has ended.
begin_server()
{
	PORT=$((PORT + 1))
	server "$1"
	[ ${#SERVER[@]} -gt 0 ] || return 0
	{
		time {
			"${SERVER[@]}" >"$WORK/server.log" 2>&1 &
			echo $! >"$WORK/server.id"
			wait $!
		}
	} 2>"$WORK/server.time" &
	SERVING=$!
	first_fetch "$1"
}

# Until the server answers.
first_fetch()
{
	local try

	for ((try = 0; try < 300; try++)); do
		rm -rf "$WORK/dst/first"
		if get "$1" first 1 >"$WORK/first.log" 2>&1; then
			same first && rm -rf "$WORK/dst/first" && return
			die "$1: another file"
		fi
		sleep 0.1
	done
	cat "$WORK/first.log" "$WORK/server.log" >&2
	die "$1: the server does not answer"
}

end()
{
	[ ! -s "$WORK/server.id" ] || kill "$(cat "$WORK/server.id")"
	rm -f "$WORK/server.id"
}

end_server()
{
	SERVER_TIME=0
	[ ${#SERVER[@]} -gt 0 ] || return 0
	# what serves the last request ends, too, and is counted
	sleep 0.1
	end
	wait "$SERVING"
	SERVER_TIME=$(seconds 1 <"$WORK/server.time")
}

# seconds COLUMN: of a time's last line: of the clock, or of the processors
seconds()
{
	tail -n 1 | awk -v clock="$1" \
		'{ printf "%.3f\n", clock ? $2 + $3 : $1 }'
}

# ---- clients -----------------------------------------------------------------

# curl_get NAME FILES [OPTION]...
curl_get()
{
	local url=http://$ADDRESS:$PORT/$1 to=$WORK/dst/$1

	if [ "$2" != 1 ]; then
		mkdir "$to"
		url+=$(printf '/[00001-%05d]' "$2")
		to+=/#1
	fi
	curl -sfS "${@:3}" -o "$to" "$url"
}

wget_get()
{
	if [ "$2" = 1 ]; then
		wget -q -P "$WORK/dst" "http://$ADDRESS:$PORT/$1"
	else
		wget -q -r -np -nH -R "index.html*" -P "$WORK/dst" \
			"http://$ADDRESS:$PORT/$1/"
	fi
}

# get PEER NAME FILES
get()
{
	case $1 in
	mrrc|pages)
		fi_mrrc_get -q -P "tcp;ofi_mrrc" -p "$PORT" -C "$WORK/dst" \
			"$ADDRESS:$2"
		;;
	curl|python) curl_get "$2" "$3" ;;
	curls) curl_get "$2" "$3" -Z ;;
	wget) wget_get "$2" "$3" ;;
	rsync) rsync -a "rsync://$ADDRESS:$PORT/src/$2" "$WORK/dst/" ;;
	dd) dd "if=$WORK/src/$2" "of=$WORK/dst/$2" bs=1M status=none ;;
	cp) cp -r "$WORK/src/$2" "$WORK/dst/" ;;
	*) die "no peer $1" ;;
	esac
}

# ---- turns -------------------------------------------------------------------

TIMEFORMAT='%R %U %S'

# fetch PEER NAME FILES TURN: measured; the first turn's bytes are compared
fetch()
{
	begin_server "$1"
	{ time get "$1" "$2" "$3" 2>"$WORK/get.log"; } 2>"$WORK/get.time" || {
		cat "$WORK/get.log" >&2
		die "$1 did not fetch $2"
	}
	[ "$4" -gt 0 ] || same "$2" || die "$1 fetched other bytes of $2"
	rm -rf "${WORK:?}/dst/$2"
	end_server
	printf '%s %s %s %s %s\n' "$1" "$2" "$(seconds 0 <"$WORK/get.time")" \
		"$(seconds 1 <"$WORK/get.time")" "$SERVER_TIME"
}

# turn NUMBER: the peer that begins changes
turn()
{
	local peers peer sets set name files i

	read -ra peers <<<"$PEERS"
	for ((i = 0; i < ${#peers[@]}; i++)); do
		IFS=: read -r peer sets <<<"${peers[(i + $1) % ${#peers[@]}]}"
		for set in $SETS; do
			IFS=: read -r name files _ <<<"$set"
			[[ -n $sets && ,$sets, != *,$name,* ]] ||
				fetch "$peer" "$name" "$files" "$1"
		done
		begin_server "$peer"
		end_server
		echo "$peer none 0 0 $SERVER_TIME"
	done
}

parse()
{
	local option

	while getopts t:n:h option; do
		case $option in
		t) TURNS=$OPTARG ;;
		n) NGINX=$OPTARG ;;
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
	begin_sets
	all_turns
}

main "$@"; exit
