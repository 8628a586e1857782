/*
 * hooks.h
 *	  Installs our functions in core's hooks.  Exactly one file handles each hook.
 */
#ifndef LSM_HOOKS_H
#define LSM_HOOKS_H

/* server_hooks.c */
extern void lsm_server_hooks_install(void);

/* planner_hooks.c */
extern void lsm_planner_hooks_install(void);

/* executor_hooks.c */
extern void lsm_executor_hooks_install(void);

/* utility_hook.c */
extern void lsm_utility_hook_install(void);

#endif							/* LSM_HOOKS_H */
