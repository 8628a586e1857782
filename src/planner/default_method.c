/*
 * default_method.c
 *	  The setting pg_lsm.default_method: makes lsm the method of new indexes and keys whose
 *	  definition names no method.
 *
 * CREATE INDEX: the parsed command contains "btree" if there was no USING clause, so we look for
 * the clause in the source text.
 *
 * Keys in ALTER TABLE: we add the storage parameter lsm to the constraint, and constraint.c does
 * the rest.  Keys in CREATE TABLE: once the table exists, core turns each key into an index
 * command.  Our hook sees that command like any other, and by then all columns have their types.
 *
 * Core copies existing indexes (LIKE, partitions, ALTER COLUMN TYPE, REINDEX) without a command, or
 * with a command that is marked as transformed.  Such copies keep the method of the original.
 *
 * We only look up the table, the types of its columns and expressions, and its parents' keys
 * (check_parents).  We lock only the table, with core's lock mode and permission check.  Parsing an
 * expression may call input functions of user-defined types, as it does in core.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "parser/scanner.h"
#include "planner/planner.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* The index or key that a command defines. */
typedef struct Wanted
{
	Relation	heap;
	List	   *alter_commands; /* of the ALTER TABLE that defines the key */
	List	   *options;
	bool		is_unique;
	const char *text;			/* the source text, or NULL */
} Wanted;

/*
 * Does the setting apply now?  It does not apply to the script of an extension, whose author has
 * tested the script with B-trees.  Nor does it apply in pg_upgrade, which takes over the files of
 * the old indexes, so their methods must not change.
 */
static bool
is_active(void)
{
	return lsm_default_method == LSM_DEFAULT_LSM && lsm_preloaded && !creating_extension &&
		!IsBinaryUpgrade && OidIsValid(get_index_am_oid("lsm", true));
}

/* --- does the source text of CREATE INDEX have a USING clause? ----------------- */

/* Does the text of an identifier start here? */
static bool
starts_identifier(const char *text)
{
	unsigned char c = (unsigned char) *text;

	return isalpha(c) || c == '_' || c == '"' || IS_HIGHBIT_SET(c);
}

/*
 * Returns the source text beginning with the name of the index's table, or NULL if the text is not
 * known.  Other extensions may run commands that have no source text.
 */
static char *
text_from_table(const IndexStmt *index, const PlannedStmt *statement, const char *text)
{
	int			start = index->relation->location;
	int			end = text == NULL ? 0 : (int) strlen(text);

	if (statement->stmt_location >= 0 && statement->stmt_len > 0)
		end = Min(end, statement->stmt_location + statement->stmt_len);
	if (start < 0 || start >= end || !starts_identifier(text + start))
		return NULL;
	return pnstrdup(text + start, end - start);
}

/* Is this a part of the table's name?  CREATE SCHEMA adds a schema name that the text may lack. */
static bool
is_part_of_name(const RangeVar *table, const char *part)
{
	return strcmp(table->relname, part) == 0 ||
		(table->schemaname != NULL && strcmp(table->schemaname, part) == 0) ||
		(table->catalogname != NULL && strcmp(table->catalogname, part) == 0);
}

/*
 * Does the command name its method?  After the table's name comes USING, or the parenthesis of the
 * columns.  In ONLY (name), the parenthesis precedes the name, so the text begins after it.  If in
 * doubt, the method counts as named.
 */
static bool
names_method(const IndexStmt *index, const PlannedStmt *statement, const char *text)
{
	char	   *from_table = text_from_table(index, statement, text);
	int			using = ScanKeywordTokens[ScanKeywordLookup("using", &ScanKeywords)];
	core_yy_extra_type extra;
	core_yyscan_t scanner;
	core_YYSTYPE value;
	int			location;
	int			token;
	bool		is_escaped;

	if (from_table == NULL)
		return true;
	is_escaped = pg_strncasecmp(from_table, "U&\"", 3) == 0;
	scanner = scanner_init(from_table, &extra, &ScanKeywords, ScanKeywordTokens);
	token = core_yylex(&value, &location, scanner);
	if (token != 0 && (is_escaped || is_part_of_name(index->relation, value.str)))
	{
		do
			token = core_yylex(&value, &location, scanner);
		while (token != 0 && token != ';' && token != '(' && token != using);
	}
	scanner_finish(scanner);
	return token != '(';
}

