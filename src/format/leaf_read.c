/*
 * leaf_read.c
 *	  Decoding packed pages.
 */
#include "postgres.h"

#include "format/leaf_coding.h"

/* Beyond what one group may need, for decoding several in one go. */
#define MORE_SCRATCH	(16 * 1024)

/* Room for decoding groups whose keys have at most max_keylen bytes. */
void
lsm_group_init(LsmGroup *group, uint32 max_keylen)
{
	Size		one = lsm_group_scratch_size(max_keylen);

	group->count = 0;
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

/* Decode a rest.  Returns its end or NULL. */
static inline const uint8 *
get_rest(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmEntry *out)
{
	uint64		restlen;

	out->rest = NULL;
	out->restlen = 0;
	if (!c->has_rest)
		return p;
	if ((p = lsm_get_varint(p, end, &restlen)) == NULL ||
		restlen > (uint64) (end - p) || restlen > LSM_MAX_ENTRY_SIZE)
		return NULL;
	out->rest = p;
	out->restlen = (uint32) restlen;
	return p + restlen;
}

/*
 * Build a key of two parts at `key`, which has room for max_keylen and padding:
 * some bytes of the key before, and what lies at p.  Returns the end of that or
 * NULL.
 */
static inline const uint8 *
join_key(const uint8 *p, const uint8 *end, uint64 shared, uint64 unshared, const LsmEntry *prev,
		 uint8 *key, uint32 max_keylen, LsmEntry *out)
{
	if (unshared > (uint64) (end - p) ||
		shared > (prev ? prev->keylen : 0) ||
		shared + unshared > max_keylen)
		return NULL;
	if (shared > 0)
		lsm_copy(key, prev->key, (uint32) shared);
	lsm_copy(key + shared, p, (uint32) unshared);
	out->keylen = (uint32) (shared + unshared);
	return p + unshared;
}

/*
 * Decode the entry at p, in the variable coding, whose predecessor (not for the
 * first of a group) is prev.  Returns the end of the entry or NULL.
 */
static const uint8 *
decode_variable(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
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
		if ((p = join_key(p, end, shared, unshared, prev, key, max_keylen, out)) == NULL)
			return NULL;
	}
	out->key = key;
	out->aligned = true;
	memset(key + out->keylen, 0, LSM_KEY_PAD);

	if ((p = get_rest(p, end, c, out)) == NULL ||
		(p = lsm_get_varint(p, end, &code)) == NULL)
		return NULL;
	if (same)
		code += code_tid(prev->tid, c);
	out->tid = decode_tid(code, c);
	return p;
}

static bool
decode_variable_group(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmGroup *out)
{
	uint8	   *key = out->scratch + out->used;
	const LsmEntry *prev = NULL;
	int			most = out->count + LSM_GROUP_ENTRIES;

	while (p < end)
	{
		LsmEntry   *entry;

		if (out->count == most)
			return false;
		entry = &out->entries[out->count];
		p = decode_variable(p, end, c, prev, key, out->max_keylen, entry);
		if (p == NULL)
			return false;
		key += MAXALIGN(entry->keylen) + LSM_KEY_PAD;
		prev = entry;
		out->count++;
	}
	out->used = key - out->scratch;
	return true;
}

/* The key of an entry, in the fixed coding, whose head does not give its lengths. */
static const uint8 *
decode_odd_key(const uint8 *p, const uint8 *end, bool same, const LsmEntry *prev,
			   uint8 *key, uint32 max_keylen, LsmEntry *out)
{
	uint64		shared;
	uint64		unshared;

	if (same)
	{
		if (prev == NULL)
			return NULL;
		out->keylen = prev->keylen;
		lsm_copy(key, prev->key, prev->keylen);
		return p;
	}
	if ((p = lsm_get_varint(p, end, &shared)) == NULL ||
		(p = lsm_get_varint(p, end, &unshared)) == NULL)
		return NULL;
	return join_key(p, end, shared, unshared, prev, key, max_keylen, out);
}

