/*
 * options.c
 *	  Defines and reads the storage parameters of an lsm index.
 *
 * The parameters of btree are accepted, so that index definitions can be reused.  They have no
 * effect, because pages of runs are always full, and equal keys always share their bytes.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "base/limits.h"
#include "base/options.h"
#include "utils/rel.h"

typedef struct LsmOptions
{
	int32		vl_len_;
	int			merge_fanout;	/* 0: use the setting */
	int			filter_bits;	/* -1: use the default */
	int			filter_prefix;	/* LSM_USEFUL_PREFIXES: the default */
	int			fillfactor;
	bool		deduplicate_items;
	bool		lsm;			/* for constraints, see planner/constraint.c */
} LsmOptions;

static relopt_kind lsm_relopt_kind;

static const relopt_parse_elt parameters[] = {
	{"merge_fanout", RELOPT_TYPE_INT, offsetof(LsmOptions, merge_fanout)},
	{"filter_bits", RELOPT_TYPE_INT, offsetof(LsmOptions, filter_bits)},
	{"filter_prefix", RELOPT_TYPE_INT, offsetof(LsmOptions, filter_prefix)},
	{"fillfactor", RELOPT_TYPE_INT, offsetof(LsmOptions, fillfactor)},
	{"deduplicate_items", RELOPT_TYPE_BOOL, offsetof(LsmOptions, deduplicate_items)},
	{"lsm", RELOPT_TYPE_BOOL, offsetof(LsmOptions, lsm)},
};

/* Define the parameters.  Called when the library is loaded. */
void
lsm_options_init(void)
{
	lsm_relopt_kind = add_reloption_kind();
	add_int_reloption(lsm_relopt_kind, "merge_fanout",
					  "Number of runs of a level that are merged into one of the next level",
					  0, LSM_MIN_FANOUT, LSM_MAX_FANOUT, ShareUpdateExclusiveLock);
	add_int_reloption(lsm_relopt_kind, "filter_bits",
					  "Bits for each key in the filters; 0 means no filters, -1 means the default",
					  -1, -1, LSM_MAX_FILTER_BITS, ShareUpdateExclusiveLock);
	add_int_reloption(lsm_relopt_kind, "filter_prefix",
					  "Number of leading columns that filters also cover; 0 means none, -1 means as many as are useful",
					  LSM_USEFUL_PREFIXES, LSM_USEFUL_PREFIXES, INDEX_MAX_KEYS - 1,
					  ShareUpdateExclusiveLock);
	add_int_reloption(lsm_relopt_kind, "fillfactor",
					  "Accepted for compatibility with btree; has no effect",
					  90, 10, 100, ShareUpdateExclusiveLock);
	add_bool_reloption(lsm_relopt_kind, "deduplicate_items",
					   "Accepted for compatibility with btree; has no effect",
					   true, ShareUpdateExclusiveLock);
	add_bool_reloption(lsm_relopt_kind, "lsm",
					   "Makes the index of a constraint an lsm index",
					   false, ShareUpdateExclusiveLock);
}

bytea *
lsm_options_parse(Datum reloptions, bool validate)
{
	return (bytea *) build_reloptions(reloptions, validate, lsm_relopt_kind,
									  sizeof(LsmOptions), parameters, lengthof(parameters));
}

/* Is this the name of a storage parameter? */
bool
lsm_options_has(const char *name)
{
	for (int i = 0; i < lengthof(parameters); i++)
	{
		if (strcmp(parameters[i].optname, name) == 0)
			return true;
	}
	return false;
}

/* Does this lsm index have the storage parameter that makes pg_dump restore a key with lsm? */
bool
lsm_has_key_parameter(Relation index)
{
	LsmOptions *options = (LsmOptions *) index->rd_options;

	return options != NULL && options->lsm;
}

/* Returns how many runs of a level are merged into one run of the next level. */
int
lsm_fanout(Relation index)
{
	LsmOptions *options = (LsmOptions *) index->rd_options;

	if (options != NULL && options->merge_fanout != 0)
		return options->merge_fanout;
	/* A unique index searches all runs for each new key, so fewer runs are worth more merging. */
	if (index->rd_index->indisunique)
		return Max(lsm_merge_fanout / 2, LSM_MIN_FANOUT);
	return lsm_merge_fanout;
}

/* Returns the bits per key of the filters; 0 means no filters. */
int
lsm_filter_bits(Relation index)
{
	LsmOptions *options = (LsmOptions *) index->rd_options;

	if (options != NULL && options->filter_bits >= 0)
		return options->filter_bits;
	return index->rd_index->indisunique ? LSM_UNIQUE_FILTER_BITS : LSM_FILTER_BITS;
}

/*
 * Returns the number of columns in the longest prefix that filters cover, less than key_columns.
 * Sets *if_worth if filters may cover fewer (see lsm_prefixes_limit).
 */
int
lsm_filter_prefix(Relation index, int key_columns, bool *if_worth)
{
	LsmOptions *options = (LsmOptions *) index->rd_options;
	int			most = key_columns - 1;

	*if_worth = options == NULL || options->filter_prefix == LSM_USEFUL_PREFIXES;
	return *if_worth ? most : Min(options->filter_prefix, most);
}