/* --- can the index be an lsm index? -------------------------------------------- */

/* Returns why an index on this table should be a B-tree, or NULL. */
static const char *
check_wanted_table(const Wanted *wanted)
{
	Form_pg_class form = wanted->heap->rd_rel;

	if (form->relkind != RELKIND_RELATION && form->relkind != RELKIND_PARTITIONED_TABLE &&
		form->relkind != RELKIND_MATVIEW)
		return "The relation is not a table or materialized view.";
	if (form->relpersistence == RELPERSISTENCE_TEMP)
		return "The table is temporary.";
	if (IsSystemRelation(wanted->heap))
		return "The table is a system catalog.";
#ifndef LSM_UNIQUE_TAKES_ALL
	if (wanted->is_unique && (form->relkind != RELKIND_RELATION || form->relispartition))
		return "Before PostgreSQL 18, a unique index of such a table needs a B-tree.";
#endif
	return NULL;
}

static const char *
check_options(const Wanted *wanted)
{
	ListCell   *cell;

	foreach(cell, wanted->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (option->defnamespace != NULL || !lsm_options_has(option->defname))
			return "An lsm index does not have all of the storage parameters.";
	}
	return NULL;
}

/*
 * Returns why a column of this type should not be in an lsm index, or NULL.  Both methods must use
 * the operators of the same type.  For example, citext has a class for btree, but unless citext
 * also has a class for lsm, an lsm index would treat the column as text.
 */
static const char *
check_type(Oid type, List *class_name)
{
	Oid			method = get_index_am_oid("lsm", true);
	Oid			lsm_class;
	Oid			btree_class;

	if (!OidIsValid(type))
		return "The type of a column is not known.";
	if (class_name != NIL)
	{
		lsm_class = get_opclass_oid(method, class_name, true);
		btree_class = get_opclass_oid(BTREE_AM_OID, class_name, true);
	}
	else
	{
		lsm_class = GetDefaultOpClass(type, method);
		btree_class = GetDefaultOpClass(type, BTREE_AM_OID);
	}
	if (!OidIsValid(lsm_class) ||
		(OidIsValid(btree_class) &&
		 get_opclass_input_type(lsm_class) != get_opclass_input_type(btree_class)) ||
		!IsBinaryCoercible(type, get_opclass_input_type(lsm_class)))
		return "The type of a column has no matching operator class for lsm.";
	return NULL;
}

/* Returns the type that a column's definition in the command names, or InvalidOid if unknown. */
static Oid
type_of_definition(const ColumnDef *column)
{
	static const struct
	{
		const char *name;
		Oid			type;
	}			serials[] = {
		{"smallserial", INT2OID}, {"serial2", INT2OID}, {"serial", INT4OID},
		{"serial4", INT4OID}, {"bigserial", INT8OID}, {"serial8", INT8OID}
	};
	Type		tuple;
	Oid			type;

	if (column->typeName == NULL)
		return InvalidOid;
	if (list_length(column->typeName->names) == 1 && !column->typeName->pct_type)
	{
		for (int i = 0; i < lengthof(serials); i++)
		{
			if (strcmp(strVal(linitial(column->typeName->names)), serials[i].name) == 0)
				return serials[i].type;
		}
	}
	tuple = LookupTypeName(NULL, column->typeName, NULL, true);
	if (tuple == NULL)
		return InvalidOid;
	type = typeTypeId(tuple);
	ReleaseSysCache(tuple);
	return type;
}

