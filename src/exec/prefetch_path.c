/*
 * prefetch_path.c
 *	  Plans prefetching scans.
 *
 * When core has found the paths of a table, we add rivals of each index scan. A rival prefetches
 * pages: in index order, where the order is useful, or by page, as a bitmap scan does. The index
 * path is the child of its rival, and supplies the conditions, parameters and order. Core plans the
 * child. Where core considers parallel scans, each rival has a parallel variant.
 *
 * The rivals of an index-only scan are also index-only scans.
 *
 * prefetch_cost.c computes the costs of rivals.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "base/io_depth.h"
#include "base/limits.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "exec/prefetch.h"
#include "exec/prefetch_cost.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/spccache.h"

LsmPauseIndexScan lsm_prefetch_pause;

/* For tables with at least this many pages, it pays to ask core for index paths a second time. */
#define RECONSIDERED_PAGES 1024

/* How fast rounds grow if the query wants all rows, and if it may want fewer. */
#define FAST_GROWTH 1000000
#define SLOW_GROWTH 4


List *
lsm_prefetch_write_plan(const LsmPrefetchPlan *plan)
{
	return list_make4_int(plan->by_page, plan->depth, plan->growth, plan->forced);
}

void
lsm_prefetch_read_plan(List *list, LsmPrefetchPlan *plan)
{
	plan->by_page = linitial_int(list) != 0;
	plan->depth = lsecond_int(list);
	plan->growth = lthird_int(list);
	plan->forced = lfourth_int(list) != 0;
}

/* Returns whether the query wants too few rows for prefetching. */
static bool
wants_few_rows(PlannerInfo *root, RelOptInfo *rel, double fetched_per_row)
{
	return root->limit_tuples > 0 && root->limit_tuples * fetched_per_row <= LSM_RAMP_PAGES &&
		bms_equal(root->all_baserels, rel->relids);
}

/*
 * Returns whether we know how many concurrent requests this table's disk can serve. Before
 * PostgreSQL 18, a value of 1 may be just the default.
 */
static bool
concurrency_is_known(RelOptInfo *rel)
{
	return lsm_prefetch_depth > 0 || get_tablespace_io_concurrency(rel->reltablespace) != 1;
}

/*
 * Returns the paths that get rivals. Core forgets an index path as soon as another path is better.
 * If the better path scans a large table, planning costs little in comparison. So if the table is
 * large, and the disk is known to serve concurrent reads, we ask core for the index paths again.
 */
static List *
paths_to_rival(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *paths = rel->pathlist;
	List	   *partial_paths = rel->partial_pathlist;
	List	   *result;

	/* The first path is the cheapest. */
	if (rel->pages < RECONSIDERED_PAGES || rel->baserestrictinfo == NIL || paths == NIL ||
		!concurrency_is_known(rel) || ((Path *) linitial(paths))->pathtype != T_SeqScan || wants_few_rows(root, rel, 1))
		return paths;
	rel->pathlist = rel->partial_pathlist = NIL;
	create_index_paths(root, rel);
	result = list_concat_copy(rel->pathlist, paths);
	rel->pathlist = paths;
	rel->partial_pathlist = partial_paths;
	return result;
}

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);

	/*
	 * Remove the Result node, since a node above us also checks conditions that involve no column.
	 */
	if (IsA(child, Result))
		child = outerPlan(child);
	Assert(IsA(child, IndexScan) || IsA(child, IndexOnlyScan));
	/* Our node returns the child's rows. */
	child->targetlist = copyObject(tlist);
	child->startup_cost = path->path.startup_cost;
	child->total_cost = path->path.total_cost;

	scan->scan.plan.targetlist = tlist;
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	if (path->path.pathkeys != NIL && ExecSupportsBackwardScan(child))
		scan->flags |= CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	scan->custom_plans = list_make1(child);
	scan->custom_private = path->custom_private;
	scan->methods = &lsm_prefetch_scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = LSM_PREFETCH_NAME,
	.PlanCustomPath = plan_path,
};

