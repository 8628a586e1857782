/*
 * parallel_scan.c
 *	  Lets the processes of a parallel scan claim ranges one by one.
 *
 * The scan reads the entries between its bounds, in index order or backward.  The processes share
 * one position among these entries.  A process that needs work takes the turn, finds a split beyond
 * the position (read/split.c), and moves the position to the split.  The process reads the range up
 * to the split like a scan of its own: with its own version and, if it needs one, its own gate.
 *
 * A position lies directly before or after some (key, TID).  So each entry that exists or will
 * exist lies on one side of the position.  The position only moves in the direction of the scan.
 * So each entry lies in one range: no row is returned twice and none is lost, though the processes
 * may read different versions (docs/design/parallel-scans.md).  A process claims its ranges in the
 * order of the scan, so its rows come in that order.
 *
 * Ranges are small at first, so that small scans are divided too.  Ranges grow with the total
 * claimed so far, up to a limit, so that the last range does not keep the other processes waiting.
 */
#include "postgres.h"

#include "scan/parallel_scan.h"
#include "base/limits.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

/* Leaves of a range: a fraction of those claimed before, up to a limit. */
#define RANGE_FRACTION		32
#define RANGE_MOST_LEAVES	64

typedef enum ParallelState
{
	PARALLEL_NEW,				/* nothing is claimed */
	PARALLEL_IDLE,				/* the next claim begins at the position */
	PARALLEL_CLAIMING,			/* a process has the turn */
	PARALLEL_DONE				/* everything is claimed */
} ParallelState;

/* In shared memory.  Only the process that has the turn uses `leaves` and the fields after it. */
typedef struct LsmParallel
{
	slock_t		mutex;			/* protects state */
	ParallelState state;
	ConditionVariable turn;

	uint64		leaves;			/* claimed so far, about */
	bool		is_inside;		/* false: the position is the scan's beginning */
	int			tie;
	uint64		tid;
	uint32		keylen;
	uint8		key[LSM_MAX_ENTRY_SIZE];
} LsmParallel;

Size
lsm_am_estimate_parallel_scan(LSM_ESTIMATE_PARALLEL_ARGS)
{
	return sizeof(LsmParallel);
}

static void
reset_position(LsmParallel *p)
{
	p->state = PARALLEL_NEW;
	p->leaves = 0;
	p->is_inside = false;
}

void
lsm_am_init_parallel_scan(void *area)
{
	LsmParallel *p = area;

	memset(p, 0, sizeof(LsmParallel));
	SpinLockInit(&p->mutex);
	ConditionVariableInit(&p->turn);
	reset_position(p);
}

/* Called while no other process is reading. */
void
lsm_am_parallel_rescan(IndexScanDesc scan)
{
	reset_position(lsm_parallel_area(scan));
}

/*
 * Wait for the turn.  Returns the state in which the caller took the turn.  If everything is
 * claimed, returns PARALLEL_DONE, and the caller does not get the turn.
 */
static ParallelState
take_turn(LsmParallel *p)
{
	static uint32 wait_event = 0;
	ParallelState state;

	if (wait_event == 0)
		wait_event = lsm_wait_event("LsmParallelScan");
	for (;;)
	{
		SpinLockAcquire(&p->mutex);
		state = p->state;
		if (state == PARALLEL_NEW || state == PARALLEL_IDLE)
			p->state = PARALLEL_CLAIMING;
		SpinLockRelease(&p->mutex);
		if (state != PARALLEL_CLAIMING)
			break;
		ConditionVariableSleep(&p->turn, wait_event);
	}
	ConditionVariableCancelSleep();
	return state;
}

static void
give_turn(LsmParallel *p, ParallelState state)
{
	SpinLockAcquire(&p->mutex);
	p->state = state;
	SpinLockRelease(&p->mutex);
	if (state == PARALLEL_DONE)
		ConditionVariableBroadcast(&p->turn);
	else
		ConditionVariableSignal(&p->turn);
}

/*
 * Copy the position to *start.  Returns false if the position is the scan's beginning.
 *
 * REQUIRES: the turn.
 */
static bool
get_position(LsmParallel *p, LsmBound *start)
{
	LsmEntry	entry = {0};

	if (!p->is_inside)
		return false;
	entry.key = p->key;
	entry.keylen = p->keylen;
	entry.tid = p->tid;
	lsm_bound_set_entry(start, &entry, p->tie);
	return true;
}

/* Let the next claim begin at the split.  REQUIRES: the turn. */
static void
set_position(LsmParallel *p, const LsmBound *split)
{
	if (split->keylen > sizeof(p->key))
		elog(ERROR, "key of %u bytes is too long", split->keylen);
	p->is_inside = true;
	p->tie = split->tie;
	p->tid = split->tid;
	p->keylen = split->keylen;
	memcpy(p->key, split->key, split->keylen);
}

/* Copy a bound that is next to an entry. */
static void
copy_position(LsmBound *bound, const LsmBound *position)
{
	LsmEntry	entry;

	lsm_bound_entry(position, &entry);
	lsm_bound_set_entry(bound, &entry, position->tie);
}

/*
 * Claim a range: the bounds of the scan, which the caller has just made, become the bounds of the
 * range.  The caller must seek next, and takes the combination from the first entry found.  *start
 * owns the memory for the position.  Returns false if everything is claimed.
 *
 * REQUIRES: the reader has been refreshed.  An error while we have the turn ends the query in
 * all processes.
 */
bool
lsm_parallel_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
				   ScanDirection direction, LsmBound *start)
{
	LsmParallel *p = lsm_parallel_area(scan);
	LsmBound   *from = ScanDirectionIsForward(direction) ? &keys->low : &keys->high;
	LsmBound   *to = ScanDirectionIsForward(direction) ? &keys->high : &keys->low;
	bool		is_inside;
	const LsmBound *split;
	uint32		leaves;

	if (take_turn(p) == PARALLEL_DONE)
		return false;
	is_inside = get_position(p, start);
	leaves = (uint32) Min(Max(p->leaves / RANGE_FRACTION, 1), RANGE_MOST_LEAVES);
	split = lsm_reader_split(reader, is_inside ? start : from, to, direction, leaves);
	if (is_inside)
		copy_position(from, start);
	if (split != NULL)
	{
		set_position(p, split);
		p->leaves += leaves;
		copy_position(to, split);
	}
	give_turn(p, split != NULL ? PARALLEL_IDLE : PARALLEL_DONE);
	return true;
}
