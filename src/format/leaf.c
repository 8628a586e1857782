/*
 * leaf.c
 *	  Building and trimming packed pages.
 */
#include "postgres.h"

#include "format/leaf_coding.h"

/* What an entry takes on a page, at most, beyond its key and rest. */
#define ENTRY_OVERHEAD		32

/* Does the page's coding have room for the TID? */
static inline bool
can_code_tid(uint64 tid, const LsmLeafCoding *c)
{
	if (tid < c->base_tid || (tid & 0xFFFF) >> c->offset_bits != 0)
		return false;
	return c->keylen == 0 || code_tid(tid, c) >> (HEAD_TID_BITS + 8 * c->tid_bytes) == 0;
}

/* Do offsets of the TID take more bits than they do nearly everywhere? */
bool
lsm_leaf_needs_wide(uint64 tid)
{
	return (tid & 0xFFFF) >> LSM_NARROW_OFFSET_BITS != 0;
}

static inline uint8 *
put_rest(uint8 *p, const LsmEntry *entry, const LsmLeafCoding *c)
{
	if (c->has_rest)
	{
		p = lsm_put_varint(p, entry->restlen);
		memcpy(p, entry->rest, entry->restlen);
		p += entry->restlen;
	}
	return p;
}

/*
 * The fixed coding.  Every TID must fit its width, also where a difference is
 * written: the entry before may be removed.
 */
static inline uint8 *
encode_fixed(uint8 *p, const LsmEntry *entry, uint32 shared, bool same, uint64 code,
			 uint64 prev_code, const LsmLeafCoding *c)
{
	uint32		unshared;

	if (same)
	{
		code -= prev_code;
		*p++ = (FIXED_SAME_KEY << 4) | (code & 0x0F);
		p = put_rest(p, entry, c);
		return lsm_put_varint(p, code >> HEAD_TID_BITS);
	}
	if (entry->keylen == c->keylen && shared < FIXED_LONG_SHARED)
	{
		shared = Min(shared, FIXED_MOST_SHARED);
		unshared = entry->keylen - shared;
		*p++ = (shared << 4) | (code & 0x0F);
	}
	else
	{
		unshared = entry->keylen - shared;
		*p++ = (FIXED_ANY_LENGTH << 4) | (code & 0x0F);
		p = lsm_put_varint(p, shared);
		p = lsm_put_varint(p, unshared);
	}
	lsm_copy(p, entry->key + shared, unshared);
	p += unshared;
	p = put_rest(p, entry, c);
	return lsm_put_low_bytes(p, code >> HEAD_TID_BITS, c->tid_bytes);
}

/*
 * Write one entry at p, as a difference to prev unless that is NULL.  Returns
 * the end.  Both building and trimming a page go through here.
 */
static inline uint8 *
encode_entry(uint8 *p, const LsmEntry *entry, const LsmEntry *prev,
			 uint32 shared, const LsmLeafCoding *c)
{
	uint64		code = code_tid(entry->tid, c);
	uint32		unshared = entry->keylen - shared;
	bool		same = prev != NULL && unshared == 0 && shared == prev->keylen &&
		entry->tid >= prev->tid;

	/* A key that is a pure prefix of the last must not look the same. */
	if (unshared == 0 && shared > 0 && !same)
	{
		shared--;
		unshared++;
	}
	if (c->keylen > 0)
		return encode_fixed(p, entry, shared, same, code, same ? code_tid(prev->tid, c) : 0, c);
	if (same)
	{
		*p++ = SAME_KEY;
		code -= code_tid(prev->tid, c);
	}
	else
	{
		*p++ = (Min(shared, NIBBLE_MORE) << 4) | Min(unshared, NIBBLE_MORE);
		if (shared >= NIBBLE_MORE)
			p = lsm_put_varint(p, shared);
		if (unshared >= NIBBLE_MORE)
			p = lsm_put_varint(p, unshared);
		lsm_copy(p, entry->key + shared, unshared);
		p += unshared;
	}
	p = put_rest(p, entry, c);
	return lsm_put_varint(p, code);
}

/*
 * An upper bound of what encode_entry writes is enough: it is close.  There is
 * a byte for a key which is a pure prefix of the one before.
 */
