#!/usr/bin/python3
"""Runs the code of docs/frameworks against a server, so that the pages stay true.

    pages.py TREE PG_CONFIG FOLDER

A page is Markdown with comments that a reader does not see:

    <!-- page needs: COMMAND -->   if the command fails, the page is skipped
    <!-- needs: COMMAND -->        the same for the next block of code
    <!-- file: NAME -->            the next block is the file NAME; it replaces an earlier one

A block of the kind "console" is run. A line "$ COMMAND" is a command, which lines "> ..." continue. Its output
follows, in which "..." stands for any text, and a line "..." for any lines. Each page has its own folder, and its own
empty database "shop". Prints TAP.

PG_LSM_TEST_ONLY      only these pages, names separated by blanks
PG_LSM_TEST_PROGRAMS  a folder of programs that come before those of the distribution, to test other versions
"""

import glob
import os
import re
import secrets
import socket
import subprocess
import sys

SETTINGS = """
shared_preload_libraries = 'pg_lsm'
listen_addresses = '127.0.0.1'
port = %d
unix_socket_directories = '%s'
fsync = off
"""
BLOCK = re.compile(r"((?:<!-- [^\n]* -->\n+)*)^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- ([a-z ]+): (.*?) -->")
TIMEOUT_S = 300
MOST_LINES = 40         # of the output of a command that are shown


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server that runs until the block ends. Local connections need no password. JDBC has none, so it needs one."""

    def __init__(self, pg_config, folder):
        self.bindir = subprocess.check_output([pg_config, "--bindir"], text=True).strip()
        self.data = os.path.join(folder, "data")
        self.password = secrets.token_hex(16)
        self.port = free_port()
        self.folder = folder

    def program(self, name, *arguments):
        subprocess.run([os.path.join(self.bindir, name), *arguments], check=True, stdout=subprocess.DEVNULL,
                       env=self.environment())

    def environment(self):
        # The packages of the distribution belong to its own Python and Ruby.
        path = [self.bindir, os.environ.get("PG_LSM_TEST_PROGRAMS"), "/usr/bin", "/bin"]
        return {"PATH": ":".join(filter(None, path)), "HOME": self.folder, "LANG": "C.UTF-8", "TZ": "UTC",
                "PGHOST": self.folder, "PGPORT": str(self.port), "PGUSER": "postgres", "PGDATABASE": "shop",
                "FLYWAY_URL": "jdbc:postgresql://127.0.0.1:%d/shop" % self.port, "FLYWAY_USER": "postgres",
                "FLYWAY_PASSWORD": self.password, "PYTHONDONTWRITEBYTECODE": "1"}

    def __enter__(self):
        password_file = os.path.join(self.folder, "password")
        with open(password_file, "w") as file:
            file.write(self.password)
        self.program("initdb", "-D", self.data, "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256",
                     "--pwfile", password_file, "--no-sync", "--encoding=UTF8", "--locale=C")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write(SETTINGS % (self.port, self.folder))
        self.program("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "server.log"), "-w", "start")
        return self

    def __exit__(self, *_):
        self.program("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")


def matches(output, expected):
    """Is this the expected output? Blanks at the ends of lines do not count."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in output.rstrip().splitlines())) is not None


def commands_of(text):
    """Splits a console block into commands, each with the lines of its output."""
    commands = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif line.startswith("> "):
            commands[-1] = (commands[-1][0] + "\n" + line[2:], [])
        else:
            commands[-1][1].append(line)
    return commands


class Page:
    def __init__(self, path, server):
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.server = server
        self.folder = os.path.join(server.folder, self.name)
        self.failed = False
        with open(path) as file:
            self.text = file.read()

    def shell(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.server.environment(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIMEOUT_S)
        return done.returncode, done.stdout

    def has(self, comments, kind):
        """Do the commands succeed that the comments of this kind name?"""
        return all(self.shell(command)[0] == 0 for key, command in COMMENT.findall(comments) if key == kind)

    def run(self):
        os.makedirs(self.folder)
        if not self.has(self.text, "page needs"):
            print("ok - %s # SKIP its packages are not installed" % self.name, flush=True)
            return
        self.server.program("createdb", "shop")
        for comments, kind, text in BLOCK.findall(self.text):
            if not self.has(comments, "needs"):
                print("ok - %s: a block that needs something else # SKIP" % self.name, flush=True)
            elif kind == "console":
                self.run_console(text)
            else:
                self.write_files(comments, text)
        self.run_console("$ psql -d shop -Atc 'SELECT * FROM lsm_check_all(NULL, true)'")
        self.server.program("dropdb", "--force", "shop")

    def write_files(self, comments, text):
        for name in [value for key, value in COMMENT.findall(comments) if key == "file"]:
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)

    def run_console(self, text):
        for command, expected in commands_of(text):
            status, output = self.shell(command)
            good = status == 0 and matches(output, expected)
            print("%s - %s: %s" % ("ok" if good else "not ok", self.name, command.splitlines()[0]), flush=True)
            if not good:
                self.failed = True
                print("# status %d, and instead of what the page says:" % status)
                print("".join("#     %s\n" % line for line in output.splitlines()[-MOST_LINES:]), end="", flush=True)


def main():
    tree, pg_config, folder = sys.argv[1:]
    only = os.environ.get("PG_LSM_TEST_ONLY", "").split()
    failed = False
    with Server(pg_config, folder) as server:
        for path in sorted(glob.glob(os.path.join(tree, "docs", "frameworks", "*.md"))):
            page = Page(path, server)
            if not only or page.name in only:
                page.run()
                failed |= page.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
