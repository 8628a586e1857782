/*
 * coding.h
 *	  Byte-level coding: varints, big-endian integers, heap TIDs as integers.
 *
 * lsm_get_varint takes an end pointer, and returns NULL if no complete varint lies before the end.
 * So it never reads beyond the end of a corrupted page.  Callers of the other functions make sure
 * that the bytes exist.
 */
#ifndef LSM_CODING_H
#define LSM_CODING_H

#include "postgres.h"

#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"

/* Returns a TID as an integer that sorts like the TID: block << 16 | offset. */
static inline uint64
lsm_tid_to_int(ItemPointer tid)
{
	return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
lsm_int_to_tid(uint64 value, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (value >> 16), (OffsetNumber) (value & 0xFFFF));
}

/* Write a varint: seven bits per byte, lowest first; the high bit is set in all but the last. */
static inline uint8 *
lsm_put_varint(uint8 *p, uint64 value)
{
	while (value >= 0x80)
	{
		*p++ = (uint8) (value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8) value;
	return p;
}

static inline const uint8 *
lsm_get_varint(const uint8 *p, const uint8 *end, uint64 *value)
{
	uint64		result = 0;
	int			shift = 0;

	while (p < end && shift < 64)
	{
		uint8		b = *p++;

		result |= (uint64) (b & 0x7F) << shift;
		if (b < 0x80)
		{
			*value = result;
			return p;
		}
		shift += 7;
	}
	return NULL;
}

static inline int
lsm_varint_size(uint64 value)
{
	int			size = 1;

	while (value >= 0x80)
	{
		value >>= 7;
		size++;
	}
	return size;
}

/* Write the lowest `bytes` (0 to 8) bytes of an integer, lowest first. */
static inline uint8 *
lsm_put_low_bytes(uint8 *p, uint64 value, int bytes)
{
	for (int i = 0; i < bytes; i++)
	{
		*p++ = (uint8) value;
		value >>= 8;
	}
	return p;
}

/* Write the lowest `bytes` (0 to 8) bytes of an integer, highest first. */
static inline uint8 *
lsm_put_big_endian(uint8 *p, uint64 value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
	{
		p[i] = (uint8) value;
		value >>= 8;
	}
	return p + bytes;
}

static inline uint64
lsm_get_big_endian(const uint8 *p, int bytes)
{
	uint64		value = 0;

	for (int i = 0; i < bytes; i++)
		value = (value << 8) | p[i];
	return value;
}

/* Returns how many bits an integer takes. */
static inline int
lsm_bits_of(uint64 value)
{
	return value == 0 ? 0 : pg_leftmost_one_pos64(value) + 1;
}

/* Read eight bytes as a little-endian integer. */
static inline uint64
lsm_load_low_first(const uint8 *p)
{
	uint64		v;

	memcpy(&v, p, 8);
#ifdef WORDS_BIGENDIAN
	v = pg_bswap64(v);
#endif
	return v;
}

static inline void
lsm_store_low_first(uint8 *p, uint64 v)
{
#ifdef WORDS_BIGENDIAN
	v = pg_bswap64(v);
#endif
	memcpy(p, &v, 8);
}

/* Returns a mask of the lowest `bytes` (0 to 8) bytes of an integer. */
static inline uint64
lsm_low_bytes_mask(int bytes)
{
	return bytes >= 8 ? ~UINT64CONST(0) : (UINT64CONST(1) << (8 * bytes)) - 1;
}

/* Returns a mask of the first `bytes` (0 to 8) bytes in the result of lsm_key_prefix. */
static inline uint64
lsm_high_bytes_mask(uint32 bytes)
{
	return bytes == 0 ? 0 : ~UINT64CONST(0) << (64 - 8 * bytes);
}

/*
 * An inline memcpy for keys, and for the bytes in which neighboring keys differ.  Most of these
 * copies are so short that a call would cost more than the copy.
 */
static inline void
lsm_copy(uint8 *to, const uint8 *from, uint32 n)
{
	if (n > 16)
		memcpy(to, from, n);
	else if (n >= 8)
	{
		uint64		a;
		uint64		b;

		memcpy(&a, from, 8);
		memcpy(&b, from + n - 8, 8);
		memcpy(to, &a, 8);
		memcpy(to + n - 8, &b, 8);
	}
	else if (n >= 4)
	{
		uint32		a;
		uint32		b;

		memcpy(&a, from, 4);
		memcpy(&b, from + n - 4, 4);
		memcpy(to, &a, 4);
		memcpy(to + n - 4, &b, 4);
	}
	else
	{
		for (uint32 i = 0; i < n; i++)
			to[i] = from[i];
	}
}

/*
 * Returns the first eight bytes of a key as an integer that compares like them.
 *
 * REQUIRES: eight bytes can be read; zero bytes follow a shorter key.
 */
static inline uint64
lsm_key_prefix_padded(const uint8 *key)
{
	uint64		v;

	memcpy(&v, key, 8);
	return pg_ntoh64(v);
}

/* Like lsm_key_prefix_padded, for a key that has no padding. */
static inline uint64
lsm_key_prefix(const uint8 *key, uint32 len)
{
	uint64		v = 0;

	if (len >= 8)
		return lsm_key_prefix_padded(key);
	if (len >= 4)
	{
		uint32		first;
		uint32		last;

		/* The two words may overlap.  Both have the same bytes there. */
		memcpy(&first, key, 4);
		memcpy(&last, key + len - 4, 4);
		return ((uint64) pg_ntoh32(first) << 32) |
			((uint64) pg_ntoh32(last) << (64 - 8 * len));
	}
	for (uint32 i = 0; i < len; i++)
		v |= (uint64) key[i] << (56 - 8 * i);
	return v;
}

/* Returns the length of the common prefix of two byte strings. */
static inline uint32
lsm_common_prefix(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	uint32		n = Min(alen, blen);
	uint32		i = 0;

	while (i + 8 <= n)
	{
		uint64		x = lsm_key_prefix_padded(a + i) ^ lsm_key_prefix_padded(b + i);

		if (x != 0)
			return i + (63 - pg_leftmost_one_pos64(x)) / 8;
		i += 8;
	}
	if (n >= 4)
	{
		/* Compare the rest in one step, with some equal bytes before it if n >= 8. */
		uint64		x;

		if (n >= 8)
		{
			i = n - 8;
			x = lsm_key_prefix_padded(a + i) ^ lsm_key_prefix_padded(b + i);
		}
		else
			x = lsm_key_prefix(a, n) ^ lsm_key_prefix(b, n);
		return x != 0 ? i + (63 - pg_leftmost_one_pos64(x)) / 8 : n;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

#endif							/* LSM_CODING_H */
