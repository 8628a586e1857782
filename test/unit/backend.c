/*
 * backend.c
 *	  The few backend symbols that pure code refers to.
 *
 * Only what the tested files call: page initialisation, memory, assertions,
 * and settings.
 */
#include "postgres.h"

#include "base/limits.h"
#include "storage/bufpage.h"

int			lsm_merge_fanout = 8;
int			lsm_buffer_entries = 0;
int			lsm_page_entries = 0;
int			lsm_foreground_blocks = 128;
int			lsm_step_leaves = 64;
int			lsm_part_blocks = 1024;

void
PageInit(Page page, Size page_size, Size special_size)
{
	PageHeader	header = (PageHeader) page;

	memset(page, 0, page_size);
	header->pd_lower = SizeOfPageHeaderData;
	header->pd_upper = page_size - MAXALIGN(special_size);
	header->pd_special = page_size - MAXALIGN(special_size);
	PageSetPageSizeAndVersion(page, page_size, PG_PAGE_LAYOUT_VERSION);
}

void *
palloc(Size size)
{
	return malloc(size);
}

void
pfree(void *pointer)
{
	free(pointer);
}

#if PG_VERSION_NUM >= 160000
void
ExceptionalCondition(const char *condition, const char *file, int line)
#else
void
ExceptionalCondition(const char *condition, const char *type, const char *file, int line)
#endif
{
	fprintf(stderr, "failed assertion \"%s\" at %s:%d\n", condition, file, line);
	abort();
}
