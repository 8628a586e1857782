/*
 * desc.c
 *	  Description of pg_lsm's WAL records, for pg_waldump and error contexts.
 */
#include "postgres.h"

#include "format/wal.h"
#include "recovery/recovery.h"

static void
desc_space(StringInfo buf, XLogReaderState *record, const xl_lsm_space *space)
{
	int			changes = 0;
	int			pages = 0;

	for (int i = 0; i < LSM_WAL_MAP_PAGES; i++)
	{
		Size		size;
		char	   *data;
		xl_lsm_map_page head;

		if (!XLogRecHasBlockRef(record, LSM_WAL_MAP_BLOCK + i))
			continue;
		data = XLogRecGetBlockData(record, LSM_WAL_MAP_BLOCK + i, &size);
		pages++;
		if (data == NULL)
			continue;
		memcpy(&head, data, sizeof(head));
		changes += head.count;
	}
	appendStringInfo(buf, "map pages %d, extents %d, conflict xid %u:%u", pages, changes,
					 EpochFromFullTransactionId(space->conflict),
					 XidFromFullTransactionId(space->conflict));
}

void
lsm_rmgr_desc(StringInfo buf, XLogReaderState *record)
{
	char	   *data = XLogRecGetData(record);

	switch (XLogRecGetInfo(record) & ~XLR_INFO_MASK)
	{
		case XLOG_LSM_INSERT:
			appendStringInfo(buf, "slot %u", ((xl_lsm_insert *) data)->pos);
			break;
		case XLOG_LSM_SEAL:
			if (((xl_lsm_seal *) data)->run_id == 0)
			{
				appendStringInfoString(buf, "open none");
				break;
			}
			appendStringInfo(buf, "open run " UINT64_FORMAT ", ", ((xl_lsm_seal *) data)->run_id);
			desc_space(buf, record, &((xl_lsm_seal *) data)->space);
			break;
		case XLOG_LSM_EDIT:
			{
				Size		size;
				char	   *block = XLogRecGetBlockData(record, 0, &size);

				if (block != NULL)
					appendStringInfo(buf, "operations %u", *(uint32 *) block);
				break;
			}
		case XLOG_LSM_SPACE:
		case XLOG_LSM_BATCH:
			desc_space(buf, record, (xl_lsm_space *) data);
			break;
		case XLOG_LSM_DELETE:
			appendStringInfo(buf, "entries %u", ((xl_lsm_delete *) data)->count);
			break;
		default:
			break;
	}
}

const char *
lsm_rmgr_identify(uint8 info)
{
	switch (info & ~XLR_INFO_MASK)
	{
		case XLOG_LSM_INSERT:
			return "INSERT";
		case XLOG_LSM_SEAL:
			return "SEAL";
		case XLOG_LSM_BATCH:
			return "BATCH";
		case XLOG_LSM_EDIT:
			return "EDIT";
		case XLOG_LSM_SPACE:
			return "SPACE";
		case XLOG_LSM_DELETE:
			return "DELETE";
		case XLOG_LSM_GATE_FLIP:
			return "GATE_FLIP";
		case XLOG_LSM_GATE_DRAIN:
			return "GATE_DRAIN";
	}
	return NULL;
}
