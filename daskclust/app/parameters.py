"""What a system can be asked for: names, ranges and units of its parameters, without any widget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

Scale = Literal["linear", "log", "whole", "choice", "several"]

STEPS = 200  # of a slider


@dataclass(frozen=True)
class Parameter:
    """One parameter of a system, named as the function that clusters has it."""

    name: str
    scale: Scale  # numbers evenly or in the logarithm, whole numbers, one of `choices`, or several of them
    default: Any
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()
    unit: str = ""
    doc: str = ""
    when: tuple[str, Any] | None = None  # the choice, and its value, for which it has a meaning

    def checked(self, value: Any) -> Any:
        """Return a valid value, or raise."""
        if self.scale == "choice":
            if value not in self.choices:
                raise ValueError(f"{self.name} must be one of {', '.join(map(repr, self.choices))}, got {value!r}")
            return value
        if self.scale == "several":
            return self._several(value)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must be a number, got {value!r}") from None
        if not math.isfinite(number):
            raise ValueError(f"{self.name} must be finite, got {value!r}")
        return round(number) if self.scale == "whole" else number

    def _several(self, value: Any) -> tuple[Any, ...]:
        names = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
        if unknown := [name for name in names if name not in self.choices]:
            raise ValueError(f"{self.name} must be among {', '.join(self.choices)}, got {unknown[0]!r}")
        if not names:
            raise ValueError(f"{self.name} must be one or more of {', '.join(self.choices)}, got none")
        return tuple(each for each in self.choices if each in names)

    def written(self, value: Any) -> str:
        """Return a value as text, for an address."""
        return ",".join(quote(str(each)) for each in value) if self.scale == "several" else str(value)

    def read(self, text: str) -> Any:
        """Return the value of a text; what is not understood stays text, which `checked` refuses."""
        if self.scale == "several":
            return [unquote(each) for each in text.split(",") if each]
        return next((choice for choice in self.choices if str(choice) == text), text)

    def digit(self, value: float) -> float:
        """Return the power of ten of the last digit that a step of the slider changes at a value."""
        if self.scale == "whole":
            return 1.0
        is_log = self.scale == "log" and self.low > 0
        step = abs(value) * math.log(self.high / self.low) if is_log and value else self.high - self.low
        return 10.0 ** math.floor(math.log10(step / STEPS)) if step else 1.0

    def short(self, value: float) -> Any:
        """Return a value rounded to the digits that a step of the slider changes."""
        number = round(value, -round(math.log10(self.digit(value))))
        return int(number) if self.scale == "whole" else number


def complete(parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each parameter: the given one, or its default."""
    names = [parameter.name for parameter in parameters]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(names)}")
    return {each.name: each.checked(given.get(each.name, each.default)) for each in parameters}


def rounded(value: float, digits: int = 3) -> float:
    """Return a number rounded to significant digits."""
    return float(f"{value:.{digits}g}")
