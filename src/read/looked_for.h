/*
 * looked_for.h
 *	  Keys that are looked for together, and what is known of them afterwards.
 */
#ifndef LSM_LOOKED_FOR_H
#define LSM_LOOKED_FOR_H

#include "base/limits.h"
#include "manifest/manifest.h"

/* A key to look for in one run after the other. */
typedef struct LsmProbe
{
	LsmEntry	entry;			/* with that key */
	uint64		hash;			/* of an encoded key, as filters know it */
	uint64		prefix;			/* of an encoded key, see lsm_key_prefix */
	bool		repeats;		/* the probe before has the same key and answers for it */
	bool		found;			/* some run has an entry with the key */
} LsmProbe;

/* Compare with a key whose prefix is known.  The prefix nearly always decides. */
static inline int
lsm_probe_compare(const LsmProbe *probe, const uint8 *key, uint32 keylen, uint64 prefix)
{
	int			c;

	if (probe->prefix != prefix)
		return probe->prefix < prefix ? -1 : 1;
	c = memcmp(probe->entry.key, key, Min(probe->entry.keylen, keylen));
	if (c != 0)
		return c;
	return probe->entry.keylen < keylen ? -1 : probe->entry.keylen > keylen;
}

/* The runs of a version that was read as a whole. */
typedef struct LsmSeenVersion
{
	uint64		next_id;		/* 0: no version was read */
	int			open_count;
	uint64		open[LSM_MAX_OPEN_RUNS];	/* its open runs */
} LsmSeenVersion;

/* Encoded keys that were looked for in that version. */
typedef struct LsmLookedFor
{
	LsmSeenVersion seen;
	const LsmProbe *probes;		/* in the order of their keys */
	Size		count;
} LsmLookedFor;

extern void lsm_seen_note(LsmSeenVersion *seen, const LsmVersion *version);
extern bool lsm_seen_has(const LsmSeenVersion *seen, uint64 run_id);
extern bool lsm_was_absent(const LsmLookedFor *known, const uint8 *key, uint32 keylen);
extern void lsm_looked_for_set(Oid index, const LsmLookedFor *keys);
extern const LsmLookedFor *lsm_looked_for_get(Oid index);
extern void lsm_looked_for_release(const LsmLookedFor *keys);
extern void lsm_looked_for_forget(void);

#endif							/* LSM_LOOKED_FOR_H */
