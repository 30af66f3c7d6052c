#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# guest.sh: run a command in a virtual machine that has Soft-RoCE, so that
# real verbs run on a machine without RDMA hardware.  The guest boots Debian's
# kernel on the host's own root file system (virtme-ng, QEMU emulation), sets
# up rxe0 over 10.0.0.1/24, and runs the command as root.
#
# Flow: host part (locks, boots, relays output, enforces the limit) <-> a 9p
# folder ("exchange") <-> guest part (the `guest_part` function, as a script).
# Output travels by files in the exchange, not by the console, so it arrives
# byte for byte.

set -u
umask 022

readonly ME=${0##*/}

# The packages that --setup installs; no other list names them.
readonly PACKAGES="busybox-static file ibverbs-providers ibverbs-utils
	iproute2 kmod libfabric-bin python3-venv qemu-system-x86 rdma-core
	rdmacm-utils util-linux"
readonly VIRTME=virtme-ng==1.42

readonly RC_TIMEOUT=124		# as timeout(1)
readonly RC_NO_GUEST=125	# the guest did not start, or died
readonly BOOT_LIMIT=300		# seconds; a busy machine boots slowly

readonly MOUNT_OPTIONS=trans=virtio,version=9p2000.L,access=any,msize=524288

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [--] COMMAND [ARG...]
	       $ME --setup | --packages | -h

	Runs COMMAND as root in a virtual machine with Soft-RoCE: device rxe0,
	address 10.0.0.1.  The guest sees this machine's files.  What it writes
	is thrown away, except under folders named with -w.  Standard input is
	empty.

	  -t SECONDS    limit for COMMAND, boot not counted (default 600)
	  -m MEMORY     guest memory (default 4G)
	  -c CPUS       guest processors (default 2)
	  -w RWDIR      folder that the guest may change; can be repeated
	  -e VAR=VALUE  set a variable for COMMAND; can be repeated
	  -C DIR        run COMMAND in DIR (default: the current folder)
	  -i            its clock counts instructions, one a nanosecond: what else
	                runs on this machine changes no times, but those of I/O
	  -n            do not wait for another guest to end: fail at once
	  --setup       install and unpack what is needed, and stop
	  --packages    print the Debian packages that --setup installs
	  -h, --help    this text

	COMMAND gets PATH, LD_LIBRARY_PATH, LD_PRELOAD, HOME, LANG, LC_ALL, TERM
	and FI_* of the caller, and FI_UNIVERSE_SIZE=16 unless that is set:
	ofi_rxm's default queue is larger than rxe allows.

	Exit status: COMMAND's own; $RC_TIMEOUT the limit passed;
	$RC_NO_GUEST the guest could not start, or died; 2 wrong usage.
	Files are kept in \${OFI_MRRC_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/ofi_mrrc}.
	EOT
}

say()
{
	printf 'guest: %s\n' "$*" >&2
}

die()
{
	local rc=$1

	shift
	say "$*"
	exit "$rc"
}

usage_error()
{
	say "$*"
	usage >&2
	exit 2
}

# ---- what is needed ------------------------------------------------------

# Prints one line for each thing that is missing.
missing()
{
	local tool

	for tool in busybox depmod file flock ip modprobe python3 \
		qemu-system-x86_64 rdma setpriv; do
		command -v "$tool" >/dev/null || echo "program $tool"
	done
	[ -x "$VENV/bin/virtme-run" ] || echo "virtme-ng in $VENV"
	[ -f "$KERNEL/ready" ] || echo "guest kernel in $KERNEL"
}

