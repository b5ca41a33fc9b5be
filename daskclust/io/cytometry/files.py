"""Cells of flow and mass cytometers from and to files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import xarray as xr

from daskclust.core.data.inputs import NOT_CLUSTERED
from daskclust.core.data.quote import quoted
from daskclust.io.attrs import unpack
from daskclust.io.cytometry.fcs import FcsLayout, events_of, is_fcs, read_layout
from daskclust.io.cytometry.gmhc import read_gmhc
from daskclust.io.cytometry.rows import AUTO_CELLS, FIELD, VARIABLES, cells_dataset, choose_channels, column_beside
from daskclust.io.cytometry.spillover import Unmixing, unmixing, unmixing_of
from daskclust.io.cytometry.tables import read_table
from daskclust.io.cytometry.transform import (
    Preparation,
    arcsinh_transform,
    aside,
    check_untransformed,
    curved_channels,
    told,
)
from daskclust.io.cytometry.write import KEYWORD
from daskclust.io.files import READABLE, check_file, is_store, split_member
from daskclust.io.rows import rows_of_chunk
from daskclust.io.several import takes_several

_AGAIN = "transforming them again"
_FCS = (".fcs", ".lmd")


@takes_several(*_FCS, about=AUTO_CELLS)
def open_fcs(
    path: str | os.PathLike[str],
    *,
    channels: str | Sequence[str] | None = None,
    compensate: Any = "auto",
    transform: Literal["auto", "arcsinh"] | None = "auto",
    cofactor: float = 150.0,
    linear: str | Sequence[str] | None = None,
    data_set: int | None = None,
    chunks: int | Literal["auto"] | None = None,
) -> xr.Dataset:
    """Open the cells of an FCS file: compensated and transformed, as programs for cytometry show them.

    Parameters
    ----------
    path : str or path, or list of these
        FCS 2.0 to 3.2, with whole numbers of 1 to 64 bits or floats. Several files, a list, a glob or a folder, become
        one data set as of `read_hits`; they have the same channels, in any order.
    channels : str or sequence of str, optional
        Names of markers ($PnS) or detectors ($PnN), or patterns such as ``"CD*"``; channels come in this order.
    compensate : "auto", bool, or matrix, default "auto"
        ``"auto"`` compensates by the file's own spillover matrix ($SPILLOVER, SPILL), if any, and warns where it cannot
        be used. True is an error then, and for values that were compensated before. False does not compensate. Or the
        matrix to use, as `daskclust.io.compensate` takes it.
    transform, cofactor, linear
        ``"arcsinh"``, as of `daskclust.io.arcsinh_transform`, or None, which leaves values as they are. ``"auto"`` is
        ``"arcsinh"``, unless the file was written by `daskclust.io.write_cells` with transformed values.
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
        (``"file"``, ``"given"``, ``"before"`` for values that were compensated, or ``"none"``), ``cytometer`` and
        ``date`` where the file tells them, and ``fcs_notes`` where it is read in another way than it is written: names
        that are there twice, empty values. Without `channels` also ``not_clustered``: time, scatter and shapes of
        pulses, which `daskclust.MahalanobisHCA`, ``ds.clust.hca`` and the explorer leave out.

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
    compensated, then transformed, in float64. Not read are histograms and text ($DATATYPE A). Names in a spillover
    matrix are those of detectors or markers, in any case, or numbers of channels. Values count as compensated before
    where the matrix is of channels named ``Comp-...`` (FlowJo), and where $COMP of FCS 3.0 or $DFCmTOn of FCS 2.0 tells
    what the cytometer subtracted.

    References
    ----------
    Spidlen et al., "Data File Standard for Flow Cytometry, version FCS 3.1", Cytometry A 77 (2010),
    doi:10.1002/cyto.a.20825.

    Examples
    --------
    >>> ds = open_fcs("cells.fcs", channels=["CD3", "CD19"], cofactor=5.0)  # doctest: +SKIP
    """
    name, wanted = os.fspath(path), rows_of_chunk(chunks, AUTO_CELLS, "cells")
    check_file(name)
    layout = read_layout(name, data_set)
    chosen = choose_channels(channels, layout.names, name)
    unmixed = _unmixing(layout, compensate)
    return _fcs_dataset(layout, chosen, channels is None, unmixed, transform, cofactor, linear, {}, wanted)


def _unmixing(layout: FcsLayout, compensate: Any) -> tuple[Unmixing | None, str]:
    """Return how a file is compensated, and by whom; warn for a reader where its own matrix cannot be used."""
    name, names = layout.path, layout.names
    if compensate is None or (isinstance(compensate, str) and compensate != "auto"):
        raise ValueError(f"compensate must be 'auto', True, False or a spillover matrix, got {compensate!r}")
    if not isinstance(compensate, bool | str):
        return unmixing(compensate, names, curved_channels("arcsinh", 1.0, None, names, name), name), "given"
    if compensate is False:
        return None, "none"
    try:
        found, whose = unmixing_of(layout)
        if compensate is True and whose == "before":
            raise ValueError(f"{name} has values that were compensated before it was written")
    except ValueError as error:
        if compensate is True:
            raise ValueError(f"{error}; leave compensation out with compensate=False") from None
        warnings.warn(f"{error}: values are not compensated", stacklevel=4)
        return None, "none"
    return found, whose


def _fcs_dataset(
    layout: FcsLayout,
    chosen: Sequence[int],
    is_all: bool,
    unmixed: tuple[Unmixing | None, str],
    transform: Any,
    cofactor: Any,
    linear: Any,
    variables: Mapping[str, Any],
    chunks: int | None,
) -> xr.Dataset:
    """Return the data set of chosen channels of a file, with the attributes that tell what is done to them."""
    name, names = layout.path, layout.names
    attrs = unpack(layout.text.get(KEYWORD), name)[0]
    if transform == "auto":
        transform = "arcsinh" if attrs.get("transform", "none") == "none" else None
    if transform is not None:
        check_untransformed(attrs, name, _AGAIN)
    curved = curved_channels(transform, cofactor, linear, names, name)
    (mixed, inverse), whose = unmixed[0] or ((), ()), unmixed[1]
    preparation = Preparation(mixed, inverse, curved, float(cofactor) if curved else 1.0)
    attrs["fcs_version"] = layout.version
    attrs |= {"fcs_notes": list(layout.notes)} if layout.notes else {}
    attrs["compensation"] = attrs.get("compensation", "none") if whose == "none" else whose
    attrs.pop(NOT_CLUSTERED, None)
    attrs |= aside(chosen, names) if is_all else {}
    if transform is not None:
        attrs |= told([k for k, own in enumerate(chosen) if own in curved], cofactor, [names[k] for k in chosen])
    attrs.setdefault("transform", "none")
    told_by_file = {"cytometer": "cyt", "date": "date"}
    attrs |= {ours: layout.text[key] for ours, key in told_by_file.items() if layout.text.get(key, "").strip()}
    X = events_of(layout, preparation, chosen, chunks)
    own, detectors = [names[k][0] for k in chosen], [layout.detectors[k] for k in chosen]
    return cells_dataset(X, own, {**attrs, "field": FIELD, "source": name}, variables, detectors)


@takes_several(*_FCS, *READABLE, about=AUTO_CELLS)
def read_cells(
    path: str | os.PathLike[str],
    *,
    channels: str | Sequence[str] | None = None,
    apriori: str | None = None,
    compensate: Any = "auto",
    transform: Literal["auto", "arcsinh"] | None = "auto",
    cofactor: float = 150.0,
    data_set: int | None = None,
    chunks: int | Literal["auto"] | None = None,
) -> xr.Dataset:
    r"""Read cells from a table, an FCS file, or a file of gmhclust.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `open_fcs`.

        - ``.csv``, ``.tsv``, ``.txt``: numbers with commas, semicolons, tabs or spaces between them, a column for each
          channel, with or without names in the first line.
        - Other tables, of the extensions of `read_hits`, and zarr stores: a column of numbers for each channel.
        - What begins as an FCS file, whatever its extension: as `open_fcs` reads it.
        - Anything else: a file of gmhclust, as `read_gmhc` reads it.
    channels : str or sequence of str, optional
        Names of channels, or patterns such as ``"CD*"``; they come in this order. All columns by default.
    apriori : str, optional
        The column that has apriori clusters, whole numbers.
    compensate, data_set
        As of `open_fcs`, for FCS files alone.
    transform : {"auto", "arcsinh", None}, default "auto"
        ``"arcsinh"`` transforms all but time, scatter and shapes of pulses; None takes values as they are. ``"auto"``:
        as `open_fcs` does for FCS files, and None for all others, which do not tell whether they are transformed.
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
        int64, are columns with these names, and so are ``source`` and what ``ds.clust.hca``, ``hdbscan`` and ``dbscan``
        add, unless `channels` are chosen; then `apriori` alone is read beside them. NaN and inf are kept: estimators
        refuse them. ``attrs`` of FCS files, and of all that is transformed here, are those of `open_fcs`.

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
    name, wanted = os.fspath(path), rows_of_chunk(chunks, AUTO_CELLS, "cells")
    own, is_zarr = split_member(name)[0], is_store(name)
    if not is_zarr:
        check_file(own)
    suffix = os.path.splitext(own)[1].lower()
    if not is_zarr and is_fcs(own):
        layout = read_layout(name, data_set)
        unmixed = _unmixing(layout, compensate)
        chosen, variables = _columns_of_fcs(layout, channels, apriori, wanted)
        return _fcs_dataset(layout, chosen, channels is None, unmixed, transform, cofactor, None, variables, wanted)
    if is_zarr or suffix in READABLE:
        ds = read_table(name, channels, apriori, wanted)
    else:
        if apriori is not None:
            raise ValueError(
                f"{name} would be a file of gmhclust, which has no column {apriori!r}; use read_gmhc with assignments="
            )
        ds = read_gmhc(name, chunks=chunks)
    return prepared(ds, name, channels, compensate, transform, cofactor, data_set)


