/*
 * filter_page.c
 *	  Filter pages; see filter_page.h.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "format/filter_page.h"

/* Returns the hash of a whole encoded key. */
uint64
lsm_filter_hash(const uint8 *key, uint32 keylen)
{
	return hash_bytes_extended(key, (int) keylen, 0);
}

/* Returns the hash of an encoded prefix: the first columns of a key, but not all. */
uint64
lsm_filter_prefix_hash(const uint8 *key, uint32 length, int columns)
{
	return hash_bytes_extended(key, (int) length, columns);
}

/*
 * Returns the number of pages of a filter for `keys` keys, at least one.  Keys that would fill less
 * than a quarter of one more page do not get that page.
 */
uint32
lsm_filter_pages(uint64 keys, int bits_per_key)
{
	const uint64 page_bits = LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BITS;

	return (uint32) Max((keys * bits_per_key + page_bits * 3 / 4) / page_bits, 1);
}

/*
 * Returns how many bits to set for each of `keys` keys.  In a plain Bloom filter,
 * 0.69 times the number of bits per key gives the fewest false positives.  Blocks
 * are not filled evenly, so here the best number is slightly lower.
 */
int
lsm_filter_probes(uint64 keys, uint32 pages)
{
	uint64		bits = (uint64) pages * LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BITS;
	uint64		probes = bits * 3 / 5 / Max(keys, 1);

	return (int) Min(Max(probes, 1), LSM_FILTER_MOST_PROBES);
}

/* Initialize an empty page of a filter. */
void
lsm_filter_page_init(Page page, int probes, uint32 pages, int prefix_columns)
{
	LsmFilterHeader *header;

	lsm_page_init(page, LSM_PAGE_FILTER, 0, InvalidBlockNumber);
	header = lsm_filter_header(page);
	header->probes = probes;
	header->prefix_columns = prefix_columns;
	header->pages = pages;
	((PageHeader) page)->pd_lower = LSM_FILTER_DATA +
		LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BYTES;
}

/* Set the bits of a key in its block. */
void
lsm_filter_block_add(uint8 *block, int probes, uint64 hash)
{
	for (int i = 0; i < probes; i++)
	{
		uint32		bit = lsm_filter_next_bit(&hash);

		block[bit / 8] |= 1 << (bit % 8);
	}
}

void
lsm_filter_page_add(Page page, const LsmFilterPlace *place, uint64 hash)
{
	lsm_filter_block_add(lsm_filter_page_block(page, place), lsm_filter_header(page)->probes, hash);
}

/* Returns what is wrong with the page, or NULL. */
const char *
lsm_filter_page_check(Page page)
{
	const LsmFilterHeader *header = lsm_filter_header(page);

	if (((PageHeader) page)->pd_lower !=
		LSM_FILTER_DATA + LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BYTES)
		return "filter has another size than its page";
	if (header->probes < 1 || header->probes > LSM_FILTER_MOST_PROBES || header->pages == 0 ||
		header->prefix_columns >= INDEX_MAX_KEYS)
		return "header of the filter is damaged";
	return NULL;
}