static inline uint32
most_bytes(const LsmEntry *entry, uint32 shared, const LsmLeafCoding *c)
{
	uint32		rest = c->has_rest ? 2 + entry->restlen : 0;

	if (c->keylen > 0)
		return 2 + entry->keylen - Min(shared, FIXED_MOST_SHARED) +
			(entry->keylen != c->keylen ? 4 : 0) + rest + c->tid_bytes;
	return 2 + (shared >= NIBBLE_MORE ? 2 : 0) +
		(entry->keylen - shared >= NIBBLE_MORE - 1 ? 2 : 0) + entry->keylen - shared +
		rest + lsm_varint_size(code_tid(entry->tid, c));
}

/* Open a new group at pd_lower. */
static void
open_group(Page page, uint8 *p)
{
	PageHeader	header = (PageHeader) page;
	uint16		offset = p - (uint8 *) page;

	header->pd_upper -= sizeof(uint16);
	memcpy((char *) page + header->pd_upper, &offset, sizeof(uint16));
	lsm_leaf_header(page)->group_count++;
}

/* Start an empty page in private memory.  What its header says of TIDs is not filled in. */
static void
begin_page(LsmLeafBuilder *b, Page page, uint16 kind, bool has_rest, uint64 owner,
		   BlockNumber self)
{
	lsm_page_init(page, kind, owner, self);
	lsm_page_opaque(page)->flags = has_rest ? LSM_PAGE_HAS_REST : 0;
	((PageHeader) page)->pd_lower = LSM_LEAF_DATA;
	memset(lsm_leaf_header(page), 0, sizeof(LsmLeafHeader));
	b->page = page;
	b->odd_keys = 0;
	b->in_group = LSM_GROUP_ENTRIES;	/* the first entry opens a group */
	b->last_keylen = 0;
	b->last_tid = 0;
	b->last_prefix = 0;
}

/*
 * Start an empty leaf.
 *
 * REQUIRES: the mode has seen an entry, and is settled.
 */
void
lsm_leaf_begin(LsmLeafBuilder *b, Page page, bool has_rest, const LsmLeafMode *mode,
			   uint64 owner, BlockNumber self)
{
	LsmLeafHeader *leaf = lsm_leaf_header(page);

	Assert(mode->base_block <= mode->last_block && mode->keylen != LSM_KEYLEN_NONE);
	begin_page(b, page, LSM_PAGE_LEAF, has_rest, owner, self);
	leaf->base_block = mode->base_block;
	leaf->last_block = mode->last_block;
	leaf->keylen = mode->keylen;
	leaf->offset_bits = mode->offset_bits;
	if (mode->keylen > 0)
		leaf->tid_bytes = lsm_mode_tid_bytes(mode->base_block, mode->last_block,
											 mode->offset_bits);
	b->coding = page_coding(page);
}

/*
 * Start the leaf after the one that was built, for an entry with this TID: the
 * mode learns from why that could not go on, once for the rest of the run.
 *
 * REQUIRES: b is zeroed if there was no leaf before.
 */
void
lsm_leaf_begin_next(LsmLeafBuilder *b, Page page, bool has_rest, LsmLeafMode *mode,
					uint64 first_tid, uint64 owner, BlockNumber self)
{
	/* A key of another length costs a byte more than in the variable coding. */
	if (b->page != NULL && lsm_leaf_header(b->page)->keylen == mode->keylen &&
		b->odd_keys > lsm_leaf_header(b->page)->entry_count / 2)
		mode->keylen = 0;
	lsm_mode_cover(mode, first_tid);
	lsm_leaf_begin(b, page, has_rest, mode, owner, self);
}

/* Start an empty fence page.  `wide`: see lsm_leaf_needs_wide. */
void
lsm_fence_begin(LsmLeafBuilder *b, Page page, bool wide, uint64 owner, BlockNumber self)
{
	begin_page(b, page, LSM_PAGE_FENCE, true, owner, self);
	lsm_leaf_header(page)->offset_bits = wide ? 16 : LSM_NARROW_OFFSET_BITS;
	b->coding = page_coding(page);
}

/* How many bytes does a key have in common with the last one? */
static inline uint32
shared_with_last(const LsmLeafBuilder *b, const LsmEntry *entry, uint64 prefix)
{
	uint32		n = Min(b->last_keylen, entry->keylen);
	uint64		x = prefix ^ b->last_prefix;

	if (x != 0)
		return Min(n, (63 - pg_leftmost_one_pos64(x)) / 8);
	if (n <= sizeof(uint64))
		return n;
	return 8 + lsm_common_prefix(b->last_key + 8, b->last_keylen - 8,
								 entry->key + 8, entry->keylen - 8);
}

/* Room for the eight bytes that encode_short writes at a time. */
#define SHORT_ROOM	(1 + 3 * sizeof(uint64))

