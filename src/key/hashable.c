/*
 * hashable.c
 *	  Chooses hash functions that fit the operator classes of an index, and tracks what their
 *	  results depend on.
 *
 * If a column has an encoding, we hash the encoding.  Otherwise we use the hash function that
 * belongs to the "=" operator of the column's class.  So equal values have equal hashes.  The
 * choice is made when the index is built, and is kept on the meta page.  Filters on disk must stay
 * usable when a type later gets a hash function, or an extended one.
 *
 * Arrays, ranges and composites hash their elements with the default function of the element's
 * type.  Such a column is hashed only if all elements can be hashed.  Its hashes depend on these
 * functions and on the attributes of composites.  The hashes of strings under a nondeterministic
 * collation depend on the version of the ICU library, since core hashes sort keys.  A number, the
 * *fingerprint*, summarizes what hashes depend on.  ALTER TYPE may add or drop an attribute, and
 * another version of ICU may make different sort keys.  Then old values get new hashes, and the
 * fingerprint differs from that on the meta page.  In this case filters are neither tested nor
 * built until REINDEX.
 *
 * We use a user's hash function only if it is written in C.  The owner of a function in SQL or
 * PL/pgSQL may replace it at any time, and then it might return different hashes in the middle of a
 * statement.  A fingerprint includes the names and symbols of users' functions instead of their
 * OIDs, since pg_upgrade changes the OIDs.  As with hash indexes, whoever changes a library must
 * make sure that its functions still return the same results.
 */
#include "postgres.h"

#include "access/hash.h"
#include "access/nbtree.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "base/compat.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "key/hashable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* What the hashes of the columns visited so far depend on. */
typedef struct Walk
{
	bool		extended;		/* the function is extended, and so are those of its elements */
	uint32		fingerprint;
	int			type_count;
	int			room;
	LsmHashedType *types;
} Walk;

static bool note_element(Walk *w, Oid type, Oid collation);

static void
note_number(Walk *w, uint32 number)
{
	w->fingerprint = hash_combine(w->fingerprint, hash_bytes_uint32(number));
}

static void
note_composite_type(Walk *w, Oid type)
{
	if (w->type_count == w->room)
	{
		w->room = Max(4, 2 * w->room);
		w->types = w->types ? repalloc(w->types, w->room * sizeof(LsmHashedType)) :
			palloc(w->room * sizeof(LsmHashedType));
	}
	w->types[w->type_count].type = type;
	w->types[w->type_count].definition = assign_record_type_identifier(type, -1);
	w->type_count++;
}

/*
 * Note a string, unless it is NULL.  A catalog column that an older version lacks is NULL after an
 * upgrade, so the fingerprint stays the same.
 */
static void
note_string(Walk *w, const char *string)
{
	if (string != NULL)
		note_number(w, hash_bytes((const unsigned char *) string, (int) strlen(string)));
}

