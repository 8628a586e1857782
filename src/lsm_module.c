/*
 * lsm_module.c
 *	  Loading the library.
 */
#include "postgres.h"

#include "am/am.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "base/shared.h"
#include "exec/prefetch.h"
#include "fmgr.h"
#include "format/wal.h"
#include "index/index.h"
#include "key/keyspace.h"
#include "miscadmin.h"
#include "read/reader.h"
#include "recovery/recovery.h"
#include "schedule/schedule.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static RmgrData lsm_rmgr = {
	.rm_name = LSM_RMGR_NAME,
	.rm_redo = lsm_rmgr_redo,
	.rm_desc = lsm_rmgr_desc,
	.rm_identify = lsm_rmgr_identify,
	.rm_mask = lsm_rmgr_mask,
};

void
_PG_init(void)
{
	lsm_guc_define();
	lsm_options_init();
	lsm_compare_init();
	lsm_index_init();
	lsm_reader_init();
	lsm_matching_init();
	lsm_explain_init();
	lsm_constraint_init();
#ifndef LSM_SPECULATION_TAKES_ALL
	lsm_onconflict_init();
#endif
	/* Before what stands between a node and its reader, and has to be asked first. */
	lsm_index_only_init();
	lsm_look_ahead_init();
	lsm_prefetch_init();
#ifndef LSM_EXECUTOR_TAKES_ROWS
	lsm_rowstart_init();
#endif
	if (process_shared_preload_libraries_in_progress)
	{
		RegisterCustomRmgr(LSM_RMGR_ID, &lsm_rmgr);
		lsm_shared_init();
		lsm_pool_init();
		lsm_statement_init();
		lsm_preloaded = true;
	}
}
