"""The fields of science, which `daskclust.core.data.fields` has."""

from daskclust.core.data.fields import CALORIMETER, FIELDS, PARTICLES, TIMEPIX, Field, Variable

__all__ = ["CALORIMETER", "FIELDS", "PARTICLES", "TIMEPIX", "Field", "Variable"]
