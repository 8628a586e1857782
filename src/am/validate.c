/*
 * validate.c
 *	  The callbacks amvalidate and amadjustmembers: check operator classes, and decide what their
 *	  members depend on.
 *
 * An lsm index compares and searches as a B-tree does.  So for each pair of types in its family, a
 * class needs five search operators and an order function.  Other support functions are optional.
 *
 * Only the SQL function amvalidate() calls the validator, so nothing stops a user from using an
 * unsound class.  The validator reports all faults that it finds.
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "am/am.h"
#include "base/compat.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/* Support function numbers, the same as for B-trees. */
enum
{
	SUPPORT_ORDER = 1,
	SUPPORT_SORT = 2,
	SUPPORT_IN_RANGE = 3,
	SUPPORT_EQUAL_IMAGE = 4,
	SUPPORT_OPTIONS = 5,
	SUPPORT_SKIP = 6
};

/* The strategies that each pair of types must have: < <= = >= > */
#define ALL_STRATEGIES \
	((UINT64CONST(1) << BTLessStrategyNumber) | \
	 (UINT64CONST(1) << BTLessEqualStrategyNumber) | \
	 (UINT64CONST(1) << BTEqualStrategyNumber) | \
	 (UINT64CONST(1) << BTGreaterEqualStrategyNumber) | \
	 (UINT64CONST(1) << BTGreaterStrategyNumber))

/* The state of one validation. */
typedef struct Validation
{
	const char *am_name;
	char	   *class_name;
	char	   *family_name;
	Oid			family;
	Oid			input_type;
	bool		valid;
} Validation;

static void load_names(Validation *v, Oid opclassoid);
static void check_function(Validation *v, Form_pg_amproc function);
static bool function_signature_ok(Form_pg_amproc function);
static void check_operator(Validation *v, Form_pg_amop member);
static void check_type_pairs(Validation *v, List *groups);
static void family_fault(Validation *v, const char *fault);
static Oid	family_method(Oid family);

/*
 * The amvalidate callback.  Checks the whole family of the class, since a wrong cross-type operator
 * harms every class of the family.
 */
bool
lsm_am_validate(Oid opclassoid)
{
	Validation	v;
	CatCList   *operators;
	CatCList   *functions;

	load_names(&v, opclassoid);
	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(v.family));
	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(v.family));

	for (int i = 0; i < functions->n_members; i++)
		check_function(&v, (Form_pg_amproc)
					   GETSTRUCT(&functions->members[i]->tuple));
	for (int i = 0; i < operators->n_members; i++)
		check_operator(&v, (Form_pg_amop)
					   GETSTRUCT(&operators->members[i]->tuple));
	check_type_pairs(&v, identify_opfamily_groups(operators, functions));

	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);

	return v.valid;
}

/*
 * The amadjustmembers callback: decides what new members of a family depend on.
 *
 * A class needs the operators and the order function of its own type, so these have a hard
 * dependency on the class.  All other members have a soft dependency on the family: cross-type
 * members, optional support functions, and members of a type that has no class (yet).  Such members
 * can be dropped from the family, and are dropped together with their operator or function.
 */
void
lsm_am_adjust_members(Oid opfamilyoid, Oid opclassoid,
					  List *operators, List *functions)
{
	List	   *members = list_concat_copy(operators, functions);
	ListCell   *lc;

	/* CREATE OPERATOR CLASS calls us before its new row is visible. */
	if (OidIsValid(opclassoid))
		CommandCounterIncrement();

	foreach(lc, members)
	{
		OpFamilyMember *member = (OpFamilyMember *) lfirst(lc);
		Oid			owner = InvalidOid;

		if (member->lefttype == member->righttype &&
			(!member->is_func || member->number == SUPPORT_ORDER))
		{
			if (OidIsValid(opclassoid) &&
				get_opclass_input_type(opclassoid) == member->lefttype)
				owner = opclassoid;
			else
				owner = opclass_for_family_datatype(family_method(opfamilyoid),
													opfamilyoid,
													member->lefttype);
		}

		member->ref_is_hard = OidIsValid(owner);
		member->ref_is_family = !OidIsValid(owner);
		member->refobjid = OidIsValid(owner) ? owner : opfamilyoid;
	}

	list_free(members);
}

static void
load_names(Validation *v, Oid opclassoid)
{
	HeapTuple	tuple;
	Form_pg_opclass class_form;
	Form_pg_opfamily family_form;

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class_form = (Form_pg_opclass) GETSTRUCT(tuple);
	v->class_name = pstrdup(NameStr(class_form->opcname));
	v->family = class_form->opcfamily;
	v->input_type = class_form->opcintype;
	v->am_name = get_am_name(class_form->opcmethod);
	v->valid = true;
	ReleaseSysCache(tuple);

	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(v->family));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator family %u", v->family);
	family_form = (Form_pg_opfamily) GETSTRUCT(tuple);
	v->family_name = pstrdup(NameStr(family_form->opfname));
	ReleaseSysCache(tuple);
}