/* Returns a text attribute of a row of a catalog, or NULL. */
static const char *
catalog_text(int cache, HeapTuple tuple, AttrNumber number)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(cache, tuple, number, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* Note a user's function.  Returns false if the function is not written in C. */
static bool
note_user_function(Walk *w, Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		is_compiled;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	is_compiled = form->prolang == ClanguageId || form->prolang == INTERNALlanguageId;
	note_string(w, NameStr(form->proname));
	note_string(w, catalog_text(PROCOID, tuple, Anum_pg_proc_prosrc));
	ReleaseSysCache(tuple);
	return is_compiled;
}

/* Note what the sort keys of a nondeterministic collation depend on. */
static void
note_collation(Walk *w, Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	const char *locale;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	locale = catalog_text(COLLOID, tuple, Anum_pg_collation_colllocale);
	note_string(w, locale);
#ifdef Anum_pg_collation_collicurules
	note_string(w, catalog_text(COLLOID, tuple, Anum_pg_collation_collicurules));
#endif
	if (locale != NULL)
		note_string(w, get_collation_actual_version(((Form_pg_collation) GETSTRUCT(tuple))->collprovider,
													locale));
	ReleaseSysCache(tuple);
}

/* Note the attributes of a composite type.  Returns false if some cannot be hashed. */
static bool
note_attributes(Walk *w, Oid type)
{
	TupleDesc	desc;
	bool		hashable = true;

	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		return false;
	note_composite_type(w, type);
	desc = lookup_rowtype_tupdesc(type, -1);
	note_number(w, desc->natts);
	for (int i = 0; i < desc->natts && hashable; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		note_number(w, att->attisdropped);
		if (!att->attisdropped)
			hashable = note_element(w, att->atttypid, att->attcollation);
	}
	ReleaseTupleDesc(desc);
	return hashable;
}

/*
 * Note the bounds of a range.  Returns false if the bounds cannot be hashed, or if the range does
 * not compare them with the default function of their type.
 */
static bool
note_bounds(Walk *w, Oid range)
{
	TypeCacheEntry *type = lookup_type_cache(range, TYPECACHE_RANGE_INFO);
	TypeCacheEntry *bound;

	if (type->rngelemtype == NULL)
		return false;
	bound = lookup_type_cache(type->rngelemtype->type_id, TYPECACHE_CMP_PROC);
	return type->rng_cmp_proc_finfo.fn_oid == bound->cmp_proc &&
		note_element(w, bound->type_id, type->rng_collation);
}

/*
 * Does a hash function respect which strings its collation treats as equal?  A deterministic
 * collation treats only equal bytes as equal.  For a nondeterministic collation we trust only
 * functions that we know, and note the collation.  hashname() and the functions of citext ignore
 * the collation.  Before PostgreSQL 16, hashbpcharextended() counts trailing blanks.
 */
static bool
heeds_collation(Walk *w, Oid function, Oid collation)
{
	if (!OidIsValid(collation) || get_collation_isdeterministic(collation))
		return true;
	note_collation(w, collation);
	return function == F_HASHTEXT || function == F_HASHTEXTEXTENDED || function == F_HASHBPCHAR;
}

/*
 * Note a hash function of a type and the functions that it calls.  Returns false if some values of
 * the type cannot be hashed, or if equal values may have different hashes.
 */
static bool
note_function(Walk *w, Oid function, Oid type, Oid collation)
{
	check_stack_depth();
	if (function < FirstNormalObjectId)
		note_number(w, function);
	else if (!note_user_function(w, function))
		return false;
	switch (function)
	{
		case F_HASH_ARRAY:
		case F_HASH_ARRAY_EXTENDED:
			return note_element(w, get_element_type(type), collation);
		case F_HASH_RECORD:
		case F_HASH_RECORD_EXTENDED:
			return note_attributes(w, type);
		case F_HASH_RANGE:
		case F_HASH_RANGE_EXTENDED:
			return note_bounds(w, type);
		case F_HASH_MULTIRANGE:
		case F_HASH_MULTIRANGE_EXTENDED:
			return note_bounds(w, get_multirange_range(type));
		default:
			return heeds_collation(w, function, collation);
	}
}

/*
 * Note the type of elements.  Core hashes and compares elements with the type's default classes.
 * It looks these up again while a statement runs, so users' classes will not do: they may be
 * replaced.
 */
static bool
note_element(Walk *w, Oid type, Oid collation)
{
	TypeCacheEntry *cache;
	Oid			function;

	if (!OidIsValid(type))
		return false;
	type = getBaseType(type);
	/* Core finds a hash function only if the function belongs to the type's "=". */
	cache = lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_CMP_PROC |
							  (w->extended ? TYPECACHE_HASH_EXTENDED_PROC : TYPECACHE_HASH_PROC));
	function = w->extended ? cache->hash_extended_proc : cache->hash_proc;
	return OidIsValid(function) && function < FirstNormalObjectId &&
		OidIsValid(cache->eq_opr) && OidIsValid(cache->cmp_proc) &&
		note_function(w, function, type, collation);
}

