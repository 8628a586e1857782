/*
 * index.h
 *	  Declares the handle of an index: what a backend knows about the index.
 *
 * A backend has one handle per index, found by the index's OID. A handle outlives statements.
 * A new handle replaces it when the relation cache forgets the index; see index.c. Users of a
 * handle have the relation open, so `rel`, the relation of the latest lsm_index_open, is valid.
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
 * The runs that a search descends, and their height. The planner's costs depend on them. Only an
 * edit changes them.
 */
typedef struct LsmShape
{
	uint64		edits;			/* number of the last edit when computed; 0: never computed */
	int			height;			/* pages above a leaf, in the tallest run */
	double		pages;			/* of all runs, without filters */
	double		further_pages;	/* read to find one leaf in each run but the largest */
	double		further_share;	/* the share of the index that is in these runs */
} LsmShape;

/* A page of the write buffer that was open when we last asked the manifest. */
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

/* The list that a handle is in, and what the end of a transaction does with the handle. */
typedef enum LsmHandleState
{
	LSM_HANDLE_USED,			/* opened by this transaction: becomes kept or idle; if invalid, freed */
	LSM_HANDLE_KEPT,			/* opened earlier, keeps a reader: becomes idle if too many do */
	LSM_HANDLE_IDLE,			/* opened earlier: stays idle */
	LSM_HANDLE_STALE,			/* opened earlier, now invalid: is freed */
} LsmHandleState;

#define LSM_HANDLE_STATES (LSM_HANDLE_STALE + 1)

typedef struct LsmIndex
{
	Oid			id;
	Relation	rel;			/* as of the latest lsm_index_open */
	MemoryContext context;		/* holds the handle and what belongs to it */
	LsmKeySpace *ks;			/* users get theirs from lsm_index_keyspace */
	LsmKeyCoding coding;		/* as on the meta page */
	struct LsmReader *readers;	/* of this backend, see read/reader.c */
	Size		kept_bytes;		/* of the reader, while the handle is kept */
	LsmShape	shape;			/* as last computed for the planner */
	Buffer		meta_buffer;	/* buffers that last held the meta page and the gates */
	Buffer		gate_buffers[2];

	LsmPendingReads reads;

	/*
	 * The open pages of the write buffer: ingest/open_pages.c. The list may be out of date; each
	 * page shows whether it is open.
	 */
	LsmOpenPages open;
	int			pressure;		/* recent waits for a page: page_choice.c */
	uint32		turn;			/* if entries go to the pages in turn: the next page */

	int			rows_to_pass;	/* rows that pass without looking ahead: unique/look_ahead.c */

	/*
	 * The job whose inputs were trimmed last, and how many segments its output had then:
	 * compact/job.c.
	 */
	uint64		trimmed_job;
	uint32		trimmed_segments;

	LsmLocator	locator;		/* the file that the handle describes */
	bool		valid;			/* false: out of date; see index.c */
	LsmHandleState state;
	dlist_node	node;			/* in the list of the handle's state */
} LsmIndex;

extern void lsm_index_init(void);
extern LsmIndex *lsm_index_open(Relation rel);
extern LsmIndex *lsm_index_create(Relation rel);
extern LsmKeySpace *lsm_index_keyspace(LsmIndex *index);
/* Which readers of a handle to free; see lsm_index_on_forget. */
typedef enum LsmForget
{
	LSM_FORGET_UNUSED,			/* those that nobody uses: the handle is being replaced or trimmed */
	LSM_FORGET_BUT_ONE,			/* all but one, which the next transaction may use */
	LSM_FORGET_ALL
} LsmForget;

/* Returns the bytes of the reader that LSM_FORGET_BUT_ONE has kept, or 0. */
typedef Size (*LsmForgetCallback) (LsmIndex *index, LsmForget which);

extern void lsm_index_on_forget(LsmForgetCallback callback);
extern void lsm_index_trim_readers(void);
extern Buffer lsm_meta_lock(Relation rel, int mode);

extern void lsm_index_publish(Oid id);
extern void lsm_index_publish_all(void);

/* owner.c */
typedef struct LsmOwnerContext
{
	Oid			user;
	int			sec_context;
	int			guc_level;		/* 0: nothing was switched */
} LsmOwnerContext;

/* The user who runs a statement, and the statement's search_path. */
typedef struct LsmCaller
{
	Oid			user;
	int			sec_context;
	char	   *search_path;	/* in the context passed to lsm_caller_note */
} LsmCaller;

extern void lsm_caller_note(LsmCaller *caller, MemoryContext context);
extern bool lsm_caller_is_current(const LsmCaller *caller);
extern void lsm_caller_enter(const LsmCaller *caller, LsmOwnerContext *saved);

extern void lsm_owner_become(Relation heap, LsmOwnerContext *saved);
extern void lsm_owner_add_schemas(const LsmKeySpace *ks);
extern void lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved);
extern void lsm_owner_enter_schemas(LsmKeySpace *ks, LsmOwnerContext *saved);
extern void lsm_owner_leave(LsmOwnerContext *saved);

#endif							/* LSM_INDEX_H */
