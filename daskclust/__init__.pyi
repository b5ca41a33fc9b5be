__version__: str

__all__ = [
    "CLUE",
    "DBSCAN",
    "EventBuilder",
    "EventStream",
    "ExponentialKernel",
    "FriendsOfFriends",
    "GaussianKernel",
    "MahalanobisHCA",
    "accessor",
    "app",
    "core",
    "datasets",
    "io",
    "metrics",
    "plot",
    "properties",
    "workers",
]

from . import accessor as accessor
from . import app as app
from . import core as core
from . import datasets as datasets
from . import io as io
from . import metrics as metrics
from . import plot as plot
from . import properties as properties
from . import workers as workers
from .clue.density_kernels import ExponentialKernel as ExponentialKernel
from .clue.density_kernels import GaussianKernel as GaussianKernel
from .clue.estimator import CLUE as CLUE
from .dbscan.estimator import DBSCAN as DBSCAN
from .dbscan.estimator import FriendsOfFriends as FriendsOfFriends
from .events.estimator import EventBuilder as EventBuilder
from .events.stream import EventStream as EventStream
from .hca.estimator import MahalanobisHCA as MahalanobisHCA
