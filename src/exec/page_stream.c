/*
 * page_stream.c
 *	  Reads pages of a table into shared buffers ahead of the reader, with core's read
 *	  stream.
 *
 * The stream calls a function of the reader to learn which pages to read, and hands the pages out
 * in the same order, pinned. The stream chooses how many pages it requests ahead: more while it
 * must wait for pages, fewer while they are in memory. It looks further ahead only when the reader
 * takes a page, so the reader must prime the stream once it has taken all requested pages.
 *
 * When the function returns no page, the stream ends. After the reader has taken all pages, priming
 * starts the stream again. The function may read index pages, and so wait for locks and run
 * arbitrary code. So we must not set READ_STREAM_USE_BATCHING: reads that are prepared, but not yet
 * started, would wait for the function.
 *
 * A pin belongs to the resource owner that is current when the page is requested, as in core's
 * scans. A portal has its own resource owner.
 */
#include "postgres.h"

#include "exec/page_stream.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/spccache.h"

/* Initialize a stream. The stream allocates from the memory context that is current now. */
void
lsm_stream_init(LsmPageStream *stream, Relation table, int depth, LsmNextPage next_page,
				void *argument)
{
	memset(stream, 0, sizeof(LsmPageStream));
	stream->table = table;
	stream->depth = depth;
	stream->next_page = next_page;
	stream->argument = argument;
	stream->context = CurrentMemoryContext;
	stream->first = InvalidBuffer;
}

static BlockNumber
ask_reader(ReadStream *core_stream, void *argument, void *page_data)
{
	LsmPageStream *stream = argument;

	return stream->next_page(stream->argument);
}

/*
 * Begin core's stream. The setting effective_io_concurrency determines the number of reads in
 * flight, so we change the setting while the stream begins. (A tablespace's own value prevails.)
 */
static void
begin_core_stream(LsmPageStream *stream)
{
	MemoryContext caller = MemoryContextSwitchTo(stream->context);
	int			level = NewGUCNestLevel();

	if (get_tablespace_io_concurrency(stream->table->rd_rel->reltablespace) != stream->depth)
		(void) set_config_option("effective_io_concurrency", psprintf("%d", stream->depth),
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	stream->stream = read_stream_begin_relation(READ_STREAM_DEFAULT, stream->ring, stream->table,
												MAIN_FORKNUM, ask_reader, stream, 0);
	AtEOXact_GUC(false, level);
	MemoryContextSwitchTo(caller);
}

/*
 * Look ahead. Called when the reader has taken all requested pages. If `ring` is not NULL, the
 * pages are read into that ring.
 */
void
lsm_stream_prime(LsmPageStream *stream, BufferAccessStrategy ring)
{
	Assert(!BufferIsValid(stream->first));
	if (stream->ring != ring)
		lsm_stream_end(stream);
	stream->ring = ring;
	if (stream->stream == NULL)
		begin_core_stream(stream);
	stream->first = read_stream_next_buffer(stream->stream, NULL);
	if (!BufferIsValid(stream->first))
	{
		/* The stream had ended. */
		read_stream_reset(stream->stream);
		stream->first = read_stream_next_buffer(stream->stream, NULL);
	}
}

/* Returns the next page, pinned. Raises an error unless the page is `block`. */
Buffer
lsm_stream_take(LsmPageStream *stream, BlockNumber block)
{
	Buffer		buffer = stream->first;

	stream->first = InvalidBuffer;
	if (!BufferIsValid(buffer))
		buffer = read_stream_next_buffer(stream->stream, NULL);
	if (!BufferIsValid(buffer) || BufferGetBlockNumber(buffer) != block)
		elog(ERROR, "block %u of table \"%s\" is not the next one of its read stream", block,
			 RelationGetRelationName(stream->table));
	return buffer;
}

/* Release the requested pages. */
void
lsm_stream_reset(LsmPageStream *stream)
{
	if (BufferIsValid(stream->first))
		ReleaseBuffer(stream->first);
	stream->first = InvalidBuffer;
	if (stream->stream != NULL)
		read_stream_reset(stream->stream);
}

void
lsm_stream_end(LsmPageStream *stream)
{
	lsm_stream_reset(stream);
	if (stream->stream != NULL)
		read_stream_end(stream->stream);
	stream->stream = NULL;
}
