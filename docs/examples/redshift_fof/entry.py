"""The entry of `daskclust/systems.py`."""

from daskclust.systems import Run, System

ENTRY = System(
    "redshift",
    "Friends in redshift space",
    "redshift_fof.estimator:RedshiftFriends",
    (Run({"across": 0.4, "along": 0.9}, 3),),
    any_columns=False,
)
