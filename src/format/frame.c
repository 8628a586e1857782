/*
 * frame.c
 *	  Writes and reads framed groups.
 */
#include "postgres.h"

#include "format/frame.h"

/* Returns the window of a key as an integer.  Eight bytes after the key can be read. */
static inline uint64
window_of(const uint8 *key, const LsmFrame *f)
{
	if (f->window == 0)
		return 0;
	return lsm_key_prefix_padded(key + f->shared) >> (64 - 8 * f->window);
}

static inline void
set_window(LsmFrame *f)
{
	f->window = Min(FRAME_WINDOW, f->keylen - f->shared);
	f->tail = f->keylen - f->shared - f->window;
}

/*
 * Measure the frame of `count` entries with keys from `first` to `last` and TID codes from
 * lowest_tid to highest_tid.  Eight bytes after both keys can be read.
 *
 * Removing entries never makes a frame larger (I6).  The number of bytes that all keys share can
 * only grow.  For each additional shared byte, the window moves by one byte, and the tail loses one
 * byte.  If the lowest TID is written, it always takes the same space.
 */
void
lsm_frame_measure(LsmFrame *f, int count, const uint8 *first, const uint8 *last,
				  uint64 lowest_tid, uint64 highest_tid, const LsmLeafCoding *c)
{
	int			bits = lsm_bits_of(highest_tid - lowest_tid);

	f->count = count;
	f->keylen = c->keylen;
	f->shared = lsm_common_prefix(first, f->keylen, last, f->keylen);
	set_window(f);
	/* Keys of a damaged page need not ascend. */
	if (window_of(first, f) <= window_of(last, f))
		f->key_bits = lsm_bits_of(window_of(last, f) - window_of(first, f));
	else
		f->key_bits = 8 * f->window;
	f->tid_bits = lsm_bits_of(highest_tid);
	f->lowest_tid = 0;
	f->lowest_bytes = 0;
	if ((count * bits + 7) / 8 + c->tid_bytes < (count * f->tid_bits + 7) / 8)
	{
		f->tid_bits = bits;
		f->lowest_tid = lowest_tid;
		f->lowest_bytes = c->tid_bytes;
	}
}

/* Writes integers of a few bits each, one after the other. */
typedef struct BitWriter
{
	uint8	   *p;
	uint64		bits;			/* bits that do not fill a byte yet */
	int			count;
} BitWriter;

static inline void
put_bits(BitWriter *w, uint64 value, int bits)
{
	w->bits |= value << w->count;
	w->count += bits;
	lsm_store_low_first(w->p, w->bits);
	w->p += w->count >> 3;
	w->bits >>= w->count & ~7;
	w->count &= 7;
}

/* Returns the end of the integers, at a byte boundary. */
static inline uint8 *
end_bits(BitWriter *w)
{
	return w->p + (w->count > 0);
}

/*
 * Write a frame that was measured for these entries, without their rests.  Returns
 * its end.  May write up to eight bytes beyond the end.
 *
 * REQUIRES: keys ascend as bytes, and eight bytes after each can be read.
 */
uint8 *
lsm_frame_encode(uint8 *p, const LsmFrame *f, const LsmEntry *entries, const LsmLeafCoding *c)
{
	const uint8 *first = entries[0].key;
	uint64		low = window_of(first, f);
	uint32		tail_at = f->shared + f->window;
	BitWriter	w = {0};

	*p++ = (f->count - 1) | (f->lowest_bytes > 0 ? FRAME_LOWEST_TID : 0);
	*p++ = f->key_bits;
	*p++ = f->shared;
	*p++ = f->tid_bits;
	lsm_copy(p, first, f->keylen);
	p = lsm_put_low_bytes(p + f->keylen, f->lowest_tid, f->lowest_bytes);

	w.p = p;
	for (int i = 1; i < f->count && f->key_bits > 0; i++)
		put_bits(&w, window_of(entries[i].key, f) - low, f->key_bits);
	p = end_bits(&w);
	for (int i = 1; i < f->count && f->tail > 0; i++)
	{
		lsm_copy(p, entries[i].key + tail_at, f->tail);
		p += f->tail;
	}
	w = (BitWriter) {.p = p};
	for (int i = 0; i < f->count && f->tid_bits > 0; i++)
		put_bits(&w, lsm_code_tid(entries[i].tid, c) - f->lowest_tid, f->tid_bits);
	return end_bits(&w);
}

/*
 * Read the head and the lowest TID.  Returns what follows the lowest TID, or NULL
 * if the frame is damaged.
 */
static inline const uint8 *
read_head(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmFrame *f)
{
	if (end - p < FRAME_HEAD + c->keylen)
		return NULL;
	f->count = (p[0] & FRAME_COUNT_MASK) + 1;
	f->keylen = c->keylen;
	f->key_bits = p[1];
	f->shared = p[2];
	f->tid_bits = p[3];
	f->lowest_tid = 0;
	f->lowest_bytes = p[0] & FRAME_LOWEST_TID ? c->tid_bytes : 0;
	if (f->shared > f->keylen || f->tid_bits > 8 * MAX_TID_BYTES)
		return NULL;
	set_window(f);
	if (f->key_bits > 8 * f->window || end - p < lsm_frame_size(f))
		return NULL;
	p += FRAME_HEAD + f->keylen;
	if (f->lowest_bytes > 0)
		f->lowest_tid = lsm_load_low_first(p) & lsm_low_bytes_mask(f->lowest_bytes);
	return p + f->lowest_bytes;
}

