# shellcheck shell=bash disable=SC2034 # the doors use what is set here
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What demo.sh, test.sh and bench.sh share: packages, builds out of the
# source tree, progress.  Sourced, with TOP set to the source tree.

export LC_ALL=C
export DEBIAN_FRONTEND=noninteractive
umask 022

# The packages that a build and the tests need; the guest has its own list
# (fabtests/scripts/guest.sh --packages).
readonly BUILD_PACKAGES="autoconf automake gcc libbsd-dev libc6-dev
	libfabric-bin libfabric-dev libjansson-dev liblzma-dev
	libsodium-dev libtool liburing-dev libxxhash-dev libzydis-dev make
	pandoc pkg-config xz-utils"
readonly TEST_PACKAGES="check clang-format gnuplot-nox iproute2 man-db
	shellcheck util-linux valgrind"

BUILD=${OFI_MRRC_BUILD:-$TOP/build}
case $BUILD in
/*) ;;
*) BUILD=$PWD/$BUILD ;;
esac
LOGS=$BUILD/log
GUEST=$TOP/fabtests/scripts/guest.sh
TRIXIE=$TOP/fabtests/scripts/trixie.sh
# Recorded traces (CSV, or xz) lie here; those of Debian's packages are none.
TRACES=${TRACES:-$TOP/../shared/traces}
JOBS=$(nproc 2>/dev/null || echo 2)

# ---- words -----------------------------------------------------------------

# shellcheck source=util/sh/words.sh
. "$TOP/util/sh/words.sh"

case $TOP$BUILD in
*[[:space:]]*)
	die "autotools cannot build in a path with a blank: move $TOP, or set" \
		"OFI_MRRC_BUILD (now $BUILD), to a path without"
	;;
esac

# Seconds as a reader wants them.
minutes()
{
	if [ "$1" -lt 60 ]; then
		printf '%d s' "$1"
	else
		printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
	fi
}

# A background command has a process group of its own, so that all of it can be
# ended with this script.
CHILD=
readonly END_TRIES=50	# of .1 s: so long it has, to end by itself
end_child()
{
	local group=$CHILD tries

	CHILD=
	[ -n "$group" ] || return 0
	kill -TERM -- "-$group" 2>/dev/null
	# Some of it may wait for good: libinfinipath, which libfabric may be
	# linked with, calls exit() when SIGTERM comes, also in fi_getinfo().
	for ((tries = 0; tries < END_TRIES; tries++)); do
		kill -0 -- "-$group" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL -- "-$group" 2>/dev/null
}

# end_on_signals COMMAND: runs COMMAND when a signal ends this script.
end_on_signals()
{
	# shellcheck disable=SC2064 # the command of now
	trap "$1; exit 129" HUP
	# shellcheck disable=SC2064
	trap "$1; exit 130" INT
	# shellcheck disable=SC2064
	trap "$1; exit 143" TERM
}
end_on_signals end_child

# progress TITLE LOG PID: a sign of life now and then, until PID has ended.
progress()
{
	local title=$1 log=$2 pid=$3 start=$SECONDS told=0 spent

	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		spent=$((SECONDS - start))
		if [ -t 1 ]; then
			[ $spent -lt 2 ] || printf '\r   %s: %s ' "$title" \
				"$(minutes $spent)"
		elif [ $spent -ge $((told + 30)) ]; then
			told=$spent
			say "   $title: $(minutes $spent), still running:" \
				"$(tail -n 1 "$log" | cut -c 1-60)"
		fi
	done
	[ -t 1 ] && printf '\r'
}

# processor FILE: the seconds of a processor that the children of a shell have
# used, which times(1) has printed there
processor()
{
	awk -F'[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$1"
}

# logged TITLE LOG COMMAND...: runs COMMAND with its output in LOG, and shows its
# progress, and the end of LOG if it fails.  COMMAND, and what it may leave
# running, does not inherit descriptor 9, which locks (see below).  This shell
# only waits: a trap that runs while bash (5.2) reads a command substitution may
# not be understood.
logged()
{
	local title=$1 log=$2 pid rc start=$SECONDS used

	shift 2
	mkdir -p "$(dirname "$log")"
	times >"$log"
	used=$(processor "$log")
	set -m
	"$@" >"$log" 2>&1 </dev/null 9>&- &
	pid=$!
	set +m
	CHILD=$pid
	(trap '' HUP INT TERM; progress "$title" "$log" $pid) 9>&- &
	wait $!
	wait $pid
	rc=$?
	CHILD=
	times >"$log.times"
	used=$(($(processor "$log.times") - used))
	rm -f "$log.times"
	if [ $rc -eq 0 ]; then
		say "   $title: done in $(minutes $((SECONDS - start)));" \
			"$(minutes $used) of a processor"
	else
		say "   $title: FAILED (status $rc) after" \
			"$(minutes $((SECONDS - start)))"
		tail -n 40 "$log" | sed 's/^/   | /'
		say "   | (all of it: $log)"
	fi
	return $rc
}

# ---- packages --------------------------------------------------------------

# The packages of a list that are not installed.
lacking()
{
	local pkg

	for pkg in $1; do
		dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null |
			grep -q 'ok installed' || printf '%s ' "$pkg"
	done
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo env DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

# Root, or a sudo that needs no password, or that can ask for it here and now:
# what runs in the background cannot.
can_be_root()
{
	[ "$(id -u)" -eq 0 ] && return 0
	command -v sudo >/dev/null || return 1
	sudo -n true 2>/dev/null && return 0
	[ -t 0 ] && sudo -v
}

# need "PACKAGE...": installs what is missing of them.
need()
{
	local rc=0

	if ! command -v apt-get >/dev/null; then
		# not Debian: let the build say what it misses
		return 0
	fi
	[ -n "$(lacking "$1")" ] || return 0
	if ! can_be_root; then
		warn "packages are missing, and neither root nor sudo is at hand"
		warn "as root: apt-get update && apt-get install" \
			"--no-install-recommends $(lacking "$1")"
		return 1
	fi
	mkdir -p "$LOGS" || return 1
	# stages that run side by side take turns
	exec 9>"$BUILD/apt.lock"
	flock 9
	apt_install "$1" || {
		warn "apt-get could not install $1 (log: $LOGS/apt.log)"
		rc=1
	}
	exec 9>&-
	return $rc
}

# Package lists may be absent or out of date: fetch them before the first
# install of a run.
APT_UPDATED=no
apt_install()
{
	local want

	want=$(lacking "$1")
	want=${want% }
	[ -n "$want" ] || return 0
	say "== installing $want"
	if [ $APT_UPDATED = no ]; then
		logged "apt-get update" "$LOGS/apt-update.log" \
			as_root apt-get update -q || return 1
		APT_UPDATED=yes
	fi
	# it waits for another apt-get of this machine
	# shellcheck disable=SC2086 # a list
	logged "apt-get install" "$LOGS/apt.log" as_root \
		apt-get install -y -q -o DPkg::Lock::Timeout=600 \
		--no-install-recommends $want
}

# need_guest [OPTION]...: what the virtual machine needs: packages, a kernel.
need_guest()
{
	need "$("$GUEST" --packages)" || return 1
	logged "guest set-up" "$LOGS/guest-setup.log" "$GUEST" "$@" --setup
}

# The folder of Debian 13.
need_trixie()
{
	need "$("$TRIXIE" --packages)" || return 1
	logged "Debian 13 set-up" "$LOGS/trixie-setup.log" "$TRIXIE" --setup
}

# ---- builds ----------------------------------------------------------------

# Whether configure is newer than what it is made from.
bootstrapped()
{
	local file

	[ -f "$TOP/configure" ] && [ -f "$TOP/Makefile.in" ] || return 1
	for file in "$TOP/configure.ac" "$TOP/Makefile.am" \
		"$TOP"/*/Makefile.include "$TOP"/*/*/Makefile.include \
		"$TOP"/*/*/*/Makefile.include; do
		[ ! "$file" -nt "$TOP/configure" ] || return 1
	done
}

