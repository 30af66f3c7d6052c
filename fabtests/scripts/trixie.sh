#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# trixie.sh: run a command in a folder that holds Debian 13, whose libfabric
# is a 2.x.  The machine itself stays as it is.
#
# Flow: the folder is made once, by debootstrap, in the cache.  A command runs
# in it (chroot) in namespaces of its own for mounts and processes, so that
# nothing is left mounted or running, however this script ends.

set -u
umask 022

readonly ME=${0##*/}
readonly SUITE=trixie

# The packages that --setup installs; no other list names them.
readonly HOST_PACKAGES="debian-archive-keyring debootstrap gpgv util-linux"
readonly PACKAGES="ca-certificates check gcc libbsd-dev libc6-dev
	libfabric-bin libfabric-dev libjansson-dev liblzma-dev
	libsodium-dev liburing-dev libxxhash-dev libzydis-dev make pkg-config"

readonly RC_NO_FOLDER=125

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [--] COMMAND [ARG...]
	       $ME --setup | --packages | -h
	       $ME --bare SUITE DIR

	Runs COMMAND in a folder that holds Debian 13 ($SUITE), made on first
	use.  This source tree is there, read-only; nothing else of the machine
	is, but for what -r and -w name.

	  -r DIR        share a folder, read-only; can be repeated
	  -w DIR        share a folder, to be written to; can be repeated
	  -e VAR=VALUE  set a variable for COMMAND; can be repeated
	  -C DIR        run COMMAND in DIR (default: the source tree)
	  --root DIR    run COMMAND in the folder DIR, in place of Debian 13's
	  --bare SUITE DIR
	                unpack a bare Debian of SUITE into DIR, and stop
	  --setup       install and unpack what is needed, and stop
	  --packages    print the Debian packages that --setup installs here
	  -h, --help    this text

	COMMAND gets FI_*, LC_ALL and TERM of the caller, and runs as the caller.
	Needs root, or sudo.

	Exit status: COMMAND's own; $RC_NO_FOLDER the folder cannot be made or
	entered; 2 wrong usage.
	It is kept in \${OFI_MRRC_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/ofi_mrrc}.
	EOT
}

say()
{
	printf 'trixie: %s\n' "$*" >&2
}

die()
{
	say "$*"
	exit $RC_NO_FOLDER
}

