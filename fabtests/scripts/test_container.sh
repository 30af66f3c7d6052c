#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_container.sh: what containers take from a process, one thing at a time.
# The provider works; if something is lost for it, one line of standard error names
# the cure.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-t TEST] [PROVIDER]

	BINDIR: where the programs are (default: PATH).
	EOT
}

before_test()
{
	export FT_PERCENT=100
	unset FI_LOG_LEVEL "${!FI_OFI_MRRC_NODE@}" XDG_RUNTIME_DIR
}

# Why a test is not tried; it does not fail.
untried()
{
	echo "  SKIP: $*"
}

# runs HITS [COMMAND...]: messages between two domains, under COMMAND; as many of 20
# lookups are hits. What is said is in $DIR/said.
runs()
{
	local hits=$1 rc

	shift
	"$@" "${BIN}fi_mrrc_live" -w -p "$PROVIDER" \
		>"$DIR/out" 2>"$DIR/err" </dev/null
	rc=$?
	[ $rc -eq 0 ] ||
		{ cat "$DIR/out" "$DIR/err"; fail "$*: status $rc"; return 1; }
	grep '^ofi_mrrc: ' "$DIR/err" >"$DIR/said"
	grep -q "^server lookups 20 hits $hits " "$DIR/out" ||
		{ cat "$DIR/out" "$DIR/err"; fail "not $hits hits"; }
}

# says [TEXT...]: one line, with each TEXT; without any: none
says()
{
	local lines text

	lines=$(wc -l <"$DIR/said")
	[ "$lines" -eq $((!!$#)) ] ||
		{ cat "$DIR/said"; fail "$lines lines"; return 1; }
	for text in "$@"; do
		grep -qF -- "$text" "$DIR/said" ||
			{ cat "$DIR/said"; fail "no '$text'"; return 1; }
	done
}

# limit_is BYTES: of the cache
limit_is()
{
	grep -q "^server .* max_bytes $1\$" "$DIR/out" ||
		{ cat "$DIR/out"; fail "not $1 bytes"; }
}

# apart COMMANDS [ARGUMENT...]: in new mount namespaces, after these commands; as root
# of a user namespace, unless this is root
apart()
{
	local how=(unshare -m) commands=$1

	shift
	[ "$(id -u)" -eq 0 ] || how=(unshare -rm)
	"${how[@]}" bash -c "$commands"' && exec "$@"' apart "$@"
}

# Nothing can be written below /dev, and there are only these four.
# shellcheck disable=SC2016 # for apart()
readonly NO_SHM='d=$(mktemp -d) && mount -t tmpfs none "$d" &&
	for n in null zero random urandom; do
		>"$d/$n" && mount --bind "/dev/$n" "$d/$n" || exit 1
	done && mount --rbind "$d" /dev && rmdir "$d" 2>/dev/null
	{ [ ! -d /run/user ] || mount -t tmpfs none /run/user; } &&
	[ ! -e /dev/shm ]'

# All mounts, but for those that need no memory or disk.
# shellcheck disable=SC2016 # for apart()
readonly READ_ONLY='mount --make-rprivate / &&
	awk "{ print \$5 }" /proc/self/mountinfo |
	while read -r m; do
		mount -o remount,bind,ro "$m" 2>/dev/null
	done; ! touch /tmp/x /var/tmp/x /dev/shm/x "$HOME/x" 2>/dev/null'

# Libraries on an overlay of two file systems.
# shellcheck disable=SC2016 # for apart()
readonly OVERLAY='d=$(mktemp -d) && mount -t tmpfs none "$d" && mkdir "$d"/{up,work} &&
	mount -t overlay none \
		-o "lowerdir=/usr/lib,upperdir=$d/up,workdir=$d/work" /usr/lib'

can_be_apart()
{
	apart "$1" true 2>"$DIR/why" || { untried "$(tail -n 1 "$DIR/why")"; false; }
}

has_uffd()
{
	runs 19 2>/dev/null >&2 || { untried "nothing is kept here anyway"; false; }
}

test_seccomp()
{
	runs 0 "${BIN}deny_uffd" && says "never kept: userfaultfd is forbidden" \
		"allow the system call userfaultfd in the seccomp profile" \
		"/dev/userfaultfd"
}

# locked KIB HITS: root's rights would lift the limit
locked()
(
	ulimit -l "$1" || exit 1
	how=()
	[ "$(id -u)" -ne 0 ] || how=(setpriv --bounding-set=-ipc_lock)
	runs "$2" "${how[@]}"
)

test_locked_memory()
{
	has_uffd || return 0
	# what containers have; most buffers fit in it
	locked 8192 19 && says && limit_is 6291456 &&
		locked 64 19 && says "above 48 KiB are never kept" \
			"raise it (ulimit -l" "--ulimit memlock=-1"
}

test_no_shm()
{
	has_uffd && can_be_apart "$NO_SHM" || return 0
	runs 19 apart "$NO_SHM" && says || return 1
	export FI_OFI_MRRC_NODE_MAX_SIZE=64M
	runs 19 apart "$NO_SHM" && says "no budget is shared" "/dev/shm/ofi_mrrc" \
		"No such file" "let XDG_RUNTIME_DIR name"
}

test_read_only()
{
	has_uffd && can_be_apart "$READ_ONLY" || return 0
	# with what it would write to files
	unset FI_OFI_MRRC_CODE_FILE
	runs 19 apart "$READ_ONLY" && says || return 1
	export FI_OFI_MRRC_NODE_MAX_SIZE=64M
	runs 19 apart "$READ_ONLY" && says "Read-only file system" \
		"let XDG_RUNTIME_DIR name" || return 1
	unset FI_OFI_MRRC_NODE_MAX_SIZE
	FI_OFI_MRRC_STATS_FILE=$DIR/stats runs 19 apart "$READ_ONLY" &&
		says "counters are not written to $DIR/stats: Read-only file"
}

# Code is examined there, too, though stat(2) tells another device than the mappings.
test_overlay()
{
	has_uffd && can_be_apart "$OVERLAY" || return 0
	apart "$OVERLAY" "${BIN}fi_mrrc_stat" --check >"$DIR/out"
	grep -q '^ok *lookups:' "$DIR/out" || { cat "$DIR/out"; false; }
}

# The rights of its root end at the namespace: userfaultfd and the limit of locked
# memory are those of any user.
test_user_namespace()
{
	unshare -r true 2>"$DIR/why" ||
		{ untried "$(tail -n 1 "$DIR/why")"; return 0; }
	if (ulimit -l 8192 && runs 19 unshare -r) >/dev/null 2>&1; then
		says && limit_is 6291456
	else
		runs 0 unshare -r && says "never kept: " "/dev/userfaultfd"
	fi
}

test_options "$@"
run_tests seccomp locked_memory no_shm read_only overlay user_namespace
