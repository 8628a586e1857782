/*
 * looked_for.c
 *	  Remembers keys that a statement has looked for together, and whether each was found.
 *
 * The statement has read a version as a whole, without a lock.  Since then, a key that the version
 * lacked can have arrived in only two places: a page of the write buffer that was open in the
 * version, or a run with a later id.  Ids are never reused.  The output of a merge has an earlier
 * id only if the version had the inputs.  So a lookup of the key skips all other runs.
 */
#include "postgres.h"

#include "read/looked_for.h"

/* Note which runs a version has. */
void
lsm_seen_note(LsmSeenVersion *seen, const LsmVersion *version)
{
	seen->next_id = version->next_id;
	seen->open_count = 0;
	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].state == LSM_RUN_OPEN && seen->open_count < LSM_MAX_OPEN_RUNS)
			seen->open[seen->open_count++] = version->runs[i].run_id;
	}
}

/* Did the version hold all of this run's entries?  An open run may have grown since. */
bool
lsm_seen_has(const LsmSeenVersion *seen, uint64 run_id)
{
	if (run_id >= seen->next_id)
		return false;
	for (int i = 0; i < seen->open_count; i++)
	{
		if (seen->open[i] == run_id)
			return false;
	}
	return true;
}

static inline uint32
slot_of(const LsmLookedFor *known, uint64 hash)
{
	return (uint32) hash & (known->slot_count - 1);
}

/*
 * Build *known from the probes that looked for keys in the version `seen`.  Allocates in the
 * current memory context.
 */
void
lsm_looked_for_make(LsmLookedFor *known, const LsmSeenVersion *seen, const LsmProbe *probes,
					Size count)
{
	known->seen = *seen;
	known->probes = probes;
	known->count = count;
	for (known->slot_count = 16; known->slot_count < 2 * count;)
		known->slot_count *= 2;
	known->slots = palloc0(known->slot_count * sizeof(uint32));
	for (Size i = 0; i < count; i++)
	{
		uint32		slot = slot_of(known, probes[i].hash);

		if (probes[i].repeats)
			continue;
		while (known->slots[slot] != 0)
			slot = (slot + 1) & (known->slot_count - 1);
		known->slots[slot] = (uint32) i + 1;
	}
}

/*
 * Did the statement look for the only key between these bounds, and not find it?  `hash` is the
 * key's hash.
 */
bool
lsm_was_absent(const LsmLookedFor *known, LsmKeySpace *ks, uint64 hash, const LsmBound *from,
			   const LsmBound *limit)
{
	for (uint32 slot = slot_of(known, hash); known->slots[slot] != 0;
		 slot = (slot + 1) & (known->slot_count - 1))
	{
		const LsmProbe *probe = &known->probes[known->slots[slot] - 1];

		if (probe->hash == hash && lsm_bound_compare(ks, from, &probe->entry) > 0 &&
			lsm_bound_compare(ks, limit, &probe->entry) < 0)
			return !probe->found;
	}
	return false;
}

/*
 * What the running statement knows about keys of one index.  The caller of lsm_looked_for_set owns
 * the set, and calls lsm_looked_for_release before freeing it.
 */
static Oid	known_index = InvalidOid;
static const LsmLookedFor *known_keys = NULL;

void
lsm_looked_for_set(Oid index, const LsmLookedFor *keys)
{
	known_index = index;
	known_keys = keys;
}

/* Returns the set for the index, or NULL. */
const LsmLookedFor *
lsm_looked_for_get(Oid index)
{
	return known_keys != NULL && known_index == index ? known_keys : NULL;
}

/* Forget this set, if it is the current one. */
void
lsm_looked_for_release(const LsmLookedFor *keys)
{
	if (known_keys == keys)
		known_keys = NULL;
}

/* Forget the set.  Called when an index is rebuilt, because its ids start over. */
void
lsm_looked_for_forget(void)
{
	known_keys = NULL;
}
