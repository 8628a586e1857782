/*
 * leaf_build.c
 *	  Builds packed pages, and removes entries from them.
 */
#include "postgres.h"

#include "format/frame.h"
#include "format/leaf_build.h"
#include "format/leaf_mode.h"
#include "format/leaf_read.h"

/* The most bytes that an entry takes on a page, in addition to its key and rest. */
#define ENTRY_OVERHEAD		32

/* Room to re-encode a group, even one from a damaged page. */
#define TRIM_ROOM	(LSM_GROUP_ENTRIES * (2 * LSM_MAX_ENTRY_SIZE + ENTRY_OVERHEAD) + FRAME_ROOM)

/* Does the page's coding have room for the TID? */
static inline bool
can_code_tid(uint64 tid, const LsmLeafCoding *c)
{
	if (tid < c->base_tid || (tid & 0xFFFF) >> c->offset_bits != 0)
		return false;
	return c->keylen == 0 || lsm_code_tid(tid, c) >> (8 * c->tid_bytes) == 0;
}

/* Does the offset of the TID need more than LSM_NARROW_OFFSET_BITS bits? */
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
 * Write one entry at p in the variable coding, as a difference from prev unless prev
 * is NULL.  Returns the end.  Used for building pages and for trimming them.
 */
static inline uint8 *
encode_entry(uint8 *p, const LsmEntry *entry, const LsmEntry *prev,
			 uint32 shared, const LsmLeafCoding *c)
{
	uint64		code = lsm_code_tid(entry->tid, c);
	uint32		unshared = entry->keylen - shared;
	bool		same = prev != NULL && unshared == 0 && shared == prev->keylen &&
		entry->tid >= prev->tid;

	/* The head of a key that is a prefix of the previous key must not look like SAME_KEY. */
	if (unshared == 0 && shared > 0 && !same)
	{
		shared--;
		unshared++;
	}
	if (same)
	{
		*p++ = SAME_KEY;
		code -= lsm_code_tid(prev->tid, c);
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
 * Returns a close upper bound on what encode_entry writes.  The bound includes a
 * byte for a key that is a prefix of the previous key.
 */
static inline uint32
most_bytes(const LsmEntry *entry, uint32 shared, const LsmLeafCoding *c)
{
	uint32		rest = c->has_rest ? 2 + entry->restlen : 0;

	return 2 + (shared >= NIBBLE_MORE ? 2 : 0) +
		(entry->keylen - shared >= NIBBLE_MORE - 1 ? 2 : 0) + entry->keylen - shared +
		rest + lsm_varint_size(lsm_code_tid(entry->tid, c));
}

/* Open a new group at p. */
static void
open_group(Page page, uint8 *p)
{
	PageHeader	header = (PageHeader) page;
	uint16		offset = p - (uint8 *) page;

	header->pd_upper -= sizeof(uint16);
	memcpy((char *) page + header->pd_upper, &offset, sizeof(uint16));
	lsm_leaf_header(page)->group_count++;
}

/* Start an empty page in private memory.  The caller fills in the header's coding fields. */
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
	b->in_group = LSM_UNFRAMED_ENTRIES; /* the first entry opens a group */
	b->framed = 0;
	b->rest_used = 0;
	b->last_keylen = 0;
	b->last_tid = 0;
	b->last_prefix = 0;
}

static void
set_coding(LsmLeafBuilder *b)
{
	const LsmLeafCoding *c = &b->coding;

	b->coding = lsm_leaf_coding(b->page);
	b->most_frame = FRAME_HEAD + c->tid_bytes + LSM_GROUP_ENTRIES * (c->keylen + c->tid_bytes);
}

/*
 * Start an empty leaf.
 *
 * REQUIRES: the mode covers at least one entry and is settled.
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
	set_coding(b);
}

/*
 * Start the leaf after the one just built, for an entry with this TID.  Widens the
 * mode for this leaf and all later ones if the mode did not fit the previous leaf's
 * keys, or does not fit the TID.
 *
 * REQUIRES: b is zeroed if there was no leaf before.
 */
void
lsm_leaf_begin_next(LsmLeafBuilder *b, Page page, bool has_rest, LsmLeafMode *mode,
					uint64 first_tid, uint64 owner, BlockNumber self)
{
	/* If keys of other lengths are common, they break up framed groups: stop framing. */
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
	set_coding(b);
}

/* Returns how many leading bytes a key shares with the last key. */
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

/* --- framed groups ------------------------------------------------------------- */

/* Measure the frame of the waiting entries and of `more`, a padded entry or NULL. */
static void
measure_waiting(const LsmLeafBuilder *b, const LsmEntry *more, LsmFrame *frame)
{
	const LsmEntry *first = b->framed > 0 ? &b->waiting[0] : more;
	const LsmEntry *last = more != NULL ? more : &b->waiting[b->framed - 1];
	uint64		code = lsm_code_tid(last->tid, &b->coding);

	lsm_frame_measure(frame, b->framed + (more != NULL), first->key, last->key,
					  b->framed > 0 ? Min(b->lowest_tid, code) : code,
					  b->framed > 0 ? Max(b->highest_tid, code) : code, &b->coding);
}

/* Returns how many bytes the waiting entries will take. */
static uint32
waiting_size(const LsmLeafBuilder *b)
{
	LsmFrame	frame;

	if (b->framed == 0)
		return 0;
	measure_waiting(b, NULL, &frame);
	return sizeof(uint16) + lsm_frame_size(&frame) + b->rest_used;
}

/* Write the waiting entries to the page, as a framed group. */
static void
close_frame(LsmLeafBuilder *b)
{
	PageHeader	header = (PageHeader) b->page;
	uint8	   *p = (uint8 *) b->page + header->pd_lower;
	uint8		room[FRAME_ROOM];
	LsmFrame	frame;
	Size		size;

	measure_waiting(b, NULL, &frame);
	size = lsm_frame_encode(room, &frame, b->waiting, &b->coding) - room;
	Assert(size == lsm_frame_size(&frame));
	open_group(b->page, p);
	Assert(header->pd_lower + size + b->rest_used <= header->pd_upper);
	memcpy(p, room, size);
	memcpy(p + size, b->waiting_rests, b->rest_used);
	header->pd_lower += size + b->rest_used;
	b->framed = 0;
	b->rest_used = 0;
}

/* Add an entry to those that wait for their frame.  Pads the copy of its key. */
static inline void
await_frame(LsmLeafBuilder *b, const LsmEntry *entry)
{
	LsmEntry   *to = &b->waiting[b->framed];
	uint64		code = lsm_code_tid(entry->tid, &b->coding);

	to->key = b->waiting_keys[b->framed];
	lsm_copy(b->waiting_keys[b->framed], entry->key, entry->keylen);
	memset(b->waiting_keys[b->framed] + entry->keylen, 0, LSM_KEY_PAD);
	to->tid = entry->tid;
	b->lowest_tid = b->framed > 0 ? Min(b->lowest_tid, code) : code;
	b->highest_tid = b->framed > 0 ? Max(b->highest_tid, code) : code;
	b->rest_used = put_rest(b->waiting_rests + b->rest_used, entry, &b->coding) - b->waiting_rests;
	b->framed++;
}

/*
 * Would the waiting group, with one more entry, fit on the page?  Until the page is nearly
 * full, any entry fits, and the frame need not be measured.
 */
static inline bool
frame_fits(const LsmLeafBuilder *b, const LsmEntry *entry)
{
	PageHeader	header = (PageHeader) b->page;
	uint32		room = header->pd_upper - header->pd_lower;
	uint32		beside = sizeof(uint16) + b->rest_used +
		(b->coding.has_rest ? lsm_varint_size(entry->restlen) + entry->restlen : 0);
	uint8		key[LSM_FRAMED_KEYLEN + LSM_KEY_PAD];
	LsmEntry	padded = *entry;
	LsmFrame	frame;

	if (likely(room >= beside + b->most_frame))
		return true;
	memcpy(key, entry->key, entry->keylen);
	memset(key + entry->keylen, 0, LSM_KEY_PAD);
	padded.key = key;
	measure_waiting(b, &padded, &frame);
	return room >= beside + lsm_frame_size(&frame);
}

static inline bool
add_framed(LsmLeafBuilder *b, const LsmEntry *entry)
{
	if (b->framed == LSM_GROUP_ENTRIES)
		close_frame(b);
	if (!frame_fits(b, entry))
		return false;
	await_frame(b, entry);
	/* The previous group, if it was in the variable coding, has ended. */
	b->in_group = LSM_UNFRAMED_ENTRIES;
	return true;
}

/* Complete the page: write the waiting entries, if any. */
void
lsm_leaf_finish(LsmLeafBuilder *b)
{
	if (b->framed > 0)
		close_frame(b);
}

/* --- other groups -------------------------------------------------------------- */

/* Append an entry in the variable coding. */
static bool
add_variable(LsmLeafBuilder *b, const LsmEntry *entry, uint32 shared)
{
	PageHeader	header = (PageHeader) b->page;
	LsmEntry	last = {.key = b->last_key,.keylen = b->last_keylen,.tid = b->last_tid};
	bool		opens = b->in_group == LSM_UNFRAMED_ENTRIES;
	bool		marks = opens && b->coding.keylen > 0;
	uint8	   *p;

	if (opens)
		shared = 0;
	if (header->pd_lower + waiting_size(b) + most_bytes(entry, shared, &b->coding) + marks +
		(opens ? sizeof(uint16) : 0) > header->pd_upper)
		return false;
	lsm_leaf_finish(b);

	p = (uint8 *) b->page + header->pd_lower;
	if (opens)
	{
		open_group(b->page, p);
		b->in_group = 0;
	}
	if (marks)
		*p++ = NO_FRAME;
	p = encode_entry(p, entry, opens ? NULL : &last, shared, &b->coding);
	Assert(p <= (uint8 *) b->page + header->pd_upper);
	header->pd_lower = p - (uint8 *) b->page;
	b->in_group++;
	return true;
}

/*
 * Append an entry.  Returns false, and adds nothing, if the entry does not fit
 * on the page, or its TID does not fit the page's coding.  The page is complete only
 * after lsm_leaf_finish.
 *
 * REQUIRES: entries come in order; if the mode has a key length, keys ascend as bytes;
 * keylen + restlen <= LSM_MAX_ENTRY_SIZE.
 */
bool
lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry)
{
	LsmLeafHeader *leaf = lsm_leaf_header(b->page);
	uint64		prefix = entry->aligned ? lsm_key_prefix_padded(entry->key) :
		lsm_key_prefix(entry->key, entry->keylen);
	uint32		shared = 0;

	/* Fence pages need enough children that LSM_MAX_HEIGHT levels suffice. */
	if (lsm_page_entries > 0 && leaf->entry_count >=
		(lsm_page_opaque(b->page)->kind == LSM_PAGE_FENCE ? Max(lsm_page_entries, 8) : lsm_page_entries))
		return false;
	if (!can_code_tid(entry->tid, &b->coding))
		return false;

	if (entry->keylen == b->coding.keylen && b->in_group == LSM_UNFRAMED_ENTRIES)
	{
		if (!add_framed(b, entry))
			return false;
	}
	else
	{
		shared = shared_with_last(b, entry, prefix);
		if (!add_variable(b, entry, shared))
			return false;
		/* Do not count a repeated key, such as null: its variable coding is also short. */
		b->odd_keys += entry->keylen != b->coding.keylen &&
			!(shared == entry->keylen && b->last_keylen == entry->keylen);
	}
	leaf->entry_count++;
	lsm_copy(b->last_key, entry->key, entry->keylen);
	b->last_keylen = entry->keylen;
	b->last_tid = entry->tid;
	b->last_prefix = prefix;
	return true;
}

