/*
 * joint_filter.h
 *	  Keeps a joint filter: one filter in private memory for the keys of many small runs.
 *
 * Runs join the filter one by one.  Keys of runs that are gone stay in the filter, at the cost of
 * some false positives.  When the filter is full, a new *round* begins: the filter is emptied, and
 * the runs that still exist join again.
 */
#ifndef LSM_JOINT_FILTER_H
#define LSM_JOINT_FILTER_H

#include "read/memory_filter.h"

typedef struct LsmJointFilter
{
	MemoryContext context;
	int			bits_per_key;
	uint64		round;			/* number of the current round; 0: none has begun */
	uint64		count;			/* keys */
	uint64		room;			/* in keys */
	LsmMemoryFilter filter;
} LsmJointFilter;

/* A run, as a member of the filter. */
typedef struct LsmJointMember
{
	uint64		lookups;		/* of keys, in the run itself, before it joined */
	uint64		round;			/* in which it joined last; 0: never */
	uint32		key_count;		/* when it joined; a job may have taken some entries since */
	uint64		low;			/* lsm_entry_prefix of the run's first key */
	uint64		high;			/* lsm_entry_prefix of the run's last key */
} LsmJointMember;

extern void lsm_joint_filter_reserve(LsmJointFilter *joint, uint64 more, uint64 all);
extern void lsm_joint_filter_add(LsmJointFilter *joint, LsmJointMember *member,
								 const uint64 *hashes, uint32 count);

/* Does the filter know the run's keys? */
static inline bool
lsm_joint_filter_has_member(const LsmJointFilter *joint, const LsmJointMember *member)
{
	return joint->round != 0 && member->round == joint->round;
}

/* May any member have the key with this hash? */
static inline bool
lsm_joint_filter_has(const LsmJointFilter *joint, uint64 hash)
{
	return lsm_memory_filter_has(&joint->filter, hash);
}

/* Can the member have keys in this range of prefixes? */
static inline bool
lsm_joint_member_overlaps(const LsmJointMember *member, uint64 low, uint64 high)
{
	return high >= member->low && low <= member->high;
}

/* Should the run join before a batch looks for `more` keys in it? */
static inline bool
lsm_joint_member_is_due(LsmJointMember *member, uint64 more, uint64 entries)
{
	member->lookups += more;
	return lsm_memory_filter_is_due(member->lookups, entries);
}

/* Returns the room, in keys, for a run whose record counts `entries` entries. */
static inline uint64
lsm_joint_member_room(const LsmJointMember *member, uint64 entries)
{
	return Max(entries, member->key_count);
}

#endif							/* LSM_JOINT_FILTER_H */
