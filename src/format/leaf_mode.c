/*
 * leaf_mode.c
 *	  Determines the mode of a segment: what is known about its entries before they are coded, such
 *	  as the heap blocks of their TIDs and the length of their keys.
 *
 * A mode is collected entry by entry (a batch, CREATE INDEX) or joined from the
 * modes of several runs (a merge).  It decides only how many bytes each entry of
 * the segment takes.
 */
#include "postgres.h"

#include "base/coding.h"
#include "format/leaf_mode.h"

/* Initialize a mode that covers no entries. */
void
lsm_mode_init(LsmLeafMode *mode)
{
	mode->base_block = InvalidBlockNumber;
	mode->last_block = 0;
	mode->keylen = LSM_KEYLEN_NONE;
	mode->offset_bits = 1;
}

/* Widen the mode to cover this TID. */
void
lsm_mode_cover(LsmLeafMode *mode, uint64 tid)
{
	BlockNumber block = (BlockNumber) (tid >> 16);

	mode->base_block = Min(mode->base_block, block);
	mode->last_block = Max(mode->last_block, block);
	while ((tid & 0xFFFF) >> mode->offset_bits != 0)
		mode->offset_bits++;
}

static void
join_keylen(LsmLeafMode *mode, uint16 keylen)
{
	if (mode->keylen == LSM_KEYLEN_NONE)
		mode->keylen = keylen;
	else if (mode->keylen != keylen && keylen != LSM_KEYLEN_NONE)
		mode->keylen = LSM_KEYLEN_MIXED;
}

/* Widen the mode to cover this entry. */
void
lsm_mode_add(LsmLeafMode *mode, const LsmEntry *entry)
{
	lsm_mode_cover(mode, entry->tid);
	join_keylen(mode, (uint16) entry->keylen);
}

/* Widen the mode to cover all entries that `other` covers. */
void
lsm_mode_join(LsmLeafMode *mode, const LsmLeafMode *other)
{
	mode->base_block = Min(mode->base_block, other->base_block);
	mode->last_block = Max(mode->last_block, other->last_block);
	mode->offset_bits = Max(mode->offset_bits, other->offset_bits);
	join_keylen(mode, other->keylen);
}

/* Sets *mode to the mode that this leaf was begun with. */
void
lsm_mode_of_page(Page page, LsmLeafMode *mode)
{
	LsmLeafHeader *leaf = lsm_leaf_header(page);

	mode->base_block = leaf->base_block;
	mode->last_block = leaf->last_block;
	mode->keylen = leaf->keylen;
	mode->offset_bits = leaf->offset_bits;
}

/*
 * Complete the mode: choose the key length of framed groups, or none.  If keys have
 * several lengths, the choice is usual_keylen, the length of nearly all keys, or 0.  Long
 * keys are not framed.
 */
void
lsm_mode_settle(LsmLeafMode *mode, uint32 usual_keylen)
{
	if (mode->keylen == LSM_KEYLEN_MIXED || mode->keylen == LSM_KEYLEN_NONE)
		mode->keylen = usual_keylen;
	if (mode->keylen > LSM_FRAMED_KEYLEN)
		mode->keylen = LSM_KEYLEN_MIXED;
}

/* Returns how many bytes a TID's code takes on leaves with framed groups. */
int
lsm_mode_tid_bytes(BlockNumber base_block, BlockNumber last_block, int offset_bits)
{
	return (offset_bits + lsm_bits_of(last_block - base_block) + 7) / 8;
}