/*
 * Returns the standard or extended hash function that belongs to a column's "=".  Any family with
 * the operator is suitable.  Taking the lowest OID makes the choice deterministic.
 */
static Oid
find_function(const LsmColumn *column, int number)
{
	Oid			equal = get_opfamily_member(column->opfamily, column->opcintype,
											column->opcintype, BTEqualStrategyNumber);
	Oid			found = InvalidOid;
	CatCList   *uses;

	if (!OidIsValid(equal))
		return InvalidOid;
	uses = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(equal));
	for (int i = 0; i < uses->n_members; i++)
	{
		Form_pg_amop use = (Form_pg_amop) GETSTRUCT(&uses->members[i]->tuple);
		Oid			function;

		if (use->amopmethod != HASH_AM_OID || use->amopstrategy != HTEqualStrategyNumber ||
			use->amoplefttype != use->amoprighttype)
			continue;
		function = get_opfamily_proc(use->amopfamily, use->amoplefttype, use->amoplefttype,
									 number);
		if (OidIsValid(function) && (!OidIsValid(found) || function < found))
			found = function;
	}
	ReleaseSysCacheList(uses);
	return found;
}

/* A hash function for a pseudo-type may hash elements.  Do we know which, if any, it hashes? */
static bool
is_known_function(Oid function)
{
	switch (function)
	{
		case F_HASH_ARRAY:
		case F_HASH_ARRAY_EXTENDED:
		case F_HASH_RECORD:
		case F_HASH_RECORD_EXTENDED:
		case F_HASH_RANGE:
		case F_HASH_RANGE_EXTENDED:
		case F_HASH_MULTIRANGE:
		case F_HASH_MULTIRANGE_EXTENDED:
		case F_HASHENUM:
		case F_HASHENUMEXTENDED:
			return true;
		default:
			return false;
	}
}

/* Find a column's hash function of this kind, and note it.  If there is none, notes nothing. */
static Oid
find_column_function(Walk *w, const LsmColumn *column, LsmHashKind kind)
{
	Walk		before = *w;
	Oid			function = find_function(column, kind == LSM_HASH_EXTENDED ? HASHEXTENDED_PROC :
										 HASHSTANDARD_PROC);

	w->extended = kind == LSM_HASH_EXTENDED;
	if (OidIsValid(function) &&
		(get_typtype(column->opcintype) != TYPTYPE_PSEUDO || is_known_function(function)) &&
		note_function(w, function, getBaseType(column->type), column->collation))
		return function;
	w->fingerprint = before.fingerprint;
	w->type_count = before.type_count;
	return InvalidOid;
}

/* Note whether we can hash strings ourselves, because their hash function uses only the bytes. */
static void
note_string_function(LsmColumn *column)
{
	bool		deterministic = OidIsValid(column->collation) &&
		get_collation_isdeterministic(column->collation);

	column->hashes_string = deterministic && column->hash.fn_oid == F_HASHTEXTEXTENDED;
	column->hashes_trimmed = deterministic && column->hash.fn_oid == F_HASHBPCHAREXTENDED;
}

/*
 * Set a column's hash function of this kind, and note what the function's results depend on.
 * Returns false if there is none.
 */
static bool
set_hash(Walk *w, LsmColumn *column, LsmHashKind kind)
{
	int			types = w->type_count;

	column->hash_kind = LSM_HASH_NONE;
	column->hash_may_change = false;
	if (kind == LSM_HASH_BYTES)
	{
		if (column->encoding == LSM_ENC_NONE)
			return false;
		note_number(w, column->encoding);
	}
	else
	{
		Oid			function = find_column_function(w, column, kind);

		if (!OidIsValid(function))
			return false;
		fmgr_info(function, &column->hash);
		note_string_function(column);
	}
	column->hash_kind = kind;
	column->hash_may_change = w->type_count > types;
	return true;
}

