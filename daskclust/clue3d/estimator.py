"""The CLUE3D estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.clue3d.plan import ShowerPlan
from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.data.columns import groups, reals
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT, Points, read_points, split_points, table_of
from daskclust.core.data.lazy import map_points
from daskclust.core.data.nested import nest
from daskclust.core.data.units import in_unit, ratio
from daskclust.core.device.arrays import is_dask
from daskclust.core.run.engine import run
from daskclust.core.space.partition import Partition
from daskclust.estimator import Estimator

_AXES = ("x", "y", "z")
_FLAGS = (
    "density_on_same_layer", "nearest_higher_on_same_layer", "use_absolute_projective_scale",
    "use_cluster_dimension_xy",
)  # fmt: skip


class CLUE3D(Estimator):
    """Showers of a calorimeter, from the layer clusters of an event: CMS's CLUE3D [1]_ [2]_.

    The local density of a layer cluster is its own energy and, by a factor, that of layer clusters close to its line to
    the origin on the layers around. Its nearest higher is the closest one of higher density there. Dense ones far from
    any denser one are seeds of showers, sparse ones far from any denser one are outliers; every other one belongs where
    its nearest higher does. The two endcaps, z below and above 0, are apart.

    Parameters have the names of CMSSW's and the values of its iteration CLUE3DHigh; lengths are in cm, energies in GeV.

    Parameters
    ----------
    critical_density : float, default 0.6
        Density from which a layer cluster may be a seed, and below which it may be an outlier.
    critical_self_density : float, default 0.15
        A seed has more than this part of its density in its own energy.
    density_sibling_layers : int, default 3
        Layers on each side that densities and nearest highers are looked for on.
    density_eta_phi_distance_sqr : float, default 0.0008
        Squared distance in eta and phi below which energies count, without `use_absolute_projective_scale`.
    density_xy_distance_sqr : float, default 3.24
        Squared distance across below which energies count, in cm^2.
    kernel_density_factor : float, default 0.2
        Factor for the energies of all layer clusters but the one itself.
    density_on_same_layer : bool, default False
        Whether energies of other layer clusters on the same layer count.
    nearest_higher_on_same_layer : bool, default False
        Whether a nearest higher may be on the same layer.
    use_absolute_projective_scale : bool, default True
        Whether distances are across, in cm on the layer itself, to where lines to the origin meet it; or in eta, phi.
    use_cluster_dimension_xy : bool, default False
        Whether energies count within the radius of each layer cluster, which `fit` is then given; not in eta, phi.
    critical_eta_phi_distance : float, default 0.025
        A seed is farther than this from its nearest higher, without `use_absolute_projective_scale`.
    critical_xy_distance : float, default 1.8
        A seed is farther than this from its nearest higher, in cm.
    critical_z_distance_lyr : int, default 5
        Or it is more layers than this away from it.
    outlier_multiplier : float, default 2.0
        An outlier is farther than this many critical distances from its nearest higher.
    min_num_layer_cluster : int, default 2
        Showers of fewer layer clusters are noise.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Shower (trackster) of each layer cluster, numbered by the smallest index of a seed; noise is -1.
    density_ : array, shape (n,)
        Local density, in the precision of `X`.
    delta_ : array, shape (n,)
        Distance across to the nearest higher; inf where there is none.
    nearest_higher_ : array of int64, shape (n,)
        Index of the nearest higher, -1 where there is none.
    is_seed_ : array of bool, shape (n,)
        Whether the layer cluster is the seed of a shower.
    n_clusters_ : int
        Number of showers; a zero-dimensional dask array where `X` is a dask array.
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    daskclust.CLUE : Layer clusters from hits.
    daskclust.properties.cluster_table : A table of these, and of showers.

    Notes
    -----
    With r = hypot(x, y) and the azimuth phi of two layer clusters i and j, the squared distance across is
    (r_i - r_j')^2 + (r_j' dphi)^2, where r_j' = r_j abs(z_i) / abs(z_j). Of equal densities the later layer cluster is
    the higher, of two equally near the one that comes first is taken.

    Where CMSSW looks in windows of 5 and of 3 tiles of 0.05 in eta and phi, all pairs count here, and a nearest higher
    beyond the largest of the distances that are compared with is none. The first layer at z > 0 has nearest
    highers as every other one. Densities by the extent in z (rescaleDensityByZ), which need a detector's geometry, are
    not there, nor is the energy regression by a network. CLUE3DHigh leaves out layer clusters of one cell before.

    References
    ----------
    .. [1] F. Pantaleo, M. Rovere, The Iterative Clustering framework for the CMS HGCAL Reconstruction, Journal of
       Physics: Conference Series 2438 (2023) 012096, https://doi.org/10.1088/1742-6596/2438/1/012096
    .. [2] CMSSW, RecoHGCal/TICL, plugin PatternRecognitionbyCLUE3D, https://github.com/cms-sw/cmssw

    Examples
    --------
    >>> import numpy as np
    >>> from daskclust import CLUE3D
    >>> z = np.array([320.0, 322.0, 324.0, 320.0, 322.0])
    >>> X = np.stack([0.2 * z + [0, 0, 0, 9, 9], 0 * z, z], axis=1)
    >>> fit = CLUE3D().fit(X, layer=[1, 2, 3, 1, 2], sample_weight=[1.0, 3.0, 2.0, 4.0, 2.0])
    >>> fit.labels_, fit.density_
    (array([0, 0, 0, 1, 1]), array([2. , 3.6, 2.8, 4.4, 2.8]))
    """

    def __init__(
        self,
        *,
        critical_density: float = 0.6,
        critical_self_density: float = 0.15,
        density_sibling_layers: int = 3,
        density_eta_phi_distance_sqr: float = 0.0008,
        density_xy_distance_sqr: float = 3.24,
        kernel_density_factor: float = 0.2,
        density_on_same_layer: bool = False,
        nearest_higher_on_same_layer: bool = False,
        use_absolute_projective_scale: bool = True,
        use_cluster_dimension_xy: bool = False,
        critical_eta_phi_distance: float = 0.025,
        critical_xy_distance: float = 1.8,
        critical_z_distance_lyr: int = 5,
        outlier_multiplier: float = 2.0,
        min_num_layer_cluster: int = 2,
    ) -> None:
        self.critical_density = critical_density
        self.critical_self_density = critical_self_density
        self.density_sibling_layers = density_sibling_layers
        self.density_eta_phi_distance_sqr = density_eta_phi_distance_sqr
        self.density_xy_distance_sqr = density_xy_distance_sqr
        self.kernel_density_factor = kernel_density_factor
        self.density_on_same_layer = density_on_same_layer
        self.nearest_higher_on_same_layer = nearest_higher_on_same_layer
        self.use_absolute_projective_scale = use_absolute_projective_scale
        self.use_cluster_dimension_xy = use_cluster_dimension_xy
        self.critical_eta_phi_distance = critical_eta_phi_distance
        self.critical_xy_distance = critical_xy_distance
        self.critical_z_distance_lyr = critical_z_distance_lyr
        self.outlier_multiplier = outlier_multiplier
        self.min_num_layer_cluster = min_num_layer_cluster

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        layer: Any = None,
        event: Any = None,
        sample_weight: Any = None,
        radius: Any = None,
        is_silicon: Any = None,
        partition: str | Partition = "auto",
    ) -> CLUE3D:
        """Find showers.

        Parameters
        ----------
        X : array of shape (n, 3), DataFrame, xarray.Dataset, or awkward.Array
            Layer clusters: x, y, z in cm from the collision, z not 0, as a numpy, cupy or dask array; or a DataFrame, a
            Dataset (other units of length and energy are converted) or awkward records with ``x``, ``y``, ``z``,
            ``layer``, ``energy`` (or ``weight``) and, where they are, ``event``, ``radius``, ``is_silicon``: tables of
            `daskclust.properties.cluster_table` are such.
        y : None
            Ignored.
        layer : array of int, shape (n,), optional
            Number of the layer, counted along z in each endcap.
        event : array of int, shape (n,), optional
            Layer clusters of different events are apart. Instead of the lists, if `X` has any.
        sample_weight : array, shape (n,), optional
            Energies in GeV.
        radius : array, shape (n,), optional
            Radius of each layer cluster in cm, for `use_cluster_dimension_xy`, and where `is_silicon` is false.
        is_silicon : array of bool, shape (n,), optional
            Whether it is in silicon. In scintillators energies count within `radius`, and that is the distance of
            seeds, too; not in eta, phi. Default: all.
        partition : {"auto", "layers", "chunks"} or Partition, default "auto"
            How a dask array is divided into tasks; the result is the same. ``"auto"``, ``"layers"``: groups of events.
            ``"chunks"``: as it is, every event within one chunk.

        Returns
        -------
        CLUE3D
            Itself. On dask nothing is computed yet.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, layers or energies that are missing, and for values that are not finite, of the
            wrong shape, of unknown chunk sizes, or of units that cannot be converted.
        """
        has_names = not isinstance(X, Points) and not (is_dask(X) and not X.dtype.names) and table_of(X) is not None
        coordinates = _AXES if has_names else None
        points = read_points(self, split_points(X, (*EVENT, *LAYER, *WEIGHT), coordinates))
        if points.X.shape[1] != len(_AXES):
            raise ValueError(f"X must have 3 columns, x, y and z, got {points.X.shape[1]}")
        plan = self._plan(points.X.dtype)
        given = {"layer": layer, "event": event, "energy": sample_weight, "radius": radius, "is_silicon": is_silicon}
        results = run(plan, self._columns(points, given), partition)
        self.n_clusters_ = results.pop("n_clusters")
        results = {name: nest(values, points.nesting) for name, values in results.items()}
        self.labels_, self.is_seed_, self.density_ = results["labels"], results["is_seed"], results["density"]
        self.delta_, self.nearest_higher_ = results["delta"], results["nearest_higher"]
        return self

    def _plan(self, dtype: Any = np.float64) -> ShowerPlan:
        """Check the parameters and return the plan."""
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        is_flat = bool(self.use_absolute_projective_scale)

        def number(name: str, *, zero: bool = False) -> float:
            return check_positive(name, getattr(self, name), zero=zero, dtype=dtype)

        def whole(name: str, least: int = 0) -> int:
            return check_whole(name, getattr(self, name), least, 2**31 - 1, clamp=True)

        across = {kind: number(f"density_{kind}_distance_sqr") for kind in ("xy", "eta_phi")}
        critical = {kind: number(f"critical_{kind}_distance") for kind in across}
        kind = "xy" if is_flat else "eta_phi"
        return ShowerPlan(
            number("critical_density", zero=True),
            number("critical_self_density", zero=True),
            whole("density_sibling_layers"),
            across[kind],
            number("kernel_density_factor", zero=True),
            bool(self.density_on_same_layer),
            bool(self.nearest_higher_on_same_layer),
            is_flat,
            bool(self.use_cluster_dimension_xy) and is_flat,
            critical[kind],
            whole("critical_z_distance_lyr"),
            number("outlier_multiplier", zero=True),
            whole("min_num_layer_cluster", 1),
        )

    def _columns(self, points: Points, given: dict[str, Any]) -> dict[str, Any]:
        """Return what the plan needs of each layer cluster, in cm and GeV."""
        names = {"layer": LAYER, "event": EVENT, "energy": WEIGHT, "radius": ("radius",), "is_silicon": ("is_silicon",)}
        kinds: dict[str, Any] = {"layer": (groups, np.int64), "energy": (reals, points.X.dtype)}
        kinds |= {"radius": kinds["energy"], "is_silicon": (groups, np.bool_), "event": (_events, np.int64)}
        found: dict[str, Any] = {}
        for name, values in given.items():
            own = next((each for each in names[name] if each in points.columns), None)
            if values is None and own is not None:
                values, unit = points.columns[own], points.units.get(own)
                if name == "radius" or (name == "energy" and ratio(unit or "1", "GeV") is not None):
                    values = in_unit(own, values, unit, "cm" if name == "radius" else "GeV")
            found[name] = values
        if points.nesting is not None:
            found["event"] = points.nesting.event(found["event"])
        for name, argument in (("layer", "layer"), ("energy", "sample_weight")):
            if found[name] is None:
                raise ValueError(f"each layer cluster needs its {name}; give {argument}=, or a table with {name}")
        if found["radius"] is None and (self.use_cluster_dimension_xy or found["is_silicon"] is not None):
            why = "use_cluster_dimension_xy" if self.use_cluster_dimension_xy else "is_silicon"
            raise ValueError(f"{why} needs the radius of each layer cluster; give radius=, or a table with it")
        X = in_unit("x", points.X, points.unit, "cm")
        columns = {
            name: points.aligned("sample_weight" if name == "energy" else name, values, *kinds[name])
            for name, values in found.items()
            if values is not None
        }
        return {"X": X, "group": map_points(_endcaps, X, columns.pop("event", 0)), **columns}


def _endcaps(X: Any, event: Any) -> Any:
    """Return a number for each endcap of each event."""
    return 2 * event + (X[:, 2] > 0).astype(np.int64)


def _events(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers of events, a kind of columns: twice as large ones are numbers, too."""
    values = groups(name, values, first)
    if len(values) and not (values.min() >= -(2**31) and values.max() < 2**31):
        raise ValueError(
            f"{name} must lie within 32 bits, got {values.min()} to {values.max()}; number them again from 0, e.g. by "
            "np.unique(..., return_inverse=True)"
        )
    return values
