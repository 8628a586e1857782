/*
 * keyspace.h
 *	  Encodes, compares and decodes the keys of an index.
 *
 * A keyspace is built from the relcache entry of an index, in the current memory context.
 * Everything that orders entries goes through lsm_key_compare or lsm_bound_compare. See
 * docs/design/keys.md.
 */
#ifndef LSM_KEYSPACE_H
#define LSM_KEYSPACE_H

#include "access/itup.h"
#include "base/coding.h"
#include "format/leaf.h"
#include "format/meta.h"
#include "key/details.h"
#include "key/hashable.h"
#include "utils/rel.h"

typedef struct LsmKeySpace
{
	bool		encoded;		/* keys compare with memcmp */
	bool		runs_user_code; /* comparing keys may run code that users wrote */
	bool		has_rest;		/* entries have a rest part */
	bool		has_details;	/* the rest begins with details of key columns; see details.h */
	uint32		max_keylen;		/* length of the longest possible key, in bytes */
	uint32		usual_keylen;	/* length of all keys without nulls, or 0 if lengths vary */
	int			nkeys;
	int			natts;			/* with included columns */
	TupleDesc	desc;
	TupleDesc	rest_desc;		/* encoded: the included columns, or NULL */
	const char *index_name;
	LsmHashing	hashing;		/* how filters hash the keys */

	/* Room for lsm_keyspace_form and, tuple keys only, for unaligned keys in comparisons. */
	uint8	   *form_key;
	uint8	   *form_rest;
	char	   *compare_a;
	char	   *compare_b;

	LsmColumn	columns[FLEXIBLE_ARRAY_MEMBER]; /* of the key */
} LsmKeySpace;

/* A column of a bound: compared with cmp(column value, value). */
typedef struct LsmBoundColumn
{
	Datum		value;
	bool		isnull;
	bool		is_own;			/* the value has the type of the column's class */
	FmgrInfo   *cmp;			/* tuple keys only; may be cross-type */
} LsmBoundColumn;

/*
 * A position between entries: before or after all entries whose first columns are `columns` (or
 * whose key starts with `key`), or before or after one entry.
 */
typedef struct LsmBound
{
	bool		is_entry;
	int			tie;			/* +1: before all equal entries, -1: after them */
	uint32		keylen;
	uint32		key_room;
	uint8	   *key;			/* encoded prefix, or key of the entry */
	uint64		tid;			/* if is_entry */
	int			ncolumns;
	LsmBoundColumn columns[INDEX_MAX_KEYS];
} LsmBound;

extern void lsm_keyspace_choose(Relation index, LsmKeyCoding *coding);
extern LsmKeySpace *lsm_keyspace_create(Relation index, const LsmKeyCoding *coding);
extern LsmKeySpace *lsm_keyspace_copy(LsmKeySpace *from);
extern void lsm_keyspace_form(LsmKeySpace *ks, Datum *values, bool *isnull,
							  ItemPointer tid, LsmEntry *entry);
extern void lsm_keyspace_deform(LsmKeySpace *ks, const LsmEntry *entry, int ncolumns,
								Datum *values, bool *isnull);
extern bool lsm_rest_split(const LsmKeySpace *ks, const LsmEntry *entry, LsmDetails *details,
						   const uint8 **included);
extern void lsm_keyspace_report_entry(LsmKeySpace *ks) __attribute__((noreturn));
extern bool lsm_nulls_may_repeat(const LsmKeySpace *ks, Relation index, const bool *isnull);
extern bool lsm_key_may_repeat(LsmKeySpace *ks, Relation index, const LsmEntry *entry);
extern IndexTuple lsm_keyspace_index_tuple(LsmKeySpace *ks, const LsmEntry *entry);
extern int	lsm_key_compare_slow(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b);
extern uint64 lsm_tuple_prefix(LsmKeySpace *ks, const LsmEntry *entry);
extern IndexTuple lsm_key_as_tuple(const LsmEntry *entry, char *room);
extern int	lsm_column_compare(LsmColumn *column, FmgrInfo *cmp, Datum a, bool a_null,
							   Datum b, bool b_null);
