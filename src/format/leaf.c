/*
 * leaf.c
 *	  Building, decoding and trimming packed pages.
 */
#include "postgres.h"

#include "base/coding.h"
#include "format/leaf.h"

#define SAME_KEY	0xF0		/* header byte: key of the entry before */
#define NIBBLE_MORE 15			/* nibble: a varint follows */
#define NARROW_BITS 9			/* offset bits of a narrow TID */

static inline uint16
group_offset(Page page, int group)
{
	uint16		offset;

	memcpy(&offset, (char *) page + LSM_PAGE_SPECIAL - sizeof(uint16) * (group + 1),
		   sizeof(uint16));
	return offset;
}

/* How a page codes TIDs: in few bits where it can.  The order is kept. */
typedef struct TidCoding
{
	bool		wide;
	uint64		base;			/* not above any TID on the page */
} TidCoding;

static inline TidCoding
page_coding(Page page)
{
	TidCoding	coding;

	coding.wide = (lsm_page_opaque(page)->flags & LSM_PAGE_WIDE_TID) != 0;
	coding.base = (uint64) lsm_leaf_header(page)->base_block << 16;
	return coding;
}

static inline uint64
code_tid(uint64 tid, TidCoding coding)
{
	tid -= coding.base;
	return coding.wide ? tid : ((tid >> 16) << NARROW_BITS) | (tid & 0xFFFF);
}

static inline uint64
decode_tid(uint64 code, TidCoding coding)
{
	if (!coding.wide)
		code = ((code >> NARROW_BITS) << 16) | (code & ((1 << NARROW_BITS) - 1));
	return code + coding.base;
}

bool
lsm_leaf_needs_wide(uint64 tid)
{
	return (tid & 0xFFFF) >= (1 << NARROW_BITS);
}

/*
 * Write one entry at p, as a difference to prev unless that is NULL.  Returns
 * the end.  Both building and trimming a page go through here.
 */
static uint8 *
encode_entry(uint8 *p, const LsmEntry *entry, const LsmEntry *prev,
			 uint32 shared, bool has_rest, TidCoding coding)
{
	uint64		code = code_tid(entry->tid, coding);
	uint32		unshared = entry->keylen - shared;

	if (prev != NULL && unshared == 0 && shared == prev->keylen &&
		entry->tid >= prev->tid)
	{
		*p++ = SAME_KEY;
		code -= code_tid(prev->tid, coding);
	}
	else
	{
		/* A key that is a pure prefix of the last must not look the same. */
		if (unshared == 0 && shared > 0)
		{
			shared--;
			unshared++;
		}
		*p++ = (Min(shared, NIBBLE_MORE) << 4) | Min(unshared, NIBBLE_MORE);
		if (shared >= NIBBLE_MORE)
			p = lsm_put_varint(p, shared);
		if (unshared >= NIBBLE_MORE)
			p = lsm_put_varint(p, unshared);
		lsm_copy(p, entry->key + shared, unshared);
		p += unshared;
	}
	if (has_rest)
	{
		p = lsm_put_varint(p, entry->restlen);
		memcpy(p, entry->rest, entry->restlen);
		p += entry->restlen;
	}
	return lsm_put_varint(p, code);
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

/* Start an empty page in private memory. */
void
lsm_leaf_begin(LsmLeafBuilder *b, Page page, uint16 kind, bool has_rest,
			   bool wide, uint64 run_id, BlockNumber self)
{
	lsm_page_init(page, kind, run_id, self);
	lsm_page_opaque(page)->flags = (has_rest ? LSM_PAGE_HAS_REST : 0) |
		(wide ? LSM_PAGE_WIDE_TID : 0);
	((PageHeader) page)->pd_lower = LSM_LEAF_DATA;
	memset(lsm_leaf_header(page), 0, sizeof(LsmLeafHeader));
	b->page = page;
	b->wide = wide;
	b->base_tid = 0;
	b->has_rest = has_rest;
	b->in_group = LSM_GROUP_ENTRIES;	/* the first entry opens a group */
	b->last_keylen = 0;
	b->last_tid = 0;
}

/*
 * Code TIDs relative to a heap block: shorter where all of them are near.
 *
 * REQUIRES: the page is empty.
 */
void
lsm_leaf_set_base(LsmLeafBuilder *b, BlockNumber base_block)
{
	lsm_leaf_header(b->page)->base_block = base_block;
	b->base_tid = (uint64) base_block << 16;
}

/*
 * Append an entry.  Returns false, with the page unchanged, when it does not
 * fit, or its TID needs the wide coding and the page is narrow, or lies below
 * the base.
 *
 * REQUIRES: entries come in order; keylen + restlen <= LSM_MAX_ENTRY_SIZE.
 */
bool
lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry)
{
	PageHeader	header = (PageHeader) b->page;
	LsmLeafHeader *leaf = lsm_leaf_header(b->page);
	bool		opens = b->in_group == LSM_GROUP_ENTRIES;
	LsmEntry	last;
	uint32		shared = 0;
	uint32		need;
	TidCoding	coding = {b->wide, b->base_tid};
	uint8	   *p;

	/* Fence pages must branch enough for LSM_MAX_HEIGHT to do. */
	if (lsm_page_entries > 0 && leaf->entry_count >=
		(lsm_page_opaque(b->page)->kind == LSM_PAGE_FENCE ? Max(lsm_page_entries, 8) : lsm_page_entries))
		return false;
	if ((!b->wide && lsm_leaf_needs_wide(entry->tid)) || entry->tid < b->base_tid)
		return false;

	last.key = b->last_key;
	last.keylen = b->last_keylen;
	last.tid = b->last_tid;
	if (!opens)
		shared = lsm_common_prefix(last.key, last.keylen, entry->key, entry->keylen);

	/*
	 * An upper bound of the coded size is enough: it is close.  The second
	 * byte is that of a key which is a pure prefix of the one before.
	 */
	need = 2 + (shared >= NIBBLE_MORE ? 2 : 0) +
		(entry->keylen - shared >= NIBBLE_MORE - 1 ? 2 : 0) + entry->keylen - shared +
		(b->has_rest ? 2 + entry->restlen : 0) +
		lsm_varint_size(code_tid(entry->tid, coding)) + (opens ? sizeof(uint16) : 0);
	if (header->pd_lower + need > header->pd_upper)
		return false;

	p = (uint8 *) b->page + header->pd_lower;
	if (opens)
	{
		open_group(b->page, p);
		b->in_group = 0;
	}
	p = encode_entry(p, entry, opens ? NULL : &last, shared, b->has_rest, coding);
	Assert(p <= (uint8 *) b->page + header->pd_upper);

	header->pd_lower = p - (uint8 *) b->page;
	leaf->entry_count++;
	b->in_group++;
	lsm_copy(b->last_key + shared, entry->key + shared, entry->keylen - shared);
	b->last_keylen = entry->keylen;
	b->last_tid = entry->tid;
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
	b->wide = (lsm_page_opaque(page)->flags & LSM_PAGE_WIDE_TID) != 0;
	b->base_tid = (uint64) lsm_leaf_header(page)->base_block << 16;
	b->has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;
	if (groups == 0 || !lsm_leaf_decode_group(page, groups - 1, scratch) ||
		scratch->count == 0)
		return false;
	last = &scratch->entries[scratch->count - 1];
	b->in_group = scratch->count;
	memcpy(b->last_key, last->key, last->keylen);
	b->last_keylen = last->keylen;
	b->last_tid = last->tid;
	return true;
}

