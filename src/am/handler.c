/*
 * handler.c
 *	  The IndexAmRoutine: the properties and callbacks of the access method.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "am/am.h"
#include "base/options.h"
#include "build/build.h"
#include "fmgr.h"
#include "planner/planner.h"
#include "scan/parallel_scan.h"
#include "scan/scan.h"
#include "vacuum/vacuum.h"

PG_FUNCTION_INFO_V1(lsm_handler);

#ifdef LSM_HAS_COMPARE_TYPE
/* Strategies have the numbers of B-tree strategies. */
static CompareType
translate_strategy(StrategyNumber strategy, Oid opfamily)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return COMPARE_LT;
		case BTLessEqualStrategyNumber:
			return COMPARE_LE;
		case BTEqualStrategyNumber:
			return COMPARE_EQ;
		case BTGreaterEqualStrategyNumber:
			return COMPARE_GE;
		case BTGreaterStrategyNumber:
			return COMPARE_GT;
		default:
			return COMPARE_INVALID;
	}
}

static StrategyNumber
translate_compare_type(CompareType type, Oid opfamily)
{
	switch (type)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_LE:
			return BTLessEqualStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GE:
			return BTGreaterEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}
#endif

static void
set_properties(IndexAmRoutine *am)
{
	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = LSM_AM_SUPPORT_PROCS;
	am->amoptsprocnum = BTOPTIONS_PROC;
	am->amcanorder = true;
	am->amcanbackward = true;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->amclusterable = true;
	am->ampredlocks = true;
	am->amcanparallel = true;
	am->amcaninclude = true;
	am->amusemaintenanceworkmem = false;
	am->amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL;
	am->amkeytype = InvalidOid;
#ifdef LSM_HAS_BUILD_PARALLEL_FLAG
	am->amcanbuildparallel = true;
#endif
#ifdef LSM_HAS_COMPARE_TYPE
	am->amcanhash = false;
	am->amconsistentequality = true;
	am->amconsistentordering = true;
	am->amgettreeheight = lsm_am_tree_height;
	am->amtranslatestrategy = translate_strategy;
	am->amtranslatecmptype = translate_compare_type;
#endif
}

Datum
lsm_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	set_properties(am);
	am->ambuild = lsm_am_build;
	am->ambuildempty = lsm_am_build_empty;
	am->aminsert = lsm_am_insert;
	am->ambulkdelete = lsm_am_bulk_delete;
	am->amvacuumcleanup = lsm_am_vacuum_cleanup;
	am->amcanreturn = lsm_am_can_return;
	am->amcostestimate = lsm_am_cost_estimate;
	am->amoptions = lsm_options_parse;
	am->ambuildphasename = lsm_am_build_phase_name;
	am->amvalidate = lsm_am_validate;
	am->amadjustmembers = lsm_am_adjust_members;
	am->ambeginscan = lsm_am_begin_scan;
	am->amrescan = lsm_am_rescan;
	am->amgettuple = lsm_am_get_tuple;
	am->amgetbitmap = lsm_am_get_bitmap;
	am->amendscan = lsm_am_end_scan;
	am->ammarkpos = lsm_am_mark;
	am->amrestrpos = lsm_am_restore;
	am->amestimateparallelscan = lsm_am_estimate_parallel_scan;
	am->aminitparallelscan = lsm_am_init_parallel_scan;
	am->amparallelrescan = lsm_am_parallel_rescan;
	PG_RETURN_POINTER(am);
}
