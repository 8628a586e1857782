/*
 * f_key.c
 *	  Fuzzes stored keys: decoding their columns and rests, tuples of index-only scans, hashes, and
 *	  what the verifier makes of them.
 *
 *	  uint16	number of the index: its columns are random (test/unit/rows.c)
 *	  uint64	TID
 *	  uint16	length of the key
 *	  bytes		the key, then the rest
 */
#include "fuzz.h"

#include "backend.h"
#include "inspect/inspect.h"
#include "key/encode.h"
#include "key/hash.h"
#include "key/tuple.h"
#include "key/virtual_pages.h"
#include "props.h"

static TestIndex the_index;

/* --- what the verifier calls -------------------------------------------------------------- */

void
lsm_check_report(LsmCheck *c, BlockNumber block, const char *format,...)
{
	elog(ERROR, "%s", format);
	pg_unreachable();
}

void
lsm_check_heap_add(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid)
{
}

/* --- encoded keys --------------------------------------------------------------------------- */

/* Does the value have an encoding?  If the value is sound, decoding this encoding gives the value. */
static void
check_value(const LsmColumn *column, int i, Datum value, bool isnull, bool sound)
{
	uint32		size = lsm_encode_size(column, value, isnull);
	uint8	   *code = palloc(size);
	uint8	   *end = lsm_encode_column(column, value, isnull, code);
	uint64		detail = !isnull && column->keeps_details ? lsm_encode_detail(column, value) : 0;
	Datum		again;
	bool		again_null;

	expect(end > code && end <= code + size);
	expect(lsm_encoded_column_length(column, code, end) == end - code);
	expect(lsm_decode_column(column, code, end, detail, &again, &again_null) == end);
	expect(again_null == isnull);
	expect(isnull || !sound || types_identical(the_index.columns[i].type, value, again));
}

static void
check_columns(const LsmEntry *entry, LsmDetails details)
{
	LsmKeySpace *ks = the_index.ks;
	const uint8 *p = entry->key;
	const uint8 *end = p + entry->keylen;
	int			columns = lsm_encoded_columns(ks->columns, p, entry->keylen, ks->nkeys);

	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &ks->columns[i];
		uint64		detail = ks->has_details ? lsm_detail_next(&details, i) : 0;
		uint32		length = lsm_encoded_column_length(column, p, end);
		const uint8 *from = p;
		Datum		value;
		bool		isnull;

		expect((length > 0) == (i < columns));
		p = lsm_decode_column(column, p, end, detail, &value, &isnull);
		if (p == NULL)
			break;
		expect(p == from + length && p <= end && isnull == lsm_encoded_is_null(from));
		expect(lsm_encoded_prefix_length(ks->columns, entry->key, entry->keylen, i + 1) == p - entry->key);
	}
}

/* --- the verifier ----------------------------------------------------------------------------- */

/* Has the verifier no objection to the entry? */
static bool
passes_verifier(const LsmEntry *entry)
{
	static LsmCheck check;
	sigjmp_buf	here;
	sigjmp_buf *outer = backend_catch;
	volatile bool passes = false;

	memset(&check, 0, sizeof(check));
	check.ks = the_index.ks;
	check.scratch = CurrentMemoryContext;
	backend_catch = &here;
	if (sigsetjmp(here, 0) == 0)
	{
		lsm_check_entry(&check, entry, false, 5, 0);
		passes = true;
	}
	backend_catch = outer;
	return passes;
}

/* An entry that the verifier accepts is what forming an entry with its values gives. */
static void
check_sound_entry(const LsmEntry *entry)
{
	LsmKeySpace *ks = the_index.ks;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		hashes[INDEX_MAX_KEYS];
	LsmTupleMaker *maker = lsm_tuple_maker_create(ks);
	ItemPointerData tid;
	LsmEntry	again;
	IndexTuple	tuple;

	lsm_keyspace_deform(ks, entry, ks->natts, values, isnull);
	for (int i = 0; i < ks->nkeys && ks->encoded; i++)
		check_value(&ks->columns[i], i, values[i], isnull[i], true);
	tuple = lsm_tuple_make(maker, entry);
	expect(lsm_tid_to_int(&tuple->t_tid) == entry->tid);
	lsm_int_to_tid(entry->tid, &tid);
	lsm_keyspace_form(ks, values, isnull, &tid, &again);
	if (ks->encoded)
		expect(again.keylen == entry->keylen && memcmp(again.key, entry->key, again.keylen) == 0);
	expect(lsm_key_compare(ks, entry, entry) == 0);
	if (!ks->encoded)
		lsm_hash_tuple_key(ks, entry, ks->nkeys, hashes);
}

void
fuzz_target(Input *in)
{
	uint16		seed = take16(in);
	LsmEntry	entry = {.tid = take_bits(in, 8)};
	uint32		keylen = take16(in);
	uint32		restlen = LSM_MAX_ENTRY_SIZE;
	uint8	   *aligned;
	LsmDetails	details = {NULL, NULL};
	const uint8 *included = NULL;
	LsmKeySpace *ks;
	BlockNumber virtual_pages[LSM_KEY_PAGES];
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	keylen = Min(keylen, LSM_MAX_ENTRY_SIZE);
	pick_seed(seed);
	rows_index(&the_index, 3);
	ks = the_index.ks;
	entry.key = take_copy(in, &keylen);
	entry.keylen = keylen;
	entry.rest = take_copy(in, &restlen);
	entry.restlen = Min(restlen, LSM_MAX_ENTRY_SIZE - keylen);
	if (ks->encoded)
	{
		if (!ks->has_rest || lsm_rest_split(ks, &entry, &details, &included))
			check_columns(&entry, details);
		(void) lsm_pages_of_key(ks, &entry, virtual_pages);
		(void) lsm_hash_key(ks, &entry, ks->nkeys);
	}
	/* As cursors return keys. */
	aligned = palloc0(keylen + LSM_KEY_PAD);
	memcpy(aligned, entry.key, keylen);
	entry.key = aligned;
	entry.aligned = true;
	if (passes_verifier(&entry))
		check_sound_entry(&entry);
	/* Tuples are trusted: the page's checksum vouches for them. */
	else if (ks->encoded && ks->natts == ks->nkeys)
	{
		lsm_keyspace_deform(ks, &entry, ks->natts, values, isnull);
		for (int i = 0; i < ks->nkeys; i++)
			check_value(&ks->columns[i], i, values[i], isnull[i], false);
	}
}
