/*
 * page_stream.c
 *	  Reads pages of a table into shared buffers ahead of the reader, with core's read
 *	  stream.
 *
 * The stream asks a function of the reader for as many pages as it wants to have under way,
 * and returns them in this order, read and pinned. The stream chooses the number itself: more
 * while it has to wait for pages, fewer while they are in memory. It looks further ahead only
 * when the reader takes a page, so the reader must prime it when nothing is under way.
 *
 * When the function has no page, the stream ends. Priming it after the reader has taken all
 * pages starts it again. The function may read index pages, which may wait for locks and call
 * any code, so the stream must not hold back reads in order to start several together.
 *
 * A pin belongs to the resource owner that is current when the page is requested, as with
 * core's scans: a portal has an owner of its own.
 */
#include "postgres.h"

#include "exec/page_stream.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/spccache.h"

/* The stream allocates from the context that is current when it begins. */
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

/* A setting gives the number of reads in flight. It is ours while the stream begins. */
static void
begin(LsmPageStream *stream)
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
 * Look ahead when the reader has taken all pages that were requested. The pages go through
 * the ring, unless it is NULL.
 */
void
lsm_stream_prime(LsmPageStream *stream, BufferAccessStrategy ring)
{
	Assert(!BufferIsValid(stream->first));
	if (stream->ring != ring)
		lsm_stream_end(stream);
	stream->ring = ring;
	if (stream->stream == NULL)
		begin(stream);
	stream->first = read_stream_next_buffer(stream->stream, NULL);
	if (!BufferIsValid(stream->first))
	{
		/* The stream had ended. */
		read_stream_reset(stream->stream);
		stream->first = read_stream_next_buffer(stream->stream, NULL);
	}
}

/* Returns the next page, which is this one, pinned. */
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

/* Forget the requested pages. */
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