/* Take the last group, which is framed, off the page again, so that the group can grow. */
static void
reopen_frame(LsmLeafBuilder *b, const LsmGroup *group, uint16 offset)
{
	PageHeader	header = (PageHeader) b->page;

	for (int i = 0; i < group->count; i++)
		await_frame(b, &group->entries[i]);
	memset((char *) b->page + offset, 0, header->pd_lower - offset);
	memset((char *) b->page + header->pd_upper, 0, sizeof(uint16));
	header->pd_lower = offset;
	header->pd_upper += sizeof(uint16);
	lsm_leaf_header(b->page)->group_count--;
}

/*
 * Resume a complete page.  Finds the last entry, from which the next entry is coded
 * as a difference.  Returns false if the page is damaged.
 */
bool
lsm_leaf_resume(LsmLeafBuilder *b, Page page, LsmGroup *scratch)
{
	LsmEntry   *last;
	int			groups = lsm_leaf_group_count(page);
	uint16		offset;

	b->page = page;
	b->odd_keys = 0;
	b->framed = 0;
	b->rest_used = 0;
	set_coding(b);
	if (groups == 0 || !lsm_leaf_decode_group(page, groups - 1, scratch) ||
		scratch->count == 0)
		return false;
	last = &scratch->entries[scratch->count - 1];
	memcpy(b->last_key, last->key, last->keylen);
	b->last_keylen = last->keylen;
	b->last_tid = last->tid;
	b->last_prefix = lsm_key_prefix(last->key, last->keylen);
	offset = lsm_leaf_group_offset(page, groups - 1);
	if (b->coding.keylen > 0 && ((uint8 *) page)[offset] != NO_FRAME)
	{
		b->in_group = LSM_UNFRAMED_ENTRIES;
		reopen_frame(b, scratch, offset);
	}
	else
		b->in_group = scratch->count;
	return true;
}

