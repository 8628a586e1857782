/*
 * handler.c
 *	  Returns the IndexAmRoutine, which lists the properties and callbacks of the access method.
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
/* Strategies have the same numbers as in a B-tree. */
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

static const IndexAmRoutine routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = BTMaxStrategyNumber,
	.amsupport = LSM_AM_SUPPORT_PROCS,
	.amoptsprocnum = BTOPTIONS_PROC,
	.amcanorder = true,
	.amcanbackward = true,
	.amcanunique = true,
	.amcanmulticol = true,
	.amoptionalkey = true,
	.amsearcharray = true,
	.amsearchnulls = true,
	.amclusterable = true,
	.ampredlocks = true,
	.amcanparallel = true,
	.amcaninclude = true,
	.amusemaintenanceworkmem = false,
	.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL,
	.amkeytype = InvalidOid,
#ifdef LSM_HAS_BUILD_PARALLEL_FLAG
	.amcanbuildparallel = true,
#endif
#ifdef LSM_HAS_COMPARE_TYPE
	.amcanhash = false,
	.amconsistentequality = true,
	.amconsistentordering = true,
	.amgettreeheight = lsm_am_tree_height,
	.amtranslatestrategy = translate_strategy,
	.amtranslatecmptype = translate_compare_type,
#endif
	.ambuild = lsm_am_build,
	.ambuildempty = lsm_am_build_empty,
	.aminsert = lsm_am_insert,
	.ambulkdelete = lsm_am_bulk_delete,
	.amvacuumcleanup = lsm_am_vacuum_cleanup,
	.amcanreturn = lsm_am_can_return,
	.amcostestimate = lsm_am_cost_estimate,
	.amoptions = lsm_options_parse,
	.ambuildphasename = lsm_am_build_phase_name,
	.amvalidate = lsm_am_validate,
	.amadjustmembers = lsm_am_adjust_members,
	.ambeginscan = lsm_am_begin_scan,
	.amrescan = lsm_am_rescan,
	.amgettuple = lsm_am_get_tuple,
	.amgetbitmap = lsm_am_get_bitmap,
	.amendscan = lsm_am_end_scan,
	.ammarkpos = lsm_am_mark,
	.amrestrpos = lsm_am_restore,
	.amestimateparallelscan = lsm_am_estimate_parallel_scan,
	.aminitparallelscan = lsm_am_init_parallel_scan,
	.amparallelrescan = lsm_am_parallel_rescan,
};

Datum
lsm_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(lsm_give_routine(&routine));
}
