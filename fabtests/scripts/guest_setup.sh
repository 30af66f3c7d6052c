# shellcheck shell=bash disable=SC2154 # guest.sh sets what is used here
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What guest.sh needs: packages, a kernel, the guest's first file system.
# Sourced, with CACHE, RELEASE, ARCH, QEMU, KERNEL and INITRD set.

# The packages that --setup installs; no other list names them.
readonly IN_GUEST="busybox-static e2fsprogs ibverbs-providers ibverbs-utils
	iproute2 kmod libfabric-bin rdma-core rdmacm-utils util-linux"
PACKAGES="$IN_GUEST qemu-system-x86"
# shellcheck disable=SC2034 # guest.sh makes them PACKAGES
readonly ARM_PACKAGES="busybox-static kmod mmdebstrap qemu-system-arm util-linux"
# The packages of the arm64 guest's file system. Programs for that guest are
# cross-compiled with its headers and libraries.
readonly ARM_ROOT="$IN_GUEST base-files base-passwd bash check coreutils dash
	diffutils findutils gawk grep hostname libbsd-dev libc-bin libc6-dev
	libfabric-dev libjansson-dev liblzma-dev libsodium-dev liburing-dev
	libxxhash-dev linux-image-arm64 mount procps sed"

# Prints one line for each thing that is missing.
missing()
{
	local tool

	# shellcheck disable=SC2046 # words
	for tool in busybox depmod flock modprobe "$QEMU" setpriv \
		$([ -n "$ARCH" ] || echo ip mkfs.ext4 rdma); do
		command -v "$tool" >/dev/null || echo "program $tool"
	done
	[ -f "$KERNEL/ready" ] || echo "guest kernel in $KERNEL"
	[ -f "$INITRD" ] || echo "first file system in $INITRD"
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
		die "$RC_NO_GUEST" "as root: apt-get install ${want[*]}"
	say "installing ${want[*]}"
	apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends "${want[@]}" >/dev/null
}

# in_release APT-COMMAND...: in the folder $KERNEL.new, with apt of the release.
in_release()
{
	local work=$KERNEL.new apt=$1

	shift
	case $RELEASE in
	'')
		(cd "$work" && "$apt" "$@")
		;;
	*-backports)
		# lists of its own: nothing else is to come from there
		mkdir -p "$work/lists/partial"
		sed "s/ trixie / $RELEASE /" \
			"$CACHE/trixie/etc/apt/sources.list" >"$work/sources"
		"$HERE/trixie.sh" -w "$work" -C "$work" -- "$apt" \
			-o "Dir::Etc::sourcelist=$work/sources" \
			-o "Dir::State::lists=$work/lists" \
			-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
		;;
	*)
		"$HERE/trixie.sh" -w "$work" -C "$work" -- "$apt" "$@"
		;;
	esac
}

# depends PACKAGE NAME: what it depends on, of that name.
depends()
{
	in_release apt-cache depends --important "$1" 2>/dev/null |
		sed -n "s/^ *Depends: \\($2\\)\$/\\1/p"
}

# The name of the package that the meta package depends on.
kernel_package()
{
	depends linux-image-amd64 'linux-image-[0-9][^ ]*' | head -n 1
}