# Stages that begin at once make configure one time, not each: autoreconf removes
# files of config/ while it runs, and a build that has begun needs them.
bootstrap()
{
	if [ -f "$TOP/config.status" ]; then
		warn "$TOP is configured itself, which prevents builds outside" \
			"it: run make distclean there"
		return 1
	fi
	mkdir -p "$BUILD"
	(
		flock 9
		bootstrapped || { cd "$TOP" && mkdir -p m4 && logged autoreconf \
			"$LOGS/autoreconf.log" autoreconf -fi; }
	) 9>"$BUILD/autoreconf.lock"
}

# What builds and tests are run by: nothing, or $TRIXIE with its options.
IN=()

# of this run of the script
readonly RUN=$$.$EPOCHSECONDS

# locked NAME COMMAND...: with $BUILD/NAME, which stages that run side by side
# share.
locked()
{
	local rc

	mkdir -p "$BUILD/$1" || return 1
	exec 9>"$BUILD/$1/lock"
	flock 9
	"${@:2}"
	rc=$?
	exec 9>&-
	return $rc
}

# build NAME [CONFIGURE-OPTION...]: configures and makes in $BUILD/NAME, all or
# TARGETS.
build()
{
	locked "$1" make_build "$@"
}

# Configures anew only when the options or configure changed; with a relative
# path, so that mutate.sh can copy a build with its sources, and for a shell that
# runs libtool's script in less time than bash does.
make_build()
{
	local dir=$BUILD/$1 name=$1 source

	shift
	source=$(realpath --relative-to="$dir" "$TOP")
	bootstrap || return 1
	if [ ! -f "$dir/config.status" ] ||
	   [ "$TOP/configure" -nt "$dir/config.status" ] ||
	   [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; then
		rm -f "$dir/options"
		logged "configure $name" "$LOGS/configure-$name.log" \
			"${IN[@]}" env -C "$dir" CONFIG_SHELL=/bin/sh \
			/bin/sh "$source/configure" "$@" ||
			return 1
		printf '%s\n' "$*" >"$dir/options"
	fi
	# shellcheck disable=SC2086 # a list
	logged "make $name" "$LOGS/make-$name.log" \
		"${IN[@]}" make -C "$dir" -j "$JOBS" ${TARGETS-}
}

# build_installed NAME [CONFIGURE-OPTION...]: the same, and installs into
# $BUILD/NAME/prefix, where the provider is then found, with the functional tests
# beside the tools.  With UNIT_TESTS set makes the unit tests' programs, too.
build_installed()
{
	locked "$1" make_installed "$@"
}

# Once in a run: tests of another stage may be using it.
make_installed()
{
	local dir=$BUILD/$1 name=$1

	shift
	[ "$(cat "$dir/installed" 2>/dev/null)" != "$RUN" ] || return 0
	make_build "$name" "--prefix=$dir/prefix" \
		"--enable-installed-tests=$dir/prefix/bin" "$@" || return 1
	logged "make install $name" "$LOGS/install-$name.log" \
		"${IN[@]}" make -C "$dir" install || return 1
	[ -z "${UNIT_TESTS-}" ] || logged "make unit tests $name" \
		"$LOGS/make-tests-$name.log" "${IN[@]}" make -C "$dir" \
		-j "$JOBS" check TESTS= || return 1
	echo "$RUN" >"$dir/installed"
}

# Lets libfabric find the provider of build_installed NAME.
use_provider()
{
	local prefix=$BUILD/$1/prefix

	export FI_PROVIDER_PATH=$prefix/lib/libfabric
	export PATH=$prefix/bin:$PATH
	unset FI_PROVIDER FI_HOOK
	[ -f "$FI_PROVIDER_PATH/libmrrc-fi.so" ] || {
		warn "no provider in $FI_PROVIDER_PATH"
		return 1
	}
}

# ---- the set-up, for tables --------------------------------------------------

libfabric_version()
{
	fi_info --version 2>/dev/null | sed -n 's/^libfabric: //p'
}

setup_line()
{
	printf 'Linux %s, libfabric %s, %s processors, %s GiB\n' \
		"$(uname -r | cut -d- -f1)" "$(libfabric_version)" "$(nproc)" \
		"$(awk '/^MemTotal:/ { printf "%.0f", $2 / 1048576 }' \
			/proc/meminfo)"
}
