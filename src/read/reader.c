/*
 * reader.c
 *	  Readers: take a version, seek in it, and continue in a newer version.
 *
 * Nothing protects the pages that a reader reads. If a page now belongs to another segment, or a
 * directory page is newer than the reader's version, the version is stale. The reader then takes
 * the current version and seeks to the last entry it returned. Both versions hold the same entries
 * as far as the snapshot can see; docs/design/reading.md has the proof. If there is no newer
 * version, the index is damaged.
 *
 * Each restart advances the reader by at least one entry, unless an edit overtakes the seek itself.
 * After several overtaken seeks in a row, the reader seeks under the share lock of the meta page.
 * While it holds that lock, no edit can happen, so the pages keep their owners.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "key/hash.h"
#include "key/merge.h"
#include "miscadmin.h"
#include "read/buffer_cursor.h"
#include "read/reader.h"
#include "read/run_cursor.h"
#include "read/run_filter.h"
#include "read/run_lookup.h"
#include "read/run_probe.h"
#include "read/small_runs.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/* After this many overtaken seeks, the reader seeks under the meta page's lock. */
#define PATIENCE 8

/* What a call must restore, and what its counts start from. */
typedef struct ReaderCall
{
	MemoryContext old;			/* the caller's context */
	uint64		missed;			/* lsm_blocks_missed when the call began */
} ReaderCall;

/* Begin a call that may read pages.  Calls of one reader do not nest. */
static inline ReaderCall
begin_reader_call(LsmReader *reader)
{
	ReaderCall	call = {MemoryContextSwitchTo(reader->context), lsm_blocks_missed};

	return call;
}

static inline void
end_reader_call(LsmReader *reader, const ReaderCall *call)
{
	lsm_reader_count_missed(reader, call->missed);
	MemoryContextSwitchTo(call->old);
}

/* Unpin the gate. The caller must refresh the reader before reading on. */
void
lsm_reader_let_go(LsmReader *reader)
{
	if (BufferIsValid(reader->gate))
		ReleaseBuffer(reader->gate);
	reader->gate = InvalidBuffer;
}

/* --- versions --------------------------------------------------------------- */

static LsmFrontier *
frontier_of_job(LsmReader *reader, uint64 job_id)
{
	for (int i = 0; i < reader->frontier_count; i++)
	{
		if (reader->frontiers[i]->job_id == job_id)
			return reader->frontiers[i];
	}
	return NULL;
}

/* Returns memory for the frontier of a job. Reuses the memory of a finished job if possible. */
static LsmFrontier *
make_frontier(LsmReader *reader)
{
	LsmFrontier *frontier = NULL;

	for (int i = 0; i < reader->frontier_count && frontier == NULL; i++)
	{
		if (!reader->frontiers[i]->is_used)
			frontier = reader->frontiers[i];
	}
	if (frontier == NULL)
	{
		Size		size = (reader->frontier_count + 1) * sizeof(LsmFrontier *);

		reader->frontiers = reader->frontiers ? repalloc(reader->frontiers, size) : palloc(size);
		frontier = palloc0(sizeof(LsmFrontier));
		reader->frontiers[reader->frontier_count++] = frontier;
	}
	return frontier;
}

/* Read the frontiers of all jobs. Returns false if the version is already stale. */
static bool
read_frontiers(LsmReader *reader)
{
	for (int i = 0; i < reader->frontier_count; i++)
	{
		LsmRunRecord *output = lsm_version_find(&reader->version, reader->frontiers[i]->job_id);

		reader->frontiers[i]->is_used = output != NULL && (output->flags & LSM_RUN_MERGING);
	}
	for (uint32 i = 0; i < reader->version.run_count; i++)
	{
		const LsmRunRecord *run = &reader->version.runs[i];
		LsmFrontier *frontier;

		if (!(run->flags & LSM_RUN_MERGING) || run->segments == 0)
			continue;
		frontier = frontier_of_job(reader, run->run_id);
		if (frontier != NULL && frontier->segments == run->segments)
			continue;
		if (frontier == NULL)
			frontier = make_frontier(reader);
		/* Until the frontier is read, it belongs to no job. */
		frontier->job_id = 0;
		frontier->segments = 0;
		if (lsm_directory_last(reader->cx.index, run, reader->version.edits,
							   &frontier->bound) != LSM_FOUND)
		{
			lsm_read_set_stale(&reader->cx, run->start);
			return false;
		}
		frontier->job_id = run->run_id;
		frontier->segments = run->segments;
		frontier->is_used = true;
	}
	return true;
}

