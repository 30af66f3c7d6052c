# shellcheck shell=bash disable=SC2153 # common.sh sets BUILD
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Stages of test.sh for what is shipped: releases, packages, and how they are
# installed.  Sourced, after stages.sh.

# A release, in a tree where pandoc is not installed, with clang; and a build as
# distributions build packages, with --ci every second time.
stage_distcheck()
{
	local flags="--enable-werror ac_cv_prog_PANDOC= CC=clang CXX=clang++"

	if ! need clang || ! TARGETS=config.h build dist; then
		fail "the build failed"
		return
	fi
	check "make distcheck" logged "make distcheck" \
		"$LOGS/distcheck.log" \
		env HEAP_OPERATIONS=20000 MRRC_RACE_MS=100 \
		make -C "$BUILD/dist" -j "$JOBS" distcheck \
		DISTCHECK_CONFIGURE_FLAGS="$flags"
	# tar's status is lost
	check "all files are in the release" \
		eval "! grep '^tar: ' '$LOGS/distcheck.log'"
	one_of yes no
	[ "${WAYS[0]}" != no ] || return
	check "link-time optimization" build lto --enable-werror \
		CFLAGS="-O2 -g -flto=auto -ffat-lto-objects"
	# whose calls of libc are replaced
	check_in lto TESTS="$(printf 'prov/mrrc/test/test_%s ' node patch)"
}

# What a new user types, in bare folders of both Debians.
stage_first()
{
	local suite

	one_of bookworm trixie
	need "$("$TRIXIE" --packages)" || {
		fail "packages are missing"
		return
	}
	for suite in "${WAYS[@]}"; do
		script "the first hour on $suite" "test_first-$suite" \
			"$SCRIPTS/test_first.sh" "$suite"
	done
}

# Made from a release, and used in bare folders of both Debians.
stage_packages()
{
	local suite

	need "$("$TRIXIE" --packages)" || {
		fail "packages are missing"
		return
	}
	# a release takes the rendered manual pages, and nothing compiled
	rm -f "$BUILD"/packages/ofi_mrrc-*.tar.xz # of another version
	if ! TARGETS=config.h build packages || ! logged "make dist" \
		"$LOGS/dist.log" env XZ_OPT=-1 make -C "$BUILD/packages" dist; then
		fail "there is no release"
		return
	fi
	for suite in bookworm trixie; do
		script "packages on $suite" "test_packages-$suite" \
			"$SCRIPTS/test_packages.sh" \
			"$(echo "$BUILD"/packages/ofi_mrrc-*.tar.xz)" "$suite"
	done
}

# The modules alone, once for each part; the tests are those of stage unit.
stage_switches()
{
	need_build unit || return
	run_test switches "the provider without parts" unit "$BUILD/switches"
}

# Built here for both major versions of libfabric: the headers of 2.x are Debian
# 13's.
stage_wheel()
{
	local dir=$BUILD/wheel

	if ! need "python3-venv iproute2 libhwloc15" || ! need_trixie ||
	   ! bootstrap; then
		fail "packages are missing"
		return
	fi
	mkdir -p "$dir/libfabric2/include" "$dir/libfabric2/lib"
	# shellcheck disable=SC2016 # expanded there
	if ! "$TRIXIE" -w "$dir/libfabric2" -C "$dir/libfabric2" -- sh -c \
		'cp -r /usr/include/rdma include &&
		cp /usr/lib/*/libfabric.so.1 lib/libfabric.so' ||
		! logged "build.sh" "$LOGS/wheel.log" \
			"$TOP/packaging/wheel/build.sh" "$dir" "$dir/libfabric2"
	then
		fail "there is no wheel"
		return
	fi
	script "the wheel, with MPI libraries and NIXL" test_wheel \
		"$SCRIPTS/test_wheel.sh" "$(echo "$dir"/ofi_mrrc-*.whl)"
}

# What the patches for libfabric's own cache change, and the provider as a part
# of the same source.
stage_upstream_tree()
{
	local check=$TOP/packaging/upstream/check.sh

	if ! need "$("$check" --packages)" || ! need_guest || ! bootstrap; then
		fail "packages are missing"
		return
	fi
	script "libfabric's own cache, before and after" check \
		"$check" "$BUILD/upstream_tree"
	rm -rf "$BUILD/upstream_import"
	script "the provider in libfabric's tree" check_import \
		"${check%.sh}_import.sh" "$BUILD/upstream_tree/old" \
		"$BUILD/upstream_import"
}