/* Room for decoding groups whose keys have at most max_keylen bytes. */
void
lsm_group_init(LsmGroup *group, uint32 max_keylen)
{
	group->count = 0;
	group->max_keylen = max_keylen;
	group->scratch = palloc(lsm_group_scratch_size(max_keylen));
}

void
lsm_group_free(LsmGroup *group)
{
	pfree(group->scratch);
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
	for (int i = 0; i < leaf->group_count; i++)
	{
		uint16		offset = group_offset(page, i);
		uint16		before = i > 0 ? group_offset(page, i - 1) : LSM_LEAF_DATA - 1;

		if (offset <= before || offset >= header->pd_lower)
			return "group offsets are out of order";
	}
	return NULL;
}

/*
 * Decode the entry at p whose predecessor (not for the first of a group) is
 * prev.  The key is built at `key`, which has room for max_keylen and padding.
 * Returns the end of the entry or NULL.
 */
static const uint8 *
decode_entry(const uint8 *p, const uint8 *end, bool has_rest, TidCoding coding,
			 const LsmEntry *prev, uint8 *key, uint32 max_keylen, LsmEntry *out)
{
	bool		same = false;
	uint64		shared;
	uint64		unshared;
	uint64		code;
	uint8		head;

	if (p >= end)
		return NULL;
	head = *p++;
	if (head == SAME_KEY && prev != NULL)
	{
		same = true;
		out->keylen = prev->keylen;
		lsm_copy(key, prev->key, prev->keylen);
	}
	else
	{
		shared = head >> 4;
		unshared = head & 0x0F;
		if (shared == NIBBLE_MORE && (p = lsm_get_varint(p, end, &shared)) == NULL)
			return NULL;
		if (unshared == NIBBLE_MORE && (p = lsm_get_varint(p, end, &unshared)) == NULL)
			return NULL;
		if (unshared > (uint64) (end - p) ||
			shared > (prev ? prev->keylen : 0) ||
			shared + unshared > max_keylen)
			return NULL;
		if (shared > 0)
			lsm_copy(key, prev->key, (uint32) shared);
		lsm_copy(key + shared, p, (uint32) unshared);
		out->keylen = (uint32) (shared + unshared);
		p += unshared;
	}
	out->key = key;
	out->aligned = true;
	memset(key + out->keylen, 0, LSM_KEY_PAD);

	out->rest = NULL;
	out->restlen = 0;
	if (has_rest)
	{
		uint64		restlen;

		if ((p = lsm_get_varint(p, end, &restlen)) == NULL ||
			restlen > (uint64) (end - p) || restlen > LSM_MAX_ENTRY_SIZE)
			return NULL;
		out->rest = p;
		out->restlen = (uint32) restlen;
		p += restlen;
	}

	if ((p = lsm_get_varint(p, end, &code)) == NULL)
		return NULL;
	if (same)
		code += code_tid(prev->tid, coding);
	out->tid = decode_tid(code, coding);
	return p;
}

