/*
 * details.h
 *	  Reads and writes the details of key columns in the rest of an entry.
 *
 * A detail is the information that a column's code lacks about a value (encode.c).  An entry's list
 * of details has only those that are not 0, in the order of their columns:
 *
 *		uint8		upper five bits: number of the column, from 0; lower three bits: length
 *					of the detail in bytes, minus 1
 *		bytes		the detail, in as few bytes as it takes (1 to 8), least significant first
 *
 * The list does not mark its end: see keyspace.c.
 */
#ifndef LSM_DETAILS_H
#define LSM_DETAILS_H

#include "postgres.h"

StaticAssertDecl(INDEX_MAX_KEYS <= 1 << 5, "a column's number must fit in five bits");

/* The most bytes that a detail takes in the list. */
#define LSM_DETAIL_SIZE 9

/* The unread part of a list of details. */
typedef struct LsmDetails
{
	const uint8 *p;
	const uint8 *end;
} LsmDetails;

/* Append a detail that is not 0.  Returns the end. */
static inline uint8 *
lsm_detail_put(uint8 *p, int column, uint64 detail)
{
	uint8	   *head = p++;

	for (; detail != 0; detail >>= 8)
		*p++ = (uint8) detail;
	*head = column << 3 | (p - head - 2);
	return p;
}

/*
 * Returns the detail of a column, or 0 if the column has none.  Callers ask for columns in order.
 * If a list is damaged, some details remain unread at the end.
 */
static inline uint64
lsm_detail_next(LsmDetails *list, int column)
{
	uint64		detail = 0;
	int			bytes;

	if (list->p >= list->end || *list->p >> 3 != column)
		return 0;
	bytes = (*list->p & 7) + 1;
	if (bytes >= list->end - list->p)
		return 0;
	for (int i = bytes; i > 0; i--)
		detail = detail << 8 | list->p[i];
	list->p += 1 + bytes;
	return detail;
}

/* Returns the end of a list of `count` details, or NULL if the list exceeds `end`. */
static inline const uint8 *
lsm_details_skip(const uint8 *p, const uint8 *end, int count)
{
	for (; count > 0; count--)
	{
		if (p >= end || (*p & 7) + 2 > end - p)
			return NULL;
		p += (*p & 7) + 2;
	}
	return p;
}

#endif							/* LSM_DETAILS_H */
