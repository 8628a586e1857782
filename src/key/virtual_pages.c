/*
 * virtual_pages.c
 *	  Computes the virtual pages of an index: page numbers that depend only on keys.
 *
 * - For each n up to the number of key columns, each hash of the first n columns is a page.
 * - Encoded keys, padded with zeros, form a tree. A node of depth d contains the keys with the same
 *   first d nibbles. Each node from LSM_LEAST_DEPTH to LSM_MOST_DEPTH is a page. (The first two
 *   nibbles are the marker of the first column.)
 * - The order codes of tuple keys form such a tree too (order_code.c).
 *
 * The pages of a range cover the range: every key in the range is on at least one of them, in any
 * version of the index. Different pages may have the same number.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "key/encode.h"
#include "key/hash.h"
#include "key/order_code.h"
#include "key/virtual_pages.h"

StaticAssertDecl(LSM_MOST_DEPTH == 2 * LSM_ORDER_BYTES, "nodes must have all of an order code");

/* The hash seed of a node is its depth; that of columns is SEED_COLUMNS plus their number. */
#define SEED_COLUMNS		1000

static BlockNumber
number_page(const uint8 *bytes, uint32 length, uint64 seed)
{
	return (BlockNumber) (hash_bytes_extended(bytes, length, seed) % InvalidBlockNumber);
}

/* Returns the page of all keys with these encoded leading columns. */
static BlockNumber
columns_page(const uint8 *key, uint32 length, int columns)
{
	return number_page(key, length, SEED_COLUMNS + columns);
}

/* --- nodes ------------------------------------------------------------------- */

/* A key's first nibbles, one per byte. */
typedef struct Nibbles
{
	uint8		nibble[LSM_MOST_DEPTH];
} Nibbles;

/* Take the first nibbles of a key. After the key's end, all nibbles are `pad`. */
static void
take_nibbles(Nibbles *n, const uint8 *key, uint32 length, uint8 pad)
{
	for (uint32 i = 0; i < LSM_MOST_DEPTH; i++)
	{
		if (i / 2 >= length)
			n->nibble[i] = pad;
		else
			n->nibble[i] = i % 2 == 0 ? key[i / 2] >> 4 : key[i / 2] & 0x0F;
	}
}

static BlockNumber
node_page(const Nibbles *n, int depth)
{
	return number_page(n->nibble, depth, depth);
}

static void
go_to_next_node(Nibbles *n, int depth)
{
	for (int i = depth - 1; i >= 0; i--)
	{
		if (++n->nibble[i] <= 0x0F)
			return;
		n->nibble[i] = 0;
	}
}

/* Returns the depth where the longest key or order code ends, or 0 if there is no tree. */
static int
greatest_depth(LsmKeySpace *ks)
{
	if (!ks->encoded)
		return lsm_has_order_codes(ks) ? LSM_MOST_DEPTH : 0;
	return Min(LSM_MOST_DEPTH, 2 * (int) ks->max_keylen);
}

/*
 * Returns the greatest depth where at most LSM_RANGE_PAGES nodes cover the range between two keys.
 * Sets *count to the number of these nodes, or to 0 or less if the range is empty.
 */
static int
find_cover(LsmKeySpace *ks, const Nibbles *low, const Nibbles *high, int *count)
{
	int			depth = 0;
	int			distance = 0;

	for (; depth < greatest_depth(ks) && distance >= 0; depth++)
	{
		int			next = distance * 16 + high->nibble[depth] - low->nibble[depth];

		if (next >= LSM_RANGE_PAGES)
			break;
		distance = next;
	}
	*count = distance + 1;
	return depth;
}

/* Do leading columns of this length have a node of their own? */
static bool
has_own_node(LsmKeySpace *ks, uint32 length)
{
	return 2 * length <= (uint32) greatest_depth(ks);
}

/*
 * Finds the nodes that cover the range between two codes, if they are at least `least` nibbles
 * deep. Returns their number, or -1.
 */
static int
pages_between(LsmKeySpace *ks, const Nibbles *low, const Nibbles *high, int least,
			  BlockNumber *pages)
{
	Nibbles		node = *low;
	int			count;
	int			depth = find_cover(ks, low, high, &count);

	if (depth < least && count > 0)
		return -1;
	for (int i = 0; i < count; i++)
	{
		pages[i] = node_page(&node, depth);
		go_to_next_node(&node, depth);
	}
	return Max(count, 0);
}

/* Adds the pages of all nodes that a code belongs to. Returns their number. */
static int
pages_around(LsmKeySpace *ks, const uint8 *code, uint32 length, BlockNumber *pages)
{
	Nibbles		nibbles;
	int			count = 0;

	take_nibbles(&nibbles, code, length, 0x00);
	for (int depth = LSM_LEAST_DEPTH; depth <= greatest_depth(ks); depth++)
		pages[count++] = node_page(&nibbles, depth);
	return count;
}

/* --- ranges and keys --------------------------------------------------------- */

