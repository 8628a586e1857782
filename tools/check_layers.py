#!/usr/bin/env python3
"""Checks the rules for the files under src/ (see "The rooms" in src/README.md).

    tools/check_layers.py [TREE]

- A file includes only headers of its own directory and of lower layers. Directories of one layer do not include each
  other.
- No two files of a directory depend on each other, directly or through others. A .c file and the header of the same name
  count as one file. A file depends on the headers it includes, and on the files that define the functions it uses.
- Every file name is unique in the tree. The name of a static function of a .c file is unique, too, and has two words or
  more, so that grep finds it.
- Only src/base/compat.h tests PG_VERSION_NUM, and only src/storage/emit.c emits WAL.
- Nothing in a critical section can fail, nor in what it calls: no elog, no ereport, no allocation, no lock, no check
  that reports damage.  The same holds between LSM_CANNOT_FAIL_BEGIN and LSM_CANNOT_FAIL_END, after a commit record.
- No file has more than 700 lines, and no function more than 100.

Prints one finding a line and ends with "layers: N files, M findings". The exit status is 1 if there are any.
"""

import collections
import pathlib
import re
import sys

MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 100

# From the bottom up. "." is src/ itself.
LAYERS = [
    ["base"],
    ["format"],
    ["key"],
    ["storage"],
    ["index", "sort"],
    ["segment"],
    ["manifest"],
    ["read"],
    ["compact"],
    ["schedule"],
    ["ingest"],
    ["scankey"],
    ["scan"],
    ["unique", "vacuum", "planner"],
    ["build"],
    ["am", "inspect", "convert", "recovery", "exec"],
    ["hooks"],
    ["."],
]
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}

# Directories that may include less than their layer allows.
ONLY = {"recovery": {"base", "format"}, "exec": {"base"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]*)"', re.M)
CRITICAL = re.compile(r"START_CRIT_SECTION\(\);(.*?)END_CRIT_SECTION\(\);"
                      r"|LSM_CANNOT_FAIL_BEGIN\(\);(.*?)LSM_CANNOT_FAIL_END\(\);", re.S)
CAN_FAIL = re.compile(r"\b(elog|ereport|palloc\w*|repalloc|pstrdup|psprintf|MemoryContextAlloc\w*|AllocSetContextCreate\w*"
                      r"|ReadBuffer\w*|LockBuffer|LWLockAcquire|Lock(?:Tuple|Relation)\w*|XLogEnsureRecordSpace"
                      r"|CHECK_FOR_INTERRUPTS)\(")
BODY = re.compile(r"^(\w+)\([^;{]*?\)\n\{\n(.*?)^\}", re.M | re.S)
CALL = re.compile(r"\b(\w+)\(")
DEFINITION = re.compile(r"^(\w+)\(", re.M)
STATIC = re.compile(r"^static\b[^;{}=]*\n(\w+)\([^;{}]*\)\n\{", re.M)


def room(path):
    return str(path.parent)


def may_include(source, target):
    if source == target:
        return True
    if source in ONLY:
        return target in ONLY[source]
    return LAYER[target] < LAYER[source]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", " ", text, flags=re.S)


def circles(edges):
    """The strongly connected components with more than one node (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def function_lengths(text):
    """Yields the name and the length of each function, from its name's line to its closing brace."""
    name, start = None, 0
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"(\w+)\(", line)
        if match:
            name, start = match.group(1), number
        elif line == "}" and name is not None:
            yield name, number - start + 1
            name = None


