"""Results in an AnnData, as scanpy's tools leave theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import plain
from daskclust.core.data.foreign import comes_from
from daskclust.core.device.arrays import to_host
from daskclust.io.cytometry.rows import labels_of
from daskclust.io.cytometry.transform import check_cells


def to_anndata(data: Any, estimator: Any = None, *, labels: Any = None, key_added: str = "daskclust") -> Any:
    """Put clusters into an AnnData, where scanpy's tools put theirs.

    Parameters
    ----------
    data : anndata.AnnData or xarray.Dataset
        Cells. An AnnData is changed, as scanpy does it; of a Dataset with ``X`` (cell, channel), numpy or dask, a new
        one is made, with variables of cells in ``obs``, names of detectors in ``var`` and attributes in ``uns``.
    estimator : fitted estimator, optional
        What was fitted on the cells. By default the Dataset has results: ``label``, and ``linkage``.
    labels : array_like of int, shape (n,), optional
        Clusters, such as another cut. Default: ``labels_``, or ``label``.
    key_added : str, default "daskclust"
        The name of the results.

    Returns
    -------
    anndata.AnnData
        ``obs[key_added]`` is a categorical of ``"0"``, ``"1"`` ..., missing (NaN) for noise; ``uns[key_added]`` has
        ``"params"``, and SciPy's ``"linkage"`` where there is a hierarchy. Dask arrays of results are computed.

    Raises
    ------
    ImportError
        Without anndata, where `data` is a Dataset.
    TypeError, ValueError
        For other data, without results, and for labels of another length or below -1.

    Examples
    --------
    >>> hca = MahalanobisHCA(100).fit(adata)  # doctest: +SKIP
    >>> to_anndata(adata, hca, labels=hca.labels(n_clusters=9, min_size=30)).obs["daskclust"]  # doctest: +SKIP
    """
    import dask
    import pandas as pd

    is_dataset = isinstance(data, xr.Dataset)
    if not is_dataset and not (comes_from(data, "anndata") and hasattr(data, "obs")):
        raise TypeError(f"data must be an AnnData or an xarray.Dataset, got {type(data)!r}")
    if estimator is not None:
        params = {"estimator": type(estimator).__name__, **estimator.get_params()}
        found, Z = estimator.labels_ if labels is None else labels, getattr(estimator, "linkage_", None)
    elif is_dataset and "label" in data:
        results = [data[name] for name in ("linkage", "label") if name in data]
        params = {key: value for each in results for key, value in each.attrs.items() if key not in _COMMON}
        found, Z = data["label"] if labels is None else labels, data["linkage"].data if len(results) > 1 else None
    else:
        raise ValueError("there are no results; give a fitted estimator, or a Dataset with the variable label")
    found, Z = dask.compute(plain("labels", found), Z)  # type: ignore[no-untyped-call,unused-ignore]
    adata = _annotated(data) if is_dataset else data
    numbers = labels_of(found, adata.n_obs)
    names = [str(number) for number in range(numbers.max(initial=-1) + 1)]
    adata.obs[key_added] = pd.Categorical.from_codes(numbers, names)
    adata.uns[key_added] = {"params": _storable(params), **({} if Z is None else {"linkage": to_host(Z)})}
    return adata


_COMMON = ("long_name", "units")  # attributes that all results have


def _annotated(ds: xr.Dataset) -> Any:
    """Return the cells of a Dataset, and what they have beside their label, as an AnnData."""
    import pandas as pd
    from anndata import AnnData

    names, X = check_cells(ds, "to_anndata"), ds["X"]
    beside = {str(name): ds[name].values for name in ds if ds[name].dims == X.dims[:1] and name != "label"}
    var = pd.DataFrame({"detector": [own[-1] for own in names]}, index=[own[0] for own in names])
    return AnnData(X.data, pd.DataFrame(beside, np.arange(len(X)).astype(str)), var, uns=_storable(ds.attrs))


def _storable(values: Any) -> dict[str, Any]:
    """Return values by name as files of AnnData can hold them, without those that are None."""
    kinds = (bool, int, float, str, np.generic, np.ndarray, list)
    return {
        str(name): value if isinstance(value, kinds) else repr(value)
        for name, value in values.items()
        if value is not None
    }
