"""Noisy pixels of the hits that ``daskclust events`` reads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from daskclust.cli.pixels.in_time import in_windows

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._job import Job
    from daskclust.cli.pixels.in_time import Prepare
    from daskclust.cli.pixels.options import Pixels

_MUCH = 0.05  # of the hits on noisy pixels are worth a note
_NAMED = 8  # pixels in a note

logger = logging.getLogger(__name__)


class NoisyPixels:
    """Hits of noisy pixels: they are left out where an option says so, and else counted for a note."""

    def __init__(self, pixels: Pixels) -> None:
        self._most, mask = pixels.max_pixel_hits, pixels.mask_pixels
        self.finds = self._most is not None or mask == "auto"
        self._counts: list[Any] = []
        self._mask, self._left_out = None, list[int]()
        if mask not in (None, "auto"):
            from daskclust import io
            from daskclust.io.outputs.own_columns import own_columns
            from daskclust.properties._noisy import count_pixels

            own, place = own_columns(str(mask)), (io.TIMEPIX.find(name) for name in ("x", "y", "chip"))
            names = {alias: each.name for each in place if each is not None for alias in each.aliases}
            columns = {name: names[name.lower()] for name in (own.columns if own else ()) if name.lower() in names}
            self._mask = count_pixels(io.read_hits(str(mask), field="calorimeter", columns=columns or None)) > 0

    def count_all(self, data: xr.Dataset, job: Job) -> None:
        """Count the hits of a file, where some are to be left out."""
        job.work.begin(f"counting hits of pixels of {job.name}")
        places = data[[name for name in ("x", "y", "toa", "chip") if name in data.variables]]
        for hits in [places] if job.run.is_on_dask else in_windows(places, job):
            self._count(hits)

    def _count(self, hits: xr.Dataset) -> None:
        from daskclust.properties._noisy import added, count_pixels

        self._counts = [added([*self._counts, count_pixels(hits)])]

    def around(self, prepare: Prepare, *, lazy: bool = False) -> Prepare:
        """Return a preparation of hits that leaves out those of noisy pixels, or counts them."""
        from daskclust.properties._noisy import without_noisy, without_pixels

        def prepare_some(hits: xr.Dataset) -> xr.Dataset:
            if self._mask is not None:
                quiet = without_pixels(hits, self._mask)
                self._left_out.append(quiet.attrs["noisy_hits"])
                return prepare(quiet)
            if self.finds:
                return prepare(without_noisy(hits, self._counts[0], self._most))
            if not lazy:
                self._count(hits)
            return prepare(hits)

        return prepare_some

    @property
    def attrs(self) -> dict[str, Any]:
        """What is told of the pixels that were left out, as by `mask_noisy_pixels`."""
        from daskclust.properties._noisy import pixels_above

        if self._mask is not None:
            return {"noisy_pixels": int(self._mask.sum()), "noisy_hits": sum(self._left_out)}
        if not self.finds:
            return {}
        noisy = pixels_above(self._counts[0], self._most)
        return {**noisy.attrs, "noisy_pixels": noisy.sizes["pixel"]}

    def report(self, job: Job) -> None:
        """Put what was left out into the summary; else note pixels that have a good part of the hits."""
        from daskclust.properties._noisy import pixels_above

        if told := self.attrs:
            told = {name: told[name] for name in ("noisy_pixels", "noisy_hits")}
            job.summary = {**job.summary, "hits": job.summary["hits"] + told["noisy_hits"], **told}
            return
        if not self._counts:
            return
        noisy = pixels_above(self._counts[0], self._most)
        count, hits = noisy.sizes["pixel"], noisy.attrs["noisy_hits"]
        share = hits / max(1, int(self._counts[0].sum()))
        if share < _MUCH:
            return
        columns = [noisy[name].values[:_NAMED].tolist() for name in ("chip", "x", "y")]
        is_one_chip = self._counts[0].shape[0] == 1
        names = [
            f"({x}, {y})" if is_one_chip else f"({x}, {y}) of chip {chip}" for chip, x, y in zip(*columns, strict=True)
        ]
        logger.warning(
            "%s %.0f%% of the hits: %s%s; --max-pixel-hits %d leaves them out",
            f"{count} pixels have" if count > 1 else "one pixel has",
            100 * share,
            ", ".join(names),
            f" and {count - _NAMED} more" if count > _NAMED else "",
            noisy.attrs["max_pixel_hits"],
        )
