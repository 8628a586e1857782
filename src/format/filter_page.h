/*
 * filter_page.h
 *	  Filter pages say which keys a segment may contain.
 *
 * The filter of a segment is a blocked Bloom filter (Putze, Sanders, Singler:
 * Cache-, Hash- and Space-Efficient Bloom Filters, 2007).  A key's hash selects
 * one block of 64 bytes, a cache line, and some bits of this block.  The filter
 * sets these bits for each key of the segment.  If one of a key's bits is clear,
 * the segment does not contain the key.  A key's bits are in one cache line of one page.
 *
 *		24		8	LsmFilterHeader, the same on all pages of a filter
 *		32		32	zero
 *		64		64	block 0
 *		...
 *		8064	64	block 125; pd_lower is 8128
 *
 * A *prefix* is the values of a key's first columns: of the first, of the first two,
 * and so on, up to prefix_columns.  A prefix is added like a key.  A prefix that
 * consecutive keys share is added once.
 *
 * If keys are encoded, the hash is hash_bytes_extended of the bytes, with seed 0 for
 * a whole key and the number of columns for a prefix.  If keys are tuples, the hash
 * starts as 0, and lsm_filter_add_column adds the hash of each column.  The hash of a
 * null is LSM_FILTER_NULL.  For other values, LsmKeyCoding.hashes determines the hash
 * (key/column.h): 0; hash_bytes_extended of the value's encoding with seed 0; or the
 * result of a hash function.  If anything that the hashes depend on has changed,
 * LsmKeyCoding.hash_fingerprint no longer matches, and nobody tests the filters.
 *
 * The number of a key's block is the upper 32 bits of the hash, times the number of
 * blocks on all pages, divided by 2^32.  Mixing the whole hash again gives the next
 * bit in the block: see lsm_filter_next_bit.  `probes` says how many bits are set for
 * a key: usually 6 if filter_bits is 10.
 *
 * The builder keeps the hashes of a segment's keys and prefixes, 8 bytes each, until it
 * knows their number.  Entries removed from the segment stay in the filter.
 * docs/design/lookups.md says which segments have a filter, and who tests it.
 */
#ifndef LSM_FILTER_PAGE_H
#define LSM_FILTER_PAGE_H

#include "format/page.h"

#define LSM_FILTER_BLOCK_BYTES	64
#define LSM_FILTER_BLOCK_BITS	(LSM_FILTER_BLOCK_BYTES * 8)

/* Blocks begin at a multiple of their size, after the page header and LsmFilterHeader. */
#define LSM_FILTER_DATA			64
#define LSM_FILTER_PAGE_BLOCKS	((LSM_PAGE_SPECIAL - LSM_FILTER_DATA) / LSM_FILTER_BLOCK_BYTES)

/* The most bits that are set for a key. */
#define LSM_FILTER_MOST_PROBES	8

typedef struct LsmFilterHeader
{
	uint16		probes;			/* 0   bits for each key, 1 to LSM_FILTER_MOST_PROBES */
	uint16		prefix_columns; /* 2   the most columns of a prefix in the filter */
	uint32		pages;			/* 4   number of pages of the filter */
} LsmFilterHeader;

StaticAssertDecl(LSM_PAGE_CONTENT + sizeof(LsmFilterHeader) <= LSM_FILTER_DATA,
				 "the header must fit before the first block");

#define lsm_filter_header(page) ((LsmFilterHeader *) ((char *) (page) + LSM_PAGE_CONTENT))

/* Where the bits of a key are. */
typedef struct LsmFilterPlace
{
	uint32		page;			/* of the filter */
	uint32		block;			/* on that page */
} LsmFilterPlace;

/* The hash of a column that is null. */
#define LSM_FILTER_NULL UINT64CONST(0x6E756C6C)

extern uint64 lsm_filter_hash(const uint8 *key, uint32 keylen);
extern uint64 lsm_filter_prefix_hash(const uint8 *key, uint32 length, int columns);
extern void lsm_filter_block_add(uint8 *block, int probes, uint64 hash);
extern uint32 lsm_filter_pages(uint64 keys, int bits_per_key);
extern int	lsm_filter_probes(uint64 keys, uint32 pages);
extern void lsm_filter_page_init(Page page, int probes, uint32 pages, int prefix_columns);
extern void lsm_filter_page_add(Page page, const LsmFilterPlace *place, uint64 hash);
extern const char *lsm_filter_page_check(Page page);

/* Returns which of `blocks` blocks a hash selects. */
static inline uint64
lsm_filter_block(uint64 hash, uint64 blocks)
{
	return ((hash >> 32) * blocks) >> 32;
}

/* Returns the place of a hash in a filter of `pages` pages. */
static inline LsmFilterPlace
lsm_filter_place(uint64 hash, uint32 pages)
{
	LsmFilterPlace place;
	uint64		block = lsm_filter_block(hash, (uint64) pages * LSM_FILTER_PAGE_BLOCKS);

	place.page = (uint32) (block / LSM_FILTER_PAGE_BLOCKS);
	place.block = (uint32) (block % LSM_FILTER_PAGE_BLOCKS);
	return place;
}

#define LSM_FILTER_MIX UINT64CONST(0x9E3779B97F4A7C15)

/* Returns the next bit of a key in its block.  Mixes the hash again for each bit. */
static inline uint32
lsm_filter_next_bit(uint64 *hash)
{
	*hash = (*hash ^ (*hash >> 29)) * LSM_FILTER_MIX;
	return (uint32) (*hash >> 55);
}

/* Adds a column to the hash of the previous columns of a tuple key. */
static inline uint64
lsm_filter_add_column(uint64 hash, uint64 column)
{
	hash = (hash + LSM_FILTER_MIX) ^ column;
	hash = (hash ^ (hash >> 32)) * LSM_FILTER_MIX;
	hash = (hash ^ (hash >> 29)) * LSM_FILTER_MIX;
	return hash ^ (hash >> 32);
}

/* Bits to test before each branch. */
#define LSM_FILTER_BITS_AT_ONCE	3

StaticAssertDecl(LSM_FILTER_BLOCK_BITS == 1 << (64 - 55), "a bit of a block is named by 9 bits");

/* Returns false if the key is not in the segment, true if it may be. */
static inline bool
lsm_filter_block_has(const uint8 *block, int probes, uint64 hash)
{
	/* About half of the bits are set, so the CPU would mispredict many branches on single bits. */
	for (int i = 0; i < probes; i += LSM_FILTER_BITS_AT_ONCE)
	{
		uint32		all = 1;

		for (int j = 0; j < LSM_FILTER_BITS_AT_ONCE; j++)
		{
			uint32		bit = lsm_filter_next_bit(&hash);

			all &= (block[bit / 8] >> bit % 8) | (i + j >= probes);
		}
		if (all == 0)
			return false;
	}
	return true;
}

static inline uint8 *
lsm_filter_page_block(Page page, const LsmFilterPlace *place)
{
	return (uint8 *) page + LSM_FILTER_DATA + place->block * LSM_FILTER_BLOCK_BYTES;
}

static inline bool
lsm_filter_page_has(Page page, const LsmFilterPlace *place, uint64 hash)
{
	return lsm_filter_block_has(lsm_filter_page_block(page, place),
								lsm_filter_header(page)->probes, hash);
}

#endif							/* LSM_FILTER_PAGE_H */