/* Returns integer `i` of those written at p.  Eight bytes can be read at any of them. */
static inline uint64
get_bits(const uint8 *p, int i, int bits)
{
	uint32		at = i * bits;

	return (lsm_load_low_first(p + at / 8) >> at % 8) & ((UINT64CONST(1) << bits) - 1);
}

/* Returns the window of key `i` less that of the first key.  `p`: see read_head. */
static inline uint64
window_above(const uint8 *p, const LsmFrame *f, int i)
{
	return i == 0 ? 0 : get_bits(p, i - 1, f->key_bits);
}

/*
 * Decode the keys of some of the entries.  If keys have at most FRAME_WINDOW bytes (is_short),
 * assembles them as integers.  Callers pass a constant `stride` where this is faster.  Returns
 * false if the window of a key, as computed from its difference, has too many bytes.  A single test
 * at the end finds such a key: all windows are ORed, so the result has every high bit that any
 * window has.
 */
static pg_attribute_always_inline bool
decode_keys(const uint8 *p, const LsmFrame *f, const uint8 *first, LsmFramePart part,
			bool is_short, Size stride, uint8 *key, LsmEntry *entry)
{
	uint8		whole[MAXALIGN(LSM_FRAMED_KEYLEN) + LSM_KEY_PAD] = {0};
	const uint8 *tail = p + ((f->count - 1) * f->key_bits + 7) / 8;
	int			shift = 64 - 8 * f->window;
	uint64		low;
	uint64		word = 0;
	uint64		most = 0;

	Assert(stride == MAXALIGN(f->keylen) + LSM_KEY_PAD);
	lsm_copy(whole, first, f->keylen);
	low = window_of(whole, f);
	if (is_short)
		word = lsm_key_prefix_padded(whole);
	for (int i = part.from; i < part.to; i++, entry++, key += stride)
	{
		uint64		more = window_above(p, f, i);

		most |= low + more;
		entry->key = key;
		entry->keylen = f->keylen;
		entry->aligned = true;
		entry->rest = NULL;
		entry->restlen = 0;
		if (is_short)
		{
			uint64		bytes = pg_hton64(word + (f->window > 0 ? more << (64 - 8 * f->keylen) : 0));

			memcpy(key, &bytes, 8);
			memset(key + 8, 0, 8);
			continue;
		}
		memcpy(key, whole, stride);
		if (i == 0 || f->window == 0)
			continue;
		more = pg_hton64((low + more) << shift);
		memcpy(key + f->shared, &more, 8);
		if (f->tail > 0)
			lsm_copy(key + f->shared + f->window, tail + (i - 1) * f->tail, f->tail);
	}
	return most >> (8 * f->window) == 0;
}

/* Decode a part of a frame, and append it to *out.  The frame's head has been read. */
static inline bool
decode_part(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, const LsmFrame *f,
			const uint8 *first, LsmFramePart part, LsmGroup *out)
{
	uint8	   *key = out->scratch + out->used;
	LsmEntry   *entry = out->entries + out->count;
	Size		stride = MAXALIGN(c->keylen) + LSM_KEY_PAD;
	int			count = part.to - part.from;
	uint64		most = 0;
	bool		sound;

	if (f->keylen <= FRAME_WINDOW)
		sound = decode_keys(p, f, first, part, true, 16, key, entry);
	else if (f->keylen <= 8)
		sound = decode_keys(p, f, first, part, false, 16, key, entry);
	else if (f->keylen <= 16)
		sound = decode_keys(p, f, first, part, false, 24, key, entry);
	else
		sound = decode_keys(p, f, first, part, false, stride, key, entry);
	p += ((f->count - 1) * f->key_bits + 7) / 8 + (f->count - 1) * f->tail;
	for (int i = 0; i < count; i++)
	{
		uint64		code = f->lowest_tid + get_bits(p, part.from + i, f->tid_bits);

		most |= code;
		entry[i].tid = lsm_decode_tid(code, c);
		entry[i].page = out->page;
	}
	if (!sound || most >> (8 * c->tid_bytes) != 0)
		return false;
	p += (f->count * f->tid_bits + 7) / 8;
	for (int i = 0; i < f->count && c->has_rest; i++)
	{
		if ((p = lsm_get_rest(p, end, c, &entry[i])) == NULL)
			return false;
	}
	if (p != end)
		return false;
	out->count += count;
	out->used += count * stride;
	return true;
}

/*
 * Decode a frame, and append it to *out, which has room for a whole group.  Returns
 * false if the page is damaged.  Eight bytes can be read anywhere up to `end`, since
 * the special area follows.
 */
