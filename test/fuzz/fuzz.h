/*
 * fuzz.h
 *	  What the fuzz targets share: reading an input, pages in inputs, checks.
 *
 * A target is a file f_NAME.c, which defines fuzz_target.  libFuzzer calls it through
 * LLVMFuzzerTestOneInput (fuzz.c).  tools/fuzz.sh builds and runs the fuzzers with clang.  Without
 * clang, "make -C test/unit check" replays the inputs in corpus/NAME (driver.c).
 *
 * Code under test may answer damaged bytes with an error text, false, or elog(ERROR) or
 * elog(PANIC), which end the input.  It must not touch other memory (the sanitizers and
 * guarded pages tell), fail an assertion, or run for long.  What different readers of the same
 * bytes return must agree: see `expect`.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "postgres.h"

#include "format/page.h"

/* The rest of an input.  Bytes beyond its end count as 0. */
typedef struct Input
{
	const uint8 *p;
	const uint8 *end;
} Input;

/*
 * A page in an input.  The reader sets what random bytes would hardly ever hit: the page header, the
 * special area, the checksum, the magic number, and numbers of entries.
 *
 *		uint8		FUZZ_RAW_*: what the reader does not repair
 *		uint8		flags
 *		uint16		number of bytes after the page header
 *		uint16		number of bytes before the special area
 *		uint16		pd_lower and pd_upper, only with FUZZ_RAW_BOUNDS
 *		bytes		after the page header, then those before the special area
 */
#define FUZZ_RAW_BOUNDS		0x01	/* pd_lower and pd_upper */
#define FUZZ_RAW_COUNTS		0x02	/* magic number, numbers of entries */
#define FUZZ_RAW_SELF		0x04	/* the page names another block */

/* The block, owner and edit of pages in inputs. */
#define FUZZ_OWNER			77
#define FUZZ_STAMP			5

extern void fuzz_read_page(Input *in, Page page, uint16 kind, BlockNumber self);

/* Handles an input.  Each target defines it. */
extern void fuzz_target(Input *in);

extern int	LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

static inline uint64
take_bits(Input *in, int bytes)
{
	uint64		value = 0;

	for (int i = 0; i < bytes && in->p < in->end; i++)
		value |= (uint64) *in->p++ << (8 * i);
	return value;
}

#define take8(in) ((uint8) take_bits(in, 1))
#define take16(in) ((uint16) take_bits(in, 2))
#define take32(in) ((uint32) take_bits(in, 4))

/* Copy up to `size` bytes.  Returns how many there were; the others become 0. */
static inline uint32
take_bytes(Input *in, void *to, uint32 size)
{
	uint32		have = Min(size, (uint32) (in->end - in->p));

	if (have > 0)
		memcpy(to, in->p, have);
	memset((char *) to + have, 0, size - have);
	in->p += have;
	return have;
}

/* Returns a copy of bytes, allocated to their exact size. */
static inline uint8 *
take_copy(Input *in, uint32 *size)
{
	uint8	   *copy;

	*size = Min(*size, (uint32) (in->end - in->p));
	copy = palloc(*size);
	take_bytes(in, copy, *size);
	return copy;
}

/* What must hold for any input. */
#define expect(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
