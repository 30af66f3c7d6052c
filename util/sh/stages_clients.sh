# shellcheck shell=bash disable=SC2034,SC2153 # BUILD, IN: others
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Stages of test.sh with programs of others: MPI libraries, Kokkos, hosts such as
# Python and Go, upstream's fabtests.  Sourced, after stages.sh.

readonly CLIENTS=$SCRIPTS/clients.sh
readonly RECORD=$SCRIPTS/record.sh

# clients WHAT LOG COMMAND...: clients.sh, and what it says of each.
clients()
{
	script "$@"
	grep -E '^(PASS|FAIL) ' "$LOGS/$STAGE-$2.log" | sed 's/^/   | /'
}

# The client that needs no more than Debian's packages.
stage_openmpi()
{
	need_build unit || return
	need "$("$CLIENTS" --packages)" || {
		fail "Open MPI cannot be installed"
		return
	}
	IN=()
	clients "Open MPI over tcp" tcp env "$(provider_path unit)" \
		"$CLIENTS" -w "$BUILD/openmpi" openmpi
}

# MPICH's wheel brings a libfabric 2.x, the others use this machine's.
stage_clients()
{
	local dir=$BUILD/clients IN=() two=()
	local path

	path=$(provider_path unit)
	need_build unit || return
	if ! need "$("$CLIENTS" --packages)" || ! logged \
		"MPI libraries from PyPI" "$LOGS/clients-setup.log" \
		"$CLIENTS" --setup; then
		fail "the clients cannot be installed"
		return
	fi
	use_trixie
	if need_trixie && build_installed libfabric2 --enable-werror; then
		two=(-2 "$BUILD/libfabric2/prefix/lib/libfabric")
		keep_libs libfabric2
	else
		fail "no provider for libfabric 2.x: MPICH cannot be tested"
	fi
	IN=()
	clients "MPI over tcp" tcp \
		env "$path" "LD_LIBRARY_PATH=$BUILD/libfabric2/libs" \
		"$CLIENTS" -w "$dir" "${two[@]}"
	check "what they ask for can be recorded" logged "record.sh" \
		"$LOGS/record.log" env "$path" "$RECORD" \
		-b "$BUILD/unit/prefix/bin" -i "$dir/traces"
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	clients "MPI over verbs, in the guest" verbs \
		"$GUEST" -t 900 -e "$path" -- "$CLIENTS" -w "$dir" verbs
}

# upstream CORE FORM SET COMMAND...: one comparison, run by COMMAND.
upstream()
{
	local core=$1 form=$2 set=$3

	shift 3
	# shellcheck disable=SC2086 # options or nothing
	script "upstream's $set $form over $core" "${core//;/+}$form$set" \
		"$@" "$SCRIPTS/upstream.sh" $form ${set#suite} "$FABTESTS" \
		"$core"
}

stage_upstream()
{
	local path core form set

	if [ -z "${FABTESTS-}" ]; then
		say "   SKIP: FABTESTS=PREFIX names no installed fabtests"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	need_build unit || return
	path=$(provider_path unit)
	# tcp has MSG, udp DGRAM, the others RDM; forced registration brings
	# our code into it
	for core in tcp udp net "tcp;ofi_rxm"; do
		for form in '' --hook; do
			for set in suite --ubertest; do
				upstream "$core" "$form" $set env "$path" \
					FI_OFI_MRRC_REGISTER=always
			done
		done
	done
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	for core in verbs "verbs;ofi_rxm"; do
		for form in '' --hook; do
			for set in suite --ubertest; do
				upstream "$core" "$form" $set \
					"$GUEST" -t 3000 -e "$path" --
			done
		done
	done
}

stage_kokkos()
{
	local prov

	need_build unit || return
	if ! grep -q "^HAVE_KOKKOS_TRUE=''" "$BUILD/unit/config.log"; then
		say "   SKIP: configured where there was no Kokkos" \
			"(libtrilinos-kokkos-dev)"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	for prov in "tcp;ofi_mrrc" "tcp;ofi_rxm;ofi_mrrc"; do
		check "Views over $prov" logged "fi_mrrc_kokkos" \
			"$LOGS/kokkos-${prov//;/+}.log" env \
			"$(provider_path unit)" FI_OFI_MRRC_REGISTER=always \
			"$BUILD/unit/prefix/bin/fi_mrrc_kokkos" -p "$prov"
	done
}

stage_hosts()
{
	need_build unit || return
	need "$("$SCRIPTS/test_hosts.sh" --packages)" || {
		fail "packages are missing"
		return
	}
	script "sanitizers, Python, Go and Java" test_hosts \
		env "$(provider_path unit)" "$SCRIPTS/test_hosts.sh"
}
