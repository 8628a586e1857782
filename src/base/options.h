/*
 * options.h
 *	  Defines and reads the storage parameters of an lsm index.
 */
#ifndef LSM_OPTIONS_H
#define LSM_OPTIONS_H

#include "postgres.h"

#include "utils/relcache.h"

extern void lsm_options_init(void);
extern bytea *lsm_options_parse(Datum reloptions, bool validate);
extern bool lsm_options_has(const char *name);
extern bool lsm_has_key_parameter(Relation index);
extern int	lsm_fanout(Relation index);
extern int	lsm_filter_bits(Relation index);
extern int	lsm_filter_prefix(Relation index, int key_columns, bool *if_worth);

#endif							/* LSM_OPTIONS_H */