/*
 * Decode a group in the fixed coding.  Merges spend much of their time here, so
 * there is little to decide for each entry.  Keys of up to eight bytes are put
 * together as an integer, `word`; eight bytes can be read at any place up to
 * `end`, since the special area follows.
 */
static pg_attribute_always_inline bool
decode_fixed(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, bool short_keys,
			 LsmGroup *out)
{
	const uint32 keylen = c->keylen;
	const uint32 tid_bytes = c->tid_bytes;
	const uint64 tid_mask = lsm_low_bytes_mask(tid_bytes);
	const uint64 key_mask = lsm_low_bytes_mask(keylen);
	uint8	   *key = out->scratch + out->used;
	LsmEntry   *entry = out->entries + out->count;
	const LsmEntry *beyond = entry + LSM_GROUP_ENTRIES;
	const LsmEntry *prev = NULL;
	uint32		prev_keylen = 0;
	uint64		word = 0;
	uint64		code = 0;

	if (keylen > out->max_keylen)
		return false;
	while (p < end)
	{
		uint8		head = *p++;
		uint32		shared = head >> 4;

		if (entry == beyond)
			return false;
		if (likely(shared <= FIXED_MOST_SHARED))
		{
			uint32		unshared = keylen - shared;

			/* A key without bytes of its own would be the same one. */
			if (shared >= keylen || shared > prev_keylen || unshared > end - p)
				return false;
			if (short_keys)
			{
				uint64		low = (UINT64CONST(1) << (8 * shared)) - 1;

				word = (word & low) | ((lsm_load_low_first(p) << (8 * shared)) & key_mask);
				lsm_store_low_first(key, word);
			}
			else
			{
				if (shared > 0)
					lsm_copy(key, prev->key, shared);
				lsm_copy(key + shared, p, unshared);
			}
			p += unshared;
			entry->keylen = keylen;
			memset(key + keylen, 0, LSM_KEY_PAD);
		}
		else
		{
			p = decode_odd_key(p, end, shared == FIXED_SAME_KEY, prev, key, out->max_keylen, entry);
			if (p == NULL)
				return false;
			memset(key + entry->keylen, 0, LSM_KEY_PAD);
			if (short_keys)
				word = lsm_load_low_first(key);
		}
		entry->key = key;
		entry->aligned = true;
		if ((p = get_rest(p, end, c, entry)) == NULL)
			return false;

		if (likely(shared != FIXED_SAME_KEY))
		{
			if (tid_bytes > end - p)
				return false;
			code = (head & 0x0F) | ((lsm_load_low_first(p) & tid_mask) << HEAD_TID_BITS);
			p += tid_bytes;
		}
		else
		{
			uint64		more;

			if ((p = lsm_get_varint(p, end, &more)) == NULL)
				return false;
			code += (head & 0x0F) | (more << HEAD_TID_BITS);
			if (code >> (HEAD_TID_BITS + 8 * tid_bytes) != 0)
				return false;
		}
		entry->tid = decode_tid(code, c);
		key += MAXALIGN(entry->keylen) + LSM_KEY_PAD;
		prev_keylen = entry->keylen;
		prev = entry++;
	}
	out->count = entry - out->entries;
	out->used = key - out->scratch;
	return true;
}

static bool
decode_fixed_group(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmGroup *out)
{
	if (c->keylen <= sizeof(uint64))
		return decode_fixed(p, end, c, true, out);
	return decode_fixed(p, end, c, false, out);
}

/* Decode a group behind what has been decoded.  False if the page is damaged. */
static bool
append_group(Page page, int group, const LsmLeafCoding *coding, LsmGroup *out)
{
	int			groups = lsm_leaf_group_count(page);
	const uint8 *p = (const uint8 *) page + lsm_leaf_group_offset(page, group);
	const uint8 *end = (const uint8 *) page +
		(group + 1 < groups ? lsm_leaf_group_offset(page, group + 1) : ((PageHeader) page)->pd_lower);

	if (p >= end)
		return false;
	if (coding->keylen > 0)
		return decode_fixed_group(p, end, coding, out);
	return decode_variable_group(p, end, coding, out);
}