/*
 * encode_fixed for a key of up to eight bytes, as an integer, that is not the
 * one before, without a rest.  Writes zero bytes beyond the end of the entry.
 */
static inline uint8 *
encode_short(uint8 *p, uint64 prefix, uint32 shared, uint64 code, const LsmLeafCoding *c)
{
	*p++ = (shared << 4) | (code & 0x0F);
	lsm_store_low_first(p, pg_bswap64(prefix) >> (8 * shared));
	p += c->keylen - shared;
	lsm_store_low_first(p, code >> HEAD_TID_BITS);
	return p + c->tid_bytes;
}

/*
 * Append an entry.  Returns false, with the page unchanged, when it does not
 * fit, or the page's coding has no room for its TID.
 *
 * REQUIRES: entries come in order; keylen + restlen <= LSM_MAX_ENTRY_SIZE.
 */
bool
lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry)
{
	PageHeader	header = (PageHeader) b->page;
	LsmLeafHeader *leaf = lsm_leaf_header(b->page);
	bool		opens = b->in_group == LSM_GROUP_ENTRIES;
	uint64		prefix = entry->aligned ? lsm_key_prefix_padded(entry->key) :
		lsm_key_prefix(entry->key, entry->keylen);
	uint32		shared = 0;
	uint8	   *p;

	/* Fence pages must branch enough for LSM_MAX_HEIGHT to do. */
	if (lsm_page_entries > 0 && leaf->entry_count >=
		(lsm_page_opaque(b->page)->kind == LSM_PAGE_FENCE ? Max(lsm_page_entries, 8) : lsm_page_entries))
		return false;
	if (!can_code_tid(entry->tid, &b->coding))
		return false;

	if (!opens)
		shared = shared_with_last(b, entry, prefix);
	if (header->pd_lower + most_bytes(entry, shared, &b->coding) +
		(opens ? sizeof(uint16) : 0) > header->pd_upper)
		return false;

	p = (uint8 *) b->page + header->pd_lower;
	if (opens)
	{
		open_group(b->page, p);
		b->in_group = 0;
	}
	if (entry->keylen == b->coding.keylen && shared < entry->keylen &&
		entry->keylen <= sizeof(uint64) && !b->coding.has_rest &&
		header->pd_upper - header->pd_lower >= SHORT_ROOM)
	{
		p = encode_short(p, prefix, shared, code_tid(entry->tid, &b->coding), &b->coding);
		lsm_store_low_first(b->last_key, pg_bswap64(prefix));
	}
	else
	{
		LsmEntry	last = {.key = b->last_key,.keylen = b->last_keylen,.tid = b->last_tid};

		p = encode_entry(p, entry, opens ? NULL : &last, shared, &b->coding);
		lsm_copy(b->last_key + shared, entry->key + shared, entry->keylen - shared);
	}
	Assert(p <= (uint8 *) b->page + header->pd_upper);

	header->pd_lower = p - (uint8 *) b->page;
	leaf->entry_count++;
	b->in_group++;
	/* The same key again, such as null, takes as much in either coding. */
	b->odd_keys += entry->keylen != b->coding.keylen &&
		!(shared == entry->keylen && b->last_keylen == entry->keylen);
	b->last_keylen = entry->keylen;
	b->last_tid = entry->tid;
	b->last_prefix = prefix;
	return true;
}

/*
 * Go on with a page that was written before: find the last entry, which the
 * next one is coded against.  False if the page is damaged.
 */
bool
lsm_leaf_resume(LsmLeafBuilder *b, Page page, LsmGroup *scratch)
{
	LsmEntry   *last;
	int			groups = lsm_leaf_group_count(page);

	b->page = page;
	b->coding = page_coding(page);
	b->odd_keys = 0;
	if (groups == 0 || !lsm_leaf_decode_group(page, groups - 1, scratch) ||
		scratch->count == 0)
		return false;
	last = &scratch->entries[scratch->count - 1];
	b->in_group = scratch->count;
	memcpy(b->last_key, last->key, last->keylen);
	b->last_keylen = last->keylen;
	b->last_tid = last->tid;
	b->last_prefix = lsm_key_prefix(last->key, last->keylen);
	return true;
}

/*
 * How much of a page is unused, in bytes.  Where the number of entries is
 * limited, as tests do, the page counts as full when it has as many.
 */
