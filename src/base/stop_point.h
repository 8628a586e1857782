/*
 * stop_point.h
 *	  Stop points: named places where a test can stop a process.
 *
 * Only test builds have stop points: tools/test.sh defines LSM_STOP_POINTS.  In other builds, the
 * macro is empty and the setting does not exist.
 *
 * The setting pg_lsm.debug_stop_at is a list of NAME, NAME:ACTION or NAME:ACTION:PASSES.  Each
 * process first passes a listed point PASSES times (default: 0).  From then on, it takes the action
 * whenever it reaches the point:
 *
 *		wait	(the default) takes and releases a shared advisory lock with the key
 *				hashtext('NAME').  To stop the process there, a test runs
 *				SELECT pg_advisory_lock(hashtext('NAME')).
 *		error	raises an error.
 *		crash	flushes its own WAL and kills itself with SIGKILL, so everything that it has
 *				logged survives the crash.
 *
 * A process may hold heavyweight locks and pins at a point.  The comment at the point names them.
 * The process holds no content lock and is not in a critical section, so it can be canceled while
 * it waits.
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
