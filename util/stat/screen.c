/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See screen.h. Text is printable ASCII: a byte is a column. */
#include "config.h"
#include "stat/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "out.h"
#include "stat/show.h"

#define BOLD	  "\033[1m"
#define INVERSE	  "\033[7m"
#define YELLOW	  "\033[33m"
#define PLAIN	  "\033[m"
#define CLEAR	  "\033[H\033[J"
#define NO_LINE	  "\r\033[K"
#define CURSOR	  "\033[?25h"
#define NO_CURSOR "\033[?25l"

#define ROWS_HELP \
	"q quit  < > sort  r reverse  up down select  enter table of selected"
#define TABLE_HELP "q quit  enter lines of all  up down another"

static struct winsize get_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row ||
	    !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	return size;
}

/* NO_COLOR is described at https://no-color.org */
static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR");

	return !no || !*no;
}

void stat_screen_begin(void)
{
	/* a screen is written at once, so that it doesn't flicker */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	fputs(NO_CURSOR, stdout);
}

void stat_screen_end(void)
{
	fputs(NO_LINE CURSOR, stdout);
	fflush(stdout);
}

static void draw_line(const char *line, size_t len, size_t width,
		      const char *look)
{
	printf("%s%.*s%s\n", look, (int) (len < width ? len : width), line,
	       *look ? PLAIN : "");
}

static const char *row_look(const struct stat_rows *rows, size_t row,
			    size_t selected)
{
	if (row == selected)
		return INVERSE;
	return rows->row[row].warns && has_colours() ? YELLOW : "";
}

/*
 * Returns the number of rows above the first drawn row, so that the selected
 * row is visible.
 */
static size_t rows_above(size_t selected, size_t count, size_t room)
{
	return selected < count && selected >= room ? selected + 1 - room : 0;
}

/* Draws the lines of @text. @rows: the rows in these lines, or NULL. */
static int draw(const char *text, const struct stat_rows *rows, size_t selected,
		const char *help)
{
	const struct winsize size = get_size();
	const size_t head = rows ? STAT_ROWS_HEAD : 0;
	const size_t room = size.ws_row > head + 1 ? size.ws_row - 1 - head : 0;
	const size_t above = rows ? rows_above(selected, rows->count, room) : 0;
	const char *look;
	size_t n, drawn = 0, len;

	fputs(CLEAR, stdout);
	for (n = 0; *text && drawn + 1 < size.ws_row; n++, text += len + 1) {
		len = strcspn(text, "\n");
		if (n >= head && n < head + above)
			continue;
		look = n + 1 == head ? BOLD : "";
		if (rows && n >= head && n - head < rows->count)
			look = row_look(rows, n - head, selected);
		draw_line(text, len, size.ws_col, look);
		drawn++;
	}
	printf("\033[%u;1H%.*s", size.ws_row, (int) size.ws_col, help);
	return out_flush(stdout);
}

int stat_screen_rows(const struct stat_rows *rows, size_t selected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int ret;

	if (!out)
		return -ENOMEM;
	stat_rows_print(rows, out);
	ret = fclose(out) ? -ENOMEM : draw(text, rows, selected, ROWS_HELP);
	free(text);
	return ret;
}

int stat_screen_table(const struct stat_row *row,
		      const struct stat_sample *before)
{
	struct stat_domain domain = *row->pair.domain;
	const struct stat_sample one = { .domain = &domain, .domains = 1 };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int ret;

	if (!out)
		return -ENOMEM;
	ret = stat_show_table(&one, before, out);
	if (fclose(out))
		ret = -ENOMEM;
	if (!ret)
		ret = draw(text, NULL, 0, TABLE_HELP);
	free(text);
	return ret;
}
