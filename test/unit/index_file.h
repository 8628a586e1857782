/* index_file.h -- an index file in memory, for code that changes the manifest. */
#ifndef INDEX_FILE_H
#define INDEX_FILE_H

#include "manifest/manifest.h"

#define FILE_BLOCKS 4096

/* The index.  Its keys are encoded: eight bytes, see file_key(). */
extern LsmIndex file_index;
extern LsmKeySpace file_keyspace;

/* The job that another process is at, or 0. */
extern uint64 file_busy_job;

/* Where the file was cut; 0: it was not. */
extern BlockNumber file_cut_at;

/*
 * No page is in memory any more but the meta page.  From then on: pages that were not in memory
 * when they were read under the lock of the meta page, and pages of directories searched under it.
 */
extern void file_go_cold(void);
extern int	file_cold_reads;
extern int	file_searches;

/* Called once, before the next edit locks the meta page: what another process does then. */
extern void (*file_before_edit) (void);

/* An empty index. */
extern void file_make(void);
extern Page file_page(BlockNumber block);

/* An entry with that number for a key; it lives until backend_free_all(). */
extern LsmEntry file_key(uint64 number);

/*
 * NULL, or what is wrong: a block that is used twice, or by nobody, or though it is free
 * (I2); a reservation without a job (I3); an input without an output (I8); sums that do
 * not fit the segments.
 */
extern const char *file_fault(void);

#endif
