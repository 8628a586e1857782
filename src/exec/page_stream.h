/*
 * page_stream.h
 *	  Reads pages of a table into shared buffers ahead of the reader.
 */
#ifndef LSM_PAGE_STREAM_H
#define LSM_PAGE_STREAM_H

#include "postgres.h"

#include "base/compat.h"
#include "storage/buf.h"
#include "utils/rel.h"

/*
 * Estimate of the most pages that a stream requests per read in flight.  A read may cover several
 * neighboring pages: with the default of io_combine_limit, 16 pages of 8 kB.
 */
#define LSM_STREAM_PAGES_PER_READ 16

/* Returns the next page to read, or InvalidBlockNumber if there is none at present. */
typedef BlockNumber (*LsmNextPage) (void *argument);

typedef struct LsmPageStream
{
	/* Set by lsm_stream_init. */
	Relation	table;
	int			depth;			/* reads in flight */
	LsmNextPage next_page;
	void	   *argument;		/* of next_page */
	MemoryContext context;		/* of stream */

	ReadStream *stream;			/* NULL: not begun */
	BufferAccessStrategy ring;	/* the ring when the stream began */
	Buffer		first;			/* pinned; precedes the pages of `stream`; or invalid */
} LsmPageStream;

extern void lsm_stream_init(LsmPageStream *stream, Relation table, int depth,
							LsmNextPage next_page, void *argument);
extern void lsm_stream_prime(LsmPageStream *stream, BufferAccessStrategy ring);
extern Buffer lsm_stream_take(LsmPageStream *stream, BlockNumber block);
extern void lsm_stream_reset(LsmPageStream *stream);
extern void lsm_stream_end(LsmPageStream *stream);

#endif							/* LSM_PAGE_STREAM_H */
