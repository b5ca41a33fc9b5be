"""The fields of science: what the variables of their data sets are called, and which kind and unit they have.

A field is one `Field`: a point dimension and a tuple of `Variable`. Readers name and check the columns of a file by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["float", "int", "bool"]


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a data set.

    Parameters
    ----------
    name : str
        Name in the Dataset.
    kind : {"float", "int", "bool"}
        What the values are.
    dtype : str
        Type that values of another kind are converted to, when nothing is lost by it.
    unit, doc : str
        Go to ``attrs["units"]``, to which values in other units are converted, and ``attrs["long_name"]``. The unit of
        a number is "1"; "" where only the file can tell it.
    aliases : tuple of str
        Other names for it in files, in lower case.
    fixed : bool, default False
        Whether values always get `dtype` and `unit`. Otherwise a float variable keeps float32 and float64, an int
        variable every integer type, and a unit stays that cannot be converted, but can stand for it: ``"pixel"``.
    usual : str, default ""
        A unit of the quantity, where `unit` is "".
    """

    name: str
    kind: Kind
    dtype: str
    unit: str
    doc: str
    aliases: tuple[str, ...] = ()
    fixed: bool = False
    usual: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """The variables that data sets of one field of science have.

    Parameters
    ----------
    name, dim : str
        Name of the field, which goes to ``attrs["field"]``, and the point dimension.
    variables : tuple of Variable
        All that are known. A data set may have others.
    required : tuple of str
        Those that every data set must have.
    headerless : mapping of int to tuple of str
        Column names of a file without names, by the number of its columns.
    marks : tuple of str
        Names of columns, in lower case, that tell this field from the others.
    instead : mapping of str to str
        Variables that may be there instead of a required one.
    """

    name: str
    dim: str
    variables: tuple[Variable, ...]
    required: tuple[str, ...]
    headerless: Mapping[int, tuple[str, ...]]
    marks: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def attrs(self) -> dict[str, dict[str, str]]:
        """Attributes of each variable in a Dataset, by its name."""
        return {v.name: {**({"units": v.unit} if v.unit else {}), "long_name": v.doc} for v in self.variables}

    def find(self, name: str) -> Variable | None:
        """Return the variable of a name.

        Parameters
        ----------
        name : str
            Its name, no alias.

        Returns
        -------
        Variable or None
        """
        return next((v for v in self.variables if v.name == name), None)


CALORIMETER = Field(
    name="calorimeter",
    dim="hit",
    variables=(
        Variable("x", "float", "float64", "cm", "position across the beam", ("pos_x", "posx")),
        Variable("y", "float", "float64", "cm", "position across the beam", ("pos_y", "posy")),
        Variable("z", "float", "float64", "cm", "position along the beam", ("pos_z", "posz")),
        Variable("eta", "float", "float64", "1", "pseudorapidity"),
        Variable("phi", "float", "float64", "rad", "azimuth"),
        Variable("layer", "int", "int32", "1", "layer number", ("layerid", "layer_id", "lay")),
        Variable("energy", "float", "float64", "GeV", "deposited energy, the weight", ("e", "weight", "w", "edep")),
        Variable("event", "int", "int64", "1", "event number", ("event_id", "eventid", "evt")),
        Variable("truth", "int", "int64", "1", "true cluster number, noise -1"),
        Variable("label", "int", "int64", "1", "cluster number, noise -1"),
        Variable("density", "float", "float64", "GeV", "local density"),
        Variable("delta", "float", "float64", "cm", "distance to the nearest higher hit"),
        Variable("nearest_higher", "int", "int64", "1", "index of the nearest higher hit, none -1"),
        Variable("is_seed", "bool", "bool", "1", "whether the hit is a seed"),
    ),
    required=("x", "y"),
    headerless={2: ("x", "y"), 3: ("x", "y", "layer"), 4: ("x", "y", "layer", "energy")},
)

SIDES: dict[str, tuple[int, int]] = {"chips": (256, 256), "quad": (512, 512), "timepix4": (448, 512)}
"""Columns and rows of the coordinates of hits, by layout: those of a chip, or of the four of a quad without gap."""