/*
 * The first entry of a group, without copying: its key is whole and stays in
 * the page.  False if the page is damaged.
 */
bool
lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry)
{
	const uint8 *end = (const uint8 *) page + ((PageHeader) page)->pd_lower;
	const uint8 *p = (const uint8 *) page + group_offset(page, group);
	uint16		flags = lsm_page_opaque(page)->flags;
	uint64		unshared;
	uint64		code;

	if (p >= end || p < (const uint8 *) page + LSM_LEAF_DATA || (*p >> 4) != 0)
		return false;
	unshared = *p++ & 0x0F;
	if (unshared == NIBBLE_MORE && (p = lsm_get_varint(p, end, &unshared)) == NULL)
		return false;
	if (unshared > (uint64) (end - p) || unshared > LSM_MAX_ENTRY_SIZE)
		return false;
	entry->key = p;
	entry->aligned = false;
	entry->keylen = (uint32) unshared;
	p += unshared;
	entry->rest = NULL;
	entry->restlen = 0;
	if (flags & LSM_PAGE_HAS_REST)
	{
		uint64		restlen;

		if ((p = lsm_get_varint(p, end, &restlen)) == NULL ||
			restlen > (uint64) (end - p))
			return false;
		entry->rest = p;
		entry->restlen = (uint32) restlen;
		p += restlen;
	}
	if (lsm_get_varint(p, end, &code) == NULL)
		return false;
	entry->tid = decode_tid(code, page_coding(page));
	return true;
}

/*
 * Decode a whole group.  Keys are copied to the scratch area; rests stay in
 * the page.  False if the page is damaged.
 */
bool
lsm_leaf_decode_group(Page page, int group, LsmGroup *out)
{
	int			groups = lsm_leaf_group_count(page);
	bool		has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;
	TidCoding	coding = page_coding(page);
	const uint8 *p = (const uint8 *) page + group_offset(page, group);
	const uint8 *end = (const uint8 *) page +
		(group + 1 < groups ? group_offset(page, group + 1) : ((PageHeader) page)->pd_lower);
	uint8	   *key = out->scratch;
	const LsmEntry *prev = NULL;

	out->count = 0;
	while (p < end)
	{
		LsmEntry   *entry;

		if (out->count == LSM_GROUP_ENTRIES)
			return false;
		entry = &out->entries[out->count];
		p = decode_entry(p, end, has_rest, coding, prev, key, out->max_keylen, entry);
		if (p == NULL)
			return false;
		key += MAXALIGN(entry->keylen) + LSM_KEY_PAD;
		prev = entry;
		out->count++;
	}
	return out->count > 0;
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
	TidCoding	coding = page_coding(page);
	bool		has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;
	int			groups = lsm_leaf_group_count(page);
	int			ordinal = 0;
	int			next = 0;
	uint8	   *p = (uint8 *) page + LSM_LEAF_DATA;

	memcpy(old, page, BLCKSZ);
	leaf->entry_count = 0;
	leaf->group_count = 0;
	header->pd_upper = LSM_PAGE_SPECIAL;

	for (int g = 0; g < groups; g++)
	{
		const LsmEntry *prev = NULL;

		if (!lsm_leaf_decode_group(old, g, scratch))
		{
			memcpy(page, old, BLCKSZ);
			return false;
		}
		for (int i = 0; i < scratch->count; i++, ordinal++)
		{
			const LsmEntry *entry = &scratch->entries[i];
			uint32		shared = 0;

			if (next < count && ordinals[next] == ordinal)
			{
				next++;
				continue;
			}
			if (prev == NULL)
				open_group(page, p);
			else
				shared = lsm_common_prefix(prev->key, prev->keylen, entry->key, entry->keylen);
			p = encode_entry(p, entry, prev, shared, has_rest, coding);
			leaf->entry_count++;
			prev = entry;
		}
	}
	header->pd_lower = p - (uint8 *) page;
	memset(p, 0, header->pd_upper - header->pd_lower);
	lsm_page_set_crc(page);
	return true;
}
