"""Raw files of Timepix3 detectors, as SERVAL and SPIDR readouts write them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import xarray as xr

from daskclust.core.data.fields import TIMEPIX
from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.io.rows import rows_of_chunk
from daskclust.io.several import takes_several
from daskclust.io.timepix.tpx3.device import CELL_WORDS as DEVICE_CELL_WORDS
from daskclust.io.timepix.tpx3.device import read_on_device
from daskclust.io.timepix.tpx3.read import AUTO_HITS, lazy_columns, open_hits


@takes_several(".tpx3", about=AUTO_HITS)
def open_tpx3(
    path: str | os.PathLike[str],
    *,
    layout: Literal["chips", "quad"] = "chips",
    gap: int = 0,
    disorder: float = 600_000.0,
    chunks: int | Literal["auto"] | None = None,
    phase_correction: bool = False,
    on_reset: Literal["continue", "restart"] = "continue",
    like: Any = None,
) -> xr.Dataset:
    """Read the hits of a raw Timepix3 file (``.tpx3``), sorted by time.

    Parameters
    ----------
    path : str or path, or list of these
        The file: chunks of 64-bit words under headers ``TPX3``. It may begin and end within a chunk. Several files, a
        list, a glob or a folder, become one data set as of `read_hits`: times are those of each file.
    layout : {"chips", "quad"}, default "chips"
        ``"chips"``: `x` and `y` count the pixels of each chip, and chips are independent. ``"quad"``: `x` and `y` are
        common to the four chips of a quad detector; with g = `gap`, chip 0 is at (x + 256 + g, y), chip 1 at
        (511 + g - x, 511 + g - y), chip 2 at (255 - x, 511 + g - y), chip 3 at (x, y).
    gap : int, default 0
        Pixels that the space between the chips of a quad takes.
    disorder : float, default 600000.0
        Time in ns by which a hit may come after a later one. Hits that are later still are counted in
        ``attrs["n_late"]``, logged, and put in order all the same.
    chunks : int or "auto", optional
        Hits per chunk, about, of a Dataset of dask arrays; ``"auto"`` means 2 million. By default everything is read
        into memory.
    phase_correction : bool, default False
        Add ``(x // 2) % 16`` ticks of 1.5625 ns to each time of arrival (`x` of the chip).
    on_reset : {"continue", "restart"}, default "continue"
        What times do where global time jumps, because the clock was set anew or nothing came for longer than 53 s.
        ``"continue"``: each goes on from the one before by the shortest way. ``"restart"``: they are those of global
        time, after a clock that was set anew among those before, whose events have nothing to do with them.
    like : array, optional
        For a cupy array hits are decoded and sorted on its device, and the result is there; without `chunks`.

    Returns
    -------
    xarray.Dataset
        Variables of shape (n,) along ``hit``, sorted by ``toa``, and by place in the file where these are equal: ``x``,
        ``y`` (uint16, pixel), ``toa`` (float64, ns, multiples of 1.5625, exact up to 2**49 ns, 6.5 days), ``tot``
        (float32, ns, multiples of 25), ``chip`` (uint8). ``attrs`` hold ``layout``, ``gap`` of a quad, ``disorder``
        (ns, the largest time by which a hit comes after a later one) and counts: of words ``n_pixel`` (hits),
        ``n_tdc``, ``n_tdc_errors`` among them, ``n_global_time``, ``n_control``, ``n_count_fb`` (no hits),
        ``n_unknown``; of chunks ``n_chunks``, ``n_chunks_cut``; of bytes outside of chunks, ``n_bytes_skipped``, and of
        no whole word, ``n_bytes_truncated``; of late hits, ``n_late``; of jumps of global time, ``n_clock_jumps``, and
        lists of the first 100: ``clock_jump_hits``, how many hits stand before it in the file, ``clock_jump_from`` and
        ``clock_jump_to``, global time before and after it (ns).

    Raises
    ------
    OSError, ValueError
        Where `path` is no file, is empty or has no chunk of Timepix3 words; for chips that are no quad's.

    Notes
    -----
    Times of arrival wrap after 26.84 s, TDC times after 107.4 s. Every time is taken as the one nearest to the time of
    the word before it, of any chip. Multiples of 26.84 s are added to all times so that they agree with global time
    words, or with TDC words where there are none, and so that no time is negative.

    A chunk is taken as its header says where the next header, or the end of the file, stands at its end. If not, its
    words are taken up to the next header for which this holds; the chunk counts in ``n_chunks_cut``, and bytes in
    between in ``n_bytes_skipped``. 8 bytes for each chunk and each word, and the bytes counted, make up the file.

    The file is passed over once when it is opened; with `chunks`, workers must see the file.

    `phase_correction` is right where the chip ran with 16 clock phases, which reach double column after double column
    one tick later, and the readout has not corrected.

    Examples
    --------
    >>> hits = open_tpx3("run.tpx3", chunks="auto")  # doctest: +SKIP
    """
    name = os.fspath(path)
    wanted = rows_of_chunk(chunks, AUTO_HITS)
    if like is not None and wanted is not None:
        raise ValueError(f"like= reads all hits at once; leave chunks out, got chunks={chunks!r}")
    options: dict[str, Any] = {
        "layout": layout, "gap": gap, "disorder": disorder, "phase_correction": phase_correction,
        "on_reset": on_reset,
    }  # fmt: skip
    columns: Mapping[str, Any]
    if like is not None and is_cuda(like):
        hits = open_hits(name, cell_words=DEVICE_CELL_WORDS, **options)
        columns = read_on_device(hits, device_of(like))
    else:
        hits = open_hits(name, chunks=wanted, **options)
        columns = hits.whole().read() if wanted is None else lazy_columns(hits)
    about = TIMEPIX.attrs
    return xr.Dataset({key: ("hit", values, about[key]) for key, values in columns.items()}, attrs=hits.attrs(name))