/* Is there room for another group? */
static inline bool
has_room(const LsmGroup *out)
{
	return out->count + LSM_GROUP_ENTRIES <= LSM_DECODED_ENTRIES &&
		out->size - out->used >= lsm_group_scratch_size(out->max_keylen);
}

/*
 * Decode a whole group.  Keys are copied to the scratch area; rests stay in
 * the page.  False if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
bool
lsm_leaf_decode_group(Page page, int group, LsmGroup *out)
{
	LsmLeafCoding coding = page_coding(page);

	out->count = 0;
	out->used = 0;
	return append_group(page, group, &coding, out);
}

/*
 * Decode groups from `first` on to `last` at most, as many as there is room
 * for.  Returns the number of groups, or -1 if the page is damaged.
 *
 * REQUIRES: as above.
 */
int
lsm_leaf_decode_groups(Page page, int first, int last, LsmGroup *out)
{
	LsmLeafCoding coding = page_coding(page);
	int			group = first;

	out->count = 0;
	out->used = 0;
	while (group <= last && has_room(out))
	{
		if (!append_group(page, group++, &coding, out))
			return -1;
	}
	return group - first;
}

/*
 * Decode the groups that end with `group`, for reading backward.  Keys have any
 * length, so fewer are tried when they do not fit.  Returns the number of groups, or -1 if the page is damaged.
 */
int
lsm_leaf_decode_groups_before(Page page, int group, LsmGroup *out)
{
	int			want = Min(group + 1, LSM_DECODED_ENTRIES / LSM_GROUP_ENTRIES);

	for (;;)
	{
		int			n = lsm_leaf_decode_groups(page, group - want + 1, group, out);

		if (n < 0 || n == want)
			return n;
		want = Max(want / 2, 1);
	}
}

/* The length of a group's first key, which is whole.  Returns the key or NULL. */
static const uint8 *
first_key(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, uint64 *keylen)
{
	uint8		head = *p++;
	uint64		shared = 0;

	if (c->keylen == 0)
	{
		*keylen = head & 0x0F;
		if (*keylen == NIBBLE_MORE)
			p = lsm_get_varint(p, end, keylen);
		shared = head >> 4;
	}
	else if (head >> 4 == FIXED_ANY_LENGTH)
	{
		if ((p = lsm_get_varint(p, end, &shared)) != NULL)
			p = lsm_get_varint(p, end, keylen);
	}
	else
	{
		*keylen = c->keylen;
		shared = head >> 4;
	}
	if (p == NULL || shared != 0 || *keylen > (uint64) (end - p) || *keylen > LSM_MAX_ENTRY_SIZE)
		return NULL;
	return p;
}

/*
 * The first entry of a group, without copying: its key is whole and stays in
 * the page.  False if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
bool
lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry)
{
	const uint8 *end = (const uint8 *) page + ((PageHeader) page)->pd_lower;
	const uint8 *p = (const uint8 *) page + lsm_leaf_group_offset(page, group);
	LsmLeafCoding coding = page_coding(page);
	uint64		keylen = 0;
	uint64		code;
	uint8		head;

	if (p >= end || p < (const uint8 *) page + LSM_LEAF_DATA)
		return false;
	head = *p;
	if ((p = first_key(p, end, &coding, &keylen)) == NULL)
		return false;
	entry->key = p;
	entry->aligned = false;
	entry->keylen = (uint32) keylen;
	if ((p = get_rest(p + keylen, end, &coding, entry)) == NULL)
		return false;
	if (coding.keylen > 0)
	{
		if (coding.tid_bytes > end - p)
			return false;
		code = (head & 0x0F) |
			((lsm_load_low_first(p) & lsm_low_bytes_mask(coding.tid_bytes)) << HEAD_TID_BITS);
	}
	else if (lsm_get_varint(p, end, &code) == NULL)
		return false;
	entry->tid = decode_tid(code, &coding);
	return true;
}