# The guest's own root, with a kernel: packages unpacked, none configured, which
# only an ARM could do.
install_root()
{
	local work=$KERNEL.new version

	[ "$(cat "$KERNEL/packages" 2>/dev/null)" != "$ARM_ROOT" ] || return 0
	rm -rf "$work" "$KERNEL"
	# of Debian 13's folder the mirror
	"$HERE/trixie.sh" --setup || return 1
	say "unpacking Debian 13 for $ARCH"
	mmdebstrap --quiet --variant=extract --architectures="$ARCH" \
		--include="$(tr -s '[:space:]' , <<<"${ARM_ROOT}")" "$RELEASE" \
		"$work" "$CACHE/trixie/etc/apt/sources.list" || return 1
	# what setting up would have made
	cp "$work/usr/share/base-passwd/passwd.master" "$work/etc/passwd" &&
		cp "$work/usr/share/base-passwd/group.master" \
			"$work/etc/group" &&
		ln -s gawk "$work/usr/bin/awk" || return 1
	version=$(basename "$work"/lib/modules/*)
	depmod -b "$work" "$version" || return 1
	echo "$version" >"$work/ready" &&
		echo "$ARM_ROOT" >"$work/packages" && mv "$work" "$KERNEL"
}

install_kernel()
{
	local work=$KERNEL.new pkg version pkgs

	[ -f "$KERNEL/ready" ] && return 0
	rm -rf "$work" "$KERNEL"
	mkdir -p "$work" || return 1
	pkg=$(kernel_package)
	# the folder's lists are as old as the folder
	if [ "$(id -u)" -eq 0 ] && { [ -z "$pkg" ] || [ -n "$RELEASE" ]; }; then
		in_release apt-get update -qq
		pkg=$(kernel_package)
	fi
	[ -n "$pkg" ] || die "$RC_NO_GUEST" \
		"apt knows no linux-image-amd64; as root: apt-get update"
	say "unpacking $pkg"
	version=${pkg#linux-image-}
	# newer ones have parts
	mapfile -t pkgs < <(depends "$pkg" "linux-[a-z]*-$version")
	# apt's sandbox user may not reach the cache folder: a harmless warning
	in_release apt-get download -qq -o Acquire::Retries=1 \
		-o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
		"$pkg" "${pkgs[@]}" 2>"$work/download.log" || {
		cat "$work/download.log" >&2
		return 1
	}
	for pkg in "$work"/*.deb; do
		dpkg-deb -x "$pkg" "$work" || return 1
	done
	# newer packages have them there
	[ ! -d "$work/usr/lib/modules" ] || {
		mkdir -p "$work/lib" &&
			mv "$work/usr/lib/modules" "$work/lib"
	} || return 1
	[ -d "$work/boot" ] || {
		mkdir "$work/boot" && mv "$work/lib/modules/$version/vmlinuz" \
			"$work/boot/vmlinuz-$version"
	} || return 1
	depmod -b "$work" "$version" || return 1
	rm -rf "$work"/*.deb "$work/download.log" "${work:?}"/{usr,lists,sources}
	echo "$version" >"$work/ready" && mv "$work" "$KERNEL"
}

# The guest's first file system: busybox, the modules that the root needs, in
# order, and a script that mounts it.
install_initrd()
{
	local work=$KERNEL/initrd.new version name path i=100 busybox more=

	[ -f "$INITRD" ] && return 0
	version=$(cat "$KERNEL/ready") || return 1
	rm -rf "$work"
	mkdir -p "$work/bin" "$work/modules" || return 1
	busybox=$(command -v busybox)
	cp "${ARCH:+"$KERNEL"}$busybox" "$work/bin/busybox" || return 1
	# the checksums of rxe are quicker with it, where it is a module
	[ -n "$ARCH" ] || more=crc32_pclmul
	for name in virtio_pci 9pnet_virtio 9p overlay $more; do
		while read -r name path _; do
			[ "$name" = insmod ] || continue
			i=$((i + 1))
			name=$work/modules/$i
			case $path in
			*.xz) busybox xzcat "$path" >"$name" ;;
			*) cp "$path" "$name" ;;
			esac || return 1
		done < <(modprobe -q -d "$KERNEL" -S "$version" --show-depends \
			"$name")
	done
	{
		echo "#!/bin/busybox sh"
		declare -p MOUNT_OPTIONS | sed 's/^declare -[-a-z]* //'
		declare -f init_part
		echo init_part
	} >"$work/init"
	chmod +x "$work/init"
	(cd "$work" && find . | busybox cpio -o -H newc 2>/dev/null |
		gzip -1) >"$INITRD.new" && mv "$INITRD.new" "$INITRD" &&
		rm -rf "$work"
}

setup()
{
	[ "$(uname -m)" = x86_64 ] || die "$RC_NO_GUEST" "needs an x86_64 machine"
	mkdir -p "$CACHE" || die "$RC_NO_GUEST" "cannot make $CACHE"
	install_packages || die "$RC_NO_GUEST" "cannot install packages"
	if [ -n "$ARCH" ]; then
		install_root
	else
		install_kernel
	fi || die "$RC_NO_GUEST" "cannot unpack the guest kernel"
	install_initrd || die "$RC_NO_GUEST" "cannot make $INITRD"
	say "ready"
	echo "$KERNEL"
}