install_packages()
{
	local pkg want=()

	for pkg in $PACKAGES; do
		dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null |
			grep -q 'ok installed' || want+=("$pkg")
	done
	[ ${#want[@]} -eq 0 ] && return 0
	[ "$(id -u)" -eq 0 ] ||
		die $RC_NO_GUEST "as root: apt-get install ${want[*]}"
	say "installing ${want[*]}"
	apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends "${want[@]}" >/dev/null
}

install_virtme()
{
	[ -x "$VENV/bin/virtme-run" ] && return 0
	say "installing $VIRTME"
	rm -rf "$VENV"
	python3 -m venv "$VENV" &&
		"$VENV/bin/pip" install -q --disable-pip-version-check \
			"$VIRTME" && return 0
	rm -rf "$VENV"
	return 1
}

# The name of the package that the meta package depends on.
kernel_package()
{
	apt-cache depends --important linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' |
		head -n 1
}

install_kernel()
{
	local work=$KERNEL.new pkg version

	[ -f "$KERNEL/ready" ] && return 0
	pkg=$(kernel_package)
	if [ -z "$pkg" ] && [ "$(id -u)" -eq 0 ]; then
		apt-get update -qq
		pkg=$(kernel_package)
	fi
	[ -n "$pkg" ] || die $RC_NO_GUEST \
		"apt knows no linux-image-amd64; as root: apt-get update"
	say "unpacking $pkg"
	rm -rf "$work" "$KERNEL"
	mkdir -p "$work" || return 1
	version=${pkg#linux-image-}
	# apt's sandbox user may not reach the cache folder: a harmless warning
	(cd "$work" && apt-get download -qq "$pkg" 2>download.log) || {
		cat "$work/download.log" >&2
		return 1
	}
	dpkg-deb -x "$work/$pkg"_*.deb "$work" &&
		depmod -b "$work" "$version" || return 1
	rm -rf "${work:?}/$pkg"_*.deb "$work/download.log" "${work:?}/usr"
	echo "$version" >"$work/ready" && mv "$work" "$KERNEL"
}

setup()
{
	[ "$(uname -m)" = x86_64 ] || die $RC_NO_GUEST "needs an x86_64 machine"
	mkdir -p "$CACHE" || die $RC_NO_GUEST "cannot make $CACHE"
	install_packages || die $RC_NO_GUEST "cannot install packages"
	install_virtme || die $RC_NO_GUEST "cannot install $VIRTME"
	install_kernel || die $RC_NO_GUEST "cannot unpack the guest kernel"
	say "ready"
}

# ---- the guest's side ----------------------------------------------------

# Runs in the guest only: its text is copied into the exchange.  Reads argv,
# env, dirs and cwd (NUL-terminated items); writes up or fail, then out, err
# and rc.
# shellcheck disable=SC2317
guest_part()
{
	local x=/run/mrrc_exchange argv cwd dirs env name i rc cats=()

	guest_fail()
	{
		printf '%s\n' "$*" >"$x/fail"
		exit 1
	}

	exec >"$x/init.log" 2>&1 </dev/null
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

	# virtme points these at ports that can be opened only once
	ln -sfn /proc/self/fd/1 /dev/stdout
	ln -sfn /proc/self/fd/2 /dev/stderr

	mapfile -d '' -t argv <"$x/argv"
	mapfile -d '' -t cwd <"$x/cwd"
	mapfile -d '' -t dirs <"$x/dirs"
	mapfile -d '' -t env <"$x/env"
	for i in "${!dirs[@]}"; do
		mkdir -p "${dirs[i]}"
		# a shared writable mapping needs more than the default cache
		mount -t 9p -o "$MOUNT_OPTIONS,cache=mmap" \
			"mrrc_w$i" "${dirs[i]}" ||
			guest_fail "cannot mount ${dirs[i]} read-write"
	done

	modprobe -a -d "$KERNEL" dummy rdma_rxe ib_uverbs rdma_ucm ||
		guest_fail "cannot load the RDMA modules"
	ip link set lo up
	# without systemd's modprobe.d the module brings a dummy0 of its own
	[ -d /sys/class/net/dummy0 ] || ip link add dummy0 type dummy
	if ! ip addr add 10.0.0.1/24 dev dummy0 ||
	   ! ip link set dummy0 up; then
		guest_fail "cannot set up dummy0"
	fi
	# verbs looks it up; a minimal system may have no such line
	grep -qsw localhost /etc/hosts || echo 127.0.0.1 localhost >>/etc/hosts
	rdma link add rxe0 type rxe netdev dummy0 ||
		guest_fail "cannot add rxe0"
	for ((i = 0; i < 100; i++)); do
		rdma link show rxe0/1 | grep -q 'state ACTIVE' && break
		sleep 0.1
	done
	rdma link show rxe0/1 | grep -q 'state ACTIVE' ||
		guest_fail "rxe0 is not active"
	ulimit -l unlimited || guest_fail "cannot lift the memlock limit"

	# Pipes, so that COMMAND can reopen /dev/stdout.
	mkfifo /run/mrrc_out /run/mrrc_err
	cat /run/mrrc_out >>"$x/out" &
	cats+=($!)
	cat /run/mrrc_err >>"$x/err" &
	cats+=($!)
	exec 3>/run/mrrc_out 4>/run/mrrc_err
	[ -e "$x/merge" ] && exec 4>&3
	: >"$x/up"

	(
		while read -r name; do
			unset "$name"
		done < <(compgen -e)
		for name in "${env[@]}"; do
			export "${name?}"
		done
		exec 1>&3 2>&4 3>&- 4>&-
		cd -- "${cwd[0]}" || exit 125
		exec "${argv[@]}"
	)
	rc=$?
	exec 3>&- 4>&-

	# Processes that COMMAND left running may hold the pipes: do not wait
	# for ever.
	for ((i = 0; i < 30; i++)); do
		kill -0 "${cats[@]}" 2>/dev/null || break
		sleep 0.1
	done
	sync
	echo "$rc" >"$x/rc.new"
	mv "$x/rc.new" "$x/rc"
	sleep 60
}

# ---- the host's side -----------------------------------------------------

WORK=		# this run's folder
VM=		# leader of the guest's process group
TAILS=()

# Waits without starting a process, so that signals are handled at once.
tick()
{
	read -r -t "$1" -u 8 _
}

# True when a process has ended, reaped or not.
ended()
{
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ $stat == *") Z "* ]]
}

stop_guest()
{
	local qemu i

	[ -n "$VM" ] || return 0
	qemu=$(cat "$WORK/qemu.pid" 2>/dev/null)
	kill -KILL -- "-$VM" 2>/dev/null
	wait "$VM" 2>/dev/null
	VM=
	# not our child: giving its memory back takes it a moment
	for ((i = 0; i < 100; i++)); do
		[ -z "$qemu" ] || ended "$qemu" && break
		tick 0.05
	done
	# they end by themselves once VM is gone and all is relayed
	[ ${#TAILS[@]} -eq 0 ] || wait "${TAILS[@]}" 2>/dev/null
	TAILS=()
}

# shellcheck disable=SC2317 # the traps call it
cleanup()
{
	trap '' INT TERM HUP
	stop_guest
	[ -n "$WORK" ] && rm -rf "$WORK"
}

# Two guests on one machine make each other fail by time limits.
take_lock()
{
	local dir=/run/lock file told=

	[ -w $dir ] || dir=/tmp
	file=$dir/ofi_mrrc-guest.lock
	[ -e "$file" ] || : >"$file"
	exec 9<"$file" || die $RC_NO_GUEST "cannot open $file"
	until flock -n 9; do
		[ "$WAIT" = yes ] || die $RC_NO_GUEST \
			"another guest runs (process $(cat "$file"))"
		[ -n "$told" ] ||
			say "another guest runs (process $(cat "$file")):" \
				"waiting for its end"
		told=yes
		tick 1
	done
	{ echo $$ >"$file"; } 2>/dev/null
	return 0
}

# Removes what a killed run has left; no other runs while we hold the lock.
sweep()
{
	local dir

	for dir in "$WORK_STEM".*; do
		[ ! -O "$dir" ] || rm -rf "$dir"
	done
}

write_exchange()
{
	local x=$WORK/x name

	mkdir "$x" "$WORK/home"
	printf '%s\0' "${ARGV[@]}" >"$x/argv"
	printf '%s\0' "$DIR" >"$x/cwd"
	: >"$x/dirs"
	[ ${#RWDIRS[@]} -eq 0 ] || printf '%s\0' "${RWDIRS[@]}" >"$x/dirs"
	{
		printf '%s\0' "PATH=$CALLER_PATH" "HOME=${HOME:-/root}" \
			"FI_UNIVERSE_SIZE=${FI_UNIVERSE_SIZE:-16}"
		for name in LD_LIBRARY_PATH LD_PRELOAD LANG LC_ALL TERM \
			$(compgen -e FI_); do
			[ -z "${!name+set}" ] || [ "$name" = FI_UNIVERSE_SIZE ] ||
				printf '%s\0' "$name=${!name}"
		done
		[ ${#ENVS[@]} -eq 0 ] || printf '%s\0' "${ENVS[@]}"
	} >"$x/env"
	: >"$x/out"
	: >"$x/err"
	# one file on the host: keep the order of the two in the guest
	[ /proc/self/fd/1 -ef /proc/self/fd/2 ] && : >"$x/merge"
	{
		declare -p KERNEL MOUNT_OPTIONS
		declare -f guest_part
		echo guest_part
	} >"$x/init.sh"
	# A guest must not outlive this script, however that ends.
	cat >"$WORK/qemu" <<-EOT
	#!/bin/sh
	echo \$\$ >'$WORK/qemu.pid'
	exec setpriv --pdeathsig KILL qemu-system-x86_64 "\$@"
	EOT
	chmod +x "$WORK/qemu"
}

# Prints the top folders that a guest can write to without changing the host.
overlay_dirs()
{
	local dir

	for dir in /*; do
		[ -L "$dir" ] && continue
		[ -d "$dir" ] || continue
		case $dir in
		/dev|/proc|/run|/sys|/lost+found|*[!A-Za-z0-9._/-]*) ;;
		*) echo "$dir" ;;
		esac
	done
}

export_dir()
{
	local path=${1//,/,,} tag=$2

	QEMU_ARGS+=(-q=-fsdev
		-q="local,id=$tag,path=$path,security_model=none,multidevs=remap"
		-q=-device -q="virtio-9p-pci,fsdev=$tag,mount_tag=$tag")
}

start_guest()
{
	local dir i args=() boot

	QEMU_ARGS=()
	# shellcheck disable=SC2054 # one word
	[ "$COUNTS" = no ] || QEMU_ARGS+=(-q=-icount -q=shift=0)
	export_dir "$WORK/x" mrrc_x
	for i in "${!RWDIRS[@]}"; do
		export_dir "${RWDIRS[i]}" "mrrc_w$i"
	done
	for dir in $(overlay_dirs); do
		args+=(--overlay-rwdir "$dir")
	done
	boot="mkdir /run/mrrc_exchange; mount -t 9p -o $MOUNT_OPTIONS mrrc_x"
	boot="$boot /run/mrrc_exchange && exec bash /run/mrrc_exchange/init.sh"

	# KVM is not used: where it exists without working, a guest hangs on it.
	# Own HOME and TMPDIR: virtme keeps settings and scratch files there.
	HOME=$WORK/home TMPDIR=$WORK/home setsid setpriv --pdeathsig KILL \
		"$VENV/bin/virtme-run" --kimg "$KERNEL/boot/vmlinuz-$VERSION" \
		--mods auto --force-9p --disable-kvm --disable-monitor \
		--qemu-bin "$WORK/qemu" --name mrrc-guest --user root \
		--memory "$MEMORY" --cpus "$CPUS" "${args[@]}" \
		--show-boot-console --kopt loglevel=3 --script-sh "$boot" \
		"${QEMU_ARGS[@]}" \
		</dev/null >"$WORK/virtme.log" 2>"$WORK/console.log" &
	VM=$!
	tail -n +1 -f -s 0.1 --pid="$VM" "$WORK/x/out" 2>/dev/null 9<&- &
	TAILS+=($!)
	tail -n +1 -f -s 0.1 --pid="$VM" "$WORK/x/err" >&2 2>/dev/null 9<&- &
	TAILS+=($!)
}

guest_alive()
{
	kill -0 "$VM" 2>/dev/null
}

# Prints why the guest cannot be used.
explain()
{
	say "$*"
	[ -f "$WORK/x/fail" ] && say "$(cat "$WORK/x/fail")"
	tail -n 30 "$WORK/x/init.log" "$WORK/virtme.log" "$WORK/console.log" \
		2>/dev/null | tr -d '\r' | sed 's/^/guest: | /' >&2
}

wait_up()
{
	local start=$SECONDS

	until [ -e "$WORK/x/up" ]; do
		if [ -e "$WORK/x/fail" ] || ! guest_alive; then
			explain "could not start"
			exit $RC_NO_GUEST
		elif [ $((SECONDS - start)) -ge $BOOT_LIMIT ]; then
			explain "did not come up within $BOOT_LIMIT s"
			exit $RC_NO_GUEST
		fi
		tick 0.1
	done
	say "up after $((SECONDS - start)) s (process $(cat "$WORK/qemu.pid"))"
}

wait_command()
{
	local start=$SECONDS

	until [ -e "$WORK/x/rc" ]; do
		if ! guest_alive && [ ! -e "$WORK/x/rc" ]; then
			stop_guest
			explain "ended before the command did"
			exit $RC_NO_GUEST
		elif [ $((SECONDS - start)) -ge "$LIMIT" ]; then
			stop_guest
			say "the time limit of $LIMIT s passed"
			exit $RC_TIMEOUT
		fi
		tick 0.1
	done
}

positive()
{
	[[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "$1 wants a number above 0: $2"
}

# ---- main ----------------------------------------------------------------

# A function, so that bash has read all of this file before it starts: a run
# lasts long enough for the file to be changed.
main()
{
	HOME_DIR=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
	CACHE=${OFI_MRRC_CACHE:-${XDG_CACHE_HOME:-$HOME_DIR/.cache}/ofi_mrrc}
	VENV=$CACHE/virtme
	KERNEL=$CACHE/guest-kernel
	CALLER_PATH=$PATH
	PATH=$PATH:/usr/sbin:/sbin	# not in every user's
	WORK_STEM=${TMPDIR:-/tmp}/ofi_mrrc-guest-run

	LIMIT=600 MEMORY=4G CPUS=2 DIR=$PWD WAIT=yes COUNTS=no RWDIRS=() ENVS=()
	while [ $# -gt 0 ]; do
		case $1 in
		--setup) setup; exit ;;
		--packages) tr -s '[:space:]' ' ' <<<"$PACKAGES"; exit ;;
		-h|--help) usage; exit ;;
		-i) COUNTS=yes; shift; continue ;;
		-n) WAIT=no; shift; continue ;;
		--) shift; break ;;
		-[tmcweC]) [ $# -ge 2 ] || usage_error "$1 wants a value" ;;
		-*) usage_error "unknown option $1" ;;
		*) break ;;
		esac
		case $1 in
		-t) positive "$1" "$2"; LIMIT=$2 ;;
		-c) positive "$1" "$2"; CPUS=$2 ;;
		-m) MEMORY=$2 ;;
		-C)
			DIR=$(cd -- "$2" 2>/dev/null && pwd) ||
				usage_error "no such folder: $2"
			;;
		-w)
			[ -d "$2" ] || usage_error "no such folder: $2"
			RWDIRS+=("$(realpath -- "$2")")
			;;
		-e)
			[[ $2 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] ||
				usage_error "-e wants VAR=VALUE: $2"
			ENVS+=("$2")
			;;
		esac
		shift 2
	done
	[ $# -gt 0 ] || usage_error "no command"
	ARGV=("$@")

	lacking=$(missing)
	if [ -n "$lacking" ]; then
		say "missing here:"
		printf '%s\n' "$lacking" | sed 's/^/guest:   /' >&2
		die $RC_NO_GUEST "to install: $0 --setup"
	fi
	VERSION=$(cat "$KERNEL/ready")

	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# a pipe that never has anything to read
	exec 8<> <(:)
	take_lock
	sweep
	WORK=$(mktemp -d "$WORK_STEM.XXXXXX") ||
		die $RC_NO_GUEST "cannot make a temporary folder"
	write_exchange
	say "booting (Linux $VERSION, $CPUS processors, $MEMORY)"
	start_guest
	wait_up
	wait_command
	rc=$(cat "$WORK/x/rc")
	stop_guest
	exit "$rc"
}

main "$@"
