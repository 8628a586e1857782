/*
 * statement.h
 *	  Tracks the running statements, and decides which of them may batch.
 */
#ifndef LSM_STATEMENT_H
#define LSM_STATEMENT_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* The innermost running statement, and its nesting depth. */
typedef struct LsmStatement
{
	int			depth;			/* 1: the outermost one; 0: none */
	int			level;			/* nesting level of transactions where the outermost one began */
	bool		many_rows;		/* COPY: expect more than a few rows */
	bool		batches;		/* the statement may batch */
	bool		only_inserts;	/* the statement is an INSERT or COPY */
	uint64		serial;			/* unique in this backend */
	CommandId	seen_from;		/* snapshots with lower command ids see none of the statement's rows */
} LsmStatement;

extern void lsm_statement_init(void);
extern bool lsm_statement_batches(IndexInfo *info, bool may_fail, int rows, CommandId *seen_from);
extern bool lsm_statement_batches_unique(IndexInfo *info, int rows, CommandId *seen_from,
										 uint64 *statement);
extern bool lsm_statement_shows_rows(Relation heap);

/* For the hooks. */
extern LsmStatement lsm_statement_begin_run(QueryDesc *query);
extern LsmStatement lsm_statement_begin_finish(QueryDesc *query);
extern LsmStatement lsm_statement_begin_utility(PlannedStmt *statement);
extern void lsm_statement_flush(void);
extern void lsm_statement_leave(const LsmStatement *outer);
extern void lsm_statement_end(void);

#endif							/* LSM_STATEMENT_H */
