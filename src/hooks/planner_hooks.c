/*
 * planner_hooks.c
 *	  Handles the hooks of the planner and of EXPLAIN.
 *
 * Each function first calls the previous hook, then our functions.
 */
#include "postgres.h"

#include "base/compat.h"
#include "exec/prefetch.h"
#include "hooks/hooks.h"
#include "optimizer/paths.h"
#include "planner/planner.h"

#ifdef LSM_HAS_EXPLAIN_OPTIONS
#include "commands/explain.h"
#include "commands/explain_state.h"
#endif

static LsmRelationHook previous_relation_info;
static set_rel_pathlist_hook_type previous_pathlist;

static void
adjust_relation_info(LSM_RELATION_HOOK_ARGS)
{
	if (previous_relation_info)
		previous_relation_info(LSM_RELATION_HOOK_PASS);
	lsm_present_indexes(rel);
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	if (previous_pathlist)
		previous_pathlist(root, rel, relid, entry);
	lsm_prefetch_add_paths(root, rel, entry);
}

#ifdef LSM_HAS_EXPLAIN_OPTIONS
static explain_per_node_hook_type previous_per_node;
static explain_validate_options_hook_type previous_validate;

static void
explain_node(PlanState *plan, List *ancestors, const char *relationship, const char *plan_name,
			 ExplainState *es)
{
	if (previous_per_node)
		previous_per_node(plan, ancestors, relationship, plan_name, es);
	lsm_explain_node(plan, es);
}

static void
validate_explain_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (previous_validate)
		previous_validate(es, options, pstate);
	lsm_explain_validate(es);
}
#endif

void
lsm_planner_hooks_install(void)
{
	previous_relation_info = lsm_relation_hook;
	lsm_relation_hook = adjust_relation_info;
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
#ifdef LSM_HAS_EXPLAIN_OPTIONS
	previous_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
	previous_validate = explain_validate_options_hook;
	explain_validate_options_hook = validate_explain_options;
#endif
}