class Tree:
    def __init__(self, top):
        self.top = top
        self.files = {}
        for path in sorted(top.rglob("*.[ch]")):
            self.files[path.relative_to(top)] = path.read_text()
        self.findings = []

    def finding(self, text):
        # Two checks may find the same.
        if text not in self.findings:
            self.findings.append(text)

    def check_rooms(self):
        for path in list(self.files):
            if room(path) not in LAYER:
                self.finding(f"src/{path}: directory {room(path)}/ has no layer")
                del self.files[path]

    def headers(self, path):
        """Our headers that a file includes."""
        for match in INCLUDE.finditer(self.files[path]):
            header = pathlib.Path(match.group(1))
            if header in self.files:
                yield header
            elif ".." in header.parts or (len(header.parts) == 1 and path.parent / header in self.files):
                self.finding(f'src/{path}: include "{header}" must name the header from src/ on')

    def check_includes(self):
        for path in self.files:
            for header in self.headers(path):
                if not may_include(room(path), room(header)):
                    self.finding(f"src/{path}: {room(path)}/ must not include {room(header)}/ ({header})")

    def bodies(self):
        """All functions of all files by name, each with its file: static ones may share a name."""
        found = collections.defaultdict(list)
        for path, text in self.files.items():
            for name, body in BODY.findall(without_comments(text)):
                found[name].append((path, body))
        return found

    def check_critical_sections(self):
        """Follows calls by name.  Calls through pointers and core's functions are not followed."""
        bodies = self.bodies()
        for path, text in self.files.items():
            todo = [("", path, one or other) for one, other in CRITICAL.findall(without_comments(text))]
            seen = set()
            while todo:
                through, where, body = todo.pop()
                for match in CAN_FAIL.finditer(body):
                    self.finding(f"src/{path}: {match.group(1)}() in a critical section{through}")
                for name in set(CALL.findall(body)) - seen:
                    seen.add(name)
                    here = [found for found in bodies[name] if found[0] == where]
                    todo += [(f"{through}, in {name}()", *found) for found in here or bodies[name]]

    def check_circles(self):
        defined = {}
        for path, text in self.files.items():
            if path.suffix == ".c":
                for name in DEFINITION.findall(text):
                    if name.startswith("lsm_"):
                        defined[name] = path.with_suffix("")
        edges = collections.defaultdict(set)
        for path, text in self.files.items():
            node = path.with_suffix("")
            targets = {header.with_suffix("") for header in self.headers(path)}
            if path.suffix == ".c":
                targets |= {defined[word] for word in re.findall(r"\blsm_\w+", without_comments(text)) if word in defined}
            edges[node] |= {target for target in targets if target != node and room(target) == room(node)}
            for target in targets:
                edges.setdefault(target, set())
        for circle in circles(edges):
            names = ", ".join(path.name for path in circle)
            self.finding(f"src/{room(circle[0])}/: these files depend on each other: {names}")

    def check_sizes(self):
        for path, text in self.files.items():
            lines = text.count("\n")
            if lines > MAX_FILE_LINES:
                self.finding(f"src/{path}: {lines} lines, at most {MAX_FILE_LINES} are allowed")
            for name, length in function_lengths(text):
                if length > MAX_FUNCTION_LINES:
                    self.finding(f"src/{path}: {name} has {length} lines, at most {MAX_FUNCTION_LINES} are allowed")

    def check_owners(self):
        for path, text in self.files.items():
            if str(path) != "base/compat.h" and "PG_VERSION_NUM" in text:
                self.finding(f"src/{path}: PG_VERSION_NUM belongs in base/compat.h")
            if str(path) != "storage/emit.c" and '"access/xloginsert.h"' in text:
                self.finding(f"src/{path}: WAL records belong in storage/emit.c")

    def check_names(self):
        names = collections.Counter(path.name for path in self.files)
        for name, count in sorted(names.items()):
            if count > 1:
                self.finding(f"src/: more than one file is called {name}")

    def check_static_names(self):
        first = {}
        for path, text in self.files.items():
            if path.suffix != ".c":
                continue
            # A file may define a function twice, under #if.
            for name in dict.fromkeys(STATIC.findall(text)):
                if first.setdefault(name, path) != path:
                    self.finding(f"src/{path}: static function {name} is also defined in src/{first[name]}")
                if re.fullmatch("[a-z0-9]+", name):
                    self.finding(f"src/{path}: the name of static function {name} is a single word")

    def check(self):
        self.check_rooms()
        self.check_includes()
        self.check_critical_sections()
        self.check_circles()
        self.check_sizes()
        self.check_owners()
        self.check_names()
        self.check_static_names()
        if not self.files:
            self.finding("src/: no source files")


def main():
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    tree = Tree(top / "src")
    tree.check()
    for finding in tree.findings:
        print(finding)
    print(f"layers: {len(tree.files)} files, {len(tree.findings)} findings")
    sys.exit(1 if tree.findings else 0)


main()
