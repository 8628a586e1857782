/*
 * copy_lines.c
 *	  Finds the line of a COPY that a row of a batch came from.
 *
 * A batch is checked after COPY has read later lines, or has ended.  So COPY itself can no longer
 * name the line of a violation.
 *
 * COPY mostly puts the rows of consecutive lines one after the other on a page.  We keep a mark
 * only where the order breaks: about one mark for each page of the table.
 */
#include "postgres.h"

#include "commands/copyfrom_internal.h"
#include "ingest/copy_lines.h"
#include "utils/memutils.h"

/* The row with this TID is from this line, and the rows with the next TIDs are from the next lines. */
typedef struct CopyMark
{
	uint64		tid;
	uint64		line;
} CopyMark;

static void
add_mark(LsmCopyLines *lines, uint64 tid, uint64 line, MemoryContext context)
{
	if (lines->count == lines->room)
	{
		int			room = Max(16, 2 * lines->room);

		lines->marks = lines->marks ?
			repalloc_huge(lines->marks, room * sizeof(CopyMark)) :
			MemoryContextAlloc(context, room * sizeof(CopyMark));
		lines->room = room;
	}
	lines->marks[lines->count].tid = tid;
	lines->marks[lines->count].line = line;
	lines->count++;
}

/*
 * Note the line of the row with this TID, if the innermost error context is that of a COPY.  The
 * marks live in `context`.
 */
void
lsm_copy_lines_note(LsmCopyLines *lines, uint64 tid, MemoryContext context)
{
	CopyFromState copy;

	if (error_context_stack == NULL || error_context_stack->callback != CopyFromErrorCallback)
		return;
	copy = (CopyFromState) error_context_stack->arg;
	if (lines->count == 0)
	{
		lines->copy = copy;
		lines->table = MemoryContextStrdup(context, copy->cur_relname);
	}
	if (lines->count == 0 || tid != lines->last_tid + 1 || copy->cur_lineno != lines->last_line + 1)
		add_mark(lines, tid, copy->cur_lineno, context);
	lines->last_tid = tid;
	lines->last_line = copy->cur_lineno;
}

/* Forget all rows. */
void
lsm_copy_lines_clear(LsmCopyLines *lines)
{
	if (lines->count > 0)
		pfree(lines->table);
	lines->count = 0;
}

/* Returns the line of a row, or 0 if the line is not known. */
static uint64
find_line(const LsmCopyLines *lines, uint64 tid)
{
	const CopyMark *found = NULL;

	for (int i = 0; i < lines->count; i++)
	{
		const CopyMark *mark = &lines->marks[i];

		if (mark->tid >> 16 == tid >> 16 && mark->tid <= tid &&
			(found == NULL || mark->tid > found->tid))
			found = mark;
	}
	return found != NULL ? found->line + (tid - found->tid) : 0;
}

/*
 * Make an error about a row name its line of the COPY.  Call this inside ereport and ignore the
 * result.  `lines` may be NULL.
 */
int
lsm_copy_lines_context(const LsmCopyLines *lines, uint64 tid)
{
	uint64		line = lines != NULL ? find_line(lines, tid) : 0;

	if (line == 0)
		return 0;
	/* A COPY that is still running adds a line number to the error.  Correct the number. */
	for (ErrorContextCallback *c = error_context_stack; c != NULL; c = c->previous)
	{
		if (c->callback == CopyFromErrorCallback && c->arg == lines->copy)
		{
			lines->copy->cur_lineno = line;
			lines->copy->line_buf_valid = false;
			return 0;
		}
	}
	return errcontext("COPY %s, line " UINT64_FORMAT, lines->table, line);
}
