/* t_coding.c -- varints, key prefixes, common prefixes, TIDs. */
#include "tap.h"

#include "base/coding.h"

static void
test_varints(void)
{
	bool		round_trip = true;
	bool		size_right = true;
	bool		short_refused = true;

	for (int shift = 0; shift < 64; shift++)
	{
		for (int d = -1; d <= 1; d++)
		{
			uint64		value = (UINT64CONST(1) << shift) + d;
			uint64		back = 0;
			uint8		bytes[10];	/* seven bits each */
			uint8	   *end = lsm_put_varint(bytes, value);

			round_trip &= lsm_get_varint(bytes, end, &back) == end && back == value;
			size_right &= end - bytes == lsm_varint_size(value);
			short_refused &= lsm_get_varint(bytes, end - 1, &back) == NULL;
		}
	}
	ok(round_trip, "varints decode to the encoded values");
	ok(size_right, "lsm_varint_size returns the size of each encoded varint");
	ok(short_refused, "a truncated varint is rejected");
}

static void
test_endless_varint(void)
{
	uint8		bytes[32];
	uint64		value;

	memset(bytes, 0xFF, sizeof(bytes));
	ok(lsm_get_varint(bytes, bytes + sizeof(bytes), &value) == NULL,
	   "an unterminated varint is rejected");
}

static void
test_prefixes(void)
{
	bool		order = true;
	bool		common = true;

	for (int n = 0; n < 20000; n++)
	{
		uint8		a[12];
		uint8		b[12];
		uint32		alen = rnd(12);
		uint32		blen = rnd(12);
		uint64		pa;
		uint64		pb;
		uint32		shared = 0;
		int			c;

		for (int i = 0; i < 12; i++)
		{
			a[i] = rnd(3);
			b[i] = rnd(3);
		}
		pa = lsm_key_prefix(a, alen);
		pb = lsm_key_prefix(b, blen);
		c = memcmp(a, b, Min(alen, blen));
		/* If the prefixes differ, they must sort like the keys. */
		if (pa != pb && c != 0)
			order &= (pa < pb) == (c < 0);
		while (shared < Min(alen, blen) && a[shared] == b[shared])
			shared++;
		common &= lsm_common_prefix(a, alen, b, blen) == shared;
	}
	ok(order, "key prefixes sort like the keys");
	ok(common, "common prefixes have the right length");
}

static void
test_tids(void)
{
	ItemPointerData tid;
	ItemPointerData back;

	ItemPointerSet(&tid, 0xFFFFFFFE, 291);
	lsm_int_to_tid(lsm_tid_to_int(&tid), &back);
	ok(memcmp(&tid, &back, sizeof(tid)) == 0, "an encoded TID decodes to the same TID");
}

int
main(void)
{
	test_varints();
	test_endless_varint();
	test_prefixes();
	test_tids();
	return done();
}
