# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What demo.sh looks at before it begins: folders, disk space, packages, a
# device.  What is not there ends it within seconds, with what to do.  Sourced.

# What demo.sh builds needs no tools, manual pages or tests.
readonly DEMO_PACKAGES="autoconf automake gcc libbsd-dev libc6-dev
	libfabric-bin libfabric-dev libtool libzydis-dev make pkg-config"
# MiB: a build; the guest's kernel, packed and unpacked
readonly BUILD_MIB=150 GUEST_MIB=700
# seconds: of a mirror that does not answer
readonly NET_LIMIT=40

# check_folders: where it builds.
check_folders()
{
	if ! mkdir -p "$LOGS" 2>/dev/null || [ ! -w "$LOGS" ]; then
		cannot "cannot write in $BUILD: set OFI_MRRC_BUILD to a folder" \
			"that you may write to"
	fi
	[ -w "$TOP" ] || [ -f "$TOP/configure" ] ||
		cannot "cannot write in $TOP, where autoreconf makes configure"
	[ "$(uname -s)" = Linux ] || cannot "this needs Linux"
}

# has_space MIB FOLDER WHAT
has_space()
{
	local free dir=$2

	until [ -d "$dir" ]; do
		dir=$(dirname "$dir")
	done
	free=$(($(df -Pk "$dir" | awk 'NR == 2 { print $4 }') / 1024))
	[ $free -ge "$1" ] || cannot "$3 needs $1 MiB in $2, and $free are free"
}

# True where a device of this machine has an active port.
has_device()
{
	grep -qs ACTIVE /sys/class/infiniband/*/ports/*/state
}

# Prints the address by which libfabric reaches the device.
device_address()
{
	fi_info -p verbs -t FI_EP_MSG -v 2>/dev/null |
		sed -n 's|^ *src_addr: fi_sockaddr_in://\([0-9.]*\):.*|\1|p' |
		grep -v '^127\.' | head -n 1
}

# What apt-get would fetch and unpack, as it says it.
package_sizes()
{
	# shellcheck disable=SC2086 # a list
	as_root apt-get install --assume-no --no-install-recommends $1 \
		2>/dev/null | grep -E '^(Need to get|After this operation)' |
		sed 's/^/     /'
}

# MiB that apt-get would unpack.
package_mib()
{
	sed -n 's/^ *After this operation, \([0-9,]*\)[.0-9]* \([kMG]B\) of add.*/\1 \2/p' \
		<<<"$1" | tr -d , | awk '{
			print int($1 * ($2 == "GB" ? 1000 : \
				$2 == "MB" ? 1 : .001)) + 1
		}'
}

# get_packages "PACKAGE...": lists what is missing with its sizes, waits for a
# key on a terminal, and installs it.
get_packages()
{
	local want sizes mib

	command -v apt-get >/dev/null || return 0
	want=$(lacking "$1")
	[ -n "$want" ] || return 0
	say "== packages"
	say "   Missing: $want"
	can_be_root || cannot "packages are missing, and neither root nor sudo" \
		"is at hand. As root: apt-get update && apt-get install" \
		"--no-install-recommends $want"
	# a list of names that is out of date names files that are gone
	logged "apt-get update" "$LOGS/apt-update.log" timeout $NET_LIMIT \
		"${ROOT[@]}" apt-get update -q -o APT::Update::Error-Mode=any \
		-o Acquire::Retries=0 -o Acquire::http::Timeout=10 \
		-o Acquire::https::Timeout=10 || cannot \
		"apt-get cannot fetch its lists (see above). Without network:" \
		"install the packages in another way. Behind a proxy:" \
		"Acquire::http::Proxy and Acquire::https::CaInfo in" \
		"/etc/apt/apt.conf.d"
	# shellcheck disable=SC2034 # apt_install's
	APT_UPDATED=yes
	sizes=$(package_sizes "$want")
	say "$sizes"
	mib=$(package_mib "$sizes")
	has_space "${mib:-1}" /usr "what is missing"
	if [ "$ASK" = yes ] && [ -t 0 ] && [ -t 1 ]; then
		read -r -p "   Install them? [Y/n] " mib || exit 2
		[[ ${mib:-y} == [yY]* ]] || cannot "nothing was installed"
	fi
	need "$1" || cannot "packages could not be installed (see above)"
}

# Everything that can be missing, before anything takes long.
check_all()
{
	local want=$DEMO_PACKAGES cache

	check_folders
	has_space $BUILD_MIB "$BUILD" "the build"
	ROOT=()
	[ "$(id -u)" -eq 0 ] || ROOT=(sudo env DEBIAN_FRONTEND=noninteractive)
	if [ "$WHERE" = guest ]; then
		[ "$(uname -m)" = x86_64 ] || cannot "the virtual machine" \
			"needs an x86_64 processor; --tcp-only does without"
		want="$want $("$GUEST" --packages)"
		cache=${OFI_MRRC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ofi_mrrc}
		[ -f "$cache/guest-kernel/ready" ] || {
			say "   The virtual machine's kernel: some 70 MB to get," \
				"$GUEST_MIB MiB in $cache"
			has_space $GUEST_MIB "$cache" \
				"the virtual machine's kernel"
		}
	fi
	get_packages "$want"
	[ "$WHERE" != guest ] || logged "guest set-up" \
		"$LOGS/guest-setup.log" "$GUEST" --setup || cannot \
		"the virtual machine cannot be set up (see above);" \
		"--tcp-only does without"
}
