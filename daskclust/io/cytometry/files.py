"""Cells of flow and mass cytometers from and to files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import xarray as xr

from daskclust.core.data.files import PARQUET, TEXT, check_file
from daskclust.io.attrs import unpack
from daskclust.io.cytometry.fcs import FcsLayout, events_of, is_fcs, read_layout, spillover_of
from daskclust.io.cytometry.gmhc import read_gmhc
from daskclust.io.cytometry.rows import (
    FIELD,
    VARIABLES,
    cells_dataset,
    check_chunks,
    choose_channels,
    whole_column,
)
from daskclust.io.cytometry.tables import read_csv, read_parquet
from daskclust.io.cytometry.transform import (
    Preparation,
    arcsinh_transform,
    check_untransformed,
    curved_channels,
    told,
    unmixing,
)
from daskclust.io.cytometry.write import KEYWORD

_AGAIN = "transforming them again"


def open_fcs(
    path: str | os.PathLike[str],
    *,
    channels: str | Sequence[str] | None = None,
    compensate: Any = True,
    transform: Literal["arcsinh"] | None = "arcsinh",
    cofactor: float = 150.0,
    linear: str | Sequence[str] | None = None,
    data_set: int | None = None,
    chunks: int | Literal["auto"] | None = None,
) -> xr.Dataset:
    """Open the cells of an FCS file: compensated and transformed, as programs for cytometry show them.

    Parameters
    ----------
    path : str or path
        FCS 2.0 to 3.2, with whole numbers of 1 to 64 bits or floats.
    channels : str or sequence of str, optional
        Names of markers ($PnS) or detectors ($PnN), or patterns such as ``"CD*"``; channels come in this order.
    compensate : bool, or matrix, default True
        True compensates by the file's own spillover matrix ($SPILLOVER, SPILL), if any, False never; or the matrix to
        use, as `daskclust.io.compensate` takes it.
    transform, cofactor, linear
        ``"arcsinh"``, as of `daskclust.io.arcsinh_transform`, or None, which leaves values as they are.
    data_set : int, optional
        Which data set, from 0, of a file that has several ($NEXTDATA).
    chunks : int or "auto", optional
        Cells per chunk of a Dataset of dask arrays, each of which reads its own rows; ``"auto"`` means 100 000. By
        default all are in memory.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32 where the file has these, else float64. ``channel`` has the names of markers, or
        those of detectors where there are none; ``detector`` these, where there are markers. ``attrs`` have
        ``fcs_version``, ``transform``, ``cofactor`` and ``linear`` (the channels that stayed), ``compensation``
        (``"file"``, ``"given"`` or ``"none"``), ``cytometer`` and ``date`` where the file tells them,
        and ``fcs_notes`` where it is read in another way than it is written: names that are there twice, empty values.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where `path` is no file.
    ValueError
        For damaged files, those that claim more events than they hold, other versions and types of numbers, several
        data sets without `data_set`, unknown channels, a matrix without inverse, and wrong options.

    Notes
    -----
    Whole numbers are cut to the bits of their range ($PnR) and taken back through a logarithmic amplifier ($PnE).
    Others, and floats always, are divided by the gain ($PnG); ``Time`` is multiplied by $TIMESTEP. Then they are
    compensated, then transformed, in float64. Not read are histograms, text ($DATATYPE A), and $COMP of FCS 3.0, which
    does not name its channels.

    References
    ----------
    Spidlen et al., "Data File Standard for Flow Cytometry, version FCS 3.1", Cytometry A 77 (2010),
    doi:10.1002/cyto.a.20825.

    Examples
    --------
    >>> ds = open_fcs("cells.fcs", channels=["CD3", "CD19"], cofactor=5.0)  # doctest: +SKIP
    """
    name, wanted = os.fspath(path), check_chunks(chunks)
    check_file(name)
    layout = read_layout(name, data_set)
    chosen = choose_channels(channels, layout.names, name)
    return _fcs_dataset(layout, chosen, compensate, transform, cofactor, linear, {}, wanted)


def _fcs_dataset(
    layout: FcsLayout,
    chosen: Sequence[int],
    compensate: Any,
    transform: Any,
    cofactor: Any,
    linear: Any,
    variables: Mapping[str, Any],
    chunks: int | None,
) -> xr.Dataset:
    """Return the data set of chosen channels of a file, with the attributes that tell what is done to them."""
    name, names = layout.path, layout.names
    attrs = unpack(layout.text.get(KEYWORD), name)[0]
    if transform is not None:
        check_untransformed(attrs, name, _AGAIN)
    curved = curved_channels(transform, cofactor, linear, names, name)
    if compensate is None or isinstance(compensate, str):
        raise ValueError(f"compensate must be True, False or a spillover matrix, got {compensate!r}")
    whose, spillover = "given", compensate
    if isinstance(compensate, bool):
        whose, spillover = "file", spillover_of(layout) if compensate else None
    preparation = Preparation(curved=curved, cofactor=float(cofactor) if curved else 1.0)
    if spillover is not None:
        default = curved_channels("arcsinh", 1.0, None, names, name)
        mixed, inverse = unmixing(spillover, names, default, name)
        preparation = replace(preparation, mixed=mixed, inverse=inverse)
    attrs["fcs_version"] = layout.version
    attrs |= {"fcs_notes": list(layout.notes)} if layout.notes else {}
    attrs["compensation"] = attrs.get("compensation", "none") if spillover is None else whose
    if transform is not None:
        attrs |= told([k for k, own in enumerate(chosen) if own in curved], cofactor, [names[k] for k in chosen])
    attrs.setdefault("transform", "none")
    told_by_file = {"cytometer": "cyt", "date": "date"}
    attrs |= {ours: layout.text[key] for ours, key in told_by_file.items() if layout.text.get(key, "").strip()}
    X = events_of(layout, preparation, chosen, chunks)
    own, detectors = [names[k][0] for k in chosen], [layout.detectors[k] for k in chosen]
    return cells_dataset(X, own, {**attrs, "field": FIELD, "source": name}, variables, detectors)


def read_cells(
    path: str | os.PathLike[str],
    *,
    channels: str | Sequence[str] | None = None,
    apriori: str | None = None,
    transform: Literal["arcsinh"] | None = None,
    cofactor: float = 150.0,
    chunks: int | Literal["auto"] | None = None,
) -> xr.Dataset:
    r"""Read cells from a table, an FCS file, or a file of gmhclust.

    Parameters
    ----------
    path : str or path
        - ``.csv``, ``.tsv``, ``.txt``: numbers with commas, semicolons, tabs or spaces between them, a column for each
          channel, with or without names in the first line.
        - ``.parquet``, ``.pq``: a column of numbers for each channel.
        - What begins as an FCS file, whatever its extension: as `open_fcs` reads it, compensated by its own matrix.
        - Anything else: a file of gmhclust, as `read_gmhc` reads it.
    channels : str or sequence of str, optional
        Names of channels, or patterns such as ``"CD*"``; they come in this order. All columns by default.
    apriori : str, optional
        The column that has apriori clusters, whole numbers.
    transform : {"arcsinh", None}, default None
        None takes values as they are; ``"arcsinh"`` transforms all but time and scatter.
    cofactor
        As of `daskclust.io.arcsinh_transform`.
    chunks : int or "auto", optional
        Cells per chunk of a Dataset of dask arrays; ``"auto"`` means about 100 000, in whole row groups of Parquet. By
        default all are read into memory; text always is.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32 where the file has these, else float64; ``channel`` are the names, or
        ``channel_1``, ``channel_2`` ... where the file has none. ``apriori``, ``population`` and ``label`` (cell),
        int64, are columns with these names, unless `channels` are chosen; then `apriori` alone is read beside them.
        NaN and inf are kept: estimators refuse them.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, ImportError
        Where `path` is no file, or the library for the format is missing.
    ValueError
        For damaged files, text that is no number (with line and column), unknown channels, columns that are no numbers,
        or no whole ones where they must be (with the row), values that are transformed already, and wrong options.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "cells.csv")
    ...     _ = file.write_text("CD3,CD4,apriori\n0.5,1.5,7\n0.75,2.5,8\n")
    ...     ds = read_cells(file)
    >>> ds["channel"].values.tolist(), ds["X"].values[1], ds["apriori"].values
    (['CD3', 'CD4'], array([0.75, 2.5 ]), array([7, 8]))
    """
    name, wanted = os.fspath(path), check_chunks(chunks)
    check_file(name)
    suffix = os.path.splitext(name)[1].lower()
    if is_fcs(name):
        return _read_fcs_cells(name, channels, apriori, transform, cofactor, wanted)
    if suffix in PARQUET:
        ds = read_parquet(name, channels, apriori, wanted)
    elif suffix in TEXT:
        ds = read_csv(name, channels, apriori)
        ds = ds if wanted is None else ds.chunk({"cell": int(wanted), "channel": -1}, name_prefix="daskclust-io-")
    else:
        if apriori is not None:
            raise ValueError(
                f"{name} would be a file of gmhclust, which has no column {apriori!r}; use read_gmhc with assignments="
            )
        ds = read_gmhc(name, chunks=chunks)
        if channels is not None:
            ds = ds.isel(channel=choose_channels(channels, [(str(own),) for own in ds["channel"].values], name))
    if transform is None:
        return ds
    check_untransformed(ds.attrs, name, _AGAIN)
    curved_channels(transform, cofactor, None, [], name)  # checks the names of options
    return arcsinh_transform(ds, cofactor)  # type: ignore[no-any-return]


def _read_fcs_cells(
    name: str, channels: Any, apriori: str | None, transform: Any, cofactor: Any, chunks: int | None
) -> xr.Dataset:
    """Return the cells of an FCS file, with columns that are no channels beside them."""
    layout = read_layout(name, None)
    names = layout.names
    beside: dict[str, int] = {}
    if channels is None:
        beside = {ours: k for k, own in enumerate(names) for ours in VARIABLES if ours == own[0]}
    if apriori is not None:
        beside["apriori"] = choose_channels(apriori, names, name)[0]
    left = [k for k in range(len(names)) if k not in beside.values()]
    chosen = [left[k] for k in choose_channels(channels, [names[k] for k in left], name)]
    curved = curved_channels("arcsinh", 1.0, None, names, name)
    linear = [own[0] for k, own in enumerate(names) if k not in curved or k in beside.values()]
    variables = {
        ours: whole_column(events_of(layout, Preparation(), [k], chunks)[:, 0], names[k][0], name)
        for ours, k in beside.items()
    }
    return _fcs_dataset(layout, chosen, True, transform, cofactor, linear, variables, chunks)
