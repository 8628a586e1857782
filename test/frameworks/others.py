#!/usr/bin/python3
"""Runs the tests of Django and SQLAlchemy twice, with B-trees and with lsm indexes, and compares the failures.

    others.py PG_CONFIG FOLDER

PG_LSM_OTHERS is a folder with the sources of both, and with the Python packages that they need:

    python3 -m pip download --no-deps --no-binary :all: -d DIR Django==6.0.10 SQLAlchemy==2.0.58
    python3 -m pip install --target DIR/python asgiref sqlparse psycopg2-binary pytest typing_extensions

Both servers have pg_lsm in each database. Only pg_lsm.default_method differs. The limits are tiny, so that small tables
have merges. A test that fails only with lsm is a failure. Both frameworks hide the default method when they read the
definitions of indexes, and some tests compare these. So the runs with lsm make lsm that default. Prints TAP.

PG_LSM_TEST_ONLY  only these groups of GROUPS, names separated by blanks
"""

import glob
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

from pages import Server

SETTINGS = """
jit = off
max_prepared_transactions = 20
max_locks_per_transaction = 256
pg_lsm.default_method = %s
pg_lsm.debug_buffer_entries = 5
pg_lsm.debug_page_entries = 7
pg_lsm.debug_merge_fanout = 3
pg_lsm.debug_segment_size = 4
pg_lsm.debug_batch_min_entries = 12
pg_lsm.debug_batch_entries = 100
"""
DJANGO_SETTINGS = """
SECRET_KEY = "test"
DATABASES = {name: {"ENGINE": "%s", "NAME": name} for name in ("default", "other")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""
# The engine of docs/frameworks/django.md, whose introspection takes lsm as the method of ordinary indexes. Checks all
# indexes before the database of the tests is dropped.
DJANGO_BACKEND = """
from django.db.backends.postgresql import base, creation, introspection


class DatabaseCreation(creation.DatabaseCreation):
    def _destroy_test_db(self, name, verbosity):
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT * FROM lsm.lsm_check_all(NULL, true)")
            print("indexes with damage:", cursor.fetchall())
        self.connection.close()
        super()._destroy_test_db(name, verbosity)


class DatabaseIntrospection(introspection.DatabaseIntrospection):
    index_default_access_method = "lsm"


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
    introspection_class = DatabaseIntrospection
"""
# SQLAlchemy reflects the method of an index unless it is btree. This plugin of pytest hides lsm instead.
SQLALCHEMY_PLUGIN = """
def pytest_sessionstart(session):
    from sqlalchemy.dialects.postgresql.base import PGDialect
    reflect = PGDialect.get_multi_indexes

    def get_multi_indexes(*arguments, **options):
        tables = list(reflect(*arguments, **options))
        for found in [index.get("dialect_options", {}) for _, indexes in tables for index in indexes]:
            if found.get("postgresql_using") == "lsm":
                del found["postgresql_using"]
            if found.get("postgresql_with", {}).pop("lsm", None) and not found["postgresql_with"]:
                del found["postgresql_with"]
        return tables

    PGDialect.get_multi_indexes = get_multi_indexes
