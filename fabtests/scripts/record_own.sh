# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# record.sh -p: programs for predictions, on which times matter. Each is
# preloaded with own_time.c, and Debian's run in a folder with their inputs.
# Sourced by record.sh.

# Benchmarks: name, class and ranks. Programs: name, what it is, and command.
# shellcheck disable=SC2034 # record.sh uses them
readonly PREDICT_PACKAGES="cp2k hpcc lammps quantum-espresso"
readonly PREDICT_NPB="bt.A.4 cg.A.2 ft.A.2 is.A.2 lu.A.2 mg.B.2 sp.A.4"
readonly STEADY_NPB="bt.A.4 cg.A.2 ft.A.2 is.A.2 lu.A.2 mg.A.2 sp.A.4"
readonly PREDICT_DEBIAN="cp2k|CP2K, molecular dynamics of water|cp2k.psmp -i cp2k.in
hpcc|HPC Challenge, with PTRANS of three sizes|hpcc
lammps|LAMMPS, 131072 atoms of a Lennard-Jones liquid|lmp -in lammps.in
qe|Quantum ESPRESSO, molecular dynamics of silicon|pw.x -in qe.in"
readonly INPUTS=$HERE/../traces/own_time/inputs
readonly LEAST=16384	# bytes; with -p, shorter messages are left out

# In a folder with their inputs: HPCC's is that of the package, with one process
# grid and larger matrices for PTRANS; ld1.x makes the pseudopotential for
# Quantum ESPRESSO.
record_debian()
{
	local name what command dir=$WORK/debian

	if ! cp -r "$INPUTS" "$dir" || ! cd "$dir"; then
		die "cannot copy $INPUTS"
	fi
	sed -e 's/^1000 \(.*Ns\)$/400 \1/' -e 's/^2 \(.*Ps\)$/1 \1/' \
		-e '/of additional problem sizes for PTRANS/s/^0/3/' \
		-e 's/^1200 10000 30000 /800 1200 1600 /' \
		/usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt ||
		die "hpcc is missing; to install: $0 -p --setup"
	ld1.x <silicon.in >ld1.log 2>&1 || failed ld1.log "ld1.x failed"
	while IFS='|' read -r name what command; do
		# shellcheck disable=SC2086 # words
		record "$name" "$what" openmpi 2 $command
	done <<<"$PREDICT_DEBIAN"
	cd "$OLDPWD" || exit
}

own_times()
{
	local load

	[ "$PREDICT" = yes ] || return 0
	load=$(cut -d' ' -f3 /proc/loadavg)
	cat <<-EOT

	With \`-p\` times are the processor time of each rank, less polling in vain
	(\`fabtests/clients/own_time.c\`): those of a rank with a core of its own,
	which does not wait for other ranks. So other programs on the machine
	change them little; its load was $load on $(nproc) cores. Each rank's
	time begins with its process. \`end_ns\` is when the operation ended.
	Messages of 16 KiB and more. The folder \`inputs\` has the inputs.
	EOT
	[ "$STEADY" = no ] || cat <<-EOT

	\`-s\`: in a virtual machine whose clock counts instructions, one a
	nanosecond (\`guest.sh -i\`): other programs on the machine change no times.
	BT, LU and SP make 12, 30 and 40 steps, for which NAS has no reference values.
	EOT
}
