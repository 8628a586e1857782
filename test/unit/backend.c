/*
 * backend.c
 *	  Defines the few backend symbols that pure code refers to.
 *
 * The tested files call only page initialization, memory, assertions, errors, and settings. An
 * error goes to the test that expects one. If no test does, the error ends the program.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "backend.h"
#include "base/limits.h"
#include "format/map_page.h"
#include "nodes/memnodes.h"
#include "storage/bufpage.h"

int			lsm_merge_fanout = 8;
int			lsm_buffer_entries = 0;
int			lsm_page_entries = 0;
int			lsm_foreground_blocks = 128;
int			lsm_segment_blocks = 0;

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

/* There is one memory context. A test empties it at will. */
static MemoryContextData the_context = {.type = T_AllocSetContext};
MemoryContext CurrentMemoryContext = &the_context;

/* The header of each piece of memory. */
typedef struct Piece
{
	struct Piece *next;
	struct Piece **link;		/* the pointer to this piece */
	void	   *unused;
	MemoryContext context;		/* core of 15 looks for it here */
} Piece;

StaticAssertDecl(sizeof(Piece) == MAXALIGN(sizeof(Piece)), "memory behind it is aligned");

static Piece *pieces;

static void *
link_piece(Piece *piece)
{
	if (piece == NULL)
	{
		perror("malloc");
		abort();
	}
	piece->context = &the_context;
	piece->next = pieces;
	piece->link = &pieces;
	if (pieces != NULL)
		pieces->link = &piece->next;
	pieces = piece;
	return piece + 1;
}

static Piece *
unlink_piece(void *pointer)
{
	Piece	   *piece = (Piece *) pointer - 1;

	*piece->link = piece->next;
	if (piece->next != NULL)
		piece->next->link = piece->link;
	return piece;
}

void *
palloc(Size size)
{
	return link_piece(malloc(sizeof(Piece) + size));
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return palloc(size);
}

void *
repalloc(void *pointer, Size size)
{
	return link_piece(realloc(unlink_piece(pointer), sizeof(Piece) + size));
}

void
pfree(void *pointer)
{
	free(unlink_piece(pointer));
}

void
backend_free_all(void)
{
	while (pieces != NULL)
		pfree(pieces + 1);
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

sigjmp_buf *backend_catch;

bool
errstart(int elevel, const char *domain)
{
	return elevel >= ERROR;
}

#if PG_VERSION_NUM >= 140000
bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}
#endif

int
errmsg_internal(const char *fmt,...)
{
	return 0;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (backend_catch != NULL)
		siglongjmp(*backend_catch, 1);
	fprintf(stderr, "error raised at %s:%d\n", filename, lineno);
	abort();
}

/* Bytes on either side of a guarded page: 16-bit ordinals of 2-byte slots can reach this far. */
#define GUARD_SIZE (256 * 1024)

char *
backend_guarded_page(void)
{
	char	   *room = mmap(NULL, 2 * GUARD_SIZE + BLCKSZ, PROT_NONE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED ||
		mprotect(room + GUARD_SIZE, BLCKSZ, PROT_READ | PROT_WRITE) != 0)
	{
		perror("mmap");
		abort();
	}
	return room + GUARD_SIZE;
}

uint32
backend_count_free(Page page)
{
	uint32		count = 0;

	for (uint32 i = 0; i < LSM_REGION_BLOCKS; i++)
		count += !lsm_map_is_used(page, i);
	return count;
}
