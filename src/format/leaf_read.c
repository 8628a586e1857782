/*
 * leaf_read.c
 *	  Checks and decodes packed pages.
 */
#include "postgres.h"

#include "format/frame.h"
#include "format/leaf_read.h"

/* Scratch space beyond the needs of one group, for decoding several groups at once. */
#define MORE_SCRATCH	(16 * 1024)

/* Check the layout of a packed page.  Returns what is wrong, or NULL. */
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
		leaf->keylen > LSM_FRAMED_KEYLEN || leaf->base_block > leaf->last_block)
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

/* Allocate room for decoding groups whose keys have at most max_keylen bytes. */
void
lsm_group_init(LsmGroup *group, uint32 max_keylen)
{
	Size		one = lsm_group_scratch_size(max_keylen);

	group->count = 0;
	group->page = 0;
	group->used = 0;
	group->max_keylen = max_keylen;
	group->size = one +
		Min((LSM_DECODED_ENTRIES / LSM_GROUP_ENTRIES - 1) * one, MORE_SCRATCH);
	group->scratch = palloc(group->size);
}

void
lsm_group_free(LsmGroup *group)
{
	pfree(group->scratch);
}

/*
 * Build a key at `key`, which has room for max_keylen bytes and padding.  The key consists of
 * the bytes shared with the previous key and the suffix.  Returns false if the key is too
 * long.
 */
static inline bool
join_key(const LsmCodedEntry *coded, const LsmEntry *prev, uint8 *key, uint32 max_keylen,
		 LsmEntry *out)
{
	uint32		shared = coded->same_key ? prev->keylen : coded->shared;

	if (shared > (prev ? prev->keylen : 0) || shared + coded->unshared > max_keylen)
		return false;
	if (shared > 0)
		lsm_copy(key, prev->key, shared);
	lsm_copy(key + shared, coded->suffix, coded->unshared);
	out->keylen = shared + coded->unshared;
	memset(key + out->keylen, 0, LSM_KEY_PAD);
	out->key = key;
	out->aligned = true;
	return true;
}

/*
 * Decode the entry at p, in the variable coding.  prev is the previous entry of the
 * group, or NULL.  Returns the end of the entry, or NULL if the page is damaged.
 */
static const uint8 *
decode_variable(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
				const LsmEntry *prev, uint8 *key, uint32 max_keylen, LsmEntry *out)
{
	LsmCodedEntry coded;
	uint64		code;

	p = lsm_leaf_read_coded(p, end, c, prev == NULL, &coded);
	if (p == NULL || !join_key(&coded, prev, key, max_keylen, out))
		return NULL;
	out->rest = coded.rest;
	out->restlen = coded.restlen;
	code = coded.tid_code;
	if (coded.same_key)
		code += lsm_code_tid(prev->tid, c);
	out->tid = lsm_decode_tid(code, c);
	return p;
}

static bool
decode_variable_group(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmGroup *out)
{
	uint8	   *key = out->scratch + out->used;
	const LsmEntry *prev = NULL;
	int			most = out->count + LSM_UNFRAMED_ENTRIES;

	/* Callers rely on at least one entry. */
	if (p == end)
		return false;
	while (p < end)
	{
		LsmEntry   *entry;

		if (out->count == most)
			return false;
		entry = &out->entries[out->count];
		p = decode_variable(p, end, c, prev, key, out->max_keylen, entry);
		if (p == NULL)
			return false;
		entry->page = out->page;
		key += MAXALIGN(entry->keylen) + LSM_KEY_PAD;
		prev = entry;
		out->count++;
	}
	out->used = key - out->scratch;
	return true;
}

static inline bool
is_framed(const LsmLeafCoding *coding, const uint8 *group)
{
	return coding->keylen > 0 && *group != NO_FRAME;
}

/* Decode a group, and append it to *out.  Returns false if the page is damaged. */
static bool
append_group(Page page, int group, const LsmLeafCoding *coding, LsmGroup *out)
{
	const uint8 *p;
	const uint8 *end;

	if (!lsm_leaf_find_group(page, group, &p, &end))
		return false;
	if (is_framed(coding, p))
		return lsm_frame_decode(p, end, coding, out);
	return decode_variable_group(p + (coding->keylen > 0), end, coding, out);
}

