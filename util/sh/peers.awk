# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# peers.awk: for bench.sh serve and nfs, before their own programs.

# min[what, peer] is the least of its values
function least(what, peer, value) {
	if (!((what, peer) in min) || value < min[what, peer])
		min[what, peer] = value
}

# peers: lines of "NAME[:SETS] TITLE"; name[] and title[] of each, and how many
function split_peers(peers,  n, i) {
	n = split(peers, title, "\n")
	for (i = 1; i <= n; i++) {
		name[i] = title[i]
		sub(/[: ].*/, "", name[i])
		sub(/^[^ ]* /, "", title[i])
	}
	return n
}

