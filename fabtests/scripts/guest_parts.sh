# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What guest.sh runs in the guest: the texts of these functions are copied
# there.  Sourced, with MOUNT_OPTIONS set; guest_part also reads KERNEL and MODULES.

# The guest's first program, run by busybox: its text is copied into the initrd.
# The root is this machine's, with changes in memory.
# shellcheck disable=SC2317
init_part()
{
	local b=/bin/busybox root=/new module

	export PATH=/bin
	$b mkdir -p /ro /rw "$root"
	echo "ofi_mrrc guest: first program" >/dev/console
	for module in /modules/*; do
		# of a device that this processor has not: goes on
		$b insmod "$module" 2>/dev/null
	done
	$b mount -t 9p -o "ro,$MOUNT_OPTIONS" mrrc_root /ro
	$b mount -t tmpfs -o mode=755 tmpfs /rw
	$b mkdir /rw/up /rw/work
	$b mount -t overlay -o \
		lowerdir=/ro,upperdir=/rw/up,workdir=/rw/work overlay "$root"
	$b mount -t proc proc "$root/proc"
	$b mount -t sysfs sysfs "$root/sys"
	$b mount -t devtmpfs devtmpfs "$root/dev"
	$b mkdir -p "$root/dev/pts" "$root/dev/shm"
	$b mount -t devpts devpts "$root/dev/pts"
	$b mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	$b mount -t tracefs tracefs "$root/sys/kernel/tracing"
	$b mount -t debugfs debugfs "$root/sys/kernel/debug"
	$b mount -t tmpfs -o mode=755 tmpfs "$root/run"
	$b mkdir -p "$root/run/lock" "$root/run/mrrc_exchange"
	$b mount -t 9p -o "$MOUNT_OPTIONS" mrrc_x "$root/run/mrrc_exchange"
	$b ln -sfn /proc/self/fd "$root/dev/fd"
	$b ln -sfn /proc/self/fd/0 "$root/dev/stdin"
	$b hostname mrrc-guest
	exec $b switch_root "$root" /bin/bash /run/mrrc_exchange/init.sh
}

# A disk in memory.
# shellcheck disable=SC2317
guest_disk()
{
	modprobe -a -d "$KERNEL" loop ext4 &&
		truncate -s "$DISK" "$DISK_DIR.img" &&
		mkfs.ext4 -q "$DISK_DIR.img" && mkdir "$DISK_DIR" &&
		mount -o loop "$DISK_DIR.img" "$DISK_DIR" &&
		chmod 1777 "$DISK_DIR"
}

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

	# a root that was unpacked and not installed has none
	[ -e /etc/ld.so.cache ] || ldconfig

	# COMMAND's, not the console's
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
	[ ${#MODULES[@]} -eq 0 ] || modprobe -a -d "$KERNEL" "${MODULES[@]}" ||
		guest_fail "cannot load ${MODULES[*]}"
	ip link set lo up
	# without systemd's modprobe.d the module brings a dummy0 of its own
	[ -d /sys/class/net/dummy0 ] || ip link add dummy0 type dummy
	if ! ip addr add 10.0.0.1/24 dev dummy0 ||
	   ! ip link set dummy0 up; then
		guest_fail "cannot set up dummy0"
	fi
	# verbs looks it up; a minimal system may have no such line
	grep -qsw localhost /etc/hosts || echo 127.0.0.1 localhost >>/etc/hosts
	echo 127.0.0.1 mrrc-guest >>/etc/hosts
	rdma link add rxe0 type rxe netdev dummy0 ||
		guest_fail "cannot add rxe0"
	for ((i = 0; i < 100; i++)); do
		rdma link show rxe0/1 | grep -q 'state ACTIVE' && break
		sleep 0.1
	done
	rdma link show rxe0/1 | grep -q 'state ACTIVE' ||
		guest_fail "rxe0 is not active"
	[ -z "$DISK" ] || guest_disk || guest_fail "cannot make a disk of $DISK"
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
