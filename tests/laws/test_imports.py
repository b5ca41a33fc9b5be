"""A first fit imports what it needs: libraries of other containers take longer than most fits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FITS = ["CLUE(1.0, 1.0)", "EventBuilder(1.0)", "DBSCAN()", "FriendsOfFriends(0.1)", "MahalanobisHCA()"]
OTHERS = ["dask", "distributed", "pandas", "sklearn", "xarray"]


@pytest.mark.parametrize("estimator", FITS)
def test_a_fit_of_arrays_imports_no_other_containers(estimator: str) -> None:
    code = f"""
import sys
import numpy as np
import daskclust
found = daskclust.{estimator}.fit(np.arange(60.0).reshape(20, 3))
assert len(found.labels_) == 20 if hasattr(found, "labels_") else len(found.linkage_) == 19
sys.exit(str([name for name in {OTHERS} if name in sys.modules]))
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"
