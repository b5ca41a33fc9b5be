"""What the address of the page keeps, so that a copy of it opens the same view: the part after ``?``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from daskclust.app.page.board import COLUMNS, SPLITS, Arrangement
from daskclust.app.selection import Range
from daskclust.app.slices import Slices
from daskclust.app.state import State
from daskclust.app.worker import LONG


class Address:
    """The address of a served page (`location` of Panel), or none; `faults` are what it has that is not understood."""

    def __init__(self, location: Any) -> None:
        self._location = location
        search = "" if location is None else location.search or ""
        self.known: dict[str, str] = dict(parse_qsl(search[1:], keep_blank_values=True))
        self.faults: list[str] = []
        self._is_read = True  # not yet written

    def check_names(self, known: Iterable[str]) -> None:
        """Report parameters that the page does not have."""
        names = {*known, *COLUMNS, "system", "x", "y", "look", "hidden", "enlarged", "width", "token"}
        unknown = [f"{name}={value}" for name, value in self.known.items() if name and name not in names]
        if unknown:
            self.faults.append(f"there is no {', no '.join(unknown)}")

    def keep(self, known: Mapping[str, Any]) -> None:
        """Write these parameters to the address."""
        new = {name: str(value) for name, value in known.items()}
        if "token" in self.known:  # of `serve`
            new["token"] = self.known["token"]
        if self._location is not None and new != self.known:
            self.faults = self.faults if self._is_read else []  # the user goes on, after they were told
            self.known, self._is_read = new, False
            self._location.search = f"?{urlencode(new)}"

    def take(self, name: str, known: Iterable[str]) -> str | None:
        """Return the value of a parameter, or None where it is not one of the known values."""
        value, known = self.known.get(name), list(known)
        if value is not None and value not in known:
            self.faults.append(f"{name} must be one of {', '.join(known)}, got {value!r}")
            return None
        return value

    def set(self, state: State) -> None:
        """Choose system and parameters, and cluster; invalid ones keep their defaults."""
        system = self.take("system", state.names)
        first = state.system.name, state.values
        if system is not None and system != state.system.name:
            state.choose(system)
        for each in state.system.parameters:
            if each.name in self.known:
                try:
                    state.set(**{each.name: each.read(self.known[each.name])})
                except ValueError as error:
                    self.faults.append(str(error))
        now, before = state.request(), state.outcome
        if before is not None and (
            before.request == now
            or (before.request.system is now.system and now.system.seconds(now.values).seconds > LONG)
        ):
            return  # the page asks for it, and can be asked to cancel it
        try:
            state.update()
        except (ValueError, OverflowError, MemoryError) as error:
            self.faults.append(str(error))
            state.choose(first[0], **first[1])
            state.update()

    def part(self, name: str, slices: Slices | None, default: Range | None) -> Range | None:
        """Return the slice or chip of a parameter, None for all of them."""
        key = self.known.get(name)
        if slices is None or not key or key == "all":
            return None if key == "all" else default
        try:
            return slices.of_key(key)
        except ValueError as error:
            self.faults.append(str(error))
            return default

    def arrangement(self) -> Arrangement:
        """Return the arrangement of panels; unknown names are ignored."""
        names = {key: tuple(filter(None, self.known.get(key, "").split(","))) for key in (*COLUMNS, "hidden")}
        split = self.take("width", map(str, range(SPLITS[0], SPLITS[1] + 1)))
        order = {key: names[key] for key in COLUMNS}
        more = {} if split is None else {"split": int(split)}
        return Arrangement(order, frozenset(names["hidden"]), self.known.get("enlarged"), **more)


def written(arrangement: Arrangement) -> dict[str, str]:
    """Return the parameters of the address for an arrangement."""
    known: dict[str, str] = {key: ",".join(arrangement.order[key]) for key in COLUMNS}
    known |= {"hidden": ",".join(sorted(arrangement.hidden)), "enlarged": arrangement.enlarged or ""}
    return {name: value for name, value in known.items() if value} | {"width": str(arrangement.split)}
