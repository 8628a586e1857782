/*
 * coding.h
 *	  Byte-level coding: varints, big-endian integers, heap TIDs as integers.
 *
 * Readers take an end pointer and return NULL when the bytes do not hold a
 * whole value, so that a corrupted page can never be read beyond its end.
 */
#ifndef LSM_CODING_H
#define LSM_CODING_H

#include "postgres.h"

#include "port/pg_bswap.h"
#include "storage/itemptr.h"

/* Longest varint of a 64-bit value, in bytes. */
#define LSM_MAX_VARINT 10

/* A TID as an integer that sorts like the TID: block << 16 | offset. */
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

/* Seven bits a byte, lowest first, high bit set on all but the last. */
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

/* The first eight bytes of a key as an integer that compares like them. */
static inline uint64
lsm_key_prefix(const uint8 *key, uint32 len)
{
	uint64		v = 0;

	if (likely(len >= 8))
	{
		memcpy(&v, key, 8);
		return pg_ntoh64(v);
	}
	for (uint32 i = 0; i < len; i++)
		v |= (uint64) key[i] << (56 - 8 * i);
	return v;
}

/* Length of the common prefix of two byte strings. */
static inline uint32
lsm_common_prefix(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	uint32		n = Min(alen, blen);
	uint32		i = 0;

	while (i + 8 <= n)
	{
		uint64		x;
		uint64		y;

		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			break;
		i += 8;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

#endif							/* LSM_CODING_H */
