/*
 * page_change.c
 *	  Applies page changes, in normal operation and in redo.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "format/page_change.h"

static bool
apply_map_set(Page page, const void *data)
{
	LsmMapSet	set;

	memcpy(&set, data, sizeof(set));
	return lsm_map_set(page, set.first, set.count, set.used != 0);
}

static bool
apply_directory_init(Page page, const void *data)
{
	LsmDirectoryInit init;

	memcpy(&init, data, sizeof(init));
	if (init.level < 1 || init.level > LSM_MAX_HEIGHT)
		return false;
	lsm_directory_page_init(page, init.run_id, init.self, (int) init.level);
	return true;
}

static bool
apply_directory_set(Page page, const void *data)
{
	LsmDirectorySet set;

	memcpy(&set, data, sizeof(set));
	return lsm_directory_page_set(page, (int) set.ordinal, &set.segment);
}

static void
apply_open(Page page, const void *data)
{
	LsmOpenInit init;

	memcpy(&init, data, sizeof(init));
	lsm_page_init(page, LSM_PAGE_BUFFER, init.segment_id, init.self);
	lsm_page_opaque(page)->flags = (uint16) init.flags;
}

/* Any number of bytes. */
#define ANY_SIZE (-1)

/*
 * Sets *size to how many bytes of data an operation has, and *page_kind to the kind of pages it
 * applies to; 0: any, since it initializes the page.  Returns false if there is no such operation.
 */
static bool
describe_op(LsmPageOpKind kind, int *size, uint16 *page_kind)
{
	*page_kind = 0;
	switch (kind)
	{
		case LSM_OP_MAP_INIT:
			*size = sizeof(BlockNumber);
			return true;
		case LSM_OP_MAP_SET:
			*size = sizeof(LsmMapSet);
			*page_kind = LSM_PAGE_MAP;
			return true;
		case LSM_OP_DIRECTORY_INIT:
			*size = sizeof(LsmDirectoryInit);
			return true;
		case LSM_OP_DIRECTORY_APPEND:
			*size = ANY_SIZE;
			*page_kind = LSM_PAGE_DIRECTORY;
			return true;
		case LSM_OP_DIRECTORY_SET:
			*size = sizeof(LsmDirectorySet);
			*page_kind = LSM_PAGE_DIRECTORY;
			return true;
		case LSM_OP_OPEN:
			*size = sizeof(LsmOpenInit);
			return true;
		case LSM_OP_SEAL:
			*size = 0;
			*page_kind = LSM_PAGE_BUFFER;
			return true;
	}
	return false;
}

/*
 * Apply one operation.  Returns false if the operation does not fit the page: the WAL record is
 * damaged, or, in normal operation, our code has a bug.
 */
bool
lsm_page_apply_op(Page page, LsmPageOpKind kind, const void *data, uint32 size)
{
	int			expected;
	uint16		page_kind;
	BlockNumber self;

	if (!describe_op(kind, &expected, &page_kind) ||
		(expected != ANY_SIZE && size != (uint32) expected) ||
		(page_kind != 0 && lsm_page_opaque(page)->kind != page_kind))
		return false;
	switch (kind)
	{
		case LSM_OP_MAP_INIT:
			memcpy(&self, data, sizeof(self));
			lsm_map_page_init(page, self);
			return true;
		case LSM_OP_MAP_SET:
			return apply_map_set(page, data);
		case LSM_OP_DIRECTORY_INIT:
			return apply_directory_init(page, data);
		case LSM_OP_DIRECTORY_APPEND:
			return lsm_directory_page_append(page, data, size);
		case LSM_OP_DIRECTORY_SET:
			return apply_directory_set(page, data);
		case LSM_OP_OPEN:
			apply_open(page, data);
			return true;
		case LSM_OP_SEAL:
			lsm_page_opaque(page)->flags &= ~LSM_PAGE_OPEN;
			return true;
	}
	return false;
}

/*
 * Complete a change after all operations.  Map and directory pages get the edit's
 * number as their stamp.  Sets the checksum unless the page is open.
 */
void
lsm_page_end_change(Page page, uint64 stamp)
{
	LsmPageOpaque *opaque = lsm_page_opaque(page);

	if (opaque->kind == LSM_PAGE_MAP || opaque->kind == LSM_PAGE_DIRECTORY)
		opaque->stamp = stamp;
	if (!(opaque->flags & LSM_PAGE_OPEN))
		lsm_page_set_crc(page);
}

/* Apply a whole change from a WAL record.  Returns false if the record is damaged. */
bool
lsm_page_apply(Page page, const char *change, Size size)
{
	uint64		stamp;
	Size		at = sizeof(stamp);

	if (size < sizeof(stamp))
		return false;
	memcpy(&stamp, change, sizeof(stamp));
	while (at < size)
	{
		LsmPageOp	op;

		if (size - at < sizeof(op))
			return false;
		memcpy(&op, change + at, sizeof(op));
		at += sizeof(op);
		if (op.size > size - at ||
			!lsm_page_apply_op(page, (LsmPageOpKind) op.kind, change + at, op.size))
			return false;
		at += op.size;
	}
	/* The first operation must initialize a new page. */
	if (PageIsNew(page))
		return false;
	lsm_page_end_change(page, stamp);
	return true;
}