/*
 * Returns the frontier of a job, or NULL if the job has no output yet. The result is valid until
 * the next refresh.
 */
const LsmBound *
lsm_reader_frontier(LsmReader *reader, uint64 job_id)
{
	LsmFrontier *frontier = job_id != 0 ? frontier_of_job(reader, job_id) : NULL;

	return frontier != NULL && frontier->is_used ? &frontier->bound : NULL;
}

/* Returns cursor number `used` of an array. Creates the cursor if it does not exist yet. */
static LsmCursor *
reuse_cursor(LsmReader *reader, LsmCursor ***cursors, int *have, int used,
			 LsmCursor *(*create) (LsmReadContext *cx))
{
	if (used == *have)
	{
		Size		size = (used + 1) * sizeof(LsmCursor *);

		*cursors = *cursors ? repalloc(*cursors, size) : palloc(size);
		(*cursors)[(*have)++] = create(&reader->cx);
	}
	return (*cursors)[used];
}

/* Point the cursors at the runs of the version. */
static void
set_cursors(LsmReader *reader)
{
	int			runs = 0;
	int			buffers = 0;

	if (reader->children == NULL)
	{
		reader->children = palloc(LSM_MAX_RUNS * sizeof(LsmCursor *));
		reader->child_runs = palloc(LSM_MAX_RUNS * sizeof(uint64));
		reader->child_leaves = palloc(LSM_MAX_RUNS * sizeof(uint32));
	}
	reader->child_count = 0;
	if (reader->cx.filters != NULL)
		lsm_run_filters_begin(reader->cx.filters);
	for (uint32 i = 0; i < reader->version.run_count; i++)
	{
		const LsmRunRecord *run = &reader->version.runs[i];
		const LsmBound *clip;
		LsmCursor  *cursor;

		if (!lsm_run_is_read(run) ||
			(reader->job_id != 0 && run->job_id != reader->job_id))
			continue;
		clip = lsm_reader_frontier(reader, run->job_id);
		if (run->state == LSM_RUN_PACKED)
		{
			cursor = reuse_cursor(reader, &reader->run_cursors, &reader->run_cursor_count,
								  runs++, lsm_run_cursor_create);
			lsm_run_cursor_set(cursor, run, clip);
		}
		else
		{
			cursor = reuse_cursor(reader, &reader->buffer_cursors,
								  &reader->buffer_cursor_count, buffers++,
								  lsm_buffer_cursor_create);
			lsm_buffer_cursor_set(cursor, run, clip);
		}
		reader->child_runs[reader->child_count] = run->run_id;
		reader->child_leaves[reader->child_count] =
			run->state == LSM_RUN_PACKED ? run->leaves : 0;
		reader->children[reader->child_count++] = cursor;
	}
	if (reader->cx.filters != NULL)
		lsm_run_filters_end(reader->cx.filters);
	reader->cx.run_count = reader->child_count;
	reader->cx.packed_count = runs;
	reader->cursor = reader->merge;
	if (reader->child_count == 1)
		reader->cursor = reader->children[0];
	else
		lsm_merge_set(reader->merge, reader->children, reader->child_count);
}

/* The reader has taken a version. */
static inline void
reach_version_stop_point(void)
{
	/* Pins the gate if the reader needs it.  May hold the locks of a step or a unique check. */
	LSM_STOP_POINT("read-version");
}

