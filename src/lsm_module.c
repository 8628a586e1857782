/*
 * lsm_module.c
 *	  Initializes the library when it is loaded.
 */
#include "postgres.h"

#include "base/counts.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "base/shared.h"
#include "exec/prefetch.h"
#include "fmgr.h"
#include "format/wal.h"
#include "hooks/hooks.h"
#include "index/index.h"
#include "ingest/statement.h"
#include "key/comparing.h"
#include "key/keyspace.h"
#include "miscadmin.h"
#include "planner/planner.h"
#include "read/reader.h"
#include "recovery/recovery.h"
#include "scan/scan.h"
#include "schedule/schedule.h"
#include "unique/on_conflict.h"
#include "utils/guc.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "pg_lsm",.version = LSM_VERSION);
#else
PG_MODULE_MAGIC;
#endif

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
	lsm_require_block_size(atoi(GetConfigOption("block_size", false, false)));
	lsm_guc_define();
	lsm_options_init();
	lsm_compare_init();
	lsm_index_init();
	lsm_reader_init();
	lsm_present_init();
#ifdef LSM_HAS_EXPLAIN_OPTIONS
	lsm_explain_init();
#endif
	lsm_look_ahead_init();
	lsm_prefetch_init(lsm_scan_pause);
	lsm_planner_hooks_install();
	lsm_executor_hooks_install();
	lsm_utility_hook_install();
	lsm_server_hooks_install();
	if (process_shared_preload_libraries_in_progress)
	{
		RegisterCustomRmgr(LSM_RMGR_ID, &lsm_rmgr);
		lsm_stats_init();
		lsm_launcher_init();
		lsm_statement_init();
		lsm_preloaded = true;
	}
}
