/*
 * plan.c
 *	  What the planner asks: costs, height; and storage parameters.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "am/am.h"
#include "manifest/manifest.h"
#include "utils/index_selfuncs.h"

/*
 * Costs are a btree's: the shape of the index, a sorted sequence of leaves, is
 * the same to the planner, and so the same query gets the same plan.
 */
void
lsm_am_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
					 Cost *startup_cost, Cost *total_cost,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
}

/* Fence pages above a leaf, in the highest run.  18 and later ask. */
int
lsm_am_tree_height(Relation index)
{
	LsmVersion *version = lsm_version_read(index, NULL);
	int			height = 0;

	for (uint32 i = 0; i < version->run_count; i++)
		height = Max(height, version->runs[i].height);
	pfree(version);
	return height;
}

static relopt_kind lsm_relopt_kind;

typedef struct LsmOptions
{
	int32		vl_len_;
	int			fillfactor;
	bool		deduplicate_items;
} LsmOptions;

/*
 * Btree's storage parameters are accepted so that definitions can be moved
 * over.  They have no effect: runs are always full, and equal keys always
 * share their bytes.
 */
void
lsm_options_init(void)
{
	lsm_relopt_kind = add_reloption_kind();
	add_int_reloption(lsm_relopt_kind, "fillfactor",
					  "Accepted for compatibility with btree; has no effect",
					  90, 10, 100, ShareUpdateExclusiveLock);
	add_bool_reloption(lsm_relopt_kind, "deduplicate_items",
					   "Accepted for compatibility with btree; has no effect",
					   true, ShareUpdateExclusiveLock);
}

bytea *
lsm_am_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"fillfactor", RELOPT_TYPE_INT, offsetof(LsmOptions, fillfactor)},
		{"deduplicate_items", RELOPT_TYPE_BOOL, offsetof(LsmOptions, deduplicate_items)},
	};

	return (bytea *) build_reloptions(reloptions, validate, lsm_relopt_kind,
									  sizeof(LsmOptions), table, lengthof(table));
}