/*
 * Returns how many bytes of a page are unused.  If a test limits the number of
 * entries per page, a page with this number of entries counts as full.
 */
static uint32
unused_with(Page page, uint32 waiting)
{
	PageHeader	header = (PageHeader) page;
	uint32		unused = header->pd_upper - header->pd_lower - waiting;
	uint32		count = lsm_leaf_header(page)->entry_count;

	if (lsm_page_entries > 0 && count >= (uint32) lsm_page_entries)
		return 0;
	if (lsm_page_entries > 0)
		unused = Min(unused, LSM_LEAF_CAPACITY / lsm_page_entries * (lsm_page_entries - count));
	return unused;
}

uint32
lsm_leaf_unused(Page page)
{
	return unused_with(page, 0);
}

/* Like lsm_leaf_unused, for a page under construction. */
uint32
lsm_leaf_builder_unused(const LsmLeafBuilder *b)
{
	return unused_with(b->page, waiting_size(b));
}

/* Write the remaining entries of a group in the variable coding.  Returns the end. */
static uint8 *
encode_variable(uint8 *p, const LsmEntry *entries, int count, const LsmLeafCoding *c)
{
	for (int i = 0; i < count; i++)
	{
		const LsmEntry *prev = i > 0 ? &entries[i - 1] : NULL;
		uint32		shared = 0;

		if (prev != NULL)
			shared = lsm_common_prefix(prev->key, prev->keylen, entries[i].key, entries[i].keylen);
		p = encode_entry(p, &entries[i], prev, shared, c);
	}
	return p;
}

