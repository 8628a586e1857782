/*
 * core.c
 *	  The part of PostgreSQL that keys and scan keys call, without a server.
 *
 * Implements index tuples, arrays, texts and function calls as core documents them, in the simplest
 * way that works: no TOAST, no catalogs.  Functions have numbers, and types.c defines what each
 * function does.
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "backend.h"
#include "catalog/pg_collation.h"
#include "common/hashfn.h"
#include "core.h"
#include "fmgr.h"
#include "key/collation.h"
#include "key/hashable.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "props.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

MemoryContext TopMemoryContext;

volatile uint32 InterruptHoldoffCount = 0;
volatile sig_atomic_t InterruptPending = false;

void
ProcessInterrupts(void)
{
}

/* --- memory: see backend.c --------------------------------------------------------- */

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return palloc(size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return palloc0(size);
}

void *
repalloc_huge(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

char *
pstrdup(const char *string)
{
	return strcpy(palloc(strlen(string) + 1), string);
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size least, Size first,
							  Size most)
{
	return CurrentMemoryContext;
}

#if PG_VERSION_NUM >= 160000
MemoryContext
GetMemoryChunkContext(void *pointer)
{
	return CurrentMemoryContext;
}
#endif

void
MemoryContextReset(MemoryContext context)
{
}

void
MemoryContextDelete(MemoryContext context)
{
}

/* --- errors: see errfinish in backend.c ------------------------------------------ */

int
errcode(int sqlerrcode)
{
	return 0;
}

int
errmsg(const char *fmt,...)
{
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

/* --- transactions, for the nesting of comparisons --------------------------------- */

int
GetCurrentTransactionNestLevel(void)
{
	return 1;
}

void
RegisterXactCallback(XactCallback callback, void *arg)
{
}

void
RegisterSubXactCallback(SubXactCallback callback, void *arg)
{
}

char *
get_rel_name(Oid relid)
{
	return pstrdup("index");
}

/* --- values of any length ----------------------------------------------------------- */

struct varlena *
pg_detoast_datum(struct varlena *datum)
{
	return datum;
}

/* Sometimes returns a copy, as if the value had been compressed. */
struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return pick(8) == 0 ? memcpy(palloc(VARSIZE_ANY(datum)), datum, VARSIZE_ANY(datum)) : datum;
}

text *
cstring_to_text_with_len(const char *string, int len)
{
	text	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), string, len);
	return result;
}

text *
cstring_to_text(const char *string)
{
	return cstring_to_text_with_len(string, strlen(string));
}

char *
text_to_cstring(const text *t)
{
	uint32		len = VARSIZE_ANY_EXHDR(t);
	char	   *result = palloc(len + 1);

	memcpy(result, VARDATA_ANY(t), len);
	result[len] = 0;
	return result;
}

static Size
size_of(Datum value, int length)
{
	return length == -1 ? VARSIZE_ANY(DatumGetPointer(value)) : (Size) length;
}

Datum
datumCopy(Datum value, bool byval, int length)
{
	Size		size;

	if (byval)
		return value;
	size = size_of(value, length);
	return PointerGetDatum(memcpy(palloc(size), DatumGetPointer(value), size));
}

/* --- arrays --------------------------------------------------------------------------- */

typedef struct FakeArray
{
	ArrayType	header;
	int			count;
	const Datum *values;
	const bool *isnull;
} FakeArray;

Datum
core_make_array(Oid type, const Datum *values, const bool *isnull, int count)
{
	FakeArray  *array = palloc0(sizeof(FakeArray));

	SET_VARSIZE(array, sizeof(FakeArray));
	array->header.elemtype = type;
	array->count = count;
	array->values = values;
	array->isnull = isnull;
	return PointerGetDatum(array);
}

void
deconstruct_array(ArrayType *array, Oid type, int length, bool byval, char align,
				  Datum **values, bool **isnull, int *count)
{
	FakeArray  *fake = (FakeArray *) array;

	*count = fake->count;
	*values = palloc((fake->count + 1) * sizeof(Datum));
	*isnull = palloc(fake->count + 1);
	memcpy(*values, fake->values, fake->count * sizeof(Datum));
	memcpy(*isnull, fake->isnull, fake->count);
}

void
get_typlenbyvalalign(Oid type, int16 *length, bool *byval, char *align)
{
	*length = 0;
	*byval = false;
	*align = 0;
}

/* --- functions -------------------------------------------------------------------------- */

static Datum
any_function(PG_FUNCTION_ARGS)
{
	return core_call(fcinfo->flinfo->fn_oid, fcinfo->fncollation, PG_GETARG_DATUM(0),
					 PG_GETARG_DATUM(1));
}

void
fmgr_info(Oid function, FmgrInfo *info)
{
	memset(info, 0, sizeof(FmgrInfo));
	info->fn_oid = function;
	info->fn_nargs = 2;
	info->fn_strict = true;
	info->fn_addr = any_function;
}

