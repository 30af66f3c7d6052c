/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of plain and compressed files (lines.h): file -> raw -> text -> line.
 */
#include "config.h"
#include "sim/lines.h"

#include <errno.h>
#include <string.h>

/* xz -9 needs 65 MiB */
#define XZ_MEMORY (UINT64_C(256) << 20)

static const uint8_t xz_magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0 };
static const uint8_t bom[] = { 0xef, 0xbb, 0xbf };

/*
 * Reads the file's next bytes, at most as many as fit, into raw; *len is 0 at
 * the file's end.
 */
static int lines_read(struct sim_lines *lines, size_t *len)
{
	size_t got;

	errno = 0;
	got = fread(lines->raw, 1, sizeof(lines->raw), lines->file);
	if (!got && ferror(lines->file)) {
		lines->cause = NULL;
		return errno ? -errno : -EIO;
	}
	*len = got;
	return 0;
}

static int xz_fail(struct sim_lines *lines, lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		lines->cause = NULL;
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		lines->cause = "xz: needs more than 256 MiB to decompress";
		return -ENOMEM;
	case LZMA_BUF_ERROR:
		lines->cause = "xz: truncated";
		return -EBADMSG;
	case LZMA_OPTIONS_ERROR:
		lines->cause = "xz: made with unknown options";
		return -EBADMSG;
	default:
		lines->cause = "xz: corrupt";
		return -EBADMSG;
	}
}

/* Decompresses until text appears, or the file ends. */
static int lines_fill_xz(struct sim_lines *lines)
{
	lzma_stream *strm = &lines->strm;
	lzma_action action = LZMA_RUN;
	lzma_ret status;
	size_t len;
	int ret;

	strm->next_out = lines->text;
	strm->avail_out = sizeof(lines->text);
	while (strm->avail_out == sizeof(lines->text)) {
		if (!strm->avail_in) {
			ret = lines_read(lines, &len);
			if (ret)
				return ret;
			strm->next_in = lines->raw;
			strm->avail_in = len;
			if (!len)
				action = LZMA_FINISH;
		}
		status = lzma_code(strm, action);
		if (status == LZMA_STREAM_END) {
			lines->end = true;
			break;
		}
		if (status != LZMA_OK)
			return xz_fail(lines, status);
	}
	lines->next = lines->text;
	lines->left = sizeof(lines->text) - strm->avail_out;
	return 0;
}

static int lines_fill(struct sim_lines *lines)
{
	int ret;

	if (lines->xz)
		return lines_fill_xz(lines);
	ret = lines_read(lines, &lines->left);
	if (ret)
		return ret;
	lines->next = lines->raw;
	lines->end = !lines->left;
	return 0;
}

/* Opens a file; its first bytes tell whether it is compressed. */
int sim_lines_open(struct sim_lines *lines, FILE *file)
{
	lzma_ret status;
	int ret;

	lines->file = file;
	lines->xz = false;
	lines->end = false;
	lines->number = 0;
	lines->cause = NULL;
	ret = lines_fill(lines);
	if (ret)
		return ret;
	if (lines->left >= sizeof(xz_magic) &&
	    !memcmp(lines->raw, xz_magic, sizeof(xz_magic))) {
		lines->strm = (lzma_stream) LZMA_STREAM_INIT;
		status = lzma_stream_decoder(&lines->strm, XZ_MEMORY,
					     LZMA_CONCATENATED);
		if (status != LZMA_OK)
			return xz_fail(lines, status);
		lines->xz = true;
		lines->strm.next_in = lines->raw;
		lines->strm.avail_in = lines->left;
		lines->left = 0;
	} else if (lines->left >= sizeof(bom) &&
		   !memcmp(lines->raw, bom, sizeof(bom))) {
		lines->next += sizeof(bom);
		lines->left -= sizeof(bom);
	}
	return 0;
}

void sim_lines_close(struct sim_lines *lines)
{
	if (lines->xz)
		lzma_end(&lines->strm);
	lines->xz = false;
}

int sim_lines_bytes(struct sim_lines *lines, void *buf, size_t size,
		    size_t *len)
{
	size_t part;
	int ret;

	*len = 0;
	while (*len < size) {
		if (!lines->left && lines->end)
			break;
		if (!lines->left) {
			ret = lines_fill(lines);
			if (ret)
				return ret;
			continue;
		}
		part = lines->left < size - *len ? lines->left : size - *len;
		memcpy((char *) buf + *len, lines->next, part);
		*len += part;
		lines->next += part;
		lines->left -= part;
	}
	return 0;
}

int sim_lines_begin(struct sim_lines *lines, const char *text, size_t len,
		    bool *begins)
{
	int ret;

	if (!lines->left && !lines->end) {
		ret = lines_fill(lines);
		if (ret)
			return ret;
	}
	*begins = lines->left >= len && !memcmp(lines->next, text, len);
	return 0;
}

int sim_lines_next(struct sim_lines *lines)
{
	const uint8_t *lf = NULL;
	size_t part, len = 0;
	bool any = false;
	int ret;

	while (!lf) {
		if (!lines->left && !lines->end) {
			ret = lines_fill(lines);
			if (ret)
				return ret;
		}
		if (!lines->left) {
			if (!lines->end)
				continue;
			if (!any)
				return -ENODATA;
			break;
		}
		if (!any)
			lines->number++;
		any = true;
		lf = memchr(lines->next, '\n', lines->left);
		part = lf ? (size_t) (lf - lines->next) : lines->left;
		if (part > SIM_LINE_MAX - len) {
			lines->cause = "line longer than 4096 bytes";
			return -EINVAL;
		}
		memcpy(lines->line + len, lines->next, part);
		len += part;
		lines->next += part + !!lf;
		lines->left -= part + !!lf;
	}
	if (memchr(lines->line, '\0', len)) {
		lines->cause = "not text: a byte of 0";
		return -EINVAL;
	}
	if (len && lines->line[len - 1] == '\r')
		len--;
	lines->line[len] = '\0';
	return 0;
}
