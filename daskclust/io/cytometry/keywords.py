"""HEADER and TEXT of FCS files: the version, the offsets of DATA, and the keywords."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass

from daskclust.core.data.quote import quoted
from daskclust.io.files import reading

VERSIONS = ("2.0", "3.0", "3.1", "3.2")
HEADER_BYTES = 58
_PADDING = " \0\r\n\t"

# No keyword is empty, and a delimiter within a value is doubled: two after a keyword are an empty value.
_BY_DELIMITERS = "([^{0}]+){0}((?:{0}{0}|[^{0}])*)(?:{0}|$)"
# Where values have single delimiters: they end where a keyword that matters begins.
_BY_KEYWORDS = r"(\$\w+?|\$?P\d+[A-Z]+|SPILL\w*?){0}(.*?){0}(?=\s*(?:\$\w+?|\$?P\d+[A-Z]+|SPILL\w*?){0}|$)"


@dataclass(frozen=True, slots=True)
class Keywords:
    """What HEADER and TEXT of one data set tell."""

    version: str
    data: tuple[int, int]  # first and last byte of DATA by HEADER, 0 where it does not tell them
    text: dict[str, str]  # in lower case, without $
    empty: list[str]  # those of the standard whose values are empty
    notes: list[str]  # what else is read in another way than it is written


def read_keywords(path: str, offset: int) -> Keywords:
    """Return the keywords of the data set that begins at a byte of a file."""
    # Mapped, as it gives no more bytes than there are, whatever the file claims.
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        head = memory[offset : offset + HEADER_BYTES].decode("latin-1")
        if head[:3] != "FCS" or head[3:6] not in VERSIONS:
            raise ValueError(
                f"{path} has {quoted(memory[offset : offset + 6])} at byte {offset}, where an FCS file of version "
                f"{', '.join(VERSIONS)} must begin: it is damaged, or must be converted to one of these"
            )
        with reading(path, "FCS", "keywords"):
            first, last = int(head[10:18]), int(head[18:26])
            if not 0 < first < last < len(memory) - offset:
                raise ValueError(f"it has no bytes {first} to {last}")
        raw = memory[offset + first : offset + last + 1]
        text, empty, notes = _parsed(raw)
        begin, end = place_of(text.get("beginstext", "")), place_of(text.get("endstext", ""))
        supplement = memory[offset + begin : offset + end + 1] if begin else b""
    if supplement[:1] == raw[:1]:
        text = _parsed(supplement)[0] | text
    elif 0 < begin < end:
        notes.append(f"no keywords are at $BEGINSTEXT, byte {begin}")
    return Keywords(head[3:6], (place_of(head[26:34]), place_of(head[34:42])), text, empty, notes)


def place_of(value: str) -> int:
    """Return the offset in a text, 0 where it is none."""
    return int(value) if re.fullmatch(r"\s*[0-9]{1,18}\s*", value) else 0


def _parsed(raw: bytes) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the keywords of a segment, those of the standard whose values are empty, and a note on its delimiters.

    They are taken in another way where only that gives the keywords that a file must have.
    """
    notes: list[str] = []
    try:
        whole = raw.decode()
    except UnicodeDecodeError:
        whole = raw.decode("latin-1")
    mark = whole[0]
    if mark == "$":  # which begins keywords, too
        whole = re.sub(r"\$+", "$", whole)
    whole = whole.lstrip(mark + _PADDING).rstrip(_PADDING.replace(mark, ""))
    ends = len(whole) - len(whole.rstrip(mark))
    whole = whole.rstrip(mark) + mark * max(1, ends - 1 + ends % 2)  # an even number has none too many, or one
    text = _keywords(whole, mark, _BY_DELIMITERS)
    if not _is_complete(text) and _is_complete(other := _keywords(whole, mark, _BY_KEYWORDS)):
        text, notes = other, [f"values have the delimiter {quoted(mark)}, too; they end where a known keyword begins"]
    empty = [key.upper() for key, value in text.items() if key.startswith("$") and not value]
    # Of two that differ in $ only, that with it is the last here, and counts.
    return {key.removeprefix("$"): text[key] for key in sorted(text, reverse=True)}, empty, notes


def _keywords(whole: str, mark: str, pattern: str) -> dict[str, str]:
    """Return keywords in lower case and their values, each the first one that is not empty, by a pattern."""
    text: dict[str, str] = {}
    for name, value in re.findall(pattern.format(re.escape(mark)), whole, re.DOTALL):
        key = name.strip(_PADDING).lower()
        text[key] = text.get(key) or value.replace(mark * 2, mark).strip(_PADDING)
    return text


def _is_complete(text: dict[str, str]) -> bool:
    """Return whether there are the keywords that tell how events are stored, and none of the standard is a value."""
    count = place_of(text.get("$par", ""))
    needed = ["$byteord", *(f"$p{n}b" for n in range(1, min(count, len(text)) + 1))]
    is_moved = any(re.fullmatch(r"\$\w+", value) for value in text.values())
    return 0 < count <= len(text) and all(map(text.get, needed)) and not is_moved
