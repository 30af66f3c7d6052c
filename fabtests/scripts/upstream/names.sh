# shellcheck shell=bash disable=SC2034 # the others use what is set here
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Names: of tests, of providers, of upstream's files for a provider.  Sourced.

# ---- tests ---------------------------------------------------------------

# Endpoint type of a test: what its name says, or fabtests' default (rdm).
ep_of()
{
	case $1 in
	*"-e msg"*|*FI_EP_MSG*) echo msg ;;
	*"-e dgram"*|*FI_EP_DGRAM*) echo dgram ;;
	*"-e rdm"*|*FI_EP_RDM*) echo rdm ;;
	# fi_msg_inject is named for the message calls: it takes the default
	fi_rdm*|fi_av_*|fi_msg_inject*|fi_poll*|fi_shared_ctx*) echo rdm ;;
	fi_scalable_ep*|fi_inject_test*) echo rdm ;;
	fi_msg*|fi_cm_data*) echo msg ;;
	fi_dgram*) echo dgram ;;
	*) echo any ;;
	esac
}

counts()
{
	local ep

	ep=$(ep_of "$1")
	[ "$ep" = any ] || [[ ,$EPS, == *,"$ep",* ]]
}

# Keeps the lines (tests) that count.
only_counting()
{
	local test

	while read -r test; do
		counts "$test" && printf '%s\n' "$test"
	done
}

# What identifies a test: all of its line, but of fi_ubertest's only the number
key_of()
{
	case $1 in
	"fi_ubertest "*) cut -d' ' -f1,2 <<<"$1" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# status_of TEST LIST: the status of TEST, or MISSING.
status_of()
{
	awk -v key="$(key_of "$1")" '
		{ status = $1; $1 = ""; test = substr($0, 2) }
		test ~ /^fi_ubertest / {
			split(test, word, " ")
			test = word[1] " " word[2]
		}
		test == key { found = status }
		END { print found ? found : "MISSING" }' "$2"
}

with_status()
{
	sed -n "s/^$1 //p" "$2"
}

# ---- providers -----------------------------------------------------------

# Prints the endpoint types that CORE has under exactly this name.
core_eps()
{
	fi_info -p "$CORE" 2>/dev/null | awk -v core="$CORE" '
		$1 == "provider:" { mine = ($2 == core) }
		$1 == "type:" && mine {
			sub(/^FI_EP_/, "", $2)
			if (!seen[$2]++)
				print tolower($2)
		}' | grep -xE 'msg|dgram|rdm' | paste -sd, -
}

# Upstream's folder is the utility provider's where there is one, as in
# ofi_rxm/ofi_rxm.exclude and ofi_rxm/tcp.test, else tcp/tcp.exclude and
# tcp/all.test.
name_files()
{
	local last=${CORE##*;} cases=all

	[ "$last" = "$CORE" ] || cases=${CORE%;*}
	RUN=$PREFIX/bin/runfabtests.sh
	UBER=$PREFIX/bin/fi_ubertest
	CONFIGS=$PREFIX/share/fabtests/test_configs/$last
	CORE_EXCLUDES=$CONFIGS/$last.exclude
	UBER_CONFIG=$CONFIGS/$cases.test
}

# Prints the name of the list of tests that CORE passes: a semicolon is no good
# in a file's name.
baseline_name()
{
	local suffix=''

	[ "$MODE" = suite ] || suffix=-$MODE
	printf '%s-%s%s.txt\n' "${CORE//;/+}" "$VERSION" "$suffix"
}

# ---- versions ------------------------------------------------------------

libfabric_version()
{
	fi_info --version 2>/dev/null | sed -n 's/^libfabric: //p'
}

# Installed fabtests print their version nowhere: only their folder's name may
# have it.
fabtests_version()
{
	[[ ${PREFIX##*/} =~ [0-9]+(\.[0-9]+)+ ]] || { echo unknown; return; }
	echo "${BASH_REMATCH[0]}"
}

# Prints one word that differs between versions of upstream's script.
suite_id()
{
	sha256sum "$RUN" | cut -c1-12
}