/* Returns a column's type after the command, or InvalidOid if there is no such column or type. */
static Oid
type_of_column(const Wanted *wanted, const char *name)
{
	ListCell   *cell;
	AttrNumber	number = get_attnum(RelationGetRelid(wanted->heap), name);

	foreach(cell, wanted->alter_commands)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		/* IF NOT EXISTS may leave a column as it is. */
		if (command->subtype == AT_AddColumn &&
			!(command->missing_ok && number != InvalidAttrNumber) &&
			strcmp(((ColumnDef *) command->def)->colname, name) == 0)
			return type_of_definition((ColumnDef *) command->def);
		if (command->subtype == AT_AlterColumnType && strcmp(command->name, name) == 0)
			return type_of_definition((ColumnDef *) command->def);
	}
	return number == InvalidAttrNumber ? InvalidOid :
		get_atttype(RelationGetRelid(wanted->heap), number);
}

/* Returns the type of an indexed expression.  Raises the errors that core would raise next. */
static Oid
type_of_expression(const Wanted *wanted, Node *expression)
{
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item;
	Oid			type;

	state->p_sourcetext = wanted->text;
	item = addRangeTableEntryForRelation(state, wanted->heap, AccessShareLock, NULL, false, true);
	addNSItemToQuery(state, item, false, true, true);
	expression = transformExpr(state, copyObject(expression), EXPR_KIND_INDEX_EXPRESSION);
	assign_expr_collations(state, expression);
	type = exprType(expression);
	free_parsestate(state);
	return type;
}

static const char *
check_element(const Wanted *wanted, const IndexElem *element)
{
	if (element->opclassopts != NIL)
		return "An operator class has parameters.";
	return check_type(element->name != NULL ? type_of_column(wanted, element->name) :
					  type_of_expression(wanted, element->expr), element->opclass);
}

/* --- keys that parents also have ------------------------------------------------- */

/* Is this a unique B-tree on exactly these columns, in any order? */
static bool
is_btree_key(Form_pg_index index, const List *columns)
{
	bool		found = index->indisunique && index->indnkeyatts == list_length(columns);

	for (int i = 0; found && i < index->indnkeyatts; i++)
	{
		char	   *name = get_attname(index->indrelid, index->indkey.values[i], true);

		found = name != NULL && list_member(columns, makeString(name));
	}
	return found && lsm_index_method(index->indexrelid) == BTREE_AM_OID;
}

/*
 * Does the table have a B-tree key on these columns?  Reads only the catalog.  Opening the table
 * would lock it after its child, which the caller has locked, and parents must be locked first.
 */
static bool
has_btree_key(Oid table, const List *columns)
{
	Relation	indexes = table_open(IndexRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = is_btree_key((Form_pg_index) GETSTRUCT(tuple), columns);
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
	return found;
}

/*
 * Returns why a key should be a B-tree, or NULL.  If an inheritance parent has a B-tree key on the
 * same columns, the child's key should be a B-tree, too.  TimescaleDB adds a hypertable's keys to
 * each new chunk with ALTER TABLE, and then looks for an index with the same method on the chunk.
 */
static const char *
check_parents(const Wanted *wanted, const List *columns)
{
	Relation	inherits;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		found = false;

	if (!has_superclass(RelationGetRelid(wanted->heap)))
		return NULL;
	inherits = table_open(InheritsRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationGetRelid(wanted->heap)));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = has_btree_key(((Form_pg_inherits) GETSTRUCT(tuple))->inhparent, columns);
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return found ? "A parent has the same key with a B-tree." : NULL;
}

/* --- CREATE INDEX, and the indexes of CREATE TABLE's keys ----------------------- */

static void
report_btree(Relation heap, const char *reason)
{
	ereport(DEBUG1,
			(errmsg_internal("an index of table \"%s\" is a B-tree although pg_lsm.default_method is lsm",
							 RelationGetRelationName(heap)),
			 errdetail_internal("%s", reason)));
}

