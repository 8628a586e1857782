/*
 * parallel.c
 *	  Parallel scans: the processes claim ranges, one after the other.
 *
 * What is to be read are the entries between the bounds of the scan, in index order
 * or backward.  The processes share one position among them.  Who needs work takes the turn, looks for a
 * split beyond the position (read/split.c), moves the position there and reads what
 * lies between, as a scan of its own would: with its own version and, if it needs
 * one, its own gate.
 *
 * A position is next to an entry, (key, TID), so it lies between any two entries
 * that there are or will be.  It only moves on.  So each entry lies in one range:
 * no row is returned twice, and none is lost, though the versions differ; see
 * docs/design/parallel-scans.md.  Ranges of a process are claimed in index order, so
 * its rows come in that order.
 *
 * Ranges are small at first, and grow with what has been claimed: the last one
 * should not keep the others waiting, and a small scan is to be divided, too.
 */
#include "postgres.h"

#include "scan/parallel_scan.h"
#include "base/limits.h"
#include "scan/scan.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

/* A range has this part of what was claimed before, in leaves, and at most so many. */
#define RANGE_FRACTION		32
#define RANGE_MOST_LEAVES	64

typedef enum ParallelState
{
	PARALLEL_NEW,				/* nothing is claimed */
	PARALLEL_IDLE,				/* the position is that of the next claim */
	PARALLEL_CLAIMING,			/* somebody has the turn */
	PARALLEL_DONE				/* all is claimed */
} ParallelState;

/* In shared memory.  Who has the turn reads and writes all but the first two fields. */
typedef struct LsmParallel
{
	slock_t		mutex;			/* protects state */
	ParallelState state;
	ConditionVariable turn;

	uint64		leaves;			/* claimed, about */
	bool		is_inside;		/* the position is not where the scan begins, but: */
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
start_anew(LsmParallel *p)
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
	start_anew(p);
}

/* Nobody else is reading. */
void
lsm_am_parallel_rescan(IndexScanDesc scan)
{
	start_anew(lsm_parallel_area(scan));
}

/* Wait for the turn.  Returns the state before; there is none if all is claimed. */
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
 * Learn where the next claim begins, if it is not where the scan does.  The caller has
 * the turn.
 */
static const LsmBound *
claim_start(LsmParallel *p, LsmScanClaim *claim)
{
	LsmEntry	entry = {0};

	if (!p->is_inside)
		return NULL;
	entry.key = p->key;
	entry.keylen = p->keylen;
	entry.tid = p->tid;
	lsm_bound_set_entry(&claim->start, &entry, p->tie);
	return &claim->start;
}

/* The next claim begins here. */
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

/* A bound becomes a copy of another one, which is next to an entry. */
static void
copy_position(LsmBound *bound, const LsmBound *position)
{
	LsmEntry	entry;

	lsm_bound_entry(position, &entry);
	lsm_bound_set_entry(bound, &entry, position->tie);
}

/*
 * Claim a range: the bounds of the whole scan, which the caller has just made, become
 * those of the range, and the combination that its first entry belongs to is found
 * with that entry.  The reader, which has to be refreshed, has to seek then.  False if
 * all is claimed.  If an error comes while we have the turn, it is the whole query's.
 */
bool
lsm_parallel_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
				   ScanDirection direction, LsmScanClaim *claim)
{
	LsmParallel *p = lsm_parallel_area(scan);
	LsmBound   *from = ScanDirectionIsForward(direction) ? &keys->low : &keys->high;
	LsmBound   *to = ScanDirectionIsForward(direction) ? &keys->high : &keys->low;
	const LsmBound *start;
	const LsmBound *split;
	uint32		leaves;

	if (take_turn(p) == PARALLEL_DONE)
		return false;
	start = claim_start(p, claim);
	leaves = (uint32) Min(Max(p->leaves / RANGE_FRACTION, 1), RANGE_MOST_LEAVES);
	split = lsm_reader_split(reader, start != NULL ? start : from, to, direction, leaves);
	if (start != NULL)
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
