#!/usr/bin/env python3
"""Checks that all places that name the version of pg_lsm agree, and that META.json is valid.

    tools/check_versions.py

The version is the default_version of pg_lsm.control. PLACES lists the others. For META.json, the rules are those of the
PGXN Meta Spec 1.0: required keys, their types, and no keys beyond those of the spec and x_ ones.

Prints one finding a line and ends with "version: V, N findings". The exit status is 1 if there are any.
"""

import json
import pathlib
import re
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
NEEDED = r"needed CONSTANT text := '(.*)'"

# File, and the expression that finds the version in it. {V} and {P} stand for the version and the one before.
PLACES = [
    ("src/base/limits.h", r'#define LSM_VERSION\s+"(.*)"'),
    ("sql/pg_lsm--{V}.sql", NEEDED),
    ("sql/pg_lsm--{P}--{V}.sql", NEEDED),
    ("Makefile", r"^DATA = sql/pg_lsm--([\d.]+)\.sql"),
    ("Makefile", r"^DATA = .* sql/pg_lsm--{P}--([\d.]+)\.sql"),
    ("tools/make_counters.py", r"pg_lsm--([\d.]+)\.sql"),
    ("META.json", r'^  "version": "(.*)"'),
    ("META.json", r'^      "version": "(.*)"'),
    ("META.json", r'"file": "sql/pg_lsm--(.*)\.sql"'),
    ("CHANGELOG.md", r"\A# .*\n\n## (\S+)"),
    ("debian/changelog", r"\Apg-lsm \((.*)-\d+\)"),
    ("packaging/rpm/pg_lsm.spec", r"^Version:\s*(\S+)"),
]

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[A-Za-z][A-Za-z0-9-]*)?\Z")
PHASES = {"configure", "build", "runtime", "test", "develop"}
RELATIONS = {"requires", "recommends", "suggests", "conflicts"}
LICENSES = {"agpl_3", "apache_1_1", "apache_2_0", "artistic_1", "artistic_2", "bsd", "freebsd", "gfdl_1_2", "gfdl_1_3", "gpl_1",
            "gpl_2", "gpl_3", "lgpl_2_1", "lgpl_3_0", "mit", "mozilla_1_0", "mozilla_1_1", "openssl", "perl_5", "postgresql",
            "qpl_1_0", "ssleay", "sun", "zlib", "open_source", "restricted", "unrestricted", "unknown"}


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


def is_term(value):
    return is_text(value) and len(value) > 1 and not re.search(r"[\s/\\\x00-\x1f\x7f]", value)


def is_tag(value):
    return is_text(value) and len(value) < 256 and not re.search(r"[/\\\x00-\x1f\x7f]", value)


def is_version(value):
    return isinstance(value, str) and VERSION.match(value) is not None


def is_range(value):
    """A version, 0 for any, or conditions: ">= 1.2.0, < 2.0.0"."""
    return value == 0 or is_text(value) and all(
        re.sub(r"^(<=|>=|==|!=|<|>)\s*", "", part.strip()) == "0" or is_version(re.sub(r"^(<=|>=|==|!=|<|>)\s*", "", part.strip()))
        for part in value.split(","))


def is_list(of):
    return lambda value: isinstance(value, list) and value != [] and all(map(of, value))


def is_one_or_list(of):
    return lambda value: of(value) or is_list(of)(value)


def is_license(value):
    if isinstance(value, dict):
        return value != {} and all(is_text(name) and is_text(url) for name, url in value.items())
    return is_one_or_list(lambda one: one in LICENSES)(value)


def is_map(required, optional, custom=True):
    """A map with these keys and checks."""
    def check(value):
        known = {**required, **optional}
        return (isinstance(value, dict) and all(key in value for key in required)
                and all(known[key](part) if key in known else custom and key[:2] in ("x_", "X_") for key, part in value.items()))
    return check


def is_map_of(of, keys=is_text):
    return lambda value: isinstance(value, dict) and value != {} and all(
        key[:2] in ("x_", "X_") or keys(key) and of(part) for key, part in value.items())


REQUIRED = {
    "name": is_term,
    "version": is_version,
    "abstract": is_text,
    "maintainer": is_one_or_list(is_text),
    "license": is_license,
    "provides": is_map_of(is_map({"file": is_text, "version": is_version}, {"abstract": is_text, "docfile": is_text}), is_term),
    "meta-spec": is_map({"version": is_version}, {"url": is_text}),
}
OPTIONAL = {
    "description": is_text,
    "generated_by": is_text,
    "release_status": lambda value: value in ("stable", "testing", "unstable"),
    "tags": is_list(is_tag),
    "no_index": is_map({}, {"file": is_one_or_list(is_text), "directory": is_one_or_list(is_text)}),
    "prereqs": is_map_of(is_map_of(is_map_of(is_range), RELATIONS.__contains__), PHASES.__contains__),
    "resources": is_map({}, {
        "homepage": is_text,
        "bugtracker": is_map({}, {"web": is_text, "mailto": is_text}),
        "repository": is_map({}, {"url": is_text, "web": is_text, "type": is_text})}),
}


def check_meta():
    meta = json.loads((TREE / "META.json").read_text())
    for key in REQUIRED:
        if key not in meta:
            yield f"META.json: \"{key}\" is missing"
    for key, value in meta.items():
        check = REQUIRED.get(key) or OPTIONAL.get(key)
        if check is None and key[:2] not in ("x_", "X_"):
            yield f"META.json: the spec has no key \"{key}\""
        elif check is not None and not check(value):
            yield f"META.json: \"{key}\" violates the spec"
    for extension in meta.get("provides", {}).values():
        for key in ("file", "docfile"):
            if key in extension and not (TREE / extension[key]).exists():
                yield f"META.json: there is no {extension[key]}"


def check_places(version, before):
    for name, expression in PLACES:
        name = name.format(V=version, P=before)
        path = TREE / name
        found = re.search(expression.replace("{P}", re.escape(before)), path.read_text(), re.M) if path.exists() else None
        if found is None:
            yield f"{name}: has no version at {expression}"
        elif found.group(1) != version:
            yield f"{name}: has version {found.group(1)}, but pg_lsm.control has {version}"


def main():
    version = re.search(r"^default_version = '(.*)'", (TREE / "pg_lsm.control").read_text(), re.M).group(1)
    # The version before is the next section of the changelog.
    before = re.findall(r"^## (\S+)", (TREE / "CHANGELOG.md").read_text(), re.M)[1]
    findings = [*check_places(version, before), *check_meta()]
    for finding in findings:
        print(finding)
    print(f"version: {version}, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