static const char *
check_wanted_index(const Wanted *wanted, const IndexStmt *index)
{
	const char *reason = check_wanted_table(wanted);
	List	   *columns = NIL;
	ListCell   *cell;

	if (reason == NULL)
		reason = check_options(wanted);
	foreach(cell, index->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, cell);

		if (reason == NULL)
			reason = check_element(wanted, element);
		if (element->name != NULL)
			columns = lappend(columns, makeString(element->name));
	}
	if (reason == NULL && index->isconstraint)
		reason = check_parents(wanted, columns);
	return reason;
}

/*
 * Make the index an lsm index if possible.  Locks the table as core does, so that the table cannot
 * change before core runs the command.
 */
static void
choose_for_index(IndexStmt *index, const char *text)
{
	LOCKMODE	mode = index->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	Oid			table = RangeVarGetRelidExtended(index->relation, mode, RVR_MISSING_OK,
												 RangeVarCallbackOwnsRelation, NULL);
	Wanted		wanted = {.options = index->options,.is_unique = index->unique,.text = text};
	const char *reason;

	if (!OidIsValid(table))
		return;
	wanted.heap = relation_open(table, NoLock);
	reason = check_wanted_index(&wanted, index);
	if (reason != NULL)
		report_btree(wanted.heap, reason);
	else
	{
		index->accessMethod = pstrdup("lsm");
		if (index->isconstraint)
			index->options = lsm_constraint_add_parameter(index->options, true);
	}
	relation_close(wanted.heap, NoLock);
}

/* Does this index command leave the method to us?  Keys have no USING clause. */
static bool
leaves_method(const IndexStmt *index, const PlannedStmt *statement, const char *text)
{
	if (index->transformed || index->excludeOpNames != NIL ||
		strcmp(index->accessMethod, DEFAULT_INDEX_TYPE) != 0 ||
		lsm_constraint_parameter(index->options) != NULL)
		return false;
	return index->isconstraint || !names_method(index, statement, text);
}

/* --- ALTER TABLE ----------------------------------------------------------------- */

/* Does this constraint leave the method of its index to us? */
static bool
is_undecided_key(const Constraint *constraint)
{
	return lsm_constraint_is_key(constraint) && constraint->access_method == NULL &&
		!LSM_WITHOUT_OVERLAPS(constraint) && lsm_constraint_parameter(constraint->options) == NULL;
}

/* Returns the names of a key's columns. */
static List *
columns_of(const Constraint *constraint, const ColumnDef *column)
{
	return column != NULL ? list_make1(makeString(column->colname)) : constraint->keys;
}

static void
find_undecided_key(Constraint *constraint, const RangeVar *table, ColumnDef *column, void *arg)
{
	if (is_undecided_key(constraint))
		*(bool *) arg = true;
}

/* Make the key an lsm key if possible. */
static void
choose_for_key(Constraint *constraint, const RangeVar *table, ColumnDef *column, void *arg)
{
	Wanted		wanted = *(Wanted *) arg;
	const char *reason;
	ListCell   *cell;

	if (!is_undecided_key(constraint))
		return;
	wanted.options = constraint->options;
	reason = check_wanted_table(&wanted);
	if (reason == NULL)
		reason = check_options(&wanted);
	if (reason == NULL && column != NULL)
		reason = check_type(type_of_definition(column), NIL);
	foreach(cell, constraint->keys)
	{
		if (reason == NULL)
			reason = check_type(type_of_column(&wanted, strVal(lfirst(cell))), NIL);
	}
	if (reason == NULL)
		reason = check_parents(&wanted, columns_of(constraint, column));
	if (reason != NULL)
		report_btree(wanted.heap, reason);
	else
		constraint->options = lsm_constraint_add_parameter(constraint->options, true);
}

static void
choose_for_keys(AlterTableStmt *command)
{
	/* AlterTableLookupRelation checks that the user owns the table. */
	Oid			table = AlterTableLookupRelation(command, AlterTableGetLockLevel(command->cmds));
	Wanted		wanted = {.alter_commands = command->cmds,.is_unique = true};

	if (!OidIsValid(table))
		return;
	wanted.heap = relation_open(table, NoLock);
	lsm_constraint_visit((Node *) command, choose_for_key, &wanted);
	relation_close(wanted.heap, NoLock);
}