/*
 * Take the current version, and pin its gate if the reader needs the gate. Returns true if the
 * version changed, or if the cursors belong to another version. An error may have interrupted the
 * reader anywhere, and the reader's next user must not read with leftover cursors.
 */
static bool
update_version(LsmReader *reader)
{
	bool		was_ready = reader->is_ready;
	bool		changed;

	lsm_reader_let_go(reader);
	reader->is_ready = false;
	changed = lsm_version_update(reader->cx.index, &reader->version,
								 reader->needs_gate ? &reader->gate : NULL) || !was_ready;
	reach_version_stop_point();
	reader->is_ready = !changed;
	return changed;
}

/* Build what depends on the version just taken. Returns false if that version is already stale. */
static bool
take_version(LsmReader *reader)
{
	reader->cx.stale = false;
	reader->cx.edits = reader->version.edits;
	if (!read_frontiers(reader))
		return false;
	set_cursors(reader);
	reader->is_ready = true;
	return true;
}

/*
 * Raise an error if the snapshot is too old. With old_snapshot_threshold, VACUUM may have removed
 * entries that this snapshot sees, together with their pages, so that no remaining page shows the
 * removal. But the edit that freed the pages changed the meta page, so this tests the meta page's
 * LSN.
 */
static void
check_snapshot(LsmReader *reader)
{
	lsm_test_old_snapshot_at(reader->cx.snapshot, reader->cx.index->rel, reader->version.lsn);
}

static void
report_stale(LsmReader *reader)
{
	lsm_report_corruption(reader->cx.index->rel, reader->cx.stale_block,
						  "page is not the one that the manifest names");
}

/*
 * Take the version, and seek unless `from` is NULL. The lock on the meta page keeps the version
 * current, so a page that does not match the version is damaged. The seek asks no filter: that may
 * call hash functions, and read pages in order to build a filter.
 */
static void
read_locked(LsmReader *reader, const LsmBound *from)
{
	Buffer		meta;

	lsm_reader_let_go(reader);
	reader->is_ready = false;
	reader->cx.lookup_columns = 0;
	meta = lsm_meta_lock(reader->cx.index->rel, BUFFER_LOCK_SHARE);
	lsm_version_copy(&reader->version, lsm_meta(BufferGetPage(meta)));
	reader->version.lsn = PageGetLSN(BufferGetPage(meta));
	if (reader->needs_gate)
	{
		reader->gate = lsm_buffer_read(reader->cx.index->rel,
									   LSM_BLOCK_GATE + reader->version.gate_epoch % 2,
									   LSM_KIND(LSM_PAGE_GATE), 0, BUFFER_LOCK_SHARE, NULL);
		LockBuffer(reader->gate, BUFFER_LOCK_UNLOCK);
	}
	if (take_version(reader) && from != NULL)
		lsm_cursor_seek(reader->cursor, from, reader->limit, reader->direction);
	UnlockReleaseBuffer(meta);
	if (reader->cx.stale)
		report_stale(reader);
}

/*
 * Take the current version, and its gate if the reader needs the gate. Costs next to nothing if
 * the reader already has that version.
 */
void
lsm_reader_refresh(LsmReader *reader)
{
	ReaderCall	call;
	bool		done = false;

	reader->cx.generation++;
	reader->cx.stale = false;
	lsm_reader_let_go(reader);
	if (reader->is_ready &&
		lsm_version_is_current(reader->cx.index, &reader->version,
							   reader->needs_gate ? &reader->gate : NULL))
	{
		reach_version_stop_point();
		check_snapshot(reader);
		return;
	}
	call = begin_reader_call(reader);
	for (int i = 0; !done; i++)
	{
		if (i >= PATIENCE)
		{
			read_locked(reader, NULL);
			break;
		}
		done = !update_version(reader) || take_version(reader);
		CHECK_FOR_INTERRUPTS();
	}
	end_reader_call(reader, &call);
	check_snapshot(reader);
}

/*
 * Called when the version is stale: take the current version and seek in it. A new gate may replace
 * the old one, since nobody still uses TIDs that were read under the old gate.
 *
 * If the seek may run user code, the reader takes only the version under the lock, and keeps trying
 * to seek. Each failed attempt means that a merge or VACUUM has made progress.
 */
