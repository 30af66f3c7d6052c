#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# guest.sh: run a command in a virtual machine that has Soft-RoCE, so that
# real verbs run on a machine without RDMA hardware.  The guest boots Debian's
# kernel on the host's own root file system (QEMU, with KVM where that works),
# sets up rxe0 over 10.0.0.1/24, and runs the command as root.
#
# Flow: host part (locks, boots, relays output, enforces the limit) <-> a 9p
# folder ("exchange") <-> guest parts (the functions `init_part`, which mounts
# the root, and `guest_part`, each as a script).
# Output travels by files in the exchange, not by the console, so it arrives
# byte for byte.

set -u
umask 022
HERE=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")

readonly ME=${0##*/}

readonly RC_TIMEOUT=124		# as timeout(1)
readonly RC_NO_GUEST=125	# the guest did not start, or died
# Seconds of processor time that the guest may use until it is up, and of the
# clock: a busy machine boots slowly, and one that hangs computes.
readonly BOOT_WORK=150 BOOT_LIMIT=1800
# Seconds of processor time in which a first line comes, where KVM works.
readonly KVM_WORK=5

# The kernel's; on a busy machine its test of the timer fails.
readonly APPEND="panic=-1 loglevel=3 no_timer_check"
readonly DISK_DIR=/run/mrrc_disk

readonly MOUNT_OPTIONS=trans=virtio,version=9p2000.L,access=any,msize=524288

# shellcheck source=fabtests/scripts/guest_setup.sh
. "$HERE/guest_setup.sh"
# shellcheck source=fabtests/scripts/guest_parts.sh
. "$HERE/guest_parts.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [--] COMMAND [ARG...]
	       $ME [-k RELEASE | --arch arm64] --setup | --packages | -h

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
	  -k RELEASE    boot the kernel of trixie, which is Debian 13 (Linux
	                6.12), or of trixie-backports
	  --arch arm64  emulate a 64-bit ARM with a Debian 13 of its own; of this
	                machine's files it sees this source tree, not to be
	                written to, and the folders named with -w
	  -d SIZE       TMPDIR is on a disk with ext4, of this size, in memory
	  -l MODULE     load this module of the kernel, too; can be repeated
	  -i            one processor, whose clock counts instructions, one a
	                nanosecond: what else runs on this machine changes no times,
	                but those of I/O
	  -n            do not wait for another guest to end: fail at once
	  --setup       install and unpack what is needed, print where the kernel
	                is, with --arch the guest's root, and stop
	  --packages    print the Debian packages that --setup installs
	  -h, --help    this text

	COMMAND gets PATH, LD_LIBRARY_PATH, LD_PRELOAD, HOME, LANG, LC_ALL, TERM
	and FI_* of the caller, and FI_UNIVERSE_SIZE=16 unless that is set:
	ofi_rxm's default queue is larger than rxe allows.

	Exit status: COMMAND's own; $RC_TIMEOUT the limit passed;
	$RC_NO_GUEST the guest could not start, or died; 2 wrong usage.
	KVM is used where it runs the guest's kernel, unless OFI_MRRC_KVM=no.
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

# ---- the host's side -----------------------------------------------------

WORK=		# this run's folder
VM=		# leader of the guest's process group
TAILS=()

# Waits without starting a process, so that signals are handled at once.
tick()
{
	read -r -t "$1" -u 8 _
}

stop_guest()
{
	[ -n "$VM" ] || return 0
	kill -KILL -- "-$VM" 2>/dev/null
	wait "$VM" 2>/dev/null
	VM=
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

	mkdir "$x"
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
		[ -z "$DISK" ] || printf '%s\0' "TMPDIR=$DISK_DIR"
		[ ${#ENVS[@]} -eq 0 ] || printf '%s\0' "${ENVS[@]}"
	} >"$x/env"
	: >"$x/out"
	: >"$x/err"
	# one file on the host: keep the order of the two in the guest
	[ /proc/self/fd/1 -ef /proc/self/fd/2 ] && : >"$x/merge"
	{
		declare -p KERNEL MODULES MOUNT_OPTIONS DISK DISK_DIR
		# in the guest
		[ -z "$ARCH" ] || echo KERNEL=/
		declare -f guest_disk guest_part
		echo guest_part
	} >"$x/init.sh"
}

# export_dir FOLDER TAG [OPTION]: what the guest can mount
export_dir()
{
	local path=${1//,/,,} tag=$2

	QEMU_ARGS+=(-fsdev
		"local,id=$tag,path=$path,security_model=none,multidevs=remap${3:+,$3}"
		-device "virtio-9p-pci,fsdev=$tag,mount_tag=$tag")
}

# Clock ticks of processor time that a process has used.
used_ticks()
{
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# what is in brackets may have blanks
	# shellcheck disable=SC2086 # words
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

# run_qemu ARG...: in a process group of its own, which ends with this script;
# sets VM.
run_qemu()
{
	setsid setpriv --pdeathsig KILL "$QEMU" -nodefaults \
		-no-user-config -no-reboot -display none -machine "$MACHINE" \
		-kernel "$KERNEL/boot/vmlinuz-$VERSION" -initrd "$INITRD" \
		-serial "file:$WORK/console.log" "$@" \
		</dev/null >"$WORK/qemu.log" 2>&1 &
	VM=$!
}

# Starts the kernel, and waits for the first line.
try_kvm()
{
	local end=$((SECONDS + 60)) said=1 ticks

	run_qemu -accel kvm -cpu host -m 512M \
		-append "console=$CONSOLE $APPEND"
	while [ $SECONDS -lt $end ]; do
		tick 0.1
		grep -qs "first program" "$WORK/console.log" && said=0 && break
		ticks=$(used_ticks "$VM") || break
		[ "$ticks" -lt $((KVM_WORK * $(getconf CLK_TCK))) ] || break
	done
	stop_guest
	return $said
}

# True where KVM runs a kernel: there are machines on which it hangs.  Tried
# once for each start of the machine.
kvm_works()
{
	local file=$KERNEL/kvm id said=no

	[ -z "$ARCH" ] && [ "${OFI_MRRC_KVM-}" != no ] && [ -w /dev/kvm ] ||
		return 1
	id="$(cat /proc/sys/kernel/random/boot_id) $VERSION"
	if [ "$(cut -d' ' -f2- "$file" 2>/dev/null)" = "$id" ]; then
		[[ $(<"$file") == yes* ]]
		return
	fi
	# where it fails, bash would say that qemu was killed
	{ try_kvm && said=yes; } 2>/dev/null
	echo "$said $id" >"$file"
	[ $said = yes ]
}

start_guest()
{
	local i only accel=(-accel tcg -cpu "$CPU")

	if [ "$COUNTS" = no ] && kvm_works; then
		accel=(-accel kvm -cpu host)
	fi
	# shellcheck disable=SC2054 # one word
	[ "$COUNTS" = no ] || accel+=(-icount shift=0)
	QEMU_ARGS=()
	export_dir "${ARCH:+"$KERNEL"}/" mrrc_root readonly=on
	export_dir "$WORK/x" mrrc_x
	for i in "${!RWDIRS[@]}"; do
		only=
		[ "${RWDIRS[i]}" != "$SOURCES" ] || only=readonly=on
		export_dir "${RWDIRS[i]}" "mrrc_w$i" "$only"
	done
	say "booting (Linux $VERSION, $CPUS processors, $MEMORY, ${accel[1]})"
	run_qemu "${accel[@]}" -m "$MEMORY" -smp "$CPUS" \
		-append "console=$CONSOLE $APPEND" "${QEMU_ARGS[@]}"
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
	tail -n 30 "$WORK/x/init.log" "$WORK/qemu.log" "$WORK/console.log" \
		2>/dev/null | tr -d '\r' | sed 's/^/guest: | /' >&2
}

wait_up()
{
	local start=$SECONDS ticks

	until [ -e "$WORK/x/up" ]; do
		ticks=$(used_ticks "$VM") || ticks=0
		if [ -e "$WORK/x/fail" ] || ! guest_alive; then
			explain "could not start"
			exit $RC_NO_GUEST
		elif [ "$ticks" -ge $((BOOT_WORK * $(getconf CLK_TCK))) ] ||
		     [ $((SECONDS - start)) -ge $BOOT_LIMIT ]; then
			explain "did not come up within $((SECONDS - start)) s"
			exit $RC_NO_GUEST
		fi
		tick 0.1
	done
	say "up after $((SECONDS - start)) s (process $VM)"
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

# use_kernel RELEASE: of Debian; '' is this machine's.
use_kernel()
{
	RELEASE=$1
	KERNEL=$CACHE/guest-kernel${1:+-$1}
	INITRD=$KERNEL/initrd-1
}

# use_arch arm64: boots the file system of an arm64 Debian 13, with its own kernel.
use_arch()
{
	[ "$1" = arm64 ] || usage_error "--arch knows arm64, not $1"
	use_kernel trixie
	# before those of -w, which may lie in it
	SOURCES=$(realpath -- "$HERE/../..")
	RWDIRS=("$SOURCES" "${RWDIRS[@]}")
	ARCH=$1 QEMU=qemu-system-aarch64 MACHINE=virt CONSOLE=ttyAMA0
	# authentication of pointers as QEMU does it, not as ARM: much quicker
	CPU=max,pauth-impdef=on
	PACKAGES=$ARM_PACKAGES
	KERNEL=$CACHE/guest-$ARCH
	INITRD=$KERNEL/initrd-1
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
	use_kernel ''
	ARCH='' SOURCES='' QEMU=qemu-system-x86_64 MACHINE=q35 CONSOLE=ttyS0 CPU=max
	CALLER_PATH=$PATH
	PATH=$PATH:/usr/sbin:/sbin	# not in every user's
	WORK_STEM=${TMPDIR:-/tmp}/ofi_mrrc-guest-run

	LIMIT=600 MEMORY=4G CPUS=2 DISK='' DIR=$PWD WAIT=yes COUNTS=no
	RWDIRS=() ENVS=() MODULES=() SETUP=()
	while [ $# -gt 0 ]; do
		case $1 in
		--setup) setup; exit ;;
		--packages) tr -s '[:space:]' ' ' <<<"$PACKAGES"; exit ;;
		-h|--help) usage; exit ;;
		-i) COUNTS=yes; shift; continue ;;
		-n) WAIT=no; shift; continue ;;
		--) shift; break ;;
		--arch|-[tmcweCkdl]) [ $# -ge 2 ] || usage_error "$1 wants a value" ;;
		-*) usage_error "unknown option $1" ;;
		*) break ;;
		esac
		case $1 in
		-t) positive "$1" "$2"; LIMIT=$2 ;;
		-c) positive "$1" "$2"; CPUS=$2 ;;
		-m) MEMORY=$2 ;;
		-d) DISK=$2 ;;
		-l) MODULES+=("$2") ;;
		-k)
			[[ $2 =~ ^trixie(-backports)?$ ]] ||
				usage_error "-k knows trixie and trixie-backports, not $2"
			use_kernel "$2"
			SETUP=("$1" "$2")
			;;
		--arch)
			use_arch "$2"
			SETUP=("$1" "$2")
			;;
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
	# with two, the guest does not come up
	[ "$COUNTS" = no ] || CPUS=1

	lacking=$(missing)
	if [ -n "$lacking" ]; then
		say "missing here:"
		printf '%s\n' "$lacking" | sed 's/^/guest:   /' >&2
		die $RC_NO_GUEST "to install: $0 ${SETUP[*]} --setup"
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
	start_guest
	wait_up
	wait_command
	rc=$(cat "$WORK/x/rc")
	stop_guest
	exit "$rc"
}

main "$@"