/* Is there room for another group? */
static inline bool
has_room_for_group(const LsmGroup *out)
{
	return out->count + LSM_GROUP_ENTRIES <= LSM_DECODED_ENTRIES &&
		out->size - out->used >= lsm_group_scratch_size(out->max_keylen);
}

/*
 * Decode a whole group.  Keys are copied to the scratch area; rests stay in
 * the page.  Returns false if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
bool
lsm_leaf_decode_group(Page page, int group, LsmGroup *out)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);

	out->count = 0;
	out->used = 0;
	return append_group(page, group, &coding, out);
}

/*
 * Decode the entries of a group around the sought place, or the whole group if it is not
 * framed or has rests.  Decoded entries before *from are less than the key, and those from
 * *to on are greater.  The place is before, after or among the entries *from to *to - 1.
 * Returns false if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing; encoded keys.
 */
bool
lsm_leaf_decode_around(Page page, int group, const LsmPlaceOfKey *sought, int *from, int *to,
					   LsmGroup *out)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);
	LsmFramePart place;
	const uint8 *p;
	const uint8 *end;

	out->count = 0;
	out->used = 0;
	if (!lsm_leaf_find_group(page, group, &p, &end))
		return false;
	if (is_framed(&coding, p) && !coding.has_rest)
	{
		if (!lsm_frame_decode_around(p, end, &coding, sought, &place, out))
			return false;
		*from = place.from;
		*to = place.to;
		return true;
	}
	if (!append_group(page, group, &coding, out))
		return false;
	*from = 0;
	*to = out->count;
	return true;
}

/*
 * Decode `first` and the groups after it, as many as there is room for, but none after
 * `last`.  Returns the number of groups, or -1 if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
int
lsm_leaf_decode_groups(Page page, int first, int last, LsmGroup *out)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);
	int			group = first;

	out->count = 0;
	out->used = 0;
	while (group <= last && has_room_for_group(out))
	{
		if (!append_group(page, group++, &coding, out))
			return -1;
	}
	return group - first;
}

/*
 * Decode `group` and the groups before it, for reading backward.  If keys are long, not
 * all groups may fit, so the function tries again with fewer.  Returns the number of
 * groups, or -1 if the page is damaged.
 */
int
lsm_leaf_decode_groups_before(Page page, int group, LsmGroup *out)
{
	int			most = lsm_leaf_coding(page).keylen > 0 ? LSM_GROUP_ENTRIES : LSM_UNFRAMED_ENTRIES;
	int			want = Min(group + 1, LSM_DECODED_ENTRIES / most);

	for (;;)
	{
		int			n = lsm_leaf_decode_groups(page, group - want + 1, group, out);

		if (n < 0 || n == want)
			return n;
		want = Max(want / 2, 1);
	}
}

/*
 * Sets *entry to the first entry of a group in the variable coding, without copying its
 * key, which is whole.
 */
static bool
first_variable(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmEntry *entry)
{
	LsmCodedEntry coded;

	if (lsm_leaf_read_coded(p, end, c, true, &coded) == NULL || coded.unshared > LSM_MAX_ENTRY_SIZE)
		return false;
	entry->key = coded.suffix;
	entry->aligned = false;
	entry->keylen = coded.unshared;
	entry->rest = coded.rest;
	entry->restlen = coded.restlen;
	entry->tid = lsm_decode_tid(coded.tid_code, c);
	return true;
}

/*
 * Sets *entry to the first entry of a group, without copying its key, which is whole
 * and stays in the page.  Returns false if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
bool
lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry)
{
	const uint8 *end = (const uint8 *) page + ((PageHeader) page)->pd_lower;
	const uint8 *p = (const uint8 *) page + lsm_leaf_group_offset(page, group);
	LsmLeafCoding coding = lsm_leaf_coding(page);

	if (p >= end || p < (const uint8 *) page + LSM_LEAF_DATA)
		return false;
	if (coding.keylen > 0 && *p != NO_FRAME)
		return lsm_frame_first(p, end, &coding, entry);
	return first_variable(p + (coding.keylen > 0), end, &coding, entry);
}
