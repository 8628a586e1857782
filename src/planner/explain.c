/*
 * explain.c
 *	  EXPLAIN (ANALYZE, LSM): shows what the scan of each node has read.
 *
 * Before 18, extensions cannot add options to EXPLAIN, and this file is empty.  The counters come
 * from the scan descriptor, which lives until ExecutorEnd.  So they are totals over all loops.  The
 * counters do not include parallel workers, whose descriptors are gone when EXPLAIN prints.  The
 * output says so.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/limits.h"

#ifdef LSM_HAS_EXPLAIN_OPTIONS
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "executor/instrument.h"
#include "index/counters.h"
#include "planner/planner.h"
#include "scan/scan.h"

static int	extension_id;

/*
 * Returns the option's value, which EXPLAIN keeps for us.  If the statement does not name the
 * option, the setting pg_lsm.explain_reads decides, and only ANALYZE shows reads.  The setting also
 * serves auto_explain, which cannot name the option before 19.
 */
static bool *
get_lsm_option(ExplainState *es)
{
	bool	   *option = GetExplainExtensionState(es, extension_id);

	if (option == NULL)
	{
		option = palloc(sizeof(bool));
		*option = lsm_explain_reads && es->analyze;
		SetExplainExtensionState(es, extension_id, option);
	}
	return option;
}

static void
set_lsm_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	*get_lsm_option(es) = defGetBoolean(option);
}

/* Called when EXPLAIN has read its options. */
void
lsm_explain_validate(ExplainState *es)
{
	if (*get_lsm_option(es) && !es->analyze)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "LSM")));
}

/* Show the seeks, which come first, and all other counters that are not 0. */
static void
show_reads_as_text(const LsmReadCounters *reads, bool leader_only, ExplainState *es)
{
	ExplainIndentText(es);
	appendStringInfoString(es->str, leader_only ? "LSM Reads (leader):" : "LSM Reads:");
	for (int i = 0; i < LSM_READ_COUNTERS; i++)
	{
		uint64		n = lsm_read_count(reads, i);

		if (i == 0 || n != 0)
			appendStringInfo(es->str, " %s=" UINT64_FORMAT, lsm_read_columns[i].name, n);
	}
	appendStringInfoChar(es->str, '\n');
}

static void
show_reads_as_properties(const LsmReadCounters *reads, bool leader_only, ExplainState *es)
{
	for (int i = 0; i < LSM_READ_COUNTERS; i++)
		ExplainPropertyUInteger(lsm_read_columns[i].label, NULL, lsm_read_count(reads, i), es);
	ExplainPropertyBool("LSM Leader Only", leader_only, es);
}

/* Does this node scan an lsm index?  Sets *scan to NULL if the scan was not started. */
static bool
find_lsm_scan(PlanState *state, IndexScanDesc *scan)
{
	Relation	index;

	switch (nodeTag(state))
	{
		case T_IndexScanState:
			index = ((IndexScanState *) state)->iss_RelationDesc;
			*scan = ((IndexScanState *) state)->iss_ScanDesc;
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) state)->ioss_RelationDesc;
			*scan = ((IndexOnlyScanState *) state)->ioss_ScanDesc;
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) state)->biss_RelationDesc;
			*scan = ((BitmapIndexScanState *) state)->biss_ScanDesc;
			break;
		default:
			return false;
	}
	return lsm_is_own(index);
}

/* Called when EXPLAIN has printed a node. */
void
lsm_explain_node(PlanState *state, ExplainState *es)
{
	IndexScanDesc scan;

	if (*get_lsm_option(es) && find_lsm_scan(state, &scan))
	{
		LsmReadCounters reads = {0};
		bool		leader_only = state->worker_instrument != NULL &&
			state->worker_instrument->num_workers > 0;

		if (scan != NULL)
			lsm_scan_reads(scan, &reads);
		if (es->format == EXPLAIN_FORMAT_TEXT)
			show_reads_as_text(&reads, leader_only, es);
		else
			show_reads_as_properties(&reads, leader_only, es);
	}
}

/* Register the option.  Called when the library is loaded. */
void
lsm_explain_init(void)
{
	extension_id = GetExplainExtensionId("pg_lsm");
	lsm_register_explain_option("lsm", set_lsm_option);
}
#endif
