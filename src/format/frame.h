/*
 * frame.h
 *	  Framed groups: entries of a leaf whose keys have all the same length.
 *
 * The first key is whole.  Each further key is written as its difference to the
 * first one, in as many bits as the greatest difference takes, and each TID as its
 * difference to the lowest one.  So an entry takes few bytes, none depends on the
 * one before, and decoding does the same for each entry.  (Frame of reference
 * coding: Goldstein, Ramakrishnan and Shaft, "Compressing relations and indexes",
 * ICDE 1998.)
 *
 *		uint8		entries - 1 (lowest five bits); 0x20: the lowest TID is written;
 *					0x80 alone: no frame, see leaf_coding.h
 *		uint8		key_bits, 0 to 56
 *		uint8		shared: bytes at their beginning in which all keys are alike
 *		uint8		tid_bits, 0 to 48
 *		key			of the first entry
 *		tid			code of the lowest TID, in as many bytes as tid_bytes of the page's
 *					header says, low byte first; if not written it counts as 0
 *		keys		of each further entry the difference to the first one, of the up to
 *					seven bytes after the shared ones (the *window*, big-endian), in
 *					key_bits bits
 *		tails		of each further entry the bytes after the window
 *		tids		of each entry its code, less the lowest one's, in tid_bits bits
 *		rests		of each entry varint length and bytes, on pages that have rests
 *
 * Keys, tails and tids begin at a byte each; bits are counted from the lowest.
 */
#ifndef LSM_FRAME_H
#define LSM_FRAME_H

#include "format/leaf_coding.h"

#define FRAME_COUNT_MASK	0x1F
#define FRAME_LOWEST_TID	0x20

#define FRAME_WINDOW		7	/* bytes: with 7 bits of a shift they fit an integer */

/* A frame, without its rests, has fewer bytes; some may be written after it. */
#define FRAME_ROOM \
	(FRAME_HEAD + LSM_GROUP_ENTRIES * (LSM_FRAMED_KEYLEN + MAX_TID_BYTES + 2) + 64)

/* What the head of a frame says, and what follows from that. */
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
	int			lowest_bytes;	/* 0: it is 0, and not written */
} LsmFrame;

/* Entries of a frame: from this one on, up to before that one. */
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

/* Bytes of a frame, without its rests. */
static inline uint32
lsm_frame_size(const LsmFrame *f)
{
	return FRAME_HEAD + f->keylen + f->lowest_bytes +
		((f->count - 1) * f->key_bits + 7) / 8 + (f->count - 1) * f->tail +
		(f->count * f->tid_bits + 7) / 8;
}

#endif							/* LSM_FRAME_H */
