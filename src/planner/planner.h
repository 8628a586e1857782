/*
 * planner.h
 *	  Costs, index descriptions, EXPLAIN, and constraints WITH (lsm).
 */
#ifndef LSM_PLANNER_H
#define LSM_PLANNER_H

#include "base/compat.h"

#include "executor/execdesc.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "utils/rel.h"

/* cost.c */
extern void lsm_am_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
								 Cost *startup_cost, Cost *total_cost,
								 Selectivity *selectivity, double *correlation,
								 double *pages);
extern int	lsm_am_tree_height(Relation index);

/* present_as_btree.c */
extern void lsm_present_init(void);
extern void lsm_present_indexes(RelOptInfo *rel);

/* row_compare.c */
#ifndef LSM_EXECUTOR_TAKES_ROWS
extern void lsm_row_compare_shorten(PlannerInfo *root, IndexPath *path);
extern void lsm_row_compare_start(PlanState *plan);
#endif

/* constraint.c */
extern PlannedStmt *lsm_constraint_prepare(PlannedStmt *statement, bool *read_only_tree);

/* alter_table.c */
typedef struct LsmAlterTable LsmAlterTable;

extern LsmAlterTable *lsm_alter_table_begin(PlannedStmt **statement, bool *read_only_tree);
extern bool lsm_alter_table_is_done(const PlannedStmt *statement);
extern void lsm_alter_table_finish(LsmAlterTable *alter);

/* explain.c */
#ifdef LSM_HAS_EXPLAIN_OPTIONS
struct ExplainState;
extern void lsm_explain_init(void);
extern void lsm_explain_validate(struct ExplainState *es);
extern void lsm_explain_node(PlanState *plan, struct ExplainState *es);
#endif

#endif							/* LSM_PLANNER_H */