/* --- foreign keys in the same command, before 18 -------------------------------- */

#ifndef LSM_UNIQUE_TAKES_ALL
static void
collect_foreign_key(Constraint *constraint, const RangeVar *table, ColumnDef *column, void *arg)
{
	List	  **foreign_keys = arg;

	if (constraint->contype == CONSTR_FOREIGN)
		*foreign_keys = lappend(*foreign_keys, constraint);
}

/* Could these be names of the same table? */
static bool
may_be_same_table(const RangeVar *a, const RangeVar *b)
{
	return strcmp(a->relname, b->relname) == 0 &&
		(a->schemaname == NULL || b->schemaname == NULL ||
		 strcmp(a->schemaname, b->schemaname) == 0);
}

static bool
refers_to_key(const Constraint *foreign_key, const Constraint *key, List *columns)
{
	if (foreign_key->pk_attrs == NIL)
		return key->contype == CONSTR_PRIMARY;
	return list_length(foreign_key->pk_attrs) == list_length(columns) &&
		list_difference(columns, foreign_key->pk_attrs) == NIL;
}

/* Make a key a B-tree if a foreign key of the same command refers to it. */
static void
keep_btree_for_foreign_keys(Constraint *constraint, const RangeVar *table, ColumnDef *column,
							void *arg)
{
	List	   *columns = columns_of(constraint, column);
	ListCell   *cell;

	if (!is_undecided_key(constraint))
		return;
	foreach(cell, *(List **) arg)
	{
		Constraint *foreign_key = lfirst_node(Constraint, cell);

		if (may_be_same_table(foreign_key->pktable, table) &&
			refers_to_key(foreign_key, constraint, columns))
		{
			constraint->options = lsm_constraint_add_parameter(constraint->options, false);
			return;
		}
	}
}
#endif

static void
heed_foreign_keys(Node *command)
{
#ifndef LSM_UNIQUE_TAKES_ALL
	List	   *foreign_keys = NIL;

	lsm_constraint_visit(command, collect_foreign_key, &foreign_keys);
	lsm_constraint_visit(command, keep_btree_for_foreign_keys, &foreign_keys);
#endif
}

/* --- the command ------------------------------------------------------------------ */

/* Could the command define an index or a key whose method we choose? */
static bool
is_affected(PlannedStmt *statement, const char *text)
{
	Node	   *command = statement->utilityStmt;
	bool		found = false;

	if (IsA(command, IndexStmt))
		return leaves_method((IndexStmt *) command, statement, text);
	if (IsA(command, AlterTableStmt) && ((AlterTableStmt *) command)->objtype != OBJECT_TABLE)
		return false;
	lsm_constraint_visit(command, find_undecided_key, &found);
	return found;
}

/*
 * Apply the setting to a command, before core sees the command.  Returns the command, or a copy if
 * the setting may affect the command and *read_only_tree is set.  Clears *read_only_tree for the
 * copy.
 */
PlannedStmt *
lsm_default_method_prepare(PlannedStmt *statement, const char *text, bool *read_only_tree)
{
	Node	   *command = statement->utilityStmt;

	/* A command that ends an aborted transaction must not look at catalogs. */
	if (!(IsA(command, IndexStmt) || IsA(command, CreateStmt) || IsA(command, AlterTableStmt) ||
		  IsA(command, CreateSchemaStmt)) ||
		!is_active() || !is_affected(statement, text))
		return statement;
	/* The command may be in a plan cache. */
	if (*read_only_tree)
		statement = copyObject(statement);
	*read_only_tree = false;
	command = statement->utilityStmt;
	if (IsA(command, IndexStmt))
		choose_for_index((IndexStmt *) command, text);
	else
		heed_foreign_keys(command);
	if (IsA(command, AlterTableStmt))
		choose_for_keys((AlterTableStmt *) command);
	return statement;
}