extern uint32 lsm_separator_length(LsmKeySpace *ks, const LsmEntry *left, const LsmEntry *right);

/* Reset a bound and forget its memory. */
static inline void
lsm_bound_clear(LsmBound *bound)
{
	memset(bound, 0, offsetof(LsmBound, columns));
}

extern void lsm_bound_init(LsmBound *bound, int tie);
extern void lsm_bound_add(LsmKeySpace *ks, LsmBound *bound, Datum value, bool isnull, FmgrInfo *cmp);
extern void lsm_bound_add_encoded(LsmBound *bound, const uint8 *code, uint32 len, int columns);
extern void lsm_bound_set_entry(LsmBound *bound, const LsmEntry *entry, int tie);
extern int	lsm_bound_order(LsmKeySpace *ks, const LsmBound *bound, const LsmBound *other);
extern void lsm_bound_set_key(LsmKeySpace *ks, LsmBound *bound, const LsmEntry *entry, int tie);
extern int	lsm_bound_compare_slow(LsmKeySpace *ks, const LsmBound *bound, const LsmEntry *entry);

/* Compare two entries by key, then by TID. */
static inline int
lsm_key_compare(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b)
{
	int			c;

	if (unlikely(!ks->encoded))
		return lsm_key_compare_slow(ks, a, b);
	c = memcmp(a->key, b->key, Min(a->keylen, b->keylen));
	if (c != 0)
		return c;
	if (a->keylen != b->keylen)
		return a->keylen < b->keylen ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Returns whether two entries have the same key; TIDs may differ. */
static inline bool
lsm_key_equal(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b)
{
	LsmEntry	other = *b;

	if (likely(ks->encoded))
		return a->keylen == b->keylen && memcmp(a->key, b->key, a->keylen) == 0;
	other.tid = a->tid;
	return lsm_key_compare_slow(ks, a, &other) == 0;
}

/* Compare the keys of two entries, without the TIDs. */
static inline int
lsm_key_order(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b)
{
	LsmEntry	other = *b;

	other.tid = a->tid;
	return lsm_key_compare(ks, a, &other);
}

/*
 * Compare an entry (or separator) with a bound.  Returns a negative number if the entry is before
 * the bound, and a positive number if it is after the bound.  Never returns 0.
 */
static inline int
lsm_bound_compare(LsmKeySpace *ks, const LsmBound *bound, const LsmEntry *entry)
{
	int			c;

	if (unlikely(!ks->encoded))
		return lsm_bound_compare_slow(ks, bound, entry);
	c = memcmp(entry->key, bound->key, Min(entry->keylen, bound->keylen));
	if (c != 0)
		return c;
	if (entry->keylen < bound->keylen)
		return -1;				/* a separator that was cut short */
	if (bound->is_entry)
	{
		if (entry->keylen > bound->keylen)
			return 1;
		if (entry->tid != bound->tid)
			return entry->tid < bound->tid ? -1 : 1;
	}
	return bound->tie;
}

/*
 * Returns the first bytes of an entry's key, or of its order code, as a number.  A key with a
 * greater prefix is greater.  Prefixes are never written to disk.
 */
static inline uint64
lsm_entry_prefix(LsmKeySpace *ks, const LsmEntry *entry)
{
	return ks->encoded ? lsm_key_prefix(entry->key, entry->keylen) : lsm_tuple_prefix(ks, entry);
}

/* Get the entry that a bound is next to.  REQUIRES: the bound was made from an entry. */
static inline void
lsm_bound_entry(const LsmBound *bound, LsmEntry *entry)
{
	memset(entry, 0, sizeof(LsmEntry));
	entry->key = bound->key;
	entry->keylen = bound->keylen;
	entry->tid = bound->tid;
	entry->aligned = true;
}

#endif							/* LSM_KEYSPACE_H */
