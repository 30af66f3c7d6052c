# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# policies.awk: sums up a CSV report of fi_mrrc_sim over its cells, by model:
# each policy's total against the first one's, against the better of the mre
# rows, the worst cell against `lru4`, and against `offline`.
#
# awk -F, -v subject=gdl -v lru4=lru:pieces=4:batch=16 -f policies.awk CSV
# With subject: the last lines are "RESULT model pin mre worst offline".

NR == 1 {
	for (i = 1; i <= NF; i++)
		col[$i] = i
	next
}

{
	model = $col["model"]
	policy = $col["policy"]
	cell = $col["trace"] SUBSEP model SUBSEP $col["page"] SUBSEP \
		$col["percent"] SUBSEP $col["max_bytes"]
	total[cell, policy] = $col["total_ms"]
	if (!(cell in seen)) {
		seen[cell] = ++cells
		name[cells] = cell
		of[cells] = model
		pin[cell] = $col["total_ms"]
	}
	if (!(model in known)) {
		known[model] = ++models
		model_name[models] = model
	}
	if (!(policy in policies)) {
		policies[policy] = ++count
		policy_name[count] = policy
	}
	if (policy ~ /^mre/ && (!(cell in mre) || $col["total_ms"] < mre[cell]))
		mre[cell] = $col["total_ms"]
}

function mean(sum, n) { return n ? exp(sum / n) : 0 }

function line(model, policy,   c, cell, t, n, worst, at, p, m, o) {
	for (c = 1; c <= cells; c++) {
		cell = name[c]
		if (of[c] != model || !((cell, policy) in total))
			continue
		t = total[cell, policy]
		n++
		p += log(t / pin[cell])
		if (cell in mre)
			m += log(t / mre[cell])
		if ((cell, "offline") in total)
			o += log(t / total[cell, "offline"])
		if ((cell, lru4) in total && t / total[cell, lru4] > worst) {
			worst = t / total[cell, lru4]
			at = cell
		}
	}
	gsub(SUBSEP, " ", at)
	result = sprintf("%.3f %.3f %.3f %.3f", mean(p, n), mean(m, n),
		worst, mean(o, n))
	if (policy == subject)
		subject_result = result
	printf "  %-30s %9.3f %9.3f %9.3f %9.3f\n", policy, mean(p, n),
		mean(m, n), worst, mean(o, n)
}

END {
	for (i = 1; i <= models; i++) {
		printf "\nmodel %s: geometric means over %d cells\n",
			model_name[i], cells / models
		printf "  %-30s %9s %9s %9s %9s\n", "policy", "pin-down",
			"best mre", "worst", "offline"
		for (p = 1; p <= count; p++)
			line(model_name[i], policy_name[p])
		results = results "RESULT " model_name[i] " " \
			subject_result "\n"
	}
	print ""
	if (subject)
		printf "%s", results
}