"""
# The parts of the two suites that use the database most.
GROUPS = {
    "django-queries": "queries expressions expressions_case expressions_window annotations aggregation "
                      "aggregation_regress lookup ordering distinct_on_fields prefetch_related select_related "
                      "filtered_relation null_queries generic_relations composite_pk",
    "django-writes": "bulk_create get_or_create delete delete_regress update update_only_fields transactions "
                     "transaction_hooks force_insert_update basic fixtures fixtures_regress select_for_update "
                     "one_to_one many_to_many many_to_one m2m_through many_to_one_null save_delete_hooks "
                     "foreign_object custom_pk model_inheritance serializers",
    "sqlalchemy-dialect": "test/dialect/test_suite.py test/dialect/postgresql/test_on_conflict.py "
                          "test/dialect/postgresql/test_query.py test/dialect/postgresql/test_reflection.py "
                          "test/engine/test_reflection.py test/engine/test_transaction.py",
    "sqlalchemy-writes": "test/sql/test_constraints.py test/sql/test_insert_exec.py test/sql/test_returning.py "
                         "test/sql/test_update.py test/sql/test_delete.py test/sql/test_query.py test/orm/dml "
                         "test/orm/test_unitofwork.py test/orm/test_unitofworkv2.py test/orm/test_naturalpks.py "
                         "test/orm/test_versioning.py test/orm/test_transaction.py "
                         "test/orm/inheritance/test_basic.py",
    "django-applications": "admin_views admin_changelist admin_filters auth_tests contenttypes_tests "
                           "generic_views generic_inline_admin sessions_tests sites_tests model_forms "
                           "model_formsets modeladmin syndication_tests db_functions model_fields cache raw_query "
                           "reserved_names or_lookups known_related_objects nested_foreign_keys proxy_models "
                           "select_related_onetoone timezones datetimes dates async model_inheritance_regress "
                           "managers_regress multiple_database properties extra_regress field_deconstruction "
                           "force_insert_update m2m_regress m2m_signals model_formsets_regress signals "
                           "swappable_models view_tests test_client test_runner test_utils",
    "django-schema": "schema backends constraints indexes introspection inspectdb postgres_tests.test_indexes "
                     "postgres_tests.test_constraints migrations.test_operations unmanaged_models db_typecasts "
                     "db_utils",
    "django-migrations": "migrations migrate_signals migration_test_data_persistence postgres_tests",
}
TIMEOUT_S = 7200


class Method(Server):
    """A server whose keys and indexes have this method by default."""

    def __init__(self, pg_config, folder, method):
        super().__init__(pg_config, os.path.join(folder, method))
        os.makedirs(self.folder)
        self.method = method

    def __enter__(self):
        super().__enter__()
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write(SETTINGS % self.method)
        self.program("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "server.log"), "-w", "restart")
        self.psql("template1", "CREATE SCHEMA lsm; CREATE EXTENSION pg_lsm SCHEMA lsm")
        return self

    def psql(self, database, commands):
        self.program("psql", "-q", "-d", database, "-v", "ON_ERROR_STOP=1", "-c", commands)

    def has_crashed(self):
        with open(os.path.join(self.folder, "server.log")) as file:
            crashes = [line for line in file if re.search("PANIC:|TRAP:|terminated by signal", line)]
        print("".join("# " + line for line in crashes) + "%s - no crash" % ("not ok" if crashes else "ok"), flush=True)
        return bool(crashes)

    def python(self, folder, path, arguments, log):
        """Runs a program of Python. Its output goes to a file."""
        environment = dict(self.environment(), PYTHONPATH=":".join(path), DJANGO_SETTINGS_MODULE="lsm_settings")
        with open(log, "w") as file:
            subprocess.run([sys.executable, "-W", "ignore", *arguments], cwd=folder, env=environment, stdout=file,
                           stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)


def run_django(server, source, packages, group):
    """Returns the number of tests, and those that failed."""
    log = os.path.join(server.folder, group + ".log")
    tests = os.path.join(source, "tests")
    engine = {"btree": "django.db.backends.postgresql", "lsm": "lsm_backend"}[server.method]
    os.makedirs(os.path.join(tests, "lsm_backend"), exist_ok=True)
    for name, text in (("lsm_settings.py", DJANGO_SETTINGS % engine), ("lsm_backend/base.py", DJANGO_BACKEND)):
        with open(os.path.join(tests, name), "w") as file:
            file.write(text)
    server.python(tests, [source, tests, packages],
                  ["runtests.py", "--noinput", "--parallel=1", *GROUPS[group].split()], log)
    with open(log) as file:
        text = file.read()
    ran = re.search(r"^Ran (\d+) tests? in", text, re.MULTILINE)
    damaged = re.findall(r"^indexes with damage: \[.+\]$", text, re.MULTILINE)
    failed = re.findall(r"^(?:FAIL|ERROR): \S+ \((\S+?)\)", text, re.MULTILINE)
    return int(ran[1]) if ran else 0, set(failed + damaged)


def run_sqlalchemy(server, source, packages, group):
    """The same."""
    report = os.path.join(server.folder, group + ".xml")
    server.program("dropdb", "--if-exists", "--force", "sqlalchemy")
    server.program("createdb", "sqlalchemy")
    server.psql("sqlalchemy", "CREATE SCHEMA test_schema; CREATE SCHEMA test_schema_2; CREATE EXTENSION hstore; "
                "CREATE EXTENSION citext; "
                "ALTER DATABASE sqlalchemy SET default_text_search_config = 'pg_catalog.english'")
    with open(os.path.join(server.folder, "lsm_reflection.py"), "w") as file:
        file.write(SQLALCHEMY_PLUGIN)
    url = "postgresql+psycopg2://postgres@/sqlalchemy?host=%s&port=%d" % (server.folder, server.port)
    server.python(source, [server.folder, os.path.join(source, "lib"), packages],
                  ["-m", "pytest", "-q", "-p", "lsm_reflection", "-p", "no:cacheprovider", "--maxfail=100000",
                   "--backend-only", "--dburi", url, "--junitxml", report, *GROUPS[group].split()],
                  os.path.join(server.folder, group + ".log"))
    if not os.path.exists(report):
        return 0, set()
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    return (sum(case.find("skipped") is None for case in cases),
            {"%s.%s" % (case.get("classname"), case.get("name")) for case in cases
             if case.find("failure") is not None or case.find("error") is not None})


def compare(group, results):
    """Prints the result of a group. Returns whether it is as expected."""
    (count, expected), (lsm_count, found) = results["btree"], results["lsm"]
    print("# %s: %d tests, %d failed with B-trees; %d, %d with lsm" %
          (group, count, len(expected), lsm_count, len(found)), flush=True)
    for test in sorted(found - expected):
        print("# only with lsm: %s" % test)
    for test in sorted(expected - found):
        print("# only with B-trees: %s" % test)
    good = count > 0 and count == lsm_count and found <= expected
    print("%s - %s" % ("ok" if good else "not ok", group), flush=True)
    return good


def unpack(sources, name, folder):
    for archive in glob.glob(os.path.join(sources, name + "-*.tar.gz")):
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        return os.path.join(folder, os.path.basename(archive)[:-len(".tar.gz")])
    return None


def main():
    pg_config, folder = sys.argv[1:]
    sources = os.environ.get("PG_LSM_OTHERS", "")
    runners = {"django": run_django, "sqlalchemy": run_sqlalchemy}
    unpacked = {name: unpack(sources, name, folder) for name in runners}
    if None in unpacked.values():
        print("1..0 # SKIP PG_LSM_OTHERS names no folder with the sources of Django and SQLAlchemy")
        return 0
    only = os.environ.get("PG_LSM_TEST_ONLY", "").split()
    failed = False
    with Method(pg_config, folder, "btree") as btree, Method(pg_config, folder, "lsm") as lsm:
        for group in [group for group in GROUPS if not only or group in only]:
            name = group.split("-")[0]
            results = {server.method: runners[name](server, unpacked[name], os.path.join(sources, "python"), group)
                       for server in (btree, lsm)}
            failed |= not compare(group, results)
        failed |= lsm.has_crashed()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
