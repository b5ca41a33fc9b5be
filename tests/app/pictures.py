"""Pictures of the explorer's page: ``PYTHONPATH=tests python tests/app/pictures.py docs/howto/explorer``.

It makes those of all systems, light and dark, on a small and on a large screen.
"""

from __future__ import annotations

import io as bytes_io
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr
from app.page import Page, chromium, opened, serving
from cases.explorer import written
from PIL import Image

from daskclust import datasets

_COLORS = 192  # of a picture that is kept: it has few
_ROUNDS = 4  # of looking for these
SIZES = (1280, 720), (1920, 1080)


DATA: dict[str, Callable[[], xr.Dataset]] = {
    "clue": lambda: datasets.calorimeter(1, 6_000, size=250.0, rng=0),
    "events": lambda: datasets.timepix(40_000, rng=0),
    "fof": lambda: datasets.cosmology_box(100_000, rng=0),
    "dbscan": lambda: datasets.seed_spreader(50_000, 2, n_clusters=12.0, rng=1),
    "hdbscan": lambda: datasets.seed_spreader(2_000, 2, n_clusters=12.0, rng=1),
    "hca": lambda: datasets.cytometry(3_000, rng=0),
}
"""What is seen of each system."""


@contextmanager
def served(name: str, folder: Path) -> Iterator[str]:
    """Yield where the explorer of a system's file is."""
    with serving(written(name, DATA[name](), folder), "--system", name) as address:
        yield address


def picture(page: Page) -> Image.Image:
    """Return what is seen."""
    return Image.open(bytes_io.BytesIO(page.page.screenshot())).convert("RGB")


def main(target: Path) -> None:
    """Write pictures."""
    target.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for name in DATA:
            with served(name, Path(folder)) as address:
                for scheme, size in itertools.product(("light", "dark"), SIZES):
                    with opened(browser, address, scheme, size) as page:
                        if name == "clue":  # some points are chosen
                            page.drag(page.on(0, 0.4, 0.35), page.on(0, 0.6, 0.65))
                            page.at_rest()
                        seen = picture(page).quantize(_COLORS, kmeans=_ROUNDS, dither=Image.Dither.NONE)
                    seen.save(target / f"{name}_{scheme}_{size[0]}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
