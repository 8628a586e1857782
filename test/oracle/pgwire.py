"""A small PostgreSQL client: the simple query protocol over a Unix socket.

The oracle runs hundreds of thousands of short statements.  A psql process for
each would take most of the time, and a driver would be one more thing to
install; what we need of the protocol is a page of code.
"""

import os
import select
import socket
import struct


class PgError(Exception):
    """An error that the server reported; the connection remains usable."""

    def __init__(self, fields, sql):
        self.sqlstate = fields.get("C", "")
        self.message = fields.get("M", "")
        self.detail = fields.get("D", "")
        self.sql = sql
        text = self.message
        if self.detail:
            text += f" ({self.detail})"
        super().__init__(f"{self.sqlstate} {text}")


class ConnectionLost(Exception):
    """The server closed the connection or rejected it."""


class Result:
    """Rows as tuples of str or None, and the command tag."""

    __slots__ = ("rows", "tag")

    def __init__(self):
        self.rows = []
        self.tag = ""

    def scalar(self):
        return self.rows[0][0]

    def count(self):
        """The number of rows in the command tag."""
        return int(self.tag.rsplit(" ", 1)[-1])


# How many times as long the server may take, when it runs under a checker.
SLOWNESS = int(os.environ.get("PG_LSM_SLOWNESS", "1"))


class Connection:
    """One session.  `log` is called with each statement before it is sent."""

    def __init__(self, directory, user="postgres", dbname="postgres",
                 port=5432, log=None, timeout=120):
        self.log = log
        self.status = "I"       # I idle, T in a transaction, E in a failed one
        self.pid = None
        self._started = None
        self._buffer = bytearray()
        self._pos = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout * SLOWNESS)
        try:
            self._socket.connect(f"{directory}/.s.PGSQL.{port}")
            body = struct.pack("!i", 196608)
            for word in ("user", user, "database", dbname,
                         "client_encoding", "UTF8",
                         "application_name", "oracle", ""):
                body += word.encode() + b"\0"
            self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
            self._collect("(connect)")
        except OSError as error:
            self._socket.close()
            raise ConnectionLost(str(error)) from error

    def query(self, sql):
        """Run a string of statements; return the result of the last one."""
        if self.log:
            self.log(sql)
        self._send(b"Q", sql.encode() + b"\0")
        return self._collect(sql)

    def start(self, sql):
        """Send a statement; finish() or busy() must follow."""
        if self.log:
            self.log(sql)
        self._send(b"Q", sql.encode() + b"\0")
        self._started = sql

    def busy(self, seconds=0):
        """Has the started statement not answered yet?"""
        ready = select.select([self._socket], [], [], seconds)[0]
        return not ready

    def finish(self):
        """Wait for the started statement."""
        sql, self._started = self._started, None
        return self._collect(sql)

    def copy_in(self, sql, lines):
        """COPY ... FROM STDIN with these lines (without line ends)."""
        data = "".join(line + "\n" for line in lines)
        if self.log:
            self.log(sql, data)
        self._send(b"Q", sql.encode() + b"\0")
        return self._collect(sql, data.encode())

    def close(self):
        try:
            self._send(b"X", b"")
        except ConnectionLost:
            pass
        self._socket.close()

    def _send(self, kind, body):
        try:
            self._socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def _message(self):
        """The next message: its kind and its body."""
        while True:
            have = len(self._buffer) - self._pos
            if have >= 5:
                length = struct.unpack_from("!i", self._buffer,
                                            self._pos + 1)[0]
                if have >= length + 1:
                    kind = self._buffer[self._pos]
                    start = self._pos + 5
                    self._pos += length + 1
                    return kind, bytes(self._buffer[start:self._pos])
            if self._pos:
                del self._buffer[:self._pos]
                self._pos = 0
            try:
                chunk = self._socket.recv(65536)
            except OSError as error:
                raise ConnectionLost(str(error)) from error
            if not chunk:
                raise ConnectionLost("server closed the connection")
            self._buffer += chunk

    def _collect(self, sql, copy_data=None):
        result = Result()
        error = None
        while True:
            kind, body = self._message()
            if kind == 0x44:                            # DataRow
                result.rows.append(_parse_row(body))
            elif kind == 0x54:                          # RowDescription
                result = Result()
            elif kind == 0x43:                          # CommandComplete
                if result.tag and not body.startswith(b"SELECT"):
                    result = Result()
                result.tag = body[:-1].decode()
            elif kind == 0x45:                          # ErrorResponse
                error = PgError(_parse_fields(body), sql)
                if error.sqlstate.startswith("57P") or self.pid is None:
                    raise ConnectionLost(str(error))
            elif kind == 0x47:                          # CopyInResponse
                self._send(b"d", copy_data or b"")
                self._send(b"c", b"")
            elif kind == 0x52:                          # Authentication
                if struct.unpack_from("!i", body)[0] != 0:
                    raise ConnectionLost("the server wants a password")
            elif kind == 0x4B:                          # BackendKeyData
                self.pid = struct.unpack_from("!i", body)[0]
            elif kind == 0x5A:                          # ReadyForQuery
                self.status = body.decode()
                if error:
                    raise error
                return result


def _parse_row(body):
    count = struct.unpack_from("!h", body)[0]
    pos = 2
    row = []
    for _ in range(count):
        length = struct.unpack_from("!i", body, pos)[0]
        pos += 4
        if length < 0:
            row.append(None)
        else:
            row.append(body[pos:pos + length].decode())
            pos += length
    return tuple(row)


def _parse_fields(body):
    fields = {}
    for part in body.split(b"\0"):
        if part:
            fields[chr(part[0])] = part[1:].decode(errors="replace")
    return fields


def copy_field(value):
    """One field of COPY's text format."""
    if value is None:
        return "\\N"
    return (value.replace("\\", "\\\\").replace("\t", "\\t")
            .replace("\n", "\\n").replace("\r", "\\r"))