/* Returns a prefetching path for an index path, with the costs of the index path. */
static CustomPath *
make_path(PlannerInfo *root, IndexPath *index_path, bool by_page, int depth)
{
	CustomPath *path = makeNode(CustomPath);
	LsmPrefetchPlan plan;

	plan.by_page = by_page;
	plan.depth = depth;
	/* A semijoin may stop at the first row of each inner scan. */
	plan.growth = root->tuple_fraction > 0 || index_path->path.param_info != NULL ?
		SLOW_GROWTH : FAST_GROWTH;
	plan.forced = lsm_debug_prefetch_scan;

	path->path.pathtype = T_CustomScan;
	path->path.parent = index_path->path.parent;
	path->path.pathtarget = index_path->path.pathtarget;
	path->path.param_info = index_path->path.param_info;
	path->path.parallel_aware = index_path->path.parallel_aware;
	path->path.parallel_safe = index_path->path.parallel_safe;
	path->path.parallel_workers = index_path->path.parallel_workers;
	path->path.rows = index_path->path.rows;
	path->path.startup_cost = index_path->path.startup_cost;
	path->path.total_cost = index_path->path.total_cost;
	path->path.pathkeys = by_page ? NIL : index_path->path.pathkeys;
	lsm_copy_disabled(&path->path, &index_path->path);
	path->custom_paths = list_make1(index_path);
	path->custom_private = lsm_prefetch_write_plan(&plan);
	path->methods = &path_methods;
	return path;
}

/* Returns whether the method handles arrays, or the conditions have none. */
static bool
knows_arrays(IndexPath *path)
{
	ListCell   *cell;

	if (path->indexinfo->amsearcharray)
		return true;
	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		ListCell   *qual;

		foreach(qual, clause->indexquals)
		{
			if (IsA(lfirst_node(RestrictInfo, qual)->clause, ScalarArrayOpExpr))
				return false;
		}
	}
	return true;
}

/*
 * Returns whether this is a B-tree or an lsm index.  We do not know what other methods do between
 * two TIDs.
 */
static bool
is_known_method(IndexOptInfo *index)
{
	return lsm_prefetch_is_btree(index) || lsm_prefetch_is_lsm(index);
}

/* Does the setting enable the scan for an index of this method? */
static bool
is_enabled_for(IndexOptInfo *index)
{
	switch ((LsmPrefetchScan) lsm_enable_prefetch_scan)
	{
		case LSM_PREFETCH_OFF:
			return false;
		case LSM_PREFETCH_LSM:
			return lsm_prefetch_is_lsm(index);
		case LSM_PREFETCH_ALL:
			return is_known_method(index);
	}
	return false;
}

static bool
is_index_only(const IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan;
}

/*
 * Returns whether index entries that were read ahead can become rows. Unknown methods may not
 * protect the TIDs that they return. B-trees store values of type name as C strings, which we do
 * not convert back.
 */
static bool
can_keep_entries(IndexOptInfo *index)
{
	for (int column = 0; column < index->nkeycolumns; column++)
	{
		if (index->opcintype[column] == NAMEOID)
			return false;
	}
	return is_known_method(index);
}

/*
 * Returns whether this scan can work by page. By page, an index-only scan takes columns from those
 * table rows that it must visit. It cannot compute expressions from them.
 */
static bool
can_come_by_page(const IndexPath *path)
{
	return !is_index_only(path) || path->indexinfo->indexprs == NIL;
}

static bool
can_prefetch(IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;

	if (!index->amhasgettuple || path->indexorderbys != NIL || index->hypothetical ||
		(index->indpred != NIL && !index->predOK) || !knows_arrays(path))
		return false;
	if (!lsm_debug_prefetch_scan && !is_enabled_for(index))
		return false;
	return !is_index_only(path) || can_keep_entries(index);
}

/*
 * Returns whether the query may be a cursor whose current row gets updated. If a row was not looked
 * up, we know only the root of its HOT chain, where UPDATE does not find the row after VACUUM.
 * (Core's index-only scans have the same limit.)
 */
static bool
may_have_current_row(PlannerInfo *root)
{
	/* WHERE CURRENT OF also finds the row of a table in a subquery. */
	for (; root != NULL; root = root->parent_root)
	{
		const Query *query = root->parse;

		if (query->commandType != CMD_SELECT || query->hasAggs || query->groupClause != NIL ||
			query->distinctClause != NIL || query->setOperations != NULL ||
			bms_membership(root->all_baserels) != BMS_SINGLETON)
			return false;
	}
	return true;
}

/*
 * Returns the index scan of a path. This is the path itself, or the only input of a bitmap scan.
 * If index entries do not suffice, turns an index-only input into a plain index scan. Returns NULL
 * if there is no such scan, or if the scan cannot prefetch.
 */
static IndexPath *
index_scan_of(PlannerInfo *root, Path *path)
{
	IndexPath  *result = (IndexPath *) path;

	if (IsA(path, BitmapHeapPath))
		result = (IndexPath *) ((BitmapHeapPath *) path)->bitmapqual;
	if (!IsA(result, IndexPath))
		return NULL;
	if (&result->path != path && is_index_only(result) &&
		(may_have_current_row(root) || !can_prefetch(result) || !can_come_by_page(result)))
	{
		IndexPath  *only = result;

		result = makeNode(IndexPath);
		*result = *only;
		result->path.pathtype = T_IndexScan;
		cost_index(result, root, lsm_prefetch_loop_count(root, result), false);
	}
	return can_prefetch(result) ? result : NULL;
}

