"""Damages the pages of an index file. src/format/page.h specifies their layout."""

import collections
import struct

PAGE = 8192
SPECIAL = PAGE - 32
CONTENT = 24
KINDS = {0xA501: "meta", 0xA502: "gate", 0xA503: "map", 0xA504: "buffer",
         0xA505: "leaf", 0xA506: "fence", 0xA507: "directory",
         0xA508: "filter"}
MAP_BLOCK = 3
# Keys that functions compare, and included columns, are stored as tuples. Functions of types trust tuples, as with any
# index method: only a checksum protects them. So if an index has tuples, the checksums of these pages are never mended.
# Its open pages have no checksum, so their contents are only replaced as a whole. Encoded keys are decoded within bounds.
WITH_KEYS = ("open", "sealed", "leaf", "fence", "directory")
OPEN = 1                # flag of a buffer page
FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _steps():
    """Returns the tables of CRC-32C for one byte, and for two bytes at once."""
    one = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        one.append(byte)
    two = []
    for word in range(65536):
        crc = one[word & 255] ^ word >> 8
        two.append(one[crc & 255] ^ crc >> 8)
    return one, two


ONE, TWO = _steps()


def crc32c(data):
    crc = 0xFFFFFFFF
    words = len(data) // 2
    for word in struct.unpack_from(f"<{words}H", data):
        crc = TWO[(crc ^ word) & 0xFFFF] ^ crc >> 16
    for byte in data[2 * words:]:
        crc = ONE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def bounds(page):
    """pd_lower and pd_upper."""
    return struct.unpack_from("HH", page, 12)


def set_crc(page):
    lower, upper = bounds(page)
    struct.pack_into("II", page, SPECIAL + 20, crc32c(
        page[12:lower] + page[upper:SPECIAL + 20] + page[SPECIAL + 28:]), 0)


def mended(page):
    """Returns a copy of the page with a correct checksum."""
    copy = bytearray(page)
    set_crc(copy)
    return copy


def kind_of(page):
    kind, flags = struct.unpack_from("HH", page, SPECIAL + 28)
    name = KINDS.get(kind, "")
    if name == "buffer":
        return "open" if flags & OPEN else "sealed"
    return name


