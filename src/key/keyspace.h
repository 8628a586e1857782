/*
 * keyspace.h
 *	  How the keys of one index are encoded, compared and decoded.
 *
 * A keyspace is built from the relcache entry of an index, in the current memory
 * context, and lives in its handle.  Everything that orders entries goes through
 * lsm_key_compare or lsm_bound_compare.  See docs/design/keys.md.
 */
#ifndef LSM_KEYSPACE_H
#define LSM_KEYSPACE_H

#include "base/coding.h"
#include "format/leaf.h"
#include "format/meta.h"

#include "access/itup.h"
#include "fmgr.h"
#include "utils/rel.h"

/* Order-preserving encodings of a column. */
typedef enum LsmEncoding
{
	LSM_ENC_NONE = 0,			/* compared by the support function */
	LSM_ENC_BOOL,
	LSM_ENC_CHAR,				/* "char", unsigned */
	LSM_ENC_INT16,
	LSM_ENC_INT32,				/* int4, date */
	LSM_ENC_INT64,				/* int8, timestamps, time, money */
	LSM_ENC_UINT32,				/* oid */
	LSM_ENC_UINT64,				/* pg_lsn, xid8 */
	LSM_ENC_FLOAT4,
	LSM_ENC_FLOAT8,
	LSM_ENC_FIXED,				/* bytes of fixed length: uuid, macaddr */
	LSM_ENC_TEXT,				/* no zero byte inside */
	LSM_ENC_BYTEA,
	LSM_ENC_NAME
} LsmEncoding;

typedef struct LsmColumn
{
	LsmEncoding encoding;
	bool		desc;
	bool		nulls_first;
	int16		typlen;
	bool		typbyval;
	Oid			opcintype;
	Oid			opfamily;
	Oid			collation;
	Oid			index;			/* that it is a column of */
	FmgrInfo	cmp;			/* support function 1 of the operator class */
	int			rest_at;		/* encoded: column of rest_desc, or -1 */
} LsmColumn;

typedef struct LsmKeySpace
{
	bool		encoded;		/* keys compare with memcmp */
	bool		has_rest;		/* entries have a rest part */
	uint32		max_keylen;		/* no key is longer, in bytes */
	uint32		usual_keylen;	/* all keys without nulls have this length, or 0 */
	int			nkeys;
	int			natts;			/* with included columns */
	TupleDesc	desc;
	TupleDesc	rest_desc;		/* encoded: what the rest holds, or NULL */
	const char *index_name;

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
	FmgrInfo   *cmp;			/* tuple keys only; may be cross-type */
} LsmBoundColumn;

/*
 * A position between entries: relative to all entries whose first columns are
 * `columns` (or whose key starts with `key`), or to one entry.
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
extern void lsm_keyspace_form(LsmKeySpace *ks, Datum *values, bool *isnull,
							  ItemPointer tid, LsmEntry *entry);
extern void lsm_keyspace_deform(LsmKeySpace *ks, const LsmEntry *entry, int ncolumns,
								Datum *values, bool *isnull);
extern void lsm_keyspace_report_entry(LsmKeySpace *ks) __attribute__((noreturn));
extern bool lsm_nulls_may_repeat(const LsmKeySpace *ks, Relation index, const bool *isnull);
extern bool lsm_key_may_repeat(LsmKeySpace *ks, Relation index, const LsmEntry *entry);
extern IndexTuple lsm_keyspace_index_tuple(LsmKeySpace *ks, const LsmEntry *entry);
extern int	lsm_key_compare_slow(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b);
extern IndexTuple lsm_key_as_tuple(const LsmEntry *entry, char *room);
extern int	lsm_column_compare(LsmColumn *column, FmgrInfo *cmp, Datum a, bool a_null,
							   Datum b, bool b_null);
extern uint32 lsm_separator_length(LsmKeySpace *ks, const LsmEntry *left, const LsmEntry *right);

/* Let a bound have nothing, not even memory.  Its columns count only as far as there are some. */
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

/* Which index's comparison functions are running, comparing.c. */
extern int32 lsm_compare_values(LsmColumn *column, FmgrInfo *cmp, Datum a, Datum b);
extern void lsm_compare_check(Relation index);
extern void lsm_compare_init(void);

/* Encoding of single columns, encode.c. */
extern LsmEncoding lsm_encoding_for(Oid cmp_function, Oid collation);
extern uint32 lsm_encode_size(LsmColumn *column, Datum value, bool isnull);
extern uint32 lsm_encoded_length(const LsmColumn *column);
extern uint32 lsm_encoded_column_length(LsmColumn *column, const uint8 *p, const uint8 *end);
extern bool lsm_encoded_is_null(const uint8 *p);
extern int	lsm_encoded_columns(LsmKeySpace *ks, const uint8 *key, uint32 length, int most);
extern uint32 lsm_encoded_prefix_length(LsmKeySpace *ks, const uint8 *key, uint32 keylen,
										int columns);
extern uint8 *lsm_encode_column(LsmColumn *column, Datum value, bool isnull, uint8 *out);
extern const uint8 *lsm_decode_column(LsmColumn *column, const uint8 *p, const uint8 *end,
									  Datum *value, bool *isnull);
extern bool lsm_encoding_is_exact(LsmColumn *column, Datum value);

/* Order of two entries: key, then TID. */
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

/* Do two entries have the same key, whatever their TIDs are? */
static inline bool
lsm_key_equal(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b)
{
	LsmEntry	other = *b;

	if (likely(ks->encoded))
		return a->keylen == b->keylen && memcmp(a->key, b->key, a->keylen) == 0;
	other.tid = a->tid;
	return lsm_key_compare_slow(ks, a, &other) == 0;
}

/*
 * Where is an entry (or separator) relative to a bound?  Negative: before it.
 * Positive: after it.  Never 0.
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

/* The entry that a bound of that kind is next to. */
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