/* Write the remaining entries of a group as a frame.  Returns the end. */
static uint8 *
encode_framed(uint8 *p, const LsmEntry *entries, int count, const LsmLeafCoding *c)
{
	uint64		lowest = lsm_code_tid(entries[0].tid, c);
	uint64		highest = lowest;
	LsmFrame	frame;

	for (int i = 1; i < count; i++)
	{
		lowest = Min(lowest, lsm_code_tid(entries[i].tid, c));
		highest = Max(highest, lsm_code_tid(entries[i].tid, c));
	}
	lsm_frame_measure(&frame, count, entries[0].key, entries[count - 1].key, lowest, highest, c);
	p = lsm_frame_encode(p, &frame, entries, c);
	for (int i = 0; i < count; i++)
		p = put_rest(p, &entries[i], c);
	return p;
}

/*
 * Re-encode a group at *p in the page, without the entries to remove.  Returns false
 * if the group would exceed `limit`, which happens only on a damaged page.  *ordinal is
 * the ordinal of the group's first entry; ordinals[*next] is the next one to remove.
 */
static bool
trim_group(Page page, LsmGroup *group, bool framed, const LsmLeafCoding *c, uint8 **p,
		   const uint8 *limit, const uint16 *ordinals, int count, int *ordinal, int *next)
{
	static uint8 room[TRIM_ROOM];
	int			left = 0;
	uint8	   *end = room;

	for (int i = 0; i < group->count; i++, (*ordinal)++)
	{
		if (*next < count && ordinals[*next] == *ordinal)
			(*next)++;
		else
			group->entries[left++] = group->entries[i];
	}
	if (left == 0)
		return true;
	if (framed)
		end = encode_framed(end, group->entries, left, c);
	else
	{
		if (c->keylen > 0)
			*end++ = NO_FRAME;
		end = encode_variable(end, group->entries, left, c);
	}
	if (end - room > limit - *p)
		return false;
	open_group(page, *p);
	memcpy(*p, room, end - room);
	*p += end - room;
	lsm_leaf_header(page)->entry_count += left;
	return true;
}

/*
 * Remove the entries at the given ordinals (ascending).  Used by VACUUM, by scans, and
 * by redo.  Re-encodes each group without its removed entries, and removes emptied
 * groups.  The page never grows (I6): removing an entry makes the next entry longer by
 * at most the bytes that the removed entry took.  Increments the page's stamp.  Returns
 * false, with the page unchanged, if the page is damaged.
 */
bool
lsm_leaf_delete(Page page, const uint16 *ordinals, int count, LsmGroup *scratch)
{
	PGAlignedBlock copy;
	Page		old = (Page) copy.data;
	PageHeader	header = (PageHeader) page;
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	LsmLeafCoding coding = lsm_leaf_coding(page);
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
		bool		framed = coding.keylen > 0 &&
			((uint8 *) old)[lsm_leaf_group_offset(old, g)] != NO_FRAME;

		if (!lsm_leaf_decode_group(old, g, scratch) ||
			!trim_group(page, scratch, framed, &coding, &p, limit, ordinals, count, &ordinal, &next))
		{
			memcpy(page, old, BLCKSZ);
			return false;
		}
	}
	header->pd_lower = p - (uint8 *) page;
	memset(p, 0, header->pd_upper - header->pd_lower);
	lsm_page_opaque(page)->stamp++;
	lsm_page_set_crc(page);
	return true;
}
