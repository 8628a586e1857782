#!/usr/bin/env python3
"""Tests tools/check_layers.py: a tree that breaks one rule gives exactly the finding of this rule.

    test/layers/broken_trees.py

Each case changes a few files of a small, sound tree. Prints "ok - NAME" or "not ok - NAME" for each case. The exit
status is 1 if a case failed.
"""

import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"


def function(name, body="", kind="void"):
    return f"{kind}\n{name}(void)\n{{\n{body}}}\n"


SOUND = {
    "base/compat.h": "#if PG_VERSION_NUM >= 180000\n#endif\n",
    "key/bound.h": '#include "base/compat.h"\n',
    "key/bound.c": '#include "key/bound.h"\n' + function("compare_ends", kind="static int") +
                   function("lsm_bound_compare", "\tcompare_ends();\n"),
    "scan/scan.c": '#include "key/bound.h"\n' + function("find_match", "\tlsm_bound_compare();\n", "static void"),
}

# What the case proves, the files that differ from SOUND's, and the findings.
CASES = [
    ("a sound tree", {}, []),
    ("an include from a higher layer",
     {"key/cursor.c": '#include "scan/scan.h"\n', "scan/scan.h": ""},
     ["src/key/cursor.c: key/ must not include scan/ (scan/scan.h)"]),
    ("an include from another directory of the same layer",
     {"index/index.h": '#include "sort/sorter.h"\n', "sort/sorter.h": ""},
     ["src/index/index.h: index/ must not include sort/ (sort/sorter.h)"]),
    ("an include that a directory's own rule forbids",
     {"recovery/redo.c": '#include "key/bound.h"\n'},
     ["src/recovery/redo.c: recovery/ must not include key/ (key/bound.h)"]),
    ("an include without its directory",
     {"key/bound.c": '#include "bound.h"\n'},
     ['src/key/bound.c: include "bound.h" must name the header from src/ on']),
    ("a directory that has no layer",
     {"misc/other.c": ""},
     ["src/misc/other.c: directory misc/ has no layer"]),
    ("headers that include each other",
     {"key/bound.h": '#include "key/cursor.h"\n', "key/cursor.h": '#include "key/bound.h"\n'},
     ["src/key/: these files depend on each other: bound, cursor"]),
    ("a circle of includes and calls through three files",
     {"key/bound.h": "", "key/bound.c": function("lsm_bound_compare", "\tlsm_cursor_next();\n"),
      "key/cursor.c": '#include "key/merge.h"\n' + function("lsm_cursor_next"),
      "key/merge.h": '#include "key/bound.h"\n'},
     ["src/key/: these files depend on each other: bound, cursor, merge"]),
    ("a file name that occurs twice",
     {"scan/bound.h": ""},
     ["src/: more than one file is called bound.h"]),
    ("a file of 700 lines", {"key/long.c": 700 * "\n"}, []),
    ("a file of 701 lines",
     {"key/long.c": 701 * "\n"},
     ["src/key/long.c: 701 lines, at most 700 are allowed"]),
    ("a function of 100 lines", {"key/long.c": function("lsm_long", 97 * "\n")}, []),
    ("a function of 101 lines",
     {"key/long.c": function("lsm_long", 98 * "\n")},
     ["src/key/long.c: lsm_long has 101 lines, at most 100 are allowed"]),
    ("a static function that two files define",
     {"scan/scan.c": function("compare_ends", kind="static inline bool")},
     ["src/scan/scan.c: static function compare_ends is also defined in src/key/bound.c"]),
    ("a static function that one file defines twice under #if",
     {"scan/scan.c": "#ifdef A\n" + function("find_match", kind="static void") + "#else\n" +
                     function("find_match", kind="static void") + "#endif\n"},
     []),
    ("a name of a static function that is a variable in another file",
     {"scan/scan.c": "static int compare_ends = 1;\n" + function("find_match", kind="static void")},
     []),
    ("a static function whose name is a single word",
     {"scan/scan.c": "static void next(int);\n" + function("next", kind="static void")},
     ["src/scan/scan.c: the name of static function next is a single word"]),
    ("a version test outside of compat.h",
     {"key/bound.h": "#if PG_VERSION_NUM >= 180000\n#endif\n"},
     ["src/key/bound.h: PG_VERSION_NUM belongs in base/compat.h"]),
    ("WAL records outside of emit.c",
     {"scan/scan.c": '#include "access/xloginsert.h"\n'},
     ["src/scan/scan.c: WAL records belong in storage/emit.c"]),
    ("an allocation that a critical section reaches through a function",
     {"key/bound.c": function("lsm_bound_compare", "\tpalloc(1);\n"),
      "scan/scan.c": function("find_match", "\tSTART_CRIT_SECTION();\n\tlsm_bound_compare();\n\tEND_CRIT_SECTION();\n")},
     ["src/scan/scan.c: palloc() in a critical section, in lsm_bound_compare()"]),
    ("an error after a commit record",
     {"scan/scan.c": function("find_match", "\tLSM_CANNOT_FAIL_BEGIN();\n\telog(ERROR);\n\tLSM_CANNOT_FAIL_END();\n")},
     ["src/scan/scan.c: elog() in a critical section"]),
    ("a tree without files", dict.fromkeys(SOUND), ["src/: no source files"]),
]


def findings(files):
    """Runs the script on a tree.  Returns its findings, its last line and its exit status."""
    with tempfile.TemporaryDirectory() as tree:
        for path, text in files.items():
            if text is not None:
                file = pathlib.Path(tree, "src", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        result = subprocess.run([sys.executable, CHECK, tree], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False)
    lines = result.stdout.splitlines() or [""]
    return lines[:-1], lines[-1], result.returncode


def main():
    failed = False
    for name, changes, expected in CASES:
        found, last, status = findings({**SOUND, **changes})
        right = found == expected and last.endswith(f" files, {len(expected)} findings") and status == bool(expected)
        print(f"{'ok' if right else 'not ok'} - check_layers.py: {name}")
        if not right:
            print("\n".join(f"# expected: {line}" for line in expected))
            print("\n".join(f"# got: {line}" for line in [*found, last, f"exit status {status}"]))
            failed = True
    sys.exit(failed)


main()
