/*
 * collation.c
 *	  Finds out whether a collation sorts strings in byte order.
 *
 * Core itself compares bytes under C and POSIX, and under all locales of the builtin provider.
 * Under locales of libc, core compares strings with strcoll, and breaks ties with strcmp
 * (varstr_cmp).  The strcoll of glibc begins with
 *
 *		if (nrules == 0)
 *			return STRCMP (s1, s2);
 *
 * where nrules is the item _NL_COLLATE_NRULES of the locale (string/strcoll_l.c).  Since glibc
 * 2.35, C.UTF-8 has the keyword codepoint_collation, and so no rules.  The older C.UTF-8 of some
 * distributions has rules.  So the installed library determines whether strings sort in byte order.
 * The meta page of an index records the answer; see check_coding in keyspace.c.
 */
#include "postgres.h"

#ifdef __GLIBC__
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#endif

#include "access/htup_details.h"
#include "base/compat.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "key/collation.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#ifdef __GLIBC__

/* Does this locale have no collation rules? */
static bool
locale_has_no_rules(const char *name)
{
	locale_t	locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	const char *item;
	uint32		rules;
	bool		result;

	if (locale == (locale_t) 0)
		return false;
	item = nl_langinfo_l(_NL_COLLATE_NRULES, locale);

	/* The item is a union of a pointer and a 32-bit word, so its first bytes are the word. */
	memcpy(&rules, &item, sizeof(rules));

	/* Any rules for letters would sort these the other way round. */
	result = rules == 0 && strcoll_l("a", "B", locale) > 0;
	freelocale(locale);
	return result;
}

/* A locale and whether it has rules.  A process always loads the same locale for a name. */
typedef struct KnownLocale
{
	struct KnownLocale *next;
	bool		has_no_rules;
	char		name[FLEXIBLE_ARRAY_MEMBER];
} KnownLocale;

static KnownLocale *known_locales = NULL;

static bool
is_known_to_have_no_rules(const char *name)
{
	KnownLocale *known = known_locales;

	while (known != NULL && strcmp(known->name, name) != 0)
		known = known->next;
	if (known == NULL)
	{
		known = MemoryContextAlloc(TopMemoryContext, offsetof(KnownLocale, name) + strlen(name) + 1);
		strcpy(known->name, name);
		known->has_no_rules = locale_has_no_rules(name);
		known->next = known_locales;
		known_locales = known;
	}
	return known->has_no_rules;
}

/* Returns the palloc'd name of a collation's locale, or NULL if the locale is not libc's. */
static char *
libc_locale(Oid collation)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(is_default ? MyDatabaseId : collation));
	char		provider;
	Datum		name;
	bool		isnull;
	char	   *result = NULL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	provider = is_default ? ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider :
		((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	name = SysCacheGetAttr(cache, tuple, is_default ? Anum_pg_database_datcollate :
						   Anum_pg_collation_collcollate, &isnull);
	if (provider == COLLPROVIDER_LIBC && !isnull)
		result = TextDatumGetCString(name);
	ReleaseSysCache(tuple);
	return result;
}

static bool
libc_has_no_rules(Oid collation)
{
	char	   *name;
	bool		result;

	if (GetDatabaseEncoding() != PG_UTF8 || (name = libc_locale(collation)) == NULL)
		return false;
	result = is_known_to_have_no_rules(name);
	pfree(name);
	return result;
}

#else

static bool
libc_has_no_rules(Oid collation)
{
	return false;
}

#endif

/* Returns true only if strings are certain to sort in byte order. */
bool
lsm_collation_is_bytewise(Oid collation)
{
	return OidIsValid(collation) && (lsm_collation_is_c(collation) || libc_has_no_rules(collation));
}
