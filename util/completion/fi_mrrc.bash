# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Completes the options of the tools by what --help lists: _longopt is of the
# package bash-completion. Installed under the name of each tool.
complete -F _longopt fi_mrrc_get fi_mrrc_prof fi_mrrc_serve fi_mrrc_sim \
	fi_mrrc_stat fi_mrrc_trace
