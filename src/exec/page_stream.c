/*
 * page_stream.c
 *	  Pages of a table that are read into shared buffers ahead of the reader, by a
 *	  read stream of core.
 *
 * The stream asks a function of the reader for pages, as many as it wants to have
 * under way, and hands them out in this order, read and pinned.  How many these are
 * it decides itself: more while pages have to be waited for, fewer while they are
 * found in memory.  It looks further ahead only when a page is taken from it, so it
 * has to be primed when nothing is under way.
 *
 * When the function has no page, the stream ends, and goes on when it is primed
 * after its pages have been taken.  The function may read pages of an index, which
 * may wait for locks and call anything: so the stream must not hold back reads, to
 * start several of them at once.
 *
 * Pins belong to the resource owner that is current when a page is asked for, as
 * those of core's scans: a portal has one of its own.
 */
#include "postgres.h"

#include "exec/page_stream.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/spccache.h"

/* The memory of the stream, when it begins, is taken from the current context. */
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

/* Reads in flight are those of a setting, which is ours while the stream begins. */
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
 * Look ahead, when all pages that were asked for have been taken.  The pages go
 * through the ring, unless it is NULL.
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
		/* It had ended. */
		read_stream_reset(stream->stream);
		stream->first = read_stream_next_buffer(stream->stream, NULL);
	}
}

/* The next page, which is this one, pinned. */
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

/* Forget the pages that were asked for. */
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
