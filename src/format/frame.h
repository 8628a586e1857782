/*
 * frame.h
 *	  Framed groups: entries of a leaf whose keys all have the same length.
 *
 * The first key is whole.  Of each further key, up to seven bytes are written as their
 * difference from the first key's, in as many bits as the largest difference needs.  Each
 * TID is written as its difference from the lowest TID, or as its whole code if that takes
 * no more space.  So an entry takes few bytes and does not depend on the previous entry,
 * and all entries are decoded by the same steps.  (Frame of reference coding: Goldstein,
 * Ramakrishnan and Shaft, "Compressing relations and indexes", ICDE 1998.)
 *
 *		uint8		entries - 1 (lowest five bits); 0x20: the lowest TID is written;
 *					0x80 alone: no frame, see leaf_coding.h
 *		uint8		key_bits, 0 to 56
 *		uint8		shared: how many bytes at the beginning all keys have in common
 *		uint8		tid_bits, 0 to 48
 *		key			key of the first entry
 *		tid			code of the lowest TID, low byte first, in as many bytes as tid_bytes
 *					in the page's header says; if not written, the lowest code is 0
 *		keys		for each further entry, the difference of its window from that of the
 *					first key, in key_bits bits; the *window* is the up to seven bytes
 *					after the shared ones, big-endian
 *		tails		for each further entry, the bytes of its key after the window
 *		tids		for each entry, the code of its TID less the lowest code, in tid_bits bits
 *		rests		for each entry, varint length and bytes; only on pages that have rests
 *
 * Keys, tails and tids each begin at a byte boundary.  Bits are counted from the lowest.
 */
#ifndef LSM_FRAME_H
#define LSM_FRAME_H

#include "format/leaf_coding.h"

#define FRAME_COUNT_MASK	0x1F
#define FRAME_LOWEST_TID	0x20

#define FRAME_WINDOW		7	/* bytes; with a shift of up to 7 bits, they fit a uint64 */

/* Room for any frame without its rests, and for the bytes that may be written after it. */
#define FRAME_ROOM \
	(FRAME_HEAD + LSM_GROUP_ENTRIES * (LSM_FRAMED_KEYLEN + MAX_TID_BYTES + 2) + 64)

/* What the head of a frame and the page's header say, and values computed from them. */
typedef struct LsmFrame
{
	int			count;
	uint32		keylen;
	uint32		shared;
	uint32		window;
	uint32		tail;
	int			key_bits;
	int			tid_bits;
	uint64		lowest_tid;		/* as a code */
	int			lowest_bytes;	/* 0: the lowest code is 0 and not written */
} LsmFrame;

/* Some entries of a frame: from entry `from` to entry `to` - 1. */
typedef struct LsmFramePart
{
	int			from;
	int			to;
} LsmFramePart;

extern void lsm_frame_measure(LsmFrame *frame, int count, const uint8 *first, const uint8 *last,
							  uint64 lowest_tid, uint64 highest_tid, const LsmLeafCoding *c);
extern uint8 *lsm_frame_encode(uint8 *p, const LsmFrame *frame, const LsmEntry *entries,
							   const LsmLeafCoding *c);
extern bool lsm_frame_decode(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
							 LsmGroup *out);
extern bool lsm_frame_decode_around(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
									const LsmPlaceOfKey *sought, LsmFramePart *place,
									LsmGroup *out);
extern bool lsm_frame_first(const uint8 *p, const uint8 *end, const LsmLeafCoding *c,
							LsmEntry *entry);

/* Returns the size of a frame without its rests. */
static inline uint32
lsm_frame_size(const LsmFrame *f)
{
	return FRAME_HEAD + f->keylen + f->lowest_bytes +
		((f->count - 1) * f->key_bits + 7) / 8 + (f->count - 1) * f->tail +
		(f->count * f->tid_bits + 7) / 8;
}

#endif							/* LSM_FRAME_H */
