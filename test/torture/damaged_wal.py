"""Reads, cuts and alters the WAL that a server left behind."""

import os
import struct

from damaged_pages import crc32c

PAGE = 8192
SEGMENT = 1 << 20           # as initdb was told
LSM_RMGR = 128
HEADER = 24                 # of a record
HAS_IMAGE, HAS_DATA, SAME_REL = 0x10, 0x20, 0x80
INFO = 16                   # where a record has its kind
TYPES = ("INSERT", "EDIT", "DELETE", "GATE_FLIP", "GATE_DRAIN")


class Part:
    """A part of a record: bytes from `start` to `end`. `length_at` and `length_bytes`: where its length is."""

    def __init__(self, what, start, end, length_at=0, length_bytes=0):
        self.what = what
        self.start = start
        self.end = end
        self.length_at = length_at
        self.length_bytes = length_bytes


class Record:
    def __init__(self, pieces, body):
        self.pieces = pieces        # where its bytes are: (position, number)
        self.body = bytearray(body)
        self.rmgr = body[17]

    def kind(self):
        number = self.body[INFO] >> 4
        return TYPES[number] if number < len(TYPES) else str(number)

    def parse(self):
        """Set `parts`, what redo reads, and `files`, whose blocks the record changes."""
        body, at, total = self.body, HEADER, 0
        parts, self.parts, self.files = [], [], []
        while len(body) - at > total:
            number = body[at]
            if number <= 32:
                at, total = self._parse_block(at, total, parts)
            elif number == 255:
                parts.append(("main data", at + 1, 1, body[at + 1]))
                total += body[at + 1]
                at += 2
            elif number == 254:
                length = struct.unpack_from("I", body, at + 1)[0]
                parts.append(("main data", at + 1, 4, length))
                total += length
                at += 5
            else:
                at += 3 if number == 253 else 5
        for what, length_at, length_bytes, length in parts:
            self.parts.append(Part(what, at, at + length, length_at, length_bytes))
            at += length

    def _parse_block(self, at, total, parts):
        body = self.body
        number, flags, length = struct.unpack_from("BBH", body, at)
        length_at = at + 2
        at += 4
        if flags & HAS_IMAGE:
            image, _, how = struct.unpack_from("HHB", body, at)
            parts.append((f"image of block {number}", at, 2, image))
            total += image
            # Only compressed images with a hole have its length. Version 15 has these bits.
            at += 7 if how & 0x01 and how & 0x1C else 5
        if not flags & SAME_REL:
            self.files.append(struct.unpack_from("III", body, at)[2])
            at += 12
        self.parts.append(Part(f"number of block {number}", at, at + 4))
        if flags & HAS_DATA:
            parts.append((f"data of block {number}", length_at, 2, length))
            total += length
        return at + 4, total


class Wal:
    """The WAL from a checkpoint on, as one array."""

    def __init__(self, directory, start):
        self.first = start // SEGMENT
        self.names = []
        self.bytes = bytearray()
        while True:
            number = self.first + len(self.names)
            name = f"{1:08X}{number // 4096:08X}{number % 4096:08X}"
            path = os.path.join(directory, name)
            if not os.path.exists(path):
                break
            with open(path, "rb") as file:
                self.bytes += file.read()
            self.names.append(name)
        self.records = list(self._walk(start - self.first * SEGMENT))
        self.end = self.records[-1].pieces[-1][0] + self.records[-1].pieces[-1][1]

    def _pieces(self, at, length):
        found = []
        while length > 0:
            if at % PAGE == 0:
                at += 24 if at % SEGMENT else 40
            number = min(length, PAGE - at % PAGE)
            found.append((at, number))
            at += number
            length -= number
        return found, at

    def _walk(self, at):
        while True:
            if at % PAGE == 0:
                at += 24 if at % SEGMENT else 40
            if at >= len(self.bytes):
                return
            length = struct.unpack_from("I", self.bytes, at)[0]
            if length < HEADER:
                return
            pieces, end = self._pieces(at, length)
            if end > len(self.bytes):
                return
            body = b"".join(self.bytes[a:a + n] for a, n in pieces)
            if struct.unpack_from("I", body, 20)[0] != crc32c(body[HEADER:] + body[:20]):
                return
            yield Record(pieces, body)
            at = end + 7 & ~7

    def altered(self, record, body):
        """The WAL with another content of a record, whose checksum is made right."""
        struct.pack_into("I", body, 20, crc32c(bytes(body[HEADER:] + body[:20])))
        data = bytearray(self.bytes)
        done = 0
        for at, number in record.pieces:
            data[at:at + number] = body[done:done + number]
            done += number
        return data

    def write(self, directory, data):
        """Put segments into a directory. `data` may be shorter than the WAL was."""
        for number, name in enumerate(self.names):
            part = data[number * SEGMENT:(number + 1) * SEGMENT]
            path = os.path.join(directory, name)
            if part:
                with open(path, "wb") as file:
                    file.write(part)
                owner = os.stat(directory)
                os.chown(path, owner.st_uid, owner.st_gid)
            elif os.path.exists(path):
                os.unlink(path)