/*
 * Choose how the columns of a new index are hashed.  The fingerprint depends on all hashed columns.
 */
void
lsm_hashable_choose(LsmColumn *columns, int count, LsmKeyCoding *coding)
{
	Walk		w = {0};

	for (int i = 0; i < count; i++)
	{
		if (!set_hash(&w, &columns[i], LSM_HASH_BYTES) &&
			!set_hash(&w, &columns[i], LSM_HASH_EXTENDED))
			(void) set_hash(&w, &columns[i], LSM_HASH_STANDARD);
		coding->hashes[i] = columns[i].hash_kind;
	}
	coding->hash_fingerprint = w.fingerprint;
	if (w.types)
		pfree(w.types);
}

/*
 * Find the hash functions of these kinds, and what their results depend on now.  A column whose
 * function is gone is no longer hashed, which changes the fingerprint.
 *
 * REQUIRES: *w is empty.
 */
static void
find_hashes(Walk *w, LsmColumn *columns, int count, const uint8 *kinds)
{
	for (int i = 0; i < count; i++)
	{
		if (kinds[i] == LSM_HASH_NONE)
			columns[i].hash_kind = LSM_HASH_NONE;
		else if (!set_hash(w, &columns[i], kinds[i]))
			note_number(w, 0);
	}
}

/*
 * Set the hash functions of an index's columns, in the current memory context.  If the hashes may
 * differ from those with which the index was written, filters are not used.
 */
void
lsm_hashable_init(LsmHashing *hashing, LsmColumn *columns, int count, const LsmKeyCoding *coding)
{
	Walk		w = {0};

	memset(hashing, 0, sizeof(LsmHashing));
	find_hashes(&w, columns, count, coding->hashes);
	hashing->fingerprint = coding->hash_fingerprint;
	hashing->columns = columns;
	hashing->count = count;
	hashing->types = w.types;
	hashing->type_count = w.type_count;
	hashing->outdated = w.fingerprint != coding->hash_fingerprint;
	if (hashing->outdated)
		return;
	for (int i = count; i-- > 0;)
	{
		if (columns[i].hash_kind != LSM_HASH_NONE)
			hashing->least_columns = i + 1;
	}
}

/* Make a copied LsmHashing refer to a copy of the columns. */
void
lsm_hashable_copy(LsmHashing *hashing, LsmColumn *columns)
{
	Size		size = hashing->type_count * sizeof(LsmHashedType);

	hashing->columns = columns;
	if (size > 0)
		hashing->types = memcpy(palloc(size), hashing->types, size);
}

/* Has the definition of a composite type changed? */
static bool
has_type_changed(const LsmHashing *hashing)
{
	for (int i = 0; i < hashing->type_count; i++)
	{
		if (assign_record_type_identifier(hashing->types[i].type, -1) !=
			hashing->types[i].definition)
			return true;
	}
	return false;
}

/* lsm_hashing_holds for columns whose hashes may change. */
bool
lsm_hashable_recheck(LsmHashing *hashing)
{
	LsmColumn  *copies;
	uint8	   *kinds;
	Walk		w = {0};

	if (!has_type_changed(hashing))
		return true;
	/* Core renumbers a definition if anything about the type may have changed. */
	copies = palloc(hashing->count * sizeof(LsmColumn));
	kinds = palloc(hashing->count);
	memcpy(copies, hashing->columns, hashing->count * sizeof(LsmColumn));
	for (int i = 0; i < hashing->count; i++)
		kinds[i] = copies[i].hash_kind;
	find_hashes(&w, copies, hashing->count, kinds);
	if (w.fingerprint != hashing->fingerprint || w.type_count != hashing->type_count)
	{
		hashing->least_columns = 0;
		hashing->outdated = true;
	}
	else
		memcpy(hashing->types, w.types, w.type_count * sizeof(LsmHashedType));
	pfree(copies);
	pfree(kinds);
	if (w.types)
		pfree(w.types);
	return hashing->least_columns > 0;
}