static int
pages_of_encoded_range(LsmKeySpace *ks, const LsmBound *low, const LsmBound *high,
					   BlockNumber *pages)
{
	uint32		common = lsm_common_prefix(low->key, low->keylen, high->key, high->keylen);
	int			columns = lsm_encoded_columns(ks->columns, low->key, common, ks->nkeys);
	uint32		length = 0;
	Nibbles		from;
	Nibbles		to;

	if (columns > 0)
		length = lsm_encoded_prefix_length(ks->columns, low->key, common, columns);
	if (columns == ks->nkeys || (columns > 0 && !has_own_node(ks, length)))
	{
		pages[0] = columns_page(low->key, length, columns);
		return 1;
	}
	take_nibbles(&from, low->key, low->keylen, 0x00);
	take_nibbles(&to, high->key, high->keylen, 0x0F);
	return pages_between(ks, &from, &to, LSM_LEAST_DEPTH, pages);
}

static BlockNumber
tuple_columns_page(uint64 hash, int columns)
{
	return columns_page((const uint8 *) &hash, sizeof(hash), columns);
}

/* Complete a bound's order code.  The code already covers the columns before `column`. */
static void
complete_order(LsmOrderCode *order, LsmKeySpace *ks, const LsmBound *bound, int column)
{
	for (int i = column; i < bound->ncolumns; i++)
	{
		const LsmBoundColumn *b = &bound->columns[i];

		if (!b->is_own || !lsm_order_add(order, ks, i, b->value, b->isnull))
			return;
	}
}

/*
 * Finds the nodes of a range of tuple keys. Returns -1 unless these nodes are finer than the page
 * of the `shared` leading columns, which have a single value in the range. So the codes of the
 * shared columns must end within the order code.
 */
static int
nodes_of_tuple_range(LsmKeySpace *ks, const LsmBound *low, const LsmBound *high, int shared,
					 BlockNumber *pages)
{
	LsmOrderCode low_order;
	LsmOrderCode high_order;
	Nibbles		from;
	Nibbles		to;
	int			least;

	if (greatest_depth(ks) == 0)
		return -1;
	low_order.length = 0;
	for (int i = 0; i < shared; i++)
	{
		if (!lsm_order_add(&low_order, ks, i, low->columns[i].value, low->columns[i].isnull))
			return -1;
	}
	least = Max(LSM_LEAST_DEPTH, 2 * (int) low_order.length + 1);
	high_order = low_order;
	complete_order(&low_order, ks, low, shared);
	complete_order(&high_order, ks, high, shared);
	take_nibbles(&from, low_order.bytes, low_order.length, 0x00);
	take_nibbles(&to, high_order.bytes, high_order.length, 0x0F);
	return pages_between(ks, &from, &to, least, pages);
}

static int
pages_of_tuple_range(LsmKeySpace *ks, const LsmBound *low, const LsmBound *high,
					 BlockNumber *pages)
{
	int			shared = lsm_hash_shared_columns(ks, low, high, ks->nkeys);
	uint64		hash = 0;
	int			count = -1;

	if (shared < ks->nkeys)
		count = nodes_of_tuple_range(ks, low, high, shared, pages);
	if (count >= 0 || shared == 0)
		return count;
	for (int i = 0; i < shared; i++)
		hash = lsm_hash_add_for_lock(ks, hash, i, low->columns[i].value, low->columns[i].isnull);
	pages[0] = tuple_columns_page(hash, shared);
	return 1;
}

/*
 * Finds the pages of the range between two bounds. Returns their number, at most LSM_RANGE_PAGES,
 * or -1 if only the whole index covers the range. Runs hash functions.
 */
int
lsm_pages_of_range(LsmKeySpace *ks, const LsmBound *low, const LsmBound *high, BlockNumber *pages)
{
	return ks->encoded ? pages_of_encoded_range(ks, low, high, pages) :
		pages_of_tuple_range(ks, low, high, pages);
}

static int
pages_of_encoded_key(LsmKeySpace *ks, const LsmEntry *entry, BlockNumber *pages)
{
	int			count = 0;

	for (int columns = 1; columns <= ks->nkeys; columns++)
	{
		uint32		length = lsm_encoded_prefix_length(ks->columns, entry->key, entry->keylen,
													   columns);

		if (columns == ks->nkeys || !has_own_node(ks, length))
			pages[count++] = columns_page(entry->key, length, columns);
	}
	return count + pages_around(ks, entry->key, entry->keylen, pages + count);
}

static int
pages_of_tuple_key(LsmKeySpace *ks, const LsmEntry *entry, BlockNumber *pages)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	LsmOrderCode order;
	bool		more = true;
	uint64		hash = 0;

	lsm_keyspace_deform(ks, entry, ks->nkeys, values, isnull);
	order.length = 0;
	for (int i = 0; i < ks->nkeys; i++)
	{
		hash = lsm_hash_add_for_lock(ks, hash, i, values[i], isnull[i]);
		pages[i] = tuple_columns_page(hash, i + 1);
		more = more && lsm_order_add(&order, ks, i, values[i], isnull[i]);
	}
	return ks->nkeys + pages_around(ks, order.bytes, order.length, pages + ks->nkeys);
}

/*
 * Finds all pages that a key is on. Returns their number, at most LSM_KEY_PAGES. Runs hash
 * functions.
 */
int
lsm_pages_of_key(LsmKeySpace *ks, const LsmEntry *entry, BlockNumber *pages)
{
	return ks->encoded ? pages_of_encoded_key(ks, entry, pages) :
		pages_of_tuple_key(ks, entry, pages);
}