uint32
lsm_leaf_unused(Page page)
{
	PageHeader	header = (PageHeader) page;
	uint32		unused = header->pd_upper - header->pd_lower;
	uint32		count = lsm_leaf_header(page)->entry_count;

	if (lsm_page_entries > 0 && count >= (uint32) lsm_page_entries)
		return 0;
	if (lsm_page_entries > 0)
		unused = Min(unused, LSM_LEAF_CAPACITY / lsm_page_entries * (lsm_page_entries - count));
	return unused;
}

/* NULL, or what is wrong with the layout of a packed page. */
const char *
lsm_leaf_check(Page page)
{
	PageHeader	header = (PageHeader) page;
	LsmLeafHeader *leaf = lsm_leaf_header(page);

	if (header->pd_lower < LSM_LEAF_DATA ||
		header->pd_upper + sizeof(uint16) * leaf->group_count != LSM_PAGE_SPECIAL ||
		leaf->entry_count > leaf->group_count * LSM_GROUP_ENTRIES ||
		leaf->entry_count < leaf->group_count)
		return "entry counts do not fit the page";
	if (leaf->offset_bits < 1 || leaf->offset_bits > 16 || leaf->tid_bytes > MAX_TID_BYTES ||
		leaf->keylen > LSM_MAX_ENTRY_SIZE || leaf->base_block > leaf->last_block)
		return "coding of the entries is unknown";
	for (int i = 0; i < leaf->group_count; i++)
	{
		uint16		offset = lsm_leaf_group_offset(page, i);
		uint16		before = i > 0 ? lsm_leaf_group_offset(page, i - 1) : LSM_LEAF_DATA - 1;

		if (offset <= before || offset >= header->pd_lower)
			return "group offsets are out of order";
	}
	return NULL;
}

/*
 * Code a group again without the entries that are to be removed, at *p in the
 * page, and not beyond `limit`: on a sound page the group does not get there.
 * *ordinal is that of its first entry, *next the next one to remove.
 */
static bool
trim_group(Page page, const LsmGroup *group, const LsmLeafCoding *c, uint8 **p,
		   const uint8 *limit, const uint16 *ordinals, int count, int *ordinal, int *next)
{
	uint8		room[2 * LSM_MAX_ENTRY_SIZE + ENTRY_OVERHEAD];
	const LsmEntry *prev = NULL;

	for (int i = 0; i < group->count; i++, (*ordinal)++)
	{
		const LsmEntry *entry = &group->entries[i];
		uint32		shared = 0;
		Size		size;

		if (*next < count && ordinals[*next] == *ordinal)
		{
			(*next)++;
			continue;
		}
		if (prev != NULL)
			shared = lsm_common_prefix(prev->key, prev->keylen, entry->key, entry->keylen);
		size = encode_entry(room, entry, prev, shared, c) - room;
		if (size > (Size) (limit - *p))
			return false;
		if (prev == NULL)
			open_group(page, *p);
		memcpy(*p, room, size);
		*p += size;
		lsm_leaf_header(page)->entry_count++;
		prev = entry;
	}
	return true;
}

/*
 * Remove the entries at the given ordinals (ascending).  Groups are kept: each
 * is coded again without its removed entries, an emptied one disappears.  So
 * the page never grows (I6): dropping an entry makes its successor longer by
 * at most the bytes that the dropped one carried itself.  Used by VACUUM and
 * by its redo.  False, with the page unchanged, if it is damaged.
 */
bool
lsm_leaf_delete(Page page, const uint16 *ordinals, int count, LsmGroup *scratch)
{
	PGAlignedBlock copy;
	Page		old = (Page) copy.data;
	PageHeader	header = (PageHeader) page;
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	LsmLeafCoding coding = page_coding(page);
	int			groups = lsm_leaf_group_count(page);
	int			ordinal = 0;
	int			next = 0;
	uint8	   *p = (uint8 *) page + LSM_LEAF_DATA;
	uint8	   *limit = (uint8 *) page + header->pd_lower;

	if (lsm_leaf_check(page) != NULL)
		return false;
	memcpy(old, page, BLCKSZ);
	leaf->entry_count = 0;
	leaf->group_count = 0;
	header->pd_upper = LSM_PAGE_SPECIAL;

	for (int g = 0; g < groups; g++)
	{
		if (!lsm_leaf_decode_group(old, g, scratch) ||
			!trim_group(page, scratch, &coding, &p, limit, ordinals, count, &ordinal, &next))
		{
			memcpy(page, old, BLCKSZ);
			return false;
		}
	}
	header->pd_lower = p - (uint8 *) page;
	memset(p, 0, header->pd_upper - header->pd_lower);
	lsm_page_set_crc(page);
	return true;
}
