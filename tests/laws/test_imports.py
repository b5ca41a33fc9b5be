"""A first fit imports what it needs: libraries of other containers take longer than most fits."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import sys
import numpy as np
from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA

others = ["awkward", "dask", "distributed", "pandas", "sklearn", "xarray"]
for estimator in (CLUE(1.0, 1.0), EventBuilder(1.0), DBSCAN(), FriendsOfFriends(0.1), MahalanobisHCA()):
    found = estimator.fit(np.arange(60.0).reshape(20, 3))
    assert len(found.labels_) == 20
    print(type(estimator).__name__, [name for name in others if name in sys.modules])
"""


def test_fits_of_arrays_import_no_other_containers() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all(line.endswith("[]") for line in lines), done.stdout
