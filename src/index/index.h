/*
 * index.h
 *	  The handle of an index: what a backend knows of it.
 *
 * There is one for each index and backend.  It is found by the index's OID,
 * outlives statements, and is made anew when the relation cache forgets the
 * index.  Whoever uses it has the relation open, so that `rel` is valid; what
 * the handle was asked for last counts.
 */
#ifndef LSM_INDEX_H
#define LSM_INDEX_H

#include "base/compat.h"
#include "format/meta.h"
#include "index/counters.h"
#include "key/keyspace.h"
#include "lib/ilist.h"
#include "utils/rel.h"

/*
 * What costs depend on: the runs that a search has to descend, and how high they
 * are.  It changes only with an edit.
 */
typedef struct LsmShape
{
	uint64		edits;			/* of the version that it was taken from; 0: none was */
	int			height;			/* pages above a leaf, in the highest run */
	double		further_pages;	/* of a descent of every run but the largest one */
	double		further_share;	/* of the index that these have */
} LsmShape;

/* A page of the write buffer that was open when somebody looked. */
typedef struct LsmOpenPage
{
	uint64		run_id;
	BlockNumber block;
} LsmOpenPage;

/* The open pages, in the order in which they were opened. */
typedef struct LsmOpenPages
{
	uint32		count;
	LsmOpenPage pages[LSM_MAX_OPEN_RUNS];
} LsmOpenPages;

struct LsmReader;

/* The list that a handle is in.  The end of a transaction moves or frees it. */
typedef enum LsmHandleState
{
	LSM_HANDLE_USED,			/* this transaction opened it: becomes kept or idle; if invalid, freed */
	LSM_HANDLE_KEPT,			/* an earlier one did, and left a reader: becomes idle */
	LSM_HANDLE_IDLE,			/* an earlier one did: stays */
	LSM_HANDLE_STALE,			/* the same, but invalid: freed */
} LsmHandleState;

#define LSM_HANDLE_STATES (LSM_HANDLE_STALE + 1)

typedef struct LsmIndex
{
	Oid			id;
	Relation	rel;			/* as of the latest lsm_index_open */
	MemoryContext context;		/* holds the handle and what belongs to it */
	LsmKeySpace *ks;			/* encoded keys: for all; others make their own, see there */
	LsmKeyCoding coding;		/* as the meta page has it */
	struct LsmReader *readers;	/* of this backend, see read/reader.c */
	LsmShape	shape;			/* as the planner saw it last */
	Buffer		meta_buffer;	/* where these pages were the last time */
	Buffer		gate_buffers[2];

	LsmPendingReads reads;

	/* The write buffer, ingest/open_pages.c.  May be out of date: pages know themselves. */
	LsmOpenPages open;
	int			pressure;		/* waits lately */
	uint32		turn;			/* where pages are taken in turn */

	int			rows_to_pass;	/* without a look at them ahead: unique/look_ahead.c */

	/* The job whose inputs were trimmed last, and how many segments its output had: compact/job.c. */
	uint64		trimmed_job;
	uint32		trimmed_segments;

	LsmLocator	locator;		/* file that all this is about */
	bool		valid;			/* false: the relation cache has forgotten the index */
	LsmHandleState state;
	dlist_node	node;			/* in the list of its state */
} LsmIndex;

extern void lsm_index_init(void);
extern LsmIndex *lsm_index_open(Relation rel);
extern LsmIndex *lsm_index_create(Relation rel);
extern LsmKeySpace *lsm_index_keyspace(LsmIndex *index);
/* Called for each handle when a transaction ends, or another handle takes its place. */
typedef enum LsmForget
{
	LSM_FORGET_UNUSED,			/* the readers that nobody uses now: the handle is replaced */
	LSM_FORGET_BUT_ONE,			/* nobody uses any more: all but one for the next transaction */
	LSM_FORGET_ALL
} LsmForget;

typedef void (*LsmForgetCallback) (LsmIndex *index, LsmForget which);

extern void lsm_index_on_forget(LsmForgetCallback callback);
extern Buffer lsm_meta_lock(Relation rel, int mode);

extern void lsm_index_publish_all(void);

/* owner.c */
typedef struct LsmOwnerContext
{
	Oid			user;
	int			sec_context;
	int			guc_level;		/* 0: nothing was switched */
} LsmOwnerContext;

extern void lsm_owner_become(Relation heap, LsmOwnerContext *saved);
extern void lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved);
extern void lsm_owner_leave(LsmOwnerContext *saved);

#endif							/* LSM_INDEX_H */
