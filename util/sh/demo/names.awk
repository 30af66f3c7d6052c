# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# names.awk: what demo.sh calls the words of demo_race and demo_save, and which
# of their rows are clear.

BEGIN {
	name["thread-mmap"] = "mmap by another thread"
	name["thread-madvise"] = "madvise by another thread"
	name["munmap-mmap"] = "munmap and mmap"
	name["madvise"] = "madvise(MADV_DONTNEED)"
	name["mremap"] = "mremap onto it"
	name["syscall-mmap"] = "mmap, without libc"
	name["syscall-madvise"] = "madvise, without libc"
	name["first"] = "used once"
	name["again"] = "used again"
	name["beyond"] = "over limit"
	name["malloc"] = "malloc, free"
}

function named(word)
{
	return word in name ? name[word] : word
}

function size_of(bytes)
{
	if (bytes >= 1048576)
		return bytes / 1048576 "M"
	return bytes >= 1024 ? bytes / 1024 "K" : bytes
}

# to an integer, never "-0"
function rounded(number)
{
	return int(number < 0 ? number - .5 : number + .5)
}

# Do four fifths of the turns agree on which of two is faster?
function agree(won, turns,   odd)
{
	odd = int(turns / 5)
	return won <= odd || won >= turns - odd
}