static void
restart_reader(LsmReader *reader, const LsmBound *from)
{
	for (int i = 0; reader->cx.stale; i++)
	{
		reader->cx.counters.restarts++;
		reader->cx.generation++;
		if (i >= PATIENCE && !reader->cx.ks->runs_user_code)
		{
			read_locked(reader, from);
			break;
		}
		if (!update_version(reader))
			report_stale(reader);
		if (!take_version(reader) && i >= PATIENCE)
			read_locked(reader, NULL);
		if (!reader->cx.stale)
			lsm_cursor_seek(reader->cursor, from, reader->limit, reader->direction);
		CHECK_FOR_INTERRUPTS();
	}
	check_snapshot(reader);
}

/* Called when the cursor has a new array. If its last entry is within the limit, so are all. */
static void
check_limit(LsmReader *reader)
{
	LsmCursor  *c = reader->cursor;

	reader->within = reader->limit == NULL || !c->valid ||
		!lsm_beyond(reader->cx.ks, reader->limit, c->entry + c->stride * c->left,
					reader->direction);
}

/* Is there only one key between two bounds? */
static bool
is_one_key(LsmKeySpace *ks, const LsmBound *from, const LsmBound *limit)
{
	if (limit->is_entry || limit->ncolumns != ks->nkeys)
		return false;
	if (ks->encoded)
		return from->keylen == limit->keylen &&
			memcmp(from->key, limit->key, limit->keylen) == 0;
	return lsm_hash_shared_columns(ks, from, limit, ks->nkeys) == ks->nkeys;
}

/* If the statement has already looked for the bounds' only key, note the runs that lack it. */
static void
note_if_absent(LsmReadContext *cx, const LsmBound *from, const LsmBound *limit)
{
	uint64		hash;

	/* In a backward seek, `from` is the high bound. */
	if (from->tie < 0)
	{
		const LsmBound *high = from;

		from = limit;
		limit = high;
	}
	if (lsm_run_lookup_hash(cx, cx->ks->nkeys, &hash) &&
		lsm_was_absent(cx->looked_for, cx->ks, hash, from, limit))
		cx->without = &cx->looked_for->seen;
}

/*
 * Note what to ask the filters about the keys between two bounds. If the bounds allow only one key,
 * ask for that key. Otherwise, if there are several packed runs, ask for the values of the leading
 * columns that the bounds share, because all keys between the bounds share them too.
 */
static void
note_lookup(LsmReader *reader, const LsmBound *from, const LsmBound *limit)
{
	LsmReadContext *cx = &reader->cx;
	LsmKeySpace *ks = cx->ks;

	cx->lookup = limit;
	cx->lookup_columns = 0;
	cx->hashed_columns = 0;
	cx->without = NULL;
	if (limit == NULL || ks->hashing.least_columns == 0)
		return;
	if (is_one_key(ks, from, limit))
	{
		cx->lookup_columns = ks->nkeys;
		if (cx->looked_for != NULL)
			note_if_absent(cx, from, limit);
	}
	else if (ks->nkeys > 1 && cx->packed_count > 1)
	{
		cx->lookup_columns = lsm_hash_shared_columns(ks, from, limit, ks->nkeys - 1);
		if (cx->lookup_columns < ks->hashing.least_columns)
			cx->lookup_columns = 0;
	}
}

/* Returns how many runs the seek will read. */
static int
count_runs_of_seek(const LsmReader *reader)
{
	int			count = 0;

	if (likely(reader->cx.without == NULL))
		return reader->child_count;
	for (int i = 0; i < reader->child_count; i++)
		count += !lsm_seen_has(reader->cx.without, reader->child_runs[i]);
	return count;
}

/*
 * Forward: stand on the first entry after `from`. Backward: stand on the last entry before
 * `from`. The caller will stop at `limit`, if not NULL, and does not change `limit` until the next
 * seek.
 *
 * REQUIRES: the reader was refreshed, and has not let go since.
 */