usage_error()
{
	say "$*"
	usage >&2
	exit 2
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# ---- the folder ----------------------------------------------------------

# Debian's mirrors that this machine's apt uses, the likeliest first.
mirrors()
{
	local codename

	codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	# shellcheck disable=SC2016 # apt's variables
	apt-get indextargets "Created-By: Packages" \
		--format '$(RELEASE) $(COMPONENT) $(ORIGIN) $(REPO_URI)' |
		awk -v codename="$codename" '
		$1 ~ /-/ || $2 != "main" { next }
		$3 == "Debian" { print 0, $NF; next }
		$1 == codename { print 1, $NF }' |
		sort -u | cut -d' ' -f2
}

# Prints apt's settings of the way to its mirrors, for the folder's own apt.
apt_settings()
{
	apt-config dump | grep -E \
		'^Acquire::(http|https|ftp|Check-Date|Check-Valid-Until|Retries|ForceIPv[46])(::| )'
}

# Exports the same for debootstrap, which uses wget.
export_proxy()
{
	local scheme value

	for scheme in http https; do
		value=
		eval "$(apt-config shell value "Acquire::$scheme::Proxy")"
		[ -z "$value" ] || [ "$value" = DIRECT ] ||
			export "${scheme}_proxy=$value"
	done
}

install_host_packages()
{
	local pkg want=()

	for pkg in $HOST_PACKAGES; do
		dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null |
			grep -q 'ok installed' || want+=("$pkg")
	done
	[ ${#want[@]} -eq 0 ] && return 0
	say "installing ${want[*]}"
	as_root apt-get update -qq &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install \
			-y -qq -o DPkg::Lock::Timeout=600 \
			--no-install-recommends "${want[@]}" >/dev/null
}

# as_here DIR: the folder's apt reaches its mirror in this machine's way.
as_here()
{
	local ca=/etc/ssl/certs/ca-certificates.crt

	# of a mirror that only this machine trusts
	[ ! -f $ca ] || as_root cp $ca "$1$ca" || return 1
	apt_settings | as_root tee "$1/etc/apt/apt.conf.d/90host" >/dev/null
}

# bootstrap SUITE DIR: unpacks Debian into it.  In a mount namespace: what an
# interrupted debootstrap leaves mounted must not be there for rm.
bootstrap()
{
	local suite=$1 dir=$2 mirror

	export_proxy
	while read -r mirror; do
		say "unpacking Debian's $suite from $mirror"
		as_root rm -rf --one-file-system "$dir"
		as_root env http_proxy="${http_proxy-}" \
			https_proxy="${https_proxy-}" PATH="$PATH" \
			unshare -m debootstrap --variant=minbase \
			--include=ca-certificates "$suite" "$dir" "$mirror" \
			>"$CACHE/debootstrap.log" 2>&1 && as_here "$dir" &&
			return 0
		tail -n 20 "$CACHE/debootstrap.log" >&2
	done < <(mirrors)
	return 1
}

# The caller holds the lock.
fill_folder()
{
	local new=$ROOT.new log=$CACHE/trixie-apt.log

	if ! [ -d "$ROOT" ]; then
		bootstrap "$SUITE" "$new" || return 1
		as_root mv "$new" "$ROOT" || return 1
	fi
	say "installing packages in $ROOT"
	# shellcheck disable=SC2086 # a list
	if ! enter 0:0 / apt-get update -qq >"$log" 2>&1 ||
	   ! enter 0:0 / apt-get install -y -qq --no-install-recommends \
		$PACKAGES >>"$log" 2>&1; then
		tail -n 20 "$log" >&2
		return 1
	fi
	echo "$PACKAGES" | as_root tee "$ROOT/ready" >/dev/null
}

ready()
{
	[ "$(cat "$ROOT/ready" 2>/dev/null)" = "$PACKAGES" ]
}

lock()
{
	mkdir -p "$CACHE" || die "cannot make $CACHE"
	exec 9>"$CACHE/trixie.lock" || die "cannot lock $CACHE"
	flock 9
}

bare()
{
	lock
	install_host_packages || die "cannot install $HOST_PACKAGES"
	bootstrap "$1" "$2" || die "cannot make $2"
	as_root chroot "$2" apt-get update -qq || die "apt does not work in $2"
}

setup()
{
	# not after the commands that run there now, which may take long
	ready && return 0
	lock
	ready && return 0
	command -v apt-config >/dev/null || die "needs a Debian"
	install_host_packages || die "cannot install $HOST_PACKAGES"
	fill_folder || die "cannot make $ROOT"
	say "ready"
}

# ---- inside ----------------------------------------------------------------

# inside ROOT USER DIR NREAD NWRITE FOLDER... -- COMMAND...: the first process
# of the namespaces; its text is handed to another bash.  When it ends, so do
# all that it started.
# shellcheck disable=SC2317
inside()
{
	local root=$1 user=$2 dir=$3 nread=$4 n=0 path rc

	shift 4
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if ! mount -t proc proc "$root/proc" ||
	   ! mount --rbind /sys "$root/sys" ||
	   ! mount --rbind /dev "$root/dev" ||
	   ! mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; then
		return 125
	fi
	for path in /etc/hosts /etc/resolv.conf; do
		[ -f "$path" ] || continue
		: >>"$root$path" && mount --bind "$path" "$root$path"
	done
	while [ "$1" != -- ]; do
		if ! mkdir -p "$root$1" || ! mount --bind "$1" "$root$1"; then
			return 125
		fi
		n=$((n + 1))
		[ "$n" -gt "$nread" ] ||
			mount -o remount,bind,ro "$root$1" || return 125
		shift
	done
	shift

	set -m
	# shellcheck disable=SC2016 # for that shell
	chroot --userspec="$user" "$root" /bin/sh -c \
		'cd -- "$0" && exec "$@"' "$dir" "$@" </dev/null 9<&- &
	set +m
	wait $!
	rc=$?
	return "$rc"
}

# enter USER DIR COMMAND...: in the folder, with READ and WRITE shared.
enter()
{
	local user=$1 dir=$2 sudo=()

	shift 2
	[ "$(id -u)" -eq 0 ] || sudo=(sudo)
	set -m
	"${sudo[@]}" setpriv --pdeathsig KILL \
		unshare -m -p --fork --kill-child bash -c \
		"$(declare -f inside); inside \"\$@\"" inside \
		"$ROOT" "$user" "$dir" ${#READ[@]} "${READ[@]}" \
		"${WRITE[@]}" -- env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/tmp DEBIAN_FRONTEND=noninteractive "${ENVS[@]}" "$@" &
	CHILD=$!
	set +m
	wait $CHILD
}

# unshare itself does not heed signals; its first process does.
# shellcheck disable=SC2317 # the traps call it
leave()
{
	[ -z "$CHILD" ] || kill -TERM -- "-$CHILD" 2>/dev/null
	exit "$1"
}

# ---- main --------------------------------------------------------------------

main()
{
	local top home name

	top=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
	home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
	CACHE=${OFI_MRRC_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/ofi_mrrc}
	ROOT=$CACHE/$SUITE
	PATH=$PATH:/usr/sbin:/sbin	# not in every user's
	DIR=$top READ=() WRITE=() ENVS=() CHILD=
	for name in LC_ALL TERM $(compgen -e FI_); do
		[ -z "${!name+set}" ] || ENVS+=("$name=${!name}")
	done
	trap 'leave 129' HUP
	trap 'leave 130' INT
	trap 'leave 143' TERM
	while [ $# -gt 0 ]; do
		case $1 in
		--setup) setup; exit ;;
		--packages) echo "$HOST_PACKAGES"; exit ;;
		--bare)
			[ $# -eq 3 ] || usage_error "--bare wants a suite and a folder"
			bare "$2" "$3"
			exit
			;;
		-h|--help) usage; exit ;;
		--) shift; break ;;
		--root|-[rweC]) [ $# -ge 2 ] || usage_error "$1 wants a value" ;;
		-*) usage_error "unknown option $1" ;;
		*) break ;;
		esac
		case $1 in
		-[rw])
			[ -d "$2" ] || usage_error "no such folder: $2"
			if [ "$1" = -r ]; then
				READ+=("$(realpath -- "$2")")
			else
				WRITE+=("$(realpath -- "$2")")
			fi
			;;
		-e)
			[[ $2 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] ||
				usage_error "-e wants VAR=VALUE: $2"
			ENVS+=("$2")
			;;
		-C) DIR=$2 ;;
		--root) ROOT=$(realpath -- "$2") || exit 2 ;;
		esac
		shift 2
	done
	[ $# -gt 0 ] || usage_error "no command"
	[ "$ROOT" != "$CACHE/$SUITE" ] || ready || "$0" --setup || exit
	READ+=("$top")
	# the folder must not change meanwhile
	exec 9<"$CACHE/trixie.lock" || die "cannot lock $CACHE"
	flock -s 9
	enter "$(id -u):$(id -g)" "$DIR" "$@"
	exit
}

main "$@"
