/*
 * desc.c
 *	  Describes pg_lsm's WAL records, for pg_walinspect and error contexts.
 */
#include "postgres.h"

#include "format/wal.h"
#include "recovery/recovery.h"

static void
desc_edit(StringInfo buf, XLogReaderState *record)
{
	Size		size;
	char	   *data = XLogRecGetBlockData(record, 0, &size);
	int			pages = 0;
	LsmEdit		head;

	while (pages < LSM_WAL_PAGES && XLogRecHasBlockRef(record, pages + 1))
		pages++;
	appendStringInfo(buf, "pages %d", pages);
	if (data == NULL || size < offsetof(LsmEdit, ops))
		return;
	memcpy(&head, data, offsetof(LsmEdit, ops));
	appendStringInfo(buf, ", operations %u, seals %u, mapped end %u, free blocks %u", head.count,
					 head.seals, head.space.mapped_end, head.space.free_blocks);
}

void
lsm_rmgr_desc(StringInfo buf, XLogReaderState *record)
{
	char	   *data = XLogRecGetData(record);
	uint32		size = XLogRecGetDataLen(record);

	switch (XLogRecGetInfo(record) & ~XLR_INFO_MASK)
	{
		case XLOG_LSM_INSERT:
			if (size >= sizeof(xl_lsm_insert))
				appendStringInfo(buf, "slot %u", ((xl_lsm_insert *) data)->pos);
			break;
		case XLOG_LSM_EDIT:
			desc_edit(buf, record);
			break;
		case XLOG_LSM_DELETE:
			if (size >= sizeof(xl_lsm_delete))
				appendStringInfo(buf, "entries %u, horizon %u", ((xl_lsm_delete *) data)->count,
								 ((xl_lsm_delete *) data)->horizon);
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
		case XLOG_LSM_EDIT:
			return "EDIT";
		case XLOG_LSM_DELETE:
			return "DELETE";
		case XLOG_LSM_GATE_FLIP:
			return "GATE_FLIP";
		case XLOG_LSM_GATE_DRAIN:
			return "GATE_DRAIN";
	}
	return NULL;
}
