/*
 * stop_point.c
 *	  The setting pg_lsm.debug_stop_at, and the actions at a stop point.
 *
 * Only test builds compile this code.
 */
#include "postgres.h"

#include "base/stop_point.h"

#ifdef LSM_STOP_POINTS

#include <signal.h>

#include "access/xlog.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/guc.h"

typedef enum StopAction
{
	STOP_WAIT,
	STOP_ERROR,
	STOP_CRASH
} StopAction;

/* In the order of StopAction. */
static const char *const action_names[] = {"wait", "error", "crash"};

/* All points.  Comments at the points describe them. */
static const char *const point_names[] = {
	"batch-write", "batch-written",
	"page-seal", "page-sealed", "page-open", "page-opened",
	"merge-begun", "merge-move", "merge-save", "merge-install", "merge-free",
	"space-extend", "space-reserved", "space-freed",
	"vacuum-page", "vacuum-found", "vacuum-flip", "vacuum-drain",
	"truncate-lock", "truncate-cut",
	"read-version",
	"unique-probed", "unique-checked", "unique-publish",
	"check-segment", "check-table", "check-duplicates", "check-unique",
	"convert-build", "convert-swap", "convert-swapped", "convert-drop",
	"build-begun", "build-install", "redo"
};

/* An item of the setting: indexes into the arrays above, or -1 for unknown words. */
typedef struct StopItem
{
	int			point;
	int			action;
	int			passes;			/* how often to pass the point before the action; -1: no number */
} StopItem;

static char *stop_at = "";

/* How often this process has reached each listed point since the setting was last assigned. */
static int	passed[lengthof(point_names)];

/* Returns the index of a word in an array, or -1. */
static int
find_word(const char *const *words, int count, const char *word, size_t length)
{
	for (int i = 0; i < count; i++)
	{
		if (strlen(words[i]) == length && strncmp(words[i], word, length) == 0)
			return i;
	}
	return -1;
}

/* Take the next item of a list.  Returns false at the end. */
static bool
take_item(const char **list, StopItem *item)
{
	size_t		length;

	*list += strspn(*list, ", ");
	if (**list == '\0')
		return false;
	length = strcspn(*list, ":, ");
	item->point = find_word(point_names, lengthof(point_names), *list, length);
	item->action = STOP_WAIT;
	item->passes = 0;
	*list += length;
	if (**list == ':')
	{
		(*list)++;
		length = strcspn(*list, ":, ");
		item->action = find_word(action_names, lengthof(action_names), *list, length);
		*list += length;
	}
	if (**list == ':')
	{
		char	   *end;

		(*list)++;
		length = strcspn(*list, ", ");
		item->passes = strtol(*list, &end, 10);
		if (length == 0 || end != *list + length)
			item->passes = -1;
		*list += length;
	}
	return true;
}

static char *
list_points(void)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < lengthof(point_names); i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", point_names[i]);
	return list.data;
}

static bool
check_stop_at(char **value, void **extra, GucSource source)
{
	const char *list = *value;
	StopItem	item;

	while (take_item(&list, &item))
	{
		if (item.point >= 0 && item.action >= 0 && item.passes >= 0)
			continue;
		GUC_check_errdetail("Items are NAME, NAME:ACTION or NAME:ACTION:PASSES, with action wait, error or crash.");
		GUC_check_errhint("Points are: %s", list_points());
		return false;
	}
	return true;
}

static void
assign_stop_at(const char *value, void *extra)
{
	memset(passed, 0, sizeof(passed));
}

/*
 * Wait until nobody holds the point's advisory lock exclusively.  The tag of the lock is that of
 * pg_advisory_lock(bigint).
 */
static void
wait_at(const char *name)
{
	int64		key = (int32) DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, 1);
	(void) LockAcquire(&tag, ShareLock, false, false);
	LockRelease(&tag, ShareLock, false);
}

/*
 * Perform the action, if any, that the setting specifies for a stop point.
 *
 * REQUIRES: the process holds no content lock and is not in a critical section.
 */
void
lsm_stop_point_reach(const char *name)
{
	int			point = find_word(point_names, lengthof(point_names), name, strlen(name));
	const char *list = stop_at;
	StopItem	item;
	int			passes;

	Assert(point >= 0);
	Assert(InterruptHoldoffCount == 0 && CritSectionCount == 0);
	passes = passed[point]++;
	while (take_item(&list, &item))
	{
		if (item.point != point || passes < item.passes)
			continue;
		switch (item.action)
		{
			case STOP_WAIT:
				wait_at(name);
				break;
			case STOP_ERROR:
				elog(ERROR, "stopped at \"%s\"", name);
				break;
			case STOP_CRASH:
				XLogFlush(XactLastRecEnd);
				raise(SIGKILL);
				break;
		}
	}
}

void
lsm_stop_points_define(void)
{
	DefineCustomStringVariable("pg_lsm.debug_stop_at",
							   "Points at which processes wait, fail or crash, for tests.",
							   NULL, &stop_at, "",
							   PGC_SUSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   check_stop_at, assign_stop_at, NULL);
}

#endif							/* LSM_STOP_POINTS */
