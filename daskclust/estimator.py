"""What the systems' estimators share with those of scikit-learn, which takes longer to import than most fits.

They follow its conventions and are no subclasses of its `BaseEstimator`: what that would give is a few lines here.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Self

import numpy as np

from daskclust.core.device.arrays import keeping_device


class BaseEstimator:
    """An estimator by the conventions of scikit-learn: parameters of ``__init__`` are attributes of the same names."""

    _kind: str | None = None  # as scikit-learn names it
    _axes: tuple[Any, ...]  # names of the coordinates of the fit, numbers where they had none
    _unit: str | None  # of these

    def __init_subclass__(cls) -> None:
        """Let fits, which work on the device of their data, leave the thread's current CUDA device as it was."""
        super().__init_subclass__()
        for name in {"fit", "predict", "rethreshold"} & vars(cls).keys():
            setattr(cls, name, keeping_device()(vars(cls)[name]))

    @classmethod
    @functools.cache
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters with their defaults."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in sorted(parameters, key=lambda each: each.name)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` makes no difference, as none is an estimator."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name and return the estimator; a ValueError names the parameters there are."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {list(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = self.get_params().items()
        changed = [f"{name}={value!r}" for name, value in given if not _is_same(value, self._defaults()[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=self._kind, target_tags=TargetTags(required=False))

    def _check_is_fitted(self, attribute: str) -> None:
        """Raise scikit-learn's error where there are no results yet."""
        if attribute not in vars(self):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, attribute)


class Estimator(BaseEstimator):
    """A clusterer."""

    _kind = "clusterer"

    def fit_predict(self, X: Any, y: Any = None, **columns: Any) -> Any:
        """Return the labels of ``fit(X, **columns)``."""
        estimator: Any = self
        return estimator.fit(X, **columns).labels_


def _is_same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default."""
    return value is default or (np.ndim(value) == 0 and type(value) is type(default) and bool(value == default))
