"""Types with their values: small domains, edge cases, and equal values that are not identical.

A value is its text form, as PostgreSQL reads it. Each type makes values from
a random source; `long` is the maximum length of strings.
"""

from dataclasses import dataclass, field
from typing import Callable, Tuple

SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'so so', 'ok', 'happy', 'glad');
CREATE TYPE pair AS (a int4, b text);
CREATE TYPE odd AS (n numeric, f float8, i interval, c char(3), p pair);
CREATE DOMAIN prices AS numeric[];
"""

# Types that the server cannot create are not used.
OPTIONAL_SETUP = """
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2',
                           deterministic = false);
CREATE COLLATION plain (provider = libc, locale = 'C.UTF-8');
CREATE COLLATION english (provider = libc, locale = 'en_US.UTF-8');
CREATE TYPE title AS (id numeric, words text COLLATE caseless);
CREATE TYPE textrange AS RANGE (subtype = text, collation = caseless);
CREATE EXTENSION citext;
PERFORM lsm_create_opclass('citext_ops');
"""


@dataclass(frozen=True)
class DataType:
    name: str                       # unique; for --types and messages
    sql: str                        # the type of the column
    make: Callable                  # make(rng, long) -> text
    opclass: str = ""               # when not the default
    collation: str = ""
    cross: Tuple = ()               # other types to compare with
    fits: Callable = field(default=lambda value, cast: True)
    minmax: bool = True             # are there min() and max()?
    like: bool = False
    wide: bool = False              # values may have any length
    listable: bool = True           # is = ANY (ARRAY[...]) possible?

    @property
    def cast(self):
        """The type for literals; plain char and bit would have length one."""
        return {"char(8)": "bpchar", "varchar(20)": "text",
                "numeric(12,2)": "numeric"}.get(self.sql, self.sql)

    def literal(self, value, cast=None):
        if value is None:
            return f"NULL::{cast or self.cast}"
        return "'" + value.replace("'", "''") + f"'::{cast or self.cast}"


def _integers(low, high):
    def make(rng, _long):
        kind = rng.random()
        if kind < 0.5:
            return str(rng.randint(-8, 24))
        if kind < 0.7:
            return str(rng.choice((low, low + 1, -256, -1, 0, 1, 127, 128, 255,
                                   256, 32767, high - 1, high)))
        if kind < 0.85:
            return str(rng.randint(-300, 300))
        return str(rng.randint(low, high))

    def checked(rng, long):
        return str(min(max(int(make(rng, long)), low), high))
    return checked


_INTEGER_RANGE = {"int2": 2 ** 15, "int4": 2 ** 31, "int8": 2 ** 63}


def _integer_fits(value, cast):
    return -_INTEGER_RANGE[cast] <= int(value) < _INTEGER_RANGE[cast]


def _padded(rng, long):
    return _text(rng, long)[:12] + " " * rng.choice((0, 0, 1, 2, 7))


def _float(rng, _long):
    kind = rng.random()
    if kind < 0.4:
        return str(rng.randint(-5, 9))
    if kind < 0.75:
        return rng.choice(("0", "-0", "NaN", "Infinity", "-Infinity", "1e-30",
                           "-1e-30", "1e30", "0.5", "-0.5", "1.5", "1e37"))
    return f"{rng.uniform(-100, 100):.{rng.randint(0, 6)}f}"


def _numeric(rng, _long):
    kind = rng.random()
    if kind < 0.5:
        scale = rng.randint(0, 4)
        return f"{rng.randint(-4, 9)}" + ("." + "0" * scale if scale else "")
    if kind < 0.7:
        return rng.choice(("0", "0.00", "NaN", "Infinity", "-Infinity",
                           "1e-20", "1e-300", "-1e300", "1.5", "1.50", "123456789012345678901234.5",
                           "-1e40", "0.1", "0.10", "9999", "10000", "10000.0"))
    return f"{rng.uniform(-1e6, 1e6):.{rng.randint(0, 9)}f}"


def _small_numeric(rng, _long):
    """Up to ten digits before the point; NaN, but no infinities."""
    if rng.random() < 0.1:
        return rng.choice(("NaN", "9999999999.99", "-9999999999.99", "0.01",
                           "-0.01", "100", "10000"))
    return f"{rng.randint(-9, 30) / rng.choice((1, 2, 4, 100)):.3f}"


_LETTERS = "aaaabbcdeABCÄäöéßz019 _-.%\\'\u0301\u4e2d\U0001f600\x01\x7f"


def _text(rng, long):
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(("", "a", "A", "b", "ab", "aB", "Ab", "abc", "b c",
                           "ä", "Ä", "a ", "a\x01", "az", "z"))
    if kind < 0.6:
        return ("path/to/" + rng.choice("abc") + "/"
                + "".join(rng.choice("ab/") for _ in range(rng.randint(0, 6))))
    if kind < 0.95 or long < 40:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(0, 12)))
    if rng.random() < 0.5:
        return rng.choice("abx") * rng.randint(16, long // 4)
    return "".join(chr(rng.randint(33, 126))
                   for _ in range(rng.randint(16, long)))


def _short_text(limit):
    return lambda rng, long: _text(rng, 0)[:limit]


def _name(rng, long):
    value = _text(rng, long)
    while len(value.encode()) > 63:
        value = value[:-1]
    return value


def _char(rng, _long):
    return rng.choice(("", "a", "b", "c", "A", "z", "0", "9", " ", "~"))


def _bytea(rng, long):
    size = rng.choice((0, 1, 1, 2, 2, 3, 4, 8, rng.randint(0, long // 4)))
    if rng.random() < 0.7:
        body = bytes(rng.choice((0, 0, 1, 2, 254, 255)) for _ in range(size))
    else:
        body = rng.randbytes(size)
    return "\\x" + body.hex()


def _uuid(rng, _long):
    if rng.random() < 0.6:
        return f"{rng.randint(0, 12):032x}"
    return f"{rng.getrandbits(128):032x}"


def _date(rng, _long):
    if rng.random() < 0.1:
        return rng.choice(("infinity", "-infinity", "4713-01-01 BC",
                           "5874897-12-31", "2000-01-01", "1999-12-31"))
    return f"{rng.randint(1999, 2001)}-{rng.randint(1, 12):02}-{rng.randint(1, 5):02}"


def _date_fits(value, cast):
    return cast == "date" or "5874897" not in value


def _clock(rng):
    if rng.random() < 0.6:
        return "00:00:00"
    return (f"{rng.randint(0, 23):02}:{rng.choice((0, 30)):02}:"
            f"{rng.randint(0, 59):02}" + rng.choice(("", ".5", ".000001")))


def _timestamp(rng, long):
    value = _date(rng, long)
    if "infinity" in value or "BC" in value:
        return value
    return value.replace("5874897", "9999") + " " + _clock(rng)


def _time(rng, _long):
    return rng.choice((_clock(rng), "24:00:00", "00:00:00", "12:00:00"))


def _timetz(rng, _long):
    return _clock(rng) + rng.choice(("+00", "+01", "-08", "+05:30"))


def _interval(rng, _long):
    return rng.choice((
        "1 mon", "30 days", "720 hours", "1 day", "24 hours", "0", "-1 day",
        "1 year", "360 days", "-1 mon", "178000000 years", "-178000000 years",
        f"{rng.randint(-40, 40)} days", f"{rng.randint(0, 90)} minutes",
        f"{rng.randint(0, 3)} mons {rng.randint(-31, 31)} days"))


def _bool(rng, _long):
    return rng.choice(("t", "f"))


def _oid(rng, _long):
    return str(rng.choice((0, 1, 2, 3, 16384, 2 ** 31, 2 ** 32 - 1,
                           rng.randint(0, 40))))


def _inet(rng, _long):
    if rng.random() < 0.2:
        return rng.choice(("::1", "fe80::1/64", "::/0", "2001:db8::/32"))
    bits = rng.choice((32, 32, 24, 8, 0))
    address = f"10.{rng.randint(0, 1)}.{rng.randint(0, 2)}.{rng.randint(0, 5)}"
    return f"{address}/{bits}"


def _cidr(rng, _long):
    return rng.choice(("10.0.0.0/8", "10.0.0.0/16", "10.1.0.0/16", "0.0.0.0/0",
                       "10.0.1.0/24", "10.0.1.1/32", "::/0", "2001:db8::/32"))


def _macaddr(rng, _long):
    return f"08:00:2b:00:00:{rng.randint(0, 9):02x}"


def _macaddr8(rng, _long):
    return f"08:00:2b:00:00:00:{rng.choice((0, 1, 255)):02x}:{rng.randint(0, 9):02x}"


def _money(rng, _long):
    return f"{rng.randint(-5, 9)}.{rng.choice((0, 50)):02}"


def _pg_lsn(rng, _long):
    return f"{rng.randint(0, 2):X}/{rng.choice((0, 1, 255, 2 ** 32 - 1)):X}"


def _xid8(rng, _long):
    return str(rng.choice((0, 3, 2 ** 32, 2 ** 64 - 1, rng.randint(0, 20))))


def _bits(low, high):
    return lambda rng, long: "".join(rng.choice("01") for _ in
                                     range(rng.randint(low, high)))


def _array(element):
    def make(rng, long):
        items = []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            items.append("NULL" if rng.random() < 0.15 else element(rng, long))
        return "{" + ",".join(items) + "}"
    return make


def _word(rng, _long):
    return rng.choice(("a", "b", "abc", '""', '"A b"', "zz"))


def _mood(rng, _long):
    return rng.choice(("sad", "so so", "ok", "happy", "glad"))


def _jsonb(rng, _long):
    return rng.choice(("null", "true", "1", "1.0", "1.00", '"a"', "[]", "[1]",
                       "[1, 2]", "{}", '{"a": 1}', '{"a": 1.0}', '{"b": []}',
                       str(rng.randint(0, 9))))


def _pair(rng, _long):
    first = "" if rng.random() < 0.2 else str(rng.randint(0, 4))
    return f"({first},{rng.choice(('a', 'b', 'ab', ''))})"


def _odd(rng, long):
    """Values that are equal but look different, in a composite."""
    fields = (_numeric(rng, long), _float(rng, long), _interval(rng, long),
              rng.choice(("a", "a ", "A", "")), _pair(rng, long))
    return "(" + ",".join("" if rng.random() < 0.1 else '"' + field + '"'
                          for field in fields) + ")"


def _title(rng, _long):
    return (f"({rng.choice(('1', '1.0', '1.00', '2'))},"
            f"{rng.choice(('a', 'A', 'b', 'Ab', 'aB'))})")


def _few_numeric(rng, _long):
    return rng.choice(("0", "0.0", "1", "1.0", "1.00", "1.5", "1.50", "NaN"))


def _range(bound):
    def make(rng, long):
        if rng.random() < 0.15:
            return rng.choice(("empty", "(,)"))
        return f"[{bound(rng, long)},)"
    return make


def _quoted(element):
    return lambda rng, long: '"' + element(rng, long) + '"'


def _int4range(rng, _long):
    if rng.random() < 0.15:
        return rng.choice(("empty", "(,)", "(,3)", "[3,)"))
    low = rng.randint(0, 6)
    return f"[{low},{low + rng.randint(1, 4)})"


def _multirange(rng, long):
    return "{" + ",".join(_int4range(rng, long)
                          for _ in range(rng.randint(0, 2))) + "}"


def _tsvector(rng, _long):
    return " ".join(rng.choice(("a", "b", "cat", "dog:2A", "rat:1,3"))
                    for _ in range(rng.randint(0, 3)))


def _tid(rng, _long):
    return f"({rng.randint(0, 3)},{rng.randint(1, 5)})"


_TIMES = ("date", "timestamp", "timestamptz")

TYPES = (
    DataType("int2", "int2", _integers(-2 ** 15, 2 ** 15 - 1),
             cross=("int4", "int8"), fits=_integer_fits),
    DataType("int4", "int4", _integers(-2 ** 31, 2 ** 31 - 1),
             cross=("int2", "int8"), fits=_integer_fits),
    DataType("int8", "int8", _integers(-2 ** 63, 2 ** 63 - 1),
             cross=("int2", "int4"), fits=_integer_fits),
    DataType("float4", "float4", _float, cross=("float8",)),
    DataType("float8", "float8", _float, cross=("float4",)),
    DataType("numeric", "numeric", _numeric),
    DataType("numeric_scale", "numeric(12,2)", _small_numeric),
    DataType("text", "text", _text, collation="C", cross=("name",),
             fits=lambda value, cast: cast == "text" or len(value) < 16,
             like=True, wide=True),
    DataType("text_default", "text", _text, like=True, wide=True),
    DataType("text_icu", "text", _text, collation="en-x-icu", wide=True),
    DataType("text_caseless", "text", _text, collation="caseless"),
    DataType("text_plain", "text", _text, collation="plain", wide=True),
    DataType("text_english", "text", _text, collation="english", wide=True),
    DataType("text_builtin", "text", _text, collation="pg_c_utf8", wide=True),
    DataType("citext", "citext", _text, wide=True),
    DataType("text_pattern", "text", _text, opclass="text_pattern_ops",
             like=True, wide=True),
    DataType("varchar", "varchar(20)", _short_text(20), like=True),
    DataType("varchar_pattern", "varchar(20)", _short_text(20),
             opclass="varchar_pattern_ops", collation="english"),
    DataType("bpchar", "char(8)", _short_text(8)),
    DataType("bpchar_caseless", "char(8)", _short_text(8),
             collation="caseless"),
    DataType("bpchar_free", "bpchar", _padded),
    DataType("bpchar_plain", "bpchar", _padded, collation="plain"),
    DataType("bpchar_icu", "char(8)", _short_text(8), collation="en-x-icu"),
    DataType("bpchar_pattern", "char(8)", _short_text(8),
             opclass="bpchar_pattern_ops"),
    DataType("name", "name", _name, cross=("text",)),
    DataType("char", '"char"', _char, minmax=False),
    DataType("bytea", "bytea", _bytea, minmax=False, wide=True),
    DataType("uuid", "uuid", _uuid, minmax=False),
    DataType("date", "date", _date, cross=_TIMES, fits=_date_fits),
    DataType("timestamp", "timestamp", _timestamp, cross=_TIMES),
    DataType("timestamptz", "timestamptz", _timestamp, cross=_TIMES),
    DataType("time", "time", _time),
    DataType("timetz", "timetz", _timetz),
    DataType("interval", "interval", _interval),
    DataType("bool", "bool", _bool, minmax=False),
    DataType("oid", "oid", _oid),
    DataType("inet", "inet", _inet),
    DataType("cidr", "cidr", _cidr, opclass="cidr_ops", cross=("inet",)),
    DataType("macaddr", "macaddr", _macaddr, minmax=False),
    DataType("macaddr8", "macaddr8", _macaddr8, minmax=False),
    DataType("money", "money", _money),
    DataType("pg_lsn", "pg_lsn", _pg_lsn),
    DataType("xid8", "xid8", _xid8, minmax=False),
    DataType("bit", "bit(5)", _bits(5, 5), minmax=False),
    DataType("varbit", "varbit", _bits(0, 9), minmax=False),
    DataType("int4[]", "int4[]", _array(_integers(-2 ** 31, 2 ** 31 - 1)),
             listable=False),
    DataType("text[]", "text[]", _array(_word), listable=False),
    DataType("text_caseless[]", "text[]", _array(_word), collation="caseless",
             listable=False),
    DataType("numeric[]", "numeric[]", _array(_few_numeric), listable=False),
    DataType("prices", "prices", _array(_few_numeric), listable=False),
    DataType("float8[]", "float8[]", _array(_float), listable=False),
    DataType("interval[]", "interval[]", _array(_quoted(_interval)),
             listable=False),
    DataType("pair[]", "pair[]", _array(_quoted(_pair)), listable=False,
             minmax=False),
    DataType("odd", "odd", _odd, minmax=False),
    DataType("title", "title", _title, minmax=False),
    DataType("numrange", "numrange", _range(_few_numeric), minmax=False),
    DataType("textrange", "textrange",
             _range(lambda rng, long: rng.choice("aAbBcC")), minmax=False),
    DataType("mood", "mood", _mood),
    DataType("jsonb", "jsonb", _jsonb, minmax=False),
    DataType("pair", "pair", _pair, minmax=False),
    DataType("pair_image", "pair", _pair, opclass="record_image_ops",
             minmax=False),
    DataType("int4range", "int4range", _int4range, minmax=False),
    DataType("multirange", "int4multirange", _multirange, minmax=False),
    DataType("tsvector", "tsvector", _tsvector, minmax=False),
    DataType("tid", "tid", _tid),
)

# IS NULL means something else for these types.
COMPOSITES = ("pair", "odd", "title")

# The types that are most common in real tables. Half of all columns use them.
COMMON = ("int4", "int8", "text", "timestamptz", "numeric", "float8", "uuid",
          "text_icu", "int2", "date", "bytea", "bool")