bool
lsm_frame_decode(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmGroup *out)
{
	LsmFrame	f;
	const uint8 *first = p + FRAME_HEAD;

	if (c->keylen > out->max_keylen || (p = read_head(p, end, c, &f)) == NULL)
		return false;
	return decode_part(p, end, c, &f, first, (LsmFramePart) {0, f.count}, out);
}

/*
 * Find the entries whose shared bytes and windows equal those of the sought key.  Entries before
 * this part are less than the key, and entries after it are greater.  On a damaged page, the result
 * is an arbitrary part.
 */
static LsmFramePart
find_alike(const uint8 *p, const LsmFrame *f, const uint8 *first, const LsmPlaceOfKey *sought)
{
	LsmFramePart alike = {0, f->count};
	int			order = memcmp(sought->key, first, Min(sought->keylen, f->shared));
	uint64		lowest = window_of(first, f);
	uint32		bytes;			/* bytes of the window that the sought key has */
	int			others;			/* bits in the other bytes of the window */
	uint64		wanted;

	if (order != 0)
		return order < 0 ? (LsmFramePart) {0, 0} : (LsmFramePart) {f->count, f->count};
	if (sought->keylen <= f->shared || f->window == 0)
		return alike;
	bytes = Min(sought->keylen - f->shared, f->window);
	others = 8 * (f->window - bytes);
	wanted = lsm_key_prefix(sought->key + f->shared, bytes) >> (64 - 8 * bytes);
	for (int low = 0, high = f->count; low < high;)
	{
		int			middle = (low + high) / 2;

		if ((lowest + window_above(p, f, middle)) >> others < wanted)
			low = middle + 1;
		else
			high = middle;
		alike.from = low;
	}
	for (int low = alike.from, high = f->count; low < high;)
	{
		/* Usually few entries are alike, so try the next one first. */
		int			middle = low == alike.from ? low : (low + high) / 2;

		if ((lowest + window_above(p, f, middle)) >> others <= wanted)
			low = middle + 1;
		else
			high = middle;
		alike.to = low;
	}
	return alike;
}

/*
 * Returns the entries that the key's position may be among.  Returns none if the position is exact.
 * It is exact if the sought key is the beginning of keys (`side` is not 0), and no longer than the
 * shared bytes plus the window.
 */
static LsmFramePart
find_place(const LsmFrame *f, const LsmPlaceOfKey *sought, LsmFramePart alike)
{
	if (sought->side == 0 || sought->keylen > f->shared + f->window)
		return alike;
	return sought->side > 0 ? (LsmFramePart) {alike.from, alike.from} :
		(LsmFramePart) {alike.to, alike.to};
}

/* Decode up to this many alike entries, since the query probably wants them. */
#define MOST_ALIKE	16

/* Returns the entries to decode: those that the caller wants, and a few alike entries. */
static LsmFramePart
part_around(const LsmFrame *f, const LsmPlaceOfKey *sought, LsmFramePart place, LsmFramePart alike)
{
	LsmFramePart part = place;

	if (sought->forward)
	{
		int			few = Min(alike.to + 1, place.from + MOST_ALIKE);

		part.to = Min(Max(place.to + sought->most, few), f->count);
	}
	else
	{
		int			few = Max(alike.from - 1, place.to - MOST_ALIKE);

		part.from = Max(Min(place.from - sought->most, few), 0);
	}
	return part;
}

/*
 * Decode the entries around the position of a key, and append them to *out: the entries among
 * which the position may lie, and about `most` entries after these (backward: before).  Sets
 * *place to the entries among which the position may lie.  Decoded entries before *place are less
 * than the key, and those after *place are greater.  Returns false if the page is damaged.
 *
 * REQUIRES: as lsm_frame_decode; entries without rests.
 */
bool
lsm_frame_decode_around(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
						const LsmPlaceOfKey *sought, LsmFramePart *place, LsmGroup *out)
{
	LsmFrame	f;
	LsmFramePart alike;
	LsmFramePart part;
	const uint8 *first = p + FRAME_HEAD;

	Assert(!c->has_rest);
	if (c->keylen > out->max_keylen || (p = read_head(p, end, c, &f)) == NULL)
		return false;
	alike = find_alike(p, &f, first, sought);
	*place = find_place(&f, sought, alike);
	part = part_around(&f, sought, *place, alike);
	place->from -= part.from;
	place->to -= part.from;
	return decode_part(p, end, c, &f, first, part, out);
}

/* Sets *entry to the first entry, with its key in place.  Returns false if the page is damaged. */
bool
lsm_frame_first(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmEntry *entry)
{
	LsmFrame	f;

	entry->key = p + FRAME_HEAD;
	entry->keylen = c->keylen;
	entry->aligned = false;
	entry->rest = NULL;
	entry->restlen = 0;
	if ((p = read_head(p, end, c, &f)) == NULL)
		return false;
	p += ((f.count - 1) * f.key_bits + 7) / 8 + (f.count - 1) * f.tail;
	entry->tid = lsm_decode_tid(f.lowest_tid + get_bits(p, 0, f.tid_bits), c);
	p += (f.count * f.tid_bits + 7) / 8;
	return !c->has_rest || lsm_get_rest(p, end, c, entry) != NULL;
}
