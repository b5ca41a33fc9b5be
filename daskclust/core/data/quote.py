"""Text of files and users in messages: quoted, and cut where it is long."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any

_ONE, _ALL, _NAMES = 100, 400, 20  # characters of one quotation, and of a list of names; names in a list
_LOOKED_AT = 2000
_DIGITS = 40
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "&<>\"'[\\`*"}  # of HTML, and of Markdown


def short(text: object, most: int = _ALL) -> str:
    """Return a text as it is, or its first `most` characters and how many more there are."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}... ({len(whole) - most} more characters)"


def quoted(value: Any) -> str:
    """Return what `repr` gives for a value, cut where it is long."""
    if isinstance(value, str | bytes) and len(value) > _ONE:
        return f"{value[:_ONE]!r}... ({len(value) - _ONE} more characters)"
    if isinstance(value, int) and abs(value) >= 10**_DIGITS:
        return f"about {'-' if value < 0 else ''}1e{math.log10(abs(value)):.0f}"
    return short(repr(value))


def in_html(text: object) -> str:
    """Return what HTML, or Markdown, shows as this text: no part of it is taken for a mark."""
    return str(text).translate(_MARKS)


def in_sheet(text: object) -> str:
    """Return a text for a cell of CSV: spreadsheets compute what begins with = + - @, and not what is behind a '."""
    return f"'{text}" if str(text).startswith(("=", "+", "-", "@")) else str(text)


def printable(text: str) -> str:
    """Return a text with control characters escaped, but for new lines and tabs: a terminal obeys them."""
    odd = {each for each in text if each not in "\n\t" and unicodedata.category(each).startswith("C")}
    return text.translate({ord(each): each.encode("unicode_escape").decode() for each in odd}) if odd else text


def argument(name: Any, value: Any) -> str:
    """Return an argument in Python lines, ``name=value``, whatever its name is."""
    return f"{name}={value}" if str(name).isidentifier() else f"**{{{name!r}: {value}}}"


def listed(names: Iterable[Any]) -> str:
    """Return names for a message, quoted: the first twenty or less, and how many more there are."""
    every, room = [str(name) for name in names], _ALL
    shown: list[str] = []
    for name in every[:_NAMES]:
        text = quoted(name)
        room -= len(text) + 2
        if shown and room < 0:
            break
        shown.append(text)
    more = f" and {len(every) - len(shown)} more" if len(every) > len(shown) else ""
    return (", ".join(shown) or "none") + more


def meant(name: str, known: Iterable[Any]) -> str:
    """Return " (did you mean 'this'?)" where a known name is like one that is not known, else nothing."""
    others = [str(other)[:_ONE] for other in islice(known, _LOOKED_AT)]  # each comparison takes a while
    near = get_close_matches(name[:_ONE], others, 1, 0.7)
    return f" (did you mean {quoted(near[0])}?)" if near else ""


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that are there more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)
