/*
 * copy_lines.h
 *	  Finds the line of a COPY that a row of a batch came from.
 */
#ifndef LSM_COPY_LINES_H
#define LSM_COPY_LINES_H

/* All zero: no rows are noted. */
typedef struct LsmCopyLines
{
	struct CopyFromStateData *copy; /* the COPY of the rows; invalid once it has ended */
	char	   *table;			/* name of its target table */
	struct CopyMark *marks;		/* in the order of the rows */
	int			count;
	int			room;
	uint64		last_tid;		/* of the row noted last */
	uint64		last_line;
} LsmCopyLines;

extern void lsm_copy_lines_note(LsmCopyLines *lines, uint64 tid, MemoryContext context);
extern void lsm_copy_lines_clear(LsmCopyLines *lines);
extern int	lsm_copy_lines_context(const LsmCopyLines *lines, uint64 tid);

#endif							/* LSM_COPY_LINES_H */
