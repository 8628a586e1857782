/*
 * parallel.c
 *	  Parallel scans: the processes claim ranges, one after the other.
 *
 * What is to be read is a sequence: the combinations of array elements in index
 * order, and the entries within the bounds of each, or all of it backward.  The
 * processes share one position in it.  Who needs work takes the turn, looks for a
 * split beyond the position (read/split.c), moves the position there and reads what
 * lies between, as a scan of its own would: with its own version and, if it needs
 * one, its own gate.
 *
 * A position is next to an entry, (key, TID), so it lies between any two entries
 * that there are or will be.  It only moves on.  So each entry lies in one range:
 * no row is returned twice, and none is lost, though the versions differ; see
 * "Reading" in src/README.md.  Ranges of a process are claimed in index order, so
 * its rows come in that order.
 *
 * Ranges are small at first, and grow with what has been claimed: the last one
 * should not keep the others waiting, and a small scan is to be divided, too.
 * Combinations that are small are claimed several at a time.
 */
#include "postgres.h"

#include "am/am.h"
#include "am/parallel.h"
#include "base/limits.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

/* A range has this part of what was claimed before, in leaves, and at most so many. */
#define RANGE_FRACTION		32
#define RANGE_MOST_LEAVES	64

/* The same for combinations of array elements: of all that there are. */
#define FURTHER_FRACTION	32
#define FURTHER_MOST		31

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

	int			elements[INDEX_MAX_KEYS];	/* current ones of the driving arrays, by column */
	uint64		leaves;			/* claimed, about */
	int			further;		/* combinations that the latest claim might have had */
	bool		is_inside;		/* the position is within the combination: */
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
	p->further = 0;
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

static void
save_elements(const LsmScanKeys *keys, int *elements)
{
	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		if (keys->columns[i].array != NULL)
			elements[i] = keys->columns[i].array->current;
	}
}

static void
restore_elements(LsmScanKeys *keys, const int *elements)
{
	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		if (keys->columns[i].array != NULL)
			keys->columns[i].array->current = elements[i];
	}
}

/*
 * Take the turn and learn where the next claim begins: the arrays are set to its
 * combination.  False if all is claimed.  The turn lasts until lsm_parallel_end_claim;
 * if an error comes before that, it is the whole query's.
 */
bool
lsm_parallel_begin_claim(IndexScanDesc scan, LsmScanKeys *keys, ScanDirection direction,
						 LsmScanClaim *claim)
{
	LsmParallel *p = lsm_parallel_area(scan);
	ParallelState state = take_turn(p);

	if (state == PARALLEL_DONE)
		return false;
	if (state == PARALLEL_NEW)
		lsm_scankeys_start_arrays(keys, direction);
	else
		restore_elements(keys, p->elements);
	claim->has_start = p->is_inside;
	if (p->is_inside)
	{
		LsmEntry	entry = {0};

		entry.key = p->key;
		entry.keylen = p->keylen;
		entry.tid = p->tid;
		lsm_bound_set_entry(&claim->start, &entry, p->tie);
	}
	return true;
}

/* How many combinations there are, or at least very many. */
static double
count_combinations(const LsmScanKeys *keys)
{
	double		count = 1;

	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		if (keys->columns[i].array != NULL)
			count *= keys->columns[i].array->count;
	}
	return count;
}

/*
 * The whole rest of the combination is claimed.  If that is not much, further ones
 * are, too: as many more each time as have been small.  Returns false if there is
 * nothing behind them.
 */
static bool
claim_combinations(LsmParallel *p, LsmScanKeys *keys, ScanDirection direction, LsmScanClaim *claim)
{
	int			first[INDEX_MAX_KEYS];
	int			most = (int) Min(count_combinations(keys) / FURTHER_FRACTION, FURTHER_MOST);
	bool		more;

	save_elements(keys, first);
	p->further = claim->has_start ? 0 : Min(2 * p->further + 1, most);
	more = lsm_scankeys_advance_arrays(keys, direction);
	while (more && claim->further < p->further)
	{
		claim->further++;
		more = lsm_scankeys_advance_arrays(keys, direction);
	}
	save_elements(keys, p->elements);
	p->is_inside = false;
	restore_elements(keys, first);
	return more;
}

/* The next claim begins here, within the combination. */
static void
set_position(LsmParallel *p, const LsmScanKeys *keys, const LsmBound *split)
{
	if (split->keylen > sizeof(p->key))
		elog(ERROR, "key of %u bytes is too long", split->keylen);
	save_elements(keys, p->elements);
	p->is_inside = true;
	p->tie = split->tie;
	p->tid = split->tid;
	p->keylen = split->keylen;
	memcpy(p->key, split->key, split->keylen);
}

/*
 * Claim a range and give the turn to others.  The bounds of the combination, which
 * the caller has made, become those of the range.  The reader has to seek then.
 */
void
lsm_parallel_end_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
					   ScanDirection direction, LsmScanClaim *claim)
{
	LsmParallel *p = lsm_parallel_area(scan);
	LsmBound   *from = ScanDirectionIsForward(direction) ? &keys->low : &keys->high;
	LsmBound   *to = ScanDirectionIsForward(direction) ? &keys->high : &keys->low;
	uint32		leaves = (uint32) Min(Max(p->leaves / RANGE_FRACTION, 1), RANGE_MOST_LEAVES);
	const LsmBound *split;
	bool		more = true;

	claim->further = 0;
	if (claim->has_start)
		*from = claim->start;
	split = lsm_reader_split(reader, from, to, direction, leaves);
	if (split == NULL)
		more = claim_combinations(p, keys, direction, claim);
	else
	{
		LsmEntry	entry;

		set_position(p, keys, split);
		p->leaves += leaves;
		p->further = 0;
		lsm_bound_entry(split, &entry);
		lsm_bound_set_entry(&claim->end, &entry, split->tie);
		*to = claim->end;
	}
	give_turn(p, more ? PARALLEL_IDLE : PARALLEL_DONE);
}