/* Returns the same scan divided among processes, or NULL. */
static IndexPath *
parallel_scan_of(PlannerInfo *root, IndexPath *path)
{
	IndexPath  *result;

	if (path->path.param_info != NULL || !path->path.parallel_safe ||
		!path->indexinfo->amcanparallel)
		return NULL;
	result = makeNode(IndexPath);
	*result = *path;
	cost_index(result, root, 1, true);
	return result->path.parallel_workers > 0 ? result : NULL;
}

/*
 * Returns whether this is a cursor's scan. Even without SCROLL, a cursor can go backward if the
 * plan can, but a scan by page cannot.
 */
static bool
is_cursor(PlannerInfo *root, RelOptInfo *rel)
{
	Relids		relids = rel->top_parent_relids != NULL ? rel->top_parent_relids : rel->relids;

	return root->query_level == 1 && root->tuple_fraction > 0 &&
		root->parse->limitCount == NULL && bms_equal(root->all_baserels, relids);
}

/* Replace core's path by our path, if we have one, with the same costs. */
static void
replace_path(PlannerInfo *root, ListCell *cell, int depth)
{
	Path	   *path = lfirst(cell);
	IndexPath  *index_path = index_scan_of(root, path);
	bool		by_page;
	CustomPath *ours;

	if (index_path != NULL && path->parallel_aware && !index_path->path.parallel_aware)
		index_path = parallel_scan_of(root, index_path);
	if (index_path == NULL)
		return;
	by_page = path->pathkeys == NIL;
	if (by_page && (!can_come_by_page(index_path) ||
					(&index_path->path == path && is_cursor(root, path->parent))))
		return;
	ours = make_path(root, index_path, by_page, depth);
	ours->path.param_info = path->param_info;
	ours->path.parallel_workers = path->parallel_workers;
	ours->path.rows = path->rows;
	ours->path.startup_cost = path->startup_cost;
	ours->path.total_cost = path->total_cost;
	lfirst(cell) = ours;
}

/* For tests: use our paths wherever possible. */
static void
replace_paths(PlannerInfo *root, RelOptInfo *rel, int depth)
{
	ListCell   *cell;

	foreach(cell, rel->pathlist)
		replace_path(root, cell, depth);
	foreach(cell, rel->partial_pathlist)
		replace_path(root, cell, depth);
}

/*
 * Add a rival. Core later adds parameters to the paths of partitions, so that all partitions have
 * the same parameters. Core cannot add parameters to our paths, so a partition's rival must not
 * displace the paths that core needs.
 */
static void
add_rival(RelOptInfo *rel, CustomPath *path)
{
	Cost		total = path->path.total_cost;
	int			position = 0;

	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
	{
		add_path(rel, &path->path);
		return;
	}
	if (total >= ((Path *) linitial(path->custom_paths))->total_cost)
		return;
	/* Keep the list sorted by cost. */
	while (position < list_length(rel->pathlist) &&
		   lsm_path_is_cheaper(list_nth(rel->pathlist, position), &path->path))
		position++;
	rel->pathlist = list_insert_nth(rel->pathlist, position, path);
}

/* Returns whether a rival of this scan could win. If not, we need not compute its costs. */
static bool
could_win(PlannerInfo *root, RelOptInfo *rel, IndexPath *path)
{
	double		tuples = path->indexselectivity * rel->tuples;

	return tuples * lsm_prefetch_read_share(path) > LSM_RAMP_PAGES &&
		!(pathkeys_contained_in(root->query_pathkeys, path->path.pathkeys) &&
		  wants_few_rows(root, rel, tuples / Max(path->path.rows, 1)));
}

/*
 * Add rivals of a scan: in index order if the order is useful, by page if `by_page` is set, and
 * parallel variants of both. Serializable transactions do not prefetch in index order.
 */