class IndexFile:
    """The pages of an index, those of an older version of the file, and the blocks of each kind that the index uses."""

    def __init__(self, path, older, has_tuples):
        self.path = path
        self.has_tuples = has_tuples
        self.pages = read_pages(path)
        self.older = older
        self.blocks = {}
        for block, page in enumerate(self.pages):
            if block <= MAP_BLOCK or self._is_used(block):
                self.blocks.setdefault(kind_of(page), []).append(block)
        self.blocks.pop("", None)

    def _is_used(self, block):
        words = self.pages[MAP_BLOCK][CONTENT:]
        return words[block // 8] >> block % 8 & 1


def read_pages(path):
    with open(path, "rb") as file:
        data = file.read()
    return [data[at:at + PAGE] for at in range(0, len(data), PAGE)]


class Damage:
    """A damaged file.

    `is_stale`: an older version of a page may bring back entries that VACUUM removed.
    `mended`: the page has a correct checksum, or none, so readers may believe what it says.
    """

    def __init__(self, kind, text, mended, data):
        self.is_stale = "older version" in text
        self.kind = kind
        self.text = text
        self.mended = mended
        self.data = data


class Damager:
    def __init__(self, rng, files):
        self.rng = rng
        self.files = files
        self.cases = collections.Counter()

    def _pick_kind(self, file):
        """All kinds get about as many cases. Every file has some kinds, and few files have others, such as filters."""
        kinds = [*sorted(file.blocks), "file"]
        kind = self.rng.choices(kinds, [(1 + self.cases[k]) ** -4 for k in kinds])[0]
        self.cases[kind] += 1
        return kind

    def damage(self, file):
        """Damage one page of a file, or the length of the file."""
        kind = self._pick_kind(file)
        if kind == "file":
            return self._damage_length(file)
        block = self.rng.choice(file.blocks[kind])
        page = bytearray(file.pages[block])
        if self.rng.random() < 0.15 or kind == "open" and file.has_tuples:
            what = self._replace(file, kind, block, page)
        else:
            actions = (self._flip, self._flip, self._value, self._value,
                       self._value, self._swap, self._zero, self._copy)
            what = ", ".join(self.rng.choice(actions)(page, kind)
                             for _ in range(self.rng.choice((1, 1, 1, 2, 4))))
        if self.rng.random() < 0.75 and not (file.has_tuples and kind in WITH_KEYS):
            set_crc(page)
            what += ", checksum mended"
        # Open pages have no checksum, and a page that replaced this one may have a correct checksum.
        believed = kind_of(page) == "open" or page == mended(page)
        data = b"".join(file.pages[:block] + [bytes(page)]
                        + file.pages[block + 1:])
        return Damage(kind, f"block {block}, {kind}: {what}", believed, data)

    # --- parts of a page

    def _areas(self, page, kind):
        """Returns the parts of a page that have a meaning. Most are small, so that headers and
        offsets are hit as often as the rest.

        The first 12 bytes belong to PostgreSQL. An LSN from the future stops every checkpoint, whatever the index method.
        """
        lower, upper = bounds(page)
        areas = [(12, CONTENT), (CONTENT, CONTENT + 16), (CONTENT, lower),
                 (upper, SPECIAL), (SPECIAL, SPECIAL + 20), (SPECIAL + 28, PAGE)]
        table = (CONTENT, lower) if kind in ("open", "sealed") else (upper, SPECIAL)
        if kind not in ("meta", "map", "filter") and table[0] + 2 <= table[1] <= PAGE:
            # The first bytes of an item or a group.
            slot = self.rng.randrange(table[0], table[1] - 1, 2)
            start = struct.unpack_from("H", page, slot)[0]
            areas += [table, (start, start + 12), (start, start + 12)]
        elif kind == "meta":
            record = CONTENT + 552 + 64 * self.rng.randrange(6)
            areas += [(CONTENT, CONTENT + 192), (record, record + 64),
                      (record, record + 64)]
        return [(a, b) for a, b in areas if CONTENT // 2 <= a < b <= PAGE]

    def _field(self, page, kind, width=None):
        """Returns the place and the width of a random field."""
        start, end = self.rng.choice(self._areas(page, kind))
        width = width or self.rng.choice((1, 2, 2, 4, 4, 8))
        at = self.rng.randrange(start, end)
        return min(at - (at - start) % width, PAGE - width), width

    def _flip(self, page, kind):
        at, _ = self._field(page, kind, 1)
        bit = self.rng.randrange(8)
        page[at] ^= 1 << bit
        return f"bit {bit} of byte {at} flipped"

    def _value(self, page, kind):
        at, width = self._field(page, kind)
        top = (1 << 8 * width) - 1
        old = struct.unpack_from(FORMATS[width], page, at)[0]
        value = self.rng.choice((
            0, 1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, old + 1, old - 1,
            old + 8, old - 8, old * 2, old // 2, self.rng.randrange(top + 1),
            self.rng.randrange(min(top, 10000)))) & top
        struct.pack_into(FORMATS[width], page, at, value)
        return f"{width} bytes at {at} are {value} instead of {old}"

    def _swap(self, page, kind):
        at, width = self._field(page, kind)
        other = min(max(at + width * self.rng.choice((-2, -1, 1, 2, 5)), 12), PAGE - width)
        page[at:at + width], page[other:other + width] = \
            page[other:other + width], page[at:at + width]
        return f"{width} bytes at {at} and {other} exchanged"

    def _zero(self, page, kind):
        at, _ = self._field(page, kind)
        end = min(at + self.rng.choice((4, 16, 100, 1000)), PAGE)
        page[at:end] = bytes(end - at)
        return f"zeros from {at} to {end}"

    def _copy(self, page, kind):
        other, source = self._another(kind)
        at, _ = self._field(page, kind)
        end = min(at + self.rng.choice((8, 16, 100, 1000)), PAGE)
        page[at:end] = source[at:end]
        return f"bytes {at} to {end} from {other}"

    # --- whole pages

    def _another(self, kind):
        """Returns the name and the content of a page of this kind, from any index without tuples."""
        files = [f for f in self.files if not f.has_tuples and kind in f.blocks]
        file = self.rng.choice(files)
        block = self.rng.choice(file.blocks[kind])
        return f"block {block} of {file.path}", file.pages[block]

    def _replace(self, file, kind, block, page):
        """Replace the page. Returns what was done."""
        choices = ["zeros", "garbage", "other block", "older", "older"]
        if not (file.has_tuples and kind in WITH_KEYS):
            choices += ["other index", "same place"]
        what = self.rng.choice(choices)
        identity = page[SPECIAL:SPECIAL + 8], page[SPECIAL + 16:SPECIAL + 20]
        source = None
        if what == "zeros":
            page[:] = bytes(PAGE)
            return what
        if what == "garbage":
            # The header stays, so that PostgreSQL accepts the page.
            page[CONTENT:SPECIAL] = self.rng.getrandbits(8 * (SPECIAL - CONTENT)
                                                         ).to_bytes(SPECIAL - CONTENT, "little")
            return what
        if what == "other block":
            other = self.rng.randrange(len(file.pages))
            source, what = file.pages[other], f"block {other}"
        elif what == "other index":
            what, source = self._another(kind)
        elif what == "same place":
            other = self.rng.choice(self.files)
            if block < len(other.pages) and not other.has_tuples:
                source, what = other.pages[block], f"the block of {other.path}"
        elif block < len(file.older):
            source, what = file.older[block], "an older version of the page"
        if source is None or len(source) < PAGE:
            if kind != "open" or not file.has_tuples:
                return self._flip(page, kind)
            page[:] = bytes(PAGE)
            return "zeros"
        page[:] = source
        if self.rng.random() < 0.5:
            page[SPECIAL:SPECIAL + 8], page[SPECIAL + 16:SPECIAL + 20] = identity
            what += ", with the page's id and number"
        return what

    # --- files

    def _damage_length(self, file):
        data = b"".join(file.pages)
        what = self.rng.choice(("cut", "cut", "cut within", "zeros", "garbage", "again"))
        if what == "cut":
            data = data[:PAGE * self.rng.randrange(len(file.pages))]
        elif what == "cut within":
            data = data[:self.rng.randrange(len(data))]
        elif what == "zeros":
            data += bytes(PAGE * self.rng.choice((1, 2, 20)))
        elif what == "garbage":
            data += self.rng.getrandbits(8 * PAGE).to_bytes(PAGE, "little")
        else:
            data += data
        return Damage("file", f"file {what}, {len(data)} bytes", False, data)
