/*
 * joint_filter.c
 *	  One filter in private memory of the keys of many small runs: its rounds.
 */
#include "postgres.h"

#include "read/joint_filter.h"

/* Least room, in keys.  Tests should see many rounds. */
#ifdef USE_ASSERT_CHECKING
#define LEAST_ROOM	500
#else
#define LEAST_ROOM	(1 << 15)
#endif

/*
 * Make room for so many more keys.  If there is none, begin a new round with room for
 * three times the keys that are to join then (`all`).
 */
void
lsm_joint_filter_reserve(LsmJointFilter *joint, uint64 more, uint64 all)
{
	uint64		room = Max(3 * all, LEAST_ROOM);
	bool		exists = joint->filter.blocks != NULL;

	if (exists && joint->count + more <= joint->room)
		return;
	/* First of all, so that no run counts as a member if the allocation fails. */
	joint->round++;
	joint->count = 0;
	if (exists && room <= joint->room && room >= joint->room / 4)
	{
		lsm_memory_filter_clear(&joint->filter);
		return;
	}
	lsm_memory_filter_make(&joint->filter, joint->context, joint->bits_per_key, room);
	joint->room = room;
}

/* A run joins: these are the hashes of all its keys. */
void
lsm_joint_filter_add(LsmJointFilter *joint, LsmJointMember *member, const uint64 *hashes,
					 uint32 count)
{
	lsm_memory_filter_add(&joint->filter, hashes, count);
	joint->count += count;
	member->round = joint->round;
	member->key_count = count;
}