def prepared(
    ds: xr.Dataset,
    name: str,
    channels: Any = None,
    compensate: Any = "auto",
    transform: Any = "auto",
    cofactor: float = 150.0,
    data_set: int | None = None,
) -> xr.Dataset:
    """Return chosen channels of a file that is not FCS, transformed where that is asked for."""
    for option, value in (("data_set", data_set), ("compensate", compensate)):
        if value is not None and value is not False and str(value) != "auto":
            raise ValueError(f"{option} is for FCS files, and not for {name}, got {quoted(value)}; leave it out")
    own = [(str(each),) for each in ds["channel"].values]
    left_out = aside(range(len(own)), own) if channels is None else {}
    if channels is not None:
        ds = ds.isel(channel=choose_channels(channels, own, name))
        ds.attrs.pop(NOT_CLUSTERED, None)
    if transform is None or transform == "auto":
        return ds
    check_untransformed(ds.attrs, name, _AGAIN)
    curved_channels(transform, cofactor, None, [], name)  # checks the names of options
    return arcsinh_transform(ds, cofactor).assign_attrs(left_out)  # type: ignore[no-any-return]


def _columns_of_fcs(
    layout: FcsLayout, channels: Any, apriori: str | None, chunks: int | None
) -> tuple[list[int], dict[str, Any]]:
    """Return which columns of an FCS file are channels, and those that are none."""
    name, names = layout.path, layout.names
    beside: dict[str, int] = {}
    if channels is None:
        beside = {ours: k for k, own in enumerate(names) for ours in VARIABLES if ours == own[0]}
    if apriori is not None:
        beside["apriori"] = choose_channels(apriori, names, name)[0]
    left = [k for k in range(len(names)) if k not in beside.values()]
    chosen = [left[k] for k in choose_channels(channels, [names[k] for k in left], name)]
    variables = {
        ours: column_beside(events_of(layout, Preparation(), [k], chunks)[:, 0], names[k][0], name)
        for ours, k in beside.items()
    }
    return chosen, variables