void
fmgr_info_copy(FmgrInfo *to, FmgrInfo *from, MemoryContext context)
{
	*to = *from;
}

Datum
FunctionCall2Coll(FmgrInfo *info, Oid collation, Datum left, Datum right)
{
	LOCAL_FCINFO(fcinfo, 2);

	InitFunctionCallInfoData(*fcinfo, info, 2, collation, NULL, NULL);
	fcinfo->args[0].value = left;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = right;
	fcinfo->args[1].isnull = false;
	return FunctionCallInvoke(fcinfo);
}

Oid
get_opfamily_proc(Oid family, Oid left, Oid right, int16 number)
{
	return number == 1 ? core_order_function(family, left, right) : InvalidOid;
}

/* There are no domains. */
Oid
getBaseTypeAndTypmod(Oid type, int32 *typmod)
{
	return type;
}

FmgrInfo *
index_getprocinfo(Relation index, AttrNumber attribute, uint16 number)
{
	return &index->rd_supportinfo[attribute - 1];
}

RegProcedure
index_getprocid(Relation index, AttrNumber attribute, uint16 number)
{
	return index->rd_supportinfo[attribute - 1].fn_oid;
}

/* No function has class options. */
void *
copyObjectImpl(const void *from)
{
	return NULL;
}

/* No catalog has rows. */
CatCList *
SearchSysCacheList(int cache, int keys, Datum key1, Datum key2, Datum key3)
{
	static CatCList none;

	return &none;
}

void
ReleaseCatCacheList(CatCList *list)
{
}

/* In place of key/collation.c, which reads catalogs. */
bool
lsm_collation_is_bytewise(Oid collation)
{
	return collation == C_COLLATION_OID;
}

/* The encoding is UTF-8. */
int
pg_mbstrlen_with_len(const char *string, int len)
{
	int			count = 0;

	for (int i = 0; i < len; i++)
		count += (string[i] & 0xC0) != 0x80;
	return count;
}

bool
datumIsEqual(Datum a, Datum b, bool byval, int length)
{
	if (byval)
		return a == b;
	return size_of(a, length) == size_of(b, length) &&
		memcmp(DatumGetPointer(a), DatumGetPointer(b), size_of(a, length)) == 0;
}

/* --- abbreviations, as varlena.c makes them ------------------------------------------- */

Datum
DirectFunctionCall1Coll(PGFunction function, Oid collation, Datum value)
{
	LOCAL_FCINFO(fcinfo, 1);

	InitFunctionCallInfoData(*fcinfo, NULL, 1, collation, NULL, NULL);
	fcinfo->args[0].value = value;
	fcinfo->args[0].isnull = false;
	return function(fcinfo);
}

static Datum
abbreviate_folded(Datum original, SortSupport ssup)
{
	const char *text = VARDATA_ANY(original);
	uint64		result = 0;

	for (int i = 0; i < 8; i++)
		result = result << 8 |
			(i < VARSIZE_ANY_EXHDR(original) ? (uint8) pg_ascii_tolower(text[i]) : 0);
	return UInt64GetDatum(result);
}

Datum
bttextsortsupport(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	if (ssup->abbreviate && ssup->ssup_collation == DEFAULT_COLLATION_OID)
		ssup->abbrev_converter = abbreviate_folded;
	PG_RETURN_VOID();
}

Datum
bpchar_sortsupport(PG_FUNCTION_ARGS)
{
	PG_RETURN_VOID();
}

/* --- hash functions, in place of hashable.c ----------------------------------------------- */

/* The only type here without an encoding: strings that ignore case. */
static Datum
hash_folded(PG_FUNCTION_ARGS)
{
	struct varlena *value = (struct varlena *) PG_GETARG_POINTER(0);
	uint32		len = VARSIZE_ANY_EXHDR(value);
	uint8	   *folded = palloc(len + 1);

	for (uint32 i = 0; i < len; i++)
		folded[i] = pg_ascii_tolower(VARDATA_ANY(value)[i]);
	return UInt64GetDatum(hash_bytes_extended(folded, len, PG_GETARG_INT64(1)));
}

Datum
FunctionCall1Coll(FmgrInfo *info, Oid collation, Datum value)
{
	return FunctionCall2Coll(info, collation, value, Int64GetDatum(0));
}

int
bpchartruelen(char *string, int length)
{
	while (length > 0 && string[length - 1] == ' ')
		length--;
	return length;
}

/* Some columns have no hash function. */
void
lsm_hashable_choose(LsmColumn *columns, int count, LsmKeyCoding *coding)
{
	for (int i = 0; i < count; i++)
		coding->hashes[i] = chance(8) ? LSM_HASH_NONE :
			columns[i].encoding != LSM_ENC_NONE ? LSM_HASH_BYTES :
			chance(2) ? LSM_HASH_STANDARD : LSM_HASH_EXTENDED;
}

