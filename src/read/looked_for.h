/*
 * looked_for.h
 *	  Remembers keys that a statement has looked for together, and whether each was found.
 */
#ifndef LSM_LOOKED_FOR_H
#define LSM_LOOKED_FOR_H

#include "base/limits.h"
#include "manifest/manifest.h"

/* A key to look for in several runs. */
typedef struct LsmProbe
{
	LsmEntry	entry;			/* has the key */
	uint64		hash;			/* of the key, as filters know it */
	uint64		prefix;			/* see lsm_entry_prefix */
	bool		repeats;		/* the previous probe has the same key, and its result counts */
	bool		found;			/* some run has an entry with the key */
} LsmProbe;

/* Compare a probe with an entry whose prefix is known.  The prefixes nearly always decide. */
static inline int
lsm_probe_compare(LsmKeySpace *ks, const LsmProbe *probe, const LsmEntry *entry, uint64 prefix)
{
	if (probe->prefix != prefix)
		return probe->prefix < prefix ? -1 : 1;
	return lsm_key_order(ks, &probe->entry, entry);
}

/* The runs of a version that was read as a whole. */
typedef struct LsmSeenVersion
{
	uint64		next_id;		/* 0: no version was read */
	int			open_count;
	uint64		open[LSM_MAX_OPEN_RUNS];	/* open runs of the version */
} LsmSeenVersion;

/* Keys that were looked for in that version. */
typedef struct LsmLookedFor
{
	LsmSeenVersion seen;
	const LsmProbe *probes;		/* in the order of their keys */
	Size		count;
	uint32	   *slots;			/* finds probes by their hashes: index + 1, or 0 */
	uint32		slot_count;		/* a power of 2 */
} LsmLookedFor;

extern void lsm_seen_note(LsmSeenVersion *seen, const LsmVersion *version);
extern bool lsm_seen_has(const LsmSeenVersion *seen, uint64 run_id);
extern void lsm_looked_for_make(LsmLookedFor *known, const LsmSeenVersion *seen,
								const LsmProbe *probes, Size count);
extern bool lsm_was_absent(const LsmLookedFor *known, LsmKeySpace *ks, uint64 hash,
						   const LsmBound *from, const LsmBound *limit);
extern void lsm_looked_for_set(Oid index, const LsmLookedFor *keys);
extern const LsmLookedFor *lsm_looked_for_get(Oid index);
extern void lsm_looked_for_release(const LsmLookedFor *keys);
extern void lsm_looked_for_forget(void);

#endif							/* LSM_LOOKED_FOR_H */
