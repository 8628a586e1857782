/*
 * frontier.c
 *	  A cursor over what another one has from a frontier on.
 *
 * Of an input of a merge, what lies before the frontier is in the merge's part,
 * and the pages may be gone.  So the child is never sought to a place before
 * the frontier: forward such a seek becomes one to the frontier, backward one
 * finds nothing.
 */
#include "postgres.h"

#include "read/read.h"

typedef struct FrontierCursor
{
	LsmCursor	base;
	LsmKeySpace *ks;
	LsmCursor  *child;
	LsmBound   *frontier;
	bool		forward;
} FrontierCursor;

/* Stand where the child stands, unless that is before the frontier. */
static inline void
follow(FrontierCursor *f)
{
	f->base.valid = f->child->valid;
	if (!f->base.valid)
		return;
	f->base.entry = f->child->entry;
	f->base.prefix = f->child->prefix;
	if (!f->forward && lsm_bound_compare(f->ks, f->frontier, f->base.entry) < 0)
		f->base.valid = false;
}

/* Is the frontier before a bound? */
static bool
is_before(FrontierCursor *f, const LsmBound *bound)
{
	LsmEntry	at;

	memset(&at, 0, sizeof(at));
	at.key = f->frontier->key;
	at.keylen = f->frontier->keylen;
	at.tid = f->frontier->tid;
	at.aligned = true;
	return lsm_bound_compare(f->ks, bound, &at) < 0;
}

static void
seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	FrontierCursor *f = (FrontierCursor *) base;
	bool		before = is_before(f, from);

	f->forward = ScanDirectionIsForward(direction);
	base->valid = false;
	if (!f->forward && !before)
		return;
	lsm_cursor_seek(f->child, before ? from : f->frontier, limit, direction);
	follow(f);
}

static void
next(LsmCursor *base)
{
	FrontierCursor *f = (FrontierCursor *) base;

	lsm_cursor_next(f->child);
	follow(f);
}

static void
close_cursor(LsmCursor *base)
{
	FrontierCursor *f = (FrontierCursor *) base;

	lsm_cursor_close(f->child);
	pfree(f->frontier->key);
	pfree(f->frontier);
	pfree(f);
}

static const LsmCursorOps frontier_ops = {seek, next, close_cursor};

/* Takes over the child and the bound, which is palloc'd. */
LsmCursor *
lsm_frontier_create(LsmKeySpace *ks, LsmCursor *child, LsmBound *frontier)
{
	FrontierCursor *f = palloc0(sizeof(FrontierCursor));

	f->base.ops = &frontier_ops;
	f->ks = ks;
	f->child = child;
	f->frontier = frontier;
	return &f->base;
}