void
lsm_hashable_init(LsmHashing *hashing, LsmColumn *columns, int count, const LsmKeyCoding *coding)
{
	for (int i = count; i-- > 0;)
	{
		columns[i].hash_kind = coding->hashes[i];
		columns[i].hash.fn_addr = hash_folded;
		if (coding->hashes[i] != LSM_HASH_NONE)
			hashing->least_columns = i + 1;
	}
}

void
lsm_hashable_copy(LsmHashing *hashing, LsmColumn *columns)
{
}

bool
lsm_hashable_recheck(LsmHashing *hashing)
{
	return true;
}

/* --- index tuples ------------------------------------------------------------------------- */

static void
forget_offset(TupleDesc desc, int i)
{
#if PG_VERSION_NUM >= 180000
	TupleDescCompactAttr(desc, i)->attcacheoff = -1;
#else
	TupleDescAttr(desc, i)->attcacheoff = -1;
#endif
}

#if PG_VERSION_NUM >= 180000
void
verify_compact_attribute(TupleDesc desc, int i)
{
}
#endif

TupleDesc
CreateTemplateTupleDesc(int natts)
{
	/* Room for the extra fields that some versions keep of an attribute. */
	TupleDesc	desc = palloc0(sizeof(struct TupleDescData) +
							   natts * 2 * sizeof(FormData_pg_attribute));

	desc->natts = natts;
	return desc;
}

void
TupleDescCopyEntry(TupleDesc to, AttrNumber to_number, TupleDesc from, AttrNumber from_number)
{
	memcpy(TupleDescAttr(to, to_number - 1), TupleDescAttr(from, from_number - 1),
		   sizeof(FormData_pg_attribute));
	forget_offset(to, to_number - 1);
}

TupleDesc
CreateTupleDescCopy(TupleDesc from)
{
	TupleDesc	copy = CreateTemplateTupleDesc(from->natts);

	for (int i = 1; i <= from->natts; i++)
		TupleDescCopyEntry(copy, i, from, i);
	return copy;
}

/* Put a value in its place in a tuple. A value with a short header gets no padding. */
static char *
put_attribute(Form_pg_attribute att, Datum value, char *start, char *to)
{
	char	   *from = DatumGetPointer(value);
	uint32		len;

	if (att->attlen == -1 && (VARATT_IS_SHORT(from) || VARATT_CAN_MAKE_SHORT(from)))
	{
		len = VARSIZE_ANY_EXHDR(from);
		SET_VARSIZE_SHORT(to, len + VARHDRSZ_SHORT);
		memcpy(VARDATA_SHORT(to), VARDATA_ANY(from), len);
		return to + len + VARHDRSZ_SHORT;
	}
	to = start + att_align_nominal(to - start, att->attalign);
	if (att->attbyval)
	{
		store_att_byval(to, value, att->attlen);
		return to + att->attlen;
	}
	memcpy(to, from, size_of(value, att->attlen));
	return to + size_of(value, att->attlen);
}

#if PG_VERSION_NUM >= 170000
#define CONST const
#else
#define CONST
#endif

IndexTuple
index_form_tuple(TupleDesc desc, CONST Datum *values, CONST bool *isnull)
{
	Size		size = MAXALIGN(sizeof(IndexTupleData) + sizeof(IndexAttributeBitMapData));
	bool		nulls = false;
	IndexTuple	tuple;
	char	   *start;
	char	   *to;

	for (int i = 0; i < desc->natts; i++)
	{
		nulls |= isnull[i];
		if (!isnull[i])
			size += MAXIMUM_ALIGNOF + size_of(values[i], TupleDescAttr(desc, i)->attlen);
	}
	tuple = palloc0(MAXALIGN(size));
	to = start = (char *) tuple + IndexInfoFindDataOffset(nulls ? INDEX_NULL_MASK : 0);
	for (int i = 0; i < desc->natts; i++)
	{
		if (isnull[i])
			continue;
		if (nulls)
			((bits8 *) (tuple + 1))[i / 8] |= 1 << (i % 8);
		to = put_attribute(TupleDescAttr(desc, i), values[i], start, to);
	}
	tuple->t_info = MAXALIGN(to - (char *) tuple) | (nulls ? INDEX_NULL_MASK : 0);
	return tuple;
}

Datum
nocache_index_getattr(IndexTuple tuple, int number, TupleDesc desc)
{
	char	   *start = (char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	Size		offset = 0;

	for (int i = 0;; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (IndexTupleHasNulls(tuple) && att_isnull(i, (bits8 *) (tuple + 1)))
			continue;
		/* Padding is zero, a short header is not. */
		if (att->attlen != -1 || start[offset] == 0)
			offset = att_align_nominal(offset, att->attalign);
		if (i == number - 1)
			return fetch_att(start + offset, att->attbyval, att->attlen);
		offset += size_of(PointerGetDatum(start + offset), att->attlen);
	}
}