void
lsm_reader_seek(LsmReader *reader, const LsmBound *from, const LsmBound *limit,
				ScanDirection direction)
{
	ReaderCall	call = begin_reader_call(reader);

	reader->limit = limit;
	reader->direction = direction;
	reader->cx.stale = false;
	note_lookup(reader, from, limit);
	reader->cx.counters.seeks++;
	reader->cx.counters.runs += count_runs_of_seek(reader);
	reader->child_seeks += reader->child_count;
	lsm_cursor_seek(reader->cursor, from, limit, direction);
	if (unlikely(reader->cx.stale))
		restart_reader(reader, from);
	check_limit(reader);
	end_reader_call(reader, &call);
}

/*
 * Stand on the first entry that has the same key as `key`. Returns false if there is none. The
 * caller passes bounds that are initially zeroed, and does not change them until the next seek.
 *
 * REQUIRES: the reader was refreshed, and has not let go since.
 */
bool
lsm_reader_seek_key(LsmReader *reader, const LsmEntry *key, LsmBound bounds[2])
{
	lsm_bound_set_key(reader->cx.ks, &bounds[0], key, 1);
	lsm_bound_set_key(reader->cx.ks, &bounds[1], key, -1);
	lsm_reader_seek(reader, &bounds[0], &bounds[1], ForwardScanDirection);
	return lsm_reader_is_valid(reader) && !lsm_reader_is_beyond(reader);
}

/*
 * Seek in one run of the version only. The run's cursor stands on the first entry after `from`,
 * unless that entry is beyond the limit. The reader itself stands nowhere. If the version is stale,
 * the context says so, and the caller must take a newer version.
 *
 * REQUIRES: the reader was refreshed, and has not let go since.
 */
LsmCursor *
lsm_reader_seek_run(LsmReader *reader, int child, const LsmBound *from, const LsmBound *limit)
{
	ReaderCall	call = begin_reader_call(reader);
	LsmCursor  *cursor = reader->children[child];

	note_lookup(reader, from, limit);
	lsm_cursor_seek(cursor, from, limit, ForwardScanDirection);
	end_reader_call(reader, &call);
	return cursor;
}

/*
 * Look for keys, in order, in one packed run of the version only, and mark the keys that have an
 * entry in the run. The reader itself stands nowhere. Returns false if the version is stale; in
 * that case, the caller must take a newer version and look for all keys again.
 *
 * REQUIRES: at least one key, with the hash that filters expect; the reader was refreshed, and
 * has not let go since.
 */
bool
lsm_reader_probe_run(LsmReader *reader, int child, LsmProbe *probes, Size count)
{
	ReaderCall	call = begin_reader_call(reader);
	bool		fresh = lsm_run_probe(reader->children[child], probes, count,
									  &reader->probe[0], &reader->probe[1]);

	end_reader_call(reader, &call);
	return fresh;
}

/*
 * Like lsm_reader_probe_run, for a page of the write buffer. Sets *done to false, and does nothing,
 * if searching without a filter is better.
 */
bool
lsm_reader_probe_page(LsmReader *reader, int child, LsmProbe *probes, Size count, bool *done)
{
	ReaderCall	call = begin_reader_call(reader);

	reader->cx.lookup_columns = 0;
	reader->cx.without = NULL;
	*done = lsm_buffer_cursor_probe(reader->children[child], probes, count, &reader->probe[0],
									&reader->probe[1]);
	end_reader_call(reader, &call);
	return !reader->cx.stale;
}

/* Like lsm_reader_probe_run, for several small runs: see small_runs.c. */
bool
lsm_reader_probe_small_runs(LsmReader *reader, const int *children, int child_count,
							LsmProbe *probes, Size count)
{
	ReaderCall	call = begin_reader_call(reader);
	LsmCursor  *cursors[LSM_MAX_RUNS];
	bool		fresh;

	for (int i = 0; i < child_count; i++)
		cursors[i] = reader->children[children[i]];
	fresh = lsm_small_runs_probe(cursors, child_count, probes, count, &reader->probe[0],
								 &reader->probe[1]);
	end_reader_call(reader, &call);
	return fresh;
}

