"""CLUE3D by brute force: every pair of layer clusters, straight from the rule in the estimator's docstring.

Nothing of daskclust is used here. Radii, azimuths and pseudorapidities are NumPy's in float64, rounded to the precision
of the points, as distances are. Sums are made in float64; what follows is found from the densities of the program under
test, which must agree with them to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

DEFAULTS = {
    "critical_density": 0.6,
    "critical_self_density": 0.15,
    "density_sibling_layers": 3,
    "density_eta_phi_distance_sqr": 0.0008,
    "density_xy_distance_sqr": 3.24,
    "kernel_density_factor": 0.2,
    "density_on_same_layer": False,
    "nearest_higher_on_same_layer": False,
    "use_absolute_projective_scale": True,
    "use_cluster_dimension_xy": False,
    "critical_eta_phi_distance": 0.025,
    "critical_xy_distance": 1.8,
    "critical_z_distance_lyr": 5,
    "outlier_multiplier": 2.0,
    "min_num_layer_cluster": 2,
}


class Showers(NamedTuple):
    """The results in the order of the layer clusters."""

    labels: np.ndarray
    density: np.ndarray  # float64
    delta: np.ndarray
    nearest_higher: np.ndarray
    is_seed: np.ndarray


def distances2(X: np.ndarray, projective: bool) -> np.ndarray:
    """Return the squared distance of each layer cluster (row) to every other one (column), which is not symmetric."""
    real = X.dtype.type
    x, y, z = X.T.astype(np.float64)
    phi = np.arctan2(y, x).astype(real)
    turn = np.abs(phi[:, None] - phi)
    turn = np.minimum(turn, real(2 * np.pi) - turn)
    if not projective:
        eta = np.arcsinh(np.abs(z) / np.hypot(x, y)).astype(real)
        return (eta[:, None] - eta) ** 2 + turn**2
    slope, far = (np.sqrt(x * x + y * y) / np.abs(z)).astype(real), np.abs(z).astype(real)
    there = far[:, None] * slope
    along, around = (far * slope)[:, None] - there, there * turn
    return along * along + around * around


def showers(
    X: np.ndarray,
    layer: np.ndarray,
    energy: np.ndarray,
    event: np.ndarray | None = None,
    radius: np.ndarray | None = None,
    is_silicon: np.ndarray | None = None,
    density: np.ndarray | None = None,
    **parameters: Any,
) -> Showers:
    """Return the showers; given `density`, by those densities."""
    p, real, n = DEFAULTS | parameters, X.dtype.type, len(X)
    index, silicon = np.arange(n), np.ones(n, bool) if is_silicon is None else np.asarray(is_silicon, bool)
    projective = p["use_absolute_projective_scale"]
    if not projective:
        radius = None
    d2 = distances2(X, projective)
    apart = np.abs(layer[:, None] - layer)
    together = (X[:, None, 2] > 0) == (X[:, 2] > 0)
    if event is not None:
        together &= event[:, None] == event
    window = together & (apart <= p["density_sibling_layers"])

    limit2 = np.full(n, p["density_xy_distance_sqr" if projective else "density_eta_phi_distance_sqr"], real)
    by_radius = ~silicon | p["use_cluster_dimension_xy"]
    limit2 = limit2 if radius is None else np.where(by_radius, radius * radius, limit2)
    factor = np.where(apart > 0, 1.0, float(p["density_on_same_layer"])) * p["kernel_density_factor"]
    factor[index, index] = 1.0
    near = window & (d2 < limit2[:, None]) | np.eye(n, dtype=bool)
    own_density = np.where(near, factor * energy.astype(np.float64), 0.0).sum(axis=1)
    rho = own_density.astype(real) if density is None else density

    higher = (rho > rho[:, None]) | ((rho == rho[:, None]) & (index > index[:, None]))
    allowed = window & higher & (p["nearest_higher_on_same_layer"] | (apart > 0))
    to_higher = np.where(allowed, d2, np.inf)
    nearest = to_higher.argmin(axis=1)
    delta = np.sqrt(to_higher[index, nearest])

    distance = real(p["critical_xy_distance" if projective else "critical_eta_phi_distance"])
    outlier_distance = real(p["outlier_multiplier"]) * distance
    critical = np.full(n, distance) if radius is None else np.where(silicon, distance, radius)
    lone = ~(delta <= np.maximum(np.maximum(distance, outlier_distance), critical)) | np.isinf(delta)
    nearest, delta = np.where(lone, -1, nearest), np.where(lone, np.inf, delta).astype(real)

    dense = rho >= real(p["critical_density"])
    is_far = (delta > critical) | lone | (np.abs(layer - layer[nearest]) > p["critical_z_distance_lyr"])
    is_seed = is_far & dense & (energy > real(p["critical_self_density"]) * rho)
    follows = ~is_seed & ~lone & ~(~dense & (delta > outlier_distance))
    end = np.where(follows, nearest, index)
    while (end != end[end]).any():
        end = end[end]
    sizes = np.bincount(end, minlength=n)
    is_seed &= sizes >= p["min_num_layer_cluster"]
    labels = np.where(is_seed[end], (np.cumsum(is_seed) - 1)[end], -1)
    return Showers(labels, own_density, delta, nearest, is_seed)