static void
check_function(Validation *v, Form_pg_amproc function)
{
	if (function->amprocnum < 1 || function->amprocnum > LSM_AM_SUPPORT_PROCS)
		family_fault(v, psprintf("contains function %s with invalid support number %d",
								 format_procedure(function->amproc),
								 function->amprocnum));
	else if (!function_signature_ok(function))
		family_fault(v, psprintf("contains function %s with wrong signature for support number %d",
								 format_procedure(function->amproc),
								 function->amprocnum));
}

static bool
function_signature_ok(Form_pg_amproc function)
{
	Oid			left = function->amproclefttype;
	Oid			right = function->amprocrighttype;

	switch (function->amprocnum)
	{
		case SUPPORT_ORDER:
			return check_amproc_signature(function->amproc, INT4OID, true,
										  2, 2, left, right);
		case SUPPORT_IN_RANGE:
			/* value, base, offset, subtract, less */
			return check_amproc_signature(function->amproc, BOOLOID, true,
										  5, 5, left, left, right,
										  BOOLOID, BOOLOID);
		case SUPPORT_EQUAL_IMAGE:
			return check_amproc_signature(function->amproc, BOOLOID, true,
										  1, 1, OIDOID);
		case SUPPORT_OPTIONS:
			return check_amoptsproc_signature(function->amproc);
		case SUPPORT_SORT:
		case SUPPORT_SKIP:
			return check_amproc_signature(function->amproc, VOIDOID, true,
										  1, 1, INTERNALOID);
		default:
			return false;
	}
}

static void
check_operator(Validation *v, Form_pg_amop member)
{
	if (member->amopstrategy < 1 ||
		member->amopstrategy > BTMaxStrategyNumber)
		family_fault(v, psprintf("contains operator %s with invalid strategy number %d",
								 format_operator(member->amopopr),
								 member->amopstrategy));

	/* lsm supports no ordering operators. */
	if (member->amoppurpose != AMOP_SEARCH ||
		OidIsValid(member->amopsortfamily))
		family_fault(v, psprintf("contains invalid ORDER BY specification for operator %s",
								 format_operator(member->amopopr)));

	if (!check_amop_signature(member->amopopr, BOOLOID,
							  member->amoplefttype, member->amoprighttype))
		family_fault(v, psprintf("contains operator %s with wrong signature",
								 format_operator(member->amopopr)));
}

/*
 * Each pair of types must be complete, and the family must have all pairs of its types.  Scans work
 * even if a pair is missing, but the planner cannot derive clauses from equivalence classes that
 * contain both types.
 */
static void
check_type_pairs(Validation *v, List *groups)
{
	List	   *types = NIL;
	int			npairs = 0;
	bool		found_class = false;
	ListCell   *lc;

	foreach(lc, groups)
	{
		OpFamilyOpFuncGroup *group = (OpFamilyOpFuncGroup *) lfirst(lc);

		/*
		 * The offset of RANGE frames may have a type that the family does not sort, such as
		 * interval for timestamps.  Such a group is not a pair.
		 */
		if (group->operatorset == 0 &&
			group->functionset == (UINT64CONST(1) << SUPPORT_IN_RANGE))
			continue;

		npairs++;
		types = list_append_unique_oid(types, group->lefttype);
		types = list_append_unique_oid(types, group->righttype);
		if (group->lefttype == v->input_type &&
			group->righttype == v->input_type)
			found_class = true;

		if (group->operatorset != ALL_STRATEGIES)
			family_fault(v, psprintf("is missing operator(s) for types %s and %s",
									 format_type_be(group->lefttype),
									 format_type_be(group->righttype)));
		if ((group->functionset & (UINT64CONST(1) << SUPPORT_ORDER)) == 0)
			family_fault(v, psprintf("is missing support function for types %s and %s",
									 format_type_be(group->lefttype),
									 format_type_be(group->righttype)));
	}

	/* The loop has checked the pair of the class's own type, if the pair exists. */
	if (!found_class)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is missing operator(s)",
						v->class_name, v->am_name)));
		v->valid = false;
	}
	if (npairs != list_length(types) * list_length(types))
		family_fault(v, "is missing cross-type operator(s)");
}

static void
family_fault(Validation *v, const char *fault)
{
	ereport(INFO,
			(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			 errmsg("operator family \"%s\" of access method %s %s",
					v->family_name, v->am_name, fault)));
	v->valid = false;
}

static Oid
family_method(Oid family)
{
	HeapTuple	tuple;
	Oid			method;

	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator family %u", family);
	method = ((Form_pg_opfamily) GETSTRUCT(tuple))->opfmethod;
	ReleaseSysCache(tuple);

	return method;
}
