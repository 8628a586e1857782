/*
 * planner.h
 *	  Declares what the planner, EXPLAIN and the processing of commands call: costs, descriptions of
 *	  indexes, and the choice of an access method.
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

/*
 * Called for a constraint of a command.  `column` is the column whose definition contains the
 * constraint, or NULL.
 */
typedef void (*LsmConstraintVisitor) (Constraint *constraint, const RangeVar *table,
									  ColumnDef *column, void *arg);

extern void lsm_constraint_visit(Node *command, LsmConstraintVisitor visitor, void *arg);
extern bool lsm_constraint_is_key(const Constraint *constraint);
extern Oid	lsm_index_method(Oid index);
extern bool lsm_index_is_lsm(Oid index);
extern DefElem *lsm_constraint_parameter(List *options);
extern List *lsm_constraint_add_parameter(List *options, bool value);
extern PlannedStmt *lsm_constraint_prepare(PlannedStmt *statement, bool *read_only_tree);
#ifndef LSM_UNIQUE_TAKES_ALL
extern void lsm_constraint_explain_error(void);
#endif

/* default_method.c */
extern PlannedStmt *lsm_default_method_prepare(PlannedStmt *statement, const char *text,
											   bool *read_only_tree);

/* alter_table.c */
typedef struct LsmAlterTable LsmAlterTable;

extern LsmAlterTable *lsm_alter_table_begin(PlannedStmt **statement, bool *read_only_tree);

/* detached_key.c */
extern void lsm_alter_table_created(Oid relation_oid);
extern void lsm_alter_table_dropping(Oid relation, int flags);
extern void lsm_alter_table_leave(LsmAlterTable *alter);
extern void lsm_alter_table_finish(const LsmAlterTable *alter);

/* add_using_index.c */
extern void lsm_alter_hidden(Oid relation, List *commands);
extern Oid	lsm_index_of_constraint(const AlterTableCmd *command, Oid table);
extern List *lsm_constraint_use_index(AlterTableCmd *command, Oid table, Oid index_oid);

/* explain.c */
#ifdef LSM_HAS_EXPLAIN_OPTIONS
struct ExplainState;
extern void lsm_explain_init(void);
extern void lsm_explain_validate(struct ExplainState *es);
extern void lsm_explain_node(PlanState *plan, struct ExplainState *es);
#endif

#endif							/* LSM_PLANNER_H */
