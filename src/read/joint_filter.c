/*
 * joint_filter.c
 *	  Fills the joint filter of many small runs, in rounds.
 */
#include "postgres.h"

#include "read/joint_filter.h"

/* Least room, in keys.  With assertions it is small, so that tests see many rounds. */
#ifdef USE_ASSERT_CHECKING
#define LEAST_ROOM	500
#else
#define LEAST_ROOM	(1 << 15)
#endif

/*
 * Make room for `more` keys.  If the filter is full, begin a new round with room for 3 * `all`
 * keys.  `all` counts the keys of the runs that will join then.
 */
void
lsm_joint_filter_reserve(LsmJointFilter *joint, uint64 more, uint64 all)
{
	uint64		room = Max(3 * all, LEAST_ROOM);
	bool		exists = joint->filter.blocks != NULL;

	if (exists && joint->count + more <= joint->room)
		return;
	/* Increment the round first: no run may count as a member if the allocation fails. */
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

/* Let a run join.  `hashes` are the hashes of all its keys. */
void
lsm_joint_filter_add(LsmJointFilter *joint, LsmJointMember *member, const uint64 *hashes,
					 uint32 count)
{
	lsm_memory_filter_add(&joint->filter, hashes, count);
	joint->count += count;
	member->round = joint->round;
	member->key_count = count;
}
