"""Clusters as gates for other programs: Gating-ML 2.0."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, indent

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import gammaincinv

from daskclust.core.data.inputs import cells_of
from daskclust.core.device.arrays import is_dask
from daskclust.io.blocks import Block, blocks_of
from daskclust.io.cytometry.rows import labels_of
from daskclust.io.cytometry.transform import check_cells
from daskclust.io.replacing import replacing

Array = npt.NDArray[Any]

_ISAC = "http://www.isac-net.org/std/Gating-ML/v2.0/"
_PREFIXES = {"gating": "gating", "transforms": "transformations", "data-type": "datatypes"}
_TRANSFORM = "arcsinh"


def write_gatingml(
    ds: xr.Dataset, path: str | os.PathLike[str], labels: Any = None, *, fraction: float = 0.95, raw: bool = True
) -> None:
    r"""Write clusters of cells as ellipsoid gates of Gating-ML 2.0, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        Cells: ``X`` (cell, channel) with names of channels, numpy or dask, and the attributes of `open_fcs`, which tell
        how values were made. Channels in ``attrs["not_clustered"]`` are left out; two at least must be there.
    path : str or path
        The file. One that exists is replaced.
    labels : array_like of int, shape (n,), optional
        Clusters; -1 is noise, which has no gate. Default: the variable ``label``.
    fraction : float, default 0.95
        How much of a normal distribution with the mean and the covariance of a cluster is within its gate.
    raw : bool, default True
        Whether gates are for files of the cytometer: they say, then, that values are to be compensated by the matrix of
        the file and transformed as those of `ds` were. False: they are for values as `ds` has them, such as in a file
        of `write_cells`.

    Raises
    ------
    OSError
        Where the folder is missing, or may not be written to.
    TypeError, ValueError
        For arrays on a GPU, cells without names of channels, labels of another length, no clusters, clusters whose
        covariance is singular, and `raw` gates where no attribute has the matrix or the scale that made the values.

    Notes
    -----
    Gate ``cluster_3`` holds the cells with :math:`(x - m)^T C^{-1} (x - m) \le q`: m and C are the mean and the
    covariance (1/n) of cluster 3, q is the quantile of the :math:`\chi^2` distribution for `fraction`. Names of
    dimensions are those of detectors ($PnN). arcsinh(x / c) is ``fasinh`` with T = c sinh(1), M = 1 / ln(10), A = 0.
    Gates may overlap; `daskclust.MahalanobisHCA.predict` gives each cell one cluster. Cells are read once, by chunks.

    References
    ----------
    Spidlen et al., "ISAC's Gating-ML 2.0 data exchange standard for gating description", Cytometry A 87 (2015),
    doi:10.1002/cyto.a.22690.

    Examples
    --------
    >>> write_gatingml(cells.clust.hca(100, n_clusters=8, min_size=30), "gates.xml")  # doctest: +SKIP
    """
    check_cells(ds, "write_gatingml")
    X = cells_of(ds)
    n, d = X.shape
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be between 0 and 1, got {fraction!r}")
    if labels is None and "label" not in ds:
        raise ValueError("the Dataset has no variable label; give labels=")
    numbers = labels_of(ds["label"] if labels is None else labels, n)
    channels = X.data.rechunk({1: -1}) if is_dask(X.data) else X.data
    cells = xr.Dataset({"X": (("cell", "channel"), channels), "label": ("cell", numbers)})
    clusters = _moments(blocks_of(cells, "cell"))
    flat = [label for label, (size, _, covariance) in clusters.items() if _is_singular(size, covariance)]
    if flat or d < 2 or not clusters:
        what = f"clusters {', '.join(map(str, flat))} are flat" if flat else f"got {len(clusters)} in {d} channels"
        raise ValueError(
            f"gates are of clusters with a volume in 2 channels or more, {what}; cut with a larger min_size"
        )
    dimensions = _dimensions(ds.attrs, X, raw)
    gates = [_fasinh(ds.attrs["cofactor"])] if raw and ds.attrs.get("transform") == _TRANSFORM else []
    square = float(2 * gammaincinv(d / 2, fraction))
    gates += [_gate(label, dimensions, *clusters[label][1:], square) for label in sorted(clusters)]
    root = _element("gating:Gating-ML", gates, {f"xmlns:{own}": _ISAC + name for own, name in _PREFIXES.items()})
    indent(root)
    with replacing(Path(path)) as stream:
        ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)


def _dimensions(attrs: Mapping[str, Any], X: xr.DataArray, raw: bool) -> list[tuple[dict[str, str], str]]:
    """Return the attributes of each channel as a dimension of gates, and the name of its detector."""
    compensation, transform = (attrs.get(name, "none") if raw else "none" for name in ("compensation", "transform"))
    is_curved = transform == _TRANSFORM
    by = "matrix" * (compensation == "given") or "cofactor" * (is_curved and "cofactor" not in attrs)
    if by or not (is_curved or transform == "none"):
        raise ValueError(
            f"values were made by a {by or 'function'} that no attribute has; give raw=False, for files of write_cells"
        )
    linear = {"gating:compensation-ref": "FCS" if compensation == "file" else "uncompensated"}
    curved = linear | ({"gating:transformation-ref": _TRANSFORM} if is_curved else {})
    names = X["channel"].values.tolist()
    detectors = X["detector"].values.tolist() if "detector" in X.coords else names
    kept = np.atleast_1d(attrs.get("linear", ())).tolist()  # one name may be a text
    return [(linear if name in kept else curved, str(own)) for name, own in zip(names, detectors, strict=True)]


def _moments(blocks: Iterable[Block]) -> dict[int, tuple[int, Array, Array]]:
    """Return the size, the mean and the covariance of each cluster but noise."""
    found: dict[int, tuple[int, Array, Array]] = {}
    for block in blocks:
        order = np.argsort(block["label"], kind="stable")
        labels, starts = np.unique(block["label"][order], return_index=True)
        parts = np.split(block["X"][order].astype(np.float64), starts[1:])
        for label, members in zip(labels.tolist(), parts, strict=False):
            if label >= 0:
                size, mean = len(members), members.mean(axis=0)
                before, centre, covariance = found.get(label, (0, mean, 0.0))
                steps, total = members - mean, before + size
                step, scatter = mean - centre, before * covariance + steps.T @ steps
                scatter += np.outer(step, step) * (before * size / total)
                found[label] = total, centre + step * (size / total), scatter / total
    return found


def _is_singular(size: int, covariance: Array) -> bool:
    """Return whether a cluster has no volume; channels of any scale count alike."""
    spread = np.sqrt(np.diagonal(covariance))
    if size <= len(covariance) or not (np.isfinite(covariance).all() and spread.all()):
        return True
    return bool(np.linalg.matrix_rank(covariance / np.outer(spread, spread), hermitian=True) < len(covariance))


def _fasinh(cofactor: float) -> Element:
    scale = {"T": float(cofactor) * math.sinh(1.0), "M": 1 / math.log(10.0), "A": 0.0}
    function = Element("transforms:fasinh", {f"transforms:{name}": repr(value) for name, value in scale.items()})
    return _element("transforms:transformation", [function], {"transforms:id": _TRANSFORM})


def _gate(
    label: int, dimensions: list[tuple[dict[str, str], str]], mean: Array, covariance: Array, square: float
) -> Element:
    parts = [
        _element("gating:dimension", [Element("data-type:fcs-dimension", {"data-type:name": detector})], attributes)
        for attributes, detector in dimensions
    ]
    rows = [_element("gating:row", _values("gating:entry", row)) for row in covariance]
    parts += [_element("gating:mean", _values("gating:coordinate", mean)), _element("gating:covarianceMatrix", rows)]
    parts += _values("gating:distanceSquare", np.array([square]))
    return _element("gating:EllipsoidGate", parts, {"gating:id": f"cluster_{label}"})


def _values(name: str, values: Array) -> list[Element]:
    return [Element(name, {"data-type:value": repr(value)}) for value in values.tolist()]


def _element(name: str, children: Iterable[Element], attributes: Mapping[str, str] = MappingProxyType({})) -> Element:
    element = Element(name, dict(attributes))
    element.extend(children)
    return element