static void
add_rivals(PlannerInfo *root, RelOptInfo *rel, IndexPath *index_path, bool by_page, int depth)
{
	bool		in_order = index_path->path.pathkeys != NIL && !IsolationIsSerializable();
	IndexPath  *parallel = NULL;
	LsmScanShape shape;
	CustomPath *path;

	lsm_prefetch_read_shape(root, index_path, &shape);
	if (shape.pages <= LSM_RAMP_PAGES)
		return;
	if (in_order)
	{
		path = make_path(root, index_path, false, depth);
		lsm_prefetch_cost_in_order(path, &shape, depth);
		add_rival(rel, path);
	}
	if (by_page)
	{
		path = make_path(root, index_path, true, depth);
		lsm_prefetch_cost_by_page(path, &shape, depth);
		add_rival(rel, path);
	}
	if (rel->partial_pathlist != NIL)
		parallel = parallel_scan_of(root, index_path);
	if (parallel == NULL)
		return;
	lsm_prefetch_divide(&shape, rel, Max(index_path->path.rows / parallel->path.rows, 1));
	if (in_order && parallel->path.pathkeys != NIL)
	{
		path = make_path(root, parallel, false, depth);
		lsm_prefetch_cost_in_order(path, &shape, depth);
		add_partial_path(rel, &path->path);
	}
	if (by_page)
	{
		path = make_path(root, parallel, true, depth);
		lsm_prefetch_cost_by_page(path, &shape, depth);
		add_partial_path(rel, &path->path);
	}
}

/*
 * Returns whether two scans read the same index with the same conditions, perhaps in different
 * orders. Either both are index-only or neither is.
 */
static bool
take_the_same(const IndexPath *a, const IndexPath *b)
{
	ListCell   *x;
	ListCell   *y;

	if (a->indexinfo != b->indexinfo || is_index_only(a) != is_index_only(b) ||
		a->path.param_info != b->path.param_info ||
		list_length(a->indexclauses) != list_length(b->indexclauses))
		return false;
	forboth(x, a->indexclauses, y, b->indexclauses)
	{
		if (lfirst_node(IndexClause, x)->rinfo != lfirst_node(IndexClause, y)->rinfo)
			return false;
	}
	return true;
}

/*
 * Add a scan to the list, but keep only one of several scans that return the same rows in the same
 * direction. Prefer a scan with an order: the input of a bitmap scan has no pathkeys, even if its
 * order is useful.
 */
static List *
add_scan(List *scans, IndexPath *path)
{
	ListCell   *cell;

	foreach(cell, scans)
	{
		IndexPath  *other = lfirst(cell);

		if (!take_the_same(path, other) || path->indexscandir != other->indexscandir)
			continue;
		if (other->path.pathkeys == NIL)
			lfirst(cell) = path;
		return scans;
	}
	return lappend(scans, path);
}

/*
 * Returns whether no earlier scan in the list returns the same rows. Ignores directions, which do
 * not matter by page.
 */
static bool
is_first(List *scans, IndexPath *path)
{
	ListCell   *cell;

	foreach(cell, scans)
	{
		if (take_the_same(lfirst(cell), path))
			return lfirst(cell) == path;
	}
	return false;
}

/* Returns whether the table's TIDs name pages of its file. */
static bool
is_heap(Oid relation)
{
	Relation	table = table_open(relation, NoLock);
	bool		result = table->rd_rel->relam == HEAP_TABLE_AM_OID;

	table_close(table, NoLock);
	return result;
}

/* Called when core has made the paths of a table. */
void
lsm_prefetch_add_paths(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry)
{
	List	   *scans = NIL;
	bool		by_page;
	int			depth;
	ListCell   *cell;

	if ((lsm_enable_prefetch_scan == LSM_PREFETCH_OFF && !lsm_debug_prefetch_scan) ||
		entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL ||
		rel->indexlist == NIL || IS_DUMMY_REL(rel))
		return;
	if (!lsm_debug_prefetch_scan && rel->pages <= LSM_RAMP_PAGES)
		return;
	if (lsm_debug_prefetch_scan)
	{
		depth = lsm_scan_reads_in_flight(rel->reltablespace);
		if (depth > 0 && is_heap(entry->relid))
			replace_paths(root, rel, depth);
		return;
	}
	/* Collect the scans before adding rivals, since add_path changes the list. */
	foreach(cell, paths_to_rival(root, rel))
	{
		IndexPath  *path = index_scan_of(root, lfirst(cell));

		if (path != NULL && could_win(root, rel, path))
			scans = add_scan(scans, path);
	}
	/* Most queries leave here, so short queries do not pay for the steps below. */
	if (scans == NIL || (depth = lsm_scan_reads_in_flight(rel->reltablespace)) == 0 ||
		!is_heap(entry->relid))
		return;
	by_page = !is_cursor(root, rel);
	foreach(cell, scans)
	{
		IndexPath  *path = lfirst(cell);

		add_rivals(root, rel, path, by_page && can_come_by_page(path) && is_first(scans, path),
				   depth);
	}
}

/* Called when the library is loaded. */
void
lsm_prefetch_init(LsmPauseIndexScan pause)
{
	lsm_prefetch_pause = pause;
	RegisterCustomScanMethods(&lsm_prefetch_scan_methods);
}