def cut(rng, wal):
    """Return the WAL without its end, and what was done."""
    first = wal.records[0].pieces[-1]
    at = rng.randrange(first[0] + first[1], wal.end)
    how = rng.choice(("missing", "zeros", "garbage"))
    if how == "missing":
        # Recovery needs the page with the checkpoint.
        at = max(at, -(-wal.records[0].pieces[-1][0] // PAGE) * PAGE)
        return wal.bytes[:at], f"WAL ends at byte {at}"
    data = bytearray(wal.bytes)
    if how == "zeros":
        data[at:] = bytes(len(data) - at)
    else:
        data[at] ^= 1 << rng.randrange(8)
    return data, f"{how} at byte {at} of the WAL"


def alter(rng, record):
    """Return another content of a record, and what was done."""
    record.parse()
    body = bytearray(record.body)
    parts = [p for p in record.parts if p.end > p.start]
    # Images and block numbers are not worth as much as the rest.
    chosen = [p for p in parts if p.what.startswith(("data", "main"))] * 4 + parts
    part = rng.choice(chosen or [Part("kind", INFO, INFO + 1)])
    action = rng.choice((_value, _value, _flip, _zero, _border, _kind))
    what = f"{record.kind()}: {action(rng, record, body, part)}"
    # PostgreSQL extends the file to whatever block a record initializes, and may take hours.
    for number in (p for p in record.parts if p.what.startswith("number of block")):
        body[number.end - 2:number.end] = bytes(2)
    return body, what


def _flip(rng, _record, body, part):
    at, bit = rng.randrange(part.start, part.end), rng.randrange(8)
    body[at] ^= 1 << bit
    return f"bit {bit} of byte {at - part.start} of {part.what} flipped"


def _value(rng, _record, body, part):
    width = rng.choice([w for w in (1, 2, 4, 8) if w <= part.end - part.start])
    # Heads are worth more than keys.
    room = min(part.end - part.start, rng.choice((16, 64, 8192)))
    at = part.start + rng.randrange(max(room // width, 1)) * width
    at = min(at, part.end - width)
    top = (1 << 8 * width) - 1
    old = int.from_bytes(body[at:at + width], "little")
    value = rng.choice((0, 1, top, top >> 1, (top >> 1) + 1, old + 1, old - 1, old + 16,
                        rng.randrange(100), rng.randrange(top + 1))) & top
    body[at:at + width] = value.to_bytes(width, "little")
    return f"{width} bytes at {at - part.start} of {part.what} are {value} instead of {old}"


def _zero(rng, _record, body, part):
    at = rng.randrange(part.start, part.end)
    end = min(part.end, at + rng.choice((4, 16, 100)))
    body[at:end] = bytes(end - at)
    return f"zeros from {at - part.start} to {end - part.start} of {part.what}"


def _kind(rng, _record, body, _part):
    body[INFO] = body[INFO] & 0x0F | rng.randrange(7) << 4
    return f"it has the kind {body[INFO] >> 4}"


def _border(rng, record, body, part):
    """Give bytes of one part to another one."""
    sized = [p for p in record.parts if p.length_bytes and not p.what.startswith("image")]
    if len(sized) < 2:
        return _flip(rng, record, body, part)
    giver, taker = rng.sample(sized, 2)
    most = min(giver.end - giver.start, 255 - (taker.end - taker.start)
               if taker.length_bytes == 1 else 1000)
    if most < 1:
        return _flip(rng, record, body, part)
    number = min(most, rng.choice((1, 2, 4, 8, most)))
    for part, change in ((giver, -number), (taker, number)):
        length = part.end - part.start + change
        body[part.length_at:part.length_at + part.length_bytes] = \
            length.to_bytes(part.length_bytes, "little")
    return f"{number} bytes moved from {giver.what} to {taker.what}"
