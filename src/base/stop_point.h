/*
 * stop_point.h
 *	  Named places at which a test stops a process.
 *
 * Only test builds have stop points: tools/test.sh defines LSM_STOP_POINTS.  In other
 * builds the macro is empty, and there is no setting.
 *
 * The setting pg_lsm.debug_stop_at is a list of NAME or NAME:ACTION.  A process that comes
 * to a point of the list
 *
 *		wait	(the default) takes and releases a shared advisory lock, whose key is
 *				hashtext('NAME').  A test holds it there with
 *				SELECT pg_advisory_lock(hashtext('NAME')).
 *		error	raises an error.
 *		crash	flushes its own WAL and kills itself with SIGKILL.  So all that it has
 *				logged is there after the crash.
 *
 * A point may hold heavyweight locks and pins; the comment at each says which.  It holds no
 * content lock and is in no critical section, so whoever waits there can be cancelled.
 */
#ifndef LSM_STOP_POINT_H
#define LSM_STOP_POINT_H

#ifdef LSM_STOP_POINTS

extern void lsm_stop_points_define(void);
extern void lsm_stop_point_reach(const char *name);

#define LSM_STOP_POINT(name) lsm_stop_point_reach(name)

#else

#define lsm_stop_points_define() ((void) 0)
#define LSM_STOP_POINT(name) ((void) 0)

#endif

#endif							/* LSM_STOP_POINT_H */