/* Stand on the entry after `entry`, in the direction of the latest seek, in the current version. */
void
lsm_reader_seek_past(LsmReader *reader, const LsmEntry *entry)
{
	ReaderCall	call = begin_reader_call(reader);

	lsm_bound_set_entry(&reader->here, entry, ScanDirectionIsForward(reader->direction) ? -1 : 1);
	/* Take the version again, even if it is current. */
	reader->cx.stale = true;
	reader->is_ready = false;
	restart_reader(reader, &reader->here);
	check_limit(reader);
	end_reader_call(reader, &call);
}

/*
 * Called when the reader's own user has removed entries from a page that had not changed since the
 * reader read it. If the page is a leaf, the other entries read from it are still valid. If the
 * page belongs to the write buffer, they are not: cursors have copies that still contain the
 * removed entries, and the page may get entries with the same TIDs again.
 */
void
lsm_reader_page_changed(LsmReader *reader, const LsmPageRef *page, uint64 stamp)
{
	if (page->kind != LSM_PAGE_LEAF)
		return;
	for (int i = 0; i < LSM_PAGES_SEEN; i++)
	{
		if (lsm_page_ref_equal(&reader->cx.seen[i], page))
			reader->cx.seen[i].stamp = stamp;
	}
}

/* Continue after the cursor's array. */
void
lsm_reader_fill(LsmReader *reader)
{
	ReaderCall	call = begin_reader_call(reader);
	LsmCursor  *c = reader->cursor;

	lsm_bound_set_entry(&reader->here, c->entry,
						ScanDirectionIsForward(reader->direction) ? -1 : 1);
	c->ops->fill(c);
	if (unlikely(reader->cx.stale))
		restart_reader(reader, &reader->here);
	check_limit(reader);
	end_reader_call(reader, &call);
}

/*
 * Returns the offset of the first entry beyond `to` in the cursor's array, at `low` or later. The
 * last entry of the array is beyond `to`. Tries near entries first.
 */
static int
find_beyond(const LsmReader *reader, const LsmBound *to, int low)
{
	LsmKeySpace *ks = reader->cx.ks;
	const LsmCursor *c = reader->cursor;
	int			high = c->left;

	for (int far = 0; low + far < high; far = 2 * far + 1)
	{
		if (lsm_beyond(ks, to, c->entry + c->stride * (low + far), reader->direction))
			high = low + far;
		else
			low += far + 1;
	}
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (lsm_beyond(ks, to, c->entry + c->stride * middle, reader->direction))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Move to the first entry after `to`, in the direction of the latest seek, if that entry is in the
 * cursor's array or at most about `more` entries after the array. Returns how far the reader moved,
 * or 0 if the entry is farther away; the reader may have moved even then. A reader that already
 * stands after `to` moves by one entry.
 *
 * REQUIRES: valid.
 */
int
lsm_reader_step(LsmReader *reader, const LsmBound *to, int more)
{
	LsmKeySpace *ks = reader->cx.ks;
	int			first = 1;
	int			moved = 0;

	for (;;)
	{
		LsmCursor  *c = reader->cursor;

		if (first <= c->left &&
			lsm_beyond(ks, to, c->entry + c->stride * c->left, reader->direction))
		{
			int			distance = find_beyond(reader, to, first);

			c->entry += c->stride * distance;
			c->left -= distance;
			return moved + distance + (first == 0);
		}
		if (more <= 0 && likely(!lsm_beyond(ks, to, c->entry, reader->direction)))
			return 0;
		moved += c->left + (first == 0);
		c->entry += c->stride * c->left;
		c->left = 0;
		lsm_reader_fill(reader);
		if (!lsm_reader_is_valid(reader))
			return moved + 1;
		more -= reader->cursor->left + 1;
		first = 0;
	}
}