TOA_OF_TIMEPIX4 = "toa48_ns"
"""What tables of Timepix4 call the time of arrival: hits with it are of chips of this kind."""

TIMEPIX = Field(
    name="timepix",
    dim="hit",
    variables=(
        Variable("x", "int", "uint16", "pixel", "column of the pixel", ("col", "column", "pixel_x", "x_pixel"), True),
        Variable("y", "int", "uint16", "pixel", "row of the pixel", ("row", "pixel_y", "y_pixel"), True),
        Variable(
            "toa", "float", "float64", "ns", "time of arrival", ("toa_ns", "t", "timestamp", TOA_OF_TIMEPIX4), True
        ),
        Variable("tot", "float", "float32", "ns", "time over threshold", ("tot_ns", "time_over_threshold"), True),
        Variable("chip", "int", "uint8", "1", "chip number", ("chip_id", "chipid", "chip_nr"), True),
        Variable("ftoa", "int", "uint8", "1", "fine time of arrival of the file, not applied", ("f_toa",)),
        Variable("energy", "float", "float32", "keV", "deposited energy", ("e", "energy_kev"), True),
        Variable("tof", "float", "float64", "ns", "time since the last trigger", ("tof_ns", "time_of_flight"), True),
        Variable("event", "int", "int64", "1", "event number", ("event_id", "eventid", "evt")),
        Variable("frame", "int", "int64", "1", "frame number", ("frame_id", "frameid", "frame_number")),
        Variable("truth", "int", "int64", "1", "true cluster number, noise -1"),
        Variable("label", "int", "int64", "1", "cluster number, noise -1", ("cluster_id", "clusterid")),
    ),
    required=("x", "y", "toa"),
    instead={"toa": "frame"},
    headerless={3: ("x", "y", "toa"), 4: ("x", "y", "toa", "tot")},
    marks=("toa", "toa_ns", TOA_OF_TIMEPIX4),
)

_POSITIONS, _VELOCITIES = ("pos", "position", "positions", "coordinates"), ("vel", "velocity", "velocities")
VECTORS = (*_POSITIONS, *_VELOCITIES)
"""Columns, in lower case, whose rows are lists of components, not of points."""


def _vectors(names: tuple[str, ...], axis: str) -> tuple[str, ...]:
    """Return the names of a component, as of a dataset of shape (n, 3): ``pos_x``, ``posx``."""
    return tuple(f"{name}{mark}{axis}" for name in names for mark in ("_", ""))


PARTICLES = Field(
    name="particles",
    dim="particle",
    variables=(
        Variable("x", "float", "float64", "", "position along x", _vectors(_POSITIONS, "x"), usual="Mpc/h"),
        Variable("y", "float", "float64", "", "position along y", _vectors(_POSITIONS, "y"), usual="Mpc/h"),
        Variable("z", "float", "float64", "", "position along z", _vectors(_POSITIONS, "z"), usual="Mpc/h"),
        Variable("vx", "float", "float64", "", "velocity along x", _vectors(_VELOCITIES, "x"), usual="km/s"),
        Variable("vy", "float", "float64", "", "velocity along y", _vectors(_VELOCITIES, "y"), usual="km/s"),
        Variable("vz", "float", "float64", "", "velocity along z", _vectors(_VELOCITIES, "z"), usual="km/s"),
        Variable("mass", "float", "float64", "", "mass", ("m", "masses"), usual="Msun/h"),
        Variable("id", "int", "int64", "1", "number of the particle", ("particle_id", "particleid", "particleids")),
        Variable("halo", "int", "int64", "1", "true halo number, background -1"),
        Variable("truth", "int", "int64", "1", "true cluster number, noise -1"),
        Variable("label", "int", "int64", "1", "cluster number, noise -1"),
    ),
    required=("x",),
    headerless={
        1: ("x",),
        2: ("x", "y"),
        3: ("x", "y", "z"),
        6: ("x", "y", "z", "vx", "vy", "vz"),
        7: ("x", "y", "z", "vx", "vy", "vz", "mass"),
    },
)

FIELDS: dict[str, Field] = {field.name: field for field in (CALORIMETER, TIMEPIX, PARTICLES)}
"""Every field by its name. A new one is added here."""
